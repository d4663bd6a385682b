# SPDX-License-Identifier: Apache-2.0
"""`gradrack simulate`: tables of every form, plugins and orders, files, refusals and exit codes."""

import json
import unittest

from program import BUILD, ROOT, ProgramTest

SCHEDULES = ROOT / "configs" / "schedules"
TEMPLATES = BUILD / "tests" / "templates"

CSV = """device,streams,memory_limit
gpu,2,
task,kind,device,duration_ns,deps,bytes_held
a,forward,gpu,10,,5
b,input_gradient,gpu,20,a,5
c,weight_gradient,gpu,30,a,5
e,update,gpu,5,b c,5
"""


class Simulate(ProgramTest):
    def figures(self, *words):
        return json.loads(self.passed("simulate", "--json", *words).stdout)

    def test_sequential_plugin_runs_in_program_order(self):
        table = self.write(CSV, "t.csv")
        got = self.figures(table, "--scheduler", "sequential")
        self.assertEqual((got["schedule"], got["makespan_ns"], got["waits"]), ("sequential", 65, 0))

    def test_a_third_partys_scheduler_in_c_uses_two_streams(self):
        table = self.write(CSV, "t.csv")
        words = [table, "--scheduler", "my_scheduler", "--plugin-path", self.alone("scheduler-c")]
        got = self.figures(*words)
        self.assertEqual(got["makespan_ns"], 45)
        self.assertEqual([s["idle_ns"] for s in got["devices"][0]["streams"]], [10, 15])
        self.assertEqual(self.figures(*words, "--set", "streams=1")["makespan_ns"], 65)
        self.assertEqual(self.figures(*words, "--streams", "1")["makespan_ns"], 65)

    def test_a_third_partys_scheduler_on_a_pipeline(self):
        got = self.figures(SCHEDULES / "zb-1.5b-m24.yaml", "--scheduler", "my_scheduler",
                           "--plugin-path", self.alone("scheduler-c"))
        self.assertGreaterEqual(got["makespan_ns"], got["bound_ns"])

    def alone(self, template):
        """A folder with one template's library: those of two languages share a name."""
        folder = self.folder / "plugins"
        folder.mkdir(mode=0o755)
        (folder / f"{template}.so").write_bytes((TEMPLATES / f"{template}.so").read_bytes())
        return folder

    def test_memory_limit_refused_by_the_plugin_exits_3(self):
        table = self.write(CSV, "t.csv")
        self.refused(3, ["my_scheduler", "memory_limit", "--order program"], "simulate", table,
                     "--scheduler", "my_scheduler", "--plugin-path", self.alone("scheduler-c"),
                     "--memory-limit", "8")

    def test_peak_over_the_limit_is_an_error_after_the_figures(self):
        table = self.write(CSV, "t.csv")
        done = self.gradrack("simulate", table, "--order", "program", "--memory-limit", "8")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("makespan", done.stdout)
        self.assertIn("holds 20 bytes at its peak, its memory limit is 8", done.stderr)

    def test_golden_figures_from_the_command_line(self):
        table = SCHEDULES / "zb-1.5b-m24.yaml"
        self.assertAlmostEqual(self.figures(table, "--order", "zb_h1")["bubble_rate"], .1585, 4)
        got = self.figures(table, "--order", "1f1b", "--recipe", "pipeline.backward=fused")
        self.assertAlmostEqual(got["bubble_rate"], .2431, 4)

    def test_text_says_makespan_bubbles_memory_idle_and_timeline(self):
        out = self.passed("simulate", SCHEDULES / "bert24.yaml", "--order", "fast_forward").stdout
        for part in ["makespan  90.000000 ms", "bubbles", "peak memory", "idle ms", "device3",
                     "F forward"]:
            self.assertIn(part, out)

    def test_files(self):
        self.passed("simulate", SCHEDULES / "bert24.yaml", "--order", "fast_forward", "--svg",
                    "t.svg", "--html", "t.html", "--trace", "t.trace.json", "--write-table",
                    "t.json")
        picture = (self.folder / "t.svg").read_text()
        self.assertIn("<svg", picture)
        page = (self.folder / "t.html").read_text()
        self.assertIn(picture[picture.index("<svg"):].strip(), page)
        self.assertIn("makespan  90.000000 ms", page)
        self.assertNotRegex(page, r"(src|href)=")  # it needs no other file
        events = json.loads((self.folder / "t.trace.json").read_text())["traceEvents"]
        tasks = [event for event in events if event["ph"] == "X"]
        table = json.loads((self.folder / "t.json").read_text())
        self.assertEqual(len(tasks), len(table["tasks"]))
        again = self.figures("t.json", "--order", "fast_forward")
        self.assertEqual(again["makespan_ns"], 90_000_000)

    def test_refusals(self):
        table = self.write(CSV, "t.csv")
        self.refused(2, ["nowhere.json"], "simulate", "nowhere.json", "--order", "program")
        self.refused(2, ["wanted --scheduler NAME"], "simulate", table)
        self.refused(2, ["one of them"], "simulate", table, "--order", "program", "--scheduler",
                     "sequential")
        self.refused(2, ["'zb_h3'", "zb_h1"], "simulate", table, "--order", "zb_h3")
        self.refused(3, ["nobody", "scheduler"], "simulate", table, "--scheduler", "nobody")
        self.refused(2, ["--set", "kk", "k"], "simulate", table, "--order", "reverse_first_k",
                     "--set", "kk=1")
        self.refused(2, ["not a pipeline"], "simulate", table, "--order", "zb_h1")
        self.refused(2, ["t.csv:4", "device 'gpx'", "gpu"], "simulate",
                     self.write(CSV.replace("a,forward,gpu", "a,forward,gpx"), "t.csv"),
                     "--order", "program")
        self.refused(4, ["no/such/folder"], "simulate", self.write(CSV, "u.csv"), "--order",
                     "program", "--svg", "no/such/folder/t.svg")


if __name__ == "__main__":
    unittest.main()
