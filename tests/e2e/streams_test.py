# SPDX-License-Identifier: Apache-2.0
"""Streams of the cpu backend through the program, with the model that they are for."""

import os
import struct
import unittest

from program import ROOT, ProgramTest

SAMPLES, FEATURES, CLASSES = 160, 12, 4
MANY = 2 * os.cpu_count()  # threads: more than cores


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class Streams(ProgramTest):
    def setUp(self):
        super().setUp()
        labels = [k * 7 % CLASSES for k in range(SAMPLES)]
        features = [float(k % 5 - 2) + 2 * (j == labels[k])
                    for k in range(SAMPLES) for j in range(FEATURES)]
        (self.folder / "x.npy").write_bytes(
            npy("<f4", f"({SAMPLES}, {FEATURES})", struct.pack(f"<{len(features)}f", *features)))
        (self.folder / "y.npy").write_bytes(
            npy("<i8", f"({SAMPLES},)", struct.pack(f"<{SAMPLES}q", *labels)))

    def towers(self, changes=None, **model):
        return self.config({
            "run.batch_size": 16, "run.max_steps": 40, "run.log_interval": 1,
            "run.eval_batches": None, "run.max_grad_norm": None,
            "model": {"plugin": "towers", "towers": 3, "depth": 2, "width": 16, **model},
            "data": {"plugin": "arrays", "features": str(self.folder / "x.npy"),
                     "labels": str(self.folder / "y.npy")},
            "backend": {"plugin": ["cpu", "reference"], "threads": 2, "threads_per_stream": 1},
            **(changes or {})})

    def test_the_loss_falls(self):
        self.passed("train", self.towers())
        losses = self.losses()
        self.assertLess(losses[-1], 0.3 * losses[0], losses)

    def test_independent_heads_each_learn(self):
        self.passed("train", self.towers(heads=True))
        records = [r for r in self.metrics() if "train/loss" in r]
        for k in range(3):
            key = f"train/objective.tower{k}"
            self.assertLess(records[-1][key], 0.5 * records[0][key], records[-1])

    def test_the_number_of_streams_changes_no_bit(self):
        wanted = None
        for threads in (1, 2, 4):
            self.passed("train", self.towers({"backend.threads": threads}))
            bits = (self.folder / "out" / "weights.safetensors").read_bytes(), self.losses()
            wanted = wanted or bits
            self.assertEqual(bits, wanted, f"{threads} streams")

    def test_the_log_says_how_threads_are_divided(self):
        text = self.passed("explain", self.towers({"backend.threads": 6,
                                                   "backend.threads_per_stream": 2})).stdout
        self.assertIn("3 streams of 2 threads", text)

    def test_more_threads_a_stream_than_threads_is_refused(self):
        self.refused(2, ["threads_per_stream", "cannot have 3 threads", "has 2"], "train",
                     self.towers({"backend.threads_per_stream": 3}))

    def test_pinning_that_cannot_be_is_said_when_it_was_asked_for(self):
        asked = self.passed("train", self.towers({"backend.threads": MANY,
                                                  "backend.threads_per_stream": MANY,
                                                  "backend.pin": True, "run.max_steps": 1}))
        self.assertIn(f"threads are not pinned to cores: {MANY} threads", asked.stderr)
        silent = self.passed("train", self.towers({"run.max_steps": 1}))
        self.assertNotIn("not pinned", silent.stderr)

    def test_the_run_file_of_the_project_is_valid(self):
        self.passed("validate", ROOT / "configs" / "towers.yaml")


if __name__ == "__main__":
    unittest.main()
