# SPDX-License-Identifier: Apache-2.0
"""Reads types from the debug information of an object file, by way of binutils' readelf.

Answers what a compiler made of a header: size of each struct, and name, offset, size and type of
each member; value of each enumerator. Knows what C headers need of DWARF and nothing more. The
types come out as text that is the same from gcc and from clang.
"""

import re
import subprocess
from dataclasses import dataclass, field

ENTRY = re.compile(r"^ *<(?P<depth>[0-9a-f]+)><(?P<place>[0-9a-f]+)>: Abbrev Number: \d+ "
                   r"\((?P<tag>DW_TAG_\w+)\)")
ATTRIBUTE = re.compile(r"^ +<[0-9a-f]+> +(?P<name>DW_AT_\w+) *: (?P<value>.*)$")
REFERENCE = re.compile(r"<0x([0-9a-f]+)>")
# How the value is stored, which versions of readelf print differently: `(data1) 8`,
# `(strp) (offset: 0x1f): name`, `(indirect string, offset: 0x1f): name`.
FORM = re.compile(r"^(?:\([^)]*\):? *)+")
POINTER_BYTES = 8


@dataclass
class Entry:
    place: int
    tag: str
    attributes: dict = field(default_factory=dict)
    children: list = field(default_factory=list)

    @property
    def name(self):
        text = self.attributes.get("DW_AT_name")
        return FORM.sub("", text).strip() if text is not None else None

    def number(self, attribute):
        """Value as an integer, or None."""
        text = self.attributes.get(attribute)
        return int(FORM.sub("", text).split()[0], 0) if text is not None else None


class Types:
    """The debug information of one file."""

    def __init__(self, path):
        dump = subprocess.run(["readelf", "--debug-dump=info", "--wide", str(path)], check=True,
                              capture_output=True, text=True, errors="replace").stdout
        self.entries = {}
        self.roots = []
        self._read(dump)

    def _read(self, dump):
        open_entries = []
        for line in dump.splitlines():
            match = ENTRY.match(line)
            if match:
                entry = Entry(int(match["place"], 16), match["tag"][len("DW_TAG_"):])
                del open_entries[int(match["depth"], 16):]
                (open_entries[-1].children if open_entries else self.roots).append(entry)
                open_entries.append(entry)
                self.entries[entry.place] = entry
                continue
            match = ATTRIBUTE.match(line)
            if match and open_entries:
                open_entries[-1].attributes[match["name"]] = match["value"].strip()

    def target(self, entry):
        """What an entry's DW_AT_type names; None is void."""
        text = entry.attributes.get("DW_AT_type")
        return self.entries[int(REFERENCE.search(text).group(1), 16)] if text else None

    def bytes(self, entry):
        size = entry.number("DW_AT_byte_size")
        if size is not None:
            return size
        if entry.tag == "pointer_type":
            return POINTER_BYTES
        if entry.tag == "array_type":
            return self.bytes(self.target(entry)) * self._length(entry)
        return self.bytes(self.target(entry))  # typedef, const

    @staticmethod
    def _length(array):
        total = 1
        for dimension in array.children:
            count = dimension.number("DW_AT_count")
            total *= count if count is not None else dimension.number("DW_AT_upper_bound") + 1
        return total

    def text(self, entry):
        """A type as C writes it: `const char*`, `int32_t(void*, gr_error_t*)`, `char[64]`."""
        if entry is None:
            return "void"
        if entry.name and entry.tag != "array_type":
            return entry.name
        inner = self.target(entry)
        if entry.tag == "pointer_type":
            return self.text(inner) + "*"
        if entry.tag == "const_type":
            pointer = inner is not None and inner.tag == "pointer_type"
            return self.text(inner) + " const" if pointer else "const " + self.text(inner)
        if entry.tag == "array_type":
            return f"{self.text(inner)}[{self._length(entry)}]"
        if entry.tag == "subroutine_type":
            parameters = [self.text(self.target(child)) for child in entry.children
                          if child.tag == "formal_parameter"]
            return f"{self.text(inner)}({', '.join(parameters)})"
        return entry.tag

    def structs(self, prefixes):
        """Structs whose typedef begins with one of `prefixes` (a tuple), by that name:
        {"size": bytes, "members": [[name, offset, size, type], ...]}."""
        found = {}
        for entry in self.entries.values():
            struct = self.target(entry) if entry.tag == "typedef" else None
            if not entry.name or not entry.name.startswith(prefixes):
                continue
            if struct is None or struct.tag != "structure_type" or not struct.children:
                continue
            members = []
            for child in struct.children:
                kind = self.target(child)
                members.append([child.name, child.number("DW_AT_data_member_location"),
                                self.bytes(kind), self.text(kind)])
            found[entry.name] = {"size": self.bytes(struct), "members": members}
        return found

    def enumerators(self, prefixes):
        """Values of all enumerators whose name begins with one of `prefixes`."""
        return {child.name: child.number("DW_AT_const_value")
                for entry in self.entries.values() if entry.tag == "enumeration_type"
                for child in entry.children
                if child.tag == "enumerator" and child.name.startswith(prefixes)}
