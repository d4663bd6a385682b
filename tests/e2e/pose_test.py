# SPDX-License-Identifier: Apache-2.0
"""Models with several objectives and pictures of their answers, through the program.

A tiny `pose` on `figures`; configs/pose.yaml itself is too long for a test, so its plugins and keys
are checked by `validate` and a few steps of it are run.
"""

import copy
import re
import struct
import unittest

from program import ROOT, ProgramTest

POSE = {
    "run.max_steps": 6, "run.batch_size": 4, "run.eval_interval": 3, "run.log_interval": 1,
    "model": {"plugin": "pose", "channels": [4, 4, 6, 6, 8], "stems": [5, 4, 6]},
    "data": {"plugin": "figures", "size": 64, "points_every": 2, "validation_items": 6},
    "backend.plugin": ["cpu", "reference"],
}


class Pose(ProgramTest):
    def pictures(self, folder="out"):
        return sorted(path.name for path in (self.folder / folder / "previews").iterdir())

    def pose(self, changes=None):
        # A copy: changes by dotted key are made in place.
        return self.config({**copy.deepcopy(POSE), **(changes or {})})

    def test_previews_are_pictures_of_the_first_validation_rows(self):
        self.passed("train", self.pose({"metrics.previews": 2}))
        self.assertEqual(self.pictures(), [f"step-{step:06}-{row}.png"
                                           for step in (3, 6) for row in (0, 1)])
        first = (self.folder / "out" / "previews" / "step-000003-0.png").read_bytes()
        self.assertEqual(first[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", first[16:24]), (644, 320))
        self.assertNotEqual(first, (self.folder / "out/previews/step-000003-1.png").read_bytes())

    def test_previews_change_nothing_else(self):
        self.passed("train", self.pose({"metrics.previews": 4}))
        with_previews = (self.folder / "out" / "weights.safetensors").read_bytes()
        self.passed("train", self.pose({"run.output": str(self.folder / "plain")}))
        self.assertEqual(with_previews, (self.folder / "plain/weights.safetensors").read_bytes())
        self.assertFalse((self.folder / "plain" / "previews").exists())

    def test_no_more_pictures_than_rows(self):
        self.passed("train", self.pose({"metrics.previews": 9, "run.eval_interval": 0}))
        self.assertEqual(self.pictures(), [f"step-000006-{row}.png" for row in range(4)])

    def test_data_that_draws_nothing_is_refused_before_training(self):
        path = self.config({"metrics.previews": 1})
        self.refused(3, ["metrics.previews is 1", "'text' draws none", "set it to 0"],
                     "train", path)
        self.assertFalse((self.folder / "out").exists())

    def test_the_loss_of_a_few_steps_falls(self):
        self.passed("train", self.pose({"run.max_steps": 40, "run.eval_interval": 0,
                                        "data.points_every": 1, "run.log_interval": 1}))
        losses = self.losses()
        self.assertEqual(len(losses), 40)
        self.assertLess(sum(losses[-5:]), 0.8 * sum(losses[:5]), losses)

    def test_the_run_file_of_the_project_works(self):
        path = ROOT / "configs" / "pose.yaml"
        self.passed("validate", path)
        out = self.folder / "pose"
        self.passed("train", path, "--set", f"run.output={out}", "--set", "run.max_steps=2",
                    "--set", "run.eval_batches=1")
        self.assertEqual(self.pictures("pose"), [f"step-000002-{row}.png" for row in range(4)])
        self.assertTrue(re.search(r"validation loss of [\d.]+ after", path.read_text()))


if __name__ == "__main__":
    unittest.main()
