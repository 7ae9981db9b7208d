"""Released coding agents complete a task through the gateway, against mock replicas that play the model.

usage: python3 run.py BUILD_FOLDER [AGENT | CASE]...
Installs the pinned agents (npm) under BUILD_FOLDER/agents. Each agent runs a task of nine turns in a folder of its own:
it looks, reads, runs, edits, runs, writes, and says that it is done. What is on disk afterwards is checked, and, from the
gateway's receipts of that run, that every turn continued the one before it. Then some do it again while replicas fail
(cases.py).
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
from cases import CASES  # noqa: E402

build = pathlib.Path(sys.argv[1]).resolve()
warmpath = build / "bin" / "warmpath"
packages = build / "agents"


def install(agents):
    packages.mkdir(exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", packages,
                    *sorted({agent.package for agent in agents})], check=True, stdout=subprocess.DEVNULL)
    return packages / "node_modules" / ".bin"


def steps(agent, work, large_output):
    """What the model says turn by turn: (text, call, words of that call that appear nowhere before it)."""
    file = f"{work}/./greet.py"
    also = "cat large.txt; " if large_output else ""
    # An agent that has shortened its history no longer knows that it has read a file, and refuses to edit it.
    correct = agent.shell("sed -i s/wrold/world-4/ greet.py") if large_output else agent.edit(f"{work}/greet.py", "wrold", "world-4")
    return [
        ("Let me look around.", agent.shell(f"ls -a; {also}true step-1"), "true step-1"),
        ("I read the file.", agent.read(file), "/./greet.py"),
        ("It runs so:", agent.shell(f"python3 greet.py; {also}true step-3"), "true step-3"),
        ("I correct it.", correct, "world-4"),
        ("Again:", agent.shell(f"python3 greet.py > out.txt; {also}true step-5"), "true step-5"),
        ("Now the note.", agent.create(f"{work}/note.txt", "corrected-6"), "corrected-6"),
        ("It says:", agent.shell("cat note.txt out.txt; true step-7"), "true step-7"),
        ("One more line.", agent.shell("echo checked >> note.txt; true step-8"), "true step-8"),
    ]


def script(turns, faults):
    """The latest step that the prompt shows decides; a prompt without tools (a title) gets a few words."""
    lines = [*faults, {"when": turns[-1][2], "reasoning": "Nothing is left.", "reply": "All done."}]
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
        if self.process.poll() is not None:
            return
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
    # A failed attempt and the one that followed it are of one time.
    return sorted(found, key=lambda receipt: (receipt["at"], receipt["outcome"] == "ok"))


def check_receipts(found, failures, cold_after):
    """`cold_after`: outcomes after which a turn may find nothing, because its replica went away."""
    # Title and memory requests run beside the task, a title's before it; the task's own nine are those that grow.
    row = []
    excused = False
    for receipt in found:
        if receipt["outcome"] != "ok":
            excused = excused or receipt["outcome"] in cold_after
            continue
        if not row or receipt["prompt_tokens"] > row[-1]["prompt_tokens"]:
            row.append(receipt | {"excused": excused})
            excused = False
        elif len(row) == 1:
            row = [receipt | {"excused": False}]
    row = row[-9:]
    if len(row) < 9:
        failures.append(f"{len(row)} turns reached a replica; 9 were to")
    for before, turn in zip(row, row[1:]):
        # All whole blocks of the prompt before are found again; a replica reuses 16 tokens at a time.
        if not turn["excused"] and turn["delivered_cached_tokens"] < before["prompt_tokens"] // 16 * 16 - 16:
            failures.append(f"a prompt of {turn['prompt_tokens']} tokens found only {turn['delivered_cached_tokens']} "
                            f"of the {before['prompt_tokens']} before it")
    total = sum(turn["prompt_tokens"] for turn in row)
    return len(row), sum(turn["delivered_cached_tokens"] for turn in row) / max(total, 1)


def check_files(work, failures):
    for name, content in {"greet.py": 'print("hello world-4")\n', "out.txt": "hello world-4\n"}.items():
        path = work / name
        if not path.exists() or path.read_text() != content:
            failures.append(f"{name}: {path.read_text() if path.exists() else 'not there'}")
    note = work / "note.txt"
    if not note.exists() or not note.read_text().startswith("corrected-6") or not note.read_text().endswith("checked\n"):
        failures.append(f"note.txt: {note.read_text() if note.exists() else 'not there'}")


def start_replica(root, index, lines, context):
    (root / f"script-{index}").write_text(lines)
    return Process([warmpath, "mock-replica", "--grpc", f"unix:{root}/replica-{index}.sock", "--context", str(context),
                    "--script", root / f"script-{index}", "--ready-file", root / f"ready-{index}"],
                   root / f"replica-{index}.log", root / f"ready-{index}")


def start_agent(agent, bins, url, work, home):
    agent.configure(home, url)
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH")}
    environment |= {"HOME": str(home), "CI": "1", "NO_COLOR": "1", "DO_NOT_TRACK": "1", "TERM": "dumb"} | agent.environment(url)
    return subprocess.Popen([str(part) for part in agent.command(bins)], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(agent, case, bins):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        work, home = root / "work", root / "home"
        work.mkdir()
        home.mkdir()
        (work / "greet.py").write_text('print("hello wrold")\n')
        if case.large_output:
            (work / "large.txt").write_text("".join(f"{line:04d} of a long file that nobody needs\n" for line in range(1000)))
        turns = steps(agent, work, case.large_output)
        context = case.context_of(agent)
        lines = script(turns, case.faults(turns))
        only = case.first_only(turns)
        replicas = [start_replica(root, 0, script(turns, only) if only else lines, context)]
        if not only:
            replicas.append(start_replica(root, 1, lines, context))
        (root / "gateway.yaml").write_text(f"""
