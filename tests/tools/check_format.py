#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C and C++ files are as clang-format 14 writes them (.clang-format); --fix rewrites them.

Other versions write other text, so without version 14 nothing is checked; the exit code is then
77, which ctest counts as a skipped test.
"""

import argparse
import re
import shutil
import subprocess
import sys

from tree import C_FAMILY, ROOT, files

WANTED = 14
SKIPPED = 77


def find_clang_format():
    for name in (f"clang-format-{WANTED}", "clang-format"):
        program = shutil.which(name)
        if program:
            answer = subprocess.run([program, "--version"], capture_output=True, text=True,
                                    check=True).stdout
            if re.search(rf"version {WANTED}\.", answer):
                return program
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    parser.add_argument("paths", nargs="*", help="files (default: the whole tree)")
    args = parser.parse_args()
    program = find_clang_format()
    if program is None:
        print(f"check_format: no clang-format {WANTED} here: formatting was NOT checked")
        return SKIPPED
    paths = args.paths or [str(path) for _, path in files(ROOT) if path.suffix in C_FAMILY]
    if not paths:
        return 0
    mode = ["-i"] if args.fix else ["--dry-run", "--Werror", "--ferror-limit=1"]
    return subprocess.run([program, *mode, *paths], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
