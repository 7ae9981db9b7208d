"""The official OpenAI client for Python against a running warmpath gateway: python client.py BASE_URL"""

import json
import sys

import openai

base_url = sys.argv[1]
client = openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=120)
messages = [{"role": "system", "content": "You answer briefly."}, {"role": "user", "content": "What is the capital of France?"}]
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"FAILED: {what}")


def refused(error, param, what, **request):
    try:
        client.chat.completions.create(**{"model": model, "messages": messages, **request})
    except error as found:
        check(param is None or found.body["param"] == param, f"{what}: param is {found.body}")
        check(found.body["message"], f"{what}: a message")
        return found
    sys.exit(f"FAILED: {what}: accepted")


models = list(client.models.list())
check(models, "models.list finds a model")
model = models[0].id
check(client.models.retrieve(model).id == model, "models.retrieve")

reply = client.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0)
text = reply.choices[0].message.content
check(reply.object == "chat.completion" and text, "chat: content")
check(reply.choices[0].message.role == "assistant", "chat: role")
check(reply.choices[0].finish_reason in ("stop", "length"), "chat: finish reason")
check(reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens, "chat: usage adds up")
again = client.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0)
check(again.choices[0].message.content == text, "chat: a cache hit gives the same answer as the miss")
check(again.usage.prompt_tokens_details.cached_tokens > 0, "chat: the second time is cached")

chunks = list(client.chat.completions.create(model=model, messages=messages, max_tokens=12, temperature=0, stream=True,
                                             stream_options={"include_usage": True}))
check("".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text, "stream: same text as whole")
check(chunks[-1].usage is not None and not chunks[-1].choices, "stream: usage comes last, without choices")
check([c for c in chunks if c.choices][-1].choices[0].finish_reason in ("stop", "length"), "stream: finish reason")
check(len({c.id for c in chunks}) == 1, "stream: one id")

two = client.chat.completions.create(model=model, messages=messages, max_tokens=4, n=2, seed=7)
check([choice.index for choice in two.choices] == [0, 1], "n=2: two choices")
seeded = client.chat.completions.create(model=model, messages=messages, max_tokens=4, n=2, seed=7)
check([c.message.content for c in two.choices] == [c.message.content for c in seeded.choices], "a seed repeats")
scored = client.chat.completions.create(model=model, messages=messages, max_tokens=3, logprobs=True, top_logprobs=4, temperature=0)
first = scored.choices[0].logprobs.content[0]
check(len(first.top_logprobs) == 4 and first.top_logprobs[0].logprob == first.logprob, "log-probs: greedy takes the likeliest")
stopped = client.chat.completions.create(model=model, messages=messages, max_tokens=40, temperature=0, stop=["."])
check("." not in stopped.choices[0].message.content, "stop: the stop string is not part of the text")

legacy = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0)
check(legacy.object == "text_completion" and legacy.choices[0].text, "completions: text")
pieces = list(client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0, stream=True))
check("".join(c.choices[0].text for c in pieces if c.choices) == legacy.choices[0].text, "completions: stream equals whole")

refused(openai.NotFoundError, None, "unknown model", model="no-such-model")
refused(openai.BadRequestError, "temperature", "temperature 3", temperature=3)
refused(openai.BadRequestError, "response_format", "response_format of another type", response_format={"type": "xml"})
refused(openai.BadRequestError, "response_format", "a schema that cannot be kept",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"not": {}}}})
schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
          "required": ["name", "age"], "additionalProperties": False}
person = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Invent a person."}], max_tokens=100,
                                        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}})
person = json.loads(person.choices[0].message.content)
check(sorted(person) == ["age", "name"] and 0 <= person["age"] <= 120, "response_format: json_schema")
choice = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Yes or no?"}], extra_body={"guided_choice": ["yes", "no"]})
check(choice.choices[0].message.content in ("yes", "no"), "guided_choice")
tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
demanded = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}], tools=[tool], tool_choice="required",
                                          parallel_tool_calls=False, max_tokens=100)
check([call.function.name for call in demanded.choices[0].message.tool_calls] == ["f"], "tool_choice: required")
check(demanded.choices[0].finish_reason == "tool_calls", "tool_choice: finish_reason")
refused(openai.BadRequestError, "tool_choice", "tool_choice without tools", tool_choice="required")
refused(openai.BadRequestError, None, "no messages", messages=[])
overflow = refused(openai.BadRequestError, None, "overflow", messages=[{"role": "user", "content": "word " * 20000}])
check(overflow.code == "context_length_exceeded", "overflow: code")

print(f"openai for Python {openai.__version__}: {checks} checks passed")
