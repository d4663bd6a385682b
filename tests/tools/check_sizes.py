#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Source files stay small: a warning from 401 lines, an error from 601; at most 100 columns.

A file that has to be longer is listed in EXCEPTIONS with the reason.
"""

from tree import Finding, run, sources

WARN_LINES = 400
FAIL_LINES = 600
COLUMNS = 100
EXCEPTIONS = {}  # path: reason


def check(root):
    findings = []
    for relative, content in sources(root):
        lines = content.splitlines()
        if len(lines) > WARN_LINES and relative not in EXCEPTIONS:
            findings.append(Finding(
                relative, len(lines), f"{len(lines)} lines; aim for 80 to 300, {FAIL_LINES} is the "
                "limit: split it by topic", fatal=len(lines) > FAIL_LINES))
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                findings.append(Finding(relative, number,
                                        f"{len(line)} columns, {COLUMNS} is the limit"))
    return findings


if __name__ == "__main__":
    run(check, __doc__)