listen: 127.0.0.1:0
admin: {{listen: 127.0.0.1:0}}
{case.limits}
models:
  - name: {MODEL}
    parsers: {{tools: tagged, reasoning: think}}
    endpoints: ["unix:{root}/replica-0.sock", "unix:{root}/replica-1.sock"]
""")
        gateway = Process([warmpath, "gateway", "--config", root / "gateway.yaml", "--ready-file", root / "gateway"],
                          root / "gateway.log", root / "gateway")
        port, admin_port = (root / "gateway").read_text().split()[:2]
        url, admin = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"
        wait_until_ready(url)
        began = time.monotonic()
        process = start_agent(agent, bins, url, work, home)
        if only:
            while process.poll() is None and len(receipts(admin)) < 2:
                time.sleep(0.02)
            replicas.append(start_replica(root, 1, lines, context))
        try:
            output, _ = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            failures.append("it did not end within 240 s")
        seconds = time.monotonic() - began
        found = receipts(admin)
        log = (root / "gateway.log").read_text()
        gives_up = case.gives_up(agent)
        turns_seen, hits = 0, 0
        if gives_up:
            if process.returncode == 0 or gives_up not in output.lower():
                failures.append(f"it ended with {process.returncode}, and was to fail with '{gives_up}'")
        else:
            check_files(work, failures)
            # After an error that it got over, OpenCode still ends with 1, and pi does not print its last words.
            if case.name != "overflow" and process.returncode != 0:
                failures.append(f"it ended with {process.returncode}")
            if case.name != "overflow" and "All done." not in output:
                failures.append("it did not say what the model said last")
        if case.name == "overflow":
            if "outcome=context_length_exceeded" not in log:
                failures.append("no prompt was refused as too long")
        elif not gives_up:
            turns_seen, hits = check_receipts(found, failures, case.outcomes if only else ())
        for outcome in case.outcomes:
            if outcome not in {receipt["outcome"] for receipt in found}:
                failures.append(f"no receipt says {outcome}: the failure did not happen")
        gateway.stop()
        for replica in replicas:
            replica.stop()
        if failures:
            print(f"--- {agent.name}'s output\n{output[-4000:]}\n--- the gateway's log\n{log[-6000:]}")
    seen = f"gave up ({gives_up})" if gives_up else "compacted"
    if turns_seen:
        seen = f"{turns_seen} turns, {hits:.1%} of prompt tokens cached"
    print(f"{'FAILED' if failures else 'ok':6} {case.name:8} {agent.name}: {seen}, {seconds:.1f} s", flush=True)
    for failure in failures:
        print(f"       {failure}")
    return not failures


def main():
    words = sys.argv[2:]
    unknown = set(words) - {one.name for one in [*AGENTS, *CASES]}
    if unknown:
        sys.exit(f"no agent or case is called {', '.join(sorted(unknown))}")
    agents = [agent for agent in AGENTS if agent.name in words] or AGENTS
    cases = [case for case in CASES if case.name in words] or CASES
    bins = install(agents)
    trials = [(agent, case) for case in cases for agent in agents if agent.faulty or case.all_agents]
    return 0 if all([run(agent, case, bins) for agent, case in trials]) else 1


sys.exit(main())
