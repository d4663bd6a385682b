# SPDX-License-Identifier: Apache-2.0
"""Safetensors files to and from numpy arrays, with numpy alone."""

import json
import struct

import numpy

NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
         "int32": "I32", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def write_safetensors(path, tensors):
    header, parts, at = {}, [], 0
    # Widest elements first, so that each tensor is aligned.
    for name, array in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        content = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [at, at + len(content)]}
        parts.append(content)
        at += len(content)
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    dtypes = {short: name for name, short in NAMES.items()}
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = content[8 + size + begin:8 + size + end]
        if entry["dtype"] == "BF16":
            bits = numpy.frombuffer(raw, dtype="uint16").astype("uint32") << 16
            out[name] = bits.view("float32").reshape(entry["shape"])
            continue
        out[name] = numpy.frombuffer(raw, dtype=dtypes[entry["dtype"]]).reshape(entry["shape"])
    return out
