# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments, also inside saves: every restart finds a good checkpoint, and the last
bytes are those of a run that nobody killed.

GRADRACK_KILLS=N kills so often (default 20). The seed is printed; GRADRACK_SEED=S takes it again.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

from program import PROGRAM, ProgramTest

KILLS = int(os.environ.get("GRADRACK_KILLS", "20"))
SEED = int(os.environ.get("GRADRACK_SEED", str(random.SystemRandom().randrange(10**6))))
STEPS = 300
CHANGES = {"run.max_steps": STEPS, "run.log_interval": 1, "run.eval_interval": 20,
           "run.eval_batches": 1, "checkpoint.interval": 2, "checkpoint.keep_last": 2,
           "run.resume": "auto", "backend.plugin": ["cpu", "reference"]}


class Kills(ProgramTest):
    def killed(self, path, wait_s):
        """Starts the run and kills it that long after its set-up; False: it had ended by itself."""
        process = subprocess.Popen([str(PROGRAM), "train", str(path)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in process.stderr:  # a kill before the first step shows little
            said.append(line)
            if line.startswith("memory ") or "taken before step 1" in line:
                break
        time.sleep(wait_s)
        process.kill()
        said += process.stderr.readlines()
        process.stderr.close()
        self.errors = "".join(said)
        return process.wait() == -9

    def test_no_kill_changes_a_byte(self):
        draw = random.Random(SEED)
        started = time.monotonic()
        self.passed("train", self.config({**CHANGES, "run.output": str(self.folder / "whole")}))
        usual_s = time.monotonic() - started
        expected = self.bits("whole", STEPS)
        path = self.config({**CHANGES, "run.output": str(self.folder / "out")})
        out = self.folder / "out"
        kills = inside = runs = 0
        while kills < KILLS:
            if self.killed(path, draw.uniform(0, usual_s / 4)):
                kills += 1
                left = list((out / "checkpoints").glob(".tmp-*")) if out.exists() else []
                inside += bool(left)
                refused = re.findall("passed over: .*", self.errors)
                self.assertEqual(refused, [], f"kill {kills}, seed {SEED}: {self.errors}")
                continue
            self.assertEqual(self.bits("out", STEPS), expected, f"kill {kills}, seed {SEED}")
            runs += 1
            shutil.rmtree(out)
        self.passed("train", path)
        self.assertEqual(self.bits("out", STEPS), expected, f"seed {SEED}: {self.errors}")
        print(f"{kills} kills, {inside} inside a save, {runs + 1} runs, seed {SEED}",
              file=sys.stderr)
        if KILLS >= 20:
            self.assertGreater(inside, 0, "no kill met a save: the test would show little")


if __name__ == "__main__":
    unittest.main()
