"""The coding agents that the test drives: pinned packages, their settings, and how each of them names its tools.

Every agent runs headless, in a home folder of its own, with telemetry and updates switched off.
"""

import dataclasses
import json
import pathlib
from typing import Callable

MODEL = "mock-model"
TASK = "This is the greeting-task: run greet.py, correct the spelling in what it prints, run it again and leave a note."
WINDOW = 200_000


def write(path: pathlib.Path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@dataclasses.dataclass
class Agent:
    name: str
    package: str
    configure: Callable  # (home, url) writes its settings
    command: Callable  # (bin folder) -> argv
    shell: Callable  # (command) -> call
    read: Callable  # (path) -> call
    edit: Callable  # (path, old, new) -> call
    create: Callable  # (path, content) -> call
    small_context: int  # tokens (bytes) that hold its first requests, but not three outputs of 42,000 bytes, too
    compacts: bool  # whether it shortens its history by itself when the model refuses its length
    retries_cut: bool = True  # whether it asks again when an answer breaks off
    faulty: bool = True  # whether the failure cases run with it, too
    environment: Callable = lambda url: {}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


# --- Codex: everything goes through its shell tool.
def configure_codex(home, url):
    write(home / ".codex/config.toml", f"""
model = "{MODEL}"
model_provider = "gateway"
model_context_window = {WINDOW}
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
""")


def codex_shell(command):
    return call("exec_command", cmd=command)


CODEX = Agent(
    name="codex", package="@openai/codex@0.171.0",
    configure=configure_codex,
    command=lambda bins: [bins / "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
    environment=lambda url: {"GATEWAY_KEY": "any"},
    shell=codex_shell,
    read=lambda path: codex_shell(f"cat {path}"),
    edit=lambda path, old, new: codex_shell(f"sed -i 's/{old}/{new}/' {path}"),
    create=lambda path, content: codex_shell(f"printf '{content}' > {path}"), small_context=60_000, compacts=False)


# --- OpenCode, on the chat wire, the messages wire and the responses wire.
def opencode(name, package, faulty):
    def configure(home, url):
        write(home / ".config/opencode/opencode.json", {
            "autoupdate": False, "share": "disabled", "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"},
            "provider": {"gateway": {
                "npm": package, "name": "gateway", "options": {"baseURL": f"{url}/v1", "apiKey": "any"},
                "models": {MODEL: {"name": MODEL, "limit": {"context": WINDOW, "output": 8192}}}}}})

    return Agent(
        name=name, package="opencode-ai@1.18.33", configure=configure,
        command=lambda bins: [bins / "opencode", "run", "--model", f"gateway/{MODEL}", TASK],
        environment=lambda url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                                 "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
        shell=lambda command: call("bash", command=command, description="step"),
        read=lambda path: call("read", filePath=path),
        edit=lambda path, old, new: call("edit", filePath=path, oldString=old, newString=new),
        create=lambda path, content: call("write", filePath=path, content=content),
        small_context=140_000, compacts=True, faulty=faulty)


# --- Qwen Code: 0.15 is the last line that runs on Node.js 20.
def configure_qwen(home, url):
    write(home / ".qwen/settings.json", {
        "security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}, "model": {"name": MODEL}})


QWEN = Agent(
    name="qwen-code", package="@qwen-code/qwen-code@0.15.10", configure=configure_qwen,
    command=lambda bins: [bins / "qwen", "--yolo", "-p", TASK],
    environment=lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "any", "OPENAI_MODEL": MODEL},
    shell=lambda command: call("run_shell_command", command=command, is_background=False, description="step"),
    read=lambda path: call("read_file", file_path=path),
    edit=lambda path, old, new: call("edit", file_path=path, old_string=old, new_string=new),
    create=lambda path, content: call("write_file", file_path=path, content=content),
    small_context=110_000, compacts=True, retries_cut=False)


# --- pi, on its three wires.
def pi(name, api, path, faulty):
    def configure(home, url):
        write(home / ".pi/agent/models.json", {"providers": {"gateway": {
            "baseUrl": url + path, "api": api, "apiKey": "any",
            "models": [{"id": MODEL, "contextWindow": WINDOW, "maxTokens": 8192}]}}})

    return Agent(
        name=name, package="@mariozechner/pi-coding-agent@0.73.1", configure=configure,
        command=lambda bins: [bins / "pi", "--provider", "gateway", "--model", MODEL, "-p", TASK],
        environment=lambda url: {"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0", "PI_OFFLINE": "1"},
        shell=lambda command: call("bash", command=command),
        read=lambda path: call("read", path=path),
        edit=lambda path, old, new: call("edit", path=path, edits=[{"oldText": old, "newText": new}]),
        create=lambda path, content: call("write", path=path, content=content),
        small_context=120_000, compacts=True, faulty=faulty)


AGENTS = [
    QWEN,
    opencode("opencode-chat", "@ai-sdk/openai-compatible", faulty=True),
    opencode("opencode-messages", "@ai-sdk/anthropic", faulty=False),
    pi("pi-chat", "openai-completions", "/v1", faulty=True),
    pi("pi-responses", "openai-responses", "/v1", faulty=False),
    pi("pi-messages", "anthropic-messages", "", faulty=False),
    CODEX,
]
