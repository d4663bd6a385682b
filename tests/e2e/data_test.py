# SPDX-License-Identifier: Apache-2.0
"""Data through the program: sources, tokenizers, batches prepared ahead, `data inspect`."""

import json
import struct
import unittest
import zlib

from program import ROOT, ProgramTest

BPE = str(ROOT / "tests" / "golden" / "tokenizers" / "bpe.json")
DOCUMENTS = [f"document {k}: she sells {'sea shells ' * (k % 7)}by the sea shore"
             for k in range(60)]


class Data(ProgramTest):
    def weights(self, changes, name):
        folder = self.folder / name
        self.passed("train", self.config({**changes, "run.output": str(folder)}, f"{name}.yaml"))
        return (folder / "weights.safetensors").read_bytes()

    def documents(self):
        path = self.folder / "documents.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS))
        return str(path)

    def jsonl(self, **more):
        return {"data": {"plugin": "jsonl", "file": self.documents(), "block": 16, **more}}

    def test_batches_prepared_ahead_are_the_same(self):
        for accumulate in (1, 3):
            changes = {"run.max_steps": 12, "run.eval_interval": 4,
                       "run.accumulate_steps": accumulate}
            none = self.weights({**changes, "data.prefetch": 0}, f"none{accumulate}")
            for name, ahead, workers in (("one", 1, 1), ("many", 5, 3)):
                got = self.weights({**changes, "data.prefetch": ahead, "data.workers": workers},
                                   f"{name}{accumulate}")
                self.assertEqual(got, none, (name, accumulate))

    def test_inspect_shows_text(self):
        done = self.passed("data", "inspect", self.config({"data.order": "sequential"}),
                           "--batches", 2, "--rows", 1)
        self.assertIn("tokens int64 [2, 8]", done.stdout)
        self.assertIn('0: "the quic"', done.stdout)
        self.assertIn('0: "he quick"', done.stdout)
        self.assertIn("training batch 1: 2 rows", done.stdout)

    def test_inspect_ends_with_the_validation_split(self):
        done = self.passed("data", "inspect", self.config(), "--validation", "--batches", 1000)
        self.assertIn("validation batch 0: 2 rows", done.stdout)
        self.assertRegex(done.stdout, r"validation batch \d+: 0 rows\n$")

    def test_inspect_shows_pictures_by_their_range(self):
        for name in ("a", "b"):
            folder = self.folder / "pictures" / name
            folder.mkdir(parents=True)
            (folder / "1.png").write_bytes(png(255))
        path = self.config({"data": {"plugin": "images", "folder": str(self.folder / "pictures"),
                                     "size": [2, 2], "validation_fraction": 0}})
        done = self.passed("data", "inspect", path)
        self.assertIn("images float32 [2, 3, 2, 2], 1 to 1, mean 1", done.stdout)
        self.assertIn("labels int64 [2], 0 to 1", done.stdout)

    def test_documents_train_packed_and_padded(self):
        for rows in ("packed", "padded"):
            for apart in (False, True):
                changes = {**self.jsonl(rows=rows, tokenizer="bpe", tokenizer_file=BPE),
                           "model.documents": apart, "run.max_steps": 4}
                self.weights(changes, f"{rows}{apart}")
        first, second = (self.weights({**self.jsonl(), "model.documents": apart}, f"again{apart}")
                         for apart in (False, True))
        self.assertNotEqual(first, second, "documents: true changes nothing")

    def test_documents_sample_text(self):
        changes = {**self.jsonl(tokenizer="bytes"), "model.documents": True}
        path = self.config(changes)
        self.passed("train", path)
        done = self.passed("sample", path, "--prompt", "she ", "--tokens", 5)
        self.assertTrue(done.stdout.startswith("she "))

    def test_tokens_are_kept_for_the_next_run(self):
        cache = self.folder / "cache"
        path = self.config(self.jsonl(tokenizer="bpe", tokenizer_file=BPE))
        env = {"GRADRACK_CACHE_DIR": str(cache)}
        first = self.gradrack("data", "inspect", path, env=env)
        self.assertEqual(first.returncode, 0, first.stderr)
        kept = list((cache / "plugins").glob("tokens-*.bin"))
        self.assertEqual(len(kept), 1)
        self.assertEqual(self.gradrack("data", "inspect", path, env=env).stdout, first.stdout)
        kept[0].write_bytes(kept[0].read_bytes()[:-1] + b"\7")
        again = self.gradrack("data", "inspect", path, env=env)
        self.assertEqual(again.stdout, first.stdout)
        self.assertIn("its checksum does not hold", again.stderr)

    def test_token_files_train(self):
        ids = [k * k % 50 for k in range(2000)]
        (self.folder / "a.bin").write_bytes(struct.pack("<2000H", *ids))
        self.weights({"data": {"plugin": "tokens", "files": str(self.folder / "*.bin"),
                               "block": 8}}, "tokens")

    def test_faults_name_file_and_place(self):
        bad = self.folder / "bad.jsonl"
        bad.write_text('{"text": "fine"}\nnonsense\n')
        self.refused(2, ["bad.jsonl", "line 2 is no JSON"], "train",
                     self.config({"data": {"plugin": "jsonl", "file": str(bad), "block": 8}}))
        (self.folder / "bad.txt").write_bytes(b"some text \xff with a byte that is none " * 9)
        self.refused(4, ["bad.txt", "position 10", "invalid_utf8: replace"], "train",
                     self.config({"data": {"plugin": "text", "file": str(self.folder / "bad.txt"),
                                           "tokenizer": "bpe", "tokenizer_file": BPE,
                                           "block": 8}}))


def png(grey):
    def chunk(kind, body):
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)
    rows = b"".join(b"\0" + bytes([grey] * 9) for _ in range(3))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 3, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    unittest.main()
