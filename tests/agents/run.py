"""Released coding agents complete a task through the gateway, against mock replicas that play the model.

usage: python3 run.py BUILD_FOLDER [AGENT]...
Installs the pinned agents (npm) under BUILD_FOLDER/agents. Each agent runs a task of nine turns in a folder of its own:
it looks, reads, runs, edits, runs, writes, and says that it is done. What is on disk afterwards is checked, and, from the
gateway's receipts of that run, that every turn continued the one before it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from agents import AGENTS, MODEL  # noqa: E402

build = pathlib.Path(sys.argv[1]).resolve()
warmpath = build / "bin" / "warmpath"
packages = build / "agents"


def install(agents):
    packages.mkdir(exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", packages,
                    *sorted({agent.package for agent in agents})], check=True, stdout=subprocess.DEVNULL)
    return packages / "node_modules" / ".bin"


def steps(agent, work):
    """What the model says turn by turn: (text, call, words of that call that appear nowhere before it)."""
    file = f"{work}/./greet.py"
    return [
        ("Let me look around.", agent.shell("ls -a; true step-1"), "true step-1"),
        ("I read the file.", agent.read(file), "/./greet.py"),
        ("It runs so:", agent.shell("python3 greet.py; true step-3"), "true step-3"),
        ("I correct it.", agent.edit(f"{work}/greet.py", "wrold", "world-4"), "world-4"),
        ("Again:", agent.shell("python3 greet.py > out.txt; true step-5"), "true step-5"),
        ("Now the note.", agent.create(f"{work}/note.txt", "corrected-6"), "corrected-6"),
        ("It says:", agent.shell("cat note.txt out.txt; true step-7"), "true step-7"),
        ("One more line.", agent.shell("echo checked >> note.txt; true step-8"), "true step-8"),
    ]


def script(agent, work):
    """The latest step that the prompt shows decides; a prompt without tools (a title) gets a few words."""
    turns = steps(agent, work)
    lines = [{"when": turns[-1][2], "reasoning": "Nothing is left.", "reply": "All done."}]
    for number in range(len(turns) - 1, 0, -1):
        text, call, _ = turns[number]
        lines.append({"when": turns[number - 1][2], "reasoning": f"Turn {number + 1}.", "reply": text, "calls": [call]})
    text, call, _ = turns[0]
    lines.append({"when": "<tools>", "reply": text, "calls": [call]})
    lines.append({"reply": "A small task"})
    return "".join(json.dumps(line) + "\n" for line in lines)


class Process:
    def __init__(self, command, log, ready):
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        for _ in range(1200):
            if ready.exists() and ready.read_text().strip():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"did not start: {command}\n{log.read_text()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def wait_until_ready(url):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5)
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the gateway did not become ready")


def receipts(admin):
    with urllib.request.urlopen(f"{admin}/receipts?limit=1000", timeout=10) as answer:
        found = json.load(answer)
    found = found if isinstance(found, list) else found["receipts"]
    return sorted(found, key=lambda receipt: receipt["at"])


def check_receipts(found, failures):
    # Title and memory requests run beside the task, a title's before it; the task's own nine are those that grow.
    turns = [receipt for receipt in found if receipt["outcome"] == "ok"]
    row = []
    for receipt in turns:
        if not row or receipt["prompt_tokens"] > row[-1]["prompt_tokens"]:
            row.append(receipt)
        elif len(row) == 1:
            row = [receipt]
    row = row[-9:]
    if len(row) < 9:
        failures.append(f"{len(row)} turns reached a replica; 9 were to")
    for before, turn in zip(row, row[1:]):
        # All whole blocks of the prompt before are found again; a replica reuses 16 tokens at a time.
        if turn["delivered_cached_tokens"] < before["prompt_tokens"] // 16 * 16 - 16:
            failures.append(f"a prompt of {turn['prompt_tokens']} tokens found only {turn['delivered_cached_tokens']} "
                            f"of the {before['prompt_tokens']} before it")
    total = sum(turn["prompt_tokens"] for turn in row)
    return len(row), sum(turn["delivered_cached_tokens"] for turn in row) / max(total, 1)


def run(agent, bins):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        work, home = root / "work", root / "home"
        work.mkdir()
        home.mkdir()
        (work / "greet.py").write_text('print("hello wrold")\n')
        (root / "script").write_text(script(agent, work))
        replicas = Process([warmpath, "mock-replica", "--replicas", "2", "--grpc", f"unix:{root}/replica-{{}}.sock", "--context", "400000",
                            "--script", root / "script", "--ready-file", root / "replicas"], root / "replicas.log", root / "replicas")
        (root / "gateway.yaml").write_text(f"""
listen: 127.0.0.1:0
admin: {{listen: 127.0.0.1:0}}
models:
  - name: {MODEL}
    parsers: {{tools: tagged, reasoning: think}}
    endpoints: ["unix:{root}/replica-0.sock", "unix:{root}/replica-1.sock"]
""")
        gateway = Process([warmpath, "gateway", "--config", root / "gateway.yaml", "--ready-file", root / "gateway"],
                          root / "gateway.log", root / "gateway")
        port, admin_port = (root / "gateway").read_text().split()[:2]
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url)
        agent.configure(home, url)
        environment = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH")}
        environment |= {"HOME": str(home), "CI": "1", "NO_COLOR": "1", "DO_NOT_TRACK": "1", "TERM": "dumb"} | agent.environment(url)
        began = time.monotonic()
        try:
            done = subprocess.run([str(part) for part in agent.command(bins)], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
            output = done.stdout
            if done.returncode != 0:
                failures.append(f"it ended with {done.returncode}")
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode(errors="replace")
            failures.append("it did not end within 240 s")
        seconds = time.monotonic() - began
        if "All done." not in output:
            failures.append("it did not say what the model said last")
        for name, content in {"greet.py": 'print("hello world-4")\n', "out.txt": "hello world-4\n"}.items():
            path = work / name
            if not path.exists() or path.read_text() != content:
                failures.append(f"{name}: {path.read_text() if path.exists() else 'not there'}")
        note = work / "note.txt"
        if not note.exists() or not note.read_text().startswith("corrected-6") or not note.read_text().endswith("checked\n"):
            failures.append(f"note.txt: {note.read_text() if note.exists() else 'not there'}")
        turns, hits = check_receipts(receipts(f"http://127.0.0.1:{admin_port}"), failures)
        gateway.stop()
        replicas.stop()
        if failures:
            print(f"--- {agent.name}'s output\n{output[-4000:]}\n--- the gateway's log\n{(root / 'gateway.log').read_text()[-4000:]}")
    print(f"{'FAILED' if failures else 'ok':6} {agent.name}: {turns} turns, {hits:.1%} of prompt tokens cached, {seconds:.1f} s")
    for failure in failures:
        print(f"       {failure}")
    return not failures


def main():
    wanted = [agent for agent in AGENTS if not sys.argv[2:] or agent.name in sys.argv[2:]]
    bins = install(wanted)
    return 0 if all([run(agent, bins) for agent in wanted]) else 1


sys.exit(main())
