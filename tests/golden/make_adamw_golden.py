# SPDX-License-Identifier: Apache-2.0
"""Writes adamw.safetensors: ten updates of torch.optim.AdamW in fp64, with every state after each.

Called by make_op_golden.py. Two groups, `decay` (weight decay 0.1) and `no_decay` (0), hold the
same start values and get the same gradients, so that they differ by decay alone. Invariant: row k
of grad.NAME is what update k (0-based) consumed; row k of param.NAME and of the moments is the
state after it.
"""

import torch

import golden_io

SEED = 11
STEPS = 10
LR, BETAS, EPS, WEIGHT_DECAY = 0.01, (0.9, 0.999), 1e-8, 0.1
SHAPES = {"w": (5, 3), "b": (4,)}


def main() -> None:
    gen = torch.Generator().manual_seed(SEED)
    dtype = torch.float64
    start = {k: torch.randn(s, generator=gen, dtype=dtype) for k, s in SHAPES.items()}
    grads = {k: torch.randn((STEPS, *s), generator=gen, dtype=dtype) for k, s in SHAPES.items()}
    grads["w"][:, 0, 0] = 0.0  # never a gradient: only decay moves this element
    grads["b"][:, 1] *= 1e-9  # sqrt(v) comes near eps here

    params: dict[str, torch.Tensor] = {}
    groups = []
    for group, decay in (("decay", WEIGHT_DECAY), ("no_decay", 0.0)):
        members = {f"{group}.{k}": v.clone().requires_grad_() for k, v in start.items()}
        groups.append({"params": list(members.values()), "weight_decay": decay})
        params |= members
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)

    history: dict[str, list[torch.Tensor]] = {}
    for step in range(STEPS):
        for name, param in params.items():
            param.grad = grads[name.split(".")[1]][step].clone()
        optimizer.step()
        for name, param in params.items():
            state = optimizer.state[param]
            row = {"param": param, "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
            for kind, value in row.items():
                history.setdefault(f"{kind}.{name}", []).append(value.detach().clone())

    tensors = {name: torch.stack(rows) for name, rows in history.items()}
    for name in params:
        tensors[f"init.{name}"] = start[name.split(".")[1]]
        tensors[f"grad.{name}"] = grads[name.split(".")[1]]
    metadata = golden_io.versions() | {"seed": SEED, "steps": STEPS, "lr": LR, "betas": BETAS}
    metadata |= {"eps": EPS, "weight_decay": {"decay": WEIGHT_DECAY, "no_decay": 0.0}}
    golden_io.save("adamw", tensors, metadata)


if __name__ == "__main__":
    main()
