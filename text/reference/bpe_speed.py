#!/usr/bin/env python3
"""MB/s of Hugging Face tokenizers on text files, on one core, its caches cold: one number a file on stdout.

usage: bpe_speed.py VOCABULARY.gguf PRE_TOKENIZERS.json FAMILY TEXT...      needs what bpe_digests.py needs
"""
import sys
import time

from bpe_digests import build

for path in sys.argv[4:]:
    tokenizer = build(*sys.argv[1:4])
    text = open(path, encoding="utf-8", errors="replace", newline="").read()
    # Whole documents of 64 KB, as a server would be given them.
    pieces = [text[at : at + 65536] for at in range(0, len(text), 65536)]
    start = time.process_time()
    for piece in pieces:
        tokenizer.encode(piece, add_special_tokens=False)
    print(f"{len(text.encode('utf-8')) / (time.process_time() - start) / 1e6:.2f}")
