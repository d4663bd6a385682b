# SPDX-License-Identifier: Apache-2.0
"""Writes hf_gpt2 and hf_llama: small models of the package `transformers`, as it saves them.

NAME.safetensors is the file that save_pretrained writes, with the names, layouts and order of that
package; NAME_run.safetensors holds one batch with the logits and the loss that the package's own
classes give for it in fp64. Rows of the batch follow each other in one text, so that a data source
can serve them too. Weights are random, of std 0.2, so that every part of the model matters.
Run: python tests/golden/make_hf_golden.py (requirements-hf.txt); running the tests needs neither.
"""

import shutil
import tempfile
from pathlib import Path

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import golden_io

SEED = 20240517
ROWS, BLOCK, VOCAB = 4, 16, 53


def gpt2():
    # The defaults are GPT-2's: gelu_new, layer norm of eps 1e-5, biases, tied head.
    config = GPT2Config(vocab_size=VOCAB, n_positions=BLOCK, n_embd=32, n_layer=2, n_head=4,
                        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager")
    return GPT2LMHeadModel(config), torch.float32


def llama():
    # Nothing of it is the `gpt` plugin's default: widths, theta and eps have to be taken over.
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=32, intermediate_size=72,
                         num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=BLOCK, rms_norm_eps=1e-6, rope_theta=500.0,
                         tie_word_embeddings=False, attn_implementation="eager")
    return LlamaForCausalLM(config), torch.bfloat16


def draw_weights(model, dtype, gen):
    """Every tensor that is saved, biases and norm scales too, exact in `dtype`."""
    for name, value in model.named_parameters():
        scale = ("norm" in name or "ln_" in name) and name.endswith("weight")
        drawn = torch.randn(value.shape, generator=gen) * 0.2 + (1.0 if scale else 0.0)
        value.data = drawn.to(dtype)


def write(name, model, dtype):
    gen = torch.Generator().manual_seed(SEED)
    draw_weights(model, dtype, gen)
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, safe_serialization=True)
        path = golden_io.FOLDER / f"{name}.safetensors"
        shutil.copyfile(Path(folder) / "model.safetensors", path)
    text = torch.randint(VOCAB, (ROWS * BLOCK + 1,), generator=gen)
    tokens, targets = (part.reshape(ROWS, BLOCK).clone() for part in (text[:-1], text[1:]))
    with torch.no_grad():
        logits = model.double()(input_ids=tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))
    golden_io.save(f"{name}_run", {"input.tokens": tokens, "input.targets": targets,
                                   "output.logits": logits, "output.loss": loss},
                   golden_io.versions() | {
                       "made_by": "tests/golden/make_hf_golden.py", "seed": SEED,
                       "transformers": transformers.__version__,
                       "class": type(model).__name__})


def main():
    torch.set_num_threads(1)
    write("hf_gpt2", *gpt2())
    write("hf_llama", *llama())


if __name__ == "__main__":
    main()
