# SPDX-License-Identifier: Apache-2.0
"""Programs that these tests need beside gcc, found or missed aloud.

A test that cannot run fails and names the package; GRADRACK_ALLOW_MISSING_CLANG=1 (or ..._ABIDIFF)
in the environment turns that into a skip, for machines where it cannot be had.
"""

import os
import shutil

C_STANDARD = "c11"
CPP_STANDARDS = ("c++17", "c++20")


def require(case, program, package, names=()):
    """Path of `program` (or the first of `names`); else fails, or skips when that is allowed."""
    for name in names or (program,):
        if shutil.which(name):
            return shutil.which(name)
    allow = f"GRADRACK_ALLOW_MISSING_{program.upper()}"
    if os.environ.get(allow) == "1":
        case.skipTest(f"{program} is not here, and {allow}=1 says that this is known")
    case.fail(f"{program} is not here: install {package} (packaging/install-deps does), or set "
              f"{allow}=1 to leave this check out")


def clang(case):
    return require(case, "clang", "clang-14", ("clang-14", "clang"))


def compilers(case):
    """Command and flags of each compiler and language that the headers are for."""
    for program in ("gcc", clang(case)):
        yield (program, f"-std={C_STANDARD}")
        for standard in CPP_STANDARDS:
            yield (program, "-x", "c++", f"-std={standard}")
