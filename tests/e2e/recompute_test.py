# SPDX-License-Identifier: Apache-2.0
"""Recomputation and freezing through the program: messages, limits, and every combination with
accumulation, precision and clipping over 50 steps of configs/shakespeare.yaml made small."""

import itertools
import re
import unittest

from program import ROOT, ProgramTest

SMALL = {"model.layers": 2, "model.heads": 2, "model.dim": 32, "data.block": 16,
         "run.max_steps": 50, "run.log_interval": 1, "run.eval_interval": 0,
         "run.eval_batches": 1, "lr_schedule.warmup_steps": 10, "optimizer.lr": 3e-3}
ROWS = 4  # of a step, in one microbatch or two

# Losses of a step against those of the plain path on the same batches (two microbatches draw other
# rows than one): bf16 rounds products, and fifty updates carry it on. fp32 has the same bits.
TOLERANCE = {"fp32": 1e-9, "bf16": 3e-2}


class Combinations(ProgramTest):
    def train(self, name, accumulate, precision, recompute, clip, frozen):
        sets = {**SMALL, "data.file": self.folder / "text.txt",
                "run.output": self.folder / name, "run.batch_size": ROWS // accumulate,
                "run.accumulate_steps": accumulate, "precision.plugin": precision,
                "memory.recompute": "stages" if recompute else "off",
                "run.max_grad_norm": 0.5 if clip else ".inf"}
        if frozen:
            sets["run.freeze"] = "[{stage: embed}, {stage: blocks.0}]"
        words = [w for key, value in sets.items() for w in ("--set", f"{key}={value}")]
        self.passed("train", ROOT / "configs" / "shakespeare.yaml", *words)
        return self.losses(name)

    def test_every_combination_gives_the_losses_of_the_plain_path(self):
        for clip, frozen, accumulate in itertools.product((False, True), (False, True), (1, 2)):
            plain = self.train(f"{clip}{frozen}{accumulate}", accumulate, "fp32", False, clip,
                               frozen)
            self.assertEqual(len(plain), 50)
            self.assertLess(plain[-1], plain[0] - 0.3)
            for precision in ("fp32", "bf16"):
                both = []
                for recompute in (False, True):
                    what = (accumulate, precision, recompute, clip, frozen)
                    with self.subTest(what):
                        losses = self.train("-".join(map(str, what)), *what)
                        both.append(losses)
                        worst = max(abs(a / b - 1) for a, b in zip(losses, plain, strict=True))
                        self.assertLess(worst, TOLERANCE[precision])
                self.assertEqual(both[0], both[1], "recomputing changed a bit")


class Recompute(ProgramTest):
    WIDE = {"model.layers": 4, "data.block": 32, "run.batch_size": 8, "run.max_steps": 2,
            "backend.plugin": ["cpu", "reference"]}

    def test_a_limit_recomputes_and_says_what(self):
        said = self.passed("explain", self.config(self.WIDE)).stdout
        self.assertNotIn("recompute:", said)
        done = self.passed("train", self.config(self.WIDE))
        full = int(re.search(r"in all \((\d+) bytes\)", done.stderr).group(1))
        path = self.config({**self.WIDE, "memory.limit": str(full * 85 // 100)})
        said = self.passed("explain", path).stdout
        self.assertRegex(said, r"recompute: \d+ nodes run again \(.*blocks.0 \d+.*\): [\d.]+ % "
                               r"more FLOPs \([\d.e+]+\), [\d.]+ .iB instead of [\d.]+ .iB")
        done = self.passed("train", path)
        self.assertIn("to keep memory.limit", done.stderr)

    def test_the_least_limit_that_is_named_does(self):
        done = self.gradrack("train", self.config({**self.WIDE, "memory.limit": "1000"}))
        self.assertEqual(done.returncode, 2, done.stderr)
        least = re.search(r"this run takes .*\((\d+) bytes\)", done.stderr).group(1)
        self.passed("train", self.config({**self.WIDE, "memory.limit": least}))
        self.refused(2, ["the least limit that would do"], "train",
                     self.config({**self.WIDE, "memory.limit": str(int(least) - 1)}))

    def test_the_key_of_a_plan_has_the_policy(self):
        for policy in ("off", "stages", "auto"):
            said = self.passed("explain", "--plans",
                               self.config({"memory.recompute": policy})).stdout
            self.assertRegex(said, rf"recompute +{policy}\n")

    def test_an_unknown_policy_is_refused(self):
        self.refused(2, ["memory.recompute", "'some'", "off", "stages", "auto"], "validate",
                     self.config({"memory.recompute": "some"}))

    def test_a_freeze_rule_that_fits_nothing_is_refused(self):
        self.refused(2, ["run.freeze.0: no parameter of the model fits stage 'block.0' (did you "
                         "mean 'blocks.0'?)"], "train",
                     self.config({"run.freeze": [{"stage": "block.0"}]}))


if __name__ == "__main__":
    unittest.main()
