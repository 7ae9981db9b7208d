#!/usr/bin/env python3
"""Writes the seed corpus of the GGUF fuzz target: tiny files, valid and subtly broken.

    python3 tests/reference/make_gguf_corpus.py tests/corpus/gguf_fuzz

Only the standard library is used; the output is the same on every run.
"""
import pathlib
import struct
import sys

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, payload):
    return string(key) + struct.pack("<I", kind) + payload


def array(kind, count, payload):
    return struct.pack("<IQ", kind, count) + payload


def tensor(name, dims, kind, offset):
    return string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, offset)


def file(entries=(), tensors=(), data=b"", version=3, align=32, tensor_count=None, entry_count=None):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if tensor_count is None else tensor_count,
                                len(entries) if entry_count is None else entry_count)
    out += b"".join(entries) + b"".join(tensors)
    out += b"\0" * (-len(out) % align)
    return out + data


META = [
    entry("general.architecture", STRING, string("llama")),
    entry("llama.block_count", U32, struct.pack("<I", 1)),
    entry("llama.rope.freq_base", F32, struct.pack("<f", 1e5)),
    entry("tokenizer.ggml.add_bos_token", BOOL, b"\1"),
    entry("tokenizer.ggml.tokens", ARRAY, array(STRING, 3, string("a") + string("") + string(b"\xff\xfe"))),
    entry("tokenizer.ggml.token_type", ARRAY, array(I32, 3, struct.pack("<3i", 1, 3, -6))),
]
NESTED = array(ARRAY, 2, array(U32, 1, struct.pack("<I", 5)) + array(STRING, 1, string("deep")))

CASES = {
    "empty": b"",
    "header_only": file(),
    "metadata": file(META),
    "full": file(META, [tensor("w", [32, 2], 3, 0), tensor("n", [4], 0, 64)], bytes(range(80))),
    "aligned_8": file([entry("general.alignment", U32, struct.pack("<I", 8))], [tensor("t", [2], 0, 8)], bytes(16), align=8),
    "nested_array": file([entry("nest", ARRAY, NESTED)]),
    "too_deep": file([entry("deep", ARRAY, array(ARRAY, 1, array(ARRAY, 1, array(ARRAY, 1, array(ARRAY, 1, array(U32, 0, b""))))))]),
    "huge_array": file([entry("a", ARRAY, array(U64, 1 << 61, b""))]),
    "huge_string": file([entry("s", STRING, struct.pack("<Q", (1 << 64) - 1))]),
    "huge_counts": file(tensor_count=(1 << 64) - 1, entry_count=1 << 63),
    "version_2": file(META, version=2),
    "big_endian": file(META, version=0x03000000),
    "overlap": file(tensors=[tensor("a", [16], 0, 0), tensor("b", [16], 0, 32)], data=bytes(128)),
    "dims_overflow": file(tensors=[tensor("a", [1 << 40, 1 << 40], 0, 0)], data=bytes(32)),
    "past_end": file(tensors=[tensor("a", [64], 0, 32)], data=bytes(64)),
    "withdrawn_type": file(tensors=[tensor("a", [32], 4, 0)], data=bytes(64)),
    "twice": file([META[1], META[1]]),
    "bool_2": file([entry("b", BOOL, b"\2")]),
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in CASES.items():
        (folder / name).write_bytes(data)
    print(f"{len(CASES)} files, {sum(map(len, CASES.values()))} bytes")
