# SPDX-License-Identifier: Apache-2.0
"""Trains the PyTorch twin of configs/shakespeare.yaml and reports its final validation loss.

Same text, initial weights (--init), windows (philox.py), model (gpt_twin.py), optimizer, schedule
and clipping as the host, all in fp32: what is left is the order of summation. Invariant: every
batch is a function of (seed, step, row), so the run repeats. Prints one JSON object on stdout,
progress on stderr, and writes the loss curve to --out.
Example: python tests/golden/shakespeare_twin.py --text data/shakespeare.txt --init init.safetensors
"""

import argparse
import hashlib
import json
import math
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

import gpt_twin
import philox
from gpt_twin import GptConfig, Params

EVAL_BATCH = 64  # windows in one forward pass of evaluation; does not change the result's meaning
INIT_STD = 0.02


def parse_args() -> argparse.Namespace:
    """Defaults are those of configs/shakespeare.yaml."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--text", type=Path, required=True, help="text file to learn")
    p.add_argument("--init", type=Path, help="initial weights (safetensors, fp32, plugin's names)")
    p.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    p.add_argument("--seed", type=int, default=1337, help="of the windows, 64 bits unsigned")
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--block", type=int, default=64)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--kv-heads", type=int, default=4)
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--ffn", choices=("swiglu", "gelu"), default="swiglu")
    p.add_argument("--norm", choices=("rms", "layer"), default="rms")
    p.add_argument("--positions", choices=("rope", "learned"), default="rope")
    p.add_argument("--tied", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--bias", action=argparse.BooleanOptionalAction, default=False)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.95))
    p.add_argument("--eps", type=float, default=1e-8)
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--warmup", type=int, default=100)
    p.add_argument("--min-ratio", type=float, default=0.1, help="last rate / lr")
    p.add_argument("--clip", type=float, default=1.0, help="global norm; 0: no clipping")
    p.add_argument("--eval-windows", type=int, default=0, help="at most so many; 0: all there are")
    p.add_argument("--train-every", type=int, default=100, help="steps between recorded losses")
    p.add_argument("--eval-every", type=int, default=500, help="steps between evaluations")
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


def load_tokens(path: Path) -> tuple[torch.Tensor, int]:
    """Returns token ids and the vocabulary size: ids number the distinct bytes in byte order."""
    data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    characters, ids = np.unique(data, return_inverse=True)
    return torch.from_numpy(ids.astype(np.int64)), len(characters)


def initial_params(cfg: GptConfig, init: Path | None, seed: int) -> Params:
    """Reads --init and checks names, shapes and dtype; without it draws normal(0, 0.02)."""
    shapes = gpt_twin.param_shapes(cfg)
    if init is None:
        gen = torch.Generator().manual_seed(seed)
        params = {k: torch.randn(s, generator=gen) * INIT_STD for k, s in shapes.items()}
        for name, shape in shapes.items():
            if len(shape) == 1:  # norms start as the identity, biases at 0
                params[name] = torch.full(shape, 0.0 if name.endswith(".bias") else 1.0)
        return params
    params = load_file(init)
    missing, extra = shapes.keys() - params.keys(), params.keys() - shapes.keys()
    if missing or extra:
        sys.exit(f"{init}: missing {sorted(missing)}, unknown {sorted(extra)}")
    for name, shape in shapes.items():
        got = params[name]
        if tuple(got.shape) != shape or got.dtype != torch.float32:
            sys.exit(f"{init}: {name} is {got.dtype} {tuple(got.shape)}, want float32 {shape}")
    return {name: params[name] for name in shapes}


def train_batch(
    tokens: torch.Tensor, args: argparse.Namespace, step: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns inputs and next-token targets [B, T] of 0-based `step`."""
    n_starts = len(tokens) - args.block
    starts = [philox.window_start(args.seed, step, row, n_starts) for row in range(args.batch)]
    windows = torch.stack([tokens[s : s + args.block + 1] for s in starts])
    return windows[:, :-1], windows[:, 1:]


def learning_rate(args: argparse.Namespace, update: int) -> float:
    """warmup_cosine at 0-based `update`: linear up to lr, then a half cosine down to ratio * lr."""
    if update < args.warmup:
        return args.lr * (update + 1) / args.warmup
    span = max(1, args.steps - args.warmup)
    progress = min(1.0, (update - args.warmup) / span)
    r = args.min_ratio
    return args.lr * (r + (1 - r) / 2 * (1 + math.cos(math.pi * progress)))


