# SPDX-License-Identifier: Apache-2.0
"""The Nth allocation of a run fails: "out of memory" and its exit code, or a run that goes on; the
last good checkpoint intact, and resumed to the bytes of a run that nothing happened to.

An allocation fails at each place that allocates (its three innermost callers): all of them with
GRADRACK_FULL=1, else GRADRACK_PLACES of them (default 40), spread over the run. Needs the library
alloc_shim.cpp.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from program import BUILD, PROGRAM, ProgramTest  # noqa: E402

SHIM = BUILD / "tests" / "libgradrack_alloc_shim.so"
FULL = os.environ.get("GRADRACK_FULL") == "1"
WANTED = int(os.environ.get("GRADRACK_PLACES", "40"))
SHORT = {"run.max_steps": 4, "run.log_interval": 1, "run.eval_interval": 2, "run.eval_batches": 1,
         "checkpoint.interval": 1, "checkpoint.keep_last": 2, "run.resume": "auto",
         "backend.plugin": ["cpu", "reference"]}


class Allocations(ProgramTest):
    def setUp(self):
        super().setUp()
        self.base = self.folder / "base"
        changes = {**SHORT, "run.output": str(self.base)}
        self.passed("train", self.config(changes, "whole.yaml"))
        self.expected = self.bits("base")
        shutil.rmtree(self.base)  # what every run begins with are two steps there
        self.passed("train", self.config({**changes, "run.max_steps": 2}))

    def train(self, name, **fault):
        """A run that goes on from step 2 in a folder of its own."""
        out = self.folder / name
        if not out.exists():
            shutil.copytree(self.base, out)
        path = self.config({**SHORT, "run.output": str(out)}, f"{name}.yaml")
        env = {"LD_PRELOAD": str(SHIM), **fault} if fault else None
        return self.gradrack("train", path, env=env)

    def places(self):
        """The numbers of the allocations that were the first from their place."""
        listed = self.folder / "places"
        done = self.train("counted", ALLOC_FAULT_PLACES=str(listed))
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = [int(line) for line in listed.read_text().split()]
        self.assertGreater(len(numbers), 1000, "few allocations were seen: it would show nothing")
        return numbers if FULL else numbers[::max(1, len(numbers) // WANTED)]

    def fault(self, number):
        """What is wrong after allocation `number` failed, or ""."""
        name = f"out{number}"
        done = self.train(name, ALLOC_FAULT_N=str(number))
        said = re.findall(r"^error: .*memory", done.stderr, re.M)
        if done.returncode != 0 and (done.returncode != 1 or not said):
            return f"exit {done.returncode}: {done.stderr[-600:]}"
        if done.returncode != 0:
            done = self.train(name)
            if done.returncode != 0 or "passed over" in done.stderr:
                return f"not resumed well: exit {done.returncode}: {done.stderr[-600:]}"
        if self.bits(name) != self.expected:
            return f"other bytes: {done.stderr[-600:]}"
        shutil.rmtree(self.folder / name)
        return ""

    def test_the_nth_allocation_fails(self):
        numbers = self.places()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, wrong in zip(numbers, pool.map(self.fault, numbers)):
                with self.subTest(allocation=number):
                    self.assertEqual(wrong, "")
        print(f"{len(numbers)} allocations", file=sys.stderr)

    def test_the_shim_makes_a_run_fail(self):
        done = subprocess.run([str(PROGRAM), "ops"], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": str(SHIM), "ALLOC_FAULT_N": "1"})
        self.assertEqual((done.returncode, done.stderr), (1, "error: out of memory\n"))


if __name__ == "__main__":
    unittest.main()
