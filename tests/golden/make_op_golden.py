# SPDX-License-Identifier: Apache-2.0
"""Writes ops.safetensors: operators with inputs, outputs and gradients, in fp64.

Called by make_golden.py; op_cases.py says how tensors are named. Names, layouts and attributes are
ONNX's. Invariant: outputs come from PyTorch's own operator wherever it has one.
"""

import torch
import torch.nn.functional as F

import attention_cases
import golden_io
import make_adamw_golden
import make_optimizer_golden
from op_cases import SEED, Cases, Inputs, Tensor


def add_conv(cases: Cases) -> None:
    """Conv: X [N, C, spatial], W [M, C/group, kernel], B [M]. `pad` is the same on both ends."""
    # name, X shape, W shape, bias, stride, pad, dilation, group
    table = [
        ("conv2d", (2, 3, 5, 6), (4, 3, 3, 3), True, (1, 1), (1, 1), (1, 1), 1),
        ("conv2d_no_bias_no_pad", (1, 2, 5, 4), (3, 2, 3, 2), False, (1, 1), (0, 0), (1, 1), 1),
        ("conv2d_stride", (2, 3, 7, 6), (4, 3, 3, 3), True, (2, 1), (1, 0), (1, 1), 1),
        ("conv2d_stride_leftover", (1, 2, 8, 7), (2, 2, 3, 3), True, (3, 2), (0, 1), (1, 1), 1),
        ("conv2d_dilation", (1, 2, 8, 9), (3, 2, 3, 3), True, (1, 2), (2, 1), (2, 3), 1),
        ("conv2d_groups", (2, 4, 5, 5), (6, 2, 3, 3), True, (1, 1), (1, 1), (1, 1), 2),
        ("conv2d_depthwise", (1, 4, 6, 5), (8, 1, 3, 3), True, (2, 2), (1, 1), (1, 1), 4),
        ("conv2d_1x1", (2, 3, 4, 4), (5, 3, 1, 1), True, (1, 1), (0, 0), (1, 1), 1),
        ("conv1d", (2, 3, 9), (4, 3, 3), True, (1,), (1,), (1,), 1),
        ("conv1d_stride_dilation_groups", (2, 4, 11), (4, 2, 3), True, (2,), (2,), (2,), 2),
    ]
    for name, x_shape, w_shape, has_bias, stride, pad, dilation, group in table:
        attributes = {"op": "Conv", "strides": stride, "pads": pad + pad, "dilations": dilation}
        inputs = {"X": cases.randn(*x_shape), "W": cases.randn(*w_shape)}
        if has_bias:
            inputs["B"] = cases.randn(w_shape[0])
        conv = F.conv2d if len(stride) == 2 else F.conv1d

        def run(t: Inputs) -> dict[str, Tensor]:
            return {"Y": conv(t["X"], t["W"], t.get("B"), stride, pad, dilation, group)}

        cases.add(name, attributes | {"group": group}, inputs, run)


def add_pool(cases: Cases) -> None:
    """MaxPool and AveragePool over X [N, C, H, W]; padding is never the maximum."""
    # name, X shape, kernel, stride, pad, dilation, ceil_mode
    max_table = [
        ("max_pool2d", (2, 3, 6, 4), (2, 2), (2, 2), (0, 0), (1, 1), 0),
        ("max_pool2d_overlap_pad", (1, 2, 5, 6), (3, 3), (2, 1), (1, 1), (1, 1), 0),
        ("max_pool2d_dilation", (1, 2, 7, 7), (2, 3), (1, 2), (0, 1), (2, 2), 0),
        ("max_pool2d_ceil", (1, 2, 5, 6), (2, 3), (2, 2), (0, 0), (1, 1), 1),
    ]
    for name, shape, kernel, stride, pad, dilation, ceil in max_table:
        attributes = {"op": "MaxPool", "kernel_shape": kernel, "strides": stride}
        attributes |= {"pads": pad + pad, "dilations": dilation, "ceil_mode": ceil}

        def run_max(t: Inputs) -> dict[str, Tensor]:
            return {"Y": F.max_pool2d(t["X"], kernel, stride, pad, dilation, bool(ceil))}

        cases.add(name, attributes, {"X": cases.randn(*shape)}, run_max)
    for include in (0, 1):
        kernel, stride, pad = (3, 2), (2, 1), (1, 1)
        attributes = {"op": "AveragePool", "kernel_shape": kernel, "strides": stride}
        attributes |= {"pads": pad + pad, "count_include_pad": include}

        def run_avg(t: Inputs) -> dict[str, Tensor]:
            counts_pad = bool(include)
            return {"Y": F.avg_pool2d(t["X"], kernel, stride, pad, False, counts_pad)}

        name = f"avg_pool2d_{'include' if include else 'exclude'}_pad"
        cases.add(name, attributes, {"X": cases.randn(2, 2, 5, 4)}, run_avg)


