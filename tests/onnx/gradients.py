#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of an imported model against PyTorch's, for a model that PyTorch exported.

    gradients.py --program gradrack [--exporter torchscript|dynamo]

Needs torch, onnx and, for dynamo, onnxscript. One step of plain descent with rate 1 in double: what
a weight loses is its gradient. Prints the largest difference relative to the largest gradient; the
exit code is 1 above 1e-5.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import torch

from tensors import read_safetensors

BATCH = 8


class Net(torch.nn.Module):
    """Convolution, normalisation, attention by hand, a gated unit: what exporters take apart."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 8, 3, padding=1, stride=2)
        self.norm = torch.nn.BatchNorm2d(8)
        self.mix = torch.nn.Linear(8, 24)
        self.layer_norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.norm(self.conv(x)))
        x = x.flatten(2).transpose(1, 2)
        q, k, v = self.mix(self.layer_norm(x)).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(1, 2) * 0.35, dim=-1)
        return self.head(torch.nn.functional.silu(x + weights @ v).mean(dim=1))


def export(net, x, path, exporter):
    net.eval()
    if exporter == "dynamo":
        batch = torch.export.Dim("batch")
        torch.onnx.export(net, (x,), str(path), dynamo=True, input_names=["images"],
                          output_names=["y"], dynamic_shapes=({0: batch},))
    else:
        torch.onnx.export(net, (x,), str(path), dynamo=False, input_names=["images"],
                          output_names=["y"], dynamic_axes={"images": [0], "y": [0]},
                          training=torch.onnx.TrainingMode.EVAL, do_constant_folding=False)


def expected(net, x, y):
    """Gradients by tensor of the file: by content, since exporters rename."""
    net.eval()
    loss = torch.nn.functional.cross_entropy(net.double()(x.double()), y)
    net.zero_grad()
    loss.backward()
    return {name: (parameter.detach().numpy(), parameter.grad.numpy())
            for name, parameter in net.named_parameters()}


def descend(args, path, x, y, folder):
    numpy.save(folder / "x.npy", numpy.concatenate([x.numpy(), x.numpy()]))
    numpy.save(folder / "y.npy", numpy.concatenate([y.numpy(), y.numpy()]))
    config = {"run": {"output": str(folder / "out"), "max_steps": 1, "batch_size": BATCH,
                      "log_interval": 1, "eval_batches": 1},
              "model": {"plugin": "onnx", "file": str(path), "batch_norm": "frozen"},
              "data": {"plugin": "arrays", "features": str(folder / "x.npy"),
                       "labels": str(folder / "y.npy"), "validation_fraction": 0.5,
                       "classes": 5},
              "optimizer": {"plugin": "sgd", "lr": 1.0, "momentum": 0.0, "weight_decay": 0.0},
              "precision": {"plugin": "fp64"}, "backend": {"plugin": ["reference"]}}
    (folder / "run.yaml").write_text(json.dumps(config))
    done = subprocess.run([args.program, "train", folder / "run.yaml", "--quiet"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL {args.exporter}: {done.stderr.strip()}")
    return read_safetensors(folder / "out" / "weights.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], default="torchscript")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    net = Net()
    # Equal tensors are written once: weights must differ.
    for norm in (net.norm, net.layer_norm):
        torch.nn.init.normal_(norm.weight, 1.0, 0.2)
        torch.nn.init.normal_(norm.bias, 0.0, 0.2)
    x, y = torch.randn(BATCH, 1, 8, 8), torch.randint(0, 5, (BATCH,))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "net.onnx"
        export(net, x, path, args.exporter)
        before = {t.name: onnx.numpy_helper.to_array(t).astype("float64")
                  for t in onnx.load(str(path)).graph.initializer}
        after = descend(args, path, x, y, folder)
    wanted = expected(net, x, y)
    worst, compared = 0.0, 0
    for name, (weight, gradient) in wanted.items():
        # Exporters rename what they transpose; the others keep their names.
        named = {name: before[name]} if name in before and name in after else before
        for key, value in named.items():
            turned = value.shape != weight.shape
            as_torch = value.T if turned and value.ndim == 2 else value
            if as_torch.shape != weight.shape or not numpy.allclose(as_torch, weight) or (
                    key not in after):
                continue
            step = (value - after[key].astype("float64"))
            step = step.T if turned else step
            if args.verbose:
                print(f"{name} is {key}: {numpy.abs(step - gradient).max():.2e} of "
                      f"{numpy.abs(gradient).max():.2e}")
            worst = max(worst, float(numpy.abs(step - gradient).max() / numpy.abs(gradient).max()))
            compared += 1
            break
    # The newer exporter folds a normalisation into the convolution before it: those are no more.
    good = worst <= 1e-5 and compared >= (len(wanted) if args.exporter == "torchscript" else 6)
    print(f"{'ok  ' if good else 'FAIL'} {args.exporter}: {compared} of {len(wanted)} gradients, "
          f"largest difference {worst:.2e}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
