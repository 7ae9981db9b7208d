#!/usr/bin/env python3
"""Writes tiny random models of every architecture, and what transformers makes of them.

    pip install -r requirements-models.txt
    python make_models.py models            # the files of the tree
    python make_models.py --all /tmp/models # also one GGUF of every tensor type and architecture, for a live check

Each model is NAME.gguf or the folder NAME, with NAME.golden beside it in the format of golden.bin (README.md). The engine sees
only the files; transformers gets its own state dict, so that names, layouts, pairings and scalings are checked, not assumed.
"""
import argparse
import hashlib
import json
import math
import pathlib
import struct

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

TOP, GREEDY, TOKENS, VOCABULARY = 64, 16, 48, 256
K_TYPES = {Type.Q4_K: 144, Type.Q5_K: 176, Type.Q6_K: 210}
TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, *K_TYPES]
CONFIGS = {
    "llama": (LlamaConfig, dict(
        tie_word_embeddings=False, num_key_value_heads=2,
        rope_parameters=dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=32))),
    "qwen2": (Qwen2Config, dict(
        tie_word_embeddings=True, num_key_value_heads=1, use_sliding_window=False,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=32))),
    "qwen3": (Qwen3Config, dict(
        tie_word_embeddings=False, num_key_value_heads=2, use_sliding_window=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6))),
}


def make_config(architecture, **shape):
    kind, settings = CONFIGS[architecture]
    return kind(vocab_size=VOCABULARY, max_position_embeddings=128, rms_norm_eps=1e-6, num_attention_heads=4,
                **{**settings, **shape})


def make_model(config, seed):
    """Weights of about unit gain, norms around one, biases that matter."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("norm.weight") or "layernorm" in name:
                tensor.copy_(1 + 0.2 * torch.randn_like(tensor))
            elif name.endswith(".bias"):
                tensor.copy_(0.3 * torch.randn_like(tensor))
            elif "embed" in name or "lm_head" in name:
                tensor.copy_(torch.randn_like(tensor) * (2.5 / math.sqrt(tensor.shape[1]) if "lm_head" in name else 0.3))
            else:
                tensor.copy_(torch.randn_like(tensor) / math.sqrt(tensor.shape[1]))
    return model


def random_k_rows(random, kind, rows, columns):
    """Blocks of a K type that decode to about unit gain. The gguf package cannot quantize to them."""
    blocks = random.integers(0, 256, (rows * columns // 256, K_TYPES[kind]), np.uint8)
    half = lambda x: np.frombuffer(np.float16(x).tobytes(), np.uint8)
    gain = 1 / math.sqrt(columns)
    if kind == Type.Q6_K:
        blocks[:, 208:210] = half(gain / 18 / 60)
    else:
        levels = 16 if kind == Type.Q4_K else 32
        blocks[:, 0:2] = half(gain / levels * 3 / 32)
        blocks[:, 2:4] = half(gain / 20)
    return blocks.reshape(rows, -1)


def name_in_gguf(name):
    for old, new in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output"),
                     ("model.layers.", "blk."), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"),
                     ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"), ("self_attn.q_norm", "attn_q_norm"),
                     ("self_attn.k_norm", "attn_k_norm"), ("post_attention_layernorm", "ffn_norm"),
                     ("input_layernorm", "attn_norm"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
                     ("mlp.down_proj", "ffn_down")):
        name = name.replace(old, new)
    return name


def pair_order(rows, heads):
    """For each row of a GGUF file's q or k the row of Hugging Face's: (i, i + half) become neighbours."""
    size = rows // heads
    return np.arange(rows).reshape(heads, 2, size // 2).swapaxes(1, 2).reshape(-1)


def rope_factors(config, size):
    p = config.rope_parameters
    low, high = (p["original_max_position_embeddings"] / p[k] for k in ("low_freq_factor", "high_freq_factor"))
    out = []
    for i in range(0, size, 2):
        wave = 2 * math.pi * p["rope_theta"] ** (i / size)
        if wave < high:
            out.append(1.0)
        elif wave > low:
            out.append(p["factor"])
        else:
            smooth = (p["original_max_position_embeddings"] / wave - p["low_freq_factor"]) / (
                p["high_freq_factor"] - p["low_freq_factor"])
            out.append(1 / ((1 - smooth) / p["factor"] + smooth))
    return np.array(out, np.float32)


def write_gguf(path, architecture, model, config, types):
    """`types(name)` is the type of a matrix. The model's weights become what the file holds."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(path.stem)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    if config.rope_parameters["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(config.rope_parameters["factor"])
        writer.add_rope_scaling_orig_ctx_len(config.rope_parameters["original_max_position_embeddings"])
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config, size))
    random = np.random.default_rng(1)
    state = model.state_dict()
    for name, tensor in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        target = name_in_gguf(name)
        values = tensor.numpy()
        order = np.arange(len(values))
        if architecture == "llama" and ("attn_q." in target or "attn_k." in target):
            order = pair_order(len(values), config.num_attention_heads if "attn_q." in target else config.num_key_value_heads)
        kind = Type.F32 if values.ndim == 1 else types(target)
        if kind in K_TYPES and values.shape[1] % 256 == 0:
            data = random_k_rows(random, kind, *values.shape)
        else:
            kind = Type.Q8_0 if kind in K_TYPES else kind  # as llama.cpp falls back
            data = quantize(np.ascontiguousarray(values[order]), kind)
        writer.add_tensor(target, data, raw_dtype=kind)
        held = np.empty_like(values)
        held[order] = dequantize(data, kind).reshape(values.shape)
        tensor.copy_(torch.from_numpy(held))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_folder(path, model, config, dtype, shards):
    path.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.to(dtype).clone() for name, tensor in model.state_dict().items()
             if not (name == "lm_head.weight" and config.tie_word_embeddings)}
    config.to_json_file(path / "config.json")
    raw = json.loads((path / "config.json").read_text())
    raw["architectures"] = [type(model).__name__]
    (path / "config.json").write_text(json.dumps(raw, indent=1) + "\n")
    names = sorted(state)
    if shards == 1:
        save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    else:
        weight_map = {}
        for index in range(shards):
            shard = f"model-{index + 1:05}-of-{shards:05}.safetensors"
            part = names[index::shards]
            save_file({name: state[name] for name in part}, path / shard, metadata={"format": "pt"})
            weight_map.update({name: shard for name in part})
        index = {"metadata": {}, "weight_map": dict(sorted(weight_map.items()))}
        (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    for name, tensor in state.items():
        model.state_dict()[name].copy_(tensor.float())


def write_golden(path, model, hashed):
    """What transformers predicts, in double precision."""
    model = model.double()
    ids = np.random.default_rng(7).integers(0, VOCABULARY, TOKENS).tolist()
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1).numpy()
        order = np.argsort(-scores, axis=-1, kind="stable")[:, :TOP]
        table = b""
        for row, best in enumerate(order):
            actual = scores[row, ids[row + 1]] if row + 1 < len(ids) else np.nan
            tail = max(0.0, 1.0 - np.exp(scores[row, best]).sum())
            table += struct.pack("<ff", actual, tail) + best.astype("<u2").tobytes() + scores[row, best].astype("<f4").tobytes()
        greedy, gaps = [], []
        for _ in range(GREEDY):
            last = torch.log_softmax(model(torch.tensor([ids + greedy])).logits[0, -1].double(), -1).numpy()
            first, second = np.argsort(-last, kind="stable")[:2]
            greedy.append(int(first))
            gaps.append(last[first] - last[second])
    out = b"WPGOLDEN" + struct.pack("<IIII", 1, 1, TOP, GREEDY) + hashlib.sha256(hashed.read_bytes()).digest()
    out += struct.pack("<I", 6) + b"random" + struct.pack("<II", len(ids), 0) + np.array(ids, "<u4").tobytes() + table
    out += np.array(greedy, "<u4").tobytes() + np.array(gaps, "<f4").tobytes()
    path.write_bytes(out)
    print(f"{path.stem}: least gap {min(gaps):.4f}, entropy {-(np.exp(scores) * scores).sum(-1).mean():.2f} nats")


