# SPDX-License-Identifier: Apache-2.0
"""ONNX in and out: a file of others trained by YAML, runs exported, read back, and run elsewhere.

Outputs are compared through onnx_cases --run, which needs no Python package; where one that has
onnx and onnxruntime is at hand (GRADRACK_ONNX_PYTHON), they judge too. Without, that test is
reported as skipped.
"""

import json
import os
import random
import struct
import subprocess
import unittest

import program

MODELS = program.ROOT / "tests" / "onnx" / "models"
RUNNER = program.BUILD / "tests" / "onnx_cases"
JUDGE = program.ROOT / "tests" / "onnx" / "judge.py"
SAMPLES, SIDE, CLASSES = 64, 8, 10


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + data


def safetensors(path, name, dims, numbers):
    content = struct.pack(f"<{len(numbers)}f", *numbers)
    text = (f'{{"{name}": {{"dtype": "F32", "shape": {list(dims)}, '
            f'"data_offsets": [0, {len(content)}]}}}}').encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def floats(path, name):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    begin, end = json.loads(content[8:8 + size])[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", content[8 + size + begin:8 + size + end])


class OnnxTest(program.ProgramTest):

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        labels = [draw.randrange(CLASSES) for _ in range(SAMPLES)]
        # A picture is as bright as its label is large, so there is something to learn.
        pixels = [draw.random() + 0.5 * label for label in labels for _ in range(SIDE * SIDE)]
        (self.folder / "x.npy").write_bytes(
            npy("<f4", f"({SAMPLES}, 1, {SIDE}, {SIDE})",
                struct.pack(f"<{len(pixels)}f", *pixels)))
        (self.folder / "y.npy").write_bytes(
            npy("<i8", f"({SAMPLES},)", struct.pack(f"<{SAMPLES}q", *labels)))
        safetensors(self.folder / "batch.safetensors", "input.x", (3, 1, SIDE, SIDE),
                    pixels[:3 * SIDE * SIDE])

    def run_file(self, changes=None, name="run.yaml", **model):
        data = {"plugin": "arrays", "features": str(self.folder / "x.npy"),
                "labels": str(self.folder / "y.npy"), "classes": CLASSES}
        model = {"plugin": "onnx", "file": str(MODELS / "conv_bn.onnx"), "inputs": ["x=images"],
                 **model}
        return self.config({"data": data, "model": model, "run.max_steps": 40,
                            "run.log_interval": 1, "run.batch_size": 16, "optimizer.lr": 0.05,
                            **(changes or {})}, name)

    def outputs(self, model, name, *options):
        out = self.folder / "outputs.safetensors"
        done = subprocess.run([str(RUNNER), "--run", str(model), "reference",
                               str(self.folder / "batch.safetensors"), str(out), *options],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return floats(out, name)

    def assert_close(self, got, wanted, most=1e-6):
        self.assertEqual(len(got), len(wanted))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got, wanted)), most)

    def test_a_file_of_others_learns(self):
        self.passed("train", self.run_file())
        losses = self.losses()
        self.assertLess(sum(losses[-5:]), 0.85 * sum(losses[:5]), losses)

    def test_inspect_says_what_is_there(self):
        said = self.passed("onnx", "inspect", MODELS / "conv_bn.onnx", "--weights").stdout
        for part in ("producer: make_models", "origin: tests/onnx", "BatchNormalization: 1",
                     "conv.weight: FLOAT [4, 1, 3, 3], trained", "shape: INT64 [2], constant",
                     "bn.mean: FLOAT [4], kept", "x: float32[batch, 1, 8, 8]", "94 in 5 tensors"):
            self.assertIn(part, said)
        self.refused(3, ["If_y", "If, opset 13"], "onnx", "inspect", MODELS / "if.onnx")

    def test_imported_and_exported_is_the_same_model(self):
        out = self.folder / "same.onnx"
        self.passed("export", self.run_file(), "--initial", "--output", out)
        self.assert_close(self.outputs(out, "prob"),
                          self.outputs(MODELS / "conv_bn.onnx", "prob"))
        said = self.passed("onnx", "inspect", out, "--weights").stdout
        for part in ("conv.weight: FLOAT [4, 1, 3, 3]", "origin: tests/onnx",
                     "x: float32[batch, 1, 8, 8]"):
            self.assertIn(part, said)

    def test_trained_weights_are_in_the_export(self):
        self.passed("train", self.run_file())
        out = self.folder / "trained.onnx"
        self.passed("export", self.folder / "out", "--output", out)
        before = self.outputs(MODELS / "conv_bn.onnx", "prob")
        after = self.outputs(out, "prob")
        self.assertGreater(max(abs(a - b) for a, b in zip(before, after)), 1e-3)
        tensors = self.folder / "trained.safetensors"
        self.passed("export", self.folder / "out", "--format", "safetensors", "--output", tensors)
        self.assertEqual(floats(tensors, "conv.weight"),
                         floats(self.folder / "out" / "weights.safetensors", "conv.weight"))

    def test_adapters_are_merged(self):
        config = self.run_file({"run.max_steps": 5}, lora=["fc.weight"], lora_rank=2)
        self.passed("train", config)
        out = self.folder / "merged.onnx"
        self.passed("export", self.folder / "out", "--output", out)
        said = self.passed("onnx", "inspect", out, "--weights").stdout
        self.assertNotIn("lora", said)
        self.assertIn("fc.weight: FLOAT [10, 4]", said)
        saved = self.folder / "out" / "weights.safetensors"
        weight, down, up = (floats(saved, f"fc.weight{end}")
                            for end in ("", ".lora_A", ".lora_B"))
        merged = [weight[o * 4 + i] + 8 * sum(down[i * 2 + r] * up[r * 10 + o] for r in range(2))
                  for o in range(10) for i in range(4)]
        tensors = self.judged_tensor(out, "fc.weight")
        if tensors is not None:
            self.assert_close(tensors, merged, 1e-5)

    def judged_tensor(self, model, name):
        """A tensor of a file as another reader sees it; None without one."""
        python = os.environ.get("GRADRACK_ONNX_PYTHON")
        if not python:
            return None
        code = ("import onnx, sys; m = onnx.load(sys.argv[1]); "
                "t = {i.name: i for i in m.graph.initializer}[sys.argv[2]]; "
                "print(*onnx.numpy_helper.to_array(t).ravel().tolist())")
        done = subprocess.run([python, "-c", code, str(model), name], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(word) for word in done.stdout.split()]

    def test_others_read_what_is_written(self):
        python = os.environ.get("GRADRACK_ONNX_PYTHON")
        if not python:
            self.skipTest("GRADRACK_ONNX_PYTHON names no Python with onnx and onnxruntime")
        imported = self.folder / "imported.onnx"
        self.passed("export", self.run_file(), "--initial", "--output", imported)
        native = self.folder / "native.onnx"
        gpt = self.config({}, "gpt.yaml")
        self.passed("export", gpt, "--initial", "--output", native)
        newer = self.folder / "newer.onnx"
        self.passed("export", gpt, "--initial", "--opset", "23", "--output", newer)
        for model in (imported, native, newer):
            done = subprocess.run([python, "-B", str(JUDGE), str(model), "--runner", str(RUNNER),
                                   "--batch", "3"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{model}: " + done.stdout + done.stderr)

    def test_refusals(self):
        config = self.run_file()
        self.refused(3, ["no plugin writes the format 'onxx'", "onnx"], "export", config,
                     "--initial", "--format", "onxx", "--output", self.folder / "x")
        self.refused(2, ["opset 7 is not written", "18 to 24"], "export", config, "--initial",
                     "--opset", "7", "--output", self.folder / "x")
        self.assertFalse((self.folder / "x").exists())
        self.refused(4, ["weights"], "export", config, "--output", self.folder / "x")


if __name__ == "__main__":
    unittest.main()
