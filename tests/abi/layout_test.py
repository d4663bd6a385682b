#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers keep the layouts that were released, whatever compiles them; breaks are found.

Each kind of break is made in a copy of the real headers and must be reported, so that a blind gate
fails here. abidiff, an implementation of its own, judges the same anchor library a second time.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tools

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sdk" / "abi"))
import headers  # noqa: E402: found through the line above
import layout  # noqa: E402

INCLUDE = headers.INCLUDE.parent
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
RELEASED = json.loads(layout.file_of(0).read_text(encoding="utf-8"))
NEWEST = layout.definitions(INCLUDE)[1]
RAISE_MINOR = ("plugin.h", f"GR_ABI_MAX_MINOR {NEWEST}", f"GR_ABI_MAX_MINOR {NEWEST + 1}")
STREAMS = "  int32_t (*streams)(void* self, uint32_t* out, gr_error_t* err);\n"
APPEND = ("scheduler.h", "} gr_scheduler_t;",
          "  /// New. [any]\n  int32_t (*added)(void* self);\n} gr_scheduler_t;")


def changed_headers(folder, *changes):
    """Copies the headers below `folder` with (header, old text, new text) applied."""
    shutil.copytree(INCLUDE / "gradrack", Path(folder) / "gradrack")
    for header, old, new in changes:
        path = Path(folder) / "gradrack" / header
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{header} no longer holds {old!r}: mend this test"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def breaks(*changes):
    """What layout.compare reports when the headers are changed so."""
    with tempfile.TemporaryDirectory() as folder:
        return layout.compare(RELEASED, layout.describe(changed_headers(folder, *changes)))


class Released(unittest.TestCase):
    def test_every_released_minor_is_kept(self):
        now = layout.describe()
        files = sorted(layout.HERE.glob("layout-1.*.json"))
        self.assertIn(len(files), (now["minor"], now["minor"] + 1), "one file a released minor, "
                      "and the newest may be in the making: run sdk/abi/layout.py --write when it "
                      "is released")
        for file in files:
            self.assertEqual(layout.compare(json.loads(file.read_text(encoding="utf-8")), now), [],
                             f"against {file.name}")

    def test_the_description_is_not_empty(self):
        self.assertGreater(len(RELEASED["structs"]), 40)
        self.assertGreater(len(RELEASED["constants"]), 70)
        self.assertGreater(sum(len(s["members"]) for s in RELEASED["structs"].values()), 300)

    def test_the_frozen_structs(self):
        frozen = {name for name, struct in RELEASED["structs"].items() if struct["frozen"]}
        self.assertEqual(frozen, {
            "DLDataType", "DLDevice", "DLTensor", "gr_attr_t", "gr_builder_t", "gr_data_output_t",
            "gr_dim_t", "gr_error_t", "gr_init_t", "gr_state_t", "gr_value_type_t"})


