# SPDX-License-Identifier: MIT
"""Environments of their own for agent frameworks, and one run of each against a gateway that wants a key.

requirements/NAME.txt pins all packages of one environment, requirements/NAME/ those of Node; it is installed into a folder of the
cache whose name has the hash of that list. use_NAME.py or use_NAME.mjs runs in it.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request
import venv

import schemas

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
# Outside the clone, as all that packaging/test downloads.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "notegate-test" / "clients"
INSTALL_SECONDS = 900
RUN_SECONDS = 300
# No data is sent to the makers of the frameworks, and no model is called.
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true",
         "MCP_USE_ANONYMIZED_TELEMETRY": "false", "OPENAI_AGENTS_DISABLE_TRACING": "true", "ANONYMIZED_TELEMETRY": "false",
         "AI_SDK_LOG_WARNINGS": "false", "HF_HUB_OFFLINE": "1"}

# Frameworks that treat the answers of every MCP server so.
# mcpadapt returns the text of a failed call as that of any other, and an output of OpenAI's functions has no place for it.
TELLS_NO_FAILURE = {"crewai", "openai", "smolagents"}
TELLS_NO_STATUS = {"crewai", "smolagents"}  # mcpadapt waits for another thread, which prints why it failed
DROPS_UNKNOWN = {"autogen", "mcp_use"}  # their models drop unknown arguments before the request
# Of a failed step's text.
SHOWN_MAX = 400


def names():
    """The frameworks that there is a script for."""
    return sorted(path.stem[len("use_"):] for path in HERE.glob("use_*.*"))


# ---- environments ----


def wanted(name):
    """The requirements of an environment as one text: it is made again when they change."""
    files = sorted((HERE / "requirements" / name).glob("*.json")) or [HERE / "requirements" / f"{name}.txt"]
    return "\n".join(file.read_text() for file in files)


def make_python(name, home):
    venv.create(home, clear=True, with_pip=True)
    # Only wheels: nothing is built, and no code of a package runs. Most modules are never imported: the script's own import
    # compiles those that are, here and not in the time of a test.
    subprocess.run([home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile",
                    "--only-binary", ":all:", "-r", HERE / "requirements" / f"{name}.txt"], check=True, timeout=INSTALL_SECONDS)
    subprocess.run([home / "bin" / "python", HERE / f"use_{name}.py"], cwd=home, check=True, stdout=subprocess.DEVNULL,
                   timeout=INSTALL_SECONDS, env={"PATH": os.environ["PATH"], "HOME": str(home), **QUIET})


def make_node(name, home):
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(HERE / "requirements" / name, home)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=home, check=True,
                   stdout=subprocess.DEVNULL, timeout=INSTALL_SECONDS)


def command(name):
    """The command of a framework's script. Its environment is made where these requirements have none; by one process at a time."""
    home = CACHE / f"{name}-{hashlib.sha256((wanted(name) + sys.version).encode()).hexdigest()[:16]}"
    is_node = (HERE / "requirements" / name).is_dir()
    program = home / "node_modules/.bin/node" if is_node else home / "bin/python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "installed").exists():
            (make_node if is_node else make_python)(name, home)
        (home / "installed").touch()
        if is_node:  # its imports are looked for beside it
            shutil.copy(HERE / f"use_{name}.mjs", home)
    return [program, home / f"use_{name}.mjs" if is_node else HERE / f"use_{name}.py"]


# ---- one run ----


def settings(home):
    """Values of `--set` for the gateway, so that every plugin lists its tools. Makes their folders."""
    for folder in ("files", "notes"):
        (pathlib.Path(home) / folder).mkdir(exist_ok=True)
    return [f"roots={home}/files", f"opennotes.notebooks={home}/notes"]