# Types of the checked-in GGUF files: all of them occur, mixed as quantizers mix them.
MIXES = {
    "llama": {"token_embd": Type.Q6_K, "output": Type.Q8_0, "attn_q": Type.Q4_K, "attn_k": Type.Q4_K, "attn_v": Type.Q6_K,
              "attn_output": Type.Q5_K, "ffn_gate": Type.Q4_K, "ffn_up": Type.Q4_K, "ffn_down": Type.Q6_K},
    "qwen2": {"token_embd": Type.Q4_0, "attn_q": Type.Q5_0, "attn_k": Type.Q5_1, "attn_v": Type.F16, "attn_output": Type.Q4_1,
              "ffn_gate": Type.Q5_K, "ffn_up": Type.Q5_1, "ffn_down": Type.Q5_0},
    "qwen3": {"token_embd": Type.Q5_0, "output": Type.Q5_K, "attn_q": Type.Q8_0, "attn_k": Type.F32, "attn_v": Type.BF16,
              "attn_output": Type.Q4_0, "ffn_gate": Type.Q6_K, "ffn_up": Type.Q6_K, "ffn_down": Type.Q4_K},
}


def main(folder, everything):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, architecture in enumerate(CONFIGS):
        # qwen3: a head size apart from width / heads.
        shape = dict(hidden_size=256, intermediate_size=256, num_hidden_layers=1)
        shape["head_dim"] = 32 if architecture == "qwen3" else 64

        def gguf_model(name, types):
            config = make_config(architecture, **shape)
            model = make_model(config, seed)
            path = folder / f"{name}.gguf"
            write_gguf(path, architecture, model, config, types)
            write_golden(folder / f"{name}.golden", model, path)

        mix = MIXES[architecture]
        gguf_model(f"{architecture}-mixed", lambda name: mix[name.split(".")[-2]])
        if everything:
            for kind in TYPES:
                gguf_model(f"{architecture}-{kind.name.lower()}", lambda name: kind)
        dtype, shards = {"llama": (torch.bfloat16, 2), "qwen2": (torch.float16, 1), "qwen3": (torch.bfloat16, 1)}[architecture]
        config = make_config(architecture, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                             head_dim=32 if architecture == "qwen3" else 16)
        model = make_model(config, seed + 10)
        path = folder / f"{architecture}-folder"
        write_folder(path, model, config, dtype, shards)
        first = sorted(path.glob("*.safetensors"))[0]
        write_golden(folder / f"{architecture}-folder.golden", model, first)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.all)
