#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program says of each bad plugin, compared with golden/NAME.txt.

Refused while loading: the fault part of `gradrack plugins list`. Found out in use: the error line
of `gradrack train`. Paths and what differs between machines are replaced. --update writes the
golden files anew; look at the difference before you commit it. GRADRACK_BUILD names the build.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import elf_files
import exits

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GRADRACK_BUILD", exits.ROOT / "build" / "dev")).resolve()
PLUGINS = BUILD / "tests" / "plugins"
PROGRAM = BUILD / "bin" / "gradrack"
UPDATE = False

# Folders of the build tree, each with a library that is refused.
LISTED = """
magic major too_new short_header null_entry no_header entry_refuses null_create unknown_kind
bad_name bad_default missing_symbol missing_library constructor_sigill constructor_aborts
entry_segv entry_hangs entry_exits entry_exits_0 entry_starts_thread probe_segv entry_throws
minor_outside no_factories null_factory listed_twice null_id unknown_status short_factory
""".split()
CRAFTED = {maker.__name__: maker for maker in elf_files.MAKERS}

# Libraries that load and are found out in use: changes to the run file.
USED = {
    "null_slot": {"lr_schedule": "{plugin: writer}"},
    "writes_past_end": {"lr_schedule": "{plugin: writer}"},
    "short_table": {"lr_schedule": "{plugin: writer}"},
    "throws": {"model": "{plugin: thrower}"},
    "overclaims": {"backend": "{plugin: [overclaims, reference]}"},
    "openmp_two": {"lr_schedule": "{plugin: openmp_two}", "backend": "{plugin: [cpu, reference]}"},
}


def normalised(text, folder):
    for path, name in ((folder, "{FOLDER}"), (PLUGINS, "{PLUGINS}"), (BUILD, "{BUILD}")):
        text = text.replace(str(path), name)
    text = re.sub(r"looked for in .*? and the loader's cache", "looked for in {SYSTEM}", text)
    text = re.sub(r"/[\w./-]*/(lib[cgm]\w*\.so)[.\d]*", r"{SYSTEM}/\1", text)
    text = re.sub(r"has \d+ bytes and needs \d+", "has {N} bytes and needs {N}", text)
    text = re.sub(r"x86-64|AArch64", "{MACHINE}", text)
    text = re.sub(r"(within) \d+ s\b", r"\1 {LIMIT}", text)
    return text


def fault_part(listing):
    """The blocks of `plugins list` that tell of refusals and clashes."""
    blocks = listing.split("\n\n")
    heads = ("libraries refused", "offered twice", "there twice")
    wanted = [block for block in blocks if block.startswith(heads)]
    return "\n\n".join(wanted).strip() + "\n"


class Golden(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory(prefix="gradrack-golden-")
        cls.folder = Path(cls.held.name)
        good = (PLUGINS / "good" / "good.so").read_bytes()
        for name, make in CRAFTED.items():
            (cls.folder / name).mkdir()
            (cls.folder / name / f"{name}.so").write_bytes(make(good))
        (cls.folder / "text.txt").write_text(exits.TEXT)
        # Sanitizers would turn some deaths into exits of their own.
        quiet = "handle_segv=0:handle_abort=0:handle_sigill=0:detect_leaks=0"
        cls.environment = {**os.environ, "NO_COLOR": "1", "GRADRACK_PROBE_SECONDS": "4",
                           "GRADRACK_CACHE_DIR": str(cls.folder / "cache"), "ASAN_OPTIONS": quiet}

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def place(self, name):
        return (self.folder if name in CRAFTED else PLUGINS) / name

    def gradrack(self, *words):
        return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True,
                              timeout=300, env=self.environment, cwd=self.folder)

    def compare(self, name, text):
        path = HERE / "golden" / f"{name}.txt"
        text = normalised(text, self.folder)
        if UPDATE:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        wanted = path.read_text() if path.exists() else ""
        self.assertEqual(text, wanted, f"{path.name}: right as it is? golden_test.py --update")

    def test_refused_while_loading(self):
        for name in [*LISTED, *CRAFTED, "twins"]:
            with self.subTest(name):
                done = self.gradrack("--plugin-path", self.place(name), "plugins", "list")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.compare(name, fault_part(done.stdout))

    def test_found_out_in_use(self):
        for name, changes in USED.items():
            with self.subTest(name):
                sections = exits.RUN.format(steps=2, folder=self.folder, manner="good",
                                            backend="reference").splitlines()
                kept = [line for line in sections
                        if line.split(":")[0] not in {*changes, "lr_schedule"}]
                config = self.folder / f"{name}.yaml"
                config.write_text("\n".join(kept + [f"{k}: {v}" for k, v in changes.items()]))
                done = self.gradrack("--plugin-path", self.place(name), "train", config)
                self.assertNotEqual(done.returncode, 0, done.stderr)
                self.assertGreater(done.returncode, 0, "the program itself died")
                errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.compare(name, errors[0] + "\n")

    def test_one_run_survives_all_of_them(self):
        words = []
        for name in [*LISTED, *CRAFTED, *USED, "twins", "good"]:
            words += ["--plugin-path", self.place(name)]
        done = self.gradrack(*words, "plugins", "list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in [*LISTED, *CRAFTED]:
            self.assertRegex(done.stdout, rf"  \S*/{name}/{name}\.so: ")
        for good in ("adamw", "warmup_cosine", "good"):
            self.assertRegex(done.stdout, rf"(?m)^\w+ +{good} ")

    def test_every_golden_file_belongs_to_a_case(self):
        names = sorted(path.stem for path in (HERE / "golden").glob("*.txt"))
        self.assertEqual(names, sorted([*LISTED, *CRAFTED, *USED, "twins"]))
        self.assertGreaterEqual(len(names), 20)


if __name__ == "__main__":
    if "--update" in sys.argv:
        sys.argv.remove("--update")
        UPDATE = True
    unittest.main()
