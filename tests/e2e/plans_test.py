# SPDX-License-Identifier: Apache-2.0
"""Plans as an operator meets them: made before step 1, explained, summed up at the end.

Objectives and freezing are those of the test plugin `stems` (tests/support/stems_plugin.cpp).
"""

import hashlib
import json
import unittest

from program import BUILD, ProgramTest


class Plans(ProgramTest):
    def stems(self, changes=None):
        path = self.config({"model": None, "data": None})
        config = json.loads(path.read_text())
        config.update({"model": {"plugin": "stems"}, "data": {"plugin": "stems", "point_every": 2},
                       "plugins": {"path": [str(BUILD / "tests" / "emulated")]}})
        config["run"].update({"log_interval": 1, "max_steps": 8, **(changes or {})})
        return self.write(json.dumps(config), "stems.yaml")

    def weights(self):
        return hashlib.sha256((self.folder / "out" / "weights.safetensors").read_bytes()).digest()

    def plans_event(self, done):
        events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        return next(e for e in events if e["event"] == "plans")

    def test_strict_run_builds_nothing_after_the_warm_up(self):
        done = self.passed("train", self.stems(), "--strict-plans", "--log-format", "json")
        event = self.plans_event(done)
        # A step with points, one without, and the evaluation of two rows.
        self.assertEqual(event["builds"], "3", event)
        self.assertEqual(event["evictions"], "0")
        self.assertGreater(int(event["build_ns"]), 0)

    def test_fresh_plans_give_the_same_bytes(self):
        hashes = []
        for words in ([], ["--fresh-plans"]):
            self.passed("train", self.stems({"freeze": [{"stage": "heads.kind", "from_step": 5}]}),
                        *words)
            hashes.append(self.weights())
        self.assertEqual(hashes[0], hashes[1])

    def test_metrics_have_each_objective_where_it_had_a_part(self):
        self.passed("train", self.stems({"objectives": {"box": {"weight": 2}}}))
        records = [r for r in self.metrics() if "train/loss" in r]
        self.assertEqual(len(records), 8)
        for record in records:
            parts = {name: record.get("train/objective." + name) for name in
                     ("box", "kind", "point")}
            self.assertEqual(parts["point"] is None, record["step"] % 2 == 0)
            total = 2 * parts["box"] + parts["kind"] + (parts["point"] or 0)
            self.assertAlmostEqual(record["train/loss"], total, places=12)
        evaluation = [r for r in self.metrics() if "eval/loss" in r][-1]
        self.assertIn("eval/objective.point", evaluation)

    def test_explain_names_what_decides_each_plan(self):
        done = self.passed("explain", self.stems({"freeze": [{"stage": "heads.box",
                                                              "from_step": 3}]}), "--plans")
        for part in ("step: box, kind, from step 1", "step: box, kind, point, from step 3",
                     "training   false", "trainable  all but heads.box.weight, heads.box.bias",
                     "5 builds"):
            self.assertIn(part, done.stdout)

    def test_unknown_names_are_refused_with_the_nearest(self):
        self.refused(2, ["stems.yaml", "run.objectives.pint", "did you mean 'point'?"], "train",
                     self.stems({"objectives": {"pint": {"weight": 2}}}))
        self.refused(2, ["run.freeze.0", "heads.bok", "did you mean 'heads.box'?"], "train",
                     self.stems({"freeze": [{"stage": "heads.bok"}]}))

    def test_turns_that_leave_a_step_without_objective_are_refused(self):
        never = {name: {"every": 2} for name in ("box", "kind", "point")}
        self.refused(2, ["step 1", "no active objective"], "train",
                     self.stems({"objectives": never}))


if __name__ == "__main__":
    unittest.main()
