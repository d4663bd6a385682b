# SPDX-License-Identifier: Apache-2.0
"""The backend libtorch_cpu through the program, where it is built; and the program without it."""

import shutil
import subprocess
import unittest

from program import BUILD, PROGRAM, ProgramTest

PLUGINS = BUILD / "lib" / "gradrack" / "plugins"
LIBRARY = PLUGINS / "gradrack_backend_libtorch_cpu.so"
CHAIN = {"plugin": ["libtorch_cpu", "reference"]}


def needs(library):
    """What the loader maps for it, a line each: "NAME => PATH (address)"."""
    done = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


class Without(ProgramTest):
    def test_neither_the_program_nor_cpu_needs_libtorch(self):
        for file in (PROGRAM, PLUGINS / "cpu.so", PLUGINS / "reference.so"):
            names = " ".join(line[0] for line in needs(file))  # an address may read "c10"
            for name in ("torch", "c10", "cudart"):
                self.assertNotIn(name, names, file)


@unittest.skipUnless(LIBRARY.is_file(), "built without LibTorch (GRADRACK_LIBTORCH)")
class Libtorch(ProgramTest):
    def losses_on(self, backend, changes=None):
        self.passed("train", self.config({"backend": backend, "run.max_steps": 12,
                                          "run.log_interval": 1, **(changes or {})}))
        return self.losses()

    def expect_losses_of_the_reference(self, changes=None):
        got = self.losses_on(CHAIN, changes)
        want = self.losses_on({"plugin": "reference"}, changes)
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=2e-4 * b)

    def test_losses_are_the_references(self):
        self.expect_losses_of_the_reference()

    def test_dropout_draws_the_references_numbers(self):
        self.expect_losses_of_the_reference({"model.dropout": 0.2})

    def test_half_precision_trains(self):
        losses = self.losses_on(CHAIN, {"precision": {"plugin": "bf16"}, "run.max_steps": 30})
        self.assertLess(losses[-1], losses[0])

    def test_runs_repeat_bit_for_bit(self):
        weights = []
        for _ in range(2):
            self.losses_on(CHAIN)
            weights.append((self.folder / "out" / "weights.safetensors").read_bytes())
        self.assertEqual(*weights)

    def test_explain_says_what_runs_where(self):
        config = self.config({"backend": {"plugin": ["libtorch_cpu", "cpu", "reference"]}})
        text = self.passed("explain", config).stdout
        self.assertIn("LibTorch 2.", text)
        self.assertIn("libtorch_cpu", text)

    def test_one_openmp_runtime_beside_cpu(self):
        for chain in (["cpu", "libtorch_cpu", "reference"], ["libtorch_cpu", "cpu", "reference"]):
            done = self.passed("train", self.config({"backend": {"plugin": chain}}))
            self.assertNotIn("OpenMP", done.stdout + done.stderr)
        found = [line[2] for line in needs(LIBRARY) if line[0].startswith("libgomp")]
        self.assertEqual(len(found), 1, found)
        self.assertNotIn("libtorch", found[0], "LibTorch's own copy of the runtime")

    def test_a_broken_libtorch_is_a_reason(self):
        # The same tree, without the folder that the plugin looks for LibTorch in.
        tree = self.folder / "tree"
        shutil.copytree(BUILD / "bin", tree / "bin")
        shutil.copytree(PLUGINS, tree / "lib" / "gradrack" / "plugins")
        config = self.config({"backend": {"plugin": ["libtorch_cpu", "reference"]}})
        done = subprocess.run([str(tree / "bin" / "gradrack"), "train", str(config)],
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("libtorch_cpu", done.stdout + done.stderr)
        self.assertIn("libtorch_cpu.so", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
