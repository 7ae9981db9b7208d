#!/usr/bin/env python3
"""Microseconds that Jinja2, set up as transformers does it, takes to render each chat template of the shared model data:
"TEMPLATE CONVERSATION MICROSECONDS" a line, for the pairs that it does not refuse.

usage: render_speed.py MODEL_DATA CONVERSATION.json...      needs: pip install jinja2==3.1.6
"""
import datetime
import json
import pathlib
import statistics
import sys
import time

import jinja2.sandbox

data = pathlib.Path(sys.argv[1])
# Lists may be changed, so that the templates that do it can be timed too.
jinja2.sandbox.ImmutableSandboxedEnvironment = jinja2.sandbox.SandboxedEnvironment
source = (data / "render_reference.py").read_text().replace("sys.exit(main(sys.argv[1:]))", "")
scope = {"__name__": "render_reference", "sys": sys}
exec(compile(source, "render_reference.py", "exec"), scope)

for path in sorted((data / "chat_templates").glob("*.jinja")):
    template = scope["environment"](datetime.datetime(2026, 1, 2, 3, 4, 5)).from_string(path.read_text())
    for name in sys.argv[2:]:
        conversation = json.loads((data / "conversations" / name).read_text())
        variables = {
            "messages": conversation["messages"], "tools": conversation.get("tools"), "documents": None,
            "add_generation_prompt": conversation.get("add_generation_prompt", True),
            "bos_token": conversation.get("bos_token", "<|bos|>"), "eos_token": conversation.get("eos_token", "<|eos|>"),
            **conversation.get("kwargs", {})}
        try:
            template.render(**variables)
        except Exception:
            continue
        times = []
        for _ in range(11):
            start = time.process_time()
            for _ in range(10):
                template.render(**variables)
            times.append((time.process_time() - start) / 10)
        print(path.name, name, round(statistics.median(times) * 1e6, 1))
