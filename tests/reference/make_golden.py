#!/usr/bin/env python3
"""Writes golden.bin: what the default model answers according to an independent forward pass.

    pip install -r requirements.txt
    python make_golden.py MODEL.gguf golden.bin

A Llama forward pass in numpy, in double precision over the gguf package's dequantised tensors; it shares no code with the
engine. Tokens come from the tokenizers library, so the test needs no tokenizer. The format is described in README.md.
"""
import hashlib
import pathlib
import struct
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TOP = 64
GREEDY = 64
# A longer context, made of these prompts; only its last positions are kept.
LONG = ("essay", "python", "cpp", "shell")
LONG_KEPT = 256


class Llama:
    def __init__(self, reader):
        field = lambda key: reader.fields[key].contents()
        self.layers = field("llama.block_count")
        self.heads = field("llama.attention.head_count")
        self.kv_heads = field("llama.attention.head_count_kv")
        self.size = field("llama.embedding_length") // self.heads
        self.eps = field("llama.attention.layer_norm_rms_epsilon")
        self.base = field("llama.rope.freq_base")
        self.weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.weights[name]

    def rotate(self, x, positions):
        """Adjacent pairs (2i, 2i+1) turn by position * base^(-2i/size). x: [tokens, heads, size]"""
        angle = positions[:, None] * self.base ** (-np.arange(0, self.size, 2) / self.size)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None, :]
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def attend(self, q, keys, values):
        """The new tokens are the last of the sequence. q: [new, heads, size]; keys, values: [all, kv_heads, size]"""
        new, total = len(q), len(keys)
        group = self.heads // self.kv_heads
        visible = np.arange(total)[None, :] <= np.arange(total - new, total)[:, None]
        out = np.empty_like(q)
        for head in range(self.heads):
            scores = q[:, head] @ keys[:, head // group].T / np.sqrt(self.size)
            scores = np.where(visible, scores, -np.inf)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = scores / scores.sum(-1, keepdims=True) @ values[:, head // group]
        return out.reshape(new, -1)

    def forward(self, sequences, caches):
        """One step of several sequences: lists of new token ids, and their caches (one (keys, values) a layer), which grow.
        Returns the last hidden states, [all new tokens, d]."""
        start = [len(cache[0][0]) for cache in caches]
        positions = np.concatenate([np.arange(s, s + len(t)) for s, t in zip(start, sequences)])
        cuts = np.cumsum([len(t) for t in sequences])[:-1]
        x = self.weights["token_embd.weight"][np.concatenate(sequences)]
        for layer in range(self.layers):
            w = lambda name: self.weights[f"blk.{layer}.{name}.weight"]
            h = self.norm(x, f"blk.{layer}.attn_norm.weight")
            heads = lambda m: (h @ m.T).reshape(len(h), -1, self.size)
            q = self.rotate(heads(w("attn_q")), positions)
            k = self.rotate(heads(w("attn_k")), positions)
            v = heads(w("attn_v"))
            rows = []
            for cache, qs, ks, vs in zip(caches, *(np.split(m, cuts) for m in (q, k, v))):
                cache[layer] = tuple(np.concatenate(pair) for pair in zip(cache[layer], (ks, vs)))
                rows.append(self.attend(qs, *cache[layer]))
            x = x + np.concatenate(rows) @ w("attn_output").T
            h = self.norm(x, f"blk.{layer}.ffn_norm.weight")
            gate = h @ w("ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
        return self.norm(x, "output_norm.weight")

    def empty_cache(self):
        nothing = np.zeros((0, self.kv_heads, self.size))
        return [(nothing, nothing) for _ in range(self.layers)]

    def log_probs(self, hidden):
        logits = hidden @ self.weights.get("output.weight", self.weights["token_embd.weight"]).T
        top = logits.max(-1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


def build_tokenizer(reader):
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ", 1)) for m in reader.fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    # "smollm": every digit by itself, then the GPT-2 pattern.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # ggml's token type for special tokens
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t, k in zip(tokens, kinds) if k == control])
    return tokenizer


def read_prompts():
    text = (pathlib.Path(__file__).parent / "prompts.txt").read_text()
    for part in text.split("=== ")[1:]:
        name, body = part.split("\n", 1)
        yield name, body


def with_long_prompt(prompts):
    """(name, text, how many of its last positions are kept; None = all), the long prompt last."""
    texts = dict(prompts)
    prompts = [(name, body, None) for name, body in texts.items()]
    return prompts + [("long", "\n".join(texts[name] for name in LONG), LONG_KEPT)]


def main(model_path, out_path):
    reader = GGUFReader(model_path)
    tokenizer = build_tokenizer(reader)
    prompts, firsts = [], []
    for name, body, kept in with_long_prompt(read_prompts()):
        prompts.append((name, tokenizer.encode(body, add_special_tokens=False).ids))
        firsts.append(len(prompts[-1][1]) - kept if kept else 0)
    positions = sum(len(ids) - first for (_, ids), first in zip(prompts, firsts))
    print(f"{len(prompts)} prompts, {positions} positions:", {name: len(ids) for name, ids in prompts})
    model = Llama(reader)
    caches = [model.empty_cache() for _ in prompts]
    hidden = np.split(model.forward([ids for _, ids in prompts], caches), np.cumsum([len(i) for _, i in prompts])[:-1])

    tables, perplexity = [], []
    for (name, ids), first, rows in zip(prompts, firsts, hidden):
        table = b""
        for start in range(first, len(ids), 256):
            scores = model.log_probs(rows[start:start + 256])
            order = np.argsort(-scores, axis=-1, kind="stable")[:, :TOP]
            best = np.take_along_axis(scores, order, -1)
            for row in range(len(scores)):
                at = start + row
                actual = scores[row, ids[at + 1]] if at + 1 < len(ids) else np.nan
                if at + 1 < len(ids):
                    perplexity.append(actual)
                tail = max(0.0, 1.0 - np.exp(best[row]).sum())
                table += struct.pack("<ff", actual, tail) + order[row].astype("<u2").tobytes() + best[row].astype("<f4").tobytes()
        tables.append(table)
    print(f"perplexity {np.exp(-np.mean(perplexity)):.4f}")

    greedy, gaps = [[] for _ in prompts], [[] for _ in prompts]
    last = [rows[-1:] for rows in hidden]
    for step in range(GREEDY):
        scores = model.log_probs(np.concatenate(last))
        order = np.argsort(-scores, axis=-1, kind="stable")[:, :2]
        for index, (first, second) in enumerate(order):
            greedy[index].append(int(first))
            gaps[index].append(scores[index, first] - scores[index, second])
        if step + 1 < GREEDY:
            rows = model.forward([[tokens[-1]] for tokens in greedy], caches)
            last = [rows[index:index + 1] for index in range(len(prompts))]

    out = b"WPGOLDEN" + struct.pack("<IIII", 1, len(prompts), TOP, GREEDY)
    out += hashlib.sha256(pathlib.Path(model_path).read_bytes()).digest()
    for index, (name, ids) in enumerate(prompts):
        out += struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", len(ids), firsts[index])
        out += np.array(ids, "<u4").tobytes() + tables[index]
        out += np.array(greedy[index], "<u4").tobytes() + np.array(gaps[index], "<f4").tobytes()
        print(f"{name}: least gap {min(gaps[index]):.5f}: {tokenizer.decode(greedy[index], skip_special_tokens=False)!r}")
    pathlib.Path(out_path).write_bytes(out)
    print(f"{len(out)} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
