#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies the C headers as the next minor might have them: later_headers.py FOLDER.

The newest minor is one higher and every struct that may grow has grown at its end. What is built
with the copy is a plugin, or a host, one minor ahead of this tree.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sdk" / "abi"))
import headers  # noqa: E402: found through the line above
import layout  # noqa: E402

ADDED = "  uint64_t later[4];  ///< what a later minor added\n"


def growable():
    return [struct.name for struct in headers.read()
            if "struct_size" in struct.members or struct.name in layout.STRIDED]


def write(folder):
    """Writes FOLDER/gradrack/*.h and returns the names of the structs that grew."""
    target = Path(folder) / "gradrack"
    target.mkdir(parents=True, exist_ok=True)
    names = growable()
    text_of = {path.name: path.read_text(encoding="utf-8")
               for path in headers.INCLUDE.glob("*.h")}
    for name in names:
        grown = [header for header, text in text_of.items() if f"\n}} {name};" in text]
        assert len(grown) == 1, f"{name} is in {grown}"
        text_of[grown[0]] = text_of[grown[0]].replace(f"\n}} {name};", f"\n{ADDED}}} {name};")
    before = text_of["plugin.h"]
    text_of["plugin.h"] = re.sub(r"(#define GR_ABI_MAX_MINOR +)(\d+)",
                                 lambda match: match[1] + str(int(match[2]) + 1), before)
    assert text_of["plugin.h"] != before, "GR_ABI_MAX_MINOR was not found"
    for header, text in text_of.items():
        (target / header).write_text(text, encoding="utf-8")
    return names


if __name__ == "__main__":
    print(f"grown: {len(write(sys.argv[1]))} structs")
