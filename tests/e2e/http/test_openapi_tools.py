# SPDX-License-Identifier: MIT
"""/openapi.json through the tools that others check documents with: two linters, and a prober that calls the described
operations."""

import json
import os
import shutil
import subprocess

import jsonschema
import pytest
from cells_support import code, write_notebook
from conftest import SOURCE, environment
from keys_support import bearer

PINS = SOURCE / "tests" / "openapi"
TOOLS = SOURCE / "build" / "openapi"
BIN = TOOLS / "node" / "node_modules" / ".bin"
SCHEMATHESIS = TOOLS / "venv" / "bin" / "schemathesis"
PLUGINS = "plugins=notebook,file_editor,cells,opennotes,agent_notebook,search,history"
SECONDS = 900
# Chosen once, so that a run is like the run before it.
SEED = 1
EXAMPLES = 6


def need(program):
    if not program.exists():
        pytest.skip(f"there is no {program.name}: packaging/test e2e installs it into build/openapi")


def run(command, cwd, **variables):
    """Output of a tool, and its exit code; it contacts no other host."""
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False,
        env={**environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "REDOCLY_TELEMETRY": "off",
             "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "PYTHONDONTWRITEBYTECODE": "1", **variables})


@pytest.fixture
def full(start, tmp_path):
    """A gateway whose plugins all have something to work on."""
    files = tmp_path / "data" / "files"
    files.mkdir(parents=True)
    files.parent.chmod(0o700)
    (files / ".opennotes.json").write_text("{}")
    (files / "note.md").write_text("---\ntags: [a]\n---\n# Note\n\ntext\n")
    write_notebook(files / "book.ipynb", [code("c", "1")])
    return start(sets=[PLUGINS])


def add_key(gateway, agent, role, **headers):
    answer = gateway.client.post("/v1/keys", json={"agent": agent, "role": role}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture
def documents(full, tmp_path):
    """As it is without keys, for an administrator and for a reader."""
    folder = tmp_path / "documents"
    folder.mkdir()

    def take(name, **headers):
        answer = full.client.get("/openapi.json", headers=headers)
        assert answer.status_code == 200, answer.text
        (folder / f"{name}.json").write_text(json.dumps(answer.json(), indent=1))
        return answer.json()

    whole = take("open")
    root = add_key(full, "root", "admin")
    eve = add_key(full, "eve", "reader", **bearer(root["key"]))
    assert take("admin", **bearer(root["key"]))["paths"].keys() == whole["paths"].keys()
    assert take("reader", **bearer(eve["key"]))["paths"].keys() < whole["paths"].keys()
    assert {tag["name"] for tag in whole["tags"]} >= set(PLUGINS.split("=")[1].split(","))
    return folder


NAMES = ("open.json", "admin.json", "reader.json")


@pytest.mark.long
def test_redocly_has_nothing_to_say(documents):
    need(BIN / "redocly")
    shutil.copy(PINS / "redocly.yaml", documents)
    for name in NAMES:
        done = run([BIN / "redocly", "lint", "--config", "redocly.yaml", "--format", "json", name], documents)
        assert done.returncode == 0 and json.loads(done.stdout)["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}, (
            done.stdout + done.stderr)


@pytest.mark.long
def test_spectral_has_nothing_to_say(documents):
    need(BIN / "spectral")
    shutil.copy(PINS / "spectral.yaml", documents)
    done = run([BIN / "spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", "--fail-on-unmatched-globs", *NAMES], documents)
    assert done.returncode == 0, done.stdout + done.stderr


TIMES = {"created", "modified", "updated", "timestamp", "created_at", "updated_at", "expires", "revoked", "last_used"}
ASKED = [
    ("memory_log", {"content": "text"}), ("memory_timeline", {}), ("memory_recall", {"query": ""}), ("checkpoint_snapshot", {}),
    ("checkpoint_list", {}), ("notebook_create", {"collection": "pages", "title": "t", "content": "c"}), ("notebook_list", {}),
    ("notebook_read", {"collection": "pages", "notebook_id": "{made}"}), ("notebook_history", {"collection": "pages", "notebook_id": "{made}"}),
    ("checkpoint_diff", {"checkpoint_id": "{kept}"}), ("search", {"query": "text"}), ("opennotes_list", {}), ("opennotes_get", {"path": "note.md"}),
]


def members(schema):
    """Each (name, schema) that a schema describes, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"].items()
        for value in schema.values():
            yield from members(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from members(value)


def test_times_are_declared_and_are_times(full):
    """Every text that is a time says so, and what is answered is one."""
    schemas = full.client.get("/openapi.json").json()["components"]["schemas"]
    for component, schema in schemas.items():
        for name, member in members(schema):
            if not component.endswith("_arguments") and member.get("type") == "string" and name in TIMES | {"date"}:
                assert member.get("format") == ("date" if name == "date" else "date-time"), f"{component}: {name}"
    formats = jsonschema.FormatChecker(["date", "date-time"])
    assert not formats.conforms("yesterday", "date-time") and not formats.conforms("yesterday", "date")
    known = {}
    for tool, arguments in ASKED:
        answer = full.call(tool, {name: known[value[1:-1]] if str(value).startswith("{") else value for name, value in arguments.items()})
        assert answer.status_code == 200, answer.text
        result = answer.json()["result"]
        known |= {"made": result["notebook_id"]} if tool == "notebook_create" else {}
        known |= {"kept": result["checkpoint_id"]} if tool == "checkpoint_snapshot" else {}
        jsonschema.Draft202012Validator(schemas[f"{tool}_result"], format_checker=formats).validate(result)


@pytest.mark.long
def test_schemathesis_finds_nothing(full, tmp_path):
    """It calls every operation with what fits its description and with what does not, and looks at what comes back."""
    need(SCHEMATHESIS)
    root = add_key(full, "root", "admin")
    for file in ("schemathesis.toml", "hooks.py"):
        shutil.copy(PINS / file, tmp_path)
    done = run([SCHEMATHESIS, "--config-file", "schemathesis.toml", "run", f"{full.url}/openapi.json", "--checks", "all",
                "--header", f"Authorization: Bearer {root['key']}", "--seed", SEED, "--max-examples", EXAMPLES],
               tmp_path, NOTEGATE_TEST_KEY_ID=root["id"])
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
    assert full.client.get("/v1/tools", headers=bearer(root["key"])).status_code == 200  # its key lived to the end
