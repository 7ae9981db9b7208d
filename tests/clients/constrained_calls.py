"""Demands calls of tools from a model that writes at temperature 1, and validates every call against its tool's schema.

usage: python constrained_calls.py URL [--requests N] [--max-tokens N] [--parallel N] [--tools FOLDER]
URL is the gateway's, with /v1. Tools: those of the recorded requests of coding agents under FOLDER, else a few of its
own. Needs openai and jsonschema. Answers that were cut by max_tokens are counted apart. Exit code 1 if a whole answer is
no valid call of a tool that was demanded.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import sys

import jsonschema
import openai

OWN = [
    {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 2000}},
                                         "required": ["path"], "additionalProperties": False}},
    {"name": "set_mode", "parameters": {"type": "object", "properties": {"mode": {"enum": ["plan", "build"]}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
                                        "required": ["mode"]}},
    {"name": "now"},
]


def functions(tool):
    if tool.get("type") == "namespace":
        for inner in tool["tools"]:
            yield from functions(inner)
        return
    function = tool.get("function") or tool
    schema = function.get("parameters") or function.get("input_schema")
    if function.get("name") and tool.get("type", "function") in ("function", "custom") or "input_schema" in tool:
        yield {"name": function["name"], **({"parameters": schema} if schema is not None else {})}


def recorded(folder):
    found = {}
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text())
        body = document.get("body", document) if isinstance(document, dict) else None
        for tool in (body.get("tools") or []) if isinstance(body, dict) else []:
            for function in functions(tool):
                found[json.dumps(function, sort_keys=True)] = function
    return list(found.values())


def ask(client, model, tools, named, seed, max_tokens):
    wanted = [{"type": "function", "function": function} for function in tools]
    choice = {"type": "function", "function": {"name": tools[0]["name"]}} if named else "required"
    answer = client.chat.completions.create(
        model=model, temperature=1, seed=seed, max_tokens=max_tokens, tools=wanted, tool_choice=choice,
        parallel_tool_calls=False, messages=[{"role": "user", "content": f"Please call {tools[0]['name']} with some short arguments."}])
    return answer.choices[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "agent_requests")
    options = parser.parse_args()
    tools = (recorded(options.tools) if options.tools.is_dir() else []) or OWN
    schemas = {json.dumps(tool, sort_keys=True): jsonschema.Draft202012Validator(tool.get("parameters") or {"type": "object"}) for tool in tools}
    client = openai.OpenAI(base_url=options.url, api_key="none", timeout=600)
    model = client.models.list().data[0].id
    pick = random.Random(3)
    counts = collections.Counter()

    def run(number):
        # Every tool in turn; every other time among two more.
        first = tools[number % len(tools)]
        others = [tool for tool in pick.sample(tools, 2) if tool["name"] != first["name"]] if number % 2 else []
        offered = [first] + [tool for index, tool in enumerate(others) if tool["name"] not in [o["name"] for o in others[:index]]]
        choice = ask(client, model, offered, number % 2 == 0, number, options.max_tokens)
        if choice.finish_reason == "length":
            return "cut", ""
        calls = choice.message.tool_calls or []
        if len(calls) != 1 or choice.message.content:
            return "wrong", f"{len(calls)} calls, content {choice.message.content!r}"
        by_name = {tool["name"]: tool for tool in offered}
        if calls[0].function.name not in by_name or (number % 2 == 0 and calls[0].function.name != first["name"]):
            return "wrong", f"called {calls[0].function.name}"
        try:
            schemas[json.dumps(by_name[calls[0].function.name], sort_keys=True)].validate(json.loads(calls[0].function.arguments))
        except (ValueError, jsonschema.ValidationError) as error:
            return "wrong", f"{calls[0].function.name}({calls[0].function.arguments}): {str(error).splitlines()[0]}"
        return "valid", ""

    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        for outcome, why in pool.map(run, range(options.requests)):
            counts[outcome] += 1
            if why:
                print(f"  wrong: {why}")
    print(f"constrained calls, {len(tools)} tools, temperature 1: {counts['valid']} valid, {counts['wrong']} wrong, {counts['cut']} cut by max_tokens")
    sys.exit(1 if counts["wrong"] or not counts["valid"] else 0)


main()
