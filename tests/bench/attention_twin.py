#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled_dot_product_attention on the shapes of attention.cpp, packed heads, causal.

    attention_twin.py [threads [repeats]]

One line a shape and dtype: least and median milliseconds of forward and of backward.
"""
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

SHAPES = {"tiny": (16, 128, 8, 32), "small": (16, 256, 6, 64), "gpt2ish": (4, 256, 8, 64),
          "long512": (4, 512, 8, 64), "long2048": (1, 2048, 8, 64)}


def measure(shape, dtype, repeats):
    batch, length, heads, size = shape
    x = [torch.randn(batch, length, heads * size, dtype=dtype, requires_grad=True)
         for _ in range(3)]
    gy = torch.randn(batch, length, heads * size, dtype=dtype)
    forward, backward = [], []
    for k in range(repeats + 2):
        begin = time.perf_counter()
        q, kk, v = (t.view(batch, length, heads, size).transpose(1, 2) for t in x)
        y = scaled_dot_product_attention(q, kk, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, heads * size)
        middle = time.perf_counter()
        torch.autograd.grad(y, x, gy)
        if k >= 2:
            forward.append(1e3 * (middle - begin))
            backward.append(1e3 * (time.perf_counter() - middle))
    return sorted(forward), sorted(backward)


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    torch.set_num_threads(threads)
    for name, shape in SHAPES.items():
        for dtype in (torch.float32, torch.bfloat16):
            for what, ms in zip(("forward", "backward"), measure(shape, dtype, repeats)):
                print(f"{name:9} {str(dtype)[6:]:8} {what:16} {ms[0]:8.2f} {ms[len(ms) // 2]:8.2f}")


if __name__ == "__main__":
    main()
