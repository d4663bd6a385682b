# SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes, as an operator meets it: trace.json, records, events, explain."""

import json
import unittest

from program import ProgramTest


class Trace(ProgramTest):
    def traced(self, changes=None):
        return self.config({"run.max_steps": 5, "metrics.trace_steps": 2, **(changes or {})})

    def test_steps_asked_for_are_in_the_trace_and_the_metrics(self):
        done = self.passed("train", self.traced())
        self.assertIn("trace of 2 steps in ", done.stderr)
        self.assertIn("step 3: ", done.stderr)
        events = json.loads((self.folder / "out" / "trace.json").read_text())["traceEvents"]
        rows = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        self.assertEqual(rows, ["host phases", "reference"])
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual({e["args"]["step"] for e in spans}, {2, 3})
        kinds = {e["cat"] for e in spans}
        self.assertLessEqual({"host", "forward", "input_gradient", "weight_gradient", "update"},
                             kinds)
        phases = {e["name"] for e in spans if e["cat"] == "host"}
        self.assertLessEqual({"data", "scalars", "run", "read", "log"}, phases)
        records = [r for r in self.metrics() if "time/step_ms" in r]
        self.assertEqual([r["step"] for r in records], [2, 3])
        for record in records:
            parts = sum(value for key, value in record.items()
                        if key.startswith("time/") and "_ms/" not in key
                        and key != "time/step_ms")
            self.assertAlmostEqual(parts / record["time/step_ms"], 1, delta=0.01)

    def test_nothing_is_traced_unasked(self):
        done = self.passed("train", self.config())
        self.assertNotIn("trace", done.stderr)
        self.assertFalse((self.folder / "out" / "trace.json").exists())
        self.assertFalse([r for r in self.metrics() if "time/step_ms" in r])

    def test_run_that_ends_before_the_last_traced_step_writes_what_it_has(self):
        done = self.passed("train", self.traced({"metrics.trace_steps": 100}))
        self.assertIn("trace of 4 steps in ", done.stderr)

    def test_first_traced_step_behind_the_last_is_refused(self):
        self.refused(2, ["metrics.trace_from_step is 6", "run.max_steps 5"], "train",
                     self.traced({"metrics.trace_from_step": 6}))

    def test_trace_that_cannot_be_written_does_not_stop_the_run(self):
        (self.folder / "out" / "trace.json" / "in the way").mkdir(parents=True)
        done = self.passed("train", self.traced())
        self.assertIn("training goes on without a trace", done.stderr)
        self.assertTrue((self.folder / "out" / "weights.safetensors").exists())

    def test_explain_draws_the_predicted_timeline(self):
        out = self.passed("explain", self.config({"run.accumulate_steps": 2})).stdout
        self.assertEqual(out.count("\npredicted: "), out.count("\nschedule: "))
        self.assertRegex(out, r"predicted: \d+\.\d{3} ms; in program order on one stream \d")
        self.assertRegex(out, r"\nreference    [FXWURC.]{84}\n")
        self.assertRegex(out, r"\nidle by stream: reference \d+\.\d{3} ms\n")
        self.assertIn("F forward, X dX, W dW", out)


if __name__ == "__main__":
    unittest.main()
