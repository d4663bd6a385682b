# SPDX-License-Identifier: Apache-2.0
"""What the host makes of libraries that stop badly, or not at all. GRADRACK_BUILD names the build.

Good endings are counted by exits.py.
"""

import os
import tempfile
import time
import unittest
from pathlib import Path

import exits

BUILD = Path(os.environ.get("GRADRACK_BUILD", exits.ROOT / "build" / "dev")).resolve()


class Stops(unittest.TestCase):
    def end(self, manner, backend="reference"):
        with tempfile.TemporaryDirectory(prefix="gradrack-stops-") as folder:
            code, errors, calls = exits.run_once(BUILD, folder, 2, manner, backend)
        self.assertEqual(calls, ["create", "destroy", "stop"], errors)
        return code, errors

    def test_threads_that_stay_are_named(self):
        for backend in ("reference", "cpu"):  # the second has an OpenMP pool of its own
            code, errors = self.end("leaks", backend)
            self.assertEqual(code, 0, errors)
            self.assertIn("running after their stop", errors)
            self.assertIn("'lively-worker'", errors)

    def test_a_stop_that_never_returns_ends_at_its_deadline(self):
        start = time.monotonic()
        code, errors = self.end("hangs")
        self.assertEqual(code, 0, errors)
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn("its stop did not return within 5000 ms; alive: 1 thread ('lively-worker')",
                      errors)

    def test_a_stop_that_fails_or_throws_costs_a_warning(self):
        for manner, text in (("refuses", "its stop failed: it will not"),
                             ("throws", "its stop failed: it threw an exception")):
            code, errors = self.end(manner)
            self.assertEqual(code, 0, errors)
            self.assertIn(text, errors)

    def test_openmp_pool_is_no_fault(self):
        code, errors = self.end("good", "cpu")
        self.assertEqual(code, 0, errors)
        self.assertNotIn("running after their stop", errors)


if __name__ == "__main__":
    unittest.main()
