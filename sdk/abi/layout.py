#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layout of the plugin ABI as the compiler sees it, and the rule for changing it.

An anchor library is compiled from the headers: one exported pointer per public struct, one enum
with every constant. Its debug information becomes a description (layout-MAJOR.MINOR.json, committed
when that minor is released), and compare() says what a later description breaks: the members of a
growable struct are a prefix of the later one's and lie where they lay, and one called reserved may
get a name in a new minor; what is added lies behind the old end and comes with a new minor; a
frozen struct, an enumerator and a defined name never change. A struct without struct_size is
frozen, unless it is only walked with a stride (STRIDED).

`layout.py` prints the description of the headers beside it; --write puts it into its file, and the
anchor library's own description by abidw beside it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import dwarf
import headers

HERE = Path(__file__).resolve().parent
STRUCTS = ("gr_", "DL")
CONSTANTS = ("GR_", "kDL")
STRIDED = {"gr_task_t": "gr_schedule_request_t.task_stride",
           "gr_task_buffer_t": "gr_schedule_request_t.buffer_stride",
           "gr_option_value_t": "gr_options_t.item_stride"}
DEFINE = re.compile(r"^#define (GR_\w+) +(?!\\)(\S.*?) *(?://.*)?$", re.M)
MOVING = re.compile(r"^GR_(VERSION_\w+|ABI_M(IN|AX)_MINOR)$")


def anchor_source(structs, constants=()):
    """C text of the anchor library."""
    lines = ['#include "gradrack/gradrack.h"',
             '#define ANCHOR __attribute__((visibility("default")))']
    lines += [f"ANCHOR const {name}* gr_anchor_{name};" for name in structs]
    if constants:
        rows = ", ".join(f"anchor_{name} = {name}" for name in constants)
        lines += [f"enum gr_anchor_constants {{ {rows} }};",
                  "ANCHOR enum gr_anchor_constants gr_anchor_constants;"]
    return "\n".join(lines) + "\n"


def struct_names(include):
    return [struct.name for struct in headers.read(Path(include) / "gradrack")]


def compile_anchor(include, output, compiler=("gcc", "-std=c11"), constants=(), flags=()):
    """Compiles the anchor for the headers below `include`; raises CalledProcessError."""
    folder = Path(output).resolve().parent  # named nowhere in the output
    (folder / "anchor.c").write_text(anchor_source(struct_names(include), constants),
                                     encoding="utf-8")
    subprocess.run([*compiler, "-g", "-gdwarf-4", "-fPIC", "-fvisibility=hidden", *flags,
                    f"-I{Path(include).resolve()}", "-o", Path(output).name, "anchor.c"],
                   check=True, capture_output=True, text=True, cwd=folder)


def definitions(include):
    """Text of each object-like macro that must keep its value, and the newest minor."""
    found = {}
    for path in sorted((Path(include) / "gradrack").glob("*.h")):
        found.update(DEFINE.findall(path.read_text(encoding="utf-8")))
    minor = int(found["GR_ABI_MAX_MINOR"])
    fixed = {name: value for name, value in found.items()
             if not MOVING.match(name) and not value.startswith("__attribute__")}
    return fixed, minor


def describe(include=headers.INCLUDE.parent, compiler=("gcc", "-std=c11")):
    """The layout of the headers below `include`, as `compiler` lays it out."""
    with tempfile.TemporaryDirectory() as folder:
        anchor = Path(folder) / "anchor.o"
        compile_anchor(include, anchor, compiler,
                       flags=("-c", "-fno-eliminate-unused-debug-types"))
        types = dwarf.Types(anchor)
    structs = types.structs(STRUCTS)
    missing = set(struct_names(include)) - set(structs)
    if missing:
        raise headers.HeaderError("not in the debug information: " + ", ".join(sorted(missing)))
    for name, struct in structs.items():
        sized = any(member[0] == "struct_size" for member in struct["members"])
        struct["frozen"] = not sized and name not in STRIDED
    defines, minor = definitions(include)
    return {"minor": minor, "structs": structs, "constants": types.enumerators(CONSTANTS),
            "defines": defines}


def show(member):
    name, offset, size, kind = member
    return f"{kind} {name} ({size} bytes at {offset})"


def takes_reserved(was, now):
    """A reserved member got a name and a meaning: zero, as 1.0 wrote it, means what it meant."""
    return now is not None and was[0].startswith("reserved") and now[1:] == was[1:]


def compare_struct(name, old, new, newer):
    """What breaks between two layouts of a struct, as sentences. `newer`: the minor was raised."""
    broken = []
    for index, was in enumerate(old["members"]):
        now = new["members"][index] if index < len(new["members"]) else None
        if now != was and not (newer and not old["frozen"] and takes_reserved(was, now)):
            is_now = "is gone" if now is None else f"is now {show(now)}"
            return [f"{name}: member {index} was {show(was)} and {is_now}"]
    added = new["members"][len(old["members"]):]
    if new["size"] < old["size"] or (old["frozen"] and new["size"] != old["size"]):
        broken.append(f"{name}: size was {old['size']} and is {new['size']}")
    for member, offset, *_ in added:
        place = f"{name}: {member} was added"
        if old["frozen"]:
            broken.append(f"{place}, and this struct is frozen")
        elif offset < old["size"]:
            broken.append(f"{place} at {offset}, inside the old size of {old['size']}: "
                          "no struct_size tells old from new")
        elif not newer:
            broken.append(f"{place} without raising GR_ABI_MAX_MINOR")
    return broken


def compare(old, new):
    """Every break of the rule between two descriptions, as sentences."""
    broken = []
    newer = new["minor"] > old["minor"]
    for name, struct in old["structs"].items():
        if name not in new["structs"]:
            broken.append(f"{name}: the struct is gone")
        else:
            broken += compare_struct(name, struct, new["structs"][name], newer)
    for group in ("constants", "defines"):
        for name, value in old[group].items():
            if new[group].get(name) != value:
                broken.append(f"{name}: was {value} and is {new[group].get(name, 'gone')}")
    for group in ("structs", "constants", "defines"):
        for name in new[group].keys() - old[group].keys():
            if not newer:
                broken.append(f"{name} was added without raising GR_ABI_MAX_MINOR")
    return broken


def file_of(minor):
    return HERE / f"layout-1.{minor}.json"


def dumps(description):
    """JSON with one line a member."""
    text = json.dumps(description, indent=1, sort_keys=True)
    return re.sub(r'\[\s+("\w+"),\s+(\d+),\s+(\d+),\s+("[^"\n]*")\s+\]', r"[\1, \2, \3, \4]",
                  text) + "\n"


def write(description):
    """Writes the files of a minor: the description, and the anchor library as abidw sees it."""
    minor = description["minor"]
    file_of(minor).write_text(dumps(description), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        anchor = Path(folder) / "anchor.so"
        compile_anchor(headers.INCLUDE.parent, anchor, flags=("-shared",),
                       constants=sorted(description["constants"]))
        done = subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path",
                               "--no-show-locs", anchor],
                              check=True, capture_output=True, text=True)
    (HERE / f"anchor-1.{minor}.abi").write_text(done.stdout, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files of this minor")
    args = parser.parse_args()
    description = describe()
    if args.write:
        write(description)
    else:
        sys.stdout.write(dumps(description))


if __name__ == "__main__":
    main()
