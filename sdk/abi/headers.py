# SPDX-License-Identifier: Apache-2.0
"""Reads the C headers of the plugin ABI as data: structs, their functions, and the thread tags.

First step of sdk/abi: generate.py writes the documentation and the checked proxy from what is found
here, tests/abi compares it with what the compiler makes of the same headers. The one invariant:
every function pointer of a struct has a sentence and exactly one tag of ROLES, or read() raises. It
knows the regular style of these headers, not C in general.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent.parent / "include" / "gradrack"
ROLES = ("main", "plan", "exec", "any")
ROLE_TAG = re.compile(r"\[(" + "|".join(ROLES) + r")\]")
STRUCT = re.compile(r"^typedef struct(?: (\w+))? \{\n(.*?)^\} (\w+);", re.M | re.S)
FUNCTION = re.compile(r"^(?P<result>.+?)\(\*(?P<name>\w+)\)\((?P<parameters>.*)\)$", re.S)


class HeaderError(Exception):
    """A header breaks a rule of these headers; the text names the place and the rule."""


@dataclass(frozen=True)
class Function:
    """A function pointer of a struct."""
    name: str
    result: str
    parameters: tuple  # of text, one each
    doc: str           # without the tag and "(optional)"
    role: str          # one of ROLES
    optional: bool

    @property
    def summary(self):
        """First sentence of the doc comment."""
        return re.split(r"(?<=[.?!])\s+(?=[A-Z0-9(`])", self.doc, maxsplit=1)[0]


@dataclass(frozen=True)
class Struct:
    name: str
    header: str
    line: int
    doc: str
    members: tuple                # every member's name, in order
    functions: tuple = field(default=())


def one_line(text):
    return " ".join(text.split())


def parse_function(match, doc, where):
    tags = ROLE_TAG.findall(doc)
    if len(tags) != 1:
        found = " ".join(f"[{tag}]" for tag in tags) or "none"
        raise HeaderError(f"{where}: exactly one thread tag is wanted in its doc comment, of "
                          f"{' '.join(f'[{role}]' for role in ROLES)}; found: {found}")
    sentence = one_line(ROLE_TAG.sub("", doc))
    optional = sentence.startswith("(optional)")
    sentence = sentence.removeprefix("(optional)").strip()
    if not sentence:
        raise HeaderError(f"{where}: its doc comment says nothing but the tag")
    parameters = tuple(one_line(part) for part in match["parameters"].split(","))
    return Function(match["name"], one_line(match["result"]), parameters, sentence, tags[0],
                    optional)


def member_names(declaration):
    """Names of a data member's declaration, such as `const char* name` or `char field[64]`."""
    return [re.search(r"(\w+)\s*(\[\w+\])*\s*$", part).group(1) for part in declaration.split(",")]


def parse_body(body, where):
    """Members of a struct in order, and the functions among them."""
    members, functions, doc, pending = [], [], [], ""
    for line in body.splitlines():
        code, _, comment = line.partition("//")
        if not code.strip():  # a comment of its own, or an empty line
            doc = doc + [comment[1:].strip()] if comment.startswith("/") else []
            continue
        pending += code
        if ";" not in code:
            continue
        declaration = one_line(pending).rstrip(";").strip()
        pending = ""
        match = FUNCTION.match(declaration)
        if match:
            text = " ".join(doc + [comment.lstrip("/<").strip()])
            functions.append(parse_function(match, text, f"{where}.{match['name']}"))
            members.append(match["name"])
        else:
            members.extend(member_names(declaration))
        doc = []
    return tuple(members), tuple(functions)


def doc_before(text, position):
    """The /// lines that end at `position`."""
    lines = []
    for line in reversed(text[:position].splitlines()):
        if not line.startswith("///"):
            break
        lines.append(line[3:].strip())
    return " ".join(reversed(lines))


def read(folder=INCLUDE):
    """Every struct of the headers in `folder`, by header name and place."""
    structs = []
    for path in sorted(Path(folder).glob("*.h")):
        text = path.read_text(encoding="utf-8")
        declared = len(re.findall(r"\(\*\w+\)\(", re.sub(r"//.*", "", text)))
        found = 0
        for match in STRUCT.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            where = f"{path.name}:{line}: {match.group(3)}"
            members, functions = parse_body(match.group(2), where)
            found += len(functions)
            structs.append(Struct(match.group(3), path.name, line,
                                  doc_before(text, match.start()), members, functions))
        if found != declared:
            raise HeaderError(f"{path.name}: {declared} function pointers are declared, {found} "
                              "were understood inside structs: keep to the style of these headers")
    return structs
