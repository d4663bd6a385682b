#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/onnx/models: small files for the tests of the importer and seeds of its fuzzing.

Needs the packages onnx and numpy. Seeds are fixed: written again, the files are the same.
"""

from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).resolve().parent / "models"
RANDOM = numpy.random.default_rng(7)
F, I = TensorProto.FLOAT, TensorProto.INT64


def weights(name, *dims, scale=0.3):
    return numpy_helper.from_array(
        (RANDOM.standard_normal(dims) * scale).astype("float32"), name)


def tensor(name, values, dtype="float32"):
    return numpy_helper.from_array(numpy.array(values, dtype=dtype), name)


def save(name, nodes, inputs, outputs, initializers=(), opset=13, ir=8, **more):
    functions = more.pop("functions", [])
    opsets = [helper.make_opsetid("", opset), *more.pop("opsets", [])]
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(n, t, d) for n, t, d in inputs],
        [helper.make_tensor_value_info(n, t, d) for n, t, d in outputs], list(initializers))
    model = helper.make_model(graph, opset_imports=opsets, functions=functions,
                              producer_name="make_models")
    model.ir_version = ir
    helper.set_model_props(model, {"origin": "tests/onnx"})
    (FOLDER / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    return model


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attrs)


def conv_bn():
    save("conv_bn",
         [node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
          node("BatchNormalization", ["c", "bn.scale", "bn.bias", "bn.mean", "bn.var"], ["n"]),
          node("Relu", ["n"], ["r"]),
          node("GlobalAveragePool", ["r"], ["p"]),
          node("Reshape", ["p", "shape"], ["f"]),
          node("Gemm", ["f", "fc.weight", "fc.bias"], ["logits"], transB=1),
          node("Softmax", ["logits"], ["prob"], axis=1)],
         [("x", F, ["batch", 1, 8, 8])], [("prob", F, ["batch", 10])],
         [weights("conv.weight", 4, 1, 3, 3), tensor("bn.scale", [1, 1, 1, 1]),
          tensor("bn.bias", [0, 0, 0, 0]), tensor("bn.mean", [0, 0, 0, 0]),
          tensor("bn.var", [1, 1, 1, 1]), tensor("shape", [-1, 4], "int64"),
          weights("fc.weight", 10, 4), tensor("fc.bias", [0] * 10)])


def mlp():
    save("mlp",
         [node("MatMul", ["x", "fc1.weight"], ["a"]), node("Add", ["a", "fc1.bias"], ["b"]),
          node("Gelu", ["b"], ["h"]), node("Dropout", ["h", "ratio"], ["d"]),
          node("Gemm", ["d", "fc2.weight", "fc2.bias"], ["y"], transB=1)],
         [("x", F, ["N", 6])], [("y", F, ["N", 3])],
         [weights("fc1.weight", 6, 16), weights("fc1.bias", 16), weights("fc2.weight", 3, 16),
          weights("fc2.bias", 3), tensor("ratio", 0.5)], opset=20, ir=9)


def softmaxes():
    for opset in (11, 13):
        save(f"softmax_{opset}", [node("Softmax", ["x"], ["y"])], [("x", F, [2, 3, 4])],
             [("y", F, [2, 3, 4])], opset=opset)


def squeezes():
    dims = [("x", F, [1, 3, 1, 5])], [("y", F, None)]
    save("squeeze_11", [node("Squeeze", ["x"], ["y"], axes=[2])], *dims, opset=11)
    save("squeeze_13", [node("Squeeze", ["x", "axes"], ["y"])], *dims,
         [tensor("axes", [2], "int64")])
    save("unsqueeze_11", [node("Unsqueeze", ["x"], ["y"], axes=[-1])], *dims, opset=11)
    save("unsqueeze_10", [node("Unsqueeze", ["x"], ["y"], axes=[-1])], *dims, opset=10)


def initializers():
    product = [node("MatMul", ["x", "w"], ["y"])]
    for ir, also in ((3, True), (8, True), (9, False)):
        inputs = [("x", F, [2, 3])] + ([("w", F, [3, 4])] if also else [])
        save(f"weight_ir{ir}", product, inputs, [("y", F, [2, 4])], [weights("w", 3, 4)], ir=ir)


def shapes():
    save("fixed_batch", [node("Reshape", ["x", "shape"], ["y"])], [("x", F, ["N", 16, 4, 4])],
         [("y", F, ["N", 256])], [tensor("shape", [1, 256], "int64")])
    save("shape_chain",
         [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]),
          node("Unsqueeze", ["n", "axes"], ["u"]), node("Concat", ["u", "rest"], ["t"], axis=0),
          node("Reshape", ["x", "t"], ["y"])],
         [("x", F, ["N", 2, 6])], [("y", F, ["N", 12])],
         [tensor("zero", 0, "int64"), tensor("axes", [0], "int64"), tensor("rest", [-1], "int64")])


def refused():
    then = helper.make_graph([helper.make_node("Identity", ["x"], ["a"])], "then", [],
                             [helper.make_tensor_value_info("a", F, [2])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [],
                              [helper.make_tensor_value_info("b", F, [2])])
    save("if", [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
         [("c", TensorProto.BOOL, []), ("x", F, [2])], [("y", F, [2])])
    save("non_zero", [node("NonZero", ["x"], ["y"])], [("x", F, [2, 2])], [("y", I, [2, "n"])])


def functions():
    body = helper.make_function(
        "local", "Scaled", ["a"], ["b"],
        [helper.make_node("Constant", [], ["k"], value=tensor("k", [2.0])),
         helper.make_node("Mul", ["a", "k"], ["m"]), helper.make_node("Relu", ["m"], ["b"])],
        [helper.make_opsetid("", 17)])
    save("function", [helper.make_node("Scaled", ["x"], ["h"], domain="local", name="one"),
                      helper.make_node("Scaled", ["h"], ["y"], domain="local", name="two")],
         [("x", F, [2, 3])], [("y", F, [2, 3])], opset=17, functions=[body],
         opsets=[helper.make_opsetid("local", 1)])


def external(name, location, offset=0, length=48):
    value = onnx.TensorProto(name="w", data_type=F, dims=[3, 4],
                             data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        value.external_data.add(key=key, value=str(text))
    save(name, [node("MatMul", ["x", "w"], ["y"])], [("x", F, [2, 3])], [("y", F, [2, 4])],
         [value], opset=17)


def externals():
    (FOLDER / "weights.bin").write_bytes(
        numpy.arange(16, dtype="float32").tobytes())
    external("external", "weights.bin", offset=16)
    external("external_cut", "weights.bin", offset=32)
    external("external_up", "../models/weights.bin")
    external("external_absolute", "/etc/hostname")
    external("external_link", "link.bin")


def main():
    FOLDER.mkdir(exist_ok=True)
    for make in (conv_bn, mlp, softmaxes, squeezes, initializers, shapes, refused, functions,
                 externals):
        make()
    print(f"{len(list(FOLDER.glob('*.onnx')))} files in {FOLDER}")


if __name__ == "__main__":
    main()
