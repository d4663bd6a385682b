#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator cases of the `onnx` package through the importer, on `reference` and on `cpu`.

    cases_test.py [--update] [--folder FOLDER]

Needs a Python with onnx and numpy: GRADRACK_ONNX_PYTHON, or the one that runs this; without, the
exit code is 77. A case that passing.txt names must pass on both; one that passes and is not there
fails too, so that the list stays whole: --update writes it. Why the others do not pass must stand
in reviewed.txt. The numbers of the format's fields are compared with the package's, too.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("GRADRACK_BUILD", ROOT / "build" / "dev"))
RUNNER = BUILD / "tests" / "onnx_cases"
PASSING = HERE / "passing.txt"
BACKENDS = ("reference", "cpu")


def find_python():
    for python in filter(None, (os.environ.get("GRADRACK_ONNX_PYTHON"), sys.executable)):
        done = subprocess.run([python, "-c", "import onnx, numpy"], capture_output=True)
        if done.returncode == 0:
            return python
    return None


def run_cases(folder, backend):
    """{name: "" or why not}"""
    done = subprocess.run([RUNNER, folder, backend], capture_output=True, text=True, cwd=ROOT)
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(ok|fail|skip) ([^:]+)(?:: (.*))?$", line)
        if match:
            found[match.group(2)] = "" if match.group(1) == "ok" else match.group(3) or "failed"
    return found


def reason_kind(why):
    operator = re.search(r"\((\S+?), opset", why)
    name = operator.group(1) if operator else ""
    if "no operator '" in why:
        return f"{name}: no such operator here"
    for word in ("control flow", "sequences", "texts", "quantised", "random", "depends on data"):
        if word in why:
            return f"{name or 'value'}: {word}"
    if why.startswith("tensor of") or "sequence or optional" in why:
        return why
    return f"{name}: {why[-60:]}" if name else why[:80]


def reviewed_reasons():
    """[(pattern, reason)] of reviewed.txt"""
    rows = []
    for line in (HERE / "reviewed.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, _, reason = line.partition(" :: ")
            rows.append((re.compile(pattern), reason))
    return rows


def review(results, names):
    """Counts what does not pass by its reviewed reason; names what has none."""
    rows, counts, good = reviewed_reasons(), collections.Counter(), True
    for name in sorted(names):
        why = next(results[b][name] for b in BACKENDS if results[b].get(name, "?"))
        reason = next((reason for pattern, reason in rows if pattern.search(f"{name}: {why}")),
                      None)
        counts[reason] += 1
        if reason is None:
            good = False
            print(f"FAIL {name} is not reviewed: {why[:200]}")
    for reason, count in counts.most_common():
        print(f"{count:5} {reason}")
    for _, reason in rows:
        if reason not in counts:
            good = False
            print(f"FAIL no case is left for the reason: {reason}")
    return good


def judge(passed, listed):
    stopped, fresh = sorted(listed - passed), sorted(passed - listed)
    for name in stopped:
        print(f"FAIL {name} passed before and does not now")
    for name in fresh:
        print(f"FAIL {name} passes and is not in passing.txt: run with --update")
    return not stopped and not fresh


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--folder", help="where the cases are written; default: for this run alone")
    parser.add_argument("--reasons", action="store_true", help="count what does not pass by reason")
    args = parser.parse_args()
    python = find_python()
    if python is None:
        print("skipped: no Python with the packages onnx and numpy (GRADRACK_ONNX_PYTHON)")
        return 77
    with tempfile.TemporaryDirectory() as own:
        folder = args.folder or own
        subprocess.run([python, "-B", HERE / "dump_cases.py", folder], check=True,
                       stderr=subprocess.DEVNULL)
        results = {backend: run_cases(folder, backend) for backend in BACKENDS}
    fields = subprocess.run(
        [python, "-c", "import onnx; print(onnx.__path__[0] + '/onnx-ml.proto')"],
        capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([sys.executable, "-B", ROOT / "plugins/models/onnx/generate_fields.py", fields,
                    "--check"], check=True)
    names = set(results["reference"])
    passed = {name for name in names if not any(results[b].get(name, "?") for b in BACKENDS)}
    for backend in BACKENDS:
        good = sum(1 for why in results[backend].values() if not why)
        print(f"{backend}: {good} of {len(names)} cases pass")
    if args.reasons:
        kinds = collections.Counter(reason_kind(results[b][name]) for name in names - passed
                                    for b in BACKENDS if results[b][name])
        for kind, count in kinds.most_common():
            print(f"{count:5} {kind}")
    if args.update:
        PASSING.write_text("".join(f"{name}\n" for name in sorted(passed)), encoding="utf-8")
        return 0
    listed = set(PASSING.read_text(encoding="utf-8").split())
    good = judge(passed, listed)
    good = review(results, names - passed) and good
    print(f"{len(passed)} passed, {len(listed - passed) + len(passed - listed)} failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
