# SPDX-License-Identifier: Apache-2.0
"""Whole runs: what they write, that they repeat to the bit, that they stop cleanly.

The bits of weights are compared between runs of this build; figures are compared with PyTorch in
tests/golden.
"""

import hashlib
import json
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest


class Runs(ProgramTest):
    def weights(self, folder="out"):
        return hashlib.sha256((self.folder / folder / "weights.safetensors").read_bytes()).digest()

    def test_a_run_learns_and_repeats_to_the_bit(self):
        for backend in ("reference", "cpu"):
            changes = {"run.max_steps": 30, "run.log_interval": 1, "backend.plugin": backend}
            hashes = []
            for _ in range(2):
                self.passed("train", self.config(changes))
                losses = self.losses()
                self.assertEqual(len(losses), 30)
                self.assertLess(losses[-1], losses[0] - 0.3, backend)
                hashes.append(self.weights())
            self.assertEqual(hashes[0], hashes[1], backend)

    def test_SCH01_rate_logged_is_the_rate_of_that_update(self):
        changes = {"lr_schedule": {"plugin": "warmup_cosine", "warmup_steps": 10,
                                   "min_ratio": 0.1},
                   "run.max_steps": 12, "run.log_interval": 1}
        self.passed("train", self.config(changes))
        rates = [r["lr"] for r in self.metrics() if "lr" in r]
        self.assertEqual(len(rates), 12)
        for k in range(10):
            self.assertAlmostEqual(rates[k], 0.01 * (k + 1) / 10, places=12)

    def test_accumulated_run_learns(self):
        self.passed("train", self.config({"run.accumulate_steps": 3, "run.max_steps": 20,
                                          "run.log_interval": 1}))
        losses = self.losses()
        self.assertLess(losses[-1], losses[0] - 0.2)

    def test_memory_announced_is_memory_used(self):
        done = self.passed("train", self.config({"run.accumulate_steps": 2}), "--log-format",
                           "json")
        events = [json.loads(line) for line in done.stderr.splitlines()]  # nothing but JSON
        sizes = {e["event"]: e["bytes"] for e in events
                 if e["event"] in ("memory", "end")}
        self.assertEqual(set(sizes), {"memory", "end"}, done.stderr)
        self.assertEqual(sizes["memory"], sizes["end"])

    def test_eval_of_saved_weights_equals_the_last_evaluation(self):
        path = self.config()
        self.passed("train", path)
        last = [r["eval/loss"] for r in self.metrics() if "eval/loss" in r][-1]
        done = self.passed("eval", path)
        self.assertIn(f"loss {last:.6f}", done.stdout)

    def test_sample_depends_on_seed_and_nothing_else(self):
        path = self.config()
        self.passed("train", path)
        words = ["sample", path, "--prompt", "the ", "--tokens", "40", "--top-k", "5"]
        first = self.passed(*words, "--seed", "1").stdout
        self.assertEqual(first, self.passed(*words, "--seed", "1").stdout)
        self.assertNotEqual(first, self.passed(*words, "--seed", "2").stdout)
        self.assertEqual(len(first), len("the ") + 40 + 1)
        greedy = ["sample", path, "--prompt", "the ", "--temperature", "0", "--tokens", "5"]
        self.assertEqual(self.passed(*greedy, "--seed", "1").stdout,
                         self.passed(*greedy, "--seed", "2").stdout)

    def test_checkpoints_every_n_steps(self):
        self.passed("train", self.config({"checkpoint.interval": 2, "run.max_steps": 5}))
        names = sorted(p.name for p in (self.folder / "out" / "checkpoints").iterdir())
        self.assertEqual(names, ["step-000002", "step-000004", "step-000005"])

    def test_stop_signal_saves_weights_and_says_so_in_the_exit_code(self):
        path = self.config({"run.max_steps": 10 ** 6})
        run = subprocess.Popen([str(PROGRAM), "train", str(path)], stderr=subprocess.PIPE,
                               text=True, cwd=self.folder, env={**os.environ, "NO_COLOR": "1"})
        metrics = self.folder / "out" / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.stat().st_size > 0):
            self.assertLess(time.monotonic(), deadline, "the run never wrote a metric")
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 143, errors)
        self.assertTrue((self.folder / "out" / "weights.safetensors").exists())

    def test_explain_names_placement_and_memory(self):
        text = self.passed("explain", self.config({"backend.plugin": ["cpu", "reference"]})).stdout
        for part in ("gpt", "adamw", "decay", "no_decay", "backend cpu:", "memory", "parameters"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
