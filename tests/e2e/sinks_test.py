# SPDX-License-Identifier: Apache-2.0
"""Metrics sinks as an operator meets them: event files, the Prometheus file, sinks that fail."""

import importlib.util
import struct
import unittest

import event_files
from program import ProgramTest


def single(value):
    """Rounded to float32, as event files keep figures."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Sinks(ProgramTest):
    def trained(self, sinks, changes=None):
        return self.passed("train", self.config({"run.log_interval": 1, "metrics.sinks": sinks,
                                                 **(changes or {})}))

    def scalars(self, folder="out/tensorboard"):
        found = {}
        for event in event_files.read_folder(self.folder / folder):
            for tag, value in event.scalars.items():
                found.setdefault(tag, []).append((event.step, value))
        return found

    def recorded(self):
        found = {}
        for record in self.metrics():
            if "event" in record:
                continue
            for name, value in record.items():
                if name not in ("step", "tokens", "flags"):
                    found.setdefault(name, []).append((record["step"], single(value)))
        return found

    def test_event_files_say_what_the_metrics_file_says(self):
        self.trained("tensorboard")
        scalars = self.scalars()
        self.assertEqual(scalars, self.recorded())
        self.assertLessEqual({"train/loss", "eval/loss", "lr", "grad_norm", "tokens_per_second",
                              "memory/peak_bytes"}, set(scalars))
        self.assertEqual([step for step, _ in scalars["train/loss"]], [1, 2, 3])

    def test_event_files_begin_with_their_version_and_hold_events_as_texts(self):
        self.trained(["tensorboard"])
        events = event_files.read_folder(self.folder / "out" / "tensorboard")
        self.assertEqual(events[0].version, "brain.Event:2")
        texts = [text for event in events for text in event.texts.items()]
        self.assertTrue(any(tag == "events/evaluation" and "validation loss" in text
                            for tag, text in texts), texts)

    def test_a_second_run_into_the_folder_is_not_joined_to_the_first(self):
        self.trained("tensorboard", {"run.max_steps": 5})
        self.trained("tensorboard", {"run.max_steps": 3, "run.seed": 9})
        files = sorted((self.folder / "out" / "tensorboard").iterdir())
        self.assertEqual(len(files), 2)
        self.assertEqual(self.scalars(), self.recorded())

    @unittest.skipUnless(importlib.util.find_spec("tensorboard"),
                         "the tensorboard package is not installed: its own reader was NOT asked")
    def test_tensorboards_own_reader_sees_the_same(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        self.trained("tensorboard", {"run.max_steps": 5})
        self.trained("tensorboard", {"run.max_steps": 3, "run.seed": 9})
        reader = EventAccumulator(str(self.folder / "out" / "tensorboard"))
        reader.Reload()
        found = {tag: [(e.step, e.value) for e in reader.Scalars(tag)]
                 for tag in reader.Tags()["scalars"]}
        self.assertEqual(found, self.recorded())
        self.assertIn("events/evaluation", reader.Tags()["tensors"])

    def test_prometheus_file_has_the_last_values_once(self):
        self.trained({"plugin": "prometheus", "file": "gradrack.prom"},
                     {"run.name": 'a "b"'})
        text = (self.folder / "out" / "gradrack.prom").read_text()
        values = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, value = line.rsplit(" ", 1)
            self.assertTrue(name.endswith('{run="a \\"b\\""}'), line)
            self.assertNotIn(name, values)
            values[name.split("{")[0]] = float(value)
        self.assertEqual(values["gradrack_train_loss"], self.losses()[-1])
        self.assertEqual(values["gradrack_step"], 3)
        self.assertEqual(values["gradrack_running"], 0)
        self.assertFalse((self.folder / "out" / "gradrack.prom.tmp").exists())

    def test_both_at_once(self):
        self.trained(["tensorboard", "prometheus"])
        self.assertEqual(self.scalars(), self.recorded())
        self.assertTrue((self.folder / "out" / "metrics.prom").exists())

    def test_a_sink_that_cannot_write_is_said_once_and_the_run_goes_on(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "tensorboard").write_text("in the way")
        done = self.trained(["tensorboard", "prometheus"])
        said = [line for line in done.stderr.splitlines() if "metrics sink" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn("training goes on, without it", said[0])
        self.assertIn("cannot make folder", said[0])
        self.assertEqual(len([r for r in self.metrics() if r.get("event") == "metrics_error"]), 1)
        self.assertEqual(len(self.losses()), 3)
        self.assertTrue((self.folder / "out" / "metrics.prom").exists())

    def test_results_do_not_depend_on_sinks(self):
        self.trained([])
        losses = self.losses()
        weights = (self.folder / "out" / "weights.safetensors").read_bytes()
        self.trained(["tensorboard", "prometheus"])
        self.assertEqual(self.losses(), losses)
        self.assertEqual((self.folder / "out" / "weights.safetensors").read_bytes(), weights)

    def test_names_and_options_are_checked_before_anything_runs(self):
        self.refused(3, ["'tensorbord' not found", "did you mean 'tensorboard'"], "train",
                     self.config({"metrics.sinks": "tensorbord"}))
        self.refused(2, ["metrics.sinks.0.fodler: unknown key", "did you mean 'folder'"], "train",
                     self.config({"metrics.sinks": [{"plugin": "tensorboard", "fodler": "x"}]}))
        self.refused(2, ["stands in the chain twice"], "train",
                     self.config({"metrics.sinks": ["prometheus", "prometheus"]}))
        self.refused(2, ["metrics.sinks.plugin: missing"], "validate",
                     self.config({"metrics.sinks": {"file": "x"}}))
        self.assertFalse((self.folder / "out" / "metrics.jsonl").exists())

    def test_validate_names_them(self):
        out = self.passed("validate", self.config({"metrics.sinks": ["tensorboard"]})).stdout
        self.assertIn("metrics      tensorboard", out)


if __name__ == "__main__":
    unittest.main()
