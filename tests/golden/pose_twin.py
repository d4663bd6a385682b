# SPDX-License-Identifier: Apache-2.0
"""The PyTorch twin of the `pose` model plugin, as plain functions over a dict of tensors.

Used by make_golden.py (any dtype, tiny) and tests/bench/pose_side_by_side (pose320, timed).
Invariant: names and shapes are those of the plugin. Outputs and target maps are dicts by name,
"box.p3", "targets.p3"; the layout of a map is described in plugins/models/pose/objectives.hpp.
Dims: B batch, C channels, h, w cells of a scale, K classes, J joints.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

BN_EPS = 1e-3
BN_KEEP = 0.97  # ONNX momentum: running = running * 0.97 + batch * 0.03
SCALES = ("p3", "p4", "p5")
BRANCHES = ("box", "class", "point")

Params = dict[str, torch.Tensor]
# Batch norm in training: (name, x, scale, bias) -> y. Running statistics are its own affair.
Norm = Callable[[str, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class PoseConfig:
    """Options of the plugin, under the plugin's names, and the size of the images."""

    size: int
    channels: tuple[int, ...] = (16, 32, 64, 128, 256)
    stems: tuple[int, ...] = (64, 64, 48)
    joints: int = 17
    classes: int = 1

    def branch_outputs(self) -> dict[str, int]:
        return {"box": 4, "class": self.classes, "point": 3 * self.joints}

    def map_channels(self) -> int:
        return 4 + self.classes + 3 * self.joints


