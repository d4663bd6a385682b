#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An image classifier's ONNX file, there and back: import, 20 steps, export, another runner.

    train_check.py FILE --program gradrack --runner onnx_cases [--lr LR]

Needs onnx, onnxruntime, numpy. Prints one line: the first and last losses, the difference from ONNX
Runtime before training and of the trained export. The exit code is 1 when the loss did not fall, or
a difference is above 1e-4 of the largest output.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

from tensors import read_safetensors, write_safetensors

STEPS, SAMPLES, BATCH = 20, 16, 2


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL {' '.join(map(str, words[:3]))}: {done.stderr.strip()[-600:]}")
    return done.stdout


def compare(args, model, feeds, folder, options=()):
    """Largest difference of the first output from ONNX Runtime's, relative to its largest."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name = session.get_outputs()[0].name
    wanted = session.run([name], feeds)[0]
    inputs, outputs = folder / "in.safetensors", folder / "out.safetensors"
    write_safetensors(inputs, {f"input.{key}": array for key, array in feeds.items()})
    run(args.runner, "--run", model, args.backend, inputs, outputs, *options)
    got = read_safetensors(outputs)[name]
    return float(numpy.abs(got - wanted).max()) / max(1e-30, float(numpy.abs(wanted).max()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--program", required=True)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    model = onnx.load(args.file)
    tensors = {tensor.name for tensor in model.graph.initializer}
    image = next(value for value in model.graph.input if value.name not in tensors)
    dims = [d.dim_value for d in image.type.tensor_type.shape.dim]
    random = numpy.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        features = random.standard_normal((SAMPLES, *dims[1:])).astype("float32")
        numpy.save(folder / "x.npy", features)
        numpy.save(folder / "y.npy", random.integers(0, 5, SAMPLES))
        before = compare(args, args.file, {image.name: features[:1]}, folder)
        config = {"run": {"output": str(folder / "out"), "max_steps": STEPS, "batch_size": BATCH,
                          "log_interval": 1, "eval_batches": 1, "seed": 1},
                  "model": {"plugin": "onnx", "file": str(Path(args.file).resolve()),
                            "inputs": [f"{image.name}=images"], "free_batch": True,
                            "dropout": False},
                  "data": {"plugin": "arrays", "features": str(folder / "x.npy"),
                           "labels": str(folder / "y.npy"), "validation_fraction": 0.25},
                  "optimizer": {"plugin": "adamw", "lr": args.lr},
                  "backend": {"plugin": ["cpu", "reference"]}}
        (folder / "run.yaml").write_text(json.dumps(config))
        run(args.program, "train", folder / "run.yaml", "--quiet")
        records = [json.loads(line) for line in (folder / "out" / "metrics.jsonl").open()]
        losses = [record["train/loss"] for record in records if "train/loss" in record]
        trained = folder / "trained.onnx"
        run(args.program, "export", folder / "out", "--output", trained, "--quiet")
        onnx.checker.check_model(str(trained), full_check=True)
        after = compare(args, trained, {image.name: features[:2]}, folder)
    first, last = sum(losses[:4]) / 4, sum(losses[-4:]) / 4
    good = last < first and before <= 1e-4 and after <= 1e-4
    print(f"{'ok  ' if good else 'FAIL'} {Path(args.file).name}: loss {first:.3f} to {last:.3f}, "
          f"differences {before:.1e} before, {after:.1e} after")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
