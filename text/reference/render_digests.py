#!/usr/bin/env python3
"""Renders every template x conversation of the shared model data with Jinja2, as transformers does, and prints one row
each: template, conversation, XXH3-128 of the text (or "refused" and why). text/testdata/rendered.tsv is its output.

usage: render_digests.py MODEL_DATA > text/testdata/rendered.tsv     needs: pip install jinja2==3.1.6 xxhash
"""
import json
import subprocess
import sys

import xxhash

data = sys.argv[1]
rows = subprocess.run(
    [sys.executable, f"{data}/render_reference.py", "--all", f"{data}/chat_templates", f"{data}/conversations"],
    check=True, capture_output=True, text=True).stdout
for line in rows.splitlines():
    row = json.loads(line)
    if "text" in row:
        outcome = xxhash.xxh3_128_hexdigest(row["text"].encode("utf-8"))
    else:
        outcome = "refused " + " ".join(row["error"].split())[:120]
    print(row["template"], row["conversation"], outcome, sep="\t")
