#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence: the SPDX line is first, or second after `#!`."""

from tree import Finding, is_script, run, sources

LINE = "SPDX-License-Identifier: Apache-2.0"


def check(root):
    findings = []
    for relative, content in sources(root):
        first = 1 if is_script(content) else 0
        lines = content.splitlines()
        if len(lines) <= first or LINE not in lines[first]:
            findings.append(Finding(relative, first + 1, f"this line must hold '{LINE}'"))
    return findings


if __name__ == "__main__":
    run(check, __doc__)
