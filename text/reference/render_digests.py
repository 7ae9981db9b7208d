#!/usr/bin/env python3
"""Renders every template x conversation of the shared model data with Jinja2, as transformers does, and prints one row
each: template, conversation, XXH3-128 of the text (or "refused" and why). Where only the sandbox's ban on changing lists
stands in the way, the text is that of the sandbox without it, marked "unbanned". text/testdata/rendered.tsv is its output.

usage: render_digests.py MODEL_DATA > text/testdata/rendered.tsv     needs: pip install jinja2==3.1.6 xxhash
"""
import contextlib
import io
import json
import pathlib
import sys

import jinja2.sandbox
import xxhash

data = sys.argv[1]
source = pathlib.Path(data, "render_reference.py").read_text()


def render_all(unbanned):
    """The reference's own --all, in a sandbox that lets lists be changed when `unbanned`."""
    banned = jinja2.sandbox.ImmutableSandboxedEnvironment
    output = io.StringIO()
    arguments = sys.argv
    try:
        if unbanned:
            jinja2.sandbox.ImmutableSandboxedEnvironment = jinja2.sandbox.SandboxedEnvironment
        sys.argv = ["render_reference.py", "--all", f"{data}/chat_templates", f"{data}/conversations"]
        with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            exec(compile(source, "render_reference.py", "exec"), {"__name__": "render_reference"})
    finally:
        jinja2.sandbox.ImmutableSandboxedEnvironment = banned
        sys.argv = arguments
    return [json.loads(line) for line in output.getvalue().splitlines()]


for row, unbanned in zip(render_all(False), render_all(True)):
    if "text" in row:
        outcome = xxhash.xxh3_128_hexdigest(row["text"].encode("utf-8"))
    elif "text" in unbanned:
        outcome = "unbanned " + xxhash.xxh3_128_hexdigest(unbanned["text"].encode("utf-8"))
    else:
        outcome = "refused " + " ".join(row["error"].split())[:120]
    print(row["template"], row["conversation"], outcome, sep="\t")
