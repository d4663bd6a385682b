#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are there to find, in small trees made here, and pass good ones."""

import tempfile
import unittest
from pathlib import Path

import check_includes
import check_places
import check_sizes
import check_spdx

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def findings(check, tree):
    """Runs a check on a tree given as {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for relative, content in tree.items():
            path = Path(root) / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return check(Path(root))


def paths(found, fatal=True):
    return [finding.path for finding in found if finding.fatal == fatal]


class Includes(unittest.TestCase):
    def test_core_may_look_back_and_at_the_sdk(self):
        tree = {"core/plan/a.cpp": '#include "core/plan/a.hpp"\n#include "core/base/s.hpp"\n'
                                   "#include <gradrack/plugin.h>\n#include <vector>\n"}
        self.assertEqual(findings(check_includes.check, tree), [])

    def test_core_may_not_look_forward(self):
        tree = {"core/plan/a.cpp": '\n#include "core/exec/e.hpp"\n'}
        found = findings(check_includes.check, tree)
        self.assertEqual([(f.path, f.line) for f in found], [("core/plan/a.cpp", 2)])

    def test_core_knows_no_backend(self):
        tree = {"core/exec/a.cpp": '#include "backends/cpu/gemm.hpp"\n'}
        self.assertEqual(paths(findings(check_includes.check, tree)), ["core/exec/a.cpp"])

    def test_unknown_folder_of_core_is_refused(self):
        tree = {"core/misc/a.cpp": "#include <vector>\n"}
        self.assertEqual(paths(findings(check_includes.check, tree)), ["core/misc/a.cpp"])

    def test_plugins_backends_and_sdk_know_no_core(self):
        tree = {name: '#  include "core/base/status.hpp"\n'
                for name in ("plugins/models/gpt/a.cpp", "backends/cpu/a.hpp", "sdk/cpp/a.hpp")}
        self.assertEqual(paths(findings(check_includes.check, tree)), sorted(tree))

    def test_paths_that_climb_are_refused(self):
        tree = {"backends/cpu/a.cpp": '#include "../../core/base/status.hpp"\n'}
        self.assertEqual(paths(findings(check_includes.check, tree)), ["backends/cpu/a.cpp"])


class Sizes(unittest.TestCase):
    def test_limits(self):
        tree = {"core/a.cpp": "x\n" * 400, "core/b.cpp": "x\n" * 401, "core/c.cpp": "x\n" * 600,
                "core/d.cpp": "x\n" * 601}
        found = findings(check_sizes.check, tree)
        self.assertEqual(paths(found, fatal=False), ["core/b.cpp", "core/c.cpp"])
        self.assertEqual(paths(found), ["core/d.cpp"])

    def test_long_lines(self):
        tree = {"core/a.cpp": "x" * 100 + "\n", "core/b.cpp": "x" * 101 + "\n"}
        self.assertEqual(paths(findings(check_sizes.check, tree)), ["core/b.cpp"])

    def test_data_folder_of_core_counts_and_build_does_not(self):
        tree = {"core/data/a.cpp": "x\n" * 601, "build/dev/a.cpp": "x\n" * 601}
        self.assertEqual(paths(findings(check_sizes.check, tree)), ["core/data/a.cpp"])


class Spdx(unittest.TestCase):
    def test_first_line_or_second_after_shebang(self):
        tree = {"core/good.cpp": SPDX, "core/none.cpp": "int x;\n", "core/late.cpp": "\n" + SPDX,
                "tool": "#!/bin/sh\n" + SPDX, "bare": "#!/bin/sh\n", "notes.md": "no source\n"}
        self.assertEqual(paths(findings(check_spdx.check, tree)),
                         ["bare", "core/late.cpp", "core/none.cpp"])


class Places(unittest.TestCase):
    def test_hosts_and_machine_paths_are_found(self):
        bad = ["index on py" + "pi.org", "http://deb" + ".debian.org/debian", "/ho" + "me/ada/x",
               "/wo" + "rk/main", "pip --index" + "-url x", "10" + ".1.2.3"]
        tree = {f"docs/{number}.md": line + "\n" for number, line in enumerate(bad)}
        self.assertEqual(paths(findings(check_places.check, tree)), sorted(tree))

    def test_ordinary_text_passes(self):
        tree = {"docs/a.md": "PyPI, build/work/x, $HOME/home/x, 1.10.1, /usr/share, example.org\n"}
        self.assertEqual(findings(check_places.check, tree), [])


if __name__ == "__main__":
    unittest.main()
