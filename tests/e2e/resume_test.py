# SPDX-License-Identifier: Apache-2.0
"""Runs in parts: a run that was stopped and resumed leaves the bytes of one that was not."""

import json
import os
import shutil
import unittest

from program import ProgramTest

STEPS = 12
LONG = {"run.max_steps": STEPS, "run.log_interval": 1, "run.eval_interval": 5,
        "checkpoint.interval": 3, "checkpoint.keep_last": 0, "checkpoint.keep_best": 0}
# Each with what is peculiar to it: momentum, two averages, matrices and the rest, wrappers, ema.
OPTIMIZERS = {
    "adamw": {"plugin": "adamw", "lr": 0.01, "amsgrad": True},
    "sgd": {"plugin": "sgd", "lr": 0.1, "momentum": 0.9},
    "lion": {"plugin": "lion", "lr": 0.003},
    "muon": [{"plugin": "muon", "lr": 0.02}, {"plugin": "adamw", "lr": 0.01}],
    "muon_plus": [{"plugin": "muon_plus", "lr": 0.02}, {"plugin": "adamw", "lr": 0.01}],
    "schedule_free_adamw": {"plugin": "schedule_free_adamw", "lr": 0.02},
    "cautious": {"plugin": "adamw", "lr": 0.01, "wrap": "cautious"},
    "ema": {"plugin": "adamw", "lr": 0.01, "ema_decay": 0.9},
}


class Parts(ProgramTest):
    """Helpers: a run to its end, and one in parts that end at given steps."""

    def whole(self, changes, folder="whole"):
        path = self.config({**LONG, **changes, "run.output": str(self.folder / folder)},
                           f"{folder}.yaml")
        self.passed("train", path)
        return self.bits(folder, STEPS)

    def in_parts(self, stops, changes, folder="parts"):
        """Each part is told of max_steps alone: the last checkpoint before a stop is what a kill
        would leave, so what lies past it is removed."""
        out = self.folder / folder
        shutil.copytree(self.folder / "whole", out)
        for step in sorted(stops, reverse=True):
            for each in (out / "checkpoints").iterdir():
                if int(each.name.split("-")[1]) > step:
                    shutil.rmtree(each)
            (out / "weights.safetensors").unlink(missing_ok=True)
            path = self.config({**LONG, **changes, "run.output": str(out)}, f"{folder}.yaml")
            done = self.passed("train", path, "--resume", "auto")
            self.assertIn("going on from step ", done.stderr)
        return self.bits(folder, STEPS)


