# SPDX-License-Identifier: Apache-2.0
"""The Nth write, fsync, rename, ... of a run fails: a clear error or a run that goes on, and the
last good checkpoint intact. GRADRACK_BUILD names the build.

GRADRACK_FULL=1 fails every N; else one in several, other ones for each kind of call. Needs the
library io_shim.c. What needs a small file system needs the right to mount one, and says so.
"""

import errno
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from program import BUILD, ProgramTest  # noqa: E402

SHIM = BUILD / "tests" / "libgradrack_io_shim.so"
FULL = os.environ.get("GRADRACK_FULL") == "1"
SHORT = {"run.max_steps": 4, "run.log_interval": 1, "run.eval_interval": 2, "run.eval_batches": 1,
         "checkpoint.interval": 1, "checkpoint.keep_last": 2}
# By call: the error, and how many of its calls a quick run passes over between two that fail.
CALLS = {"write": (errno.ENOSPC, 17), "fsync": (errno.EIO, 5), "rename": (errno.EIO, 5),
         "open": (errno.EMFILE, 9), "mkdir": (errno.EACCES, 1), "close": (errno.EIO, 9),
         "unlink": (errno.EPERM, 7)}


class Faults(ProgramTest):
    def setUp(self):
        super().setUp()
        self.base = self.folder / "base"
        changes = {**SHORT, "run.output": str(self.base)}
        self.passed("train", self.config({**changes, "run.max_steps": 4}, "whole.yaml"))
        self.expected = self.bits("base")
        shutil.rmtree(self.base)  # what every faulty run begins with are two steps there
        self.passed("train", self.config({**changes, "run.max_steps": 2}))

    def attempt(self, env=None, changes=None):
        """A run that goes on from step 2 in a fresh copy, with a fault."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(self.base, out)
        path = self.config({**SHORT, "run.output": str(out), "run.resume": "auto",
                            **(changes or {})})
        return path, self.gradrack("train", path, env=env)

    def check_end(self, path, done, what):
        self.assertIn(done.returncode, (0, 4), f"{what}: {done.stderr}")
        if done.returncode == 4:
            self.assertIn("error: ", done.stderr, what)
        verified = self.gradrack("checkpoint", "verify", self.folder / "out")
        whole = [line for line in verified.stdout.splitlines() if line.endswith("  whole")]
        self.assertTrue(whole, f"{what}: no good checkpoint: {verified.stdout}{done.stderr}")
        self.assertEqual(verified.returncode, 0, f"{what}: {verified.stdout}")
        self.passed("train", path)
        self.assertEqual(self.bits(), self.expected, what)

    def fault_env(self, call, number=None, stay=False, count=None):
        env = {"LD_PRELOAD": str(SHIM), "IO_FAULT_CALL": call,
               "IO_FAULT_PATH": str(self.folder / "out"),
               "IO_FAULT_ERRNO": str(CALLS[call][0])}
        if number is not None:
            env["IO_FAULT_N"] = str(number)
        if stay:
            env["IO_FAULT_STAY"] = "1"
        if count is not None:
            env["IO_FAULT_COUNT"] = str(count)
        return env

    def test_the_nth_call_fails(self):
        tried = 0
        for call, (_, stride) in CALLS.items():
            count = self.folder / "count"
            _, done = self.attempt(self.fault_env(call, count=count))
            self.assertEqual(done.returncode, 0, done.stderr)
            total = int(count.read_text())
            self.assertGreater(total, 0, f"no {call} was seen: the test would show nothing")
            for number in range(1, total + 1, 1 if FULL else stride):
                what = f"{call} {number} of {total}"
                with self.subTest(what):
                    path, done = self.attempt(self.fault_env(call, number))
                    self.check_end(path, done, what)
                    tried += 1
        print(f"{tried} faults", file=sys.stderr)

    def test_the_disk_stays_full(self):
        path, done = self.attempt(self.fault_env("write", 20, stay=True))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.check_end(path, done, "full disk")

    def test_a_policy_stops_the_run(self):
        _, done = self.attempt(self.fault_env("fsync", 12),
                               {"run.max_steps": 40, "checkpoint.on_error": "stop"})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("Input/output error", done.stderr)
        self.assertNotIn("40 steps", done.stderr)


class Places(ProgramTest):
    def small_disk(self, size):
        place = self.folder / "disk"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"a file system cannot be mounted here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", str(place)], check=True)
        return place

    def test_a_disk_of_a_megabyte_fills_up(self):
        place = self.small_disk("1m")
        changes = {**SHORT, "run.output": str(place / "out"), "run.max_steps": 6,
                   "checkpoint.keep_last": 0, "model.dim": 64, "run.log_interval": 1}
        done = self.gradrack("train", self.config(changes))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr,
                         r"No space left on device.*takes about \d+ bytes, \d+ are free")
        self.assertIn("training goes on", done.stderr)
        self.assertRegex(done.stderr, r"the one of step \d+ is intact")
        verified = self.passed("checkpoint", "verify", place / "out")
        self.assertIn("whole", verified.stdout)
        left = [p.name for p in (place / "out" / "checkpoints").iterdir()]
        self.assertFalse([name for name in left if name.startswith(".")], left)

    def test_a_folder_that_cannot_be_written(self):
        if os.geteuid() == 0:
            place = self.small_disk("1m")
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        else:
            place = self.folder / "closed"
            place.mkdir(mode=0o555)
        self.refused(4, ["output folder: cannot write"], "train",
                     self.config({"run.output": str(place)}))

    def test_a_clock_that_goes_backwards(self):
        shim = BUILD / "tests" / "libgradrack_clock_shim.so"
        path = self.config({**SHORT, "run.max_steps": 6})
        expected = self.passed("train", path)
        bits = self.bits()
        shutil.rmtree(self.folder / "out")
        done = self.gradrack("train", path, env={"LD_PRELOAD": str(shim)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bits(), bits, expected.stderr)
        for record in self.metrics():
            self.assertNotIn("flags", record, "a figure is not finite")


if __name__ == "__main__":
    unittest.main()
