# SPDX-License-Identifier: Apache-2.0
"""Weights of the package `transformers` into the model `gpt` and back, by mapping files.

The goldens hf_gpt2 and hf_llama are files as that package saves them, with the loss that its own
classes give for one batch (tests/golden/make_hf_golden.py). Here the loss has to be the same, and
what is written back the same file, bit for bit.
"""

import json
import struct
import unittest

from program import ROOT, ProgramTest

GOLDEN = ROOT / "tests" / "golden"
MAPPINGS = ROOT / "plugins" / "models" / "gpt" / "mappings"
VOCAB, BLOCK, ROWS = 53, 16, 4
GPT2 = {"plugin": "gpt", "layers": 2, "heads": 4, "dim": 32, "vocab": VOCAB, "norm": "layer",
        "positions": "learned", "ffn": "gelu_tanh", "bias": True}
LLAMA = {"plugin": "gpt", "layers": 2, "heads": 4, "kv_heads": 2, "dim": 32, "ffn_dim": 72,
         "vocab": VOCAB, "norm_eps": 1e-6, "rope_theta": 500, "tied": False}
MODELS = {"gpt2": GPT2, "llama": LLAMA}
STORED = {"gpt2": "F32", "llama": "BF16"}
# Of the loss, in fp32: sums of a hundred terms, each rounded to 24 bits.
TOLERANCE = 2e-6


