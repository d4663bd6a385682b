#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the operator cases of the `onnx` package as folders that onnx_cases reads.

    dump_cases.py FOLDER [SUBSTRING...]     needs the packages onnx and numpy

A case is NAME/model.onnx, NAME/tensors.safetensors (input.X and output.Y) and NAME/tolerance; one
whose values are no tensors has NAME/skip with the reason instead. Inputs that a result's shape
depends on (axes, a target shape, ...) become tensors of the file: a plan knows its memory before
the first step, so they are never data here.
"""

import sys
from pathlib import Path

import numpy
import onnx
import onnx.backend.test.case.node as node_cases

from tensors import NAMES, write_safetensors


# Operator: places of the inputs that decide a shape.
SHAPES = {"Squeeze": [1], "Unsqueeze": [1], "Reshape": [1], "Expand": [1], "Slice": [1, 2, 3, 4],
          "Pad": [1, 3], "Tile": [1], "TopK": [1], "Resize": [1, 2, 3], "Upsample": [1],
          "Split": [1], "ConstantOfShape": [0], "Range": [0, 1, 2], "CumSum": [1], "OneHot": [1],
          "Trilu": [1], "CenterCropPad": [1], "AffineGrid": [1], "Col2Im": [1, 2],
          "Dropout": [1, 2], "BlackmanWindow": [0], "HannWindow": [0], "HammingWindow": [0],
          "DFT": [1, 2], "STFT": [1, 3], "MelWeightMatrix": [0, 1, 2, 3, 4], "MaxUnpool": [2]}


def shape_inputs(graph):
    """Names of the graph's inputs that decide a shape."""
    names = set()
    for node in graph.node:
        places = [1] if node.op_type.startswith("Reduce") else SHAPES.get(node.op_type, [])
        names |= {node.input[k] for k in places if k < len(node.input)}
    return names & {value.name for value in graph.input}


def fix_shapes(graph, inputs):
    """Moves them into the file; returns the other inputs."""
    fixed = shape_inputs(graph)
    kept = []
    for info, value in list(zip(graph.input, inputs)):
        if info.name not in fixed or value is None or isinstance(value, (list, tuple)):
            kept.append((info, value))
            continue
        if not isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.from_array(numpy.asarray(value), info.name)
        graph.initializer.append(value)
    infos = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info, _ in kept]
    del graph.input[:]
    graph.input.extend(infos)
    return [value for _, value in kept]


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
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    inputs = fix_shapes(graph, inputs)
    onnx.save(case.model, folder / "model.onnx")
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
