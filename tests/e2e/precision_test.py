# SPDX-License-Identifier: Apache-2.0
"""Precision `bf16` through the program: it trains each kind of model as fp32 does, says what runs.

Losses of the two precisions are compared at the first step and over all; the curve of a real run is
what tests/bench/precision_side_by_side measures.
"""

import copy
import json
import statistics
import struct
import unittest

from program import ProgramTest

# Steps small enough for two runs to stay side by side.
GPT = {"optimizer.lr": 0.002, "run.max_steps": 30, "run.log_interval": 1, "run.eval_interval": 15,
       "model": {"plugin": "gpt", "layers": 2, "heads": 2, "dim": 32, "ffn": "swiglu",
                 "norm": "rms", "positions": "rope"},
       "backend.plugin": ["cpu", "reference"]}
POSE = {"optimizer.lr": 0.002, "run.max_steps": 12, "run.batch_size": 4, "run.log_interval": 1,
        "model": {"plugin": "pose", "channels": [4, 4, 6, 6, 8], "stems": [5, 4, 6]},
        "data": {"plugin": "figures", "size": 64, "validation_items": 4},
        "backend.plugin": ["cpu", "reference"]}


class Precision(ProgramTest):
    def train(self, changes, precision):
        folder = f"out-{precision}"
        path = self.config({**copy.deepcopy(changes), "precision.plugin": precision,
                            "run.output": str(self.folder / folder)}, f"{precision}.yaml")
        self.passed("train", path)
        return self.losses(folder)

    def assert_alike(self, changes, within):
        """Equal parameters give nearly equal losses (step 1); later ones drift apart by chance."""
        wide = self.train(changes, "fp32")
        narrow = self.train(changes, "bf16")
        self.assertEqual(len(wide), len(narrow))
        self.assertLess(abs(wide[0] - narrow[0]) / wide[0], 0.002, (wide[0], narrow[0]))
        means = statistics.mean(wide), statistics.mean(narrow)
        self.assertLess(abs(means[0] - means[1]) / means[0], within, means)
        self.assertNotEqual(wide, narrow, "bf16 changes nothing")
        self.assertLess(narrow[-1], narrow[0])

    def test_gpt_trains_as_in_fp32(self):
        self.assert_alike(GPT, 0.002)

    def test_gpt_trains_with_accumulation(self):
        self.assert_alike({**GPT, "run.accumulate_steps": 2}, 0.002)

    def test_gpt_trains_on_the_reference(self):
        self.assert_alike({**GPT, "run.max_steps": 5, "run.eval_interval": 0,
                           "backend.plugin": "reference"}, 0.002)

    def test_pose_trains_as_in_fp32(self):
        self.assert_alike(POSE, 0.02)

    def test_parameters_are_kept_in_float32(self):
        self.train({**GPT, "run.max_steps": 1}, "bf16")
        data = (self.folder / "out-bf16" / "weights.safetensors").read_bytes()
        header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        dtypes = {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}
        self.assertEqual(dtypes, {"F32"})

    def test_a_run_has_the_same_bits_each_time(self):
        self.assertEqual(self.train(GPT, "bf16"), self.train(GPT, "bf16"))

    def test_nothing_of_a_step_is_left_to_the_reference(self):
        path = self.config({**copy.deepcopy(GPT), "precision.plugin": "bf16"})
        said = self.passed("explain", path).stdout
        self.assertRegex(said, r"bfloat16 products (with [a-z]|widened)")
        self.assertIn("backend reference: 0 native, 0 decomposed", said)


if __name__ == "__main__":
    unittest.main()
