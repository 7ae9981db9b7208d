#!/usr/bin/env python3
"""Writes dequantize.bin: rows of every tensor type, and what the gguf package says they stand for.

    pip install -r requirements.txt
    python make_dequantize.py dequantize.bin

The bits are random: every scale (also negative, subnormal and zero ones) and every quant occurs, no infinity or NaN. The format
is described in README.md.
"""
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

ELEMENTS = 1024
# Byte offsets of the f16 numbers in a block.
HALVES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
}


def random_bytes(random, kind):
    if kind == Type.F32:
        return random.standard_normal(ELEMENTS).astype("<f4").view(np.uint8)
    block, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (ELEMENTS // block, size), np.uint8)
    offsets = HALVES.get(kind, [0])
    for offset in offsets:
        # f16 and bf16: no exponent of all ones.
        blocks[:, offset + 1] &= 0xBF
    blocks[0, offsets[0]:offsets[0] + 2] = 0
    return blocks.reshape(-1)


def main(path):
    kinds = [Type.F32, Type.F16, Type.BF16, *HALVES]
    out = b"WPDEQUAN" + struct.pack("<I", len(kinds))
    for kind in kinds:
        data = random_bytes(np.random.default_rng(int(kind)), kind)
        values = dequantize(data.reshape(1, -1), kind).astype("<f4").reshape(-1)
        assert values.size == ELEMENTS and np.isfinite(values).all(), kind
        out += struct.pack("<III", int(kind), ELEMENTS, data.size) + data.tobytes() + values.tobytes()
    with open(path, "wb") as file:
        file.write(out)
    print(f"{len(kinds)} types, {len(out)} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
