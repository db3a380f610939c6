# SPDX-License-Identifier: MIT
"""The agent frameworks that once failed, each in an environment of its own; tests/clients/run has the others."""

import importlib.machinery
import importlib.util
import json
import sys

import pytest
from cli_support import notegate
from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tests" / "clients"))
import clients  # noqa: E402
import schemas  # noqa: E402


@pytest.mark.long
@pytest.mark.parametrize("name", ["autogen", "crewai"])
def test_a_framework_lists_calls_and_fails(start, tmp_path, name):
    gateway = start(sets=["auth=on", *clients.settings(tmp_path)])
    made = notegate("key", "add", name, "--run", "--data-dir", gateway.data_dir, "--json")
    assert made.returncode == 0, made.stderr
    assert clients.faults(name, gateway.url, json.loads(made.stdout)["key"], tmp_path) == []


@pytest.mark.parametrize("script", [
    "", "print('no JSON')", "print('[]')", "print('{}')", """print('{"steps": {"create": {}}, "tools": {}, "keyless": "401"}')"""])
def test_a_script_without_a_report_fails_alone(tmp_path, monkeypatch, capsys, script):
    """The run of all frameworks goes on behind it."""
    loader = importlib.machinery.SourceFileLoader("run_of_clients", str(SOURCE / "tests" / "clients" / "run"))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(run)
    monkeypatch.setattr(clients, "command", lambda name: [sys.executable, "-c", f"import sys; {script}\nprint('why', file=sys.stderr)"])
    monkeypatch.setattr(clients, "tools_of", lambda url, key: {})
    assert not run.run_one("crewai", "http://127.0.0.1:1", "ng_none", tmp_path)
    told = capsys.readouterr().out
    assert told.startswith("crewai ") and "FAILED: crewai printed no whole report" in told and "why" in told


def test_what_a_framework_loses_of_a_schema_is_seen():
    ours = {"type": "object", "required": ["a"], "properties": {
        "a": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "x"},
        "b": {"type": "string", "enum": ["u", "v"]},
        "c": {"type": "array", "items": {"type": "object", "required": ["d"], "properties": {"d": {"type": "number"}}}}}}
    same = {"type": "object", "required": ["a"], "properties": {
        "a": {"type": ["integer", "string"], "description": "y"},
        "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}], "default": None},
        "c": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/C"}}, {"type": "null"}]}},
        "$defs": {"B": {"enum": ["u", "v"], "type": "string"},
                  "C": {"type": "object", "required": ["d"], "properties": {"d": {"type": "number"}}}}}
    assert schemas.faults("x", {"t_o": ours}, {"tO": same}) == []
    less = {"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "string"}, "b": {"type": "string", "enum": ["u"]}, "c": {"type": "array", "items": {"type": "object"}}}}
    found = schemas.faults("x", {"t": ours, "u": ours}, {"t": less})
    assert found == ["u is not in its list"] + [f"schemas: {what} (1)" for what in (
        "enum: t.b", "no description: t.a", "no members: t.c[].d", "required: t.b", "type: t.a")]
