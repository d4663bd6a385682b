#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point one way along the data flow.

A file of core/<folder> includes its own folder, folders before it in ORDER, and the SDK. The SDK
includes itself alone; sdk/conformance, a program over core, is no part of that. A plugin or
backend includes the SDK and its own kind's folders, never core.
Knows include lines only; what the linker sees is kept in order by core/CMakeLists.txt.
"""

import re

from tree import C_FAMILY, Finding, files, run, text

ORDER = ["base", "config", "plugin", "graph", "autodiff", "precision", "optim", "rewrite",
         "device", "schedule", "state", "simulate", "plan", "exec", "data", "report", "train",
         "cli"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def problem_in_core(folder, target):
    if folder not in ORDER:
        return f"core/{folder} is not in the list of core's folders: {' '.join(ORDER)}"
    if target.startswith(("plugins/", "backends/")):
        return f"core includes {target}: core knows plugins and backends through the SDK alone"
    if target.startswith("core/"):
        other = target.split("/")[1]
        if other not in ORDER:
            return f"includes {target}: core/{other} is not in the list of core's folders"
        if ORDER.index(other) > ORDER.index(folder):
            return (f"core/{folder} includes {target}, but {other} comes after {folder}: move what "
                    "both need to the earlier folder, or hand it in from the later one")
    return None


def problem(path, target):
    """What is wrong with file `path` including `target`, or None."""
    if "../" in target:
        return f"includes {target}: write the path from the repository root instead"
    parts = path.split("/")
    if parts[0] == "core" and len(parts) > 2:
        return problem_in_core(parts[1], target)
    if parts[0] in ("plugins", "backends") and target.startswith("core/"):
        return f"includes {target}: plugins and backends include the SDK alone, never core"
    plain_sdk = parts[0] == "sdk" and parts[1] != "conformance"
    if plain_sdk and target.startswith(("core/", "plugins/", "backends/")):
        return f"includes {target}: the SDK includes nothing but itself"
    return None


def check(root):
    findings = []
    for relative, path in files(root):
        if path.suffix not in C_FAMILY:
            continue
        for number, line in enumerate((text(path) or "").splitlines(), 1):
            match = INCLUDE.match(line)
            message = problem(relative, match.group(2)) if match else None
            if message:
                findings.append(Finding(relative, number, message))
    return findings


if __name__ == "__main__":
    run(check, __doc__)
