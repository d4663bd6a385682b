# SPDX-License-Identifier: Apache-2.0
"""Weights written here and read by the format's Python library, and the reverse, bit for bit.

GRADRACK_TORCH_PYTHON names a Python with `safetensors` and `torch`; without it this Python is
tried, and the test is skipped where it has none.
"""

import hashlib
import json
import os
import subprocess
import sys
import unittest

from program import ProgramTest

PYTHON = os.environ.get("GRADRACK_TORCH_PYTHON", sys.executable)
# Prints the digest of every tensor by name; writes them again, in an order of its own.
TWIN = """
import hashlib, json, sys, torch
from safetensors.torch import load_file, save_file
tensors = load_file(sys.argv[1])
def digest(v):
    data = v.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return [str(v.dtype), list(v.shape), hashlib.sha256(data).hexdigest()]
digests = {k: digest(v) for k, v in tensors.items()}
print(json.dumps(digests))
save_file(dict(sorted(tensors.items(), reverse=True)), sys.argv[2])
"""
DTYPES = {"F32": "torch.float32", "F64": "torch.float64", "BF16": "torch.bfloat16"}


def digests(path):
    """The same, read by the few lines that the format needs."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: [DTYPES[entry["dtype"]], entry["shape"], hashlib.sha256(
        body[entry["data_offsets"][0]:entry["data_offsets"][1]]).hexdigest()]
        for name, entry in header.items()}


class BothWays(ProgramTest):
    def twin(self, path, again):
        done = subprocess.run([PYTHON, "-c", TWIN, str(path), str(again)], capture_output=True,
                              text=True)
        if "ModuleNotFoundError" in done.stderr:
            self.skipTest(f"{PYTHON} has no torch and safetensors: set GRADRACK_TORCH_PYTHON")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_bits_survive_both_ways(self):
        for precision in ("fp32", "fp64"):
            out = self.folder / precision
            changes = {"precision.plugin": precision, "run.output": str(out)}
            self.passed("train", self.config(changes))
            again = self.folder / "again.safetensors"
            for name in ("weights.safetensors", "checkpoints/step-000003/state.safetensors"):
                self.assertEqual(self.twin(out / name, again), digests(out / name))
                self.assertEqual(digests(again), digests(out / name))
            self.twin(out / "weights.safetensors", again)
            # A step with a rate that changes no bit.
            self.passed("train", self.config({
                **changes, "run.output": str(self.folder / "back"), "run.max_steps": 1,
                "run.init_from": str(again), "run.resume": "never",
                "optimizer": {"plugin": "sgd", "lr": 1e-300 if precision == "fp64" else 1e-38}}))
            self.assertEqual(digests(self.folder / "back" / "weights.safetensors"),
                             digests(out / "weights.safetensors"))

    def test_converted_weights_are_read_by_the_library(self):
        self.passed("train", self.config())
        for dtype in DTYPES:
            path = self.folder / f"{dtype}.safetensors"
            self.passed("checkpoint", "convert", self.folder / "out", path, "--dtype", dtype)
            found = self.twin(path, self.folder / "again.safetensors")
            self.assertEqual(found, digests(path))
            self.assertEqual({each[0] for each in found.values()}, {DTYPES[dtype]})


if __name__ == "__main__":
    unittest.main()
