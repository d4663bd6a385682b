# SPDX-License-Identifier: Apache-2.0
"""Writes every golden file: the models here, operators and AdamW through make_op_golden.py.

A C++ test reads NAME.safetensors and must find the same logits, loss and gradients. Invariant: the
truth is computed once, in fp64, from weights that fp32 holds exactly. NAME_f64 holds it as it is;
NAME holds the same values rounded to fp32, so an fp32 host is compared with the truth and not with
PyTorch's rounding. How far PyTorch's own fp32 lies from the truth is in the metadata.
Run: python tests/golden/make_golden.py (README.md); running the tests needs no torch.
"""

from collections.abc import Callable
from dataclasses import asdict

import torch
import torch.nn.functional as F

import golden_io
import gpt_twin
import make_op_golden
import pose_twin
from gpt_twin import IGNORE_INDEX, GptConfig, Params
from pose_twin import PoseConfig

SEED = 20240517
BN_EPS = 1e-5
BN_KEEP = 0.9  # ONNX momentum: running = running * 0.9 + batch * 0.1

# A run takes parameters and inputs and returns outputs by name; "loss" is what is differentiated.
Run = Callable[[Params, Params], Params]

GPT_DEFINITION = (
    "weights [in, out], y = x @ W (+ b); pre-norm: x += proj(attn(norm1(x))), x += mlp(norm2(x)), "
    "norm_f, head (tied: x @ tok_emb.weight^T); norm eps 1e-5; attention causal, scale 1/sqrt(hd), "
    "query head h reads kv head h // (H/KV); rope theta 10000, halves rotated; swiglu "
    "down(silu(gate(x)) * up(x)); gelu exact; loss = mean cross-entropy over targets != -100"
)
CNN_DEFINITION = (
    "images [N,1,8,8]; conv1 3x3 pad 1 no bias, bn1, relu, maxpool 2x2 stride 2, conv2 3x3 pad 1 "
    "no bias, bn2, relu, global average pool, x @ fc.weight + fc.bias; batch norm in training: "
    "batch mean and population variance, eps 1e-5; buffer.* after one training forward from mean "
    "0, var 1: running * 0.9 + batch * 0.1 with population variance (ONNX); loss = mean "
    "cross-entropy of logits and labels"
)

POSE_DEFINITION = (
    "units conv no bias, batch norm (training, eps 1e-3), silu; backbone stem and down1..4 3x3 "
    "stride 2 pad 1, block x + b(a(x)) with a 1x1 to half, b 3x3; heads at p3, p4, p5 of units 3x3 "
    "0 and 1 and conv 1x1 out with bias; maps and losses as in plugins/models/pose/objectives.hpp; "
    "loss.NAME = sum / count; grad.NAME.PARAM = d loss.NAME / d PARAM, absent where PARAM has no "
    "part in it; buffer.* after one forward from mean 0, var 1: running * 0.97 + batch * 0.03"
)


def random_params(shapes: dict[str, tuple[int, ...]], gen: torch.Generator) -> Params:
    """Weights of std 0.2, norm scales around 1, biases around 0: no gradient is trivially zero."""
    params: Params = {}
    for name, shape in shapes.items():
        value = torch.randn(shape, generator=gen) * 0.2
        is_norm_scale = ".bias" not in name and len(shape) == 1
        params[name] = value + 1.0 if is_norm_scale else value
    return params


def evaluate(run: Run, params: Params, inputs: Params, dtype: torch.dtype) -> Params:
    """Returns {output.*, buffer.*, grad.*} of one forward and backward pass in `dtype`."""
    # clone(): the gradient must land on a leaf of this pass, also when the dtype already fits.
    leaves = {k: v.to(dtype).clone().requires_grad_() for k, v in params.items()}
    cast = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
    out = run(leaves, cast)
    out["output.loss"].backward()
    result = {k: v.detach() for k, v in out.items()}
    for name, leaf in leaves.items():
        assert leaf.grad is not None, f"no gradient reaches {name}"
        result[f"grad.{name}"] = leaf.grad
    return result


