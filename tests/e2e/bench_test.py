# SPDX-License-Identifier: Apache-2.0
"""`gradrack bench` as an operator meets it: text, JSON, and nothing left behind."""

import json
import unittest

from program import ProgramTest


class Bench(ProgramTest):
    def test_says_what_a_step_takes_and_leaves_the_runs_folder_alone(self):
        out = self.passed("bench", self.config(), "--steps", "3", "--timed", "2").stdout
        self.assertRegex(out, r"step +\d+\.\d{3} ms: median of 3 after 3; half of them \d")
        self.assertRegex(out, r"machine +one stream: \d+\.\d GF/s in float32 products, \d")
        self.assertIn("weight_gradient", out)
        self.assertFalse((self.folder / "out").exists())

    def test_json_has_the_parts(self):
        out = self.passed("bench", self.config(), "--steps", "2", "--warmup", "0", "--timed", "1",
                          "--json").stdout
        found = json.loads(out)
        self.assertEqual((found["steps"], found["warmup"], found["timed_steps"]), (2, 0, 1))
        self.assertGreater(found["peaks"]["gflops"], 0)
        self.assertGreater(found["step_ms"]["median"], 0)
        self.assertAlmostEqual(sum(found["kinds_ms"].values()),
                               sum(kernel["ms"] for kernel in found["kernels"]), places=6)

    def test_no_steps_are_refused(self):
        self.refused(2, ["--steps"], "bench", self.config(), "--steps", "0")


if __name__ == "__main__":
    unittest.main()
