# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tokenizers: small tokenizers and what the Python packages make of odd texts.

Run with the packages of requirements-tokenizers.txt. bpe.json is trained by `tokenizers`,
bpe_vocab.json and bpe_merges.txt are the same model in GPT-2's two files, unigram.model and
merges.model are trained by `sentencepiece`. cases.json holds texts (bytes in hexadecimal, since
some are no UTF-8) and the ids of each. Invariant: ids come from the packages alone. Training is not
the same in every version, so a new run means new models, and new ids with them.
"""

import io
import json
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).resolve().parent / "tokenizers"
TRAINING = [
    "The quick brown fox jumps over the lazy dog. It's what they'd say, isn't it? We'll see!",
    "she sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure",
    "for (int i = 0; i < 10; ++i) {\n\tsum += x[i] * y[i];\n}\n\nreturn sum;\n",
    "naïve café résumé über Straße текст на русском 你好世界 こんにちは",
    "1234 5678 90 3.14159 2.71828 2026-11-30 17:31",
] * 4
CASES = [
    b"",
    b" ",
    b"Hello world",
    b"  two  spaces   three\n\n\nlines \n and a tab\t\tend   ",
    b"\r\n\r\nCRLF lines\r\nend\r\n",
    b"it's we've I'm they'll he'd don't you're IT'S 's 'S ''s '",
    b"a1b2c3 12345 x=10;y=20 3.14 1e-3",
    "caf\u00e9 cafe\u0301 e\u0301\u0302\u0323 \u0300start".encode(),
    ("\U0001F600\U0001F468\u200d\U0001F469\u200d\U0001F467 flags \U0001F1E9\U0001F1EA "
     "\U0001F44D\U0001F3FD!").encode(),
    "nbsp\u00a0here ideographic\u3000space line\u2028sep next\u0085line thin\u2009 end".encode(),
    "\u0663\u0664\u0665 arabic digits \u2167 roman \u00bd half \u00b2 squared".encode(),
    ("你好，世界！ こんにちは、 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05dc\u05d5\u05dd "
     "\u0928\u092e\u0938\u094d\u0924\u0947").encode(),
    b"a <|endoftext|> b <|endoftext|>x<|pad|>",
    b"bad \xff\xfe bytes \xc3( \xe2\x82 cut \xf0\x9f\x98 end \xed\xa0\x80 \xc0\xaf \xf5",
    b"nul \x00 and control \x01\x1b[0m \x7f",
    b"z" * 98,
    "\u2581underline \u2581\u2581 two \ufeffbom \ufffd replaced".encode(),
]


def train_bpe() -> tokenizers.Tokenizer:
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    bpe.train_from_iterator(TRAINING, trainer)
    bpe.add_tokens([tokenizers.AddedToken("<|pad|>", special=False, normalized=False)])
    return bpe


def train_pieces(kind: str, rule: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter("\n".join(TRAINING).split("\n")), model_writer=model,
        model_type=kind, vocab_size=355, byte_fallback=True, normalization_rule_name=rule,
        character_coverage=0.98, minloglevel=2, num_threads=1)
    return model.getvalue()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    bpe = train_bpe()
    (FOLDER / "bpe.json").write_text(bpe.to_str(pretty=False), encoding="utf-8")
    model = json.loads(bpe.to_str())["model"]
    vocab = dict(sorted(model["vocab"].items(), key=lambda item: item[1]))
    (FOLDER / "bpe_vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    pairs = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    (FOLDER / "bpe_merges.txt").write_text("#version: 0.2\n" + "\n".join(pairs) + "\n",
                                           encoding="utf-8")
    pieces = {"unigram": train_pieces("unigram", "identity"),
              "merges": train_pieces("bpe", "identity")}
    processors = {}
    for name, content in pieces.items():
        (FOLDER / f"{name}.model").write_bytes(content)
        processors[name] = sentencepiece.SentencePieceProcessor(model_proto=content)

    cases = []
    for raw in CASES:
        text = raw.decode("utf-8", "replace")
        bpe.encode_special_tokens = True  # their text stays text
        case = {"text": raw.hex(), "bpe": bpe.encode(text, add_special_tokens=False).ids}
        bpe.encode_special_tokens = False
        case["bpe_special"] = bpe.encode(text, add_special_tokens=False).ids
        for name, processor in processors.items():
            case[name] = processor.encode(text)
        cases.append(case)
    versions = {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__}
    (FOLDER / "cases.json").write_text(
        json.dumps({"versions": versions, "cases": cases}, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
