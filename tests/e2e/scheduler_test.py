# SPDX-License-Identifier: Apache-2.0
"""Whose order a run takes, and what it says where it is not the scheduler's that was asked for.

The scheduler is `shuffled` of the tests (tests/support/emulated_plugin.cpp).
"""

import json
import re
import unittest

from program import BUILD, ProgramTest


class Scheduler(ProgramTest):
    def shuffled(self, changes=None):
        return self.config({"plugins.path": [str(BUILD / "tests" / "emulated")],
                            "scheduler": {"plugin": "shuffled", "streams": 2},
                            "backend": {"plugin": "cpu", "threads": 1}, **(changes or {})})

    def expect_reason(self, path, reason):
        """In explain, and as an event of a run."""
        whole = "program order on one stream instead: scheduler shuffled: " + reason
        self.assertIn("note: " + whole, self.passed("explain", path).stdout)
        lines = self.passed("train", path, "--log-format", "json").stderr.splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        self.assertIn(whole, [e["message"] for e in events if e["event"] == "fallback"])

    def test_a_device_with_one_stream_is_named_with_its_option(self):
        self.expect_reason(self.shuffled(),
                           "device cpu has one stream: see its option 'threads_per_stream'")

    def test_a_scheduler_that_asks_for_one_stream_is_told_its_option(self):
        self.expect_reason(self.shuffled({"scheduler.streams": 1}),
                           "it asks for one stream: set its option 'streams' to 2 or more")

    def test_auto_off_false_takes_every_legal_order(self):
        path = self.shuffled({"scheduler.auto_off": False,
                              "backend": {"plugin": "cpu", "threads": 2, "threads_per_stream": 1}})
        done = self.passed("explain", path)
        self.assertNotIn("program order on one stream instead", done.stdout)
        self.assertIn("schedule: shuffled, 2 streams", done.stdout)

    def test_the_least_limit_that_is_named_is_the_least(self):
        text = self.refused(2, ["memory.limit is 1.0 KiB"], "train",
                            self.config({"memory.limit": "1 KiB"}))
        least = int(re.search(r"\((\d+) bytes\), which is the least", text).group(1))
        self.passed("train", self.config({"memory.limit": f"{least}"}))
        self.refused(2, [f"({least} bytes)"], "train",
                     self.config({"memory.limit": f"{least - 1}"}))


if __name__ == "__main__":
    unittest.main()
