#!/usr/bin/env python3
"""Small tokenizer.json files that use each supported part of the format, and what Hugging Face tokenizers makes of the
documents of mixed_text.py with them.

usage: tokenizer_cases.py OUT_FOLDER      text/testdata/tokenizers is its output
Each case: NAME.json, and NAME.tsv with a line per document: digests (see bpe_digests.py) of its ids with special tokens
as text, and with special tokens parsed. needs: pip install tokenizers==0.23.3 xxhash
"""
import array
import copy
import json
import pathlib
import sys

import xxhash
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from mixed_text import document

DOCUMENTS = 48
SPACE = "▁"


def regex(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def literal(text, behavior, invert=False):
    return {"type": "Split", "pattern": {"String": text}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def steps(*items):
    return {"type": "Sequence", "pretokenizers": list(items)}


def normal(*items):
    return {"type": "Sequence", "normalizers": list(items)}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


def added(index, text, **flags):
    return {"id": index, "content": text, "special": False, "normalized": False, "lstrip": False, "rstrip": False,
            "single_word": False, **flags}


def trained(byte_symbols):
    tokenizer = Tokenizer(models.BPE(unk_token=None if byte_symbols else "<unk>"))
    special = [] if byte_symbols else ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    if byte_symbols:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = [SPACE]
    trainer = trainers.BpeTrainer(vocab_size=len(special) + 550, special_tokens=special, initial_alphabet=alphabet,
                                  limit_alphabet=200, show_progress=False)
    tokenizer.train_from_iterator([document(index, 5) for index in range(0, 60, 6)], trainer)
    state = json.loads(tokenizer.to_str())
    state.update(added_tokens=[], normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None)
    return state


def cases():
    of_bytes, of_characters = trained(True), trained(False)
    special = [dict(special=True, text="<|im_end|>"), dict(special=True, text="<|endoftext|>")]

    def case(base, tokens=special, model=None, **parts):
        state = copy.deepcopy(base)
        state.update(parts)
        state["model"].update(model or {})
        vocabulary = state["model"]["vocab"]
        index = len(vocabulary)
        for token in tokens:
            known = vocabulary.get(token["text"])
            state["added_tokens"].append(added(index if known is None else known, **token))
            index += known is None
        return state

    fallback = {"byte_fallback": True, "fuse_unk": True}
    spell = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    odd = [dict(text="<|im_end|>", special=True, rstrip=True), dict(text="<|endoftext|>", special=True, lstrip=True),
           dict(text="return", single_word=True), dict(text="can", normalized=True), dict(text="that  ", rstrip=True),
           dict(text="Don't", normalized=True, lstrip=True)]
    return {
        "llama": case(of_characters, model=fallback, normalizer=normal(prepend, spell)),
        "gemma": case(of_characters, model=fallback, normalizer=spell, pre_tokenizer=literal(" ", "MergedWithPrevious")),
        "metaspace_first": case(of_characters, model=fallback, pre_tokenizer=metaspace("first", False)),
        "metaspace_always": case(of_characters, model=fallback, pre_tokenizer=metaspace("always", True)),
        "metaspace_steps": case(of_characters, model=fallback,
                                pre_tokenizer=steps({"type": "Digits", "individual_digits": False}, metaspace("first", True))),
        "unknown": case(of_characters, pre_tokenizer=steps({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"})),
        "fused_unknown": case(of_characters, model={"fuse_unk": True}, pre_tokenizer={"type": "Whitespace"}),
        "normal_forms": case(of_bytes, normalizer=normal({"type": "NFKC"}, {"type": "Lowercase"}), pre_tokenizer=byte_level(use_regex=True)),
        "accents": case(of_bytes, normalizer=normal({"type": "NFD"}, {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                                                    {"type": "Replace", "pattern": {"Regex": "[aeiou]+(?=t)"}, "content": "*"}), pre_tokenizer=byte_level(use_regex=True)),
        "nfc_prefix": case(of_bytes, normalizer={"type": "NFC"}, pre_tokenizer=byte_level(True, True)),
        "own_pattern": case(of_bytes, pre_tokenizer=steps(regex(r"[\p{L}\p{M}&&[^\p{Han}a-c]]+|\p{N}{1,2}|[[x-z]\h]+|^ | ?[^\s\p{L}\p{N}]++|\s+(?!\S)|\s"), byte_level())),
        "split_behaviors": case(of_bytes, pre_tokenizer=steps(literal(" ", "MergedWithNext"), regex(r"\p{P}", "MergedWithPrevious"),
                                                              regex(r"[A-Z]", "Contiguous"), regex(r"\d+", "Removed"), byte_level())),
        "whole_first": case(of_bytes, model={"ignore_merges": True}, pre_tokenizer=steps(regex(r"\S+", "Removed", True), byte_level())),
        "added_tokens": case(of_bytes, odd, normalizer={"type": "Lowercase"}, pre_tokenizer=byte_level(use_regex=True)),
        "no_splits": case(of_bytes, pre_tokenizer=byte_level()),
    }


def text_of(index):
    """Of the planes beyond the first only emoji: much else there is newer than the tables of PCRE2 in Debian 12."""
    return "".join(c for c in document(index, 9) if c < "\U00010000" or "\U0001f300" <= c <= "\U0001f64f")


def digest(ids):
    return xxhash.xxh3_128_hexdigest(array.array("i", ids).tobytes())[:16]


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, state in cases().items():
        text = json.dumps(state, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text)
        tokenizer = Tokenizer.from_str(text)
        rows = []
        for index in range(DOCUMENTS):
            row = []
            for as_text in (True, False):
                tokenizer.encode_special_tokens = as_text
                row.append(digest(tokenizer.encode(text_of(index), add_special_tokens=False).ids))
            rows.append("\t".join(row))
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")
    return 0


sys.exit(main(sys.argv[1]))
