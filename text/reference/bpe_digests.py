#!/usr/bin/env python3
"""Token ids that Hugging Face tokenizers gives for the documents of mixed_text.py, as one digest a document (the first 16
digits of XXH3-128 over the ids, 4 bytes each, little-endian). text/testdata/bpe_FAMILY.tsv is its output.

usage: bpe_digests.py VOCABULARY.gguf PRE_TOKENIZERS.json FAMILY [--documents 300] [--seed 0]
The tokenizer is built from the file's tokens and merges and the family's entry in PRE_TOKENIZERS.json; a normalizer
there is left out, as a GGUF file is read without one.
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


def build(path, pre_tokenizers, family):
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({}, [], ignore_merges=family == "llama-bpe"))
    state = json.loads(tokenizer.to_str())
    state["model"]["vocab"] = {token: index for index, token in enumerate(tokens)}
    state["model"]["merges"] = merges
    state["pre_tokenizer"] = json.load(open(pre_tokenizers))[family]["pre_tokenizer"]
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
