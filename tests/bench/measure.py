# SPDX-License-Identifier: Apache-2.0
"""What the benches share. Standard library alone."""

import os
import sys


def peak_mib(words, **more):
    """Runs a command; its output and the largest resident set of it, in MiB."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        os.chdir(more.get("cwd", "."))
        os.execvpe(words[0], words, more.get("env", os.environ))
    os.close(writer)
    with os.fdopen(reader) as stream:
        output = stream.read()
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)} ended with status {status}")
    return output, usage.ru_maxrss / 1024