def settle_zeros(truth: Params) -> list[str]:
    """Sets gradients that are zero but for rounding to exactly 0 and returns their names.

    A bias on keys adds the same amount to every score of a query, which softmax does not see, so
    without rope the gradient of attn.k.bias is 0. A relative error means nothing there.
    """
    largest = max(v.abs().max().item() for k, v in truth.items() if k.startswith("grad."))
    zeros = [
        k for k, v in truth.items() if k.startswith("grad.") and v.abs().max() < 1e-13 * largest
    ]
    for key in zeros:
        assert key.endswith("attn.k.bias"), f"{key} is unexpectedly zero"
        truth[key] = torch.zeros_like(truth[key])
    return zeros


def write(name: str, run: Run, params: Params, inputs: Params, metadata: dict[str, object]) -> None:
    """Writes NAME and NAME_f64 from one fp64 evaluation."""
    write_truth(name, lambda dtype: evaluate(run, params, inputs, dtype), params, inputs, metadata)


def write_truth(name: str, results: Callable[[torch.dtype], Params], params: Params, inputs: Params,
                metadata: dict[str, object]) -> None:
    """Writes NAME and NAME_f64 from what `results` gives in fp64."""
    truth = results(torch.float64)
    fp32 = results(torch.float32)
    zeros = settle_zeros(truth)
    compared = {k: v for k, v in truth.items() if k not in zeros}
    errors = {k: golden_io.max_rel_err(fp32[k], v) for k, v in compared.items()}
    elementwise = [golden_io.max_elementwise_rel_err(fp32[k], v) for k, v in compared.items()]
    metadata = golden_io.versions() | {"seed": SEED} | metadata
    metadata |= {
        "fp32_max_rel_err": max(errors.values()),
        "fp32_max_rel_err_by_tensor": {k: float(f"{v:.3g}") for k, v in errors.items()},
        "fp32_max_elementwise_rel_err": max(elementwise),
        "zero_grads": zeros,
        "rel_err": "max|fp32 - truth| / max|truth| of a tensor; PyTorch's own fp32 pass",
    }
    stored = {f"param.{k}": v for k, v in params.items()} | inputs | truth
    for suffix, dtype in (("", torch.float32), ("_f64", torch.float64)):
        tensors = {k: v.to(dtype) if v.is_floating_point() else v for k, v in stored.items()}
        note = "computed in fp64" + ("" if suffix else ", rounded to fp32")
        golden_io.save(name + suffix, tensors, metadata | {"values": note})


def write_gpt(name: str, cfg: GptConfig, ignored: list[tuple[int, int]]) -> None:
    """`ignored`: (row, position) of targets that are IGNORE_INDEX."""
    gen = torch.Generator().manual_seed(SEED)
    params = random_params(gpt_twin.param_shapes(cfg), gen)
    tokens = torch.randint(cfg.vocab, (3, cfg.block + 1), generator=gen)
    inputs = {"input.tokens": tokens[:, :-1], "input.targets": tokens[:, 1:].clone()}
    for row, position in ignored:
        inputs["input.targets"][row, position] = IGNORE_INDEX

    def run(p: Params, x: Params) -> Params:
        scores = gpt_twin.logits(cfg, p, x["input.tokens"])
        loss = gpt_twin.cross_entropy(scores, x["input.targets"])
        return {"output.logits": scores, "output.loss": loss}

    config = asdict(cfg) | {"batch": 3, "ffn_hidden": cfg.hidden}
    write(name, run, params, inputs, {"config": config, "definition": GPT_DEFINITION})


def write_cnn(name: str) -> None:
    """The small image classifier with batch norm, in training mode."""
    shapes = {
        "conv1.weight": (16, 1, 3, 3),
        "bn1.weight": (16,),
        "bn1.bias": (16,),
        "conv2.weight": (32, 16, 3, 3),
        "bn2.weight": (32,),
        "bn2.bias": (32,),
        "fc.weight": (32, 10),
        "fc.bias": (10,),
    }
    gen = torch.Generator().manual_seed(SEED)
    params = random_params(shapes, gen)
    inputs = {
        "input.images": torch.rand((6, 1, 8, 8), generator=gen),
        "input.labels": torch.randint(10, (6,), generator=gen),
    }

    def batch_norm(p: Params, out: Params, bn: str, x: torch.Tensor) -> torch.Tensor:
        # PyTorch's own running_var takes the sample variance, ONNX's the population variance.
        batch = {"mean": x.mean((0, 2, 3)), "var": x.var((0, 2, 3), correction=0)}
        for which, start in (("mean", 0.0), ("var", 1.0)):
            running = start * BN_KEEP + batch[which] * (1 - BN_KEEP)
            out[f"buffer.{bn}.running_{which}"] = running
        w, b = p[f"{bn}.weight"], p[f"{bn}.bias"]
        return F.batch_norm(x, None, None, w, b, training=True, eps=BN_EPS)

    def run(p: Params, x: Params) -> Params:
        out: Params = {}
        h = F.conv2d(x["input.images"], p["conv1.weight"], padding=1)
        h = F.max_pool2d(F.relu(batch_norm(p, out, "bn1", h)), 2, 2)
        h = F.conv2d(h, p["conv2.weight"], padding=1)
        h = F.relu(batch_norm(p, out, "bn2", h)).mean((2, 3))
        out["output.logits"] = h @ p["fc.weight"] + p["fc.bias"]
        out["output.loss"] = F.cross_entropy(out["output.logits"], x["input.labels"])
        return out

    write(name, run, params, inputs, {"definition": CNN_DEFINITION})


