#!/usr/bin/env python3
"""What Hugging Face tokenizers makes of the documents of mixed_text.py: one line a document, 16 hexadecimal digits of
XXH3-128 over its token ids as little-endian int32. text/testdata/bpe_FAMILY.tsv is the output with the default seed.

usage: bpe_digests.py VOCABULARY.gguf PRE_TOKENIZERS.json FAMILY [--documents N] [--seed N]
The tokenizer is built from the GGUF file's tokens and merges (of a SentencePiece vocabulary: its scores) and the
family's entry in PRE_TOKENIZERS.json or below; a normalizer there is left out, as a GGUF file is read without one.
needs: pip install tokenizers==0.23.3 gguf==0.19.0 xxhash
"""
import argparse
import array
import json
import sys

import gguf
import xxhash
from tokenizers import Tokenizer, models

from mixed_text import document

WORD = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}HAN]*[\p{Ll}\p{Lm}\p{Lo}\p{M}HAN]+TAIL|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}HAN]+[\p{Ll}\p{Lm}\p{Lo}\p{M}HAN]*TAIL|"
)
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SPACE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = (
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF"
    "\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5"
    "\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA"
    "\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45"
    "\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE"
    "\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102"
    "\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    "\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3"
    "\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06"
    "\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943"
)
# The expressions of families that PRE_TOKENIZERS.json does not have, as their models' tokenizer.json files have them.
PATTERNS = {
    "gpt-4o": [WORD.replace("HAN", "").replace("TAIL", CONTRACTION) + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACE],
    "tekken": [WORD.replace("HAN", "").replace("TAIL", "") + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACE],
    "kimi-k2": [r"[\p{Han}]+|" + WORD.replace("HAN", r"&&[^\p{Han}]").replace("TAIL", CONTRACTION)
                + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACE],
    "deepseek-llm": ["[\r\n]", "\\s?[" + CASED + "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", None],
    "seed-coder": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "own-pattern": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACE],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", None],
}


def pre_tokenizer(pre_tokenizers, family):
    known = json.load(open(pre_tokenizers))
    if family in known:
        return known[family]["pre_tokenizer"]
    steps = [{"type": "Digits", "individual_digits": True} if pattern is None else
             {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
             for pattern in PATTERNS[family]]
    steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})
    return {"type": "Sequence", "pretokenizers": steps}


def merges_of_scores(tokens, scores, types):
    """As transformers' converter makes a merge list of a SentencePiece vocabulary."""
    ids = {token: index for index, token in enumerate(tokens) if types[index] == 1}
    merges = []
    for token, index in ids.items():
        pairs = [(token[:cut], token[cut:]) for cut in range(1, len(token)) if token[:cut] in ids and token[cut:] in ids]
        merges += [(scores[index], pair) for pair in sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))]
    merges.sort(key=lambda merge: -merge[0])
    return [pair for _, pair in merges]


def build(path, pre_tokenizers, family):
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    state = json.loads(Tokenizer(models.BPE({}, [])).to_str())
    model = state["model"]
    model["vocab"] = {token: index for index, token in enumerate(tokens)}
    if fields["tokenizer.ggml.model"].contents() == "llama":
        scores = fields["tokenizer.ggml.scores"].contents()
        types = fields["tokenizer.ggml.token_type"].contents()
        model.update(merges=merges_of_scores(tokens, scores, types), byte_fallback=True, fuse_unk=True, unk_token="<unk>")
        state["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    else:
        model["merges"] = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
        model["ignore_merges"] = family in ("llama-bpe", "tekken")
        state["pre_tokenizer"] = pre_tokenizer(pre_tokenizers, family)
    return Tokenizer.from_str(json.dumps(state))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vocabulary")
    parser.add_argument("pre_tokenizers")
    parser.add_argument("family")
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tokenizer = build(options.vocabulary, options.pre_tokenizers, options.family)
    total = 0
    for index in range(options.documents):
        text = document(index, options.seed)
        total += len(text.encode("utf-8"))
        ids = array.array("i", tokenizer.encode(text, add_special_tokens=False).ids)
        print(xxhash.xxh3_128_hexdigest(ids.tobytes())[:16])
    print(f"{options.family}: {total} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
