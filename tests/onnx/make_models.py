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


def sums():
    """Running sums along an axis whose size the file leaves open, and a range of that size."""
    forms = {"plain": {}, "exclusive": {"exclusive": 1}, "reverse": {"reverse": 1},
             "both": {"exclusive": 1, "reverse": 1}}
    save("running_sums",
         [node("CumSum", ["x", "one"], [name], **attrs) for name, attrs in forms.items()]
         + [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]),
            node("Range", ["zero", "n", "one"], ["places"])],
         [("x", I, [2, "n"])], [(name, I, None) for name in (*forms, "places")],
         [tensor("one", 1, "int64"), tensor("zero", 0, "int64")], opset=17)


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


def known(op, inputs, tensors, **attrs):
    """A file whose one interesting node has nothing but tensors as inputs: the reader folds it."""
    save(attrs.pop("file"), [node(op, inputs, ["k"], **attrs), node("Cast", ["k"], ["c"], to=F),
                             node("Add", ["x", "c"], ["y"])],
         [("x", F, [2, 2])], [("y", F, None)], tensors)


def broken_folds():
    """Nodes on tensors alone that say what no operator takes."""
    square, ones = tensor("a", [[1, 2], [3, 4]], "int64"), tensor("b", [1, 1], "int64")
    known("Add", ["a", ""], [square], file="broken_add")
    known("Gather", ["", "b"], [ones], file="broken_gather_none")
    known("Gather", ["a", "b"], [square, tensor("b", [1.0, 0.0])], file="broken_gather_reals")
    known("Concat", ["a", "", "a"], [square], axis=0, file="broken_concat")
    known("Expand", ["", "b"], [ones], file="broken_expand")
    known("Where", ["a", "a", "a"], [square], file="broken_where_ints")
    known("Where", ["b", "a", "a"], [square, tensor("b", [[0.5, 0], [0, 1]])],
          file="broken_where_reals")
    known("Range", ["a", "b", "a"], [tensor("a", 0.0), tensor("b", 4, "int64")],
          file="broken_range")
    known("Transpose", ["a"], [square], perm=[0, 0], file="broken_transpose")
    known("Slice", ["a", "b", "b"], [square, tensor("b", [1.0])], file="broken_slice")
    known("ReduceSum", ["a", "b"], [tensor("a", [1, 2], "int64"), tensor("b", [7], "int64")],
          file="broken_reduce")
    known("ConstantOfShape", ["b"], [tensor("b", [2.0, 2.0])], file="broken_fill")
    # The product of both is 1 in 64 bits.
    known("Reshape", ["a", "b"], [square, tensor("b", [274177, 67280421310721, -1], "int64")],
          file="broken_reshape")
    # Rows without number, none of which has an element.
    known("Gather", ["a", "b"], [onnx.TensorProto(name="a", data_type=I, dims=[1 << 40, 0]),
                                 onnx.TensorProto(name="b", data_type=I, dims=[0])],
          axis=1, file="broken_rows")


def broken_files():
    dims = [("x", F, [2, 2])], [("y", F, [2, 2])]
    save("broken_softmax", [node("Softmax", [], ["y"])], *dims)
    save("broken_softmax_none", [node("Softmax", [""], ["y"])], *dims)
    save("broken_names", [node("Constant", [], ["x"], value=tensor("", [1.0])),
                          node("Relu", ["x"], ["y"])], *dims)
    save("broken_heads", [helper.make_node("Attention", ["x", "w"], ["y"], name="attention",
                                           domain="com.microsoft", num_heads=1 << 62)],
         [("x", F, [1, 2, 2])], [("y", F, [1, 2, 2])], [weights("w", 2, 6)],
         opsets=[helper.make_opsetid("com.microsoft", 1)])
    many = [node("Expand", ["one", "dims"], ["k0"])]
    many += [node("Add", [f"k{k}", f"k{k}"], [f"k{k + 1}"]) for k in range(80)]
    save("folds_much", [*many, node("ReduceSum", ["k80"], ["s"], keepdims=0),
                        node("Cast", ["s"], ["c"], to=F), node("Add", ["x", "c"], ["y"])],
         *dims, [tensor("one", 1, "int64"), tensor("dims", [1 << 20], "int64")])


def functions_that_multiply():
    """16 calls of a function of 16 calls of ...: each of 65,536 copies has the caller's text."""
    def call(op, made, text):
        made = helper.make_node(op, ["a"], [made], domain="local" if op[0] == "f" else "")
        made.attribute.append(text)
        return made
    passed_on = onnx.AttributeProto(name="s", ref_attr_name="s", type=onnx.AttributeProto.STRING)
    bodies = []
    for level in range(4):
        inner = "Relu" if level == 3 else f"f{level + 1}"
        calls = [call(inner, "b" if k == 0 else f"b{k}", passed_on) for k in range(16)]
        bodies.append(helper.make_function("local", f"f{level}", ["a"], ["b"], calls, [
            helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], attributes=["s"]))
    outer = helper.make_node("f0", ["x"], ["y"], domain="local", name="outer", s="t" * 4096)
    save("functions_multiply", [outer], [("x", F, [2])], [("y", F, [2])], opset=17,
         functions=bodies, opsets=[helper.make_opsetid("local", 1)])


def main():
    FOLDER.mkdir(exist_ok=True)
    for make in (conv_bn, mlp, softmaxes, squeezes, initializers, shapes, sums, refused, functions,
                 externals, broken_folds, broken_files, functions_that_multiply):
        make()
    print(f"{len(list(FOLDER.glob('*.onnx')))} files in {FOLDER}")


if __name__ == "__main__":
    main()
