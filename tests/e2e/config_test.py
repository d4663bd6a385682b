# SPDX-License-Identifier: Apache-2.0
"""Run files as people and editors meet them: includes, `config show`, `config schema`."""

import importlib.util
import json
import re
import unittest

from program import ROOT, ProgramTest

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))  # those below are recipes of `simulate`
HAVE_SCHEMA = importlib.util.find_spec("jsonschema") and importlib.util.find_spec("yaml")
NO_SCHEMA = "jsonschema or yaml is not installed: no file was held against the schema"


def core_loader():
    """PyYAML with the scalars of YAML 1.2, as editors and this program read them."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for tag, pattern, first in (
            ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
            ("int", r"^[-+]?[0-9]+$|^0x[0-9a-fA-F]+$", "-+0123456789"),
            ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"
                      r"|^[-+]?\.(inf|Inf|INF)$", "-+.0123456789"),
            ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
            ("merge", r"^<<$", "<")):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))
    return lambda text: yaml.load(text, Loader)


class Include(ProgramTest):
    def show(self, name="run.yaml", *more):
        return self.passed("config", "show", self.folder / name, *more).stdout

    def split(self, own, common, name="common.yaml"):
        self.config(name=name)
        base = json.loads((self.folder / name).read_text())
        base.update(common)
        self.write(json.dumps(base), name)
        return self.write(own)

    def test_own_keys_win_key_by_key(self):
        self.split("include: common.yaml\nrun: {max_steps: 7}\noptimizer: {lr: 0.5}\n", {})
        out = self.show()
        self.assertIn("max_steps: 7\n", out)
        self.assertIn("batch_size: 2\n", out)
        self.assertIn("lr: 0.5\n", out)
        self.assertIn("plugin: adamw\n", out)
        self.assertNotIn("include", out)

    def test_a_map_with_a_plugin_replaces_the_one_included(self):
        self.split("include: common.yaml\noptimizer: {plugin: sgd, lr: 1}\n",
                   {"optimizer": {"plugin": "adamw", "lr": 0.1, "weight_decay": 0.2}})
        self.assertNotIn("weight_decay", self.show())

    def test_later_files_win_and_paths_are_those_of_the_file(self):
        (self.folder / "parts").mkdir()
        self.config(name="parts/base.yaml")
        self.write("include: base.yaml\nrun: {max_steps: 4, seed: 5}\n", "parts/a.yaml")
        self.write("run: {max_steps: 6}\n", "parts/b.yaml")
        self.write("include: [parts/a.yaml, parts/b.yaml]\n")
        out = self.show()
        self.assertIn("max_steps: 6\n", out)
        self.assertIn("seed: 5\n", out)

    def test_errors_name_the_file_that_holds_the_fault(self):
        self.split("include: common.yaml\n", {"run": {"max_steps": 3, "batch_size": "two"}})
        self.refused(2, ["common.yaml:1:", "run.batch_size: got text 'two'"], "validate",
                     self.folder / "run.yaml")

    def test_set_wins_over_both(self):
        self.split("include: common.yaml\nrun: {max_steps: 7}\n", {})
        self.assertIn("max_steps: 9\n", self.show("run.yaml", "--set", "run.max_steps=9"))

    def test_circles_are_refused(self):
        self.write("include: b.yaml\n", "a.yaml")
        self.write("include: a.yaml\n", "b.yaml")
        self.refused(2, ["b.yaml:1:10: include: ", "is being included already"], "validate",
                     self.folder / "a.yaml")

    def test_too_many_files_are_refused(self):
        names = ", ".join(["x.yaml"] * 40)
        self.write("run: {seed: 1}\n", "x.yaml")
        self.refused(2, ["more than 32 files"], "validate", self.write(f"include: [{names}]\n"))

    def test_what_cannot_be_included_is_named(self):
        self.refused(2, ["run.yaml:1:10: include: ", "nowhere.yaml", "No such file"], "validate",
                     self.write("include: nowhere.yaml\n"))
        self.refused(2, ["include: got a map, wanted the path"], "validate",
                     self.write("include: {a: b}\n"))
        self.refused(2, ["is no file"], "validate", self.write("include: /dev/null\n"))
        self.write("[1, 2]\n", "list.yaml")
        self.refused(2, ["list.yaml:1:1: got a list at the top of an included file"], "validate",
                     self.write("include: list.yaml\n"))
        self.refused(2, ["include: stands in a run file alone"], "validate", self.config(),
                     "--set", "include=x.yaml")


class Show(ProgramTest):
    def resolved(self, path):
        return self.passed("config", "show", "--resolved", path).stdout

    def test_resolved_has_the_defaults_of_host_and_plugins(self):
        out = self.resolved(self.config())
        for line in ("seed: 3", "accumulate_steps: 1", "betas: [0.9, 0.999]", "log_interval: 10",
                     "fallback: warn", "max_grad_norm: 1.0", "plugin: constant",
                     "plugin: sequential",
                     "file: metrics.jsonl"):
            self.assertIn(line + "\n", out)

    def test_resolved_is_a_fixed_point(self):
        for path in [self.config(), *CONFIGS]:
            with self.subTest(path=str(path)):
                once = self.resolved(path)
                self.assertEqual(self.resolved(self.write(once, "again.yaml")), once)

    def test_resolved_trains_the_same(self):
        self.passed("train", self.config())
        losses = self.losses()
        weights = (self.folder / "out" / "weights.safetensors").read_bytes()
        text = self.resolved(self.config())
        self.passed("train", self.write(text, "resolved.yaml"))
        self.assertEqual(self.losses(), losses)
        self.assertEqual((self.folder / "out" / "weights.safetensors").read_bytes(), weights)

    def test_variables_and_texts_read_back(self):
        path = self.config({"run.name": "no", "run.output": "$${HOME} \"x\"\\"})
        text = self.passed("config", "show", path).stdout
        self.assertIn('name: "no"\n', text)
        self.assertIn('output: "$${HOME} \\"x\\"\\\\"\n', text)
        self.assertEqual(self.passed("config", "show", self.write(text, "two.yaml")).stdout, text)


class Schema(ProgramTest):
    def schema(self):
        return json.loads(self.passed("config", "schema").stdout)

    def test_it_has_every_section_and_the_options_of_plugins(self):
        properties = self.schema()["properties"]
        self.assertLessEqual({"run", "plugins", "model", "data", "optimizer", "lr_schedule",
                              "precision", "scheduler", "backend", "checkpoint", "metrics",
                              "memory", "include"}, set(properties))
        text = json.dumps(properties["optimizer"])
        self.assertIn('"betas"', text)
        self.assertIn("tensorboard", json.dumps(properties["metrics"]["properties"]["sinks"]))

    @unittest.skipUnless(HAVE_SCHEMA, NO_SCHEMA)
    def test_every_bundled_run_file_keeps_to_it(self):
        import jsonschema
        schema, load = self.schema(), core_loader()
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.assertGreaterEqual(len(CONFIGS), 4)
        for path in CONFIGS:
            with self.subTest(path=str(path)):
                wrong = [f"{list(e.path)}: {e.message[:200]}" for e in
                         validator.iter_errors(load(path.read_text()))]
                self.assertEqual(wrong, [])

    @unittest.skipUnless(HAVE_SCHEMA, NO_SCHEMA)
    def test_what_the_program_refuses_the_schema_refuses(self):
        import jsonschema
        validator = jsonschema.Draft7Validator(self.schema())
        sinks = [{"plugin": "prometheus", "file": "x"}, "tensorboard"]
        for changes in ({}, {"metrics.sinks": sinks},
                        {"backend": {"plugin": ["cpu", "reference"], "threads": 1}},
                        {"run.seed": "${SEED:-3}"}):
            config = json.loads(self.config(changes).read_text())
            self.assertTrue(validator.is_valid(config), changes)
        for changes in ({"run.sed": 1}, {"run.max_steps": None}, {"run.max_steps": 0},
                        {"run.seed": "three"}, {"optimizer.learning_rat": 1},
                        {"optimizer.plugin": "adamv"}, {"optimizer.betas": [0.9]},
                        {"backend.fallback": "sometimes"}, {"optimizer.lr": None},
                        {"metrics.sinks": "tensorbord"}, {"data": None}, {"lr": 1}):
            path = self.config(changes)
            self.assertFalse(validator.is_valid(json.loads(path.read_text())), changes)
            self.assertNotEqual(self.gradrack("validate", path).returncode, 0, changes)


if __name__ == "__main__":
    unittest.main()
