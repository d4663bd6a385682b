# SPDX-License-Identifier: Apache-2.0
"""`gradrack report` and `gradrack doctor` as an operator meets them.

Where a Chromium is installed the page is opened in it, without a window, and has to draw.
"""

import html.parser
import json
import re
import shutil
import subprocess
import unittest

from program import PROGRAM, ProgramTest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Page(html.parser.HTMLParser):
    """Text by element, every address that a browser would fetch, and the embedded data."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.tags, self.data, self.inside = [], [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        found = dict(attributes)
        self.addresses += [found[key] for key in ("src", "href") if key in found]
        self.inside = tag == "script" and found.get("id") == "data"

    def handle_data(self, data):
        if self.inside:
            self.data += data


class Report(ProgramTest):
    def page(self, changes=None):
        self.passed("train", self.config({"run.log_interval": 1, "metrics.trace_steps": 1,
                                          **(changes or {})}))
        self.passed("report", self.folder / "out")
        return (self.folder / "out" / "report.html").read_text()

    def test_it_is_one_file_with_all_parts(self):
        text = self.page()
        page = Page(text)
        self.assertEqual(page.addresses, [])
        self.assertNotIn("@import", text)
        self.assertNotIn("url(", text)
        panels = {p["title"]: p["series"] for p in json.loads(page.data)["panels"]}
        self.assertLessEqual({"loss", "learning rate", "gradient norm", "tokens a second"},
                             set(panels))
        losses = self.losses()
        drawn = {s["name"]: s for s in panels["loss"]}
        self.assertEqual(drawn["train/loss"]["x"], [1, 2, 3])
        self.assertEqual(drawn["train/loss"]["y"], losses)
        self.assertIn("eval/loss", drawn)
        self.assertEqual(page.tags.count("svg"), 3)  # a timeline, the arenas of step and evaluation
        for part in ("plugin: gpt", "processors_allowed", "lr_schedule: constant", "<h2>Events"):
            self.assertIn(part, text)

    def test_memory_map_stays_within_its_arena(self):
        self.page()
        plan = json.loads((self.folder / "out" / "plan.json").read_text())
        self.assertEqual(plan["format"], "gradrack.plan/1")
        for each in plan["plans"]:
            arena = [size for _, size in each["devices"]]
            top = 0
            for device, offset, size, first, last, _, name in each["blocks"]:
                self.assertLessEqual(offset + size, arena[device], name)
                self.assertLessEqual(0 <= first <= last < each["tasks"], True, name)
                top = max(top, offset + size)
            self.assertGreater(top, 0.5 * max(arena))
            blocks = each["blocks"]  # one stream: blocks in use at once share no byte
            for k, (device, offset, size, first, last, _, name) in enumerate(blocks):
                for other in blocks[:k]:
                    together = other[3] <= last and first <= other[4] and other[0] == device
                    if together and size and other[2]:
                        self.assertTrue(offset + size <= other[1] or
                                        other[1] + other[2] <= offset, (name, other[6]))

    def test_steps_made_again_replace_the_lost_ones_and_nan_is_a_gap(self):
        self.passed("train", self.config())
        lines = [{"step": s, "tokens": s, "train/loss": float(s)} for s in (10, 20, 30, 40)]
        lines += [{"step": s, "tokens": s, "train/loss": -float(s)} for s in (30, 40, 50)]
        lines.append({"step": 60, "tokens": 60, "train/loss": None, "flags": {"train/loss": "nan"}})
        text = "".join(json.dumps(line) + "\n" for line in lines) + '{"step": 70, "tok'
        (self.folder / "out" / "metrics.jsonl").write_text(text)
        out = self.passed("report", self.folder / "out", "--output", self.folder / "x.html").stdout
        self.assertIn("1 of 9 lines of metrics.jsonl are no records", out)
        panel = json.loads(Page((self.folder / "x.html").read_text()).data)["panels"][0]
        self.assertEqual(panel["series"][0]["x"], [10, 20, 30, 40, 50, 60])
        self.assertEqual(panel["series"][0]["y"], [10, 20, -30, -40, -50, None])

    def test_a_long_run_is_thinned_out(self):
        self.passed("train", self.config())
        with (self.folder / "out" / "metrics.jsonl").open("w") as file:
            for step in range(1, 50001):
                file.write(f'{{"step":{step},"tokens":1,"train/loss":1.5}}\n')
        self.passed("report", self.folder / "out")
        page = (self.folder / "out" / "report.html").read_text()
        self.assertLess(len(page), 500_000)
        series = json.loads(Page(page).data)["panels"][0]["series"][0]
        self.assertGreater(len(series["x"]), 1000)
        self.assertEqual(series["x"][0], 1)

    def test_texts_of_a_stranger_stay_texts(self):
        evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
        self.passed("train", self.config({"run.name": "a <b>&\"c\""}))
        with (self.folder / "out" / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"event": "note", "level": "warn", "message": evil}) + "\n")
            file.write(json.dumps({"step": 9, "tokens": 1, evil: 1.5}) + "\n")
        (self.folder / "out" / "config.yaml").write_text(evil)
        plan = self.folder / "out" / "plan.json"
        parts = json.loads(plan.read_text())
        parts["plans"][0]["name"] = parts["plans"][0]["blocks"][0][6] = evil
        plan.write_text(json.dumps(parts))
        self.passed("report", self.folder / "out")
        text = (self.folder / "out" / "report.html").read_text()
        self.assertNotIn("<script>alert", text)
        self.assertNotIn("<img", text)
        self.assertEqual(Page(text).tags.count("script"), 2)

    def test_broken_parts_are_notes(self):
        self.passed("train", self.config())
        for name, content in (("plan.json", '{"format": "gradrack.plan/1", "plans": [{}]}'),
                              ("trace.json", "[]")):
            (self.folder / "out" / name).write_text(content)
        out = self.passed("report", self.folder / "out").stdout
        self.assertIn("plan.json: a plan without devices or blocks", out)
        self.assertIn("trace.json: no list of traceEvents", out)

    def test_folders_that_are_no_runs_are_refused(self):
        self.refused(4, ["no run folder at"], "report", self.folder / "nowhere")
        (self.folder / "empty").mkdir()
        self.refused(4, ["no 'metrics.jsonl' in"], "report", self.folder / "empty")

    @unittest.skipUnless(CHROMIUM, "no Chromium is installed: the page was NOT drawn")
    def test_a_browser_draws_it(self):
        self.page({"run.max_steps": 12})
        page = self.folder / "out" / "report.html"
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000",
             f"--user-data-dir={self.folder / 'profile'}", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        charts = re.findall(r'<div class="chart">.*?</svg>', done.stdout, re.S)
        self.assertGreaterEqual(len(charts), 5)
        for chart in charts:
            self.assertRegex(chart, r'<path d="M|<circle')
            self.assertNotIn("NaN", chart)


class Doctor(ProgramTest):
    def test_it_fits_on_a_screen_and_names_backends(self):
        done = self.passed("doctor")
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 40, done.stdout)
        for part in ("machine", "limits", "backends", "plugins"):
            self.assertIn(part, lines)
        self.assertRegex(done.stdout, r"\n  reference  ")
        self.assertRegex(done.stdout, r"\n  metrics .*tensorboard")

    def test_without_a_backend_it_ends_with_3(self):
        program = self.folder / "bin"
        program.mkdir()
        shutil.copy(PROGRAM, program / "gradrack")
        done = subprocess.run([str(program / "gradrack"), "doctor"], capture_output=True,
                              text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("none works here", done.stdout)


if __name__ == "__main__":
    unittest.main()