def read(path):
    """{name: (dtype, shape, bytes)} of a safetensors file, and its metadata."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    body = content[8 + size:]
    return {name: (each["dtype"], each["shape"], body[slice(*each["data_offsets"])])
            for name, each in header.items()}, metadata


def write(path, tensors, metadata=None):
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(body), len(body) + len(content)]}
        body += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class MappingTest(ProgramTest):

    def run_file(self, kind, weights=None, mapping=None, changes=None, name="run.yaml", **model):
        """A run over the golden's batch that begins with the golden's weights."""
        batch, _ = read(GOLDEN / f"hf_{kind}_run.safetensors")
        tokens = struct.unpack(f"<{ROWS * BLOCK}q", batch["input.tokens"][2])
        targets = struct.unpack(f"<{ROWS * BLOCK}q", batch["input.targets"][2])
        ids = tokens + targets[-1:]
        (self.folder / "ids.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
        file = str(weights or GOLDEN / f"hf_{kind}.safetensors")
        ids_file = str(self.folder / "ids.bin")
        return self.config({
            "data": {"plugin": "tokens", "files": ids_file, "validation_files": ids_file,
                     "block": BLOCK, "vocab": VOCAB},
            "model": {**MODELS[kind], **model},
            "run": {"seed": 3, "max_steps": 1, "batch_size": ROWS, "log_interval": 1,
                    "output": str(self.folder / "out"),
                    "init_from": {"file": file, "mapping": str(mapping or f"{kind}.yaml")}},
            # A rate that changes no bit.
            "optimizer": {"plugin": "sgd", "lr": 1e-38}, **(changes or {})}, name)

    def loss_of(self, kind):
        batch, _ = read(GOLDEN / f"hf_{kind}_run.safetensors")
        return struct.unpack("<d", batch["output.loss"][2])[0]

    def mapping(self, kind, old, new, name="mine.yaml"):
        """A copy of a mapping with a part replaced."""
        text = (MAPPINGS / f"{kind}.yaml").read_text()
        self.assertIn(old, text)
        self.write(text.replace(old, new, 1), name)
        return f"./{name}"

    def fails(self, parts, *args, code=2, **more):
        return self.refused(code, parts, "train", self.run_file(*args, **more))


class Weights(MappingTest):

    def test_the_loss_is_that_of_the_package(self):
        for kind in MODELS:
            for backend in ("reference", "cpu"):
                self.passed("train", self.run_file(kind, changes={
                    "backend": {"plugin": backend}, "run.resume": "never"}))
                wanted = self.loss_of(kind)
                difference = abs(self.losses()[0] - wanted) / wanted
                print(f"{kind} on {backend}: relative difference of the loss {difference:.1e}")
                self.assertLessEqual(difference, TOLERANCE)

    def test_what_is_written_back_is_the_same_file(self):
        for kind in MODELS:
            self.passed("train", self.run_file(kind, changes={"run.resume": "never"}))
            back = self.folder / "back.safetensors"
            self.passed("export", self.folder / "out", "--format", "safetensors", "--mapping",
                        f"{kind}.yaml", "--dtype", STORED[kind], "--output", back)
            self.assertEqual(back.read_bytes(),
                             (GOLDEN / f"hf_{kind}.safetensors").read_bytes())

    def test_the_weights_that_a_run_begins_with_are_exported_without_training(self):
        back = self.folder / "back.safetensors"
        self.passed("export", self.run_file("gpt2"), "--initial", "--format", "safetensors",
                    "--mapping", "gpt2.yaml", "--output", back)
        self.assertEqual(back.read_bytes(), (GOLDEN / "hf_gpt2.safetensors").read_bytes())

    def test_a_file_of_others_is_evaluated_and_sampled(self):
        golden = GOLDEN / "hf_llama.safetensors"
        words = [self.run_file("llama"), "--checkpoint", golden, "--mapping", "llama.yaml"]
        said = self.passed("eval", *words).stdout
        self.assertLessEqual(abs(float(said.split()[1]) - self.loss_of("llama")), 1e-5)
        self.refused(2, ["'lm_head.weight', which this model does not have"], "eval",
                     *words[:3])

    def test_names_without_the_prefix_and_repeated_heads_and_masks_are_read(self):
        tensors, _ = read(GOLDEN / "hf_gpt2.safetensors")
        older = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        older["lm_head.weight"] = older["wte.weight"]
        older["h.0.attn.bias"] = ("F32", [1, 1, 2, 2], bytes(16))
        write(self.folder / "older.safetensors", older)
        done = self.passed("train", self.run_file("gpt2", self.folder / "older.safetensors"))
        self.assertIn("h.0.attn.bias", done.stderr)
        self.assertLessEqual(abs(self.losses()[0] - self.loss_of("gpt2")), 1e-5)

    def test_casts_are_said(self):
        said = self.passed("train", self.run_file("llama")).stderr
        self.assertIn("21 weights of dtype BF16 become F32", said)
        said = self.passed("train", self.run_file("gpt2", changes={"run.resume": "never"})).stderr
        self.assertNotIn("become", said)

    def test_a_head_of_its_own_has_to_have_a_place(self):
        tensors, _ = read(GOLDEN / "hf_llama.safetensors")
        self.fails(["'lm_head.weight' as a copy of 'model.embed_tokens.weight', but they differ",
                    "tied: false"], "llama", tied=True)
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
        write(self.folder / "tied.safetensors", tensors)
        self.passed("train", self.run_file("llama", self.folder / "tied.safetensors", tied=True))


class Refusals(MappingTest):

    def test_another_size_names_tensor_weight_and_both_shapes(self):
        self.fails(["hf_gpt2.safetensors", "'transformer.h.0.mlp.c_fc.weight'", "F32 [32, 128]",
                    "wanted F32 [32, 64]", "'blocks.0.mlp.up.weight'", "options"], "gpt2",
                   ffn_dim=64)
        self.fails(["'transformer.wpe.weight'", "[16, 32]", "wanted F32 [32, 32]"], "gpt2",
                   block=32)

    def test_other_layers_name_what_is_missing_or_left(self):
        self.fails(["lacks 'transformer.h.2.", "for 'blocks.2."], "gpt2", layers=3)
        self.fails(["has 'transformer.h.1.", "and 11 more", "for 'blocks.1.",
                    "does not have"], "gpt2", layers=1)

    def test_options_that_change_the_model_are_refused(self):
        self.fails(["run.yaml", "needs ffn: gelu_tanh"], "gpt2", ffn="gelu")
        self.fails(["needs norm: rms"], "llama", norm="layer")
        self.refused(2, ["needs norm: rms"], "validate", self.run_file("llama", norm="layer"))
        self.fails(["no rule names 'blocks.0.mlp.gate.weight'"], "llama",
                   mapping=self.mapping("gpt2", "needs: {plugin: gpt, norm: layer, positions: "
                                        "learned, ffn: gelu_tanh, bias: true}", "needs: "
                                        "{plugin: gpt}"))

    def test_tensors_that_no_rule_names(self):
        tensors, _ = read(GOLDEN / "hf_gpt2.safetensors")
        tensors["extra"] = ("F32", [1], bytes(4))
        write(self.folder / "extra.safetensors", tensors)
        self.fails(["has 'extra'", "no rule names", "ignore"], "gpt2",
                   self.folder / "extra.safetensors")
        tensors.pop("extra")
        tensors["ln_f.bias"] = tensors["transformer.ln_f.bias"]
        write(self.folder / "twice.safetensors", tensors)
        self.fails(["has 'ln_f.bias', a second tensor for 'norm_f.bias'"], "gpt2",
                   self.folder / "twice.safetensors")
        tensors.pop("ln_f.bias")
        tensors["transformer.ln_f.bias"] = ("I64", [32], bytes(256))
        write(self.folder / "whole.safetensors", tensors)
        self.fails(["'transformer.ln_f.bias' as I64 [32]", "wanted real numbers"], "gpt2",
                   self.folder / "whole.safetensors")

    def test_mapping_files_that_are_wrong(self):
        line = '  - {file: "transformer.ln_f.bias", model: "norm_f.bias"}\n'
        cases = [
            (line, "", ["mine.yaml", "no rule names 'norm_f.bias'"]),
            (line, line + line.replace("ln_f", "ln_g"), ["both rules name 'norm_f.bias'"]),
            (line, line.replace("ln_f.bias", "ln_f.weight"),
             ["both rules use 'transformer.ln_f.weight'"]),
            (line, line.replace("}", ", transpose: yes}"), ["transpose", "true or false"]),
            (line, line.replace("}", ", transpose: true}"), ["transpose: 'norm_f.bias' has 1 dim"]),
            (line, line.replace("model:", "modle:"), ["rules.15.modle", "did you mean 'model'"]),
            (line, line.replace("ln_f.bias", "ln_{f.bias"), ["rules.15.file", "'{' has no '}'"]),
            (line, line.replace("norm_f", "norm_{n}"), ["different places"]),
            ("    split: 1\n", "", ["rules.4.split: missing"]),
            ("    split: 1\n", "    split: 0\n", ["'transformer.h.0.attn.c_attn.weight'",
                                                "wanted F32 [96, 32]"]),
            ("    split: 1\n", "    split: 2\n", ["do not fit side by side along axis 2"]),
            ('n.v.weight"]', 'n.v.weight", "blocks.{n}.attn.x.weight"]',
             ["'blocks.0.attn.x.weight', which the model lacks"]),
            ("rules:", "rule:", ["rule: unknown key (did you mean 'rules'?)"]),
            ("needs: {plugin: gpt,", "needs: {plugin: cnn,", ["got gpt", "is for cnn"]),
            ("gpt, norm: layer, pos", "gpt, nrm: layer, pos", ["needs.nrm", "did you mean 'norm'"]),
        ]
        for old, new, parts in cases:
            with self.subTest(parts=parts):
                self.fails(parts, "gpt2", mapping=self.mapping("gpt2", old, new))
        self.write("[]", "list.yaml")
        self.fails(["list.yaml", "wanted the keys of a mapping file"], "gpt2",
                   mapping="./list.yaml")

    def test_names_of_mappings(self):
        self.fails(["'gpt3.yaml'", "did you mean 'gpt2.yaml'", "gpt2.yaml, llama.yaml",
                    "./gpt3.yaml"], "gpt2", mapping="gpt3.yaml")
        self.fails(["./gone.yaml", "No such file"], "gpt2", mapping="./gone.yaml")

    def test_keys_of_the_run_file(self):
        for value, parts in (({"mapping": "gpt2.yaml"}, ["run.init_from.file: missing"]),
                             ({"file": "x", "map": "y"}, ["run.init_from.map: unknown key"]),
                             (["x"], ["run.init_from: got a list"])):
            self.fails(parts, "gpt2", changes={"run.init_from": value})

    def test_options_of_export(self):
        run = self.run_file("gpt2")
        out = self.folder / "out.file"
        self.refused(2, ["--mapping", "--format safetensors"], "export", run, "--initial",
                     "--mapping", "gpt2.yaml", "--output", out)
        self.refused(2, ["--dtype", "got 'F8'", "BF16"], "export", run, "--initial", "--format",
                     "safetensors", "--dtype", "F8", "--output", out)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
