# SPDX-License-Identifier: Apache-2.0
"""Runs the gradrack program of the build named by GRADRACK_BUILD, for the tests of this folder.

A run file is made from TINY (a model small enough for milliseconds a step) with changes by dotted
key. Invariant: a test never sees another one's files; each has a temporary folder of its own.
"""

import copy
import hashlib
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GRADRACK_BUILD", ROOT / "build" / "dev")).resolve()
PROGRAM = BUILD / "bin" / "gradrack"
FAULTS = BUILD / "tests" / "plugins"

TEXT = "the quick brown fox jumps over the lazy dog. " * 60

TINY = {
    "run": {"seed": 3, "max_steps": 3, "batch_size": 2, "eval_batches": 2, "max_grad_norm": 1.0},
    "model": {"plugin": "gpt", "layers": 1, "heads": 2, "dim": 16},
    "data": {"plugin": "text", "block": 8},
    "optimizer": {"plugin": "adamw", "lr": 0.01},
    "backend": {"plugin": "reference"},
}


class ProgramTest(unittest.TestCase):
    """A folder with text.txt, and the calls that tests make."""

    maxDiff = None

    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="gradrack e2e ")  # a space, on purpose
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        (self.folder / "text.txt").write_text(TEXT)

    def config(self, changes=None, name="run.yaml"):
        """Writes a run file (JSON is YAML) and returns its path; a change to None drops the key."""
        config = copy.deepcopy(TINY)
        config["data"]["file"] = str(self.folder / "text.txt")
        config["run"]["output"] = str(self.folder / "out")
        for key, value in (changes or {}).items():
            place = config
            *parents, last = key.split(".")
            for parent in parents:
                place = place.setdefault(parent, {})
            if value is None:
                place.pop(last, None)
            else:
                place[last] = value
        return self.write(json.dumps(config, indent=1), name)

    def write(self, text, name="run.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def gradrack(self, *words, env=None):
        return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True,
                              errors="replace", timeout=120, cwd=self.folder,
                              env={**os.environ, "NO_COLOR": "1", **(env or {})})

    def refused(self, code, parts, *words):
        """The command ends with `code` and one error line that holds every part."""
        done = self.gradrack(*words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        for part in parts:
            self.assertIn(part, errors[0])
        return errors[0]

    def passed(self, *words):
        done = self.gradrack(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def metrics(self, folder="out"):
        lines = (self.folder / folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line, parse_constant=self.fail) for line in lines]

    def losses(self, folder="out"):
        """The training loss of each record of a step."""
        return [r["train/loss"] for r in self.metrics(folder) if "train/loss" in r]

    def bits(self, folder="out", step=None):
        """sha256 of a run's weights; with a step, also of the files of that checkpoint."""
        out = self.folder / folder
        paths = [out / "weights.safetensors"]
        if step is not None:
            last = out / "checkpoints" / f"step-{step:06d}"
            paths += [last / "weights.safetensors", last / "state.safetensors"]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
