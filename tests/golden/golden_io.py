# SPDX-License-Identifier: Apache-2.0
"""What the golden writers share: saving with metadata, and the error measure of the README.

Called by make_golden.py and make_op_golden.py. Invariant: the same tensors and metadata give the
same bytes, so that regenerating on the same torch leaves git clean.
"""

import json
import struct
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent
DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.bool: "BOOL",
}


def save(name: str, tensors: dict[str, torch.Tensor], metadata: dict[str, object]) -> None:
    """Writes FOLDER/name.safetensors; metadata values that are not strings become JSON.

    Written by hand because the safetensors package keeps metadata in a hash map, whose order (and
    so the file's bytes) changes from run to run. Tensors lie widest type first, then by name,
    which keeps every one aligned, as the format's own writer does.
    """
    order = sorted(tensors, key=lambda key: (-tensors[key].element_size(), key))
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    header: dict[str, object] = {"__metadata__": texts}
    body = b""
    for key in order:
        value = tensors[key].detach().contiguous()
        data = np.ascontiguousarray(value.numpy()).tobytes()
        header[key] = {
            "dtype": DTYPE_NAMES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = FOLDER / f"{name}.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def max_rel_err(got: torch.Tensor, want: torch.Tensor) -> float:
    """max |got - want| / max |want|: relative to the tensor's scale, so zeros do no harm."""
    scale = want.abs().max().item()
    error = (got.double() - want).abs().max().item()
    return error / scale if scale > 0 else error


def max_elementwise_rel_err(got: torch.Tensor, want: torch.Tensor) -> float:
    """max over elements of |got - want| / |want|, where want is not 0."""
    used = want != 0
    return ((got.double() - want).abs()[used] / want.abs()[used]).max().item()


def versions() -> dict[str, object]:
    """Metadata that every golden carries."""
    # The local part of the version ("+cpu") names a package variant, not a release.
    return {"torch": torch.__version__.split("+")[0], "made_by": "tests/golden/make_golden.py"}
