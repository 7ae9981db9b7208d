"""Runs the official OpenAI and Anthropic clients against `warmpath up` with the default model.

usage: python3 run.py BUILD_FOLDER
Installs the pinned clients under BUILD_FOLDER/clients (pip into a venv, npm), starts a fleet, runs them, ends the fleet.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PYTHON_CLIENTS = ["openai==3.57.0", "jsonschema==4.25.1"]
NODE_CLIENTS = ["openai@6.49.0", "@anthropic-ai/sdk@1.14.0"]

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(sys.argv[1]).resolve()
clients = build / "clients"


def install():
    clients.mkdir(exist_ok=True)
    venv = clients / "venv"
    if not (venv / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *PYTHON_CLIENTS], check=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", clients, *NODE_CLIENTS],
                   check=True, stdout=subprocess.DEVNULL)
    for script in ("client.mjs", "anthropic.mjs"):
        shutil.copy(here / script, clients / script)


def wait_for_port(process, ready, log):
    for _ in range(1200):
        if ready.exists() and ready.read_text().strip():
            return int(ready.read_text().split()[0])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"the fleet did not start:\n{log.read_text()}")


install()
with tempfile.TemporaryDirectory() as folder:
    ready, log = pathlib.Path(folder) / "ready", pathlib.Path(folder) / "log"
    with log.open("w") as output:
        fleet = subprocess.Popen([build / "bin" / "warmpath", "up", "--no-demo", "--port", "0", "--admin-port", "0", "--ready-file", ready],
                                 stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    failed = False
    try:
        url = f"http://127.0.0.1:{wait_for_port(fleet, ready, log)}/v1"
        for command in ([clients / "venv" / "bin" / "python", here / "client.py", url],
                        [clients / "venv" / "bin" / "python", here / "constrained_calls.py", url], ["node", clients / "client.mjs", url],
                        ["node", clients / "anthropic.mjs", url]):
            failed |= subprocess.run(command).returncode != 0
    finally:
        fleet.terminate()
        fleet.wait(timeout=60)
    if failed:
        print(log.read_text()[-8000:])
    sys.exit(1 if failed else 0)