def pose_targets(cfg: PoseConfig, batch: int, gen: torch.Generator) -> Params:
    """Random maps in which about a third of the cells are responsible, and two thirds of those
    have labelled joints."""
    maps: Params = {}
    for level, scale in enumerate(pose_twin.SCALES):
        side = cfg.size // (8 << level)
        value = torch.randn((batch, cfg.map_channels(), side, side), generator=gen) * 1.5
        mask = (torch.rand((batch, 1, side, side), generator=gen) < 0.35).float()
        mask[0, 0, 0, 0] = 1.0
        labelled = mask * (torch.rand(mask.shape, generator=gen) < 0.67)
        labelled[0, 0, 0, 0] = 1.0
        flags = torch.randint(1, 3, (batch, cfg.joints, side, side), generator=gen).float()
        value[:, :4] *= mask
        value[:, 4:5] = mask
        value[:, 5 : -cfg.joints] *= labelled
        value[:, -cfg.joints :] = flags * labelled
        maps[f"targets.{scale}"] = value
    return maps


def write_pose(name: str) -> None:
    """Three objectives over one batch, with the gradients of each."""
    cfg = PoseConfig(size=64, channels=(4, 4, 6, 6, 8), stems=(5, 3, 4), joints=3)
    gen = torch.Generator().manual_seed(SEED)
    params = random_params(pose_twin.param_shapes(cfg), gen)
    inputs = {"images": torch.rand((3, 3, cfg.size, cfg.size), generator=gen)}
    inputs |= pose_targets(cfg, 3, gen)

    def evaluate_pose(dtype: torch.dtype) -> Params:
        leaves = {k: v.to(dtype).clone().requires_grad_() for k, v in params.items()}
        cast = {k: v.to(dtype) for k, v in inputs.items()}
        running: Params = {}
        out = pose_twin.forward(leaves, cast["images"], pose_twin.onnx_norm(running))
        result = {f"output.{k}": v.detach() for k, v in out.items()}
        result |= {f"buffer.{k}": v for k, v in running.items()}
        for objective, loss in pose_twin.losses(cfg, out, cast).items():
            result[f"loss.{objective}"] = loss.detach()
            found = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True,
                                        allow_unused=True)
            for parameter, gradient in zip(leaves, found):
                if gradient is not None:
                    result[f"grad.{objective}.{parameter}"] = gradient
        return result

    config = {"channels": cfg.channels, "stems": cfg.stems, "joints": cfg.joints}
    metadata = {"config": config, "size": cfg.size, "definition": POSE_DEFINITION}
    write_truth(name, evaluate_pose, params, {f"input.{k}": v for k, v in inputs.items()}, metadata)


def main() -> None:
    torch.set_num_threads(1)  # one order of summation, so that files do not depend on the machine
    small = GptConfig(vocab=37, block=16, layers=2, heads=4, kv_heads=2, dim=32)
    layer = GptConfig(
        vocab=37,
        block=16,
        layers=2,
        heads=4,
        kv_heads=4,
        dim=32,
        ffn="gelu",
        norm="layer",
        positions="learned",
        tied=False,
        bias=True,
    )
    write_gpt("gpt_rms_rope_swiglu_gqa_tied", small, ignored=[])
    write_gpt("gpt_layer_learned_gelu", layer, ignored=[(0, 0), (1, 7), (2, 14), (2, 15)])
    write_cnn("cnn")
    write_pose("pose")
    make_op_golden.main()


if __name__ == "__main__":
    main()
