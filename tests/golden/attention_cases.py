# SPDX-License-Identifier: Apache-2.0
"""Attention and RotaryEmbedding cases of ops.safetensors.

Called by make_op_golden.py. Layout is [B, H, T, hd] throughout. Invariant: no case has a query row
whose keys are all masked, since ONNX and PyTorch leave that row's value open. PyTorch has no
rotary operator: that formula is ONNX's, differentiated by autograd.
"""

import torch
import torch.nn.functional as F

from gpt_twin import rotate, rope_tables
from op_cases import Cases, Inputs, Tensor


def _mask(cases: Cases, kind: str, shape: tuple[int, ...]) -> Tensor:
    """An additive mask (with some -inf) or a bool mask (true = seen); key 0 stays visible."""
    seen = torch.rand(shape, generator=cases.gen) > 0.4
    seen[..., 0] = True
    if kind == "bool":
        return seen
    return cases.randn(*shape).masked_fill(~seen, float("-inf"))


def add_attention(cases: Cases) -> None:
    """ONNX Attention-23: Q [B, H, T, hd], K and V [B, KV, S, hd]; the mask gets no gradient."""
    # name, H, KV, T, S, v head dim, causal, mask, mask shape, scale
    table = [
        ("attention_full", 2, 2, 4, 6, 4, 0, "", (), None),
        ("attention_causal", 2, 2, 5, 5, 4, 1, "", (), None),
        ("attention_causal_rect", 2, 2, 3, 5, 4, 1, "", (), None),
        ("attention_causal_gqa", 4, 2, 5, 5, 4, 1, "", (), None),
        ("attention_causal_mqa", 4, 1, 5, 5, 4, 1, "", (), None),
        ("attention_additive_mask", 2, 2, 4, 6, 4, 0, "additive", (4, 6), None),
        ("attention_additive_mask_4d", 2, 2, 4, 6, 4, 0, "additive", (2, 1, 4, 6), None),
        ("attention_bool_mask", 2, 2, 4, 6, 4, 0, "bool", (4, 6), None),
        ("attention_bool_mask_4d_gqa", 4, 2, 4, 6, 4, 0, "bool", (2, 4, 4, 6), None),
        ("attention_scale_wide_v", 2, 2, 4, 4, 6, 1, "", (), 0.3),
    ]
    for name, h, kv, t, s, v_dim, causal, kind, mask_shape, scale in table:
        inputs = {"Q": cases.randn(2, h, t, 4), "K": cases.randn(2, kv, s, 4)}
        inputs["V"] = cases.randn(2, kv, s, v_dim)
        if kind:
            inputs["attn_mask"] = _mask(cases, kind, mask_shape)
        attributes: dict[str, object] = {"op": "Attention", "is_causal": causal}
        if scale is not None:
            attributes["scale"] = scale

        def run(x: Inputs) -> dict[str, Tensor]:
            y = F.scaled_dot_product_attention(
                x["Q"],
                x["K"],
                x["V"],
                attn_mask=x.get("attn_mask"),
                is_causal=bool(causal),
                scale=scale,
                enable_gqa=True,
            )
            return {"Y": y}

        cases.add(name, attributes, inputs, run, ("attn_mask",))


def add_rotary(cases: Cases) -> None:
    """ONNX RotaryEmbedding-23: X [B, H, T, hd], caches [positions, rotated/2], ids [B, T]."""
    # name, interleaved, rotary_embedding_dim (0: all of hd)
    table = [
        ("rotary", 0, 0),
        ("rotary_interleaved", 1, 0),
        ("rotary_partial", 0, 4),
    ]
    for name, interleaved, rotary_dim in table:
        n_rotated = rotary_dim or 8
        cos, sin = rope_tables(10, n_rotated, torch.float64)
        inputs = {"X": cases.randn(2, 3, 5, 8), "cos_cache": cos, "sin_cache": sin}
        inputs["position_ids"] = torch.randint(10, (2, 5), generator=cases.gen)
        attributes: dict[str, object] = {"op": "RotaryEmbedding", "interleaved": interleaved}

        def run(x: Inputs) -> dict[str, Tensor]:
            rotated, rest = x["X"][..., :n_rotated], x["X"][..., n_rotated:]
            c = x["cos_cache"][x["position_ids"]][:, None]  # [B, 1, T, rotated/2]
            s = x["sin_cache"][x["position_ids"]][:, None]
            if interleaved:  # pairs are neighbours: sort them into halves, and back
                halves = torch.cat((rotated[..., ::2], rotated[..., 1::2]), -1)
                y1, y2 = rotate(halves, c, s).chunk(2, -1)
                y = torch.stack((y1, y2), -1).flatten(-2)
            else:
                y = rotate(rotated, c, s)
            return {"Y": torch.cat((y, rest), -1)}

        attributes["rotary_embedding_dim"] = rotary_dim
        cases.add(name, attributes, inputs, run, ("cos_cache", "sin_cache"))