def units(cfg: PoseConfig) -> dict[str, tuple[int, int, int]]:
    """(in, out, kernel) of every convolution with batch norm, in the order of use."""
    c = cfg.channels
    found = {"backbone.stem": (3, c[0], 3)}
    for k in range(4):
        found[f"backbone.down{k + 1}"] = (c[k], c[k + 1], 3)
        found[f"backbone.block{k + 1}.a"] = (c[k + 1], c[k + 1] // 2, 1)
        found[f"backbone.block{k + 1}.b"] = (c[k + 1] // 2, c[k + 1], 3)
    for scale, features in zip(SCALES, c[2:]):
        for branch, width in zip(BRANCHES, cfg.stems):
            found[f"heads.{scale}.{branch}.0"] = (features, width, 3)
            found[f"heads.{scale}.{branch}.1"] = (width, width, 3)
    return found


def param_shapes(cfg: PoseConfig) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (n_in, n_out, k) in units(cfg).items():
        shapes[f"{name}.weight"] = (n_out, n_in, k, k)
        shapes[f"{name}.norm.weight"] = (n_out,)
        shapes[f"{name}.norm.bias"] = (n_out,)
    for scale in SCALES:
        for (branch, n_out), width in zip(cfg.branch_outputs().items(), cfg.stems):
            shapes[f"heads.{scale}.{branch}.out.weight"] = (n_out, width, 1, 1)
            shapes[f"heads.{scale}.{branch}.out.bias"] = (n_out,)
    return shapes


def forward(p: Params, images: torch.Tensor, norm: Norm) -> Params:
    """Outputs of a training forward pass."""

    def unit(name: str, x: torch.Tensor, stride: int = 1) -> torch.Tensor:
        weight = p[f"{name}.weight"]
        x = F.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2)
        name = f"{name}.norm"
        return F.silu(norm(name, x, p[f"{name}.weight"], p[f"{name}.bias"]))

    x, out = unit("backbone.stem", images, stride=2), {}
    for k in range(4):
        x = unit(f"backbone.down{k + 1}", x, stride=2)
        block = f"backbone.block{k + 1}"
        x = x + unit(f"{block}.b", unit(f"{block}.a", x))
        if k == 0:
            continue
        scale = SCALES[k - 1]
        for branch in BRANCHES:
            path = f"heads.{scale}.{branch}"
            y = unit(f"{path}.1", unit(f"{path}.0", x))
            y = F.conv2d(y, p[f"{path}.out.weight"], p[f"{path}.out.bias"])
            out[f"{branch}.{scale}"] = y
    return out


def onnx_norm(running: Params) -> Norm:
    """Moves `running` by ONNX's rule, with the population variance, from mean 0 and variance 1."""

    def norm(name: str, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        batch = {"mean": x.detach().mean((0, 2, 3)), "var": x.detach().var((0, 2, 3), correction=0)}
        for which, start in (("mean", 0.0), ("var", 1.0)):
            running[f"{name}.running_{which}"] = start * BN_KEEP + batch[which] * (1 - BN_KEEP)
        return F.batch_norm(x, None, None, scale, bias, training=True, eps=BN_EPS)

    return norm


def torch_norm(cfg: PoseConfig) -> Norm:
    """PyTorch's own, with running statistics that it moves itself (by the sample variance)."""
    mean = {f"{name}.norm": torch.zeros(size[1]) for name, size in units(cfg).items()}
    var = {name: torch.ones_like(value) for name, value in mean.items()}

    def norm(name: str, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, mean[name], var[name], scale, bias, training=True,
                            momentum=1 - BN_KEEP, eps=BN_EPS)

    return norm


def losses(cfg: PoseConfig, out: Params, targets: Params) -> dict[str, torch.Tensor]:
    """Each objective's mean: its sum over scales divided by its count."""
    total: dict[str, list[torch.Tensor]] = {branch: [] for branch in BRANCHES}
    count: dict[str, list[torch.Tensor]] = {branch: [] for branch in BRANCHES}
    k, j = cfg.classes, cfg.joints
    for scale in SCALES:
        box, cls, place, flag = targets[f"targets.{scale}"].split((4, k, 2 * j, j), 1)
        mask = cls.sum(1, keepdim=True)
        total["box"].append((smooth_l1(out[f"box.{scale}"], box) * mask).sum())
        count["box"].append(mask.sum())
        scores = out[f"class.{scale}"]
        total["class"].append(
            F.binary_cross_entropy_with_logits(scores, cls, reduction="sum"))
        count["class"].append(cls.sum())
        labelled, in_sight = (flag > 0).to(flag), (flag > 1).to(flag)
        places, logits = out[f"point.{scale}"].split((2 * j, j), 1)
        both = torch.cat((in_sight, in_sight), 1)
        sight = F.binary_cross_entropy_with_logits(logits, in_sight, reduction="none")
        total["point"].append((smooth_l1(places, place) * both).sum() + (sight * labelled).sum())
        count["point"].append(labelled.sum())
    return {b: sum(total[b]) / sum(count[b]).clamp(min=1) for b in BRANCHES}


def smooth_l1(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.smooth_l1_loss(x, target, reduction="none", beta=1.0)


def macs(cfg: PoseConfig) -> dict[str, int]:
    """Multiply-accumulates of one image's forward pass: "first" (unit), "backbone" (others) and
    each branch.

    Backward takes twice as many: once for the gradient to the input, which the first unit does not
    need, once for that to the weight.
    """
    side, cells = cfg.size, {}
    for k in range(5):
        side = (side + 1) // 2
        cells[k] = side * side
    work = {"first": 0, "backbone": 0} | dict.fromkeys(BRANCHES, 0)
    for name, (n_in, n_out, k) in units(cfg).items():
        part = name.split(".")
        if part[0] == "backbone":
            level = 0 if part[1] == "stem" else int(part[1][-1])
            work["backbone" if level else "first"] += cells[level] * n_in * n_out * k * k
        else:
            work[part[2]] += cells[SCALES.index(part[1]) + 2] * n_in * n_out * k * k
    for scale in SCALES:
        for (branch, n_out), width in zip(cfg.branch_outputs().items(), cfg.stems):
            work[branch] += cells[SCALES.index(scale) + 2] * width * n_out
    return work
