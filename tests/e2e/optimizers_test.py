# SPDX-License-Identifier: Apache-2.0
"""Optimizers through the program: every one trains, several share a run, wrappers and averages."""

import unittest

from program import ProgramTest

LONG = {"run.max_steps": 40, "run.log_interval": 1, "run.eval_interval": 20,
        "backend.plugin": ["cpu", "reference"]}
# Rates at which 40 steps of the tiny model make the loss fall.
ALONE = {"sgd": {"lr": 0.5, "momentum": 0.9}, "adamw": {"lr": 0.01, "amsgrad": True},
         "lion": {"lr": 0.003}, "schedule_free_adamw": {"lr": 0.02}}


class Optimizers(ProgramTest):
    def train(self, optimizer, changes=None, folder="out"):
        path = self.config({**LONG, "optimizer": optimizer,
                            "run.output": str(self.folder / folder), **(changes or {})})
        done = self.passed("train", path)
        return self.losses(folder), done

    def eval_losses(self, folder="out"):
        return [r["eval/loss"] for r in self.metrics(folder) if "eval/loss" in r]

    def test_every_optimizer_trains(self):
        for name, options in ALONE.items():
            with self.subTest(name):
                losses, _ = self.train({"plugin": name, **options}, folder=name)
                self.assertLess(losses[-1], losses[0] - 0.5)

    def test_a_parameter_goes_to_the_first_that_takes_it(self):
        for muon in ("muon", "muon_plus"):
            with self.subTest(muon):
                losses, done = self.train([{"plugin": muon, "lr": 0.02},
                                           {"plugin": "adamw", "lr": 0.01}], folder=muon)
                self.assertLess(losses[-1], losses[0] - 0.5)
                self.assertRegex(done.stderr, rf"optimizer {muon} leaves 4 of 11 tensors to adamw: "
                                 r"tok_emb.weight: muon is for weights of hidden layers, this is a "
                                 r"table of embeddings")
                self.assertIn(f"optimizer {muon} decay: 7 tensors, lr 0.02", done.stderr)

    def test_a_rule_leaves_parameters_to_a_later_optimizer(self):
        path = self.config({"optimizer": [
            {"plugin": "muon", "lr": 0.02,
             "groups": [{"match": ["*.down.weight"], "plugin": "adamw"}]},
            {"plugin": "adamw", "lr": 0.01}]})
        said = self.passed("explain", path).stdout
        self.assertRegex(said, r"muon decay: 6 tensors")
        self.assertRegex(said, r"adamw decay: 2 tensors[^\n]*\n +[^\n]*blocks.0.mlp.down.weight")

    def test_a_parameter_that_none_takes_is_an_error(self):
        self.refused(2, ["optimizer muon leaves 4 of 11 tensors: tok_emb.weight: muon is for",
                         "add an optimizer for them"],
                     "train", self.config({"optimizer": {"plugin": "muon", "lr": 0.02}}))

    def test_common_options_go_to_those_that_know_them(self):
        self.passed("validate", self.config({"optimizer": {
            "plugin": ["muon", "adamw"], "lr": 0.02, "betas": [0.9, 0.95], "momentum": 0.9}}))
        self.refused(2, ["momentun: unknown key (did you mean 'momentum'?)"], "validate",
                     self.config({"optimizer": {"plugin": ["muon", "adamw"], "lr": 0.02,
                                                "momentun": 0.9}}))
        self.refused(2, ["nesterow: unknown key (did you mean 'nesterov'?)"], "validate",
                     self.config({"optimizer": {"plugin": ["muon", "adamw"], "lr": 0.02, "groups": [
                         {"rank": 2, "nesterow": False}]}}))

    def test_rules_name_optimizers_of_the_chain(self):
        self.refused(2, ["optimizer.groups.0.plugin: 'sgd' is not in the chain (adamw)"], "train",
                     self.config({"optimizer.groups": [{"rank": 2, "plugin": "sgd"}]}))
        self.refused(2, ["its options belong under that optimizer"], "train",
                     self.config({"optimizer": [
                         {"plugin": "muon", "lr": 0.02,
                          "groups": [{"rank": 2, "plugin": "adamw", "lr": 1.0}]},
                         {"plugin": "adamw", "lr": 0.01}]}))

    def test_cautious_wraps_any_that_has_a_direction(self):
        for name in ("sgd", "adamw", "lion"):
            with self.subTest(name):
                options = {k: v for k, v in ALONE[name].items()}
                plain, _ = self.train({"plugin": name, **options}, folder=f"{name}-plain")
                wrapped, done = self.train({"plugin": name, **options, "wrap": "cautious"},
                                           folder=f"{name}-wrapped")
                self.assertEqual(plain[0], wrapped[0])
                self.assertNotEqual(plain, wrapped)
                self.assertLess(wrapped[-1], wrapped[0] - 0.5)
                self.assertIn(f"optimizer cautious({name}) decay", done.stderr)

    def test_what_wraps_and_what_is_wrapped_are_told_apart(self):
        self.refused(2, ["'cautious' changes the steps of another optimizer"], "train",
                     self.config({"optimizer": {"plugin": "cautious", "lr": 0.1}}))
        self.refused(2, ["optimizer.wrap: 'lion' is an optimizer, and wraps none"], "train",
                     self.config({"optimizer.wrap": "lion"}))
        self.refused(2, ["optimizer schedule_free_adamw", "offers no direction"], "train",
                     self.config({"optimizer": {"plugin": "schedule_free_adamw", "lr": 0.1,
                                                "wrap": "cautious"}}))
        self.refused(2, ["optimizer.wrap.floor: got the number -1"], "train",
                     self.config({"optimizer.wrap": {"plugin": "cautious", "floor": -1}}))

    def test_evaluation_and_weights_read_the_average(self):
        raw, _ = self.train({"plugin": "adamw", "lr": 0.01}, folder="raw")
        ema, _ = self.train({"plugin": "adamw", "lr": 0.01, "ema_decay": 0.9}, folder="ema")
        self.assertEqual(raw, ema, "an average changes the training")
        self.assertNotEqual(self.eval_losses("raw"), self.eval_losses("ema"))
        for folder, optimizer in (("ema", {"plugin": "adamw", "lr": 0.01, "ema_decay": 0.9}),
                                  ("free", {"plugin": "schedule_free_adamw", "lr": 0.02})):
            if folder == "free":
                self.train(optimizer, folder="free")
            path = self.config({**LONG, "optimizer": optimizer,
                                "run.output": str(self.folder / folder)})
            self.assertIn(f"loss {self.eval_losses(folder)[-1]:.6f}",
                          self.passed("eval", path).stdout)

    def test_one_average_is_enough(self):
        self.refused(2, ["optimizer.ema_decay: 'schedule_free_adamw' averages its weights itself"],
                     "train", self.config({"optimizer": {"plugin": "schedule_free_adamw",
                                                         "lr": 0.1, "ema_decay": 0.9}}))

    def test_a_run_has_the_same_bits_each_time(self):
        chain = [{"plugin": "muon", "lr": 0.02, "wrap": "cautious"},
                 {"plugin": "schedule_free_adamw", "lr": 0.01}]
        self.assertEqual(self.train(chain, folder="a")[0], self.train(chain, folder="b")[0])


if __name__ == "__main__":
    unittest.main()
