#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs and plugins export: exactly what the lists here allow.

A program of the host exports nothing, so no plugin can come to need it; a plugin exports its one
symbol. Needs a build: GRADRACK_BUILD names its folder.
"""

import os
import subprocess
import unittest
from pathlib import Path

BUILD = Path(os.environ["GRADRACK_BUILD"])
PLUGIN = {"gradrack_plugin_v1"}
PROGRAMS = {
    "gradrack": set(),
    "gradrack-probe": set(),
    # The kit makes a plugin's allocations fail by standing in for the C library's.
    "gradrack-conform": {"malloc", "calloc", "realloc", "memalign", "aligned_alloc",
                         "posix_memalign"},
}


def exports(path):
    """Names that a file defines for others. `stderr@GLIBC_2.2.5` and the like are the C library's
    own objects, which the linker places in a program."""
    done = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True,
                          text=True)
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    return {name for name in names if "@GLIBC" not in name}


class Exports(unittest.TestCase):
    def test_programs(self):
        for program, allowed in PROGRAMS.items():
            with self.subTest(program=program):
                self.assertEqual(exports(BUILD / "bin" / program), allowed)

    def test_bundled_plugins(self):
        plugins = sorted((BUILD / "lib" / "gradrack" / "plugins").glob("*.so"))
        self.assertGreater(len(plugins), 5)
        for plugin in plugins:
            with self.subTest(plugin=plugin.name):
                self.assertEqual(exports(plugin), PLUGIN)


if __name__ == "__main__":
    unittest.main()
