#!/usr/bin/env python3
"""Writes the seed corpora of the safetensors and config.json fuzz targets: tiny files, valid and subtly broken.

    python3 tests/reference/make_safetensors_corpus.py tests/corpus/safetensors_fuzz tests/corpus/hugging_face_config_fuzz

Only the standard library is used; the output is the same on every run.
"""
import json
import pathlib
import struct
import sys


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


FILES = {
    "empty": b"",
    "nothing": file({}),
    "two": file({"__metadata__": {"format": "pt"}, "a": tensor("BF16", [2, 2], 0, 8), "b": tensor("F32", [2], 8, 16)}, bytes(16)),
    "scalar": file({"s": tensor("I64", [], 0, 8)}, bytes(8)),
    "no_elements": file({"e": tensor("F16", [0, 3], 0, 0)}),
    "overlap": file({"a": tensor("U8", [8], 0, 8), "b": tensor("U8", [8], 4, 12)}, bytes(12)),
    "gap": file({"a": tensor("U8", [4], 0, 4), "b": tensor("U8", [4], 8, 12)}, bytes(12)),
    "rest": file({"a": tensor("U8", [4], 0, 4)}, bytes(9)),
    "backwards": file({"a": tensor("U8", [4], 4, 0)}, bytes(4)),
    "overflow": file({"a": tensor("F32", [1 << 62, 8], 0, 0)}),
    "twice": file(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', bytes(2)),
    "long_header": file({}, length=1 << 40),
    "list": file(b"[1,2]"),
    "cut": file(b'{"a":{"dtype":"F'),
}

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64,
         "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
         "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": True, "hidden_act": "silu"}
ROPES = {
    "linear": {"type": "linear", "factor": 2.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1,
             "attention_factor": 1.2},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32},
    "longrope": {"rope_type": "longrope", "long_factor": [1.0], "short_factor": [1.0]},
    "nested": {"full_attention": {"rope_type": "default", "rope_theta": 1e6}},
}
CONFIGS = {
    "llama": LLAMA,
    "qwen2": LLAMA | {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False,
                      "sliding_window": 32, "layer_types": ["full_attention"]},
    "qwen3": LLAMA | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 32},
    "mistral": LLAMA | {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": None},
    "window": LLAMA | {"sliding_window": 16},
    "experts": LLAMA | {"num_local_experts": 8},
    "quantized": LLAMA | {"quantization_config": {"quant_method": "gptq"}},
    "unknown": LLAMA | {"model_type": "gemma3"},
    "huge": LLAMA | {"hidden_size": 1e300, "max_position_embeddings": 1 << 62},
    "empty": {},
} | {name: LLAMA | {"rope_scaling": rope} for name, rope in ROPES.items()}

if __name__ == "__main__":
    for folder, cases in ((sys.argv[1], FILES),
                          (sys.argv[2], {name: json.dumps(config).encode() for name, config in CONFIGS.items()})):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in cases.items():
            (folder / name).write_bytes(data)
        print(f"{len(cases)} files, {sum(map(len, cases.values()))} bytes")