def add_norm(cases: Cases) -> None:
    """Batch, group, layer and RMS normalisation, all with a random scale."""

    def batch_norm(t: Inputs) -> dict[str, Tensor]:
        dims = [d for d in range(t["X"].dim()) if d != 1]
        mean, var = t["X"].mean(dims), t["X"].var(dims, correction=0)
        return {
            "Y": F.batch_norm(t["X"], None, None, t["scale"], t["B"], training=True, eps=1e-5),
            # ONNX: population variance, momentum is what is kept.
            "running_mean": t["input_mean"] * 0.9 + mean * 0.1,
            "running_var": t["input_var"] * 0.9 + var * 0.1,
        }

    attributes = {"op": "BatchNormalization", "epsilon": 1e-5, "momentum": 0.9, "training_mode": 1}
    for name, shape in (("batch_norm_nchw", (3, 4, 3, 2)), ("batch_norm_nc", (5, 4))):
        inputs = {"X": cases.randn(*shape) * 2 + 1, "scale": cases.randn(4), "B": cases.randn(4)}
        inputs |= {"input_mean": cases.randn(4), "input_var": cases.randn(4).abs() + 0.5}
        cases.add(name, attributes, inputs, batch_norm, ("input_mean", "input_var"))

    inputs = {"X": cases.randn(2, 6, 3, 2), "scale": cases.randn(6), "bias": cases.randn(6)}
    cases.add(
        "group_norm",
        {"op": "GroupNormalization", "epsilon": 1e-5, "num_groups": 3},
        inputs,
        lambda t: {"Y": F.group_norm(t["X"], 3, t["scale"], t["bias"], 1e-5)},
    )
    for axis, suffix in ((-1, ""), (-2, "_axis_-2")):
        shape = (5,) if axis == -1 else (3, 5)
        inputs = {"X": cases.randn(2, 3, 5) * 2 + 1, "Scale": cases.randn(*shape)}
        cases.add(
            f"layer_norm{suffix}",
            {"op": "LayerNormalization", "axis": axis, "epsilon": 1e-5},
            inputs | {"B": cases.randn(*shape)},
            lambda t: {"Y": F.layer_norm(t["X"], shape, t["Scale"], t["B"], 1e-5)},
        )
        inputs = {"X": cases.randn(2, 3, 5) * 2 + 1, "scale": cases.randn(*shape)}
        cases.add(
            f"rms_norm{suffix}",
            {"op": "RMSNormalization", "axis": axis, "epsilon": 1e-5},
            inputs,
            lambda t: {"Y": F.rms_norm(t["X"], shape, t["scale"], 1e-5)},
        )


def add_activation(cases: Cases) -> None:
    """Gelu in both forms, Softmax and LogSoftmax over the last and a middle axis."""
    for approximate in ("none", "tanh"):
        inputs = {"X": cases.randn(3, 7) * 2}
        attributes = {"op": "Gelu", "approximate": approximate}
        cases.add(
            f"gelu_{'exact' if approximate == 'none' else 'tanh'}",
            attributes,
            inputs,
            lambda t: {"Y": F.gelu(t["X"], approximate=approximate)},
        )
    for axis in (-1, 1):
        for op, fn in (("Softmax", torch.softmax), ("LogSoftmax", torch.log_softmax)):
            inputs = {"X": cases.randn(2, 3, 5) * 3}
            cases.add(
                f"{'softmax' if op == 'Softmax' else 'log_softmax'}_axis_{axis}",
                {"op": op, "axis": axis},
                inputs,
                lambda t: {"Y": fn(t["X"], dim=axis)},
            )


def add_cross_entropy(cases: Cases) -> None:
    """SoftmaxCrossEntropyLoss of scores [N, C, ...] and labels [N, ...].

    label_smoothing is PyTorch's addition: the target is (1 - s) * one_hot + s / C, the mean is
    still over the labels that are not ignored.
    """
    # name, scores shape, reduction, ignore_index or None, smoothing
    table = [
        ("cross_entropy_mean", (6, 5), "mean", None, 0.0),
        ("cross_entropy_ignore_sum", (6, 5), "sum", -100, 0.0),
        ("cross_entropy_ignore_mean", (6, 5), "mean", 2, 0.0),
        ("cross_entropy_none_2d", (2, 5, 3), "none", -100, 0.0),
        ("cross_entropy_smooth_sum", (6, 5), "sum", -100, 0.1),
        ("cross_entropy_smooth_mean", (6, 5), "mean", -100, 0.1),
    ]
    for name, shape, reduction, ignore, smoothing in table:
        attributes = {"op": "SoftmaxCrossEntropyLoss", "reduction": reduction}
        attributes |= {"label_smoothing": smoothing}
        labels = torch.randint(shape[1], (shape[0], *shape[2:]), generator=cases.gen)
        if ignore is not None:
            attributes["ignore_index"] = ignore
            labels.view(-1)[1] = ignore
            labels.view(-1)[-1] = ignore
        index = -100 if ignore is None else ignore

        def run(t: Inputs) -> dict[str, Tensor]:
            loss = F.cross_entropy(
                t["scores"],
                t["labels"],
                ignore_index=index,
                reduction=reduction,
                label_smoothing=smoothing,
            )
            return {"output": loss}

        cases.add(name, attributes, {"scores": cases.randn(*shape) * 2, "labels": labels}, run)


def main() -> None:
    """Writes both files. Keep the order: it fixes which random numbers a case gets."""
    cases = Cases()
    add_conv(cases)
    add_pool(cases)
    add_norm(cases)
    add_activation(cases)
    add_cross_entropy(cases)
    attention_cases.add_attention(cases)
    attention_cases.add_rotary(cases)
    metadata = golden_io.versions() | {"seed": SEED, "cases": sorted(cases.metadata)}
    golden_io.save("ops", cases.tensors, metadata | cases.metadata)
    make_adamw_golden.main()
    make_optimizer_golden.main()


if __name__ == "__main__":
    main()