def plan(name, home):
    """[step, tool, arguments]: tools of all plugins; arrays, objects in arrays, numbers; a failure, and an unknown argument."""
    return [
        ["create", "notebook", {"mode": "create", "name": "log", "newStr": f"written by {name}\nand more"}],
        ["read", "notebook", {"mode": "read", "name": "log", "readRange": [1, 1]}],
        ["default", "notebook", {"mode": "read"}],
        ["entry", "notebook_create", {"collection": "pages", "title": f"Tides of {name}", "content": "High and low.",
                                      "tags": ["sea"], "sections": [{"heading": "When", "content": "Twice a day."}, {"heading": "Where"}]}],
        ["search", "notebook_search", {"query": f"tides {name}", "limit": 3}],
        ["remember", "memory_log", {"content": f"{name} likes herons", "score": 0.5}],
        ["recall", "memory_recall", {"query": "herons", "limit": 20}],
        ["file", "fileEditor", {"command": "create", "path": f"{home}/files/{name}.txt", "file_text": "high\nlow\n"}],
        ["lines", "fileEditor", {"command": "view", "path": f"{home}/files/{name}.txt", "view_range": [2, 2]}],
        ["note", "opennotes_create", {"title": f"Notes of {name}", "path": f"{name}.md", "content": "High and low.\n",
                                      "data": {"depth": 3, "tags": ["sea", name]}}],
        ["get", "opennotes_get", {"path": f"{name}.md"}],
        ["cells", "createNotebook", {"notebook": f"{name}.ipynb"}],
        ["failure", "notebook", {"mode": "read", "name": "not-there"}],
        ["unknown", "notebook", {"mode": "list", "colour": "red"}],
    ]


# A word of what each step comes to.
COMES_TO = {"create": "log", "read": "written by", "default": "", "entry": "notebook_id", "search": "Tides of", "remember": "memory_id",
            "recall": "likes herons", "file": "successfully", "lines": "low", "cells": "ipynb",
            "note": ".md", "get": "depth"}


def tools_of(url, key):
    """The gateway's own list of tools, with their schemas."""
    request = urllib.request.Request(f"{url}/v1/tools?format=mcp", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=RUN_SECONDS) as answer:
        return {tool["name"]: tool["inputSchema"] for tool in json.load(answer)["tools"]}


def use(name, url, key, home):
    """The framework's script, when it has ended well."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **QUIET}
    done = subprocess.run([*command(name), f"{url}/mcp", key, json.dumps(plan(name, home))], env=environment, cwd=home,
                          capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"{name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def faults(name, url, key, home):
    """Runs one framework; a sentence for each fault."""
    tools = tools_of(url, key)
    done = use(name, url, key, home)
    try:
        return report_faults(name, tools, json.loads(done.stdout.splitlines()[-1]))
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise AssertionError(f"{name} printed no whole report ({error!r}):\n{done.stdout}\n{done.stderr}") from error


def report_faults(name, tools, told):
    """Of the report that the framework's script printed, where the gateway lists `tools`."""
    steps = told["steps"]
    found = schemas.faults(name, tools, told["tools"])
    if name not in TELLS_NO_STATUS and "401" not in told["keyless"] and "requires a key" not in told["keyless"]:
        found.append(f"without a key: {told['keyless'][-SHOWN_MAX:]}")
    if "it was let in" in told["keyless"]:
        found.append(told["keyless"])
    for step, word in COMES_TO.items():
        if steps[step]["failed"] or word not in steps[step]["text"]:
            found.append(f"{step}: {steps[step]['text'][-SHOWN_MAX:]}")
    for step, word in (("failure", "not-there"), ("unknown", "colour")):
        fails = steps[step]["failed"] or name in TELLS_NO_FAILURE
        if not (fails and word in steps[step]["text"]) and not (step == "unknown" and name in DROPS_UNKNOWN):
            found.append(f"{step}: {steps[step]['text'][-SHOWN_MAX:]}")
    return found + generated_faults(told)


def generated_faults(told):
    """Of arguments that were made from the schemas: they are never refused for their form."""
    found = []
    generated = told.get("generated", {})
    for tool, outcome in generated.items():
        if outcome["failed"] and ("expected" in outcome["text"] or "Traceback" in outcome["text"]):
            found.append(f"{tool}: generated arguments are refused: {outcome['text']}")
    if generated and (len(generated) < len(told["tools"]) or "Unexpected" in told["together"]):
        found.append(f"generated: {len(generated)} tools; in one run: {told['together']}")
    return found


if __name__ == "__main__":
    sys.exit("this is a module; the command is tests/clients/run")
