# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: the files of the tree, and how a check reports.

A check is a function from a root folder to a list of Finding; `run` prints them and makes the
exit code. Only the working tree counts: what git ignores by name (build, data, runs) is left out.
"""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "build", "data", "runs"}
C_FAMILY = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str
    fatal: bool = True


def files(root):
    """Every file below `root` as (path relative to root with '/', absolute path), sorted."""
    found = []
    for folder, folders, names in os.walk(root):
        # Only at the top do these names mean build products: core/data is a source folder.
        ignored = SKIPPED_FOLDERS if Path(folder) == Path(root) else {".git", "__pycache__"}
        folders[:] = sorted(set(folders) - ignored)
        for name in set(names) - {".git"}:  # a file in a linked work tree
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                found.append((path.relative_to(root).as_posix(), path))
    return sorted(found)


def text(path):
    """The file's text, or None for a binary file."""
    content = path.read_bytes()
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_script(content):
    return content.startswith("#!")


def is_source(relative, content):
    """True for what people write as code: C family, Rust, Python, CMake, scripts, linker maps."""
    path = Path(relative)
    return (path.suffix in C_FAMILY | {".rs", ".py", ".cmake", ".map", ".in"}
            or path.name == "CMakeLists.txt" or is_script(content))


def sources(root):
    """Yields (relative path, text) of every source file below `root`."""
    for relative, path in files(root):
        content = text(path)
        if content is not None and is_source(relative, content):
            yield relative, content


def run(check, description):
    """Runs `check` on the tree, prints `path:line: message`, exits 1 on a fatal finding."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    findings = check(parser.parse_args().root)
    for finding in findings:
        kind = "error" if finding.fatal else "warning"
        print(f"{finding.path}:{finding.line}: {kind}: {finding.message}")
    sys.exit(1 if any(finding.fatal for finding in findings) else 0)
