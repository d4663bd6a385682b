#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plugins of other times and compilers in today's host, and today's plugins in a later host.

The golden plugins (golden/) are used, not only loaded: their optimizer, schedule, order and kernels
train a small model, whose bits are compared with those of the reference backend. Needs a build:
GRADRACK_BUILD names its folder.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import later_headers
import tools

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from program import BUILD, ROOT, ProgramTest  # noqa: E402: found through the line above

INCLUDE = ROOT / "sdk" / "include"
GOLDEN = sorted((HERE / "golden").glob("v1.*"))
NAMES = ["backend.so", "lr_schedule.so", "optimizer.so", "scheduler.so"]
LATER = ["-Wno-missing-field-initializers", "-DGOLDEN_LATER_KIND"]
TRAIN = {"run.max_steps": 20, "run.log_interval": 1, "run.batch_size": 4,
         "optimizer": {"plugin": "golden_momentum", "lr": 0.2},
         "lr_schedule": {"plugin": "golden_linear", "end": 0.5}}
ALL = {**TRAIN, "scheduler": {"plugin": "golden_latest"},
       "backend": {"plugin": ["golden_host", "reference"]}}


class Partners(ProgramTest):
    def copied(self, source):
        """Plugins in a folder that nobody else may write, whatever the umask of the checkout."""
        folder = self.folder / "plugins"
        folder.mkdir(mode=0o755)
        for path in sorted(source.glob("*.so")):
            shutil.copyfile(path, folder / path.name)
            (folder / path.name).chmod(0o755)
        return folder

    def made(self, include=INCLUDE, compiler="gcc", flags=()):
        folder = self.folder / "made"
        done = subprocess.run([HERE / "golden" / "make.sh", folder, include, compiler, *flags],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.copied(folder)

    def train(self, plugins, changes, name):
        """Hash of the weights and the metrics of a run."""
        path = self.config({**changes, "run.output": str(self.folder / name)}, name + ".yaml")
        done = self.passed("--plugin-path", plugins, "train", path)
        weights = (self.folder / name / "weights.safetensors").read_bytes()
        return hashlib.sha256(weights).hexdigest(), self.metrics(name), done.stderr

    def check_that_they_train(self, plugins):
        self.assertEqual([path.name for path in sorted(plugins.glob("*.so"))], NAMES)
        golden, metrics, log = self.train(plugins, ALL, "golden")
        losses = [row["train/loss"] for row in metrics if "train/loss" in row]
        self.assertEqual(len(losses), 20)
        self.assertLess(losses[-1], losses[0] - 0.2, "the golden optimizer does not train")
        rates = [row["lr"] for row in metrics if "lr" in row]
        for update, rate in enumerate(rates):
            self.assertAlmostEqual(rate, 0.2 * (1 - 0.5 * update / 20), places=12)
        self.assertIn("golden_linear is made", log, "what a plugin logs reaches the host's log")
        reference, _, _ = self.train(plugins, TRAIN, "reference")
        self.assertEqual(golden, reference,
                         "an order and kernels of golden plugins changed the result")

    def check_that_they_are_used(self, plugins):
        listed = self.passed("--plugin-path", plugins, "explain", "--order",
                             self.config(ALL)).stdout
        other = self.passed("--plugin-path", plugins, "explain", "--order",
                            self.config(TRAIN)).stdout
        self.assertIn("golden_host", listed)
        self.assertIn("golden_latest", listed)
        self.assertNotEqual(self.order(listed), self.order(other))

    @staticmethod
    def order(text):
        return [line.split()[-1] for line in text.splitlines() if line[:1].isspace()]


class Golden(Partners):
    def test_released_binaries_train(self):
        self.assertGreater(len(GOLDEN), 0, "no golden plugins are committed")
        for folder in GOLDEN:
            with self.subTest(minor=folder.name):
                if platform.machine() != "x86_64":
                    self.skipTest("the golden binaries are for x86-64; their sources are built "
                                  "and used by the test beside this one")
                self.check_that_they_train(self.copied(folder))
                self.check_that_they_are_used(self.folder / "plugins")

    def test_their_sources_train_when_built_today(self):
        self.check_that_they_train(self.made())

    def test_released_binaries_need_the_c_library_alone(self):
        for path in (path for folder in GOLDEN for path in sorted(folder.glob("*.so"))):
            text = subprocess.run(["readelf", "-d", path], check=True, capture_output=True,
                                  text=True).stdout
            needed = [line.split("[")[1].rstrip("]") for line in text.splitlines()
                      if "(NEEDED)" in line]
            self.assertEqual(needed, ["libc.so.6"], path)
            self.assertLess(path.stat().st_size, 20000, path)


class OtherCompiler(Partners):
    def test_c_plugins_by_clang_train(self):
        self.check_that_they_train(self.made(compiler=tools.clang(self)))

    def test_cpp_plugin_by_clang_trains(self):
        folder = self.folder / "plugins"
        folder.mkdir(mode=0o755)
        library = folder / "my_optimizer.so"
        subprocess.run(
            [tools.clang(self), "-x", "c++", "-std=c++20", "-O1", "-fPIC", "-shared",
             "-fvisibility=hidden", f"-I{INCLUDE}", f"-I{ROOT / 'sdk' / 'cpp'}",
             "-Wl,-z,now", ROOT / "sdk/templates/optimizer-cpp/my_optimizer.cpp", "-o", library,
             "-lstdc++"], check=True)
        _, metrics, _ = self.train(folder, {
            **TRAIN, "optimizer": {"plugin": "my_optimizer", "lr": 0.2},
            "lr_schedule": {"plugin": "constant"}}, "clang")
        losses = [row["train/loss"] for row in metrics if "train/loss" in row]
        self.assertLess(losses[-1], losses[0] - 0.2)


class LaterMinor(Partners):
    def setUp(self):
        super().setUp()
        self.later = self.folder / "later"
        self.grown = later_headers.write(self.later)

    def test_plugins_one_minor_ahead_train_in_this_host(self):
        plugins = self.made(self.later, flags=LATER)
        self.check_that_they_train(plugins)
        listed = self.passed("--plugin-path", plugins, "plugins", "list").stdout
        self.assertIn("golden_momentum", listed)
        self.assertNotIn("golden_oracle", listed, "a kind that came later is left aside")

    def test_every_struct_that_may_grow_has_grown(self):
        self.assertGreater(len(self.grown), 30)
        self.assertIn("gr_plugin_header_t", self.grown)
        self.assertIn("gr_task_t", self.grown)

    def test_plugins_of_today_work_in_a_host_one_minor_ahead(self):
        host = self.folder / "later_host"
        subprocess.run(["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror",
                        "-Wno-missing-field-initializers", f"-I{self.later}",
                        HERE / "later_host.c", "-o", host, "-ldl"], check=True)
        bundled = [BUILD / "lib" / "gradrack" / "plugins" / f"{name}.so" for name in (
            "reference", "cpu", "gradrack_optimizer_adamw", "gradrack_scheduler_sequential",
            "gradrack_lr_schedule_constant", "gradrack_lr_schedule_warmup_cosine")]
        golden = [path for folder in GOLDEN for path in folder.glob("*.so")
                  if platform.machine() == "x86_64"]
        done = subprocess.run([host, *bundled, *golden, *sorted(self.made().glob("*.so"))],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
