# SPDX-License-Identifier: MIT
"""Environments of their own for agent frameworks, and one run of each against a gateway.

requirements/NAME.txt pins all packages of one environment, build/clients/NAME is where it is installed.
"""

import fcntl
import json
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
CACHE = SOURCE / "build" / "clients"
INSTALL_SECONDS = 900
RUN_SECONDS = 300


def names():
    """The frameworks that there is a script for."""
    return sorted(path.stem[len("use_"):] for path in HERE.glob("use_*.py"))


def python(name):
    """The Python of an environment, made now if its requirements changed since. One process makes it at a time."""
    wanted = (HERE / "requirements" / f"{name}.txt").read_text()
    home = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home / "requirements.txt"
        if not done.exists() or done.read_text() != wanted:
            venv.create(home, clear=True, with_pip=True)
            subprocess.run([home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "-r", HERE / "requirements" / f"{name}.txt"], check=True, timeout=INSTALL_SECONDS)
            done.write_text(wanted)
    return home / "bin" / "python"


def use(name, url, key, home):
    """Lists, calls and fails with one framework: what its script printed, as {"tools", "answer", "failure"}."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CREWAI_TRACING_ENABLED": "false",
                   "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    done = subprocess.run([python(name), HERE / f"use_{name}.py", f"{url}/mcp", key], env=environment, cwd=home,
                          capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"{name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def faults(told):
    """What is wrong with an answer of use(); empty: nothing."""
    found = []
    if not {"notebook", "memory_recall"} <= set(told["tools"]):  # names that no framework rewrites
        found.append(f"tools: {told['tools']}")
    if "written by a framework" not in told["answer"]:
        found.append(f"answer: {told['answer']}")
    if "not-there" not in told["failure"]:
        found.append(f"failure: {told['failure']}")
    return found


if __name__ == "__main__":
    sys.exit("this is a module; the command is tests/clients/run")
