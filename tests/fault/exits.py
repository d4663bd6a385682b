#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PLG-07: a run that used a plugin with a worker thread and thread-local objects ends cleanly.

Trains a tiny model with the lr_schedule `lively` and ends it in three ways: at its end, by an
error of the plugin, by SIGTERM. Each must give its exit code, and the plugin's calls must come in
order: instances made and destroyed, then one stop, then nothing. --count N does each N times and
prints one line; what falls short is printed and makes the exit code 1.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = "the quick brown fox jumps over the lazy dog. " * 60
RUN = """run: {{max_steps: {steps}, batch_size: 2, output: "{folder}/out", log_interval: 1}}
model: {{plugin: gpt, layers: 1, heads: 2, dim: 16}}
data: {{plugin: text, file: "{folder}/text.txt", block: 8}}
optimizer: {{plugin: adamw, lr: 0.01}}
lr_schedule: {{plugin: lively, manner: {manner}, trace: "{folder}/trace"}}
backend: {{plugin: {backend}}}
"""
ENDINGS = {  # name: (steps, manner, exit code)
    "normal": (2, "good", 0),
    "error": (5, "fails", 4),
    "sigterm": (10 ** 6, "good", 143),
}


def wait_for_metrics(run, folder):
    metrics = Path(folder) / "out" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < deadline:
        if metrics.exists() and metrics.stat().st_size > 0:
            return
        time.sleep(0.005)


def run_once(build, folder, steps, manner, backend, interrupt=False):
    """(exit code, stderr, calls of the plugin) of one run in an empty folder."""
    (Path(folder) / "text.txt").write_text(TEXT)
    config = Path(folder) / "run.yaml"
    config.write_text(RUN.format(steps=steps, folder=folder, manner=manner, backend=backend))
    words = [str(build / "bin" / "gradrack"), "--plugin-path",
             str(build / "tests" / "plugins" / "lively"), "train", str(config)]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "NO_COLOR": "1"})
    if interrupt:
        wait_for_metrics(run, folder)
        run.send_signal(signal.SIGTERM)
    _, errors = run.communicate(timeout=120)
    trace = Path(folder) / "trace"
    return run.returncode, errors, trace.read_text().split("\n")[:-1] if trace.exists() else []


def complaint(ending, build, backend):
    """What is wrong with one run of that ending, or None."""
    steps, manner, wanted = ENDINGS[ending]
    with tempfile.TemporaryDirectory(prefix="gradrack-exits-") as folder:
        code, errors, calls = run_once(build, folder, steps, manner, backend,
                                       interrupt=ending == "sigterm")
    if code != wanted:
        return f"{ending} on {backend}: exit code {code}, wanted {wanted}\n{errors}"
    if calls != ["create", "destroy", "stop"]:
        return f"{ending} on {backend}: calls were {calls}, wanted create, destroy, stop"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3, help="runs of each ending")
    parser.add_argument("--build", default=os.environ.get("GRADRACK_BUILD",
                                                          str(ROOT / "build" / "dev")))
    args = parser.parse_args()
    build = Path(args.build).resolve()
    clean = dict.fromkeys(ENDINGS, 0)
    for ending in ENDINGS:
        for number in range(args.count):
            wrong = complaint(ending, build, ("reference", "cpu")[number % 2])
            if wrong:
                print(wrong)
            clean[ending] += wrong is None
    parts = ", ".join(f"{ending} {count} of {args.count}" for ending, count in clean.items())
    print(f"clean exits: {parts}")
    return 0 if all(count == args.count for count in clean.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
