#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ONNX file here and in ONNX Runtime, on random inputs: the largest difference.

    judge.py FILE --runner onnx_cases [--batch N] [--seeds N] [--backend cpu] [--option KEY=VALUE]

Needs onnx, onnxruntime, numpy. The checker of the onnx package looks at the file first. Symbols of
inputs are N. Prints one line; the exit code is 1 when a difference is above 1e-4 of the largest
output, or something fails.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

from tensors import read_safetensors, write_safetensors

TYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32",
         "tensor(double)": "float64", "tensor(bool)": "bool", "tensor(float16)": "float16",
         "tensor(uint8)": "uint8"}


def draw(inputs, args, sizes, random):
    made, largest = {}, {"": 10}
    for each in args.largest:
        name, _, number = each.rpartition("=")
        largest[name] = int(number)
    for value in inputs:
        dims = [d if isinstance(d, int) else sizes.get(d, args.batch) for d in value.shape]
        if args.dims:
            dims = [int(number) for number in args.dims.split(",")]
        dtype = TYPES[value.type]
        if dtype.startswith("float"):
            made[value.name] = random.standard_normal(dims).astype(dtype)
        elif dtype == "bool":
            made[value.name] = random.integers(0, 2, dims).astype(dtype)
        else:
            made[value.name] = random.integers(
                0, largest.get(value.name, largest[""]), dims).astype(dtype)
    return made


def run_here(args, feeds, names):
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder) / "in.safetensors", Path(folder) / "out.safetensors"
        write_safetensors(inputs, {f"input.{name}": array for name, array in feeds.items()})
        words = [args.runner, "--run", args.file, args.backend, inputs, outputs]
        options = list(args.option)
        options.append("outputs=[" + ", ".join(f'"{name}"' for name in names) + "]")
        done = subprocess.run([*map(str, words), *options], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"FAIL {args.file}: {done.stderr.strip()}")
        return read_safetensors(outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--runner", required=True)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--largest", nargs="*", default=[],
                        help="NUMBER or INPUT=NUMBER: of integers, plus 1; default: 10")
    parser.add_argument("--size", nargs="*", default=[], help="SYMBOL=NUMBER")
    parser.add_argument("--dims", help="of the only input: 2,3,48,192")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--option", nargs="*", default=[])
    parser.add_argument("--output", nargs="*", default=[], help="outputs to compare; default: all")
    parser.add_argument("--no-check", action="store_true", help="leave the checker out")
    args = parser.parse_args()
    if not args.no_check:
        onnx.checker.check_model(args.file, full_check=True)
    sizes = {name: int(number) for name, number in (each.split("=") for each in args.size)}
    session = onnxruntime.InferenceSession(args.file, providers=["CPUExecutionProvider"])
    names = args.output or [value.name for value in session.get_outputs()]
    worst = 0.0
    for seed in range(args.seeds):
        feeds = draw(session.get_inputs(), args, sizes, numpy.random.default_rng(seed))
        wanted = dict(zip(names, session.run(names, feeds)))
        got = run_here(args, feeds, names)
        for name, array in wanted.items():
            array = numpy.asarray(array)
            if got[name].shape != array.shape:
                sys.exit(f"FAIL {args.file}: {name} is {got[name].shape}, there {array.shape}")
            if array.size == 0:
                continue
            difference = numpy.abs(got[name].astype("float64") - array.astype("float64")).max()
            worst = max(worst, float(difference) / max(1.0, float(numpy.abs(array).max())))
    good = worst <= 1e-4
    print(f"{'ok  ' if good else 'FAIL'} {Path(args.file).name}: largest difference {worst:.2e}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
