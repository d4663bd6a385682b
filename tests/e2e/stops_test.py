# SPDX-License-Identifier: Apache-2.0
"""How runs end before their end: signals, time, a closed stdout. Exit codes, and what is saved."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest


class Stops(ProgramTest):
    """Signals and time; the steps are slow enough to be hit by them."""

    SLOW = {"run.max_steps": 100000, "run.log_interval": 1, "run.eval_interval": 0,
            "run.eval_batches": 1, "checkpoint.interval": 50}

    def start(self, changes=None, env=None, **popen):
        path = self.config({**self.SLOW, **(changes or {})})
        return subprocess.Popen([str(PROGRAM), "train", str(path)], cwd=self.folder,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "NO_COLOR": "1", **(env or {})}, **popen)

    def wait_for(self, text, process, folder="out", seconds=60):
        end = time.monotonic() + seconds
        path = self.folder / folder / "metrics.jsonl"
        while time.monotonic() < end and process.poll() is None:
            if path.exists() and text in path.read_text():
                return
            time.sleep(0.02)
        self.fail(f"{text} was not seen; exit {process.poll()}")

    def test_each_signal_stops_with_a_checkpoint(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(number):
                process = self.start()
                self.wait_for('"step":3,', process)
                process.send_signal(number)
                errors = process.communicate(timeout=60)[1]
                self.assertEqual(process.returncode, code, errors)
                last = sorted((self.folder / "out" / "checkpoints").iterdir())[-1]
                step = json.loads((last / "state.json").read_text())["step"]
                self.assertIn(f"stopped by signal {int(number)} after step {step}", errors)
                shutil.rmtree(self.folder / "out")

    def test_ignored_signals_stay_ignored(self):
        process = self.start({"run.max_steps": 300}, preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN))
        self.wait_for('"step":3,', process)
        process.send_signal(signal.SIGHUP)
        errors = process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 0, errors)

    def test_a_second_signal_ends_at_once(self):
        process = self.start({"model.layers": 4, "model.dim": 64, "run.batch_size": 64,
                              "run.accumulate_steps": 1, "data.block": 32})
        self.wait_for('"step":1,', process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, -signal.SIGTERM, 143))

    def test_time_is_up(self):
        path = self.config({**self.SLOW, "run.max_steps": 1000000})
        done = self.gradrack("train", path, "--max-time", "2s")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("because run.max_time is over", done.stderr)
        last = sorted((self.folder / "out" / "checkpoints").iterdir())[-1]
        self.assertGreater(json.loads((last / "state.json").read_text())["step"], 0)

    def test_grace_time_is_kept(self):
        process = self.start({"checkpoint.grace": "1s", "model.layers": 8, "model.dim": 128,
                              "run.batch_size": 256, "data.block": 32})
        time.sleep(2)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertLess(time.monotonic() - start, 10)

    def test_closed_stdout_and_a_reader_that_goes_away(self):
        path = self.config({"run.max_steps": 5, "run.log_interval": 1})
        script = f'exec "{PROGRAM}" train "{path}" >&-'
        done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True,
                              cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.folder / "out")
        script = f'("{PROGRAM}" train "{path}"; echo $? > code) 2>&1 | head -1'
        subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, cwd=self.folder, timeout=60)
        self.assertEqual((self.folder / "code").read_text().strip(), "0")
        self.assertEqual(max(r["step"] for r in self.metrics() if "train/loss" in r), 5)

    def test_a_stop_within_evaluation_is_honoured(self):
        process = self.start({"run.eval_interval": 2, "run.eval_batches": 1000000,
                              "data.validation_fraction": 0.5})
        self.wait_for('"step":2,', process)
        process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 143, errors)
        self.assertLess(time.monotonic() - start, 20)


if __name__ == "__main__":
    unittest.main()
