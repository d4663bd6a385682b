# SPDX-License-Identifier: Apache-2.0
"""Every command on a device with memory of its own: the plugin `emulated` of tests/support.

Its kernels are those of reference, so results are compared to the bit; a host that reads its memory
by itself ends with a signal, which is no exit code that these tests accept.
"""

import unittest

from program import BUILD, ProgramTest

EMULATED = BUILD / "tests" / "emulated"
REFERENCE = {"plugin": "reference"}


def chain(**options):
    return [{"plugin": "emulated", **options}, REFERENCE]


class DeviceMemory(ProgramTest):
    def words(self, command, changes, *more):
        return [command, self.config(changes), "--plugin-path", EMULATED, *more]

    def weights(self, backend):
        self.passed(*self.words("train", {"backend": backend, "run.accumulate_steps": 2}))
        return (self.folder / "out" / "weights.safetensors").read_bytes()

    def test_train_writes_the_weights_of_reference(self):
        # What a device with gaps decomposes rounds elsewhere: compare with the same gaps.
        gaps = "Gather Softmax gradrack.AdamW Mul"
        for refuse, plain in (("", REFERENCE), (gaps, chain(memory="host", refuse=gaps))):
            expected = self.weights(plain)
            for memory in ("device", "handle"):
                backend = chain(memory=memory, refuse=refuse)
                self.assertEqual(self.weights(backend), expected, backend)

    def test_eval_and_sample_read_weights_through_the_device(self):
        self.weights(REFERENCE)
        sample = ["--prompt", "the ", "--tokens", "20"]
        for memory in ("device", "handle"):
            backend = {"backend": chain(memory=memory)}
            for command, more in (("eval", []), ("sample", sample)):
                plain = self.passed(*self.words(command, {"backend": REFERENCE}, *more))
                done = self.passed(*self.words(command, backend, *more))
                self.assertEqual(done.stdout, plain.stdout)

    def test_explain_says_what_runs_where_and_what_crosses(self):
        backend = chain(memory="handle", refuse="gradrack.AdamW Mul")
        done = self.passed(*self.words("explain", {"backend": backend}))
        self.assertRegex(done.stdout, r"backend emulated: \d+ native, \d+ decomposed, \d+ to the "
                                      r"next: .*gradrack\.AdamW \(no kernel for gradrack\.AdamW")
        self.assertRegex(done.stdout, r"backend reference: \d+ native")
        self.assertRegex(done.stdout, r"between devices, a step: emulated to reference \d+ copies "
                                      r".*reference to emulated \d+ copies .*; the host waits \d+ ")
        self.assertRegex(done.stdout, r"on emulated: arena .*, constants ")
        self.assertNotIn("between devices", self.passed(
            *self.words("explain", {"backend": REFERENCE})).stdout)

    def test_train_says_what_crosses_and_uses_the_memory_that_it_announced(self):
        done = self.passed(*self.words("train", {"backend": chain(refuse="Mul")}))
        self.assertRegex(done.stderr, r"step: between devices, a step: emulated to reference \d+ "
                                      r"copies")
        announced, used = (line.split(" bytes")[0].split("(")[-1]
                           for line in done.stderr.splitlines() if " bytes)" in line)
        self.assertEqual(announced, used)

    def test_strict_fallback_refuses_to_leave_the_device(self):
        backend = [{"plugin": "emulated", "refuse": "Mul", "fallback": "strict"}, REFERENCE]
        self.refused(3, ["backend fallback is strict", "emulated:", "Mul (no kernel for Mul)"],
                     *self.words("train", {"backend": backend}))

    def test_a_device_alone_needs_no_backend_in_host_memory(self):
        expected = self.weights(REFERENCE)
        backend = {"plugin": "emulated", "memory": "device"}
        self.assertEqual(self.weights(backend), expected)
        self.passed(*self.words("validate", {"backend": backend}))


if __name__ == "__main__":
    unittest.main()
