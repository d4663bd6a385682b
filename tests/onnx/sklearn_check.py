#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that scikit-learn's converter wrote, here and in ONNX Runtime: sklearn_check.py --runner
onnx_cases

Needs scikit-learn, skl2onnx, onnxruntime, numpy. Of the classifier the probabilities are wanted
alone: labels come from operators for tables (ai.onnx.ml), which are left out then.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnxruntime
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensors import read_safetensors, write_safetensors


def difference(args, model, x, output, folder):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = session.run([output], {"X": x})[0]
    write_safetensors(folder / "in", {"input.X": x})
    done = subprocess.run([args.runner, "--run", path, "cpu", folder / "in", folder / "out",
                           f'outputs=["{output}"]'], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL {output}: {done.stderr.strip()}")
    got = read_safetensors(folder / "out")[output]
    return float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    args = parser.parse_args()
    x, y = load_digits(return_X_y=True)
    x = x.astype("float32")
    shape = {"hidden_layer_sizes": (32,), "max_iter": 20, "random_state": 0}
    classifier = MLPClassifier(**shape).fit(x, y)
    regressor = make_pipeline(StandardScaler(), MLPRegressor(**shape)).fit(x, y)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {}
        for words, fitted in (("classifier", classifier), ("pipeline", regressor)):
            options = {id(fitted): {"zipmap": False}} if words == "classifier" else None
            model = to_onnx(fitted, x[:1], options=options, target_opset=18)
            output = model.graph.output[-1].name
            found[words] = difference(args, model, x[:8], output, folder)
    good = max(found.values()) <= 1e-4
    print(f"{'ok  ' if good else 'FAIL'} "
          + ", ".join(f"{words} {worst:.1e}" for words, worst in found.items()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
