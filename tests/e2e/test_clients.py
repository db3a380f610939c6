# SPDX-License-Identifier: MIT
"""The agent frameworks that once failed, each in an environment of its own; tests/clients/run has the others."""

import json
import sys

import pytest
from cli_support import notegate
from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tests" / "clients"))
import clients  # noqa: E402
import schemas  # noqa: E402


@pytest.mark.parametrize("name", ["autogen", "crewai"])
def test_a_framework_lists_calls_and_fails(start, tmp_path, name):
    gateway = start(sets=["auth=on", *clients.settings(tmp_path)])
    made = notegate("key", "add", name, "--run", "--data-dir", gateway.data_dir, "--json")
    assert made.returncode == 0, made.stderr
    assert clients.faults(name, gateway.url, json.loads(made.stdout)["key"], tmp_path) == []


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
