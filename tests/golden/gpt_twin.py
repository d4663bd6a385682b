# SPDX-License-Identifier: Apache-2.0
"""The PyTorch twin of the `gpt` model plugin, as plain functions over a dict of tensors.

Used by make_golden.py (any dtype, small) and shakespeare_twin.py (fp32, trained). Invariant: names
and shapes are those of the plugin, weights are stored [in, out] (y = x @ W, ONNX MatMul).
There is no dropout here: goldens and the twin run are deterministic functions of their inputs.
Dims: B batch, T tokens, D dim, H heads, KV key/value heads, V vocab, F hidden of the mlp.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

NORM_EPS = 1e-5
ROPE_THETA = 10000.0
IGNORE_INDEX = -100

Params = dict[str, torch.Tensor]


@dataclass(frozen=True)
class GptConfig:
    """Options of the plugin, under the plugin's names."""

    vocab: int
    block: int
    layers: int
    heads: int
    kv_heads: int
    dim: int
    ffn: str = "swiglu"  # or "gelu"
    norm: str = "rms"  # or "layer"
    positions: str = "rope"  # or "learned"
    tied: bool = True
    bias: bool = False

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads

    @property
    def hidden(self) -> int:
        """4D for gelu; 8D/3 rounded up to a multiple of 8 for swiglu (three matrices, not two)."""
        return 4 * self.dim if self.ffn == "gelu" else -(-(8 * self.dim) // 24) * 8


def param_shapes(cfg: GptConfig) -> dict[str, tuple[int, ...]]:
    """Returns every parameter's shape, in the order in which the model uses them."""
    d, kv_dim = cfg.dim, cfg.kv_heads * cfg.head_dim
    shapes: dict[str, tuple[int, ...]] = {"tok_emb.weight": (cfg.vocab, d)}

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = (d,)
        if cfg.norm == "layer":
            shapes[f"{name}.bias"] = (d,)

    def linear(name: str, n_in: int, n_out: int) -> None:
        shapes[f"{name}.weight"] = (n_in, n_out)
        if cfg.bias:
            shapes[f"{name}.bias"] = (n_out,)

    if cfg.positions == "learned":
        shapes["pos_emb.weight"] = (cfg.block, d)
    for i in range(cfg.layers):
        block = f"blocks.{i}"
        norm(f"{block}.norm1")
        linear(f"{block}.attn.q", d, d)
        linear(f"{block}.attn.k", d, kv_dim)
        linear(f"{block}.attn.v", d, kv_dim)
        linear(f"{block}.attn.proj", d, d)
        norm(f"{block}.norm2")
        if cfg.ffn == "swiglu":
            linear(f"{block}.mlp.gate", d, cfg.hidden)
        linear(f"{block}.mlp.up", d, cfg.hidden)
        linear(f"{block}.mlp.down", cfg.hidden, d)
    norm("norm_f")
    if not cfg.tied:
        shapes["head.weight"] = (d, cfg.vocab)  # the head never has a bias
    return shapes


def rope_tables(
    n_tokens: int, head_dim: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cos and sin of pos * theta^(-2j/hd), [T, hd/2]; angles are always taken in fp64."""
    j = torch.arange(head_dim // 2, dtype=torch.float64)
    freq = ROPE_THETA ** (-2.0 * j / head_dim)
    angle = torch.arange(n_tokens, dtype=torch.float64)[:, None] * freq
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of x [B, H, T, hd]: the two halves of hd are the pairs (not interleaved)."""
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


def _norm(cfg: GptConfig, p: Params, name: str, x: torch.Tensor) -> torch.Tensor:
    weight = p[f"{name}.weight"]
    if cfg.norm == "rms":
        return F.rms_norm(x, weight.shape, weight, NORM_EPS)
    return F.layer_norm(x, weight.shape, weight, p[f"{name}.bias"], NORM_EPS)


def _linear(p: Params, name: str, x: torch.Tensor) -> torch.Tensor:
    y = x @ p[f"{name}.weight"]
    bias = p.get(f"{name}.bias")
    return y if bias is None else y + bias


def _attention(
    cfg: GptConfig,
    p: Params,
    name: str,
    x: torch.Tensor,
    rope: tuple[torch.Tensor, torch.Tensor] | None,
) -> torch.Tensor:
    """Causal attention, scale 1/sqrt(hd); query head h reads key/value head h // (H / KV)."""
    b, t, _ = x.shape

    def split(part: str, n_heads: int) -> torch.Tensor:
        y = _linear(p, f"{name}.{part}", x)
        return y.view(b, t, n_heads, cfg.head_dim).transpose(1, 2)  # [B, H, T, hd]

    q, k, v = split("q", cfg.heads), split("k", cfg.kv_heads), split("v", cfg.kv_heads)
    if rope is not None:
        q, k = rotate(q, *rope), rotate(k, *rope)
    y = F.scaled_dot_product_attention(
        q, k, v, is_causal=True, scale=1.0 / math.sqrt(cfg.head_dim), enable_gqa=True
    )
    return _linear(p, f"{name}.proj", y.transpose(1, 2).reshape(b, t, cfg.dim))


def _mlp(cfg: GptConfig, p: Params, name: str, x: torch.Tensor) -> torch.Tensor:
    up = _linear(p, f"{name}.up", x)
    if cfg.ffn == "swiglu":
        return _linear(p, f"{name}.down", F.silu(_linear(p, f"{name}.gate", x)) * up)
    return _linear(p, f"{name}.down", F.gelu(up))  # exact: x * (1 + erf(x / sqrt(2))) / 2


def logits(cfg: GptConfig, p: Params, tokens: torch.Tensor) -> torch.Tensor:
    """Returns logits [B, T, V] of tokens [B, T]; pre-norm blocks, computed in the params' dtype."""
    t = tokens.shape[1]
    x = p["tok_emb.weight"][tokens]
    rope = None
    if cfg.positions == "learned":
        x = x + p["pos_emb.weight"][:t]
    else:
        rope = rope_tables(t, cfg.head_dim, x.dtype)
    for i in range(cfg.layers):
        block = f"blocks.{i}"
        x = x + _attention(cfg, p, f"{block}.attn", _norm(cfg, p, f"{block}.norm1", x), rope)
        x = x + _mlp(cfg, p, f"{block}.mlp", _norm(cfg, p, f"{block}.norm2", x))
    x = _norm(cfg, p, "norm_f", x)
    return x @ (p["tok_emb.weight"].T if cfg.tied else p["head.weight"])


def cross_entropy(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the targets that are not IGNORE_INDEX. scores [..., V], targets [...]."""
    return F.cross_entropy(
        scores.reshape(-1, scores.shape[-1]), targets.reshape(-1), ignore_index=IGNORE_INDEX
    )