class Breaks(unittest.TestCase):
    def expect(self, text, *changes):
        found = breaks(*changes)
        self.assertTrue(any(text in line for line in found), f"{text!r} is not in {found}")

    def test_reordered_members(self):
        self.expect("gr_device_info_t: member 1", RAISE_MINOR, (
            "backend.h", "  int32_t device_type;  ///< DLDeviceType\n  int32_t device_id;\n",
            "  int32_t device_id;\n  int32_t device_type;\n"))

    def test_reordered_functions_of_one_type(self):
        self.expect("gr_graph_api_t: member", RAISE_MINOR,
                    ("graph.h", "(*parameter)", "(*buffer_)"),
                    ("graph.h", "(*buffer)", "(*parameter)"),
                    ("graph.h", "(*buffer_)", "(*buffer)"))

    def test_member_inserted_in_the_middle(self):
        self.expect("gr_scheduler_t: member 5", RAISE_MINOR, (
            "scheduler.h", STREAMS, STREAMS + "  /// X. [any]\n  void (*inserted)(void* self);\n"))

    def test_changed_enumerator(self):
        self.expect("GR_CANCELLED: was 10 and is 12", RAISE_MINOR,
                    ("status.h", "GR_CANCELLED = 10", "GR_CANCELLED = 12"))

    def test_shrunk_struct(self):
        self.expect("gr_lr_request_t: member 4", RAISE_MINOR, (
            "lr_schedule.h", "  double base_lr;       ///< `lr` of the parameter group\n", ""))

    def test_changed_type_of_equal_size(self):
        self.expect("gr_batch_request_t: member 3", RAISE_MINOR,
                    ("data.h", "int64_t index; ", "double index; "))

    def test_added_parameter_of_a_function(self):
        self.expect("gr_backend_t: member", RAISE_MINOR,
                    ("backend.h", "(*allocate)(void* self", "(*allocate)(void* self, int x"))

    def test_member_in_the_padding(self):
        self.expect("inside the old size", RAISE_MINOR,
                    ("optimizer.h", "} gr_update_t;", "  int32_t added;\n} gr_update_t;"))

    def test_grown_frozen_struct(self):
        self.expect("this struct is frozen", RAISE_MINOR,
                    ("graph.h", "} gr_dim_t;", "  int64_t most;\n} gr_dim_t;"))

    def test_changed_magic(self):
        self.expect("GR_PLUGIN_MAGIC", RAISE_MINOR, ("plugin.h", "0x4b43", "0x4b44"))

    def test_reserved_member_of_another_type(self):
        self.expect("gr_group_t: member 8", RAISE_MINOR,
                    ("backend.h", "  uint32_t pattern;", "  int32_t pattern;"))

    def test_reserved_member_of_a_frozen_struct(self):
        self.expect("gr_value_type_t: member 3", RAISE_MINOR,
                    ("backend.h", "  uint32_t reserved;\n  const int64_t* dims;",
                     "  uint32_t layout;\n  const int64_t* dims;"))

    def test_reserved_member_needs_a_new_minor(self):
        with tempfile.TemporaryDirectory() as folder:
            now = layout.describe()
            found = layout.compare(now, layout.describe(changed_headers(folder, (
                "backend.h", "  uint32_t reserved;\n  const char* description;",
                "  uint32_t numa;\n  const char* description;"))))
        self.assertEqual(len(found), 1, found)
        self.assertIn("gr_device_info_t: member 7", found[0])

    def test_append_without_a_new_minor(self):
        with tempfile.TemporaryDirectory() as folder:
            found = layout.compare(layout.describe(),
                                   layout.describe(changed_headers(folder, APPEND)))
        self.assertEqual(found, ["gr_scheduler_t: added was added without raising "
                                 "GR_ABI_MAX_MINOR"])

    def test_append_with_a_new_minor_is_legal(self):
        self.assertEqual(breaks(RAISE_MINOR, APPEND, (
            "status.h", "  GR_INTERNAL = 11 ", "  GR_LATER = 12,\n  GR_INTERNAL = 11 ")), [])


class Compilers(unittest.TestCase):
    def test_equal_layouts(self):
        for compiler in tools.compilers(self):
            with self.subTest(compiler=" ".join(compiler)):
                now = layout.describe(compiler=compiler + STRICT)
                self.assertEqual(layout.compare(RELEASED, now), [])
                self.assertEqual(now["structs"], layout.describe()["structs"])

    def test_each_header_stands_alone(self):
        for path in sorted((INCLUDE / "gradrack").glob("*.h")):
            for compiler in (("gcc", "-std=c11"), ("g++", "-std=c++20", "-x", "c++")):
                done = subprocess.run(
                    [*compiler, *STRICT, f"-I{INCLUDE}", "-fsyntax-only",
                     *(() if "-x" in compiler else ("-x", "c")), "-"],
                    input=f'#include "gradrack/{path.name}"\nint unused;\n', text=True,
                    capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, f"{path.name}: {done.stderr}")


class Abidiff(unittest.TestCase):
    """rc of abidiff: 0 equal, else bits; 4 is a change."""

    def verdict(self, *changes):
        program = tools.require(self, "abidiff", package="abigail-tools")
        with tempfile.TemporaryDirectory() as folder:
            anchor = Path(folder) / "anchor.so"
            layout.compile_anchor(changed_headers(folder, *changes), anchor,
                                  constants=sorted(RELEASED["constants"]), flags=("-shared",))
            done = subprocess.run(
                [program, "--no-architecture", "--no-added-syms",  # new structs: layout.py's
                 "--suppressions", layout.HERE / "appends.abignore",
                 layout.HERE / "anchor-1.0.abi", anchor],
                capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_released_headers_are_kept(self):
        self.assertEqual(self.verdict()[0], 0, self.verdict()[1])

    def test_appends_pass(self):
        code, text = self.verdict(RAISE_MINOR, APPEND)
        self.assertEqual(code, 0, text)

    def test_breaks_are_reported(self):
        for name, change in {
                "gr_scheduler": ("scheduler.h", STREAMS, STREAMS + "  /// X. [any]\n"
                                 "  void (*inserted)(void* self);\n"),
                "gr_device_info": ("backend.h", "  int32_t device_id;\n", ""),
                "anchor_GR_IO": ("status.h", "GR_IO = 7", "GR_IO = 17")}.items():
            code, text = self.verdict(change)
            self.assertEqual(code & 4, 4, text)
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
