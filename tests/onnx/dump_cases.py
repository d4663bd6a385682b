#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the operator cases of the `onnx` package as folders that onnx_cases reads.

    dump_cases.py FOLDER [SUBSTRING...]     needs the packages onnx and numpy

A case is NAME/model.onnx, NAME/tensors.safetensors (input.X and output.Y) and NAME/tolerance; one
whose values are no tensors has NAME/skip with the reason instead.
"""

import sys
from pathlib import Path

import numpy
import onnx
import onnx.backend.test.case.node as node_cases

from tensors import NAMES, write_safetensors


def values_of(value_infos, values, prefix):
    named = {}
    for info, value in zip(value_infos, values):
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        if value is None or isinstance(value, (list, tuple)):
            raise ValueError("sequence or optional value")
        array = numpy.asarray(value)
        if array.dtype.name not in NAMES:
            raise ValueError(f"tensor of {array.dtype.name}")
        named[f"{prefix}.{info.name}"] = array
    return named


def dump(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    onnx.save(case.model, folder / "model.onnx")
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    try:
        tensors = {**values_of(graph.input, inputs, "input"),
                   **values_of(graph.output, outputs, "output")}
    except ValueError as reason:
        (folder / "skip").write_text(f"{reason}\n", encoding="utf-8")
        return
    write_safetensors(folder / "tensors.safetensors", tensors)
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n", encoding="utf-8")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root, words = Path(sys.argv[1]), sys.argv[2:]
    cases = node_cases.collect_testcases(None)
    for case in cases:
        if not words or any(word in case.name for word in words):
            dump(case, root / case.name)
    print(f"{len(cases)} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
