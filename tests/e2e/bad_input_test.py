# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind: one line that says what, where, got and wanted, and the exit code.

Codes: 2 command line or run file, 3 plugin, 4 data or file, 5 training stopped
(core/base/exit_codes.hpp).
"""

import unittest

from program import FAULTS, ProgramTest


class RunFile(ProgramTest):
    def test_missing_file(self):
        self.refused(2, ["nowhere.yaml", "No such file"], "train", "nowhere.yaml")

    def test_bad_yaml(self):
        self.refused(2, ["run.yaml:3:1", "not valid YAML"], "train",
                     self.write("run:\n  seed: [1\n"))

    def test_unknown_key_names_place_and_neighbour(self):
        path = self.config({"run.max_step": 5})
        self.refused(2, ["run.yaml:", "run.max_step", "max_steps"], "validate", path)

    def test_YML08_unknown_key_of_a_plugin(self):
        path = self.config({"optimizer.learning_rat": 1})
        self.refused(2, ["optimizer.learning_rat", "adamw"], "validate", path)

    def test_YML02_repeated_key_names_both_lines(self):
        path = self.write("run:\n  seed: 1\n  max_steps: 1\n  seed: 2\n")
        self.refused(2, ["seed", "run.yaml:4", "line 2"], "validate", path)

    def test_wrong_type(self):
        self.refused(2, ["run.seed", "'many'"], "validate", self.config({"run.seed": "many"}))

    def test_out_of_range(self):
        self.refused(2, ["run.batch_size", "0"], "validate", self.config({"run.batch_size": 0}))

    def test_option_out_of_range(self):
        path = self.config({"optimizer.betas": [0.9, 1.5]})
        self.refused(2, ["optimizer.betas", "1.5"], "validate", path)

    def test_options_that_do_not_fit_each_other(self):
        self.refused(2, ["heads", "16", "3"], "train", self.config({"model.heads": 3}))

    def test_group_rule_that_matches_nothing(self):
        path = self.config({"optimizer.groups": [{"match": "tok_emb.wieght", "lr": 1}]})
        self.refused(2, ["groups[0]", "tok_emb.weight"], "train", path)

    def test_set_of_a_wrong_value(self):
        self.refused(2, ["--set run.seed=x", "run.seed"], "train", self.config(), "--set",
                     "run.seed=x")


class Plugins(ProgramTest):
    def test_unknown_plugin_says_folders_and_what_was_found(self):
        path = self.config({"model.plugin": "gpd"})
        error = self.refused(3, ["gpd", "model", "gpt", "lib/gradrack/plugins"], "train", path)
        self.assertIn("run.yaml:", error)

    def fault(self, folder, name, parts):
        path = self.config({"optimizer.plugin": name})
        self.refused(3, parts, "train", path, "--plugin-path", FAULTS / folder)

    def test_abi_major_mismatch_prints_both(self):
        self.fault("major", "elsewhere", ["major.so", "2.0", "1.0"])

    def test_missing_symbol(self):
        self.fault("missing_symbol", "elsewhere",
                   ["missing_symbol.so", "gradrack_test_nobody_has_this"])

    def test_PLG01_missing_library(self):
        self.fault("missing_library", "elsewhere", ["missing_library.so", "libfault_needed.so"])

    def test_two_plugins_with_one_name(self):
        self.fault("twins", "plain", ["plain", "twins/twins.so", "twins/other.so"])

    def test_a_faulty_library_beside_costs_nothing(self):
        self.passed("train", self.config(), "--plugin-path", FAULTS / "major", "--quiet")


class Data(ProgramTest):
    def test_missing_text(self):
        path = self.config({"data.file": "nowhere.txt"})
        self.refused(4, ["nowhere.txt", "No such file"], "train", path)

    def test_empty_text(self):
        (self.folder / "text.txt").write_text("")
        self.refused(4, ["text.txt", "empty"], "train", self.config())

    def test_text_shorter_than_a_block(self):
        (self.folder / "text.txt").write_text("short")
        self.refused(4, ["text.txt", "4 tokens", "block + 1 = 9"], "train", self.config())

    def test_token_outside_the_vocabulary(self):
        path = self.config({"data.vocab": 5})
        self.refused(4, ["outside the vocabulary", "5"], "train", path)

    def test_data_with_more_tokens_than_the_model(self):
        self.refused(2, ["vocab", "5"], "train", self.config({"model.vocab": 5}))

    def test_prompt_outside_the_vocabulary(self):
        path = self.config()
        self.passed("train", path, "--quiet")
        self.refused(4, ["--prompt", "#"], "sample", path, "--prompt", "a#b")


class Output(ProgramTest):
    def test_unwritable_output_folder(self):
        (self.folder / "file").write_text("")
        path = self.config({"run.output": str(self.folder / "file" / "out")})
        self.refused(4, [str(self.folder / "file"), "Not a directory"], "train", path)

    def test_no_weights_to_sample_from(self):
        self.refused(4, ["out"], "sample", self.config(), "--prompt", "a")

    def test_weights_of_another_model(self):
        self.passed("train", self.config(), "--quiet")
        other = self.config({"model.dim": 32}, "other.yaml")
        self.refused(2, ["weights.safetensors", "tok_emb.weight", "16", "32"], "eval", other)


class Training(ProgramTest):
    def test_non_finite_loss_stops_with_everything_intact(self):
        path = self.config({"optimizer.lr": 1e30, "run.max_steps": 50})
        self.refused(5, ["step", "loss", "optimizer.lr"], "train", path)
        self.assertTrue((self.folder / "out" / "weights.safetensors").exists())
        self.passed("eval", path)  # they are finite: those from before the bad step

    def test_memory_limit_too_small_says_what_is_needed(self):
        path = self.config({"memory.limit": "1 KiB"})
        self.refused(2, ["memory.limit", "1024 bytes"], "train", path)

    def test_no_backend_runs_a_node(self):
        path = self.config({"precision.plugin": "fp64", "backend.plugin": ["cpu"]})
        self.refused(3, ["no backend", "cpu"], "train", path)


if __name__ == "__main__":
    unittest.main()