@torch.no_grad()
def validation_loss(
    cfg: GptConfig, params: Params, tokens: torch.Tensor, eval_windows: int
) -> tuple[float, int]:
    """Returns the mean loss over consecutive windows from the start, and how many there were."""
    t = cfg.block
    count = (len(tokens) - 1) // t
    if eval_windows > 0:
        count = min(count, eval_windows)
    x = tokens[: count * t].view(count, t)
    y = tokens[1 : count * t + 1].view(count, t)
    total = 0.0
    for k in range(0, count, EVAL_BATCH):
        scores = gpt_twin.logits(cfg, params, x[k : k + EVAL_BATCH])
        targets = y[k : k + EVAL_BATCH]
        total += gpt_twin.cross_entropy(scores, targets).item() * targets.numel()
    return total / (count * t), count


def make_optimizer(args: argparse.Namespace, params: Params) -> torch.optim.AdamW:
    """Decay acts on parameters of rank >= 2 only."""
    groups = [
        {"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": args.weight_decay},
        {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=args.lr, betas=tuple(args.betas), eps=args.eps)


def train(
    args: argparse.Namespace, cfg: GptConfig, train_part: torch.Tensor, val_part: torch.Tensor
) -> dict[str, object]:
    """Runs all steps; returns the curves, the final loss and the times.

    `train` rows are [step, loss of that step's batch before its update]; `val` rows are [updates
    made, validation loss], so that [0, ...] is the untrained model.
    """
    params = initial_params(cfg, args.init, args.seed)
    for p in params.values():
        p.requires_grad_()
    optimizer = make_optimizer(args, params)
    loss, windows = validation_loss(cfg, params, val_part, args.eval_windows)
    train_curve: list[list[float]] = []
    val_curve: list[list[float]] = [[0, loss]]
    times_ms: list[float] = []
    for step in range(args.steps):
        began = time.perf_counter()
        x, y = train_batch(train_part, args, step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(args, step)
        optimizer.zero_grad()
        batch_loss = gpt_twin.cross_entropy(gpt_twin.logits(cfg, params, x), y)
        batch_loss.backward()
        if args.clip > 0:  # scale by min(1, clip / (norm + 1e-6))
            torch.nn.utils.clip_grad_norm_(list(params.values()), args.clip)
        optimizer.step()
        times_ms.append((time.perf_counter() - began) * 1e3)

        done, is_last = step + 1, step + 1 == args.steps
        if step % args.train_every == 0 or is_last:
            train_curve.append([step, batch_loss.item()])
            print(f"step {step}: train loss {batch_loss.item():.4f}", file=sys.stderr)
        if done % args.eval_every == 0 or is_last:
            loss, _ = validation_loss(cfg, params, val_part, args.eval_windows)
            val_curve.append([done, loss])
            print(f"after {done} updates: validation loss {loss:.4f}", file=sys.stderr)
    step_ms = statistics.median(times_ms)
    return {
        "final_val_loss": val_curve[-1][1],
        "val_windows": windows,
        "step_ms_median": round(step_ms, 3),
        "tokens_per_s": round(args.batch * args.block / step_ms * 1e3),
        "train_seconds": round(sum(times_ms) / 1e3, 1),
        "train": train_curve,
        "val": val_curve,
    }


def digest(path: Path | None) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else None


def main() -> None:
    args = parse_args()
    philox.check_known_answers()
    torch.set_num_threads(args.threads)
    tokens, vocab = load_tokens(args.text)
    n_train = len(tokens) * 9 // 10
    if n_train <= args.block or len(tokens) - n_train <= args.block:
        sys.exit(f"{args.text}: {len(tokens)} characters are too few for block {args.block}")
    cfg = GptConfig(
        vocab=vocab,
        block=args.block,
        layers=args.layers,
        heads=args.heads,
        kv_heads=args.kv_heads,
        dim=args.dim,
        ffn=args.ffn,
        norm=args.norm,
        positions=args.positions,
        tied=args.tied,
        bias=args.bias,
    )
    result = train(args, cfg, tokens[:n_train], tokens[n_train:])
    curves = {key: result.pop(key) for key in ("train", "val")}
    paths = ("text", "init", "out")  # a digest says which file; a path says whose machine
    options = {k: v for k, v in vars(args).items() if k not in paths}
    about = {
        "torch": torch.__version__.split("+")[0],
        "text_sha256": digest(args.text),
        "init_sha256": digest(args.init),
        "n_train": n_train,
        "n_val": len(tokens) - n_train,
        "model": asdict(cfg),
        "options": options,
    }
    args.out.write_text(json.dumps(result | about | curves, indent=1) + "\n")
    print(json.dumps(result | {"text_sha256": about["text_sha256"], "vocab": vocab}))


if __name__ == "__main__":
    main()