class Resume(Parts):
    def test_every_optimizer_goes_on_with_the_same_bits(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                changes = {"optimizer": optimizer, "backend.plugin": ["cpu", "reference"]}
                expected = self.whole(changes)
                self.assertEqual(self.in_parts([9, 3], changes), expected)
                for folder in ("whole", "parts"):
                    shutil.rmtree(self.folder / folder)

    def test_every_precision_goes_on_with_the_same_bits(self):
        for precision in ("fp32", "bf16", "fp16", "bf16_pure", "fp64"):
            with self.subTest(precision):
                changes = {"precision.plugin": precision, "model.dropout": 0.5,
                           "run.accumulate_steps": 2, "lr_schedule.plugin": "warmup_cosine",
                           "lr_schedule.warmup_steps": 4, "backend.plugin": ["cpu", "reference"]}
                expected = self.whole(changes)
                self.assertEqual(self.in_parts([6], changes), expected)
                for folder in ("whole", "parts"):
                    shutil.rmtree(self.folder / folder)

    def test_metrics_have_each_step_once(self):
        self.whole({})
        self.in_parts([9, 6, 3], {})
        kinds = ("train/loss", "eval/loss")
        for kind in kinds:
            records = {folder: [(r["step"], r[kind]) for r in self.metrics(folder) if kind in r]
                       for folder in ("whole", "parts")}
            self.assertEqual(records["parts"], records["whole"])
        aside = self.folder / "parts" / "metrics.1.jsonl"
        self.assertEqual(json.loads(aside.read_text().splitlines()[0])["step"], 10)

    def test_a_half_last_line_is_mended(self):
        self.whole({})
        with open(self.folder / "whole" / "metrics.jsonl", "a") as file:
            file.write('{"step":12,"tok')
        self.in_parts([9], {})
        self.assertEqual([r["step"] for r in self.metrics("parts") if "train/loss" in r],
                         list(range(1, STEPS + 1)))

    def test_a_run_that_has_ended_is_left_as_it_is(self):
        before = self.whole({})
        records = len([r for r in self.metrics("whole") if "step" in r and "event" not in r])
        self.passed("train", self.folder / "whole.yaml", "--resume", "auto")
        self.assertEqual(self.bits("whole", STEPS), before)
        self.assertEqual(records, len([r for r in self.metrics("whole")
                                       if "step" in r and "event" not in r]))

    def test_a_longer_horizon_goes_on_from_the_end(self):
        expected = self.whole({})
        short = {**LONG, "run.max_steps": 7, "run.output": str(self.folder / "short")}
        self.passed("train", self.config(short))
        longer = {**short, "run.max_steps": STEPS}
        self.passed("train", self.config(longer), "--resume", "auto")
        self.assertEqual(self.bits("short", STEPS), expected)

    def test_another_run_goes_on_from_a_path(self):
        expected = self.whole({})
        for path in ("whole/checkpoints/step-000006", "whole/checkpoints/step-000003/"):
            changes = {**LONG, "run.output": str(self.folder / "fork")}
            self.passed("train", self.config(changes), "--resume", self.folder / path)
            self.assertEqual(self.bits("fork", STEPS), expected)
            shutil.rmtree(self.folder / "fork")

    def test_going_back_sets_what_came_later_aside(self):
        expected = self.whole({})
        step = self.folder / "whole" / "checkpoints" / "step-000003"
        self.passed("train", self.folder / "whole.yaml", "--resume", step)
        self.assertEqual(self.bits("whole", STEPS), expected)
        aside = sorted(p.name for p in (self.folder / "whole" / "checkpoints.1").iterdir())
        self.assertEqual(aside, ["step-000006", "step-000009", "step-000012"])


class Choices(Parts):
    """What happens with a folder that was used, and with what must not change."""

    def interrupted(self):
        """A run whose newest checkpoint is of step 6."""
        self.whole({})
        out = self.folder / "whole"
        for step in ("step-000009", "step-000012"):
            shutil.rmtree(out / "checkpoints" / step)
        (out / "weights.safetensors").unlink()
        return out

    def test_an_unfinished_run_wants_a_word(self):
        out = self.interrupted()
        self.refused(2, ["holds checkpoints up to step 6 of a run that has not come to its end",
                         "--resume auto", "--resume never"], "train", self.folder / "whole.yaml")
        self.passed("train", self.folder / "whole.yaml", "--resume", "never")
        self.assertTrue((out / "checkpoints.1" / "step-000006").is_dir())

    def test_auto_begins_anew_where_there_is_nothing(self):
        path = self.config({**LONG, "run.resume": "auto"})
        self.assertIn("the run begins anew", self.passed("train", path).stderr)

    def test_what_decides_the_bits_must_not_change(self):
        self.interrupted()
        for key, value, parts in (
                ("optimizer.lr", 0.02, ["optimizer.lr: got 0.02", "has 0.01"]),
                ("optimizer.eps", 1e-6, ["optimizer.eps: got 1e-06", "has 1e-08"]),
                ("run.seed", 4, ["run.seed: got 4", "has 3"]),
                ("run.batch_size", 4, ["run.batch_size: got 4", "has 2"]),
                ("model.dim", 32, ["model.dim: got 32", "has 16"]),
                ("data.block", 4, ["data.block: got 4", "has 8"]),
                ("precision.plugin", "bf16", ["precision.plugin: got bf16", "has fp32"]),
                ("run.max_steps", 4, ["run.max_steps: got 4", "is of step 6"])):
            with self.subTest(key):
                path = self.config({**LONG, "run.output": str(self.folder / "whole"), key: value})
                self.refused(2, parts, "train", path, "--resume", "auto")

    def test_what_does_not_may(self):
        self.interrupted()
        path = self.config({**LONG, "run.output": str(self.folder / "whole"),
                            "run.log_interval": 3, "run.eval_batches": 1, "run.name": "other",
                            "checkpoint.interval": 4, "scheduler.plugin": "sequential",
                            "optimizer.eps": 1e-8, "optimizer.betas": [0.9, 0.999]})
        self.passed("train", path, "--resume", "auto")

    def test_another_backend_is_said(self):
        self.interrupted()
        path = self.config({**LONG, "run.output": str(self.folder / "whole"),
                            "backend.plugin": ["cpu", "reference"]})
        self.assertIn("bits may differ", self.passed("train", path, "--resume", "auto").stderr)

    def test_other_data_is_refused(self):
        out = self.interrupted()
        shutil.copy(self.folder / "text.txt", self.folder / "moved.txt")
        changes = {**LONG, "run.output": str(out), "data.file": str(self.folder / "moved.txt")}
        copy = self.folder / "copy"
        shutil.copytree(out, copy)
        self.passed("train", self.config({**changes, "run.output": str(copy)}), "--resume", "auto")
        text = (self.folder / "moved.txt").read_text()
        middle = text.index("quick", len(text) // 2)  # far from the first batches
        for other in (text.replace("quick", "quack"),
                      text[:middle] + "quack" + text[middle + 5:]):
            (self.folder / "moved.txt").write_text(other)
            self.refused(4, ["the data is not that of"], "train", self.config(changes),
                         "--resume", "auto")

    def test_weights_to_begin_with(self):
        self.whole({})
        for optimizer in ("schedule_free_adamw", "adamw"):
            changes = {"run.output": str(self.folder / optimizer), "run.max_steps": 1,
                       "run.init_from": str(self.folder / "whole"), "optimizer":
                       {"plugin": optimizer, "lr": 1e-30,
                        **({"ema_decay": 0.5} if optimizer == "adamw" else {})}}
            self.assertIn("begins with the weights of",
                          self.passed("train", self.config(changes)).stderr)
            losses = {}
            for run in ("whole", optimizer):
                path = self.config({"run.output": str(self.folder / run)})
                losses[run] = self.passed("eval", path).stdout
            self.assertEqual(losses[optimizer], losses["whole"])


class Damage(Parts):
    def broken(self, damage):
        self.whole({})
        damage(self.folder / "whole" / "checkpoints" / "step-000012")
        return self.folder / "whole.yaml"

    def test_a_damaged_checkpoint_is_passed_over(self):
        def flip(name, at):
            def damage(step):
                data = bytearray((step / name).read_bytes())
                data[at] ^= 1
                (step / name).write_bytes(data)
            return damage

        def cut(step):
            os.truncate(step / "weights.safetensors", 1000)

        for damage, reason in (
                (flip("state.safetensors", -1), "is damaged: its XXH128 is"),
                (flip("weights.safetensors", 3000), "is damaged"),
                (flip("state.json", 30), "is damaged"),
                (flip("manifest.json", 0), "is no manifest"),
                (cut, "has 1000 bytes, its manifest says"),
                (lambda step: (step / "state.safetensors").unlink(), "No such file"),
                (lambda step: (step / "manifest.json").unlink(), "No such file")):
            path = self.broken(damage)
            done = self.passed("train", path, "--resume", "auto")
            self.assertIn("step-000012' is passed over: ", done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertIn("going on from step 9", done.stderr)
            shutil.rmtree(self.folder / "whole")

    def test_none_that_is_whole_is_an_error(self):
        self.whole({})
        for step in (self.folder / "whole" / "checkpoints").iterdir():
            os.truncate(step / "state.safetensors", 10)
        self.refused(4, ["none of the 4 checkpoints", "--resume never"], "train",
                     self.folder / "whole.yaml", "--resume", "auto")

    def test_a_named_one_must_be_whole(self):
        path = self.broken(lambda step: os.truncate(step / "state.json", 10))
        step = self.folder / "whole" / "checkpoints" / "step-000012"
        self.refused(4, ["has 10 bytes, its manifest says"], "train", path, "--resume", step)


class Rotation(ProgramTest):
    def steps(self):
        return sorted(int(p.name.split("-")[1])
                      for p in (self.folder / "out" / "checkpoints").iterdir())

    def test_the_newest_and_the_best_stay(self):
        changes = {"run.max_steps": 12, "checkpoint.interval": 2, "run.eval_interval": 2,
                   "checkpoint.keep_last": 2, "checkpoint.keep_best": 0}
        self.passed("train", self.config(changes))
        self.assertEqual(self.steps(), [10, 12])
        # At such a rate the loss soon rises again.
        self.passed("train", self.config({**changes, "checkpoint.keep_best": 1,
                                          "optimizer.lr": 0.5}))
        losses = {r["step"]: r["eval/loss"] for r in self.metrics() if "eval/loss" in r}
        best = min(losses, key=losses.get)
        self.assertEqual(self.steps(), sorted({best, 10, 12}))

    def test_each_is_recorded_with_what_it_took(self):
        self.passed("train", self.config({"run.max_steps": 6, "checkpoint.interval": 2}))
        saved = [r for r in self.metrics() if r.get("event") == "checkpoint_saved"]
        self.assertEqual([int(r["step"]) for r in saved], [2, 4, 6])
        for record in saved:
            self.assertGreater(float(record["copy_ms"]), 0)
            self.assertGreater(float(record["write_ms"]), 0)

    def test_checkpoints_of_another_run_are_left_alone(self):
        self.passed("train", self.config({"run.max_steps": 9, "checkpoint.interval": 3}))
        other = self.folder / "kept"
        shutil.copytree(self.folder / "out" / "checkpoints" / "step-000009", other)
        shutil.rmtree(self.folder / "out")
        (self.folder / "out" / "checkpoints").mkdir(parents=True)
        changes = {"run.max_steps": 6, "checkpoint.interval": 1, "checkpoint.keep_last": 1,
                   "checkpoint.keep_best": 0}
        path = self.config(changes)
        self.passed("train", path)
        other.rename(self.folder / "out" / "checkpoints" / "step-001000")
        newest = self.folder / "out" / "checkpoints" / "step-000006"
        self.passed("train", self.config({**changes, "run.max_steps": 8}), "--resume", newest)
        self.assertIn(8, self.steps())
        self.assertIn("step-001000", [p.name for p in
                                      (self.folder / "out" / "checkpoints.2").iterdir()])


if __name__ == "__main__":
    unittest.main()
