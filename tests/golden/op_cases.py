# SPDX-License-Identifier: Apache-2.0
"""The collector behind make_op_golden.py: evaluates an operator case and names its tensors.

A case is named CASE and stored as CASE.in.X, CASE.out.Y, CASE.gy (the fixed random upstream
gradient of the first output) and CASE.grad.X = d sum(gy * Y) / dX, all in fp64. Metadata CASE is a
JSON object: "op" is the ONNX operator, the rest its ONNX attributes. Invariant: random numbers are
drawn from one seeded generator in the order of the calls, so new cases belong at the end.
"""

from collections.abc import Callable

import torch

SEED = 7
Tensor = torch.Tensor
Inputs = dict[str, Tensor]
# Takes the inputs, returns outputs by name; the first one meets gy.
Function = Callable[[Inputs], dict[str, Tensor]]


class Cases:
    """Collects cases; draws every random number from one generator, in order of the calls."""

    def __init__(self) -> None:
        self.gen = torch.Generator().manual_seed(SEED)
        self.tensors: dict[str, Tensor] = {}
        self.metadata: dict[str, object] = {}

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.gen, dtype=torch.float64)

    def add(
        self,
        name: str,
        attributes: dict[str, object],
        inputs: Inputs,
        function: Function,
        constants: tuple[str, ...] = (),
    ) -> None:
        """Evaluates and stores a case; `constants` are floating inputs that get no gradient."""
        leaves = {
            k: v.clone().requires_grad_(v.is_floating_point() and k not in constants)
            for k, v in inputs.items()
        }
        outputs = function(leaves)
        first = next(iter(outputs.values()))
        gy = self.randn(*first.shape)
        first.backward(gy)
        self.metadata[name] = attributes
        self.tensors |= {f"{name}.in.{k}": v for k, v in inputs.items()}
        self.tensors |= {f"{name}.out.{k}": v for k, v in outputs.items()}
        self.tensors[f"{name}.gy"] = gy
        for key, leaf in leaves.items():
            if leaf.requires_grad:
                assert leaf.grad is not None, f"{name}: no gradient reaches {key}"
                self.tensors[f"{name}.grad.{key}"] = leaf.grad
