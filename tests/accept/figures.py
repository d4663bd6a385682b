# SPDX-License-Identifier: Apache-2.0
"""What the acceptance scripts share: figures beside targets, programs of the build, gtest runs.

A script prints one row() per figure and ends with finish(). Standard library alone.
"""

import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / "build" / "dev"
RELEASE = ROOT / "build" / "release"
results = []  # (name, figure, target, met)


def row(name, figure, target, met):
    results.append((name, figure, target, met))
    print(f"{'ok  ' if met else 'FAIL'} {name:<46} {figure:<34} target {target}", flush=True)


def run(*words, **more):
    more.setdefault("cwd", ROOT)
    more.setdefault("env", {**os.environ, "NO_COLOR": "1"})
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)


def words_of(sets):
    return [word for each in sets for word in ("--set", each)]


def train(config, out, *sets, program=RELEASE / "bin" / "gradrack", flags=()):
    """Records of a run into folder `out`, with `sets` (key=value) over its run file; none where it
    failed, whose error is printed."""
    done = run(program, "train", config, "--quiet", *flags,
               *words_of([f"run.output={out}", *sets]))
    if done.returncode != 0:
        print(done.stderr[-2000:])
        return []
    lines = (Path(out) / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def gtest(program, pattern, **more):
    """Runs tests of a program: (passed, failed, output)."""
    done = run(DEV / "tests" / program, f"--gtest_filter={pattern}", **more)
    passed = re.search(r"\[  PASSED  \] (\d+) test", done.stdout)
    failed = re.search(r"\[  FAILED  \] (\d+) test", done.stdout)
    counts = int(passed.group(1)) if passed else 0, int(failed.group(1)) if failed else 0
    return (*counts, done.stdout) if done.returncode in (0, 1) else (0, 1, done.stdout)


def tests(name, program, pattern, what="all pass"):
    passed, failed, _ = gtest(program, pattern)
    row(name, f"{passed} passed, {failed} failed", what, passed > 0 and failed == 0)


def ctest(name, regex, what="all pass"):
    """Tests of ctest by name; one that is skipped does not count as passed."""
    done = run("ctest", "--test-dir", DEV, "-R", regex, "--output-on-failure")
    last = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", done.stdout)
    total, failed = (int(last.group(3)), int(last.group(2))) if last else (0, 0)
    skipped = len(re.findall(r"\*\*\*Skipped", done.stdout))
    met = total > 0 and failed == 0 and skipped == 0 and done.returncode == 0
    row(name, f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped", what, met)
    if not met:
        print(done.stdout[-3000:] + done.stderr[-1000:])


def command(name, words, what="exit 0", figure=None, **more):
    """A script whose exit code says it; `figure` picks what to show of its output."""
    done = run(*words, **more)
    shown = re.search(figure, done.stdout + done.stderr) if figure else None
    said = shown.group(1) if shown else f"exit {done.returncode}"
    row(name, said, what, done.returncode == 0 and (shown is not None or figure is None))
    if done.returncode != 0:
        print(done.stdout[-3000:] + done.stderr[-3000:])
    return done


def finish(title, line=""):
    """The closing line; the exit code."""
    failed = [name for name, _, _, met in results if not met]
    print(f"{title}: {len(results) - len(failed)} of {len(results)} figures met"
          + (f"; {line}" if line else "")
          + (f"; short: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0
