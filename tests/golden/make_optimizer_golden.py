# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.safetensors: 100 updates of each optimizer in fp64, on random shapes.

Called by make_op_golden.py. `torch.*` cases come from torch.optim; `own.*` cases are the formulas
that the plugins cite, written out here in numpy order, for what torch lacks or computes in
bfloat16. Row k of CASE.grad is what update k (from 0) consumed; CASE.param holds the parameter
after the updates of KEPT; the metadata holds each case's options as they stand in YAML.

    make_optimizer_golden.py --seed N --output PATH

writes PATH.safetensors, with shapes and numbers drawn anew: golden_optimizers reads the one
that GRADRACK_OPTIMIZER_GOLDEN names.
"""

import argparse

import json

import torch

import golden_io

SEED, STEPS, KEPT = 23, 100, (1, 2, 10, 100)
DTYPE = torch.float64


def torch_case(optimizer, **options):
    def run(start, grads):
        param = start.clone().requires_grad_()
        made = optimizer([param], **options)
        out = []
        for grad in grads:
            param.grad = grad.clone()
            made.step()
            out.append(param.detach().clone())
        return out
    return run


def newton_schulz(g, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / g.norm()
    if g.shape[0] > g.shape[1]:
        x = x.T
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if g.shape[0] > g.shape[1] else x


def own_muon(start, grads, lr, mu=0.95, decay=0.1):
    """[out, in], scale sqrt(max(1, out / in))."""
    p, m, out = start.clone(), torch.zeros_like(start), []
    scale = max(1.0, start.shape[0] / start.shape[1]) ** 0.5
    for g in grads:
        m = mu * m + (1 - mu) * g
        p = p * (1 - lr * decay) - lr * scale * newton_schulz((1 - mu) * g + mu * m)
        out.append(p.clone())
    return out


def own_lion(start, grads, lr, beta1=0.9, beta2=0.99, decay=0.1):
    p, m, out = start.clone(), torch.zeros_like(start), []
    for g in grads:
        p = p * (1 - lr * decay) - lr * torch.sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g
        out.append(p.clone())
    return out


def own_schedule_free(start, grads, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
    """The parameter (y); see own_schedule_free_x for the average."""
    y, z, x, v, total, out = start.clone(), start.clone(), start.clone(), 0, 0.0, []
    for t, g in enumerate(grads, 1):
        v = beta2 * v + (1 - beta2) * g * g
        z = z - lr * (decay * y) - lr * g / ((v / (1 - beta2**t)).sqrt() + eps)
        total += lr * lr
        share = lr * lr / total
        x = (1 - share) * x + share * z
        y = beta1 * x + (1 - beta1) * z
        out.append(y.clone())
    return out


def drawn(shape, gen):
    """A shape of that rank; Muon's matrices stay as wide or tall as they are."""
    dims = torch.randint(1, 48, (len(shape),), generator=gen).tolist()
    return tuple(sorted(dims, reverse=shape[0] > shape[-1])) if len(shape) == 2 else tuple(dims)


def main(seed=SEED, output=None) -> None:
    gen = torch.Generator().manual_seed(seed)
    optim = torch.optim
    cases = {
        "torch.sgd": ((7, 5), torch_case(optim.SGD, lr=0.05), "sgd", {}, 0.05),
        "torch.sgd_momentum": (
            (33,), torch_case(optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.01), "sgd",
            {"momentum": "0.9", "weight_decay": "0.01"}, 0.05),
        "torch.sgd_nesterov": (
            (2, 3, 5), torch_case(optim.SGD, lr=0.05, momentum=0.8, nesterov=True), "sgd",
            {"momentum": "0.8", "nesterov": "true"}, 0.05),
        "torch.adamw": (
            (17, 3), torch_case(optim.AdamW, lr=0.01, betas=(0.9, 0.95), weight_decay=0.1),
            "adamw", {"betas": "[0.9, 0.95]", "weight_decay": "0.1"}, 0.01),
        "torch.adamw_amsgrad": (
            (4, 9), torch_case(optim.AdamW, lr=0.01, weight_decay=0.05, amsgrad=True), "adamw",
            {"weight_decay": "0.05", "amsgrad": "true"}, 0.01),
        # bfloat16 inside: the test knows a wide tolerance for this one.
        "torch.muon": (
            (12, 20), torch_case(optim.Muon, lr=0.01, weight_decay=0.1, momentum=0.95), "muon",
            {"weight_decay": "0.1", "layout": "out_in"}, 0.01),
        "own.muon_tall": (
            (15, 6), lambda s, g: own_muon(s, g, 0.02), "muon",
            {"weight_decay": "0.1", "layout": "out_in"}, 0.02),
        "own.muon_wide": (
            (5, 11), lambda s, g: own_muon(s, g, 0.02), "muon",
            {"weight_decay": "0.1", "layout": "out_in"}, 0.02),
        "own.lion": (
            (21,), lambda s, g: own_lion(s, g, 0.003), "lion", {"weight_decay": "0.1"}, 0.003),
        "own.schedule_free": (
            (6, 4), lambda s, g: own_schedule_free(s, g, 0.01), "schedule_free_adamw",
            {"weight_decay": "0.01"}, 0.01),
    }
    tensors, known = {}, {}
    for name, (shape, run, plugin, options, lr) in cases.items():
        if output is not None:
            shape = drawn(shape, gen)
        start = torch.randn(shape, generator=gen, dtype=DTYPE)
        grads = torch.randn((STEPS, *shape), generator=gen, dtype=DTYPE)
        params = run(start, list(grads))
        tensors[f"{name}.init"] = start
        tensors[f"{name}.grad"] = grads
        tensors[f"{name}.param"] = torch.stack([params[k - 1] for k in KEPT])
        known[name] = {"plugin": plugin, "options": options, "lr": lr}
    metadata = golden_io.versions() | {"seed": seed, "kept": KEPT, "cases": json.dumps(known)}
    golden_io.save(output or "optimizers", tensors, metadata)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", help="path of another file, without .safetensors")
    main(**vars(parser.parse_args()))
