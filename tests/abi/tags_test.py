#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thread tags: the headers carry them, what is generated from them is fresh, faults are found.

Faults are put into copies of the real headers, so that a change of style that blinds the parser
shows here.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sdk" / "abi"))
import headers  # noqa: E402: found through the line above


def read_changed(header, old, new):
    """What headers.read finds when `old` is `new` in one header."""
    with tempfile.TemporaryDirectory() as folder:
        for path in headers.INCLUDE.glob("*.h"):
            text = path.read_text(encoding="utf-8")
            if path.name == header:
                assert old in text, f"{header} no longer holds {old!r}: mend this test"
                text = text.replace(old, new, 1)
            (Path(folder) / path.name).write_text(text, encoding="utf-8")
        return headers.read(folder)


class Headers(unittest.TestCase):
    def test_every_function_has_one_tag(self):
        functions = [f for struct in headers.read() for f in struct.functions]
        self.assertGreater(len(functions), 40)
        self.assertEqual({f.role for f in functions}, set(headers.ROLES))

    def test_a_missing_tag_is_found(self):
        with self.assertRaisesRegex(headers.HeaderError, r"gr_scheduler_t\.streams: .*found: none"):
            read_changed("scheduler.h", ">= 1. [plan]", ">= 1.")

    def test_two_tags_are_found(self):
        with self.assertRaisesRegex(headers.HeaderError, r"gr_backend_t\.launch: .*\[any\]"):
            read_changed("backend.h", "Allocates nothing. [exec]", "None. [exec] [any]")

    def test_an_unknown_tag_counts_as_none(self):
        with self.assertRaisesRegex(headers.HeaderError, "found: none"):
            read_changed("scheduler.h", ">= 1. [plan]", ">= 1. [planning]")

    def test_a_tag_without_words_is_found(self):
        with self.assertRaisesRegex(headers.HeaderError, "says nothing"):
            read_changed("model.h", "/// Frees `self`. [main]", "/// [main]")

    def test_a_function_that_is_not_understood_is_found(self):
        with self.assertRaisesRegex(headers.HeaderError, "function pointers are declared"):
            read_changed("model.h", "typedef struct gr_model {", "typedef struct gr_model  {")

    def test_optional_functions_are_those_the_host_does_not_require(self):
        text = (ROOT / "core/plugin/kinds.cpp").read_text(encoding="utf-8")
        required = set(re.findall(r"GRADRACK_SLOT\((gr_\w+_t), (\w+)\)", text))
        kinds = {table for table, _ in required}
        tagged = {(struct.name, function.name) for struct in headers.read()
                  for function in struct.functions
                  if struct.name in kinds and not function.optional}
        self.assertEqual(len(kinds), 8)
        self.assertEqual(required, tagged)


class Generated(unittest.TestCase):
    def test_committed_files_are_fresh(self):
        done = subprocess.run([sys.executable, "-B", str(ROOT / "sdk/abi/generate.py"), "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
