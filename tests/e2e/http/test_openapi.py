# SPDX-License-Identifier: MIT
"""/openapi.json: valid, and good enough that a client generated from it makes real calls."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import Gateway, environment
from odd import odd_plugins
from openapi_spec_validator import OpenAPIV31SpecValidator

TIMEOUT = 120
BESIDE = pathlib.Path(sys.executable).parent  # folder of the generator and its dependencies


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A gateway that has tools with odd schemas too."""
    folder = tmp_path_factory.mktemp("openapi")
    running = Gateway(folder / "data", sets=[odd_plugins(folder)])
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture(scope="module")
def document(everything):
    return everything.client.get("/openapi.json").json()


def generate(document, folder, name):
    """A client package; the generator had nothing to say."""
    source = folder / f"{name}.json"
    source.write_text(json.dumps(document))
    config = folder / f"{name}.config.json"  # a backup is lines of JSON, of which this generator knows nothing
    config.write_text(json.dumps({"content_type_overrides": {"application/x-ndjson": "application/octet-stream"}}))
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(source), "--config", str(config), "--meta", "none",
         "--output-path", str(folder / name), "--fail-on-warning"],
        capture_output=True, text=True, timeout=TIMEOUT, cwd=folder,
        env={**environment(), "PATH": f"{BESIDE}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arning" not in done.stdout + done.stderr, done.stdout + done.stderr
    return folder / name


@pytest.fixture(scope="module")
def package(document, tmp_path_factory):
    """The generated client, imported."""
    folder = tmp_path_factory.mktemp("generated")
    taken = json.loads(json.dumps(document))
    del taken["paths"]["/v1/tools/odd_mixed"]  # valid, but this generator has no enums of true and null
    del taken["components"]["schemas"]["odd_mixed_arguments"]
    generate(taken, folder, "notegate_client")
    sys.path.insert(0, str(folder))
    yield __import__("notegate_client")
    sys.path.remove(str(folder))


@pytest.fixture
def client(package, everything):
    with package.Client(base_url=everything.url) as made:
        yield made


def test_it_is_valid(document):
    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_references_lead_somewhere(document):
    def walk(node):
        if isinstance(node, dict):
            ref = node.get("$ref")
            if isinstance(ref, str):
                yield ref
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)

    found = set(walk(document))
    assert len(found) > 5
    for ref in found:
        assert ref.startswith("#/"), ref
        at = document
        for step in ref[2:].split("/"):
            assert step in at, ref
            at = at[step]


def test_every_tool_is_an_operation(document, everything):
    names = [tool["name"] for tool in everything.client.get("/v1/tools").json()["tools"]]
    operations = [entry for path in document["paths"].values() for method, entry in path.items() if method != "parameters"]
    identifiers = [operation["operationId"] for operation in operations]
    assert len(set(identifiers)) == len(identifiers)
    for name in names:
        assert document["paths"][f"/v1/tools/{name}"]["post"]["operationId"] == name


def test_operations_say_what_they_take_and_refuse(document, everything):
    """Bodies of tools are required, refusals are documented, and Allow names what is documented."""
    assert document["servers"] == [{"url": ".", "description": "This gateway."}]
    declared = {tag["name"] for tag in document["tags"] if tag["description"]}
    for path, methods in document["paths"].items():
        operations = {method: entry for method, entry in methods.items() if method != "parameters"}
        for entry in operations.values():
            assert set(entry["tags"]) <= declared, path
            assert any(status.startswith("4") for status in entry["responses"]), path
        allowed = everything.client.options(path.format(name="notebook", id="a" * 12, path="0/000")).headers["allow"]
        assert {name.lower() for name in allowed.split(", ")} - {"head", "options"} == set(operations), path
        if path.startswith("/v1/tools/"):
            post = operations["post"]
            assert post["requestBody"]["required"] is True, path
            assert {"400", "401", "403", "404", "409", "413", "422", "429", "503", "507", "default"} <= post["responses"].keys(), path


# ---- the generated client ----


def test_a_call(client, everything):
    from notegate_client.api.notebook import notebook
    from notegate_client.models import NotebookArguments, NotebookArgumentsMode

    made = notebook.sync(client=client, x_notegate_agent="ada", idempotency_key="once", body=NotebookArguments(
        mode=NotebookArgumentsMode.CREATE, name="generated", new_str="by a generated client"))
    assert made.revision == 1, made
    read = notebook.sync(client=client, x_notegate_agent="ada",
                         body=NotebookArguments(mode=NotebookArgumentsMode.READ, name="generated"))
    assert read.result == "by a generated client"
    straight = everything.call("notebook", {"mode": "read", "name": "generated"}, {"X-Notegate-Agent": "ada"})
    assert straight.json()["result"] == read.result


def test_a_call_from_an_event_loop(package, everything):
    from notegate_client.api.notebook import notebook
    from notegate_client.models import NotebookArguments, NotebookArgumentsMode

    async def run():
        async with package.Client(base_url=everything.url) as client:
            return await notebook.asyncio(client=client, body=NotebookArguments(mode=NotebookArgumentsMode.LIST))

    assert "notebooks" in asyncio.run(run()).result


def test_an_error(client):
    from notegate_client.api.notebook import notebook
    from notegate_client.models import Failure, NotebookArguments, NotebookArgumentsMode

    failed = notebook.sync_detailed(client=client, body=NotebookArguments(mode=NotebookArgumentsMode.READ, name="absent"))
    assert failed.status_code == 404
    assert isinstance(failed.parsed, Failure)
    assert failed.parsed.error is True and failed.parsed.code.endswith("NOT_FOUND")
    assert "absent" in failed.parsed.message
    wrong = NotebookArguments(mode=NotebookArgumentsMode.READ, name=7)
    refused = notebook.sync_detailed(client=client, body=wrong)
    assert refused.status_code == 400 and refused.parsed.code == "INVALID_INPUT"
    assert "name" in json.dumps(refused.parsed.details.to_dict())


def test_what_is_not_a_tool(client):
    from notegate_client.api.gateway import list_tools, show_tool
    from notegate_client.api.operation import healthz, metrics, readyz
    from notegate_client.models import Format, Tools

    listed = list_tools.sync(client=client)
    assert isinstance(listed, Tools)
    assert {"notebook", "odd_older"} <= {tool["name"] for tool in listed.tools}
    assert len(list_tools.sync(client=client, format_=Format.OPENAI)) == len(listed.tools)
    assert show_tool.sync("notebook", client=client)["name"] == "notebook"
    assert healthz.sync_detailed(client=client).status_code == 200
    assert readyz.sync(client=client).status == "ready"
    assert "notegate_calls_total" in metrics.sync(client=client)


def test_references_of_a_tool(client):
    from notegate_client.api.odd_schemas import odd_older
    from notegate_client.models import OddOlderArguments

    given = {"filter[id]": "1", "node": {"next": {"next": None}}}
    answered = odd_older.sync(client=client, body=OddOlderArguments.from_dict(given))
    assert json.loads(answered.result) == given


# ---- with keys ----


@pytest.fixture
def keyed(start):
    """A gateway with an admin's and a reader's key."""
    running = start()
    made = {}
    for agent, role in (("root", "admin"), ("eve", "reader")):
        body = {"agent": agent, "role": role}
        headers = {"Authorization": f"Bearer {made['root']}"} if made else {}
        answer = running.client.post("/v1/keys", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        made[agent] = answer.json()["key"]
    return running, made


def test_a_bearer_is_asked_for(keyed, package, tmp_path, monkeypatch):
    gateway, keys = keyed
    headers = {"Authorization": f"Bearer {keys['root']}"}
    document = gateway.client.get("/openapi.json", headers=headers).json()
    assert document["security"] == [{"key": []}]
    assert document["components"]["securitySchemes"]["key"] == {
        **document["components"]["securitySchemes"]["key"], "type": "http", "scheme": "bearer"}
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    generate(document, tmp_path, "keyed_client")
    monkeypatch.syspath_prepend(tmp_path)
    made = __import__("keyed_client")
    from keyed_client.api.admin import add_key, list_keys, revoke_key
    from keyed_client.api.notebook import notebook
    from keyed_client.models import Failure, KeyRequest, Mode, NotebookArguments, NotebookArgumentsMode, Role

    listing = NotebookArguments(mode=NotebookArgumentsMode.LIST)
    with made.AuthenticatedClient(base_url=gateway.url, token=keys["root"]) as admin:
        added = add_key.sync(client=admin, body=KeyRequest(agent="ada", role=Role.READER, mode=Mode.EDIT, expires="30d"))
        assert added.key.startswith("ng_") and added.agent == "ada" and added.role is Role.READER
        assert {key.agent for key in list_keys.sync(client=admin).keys} == {"root", "eve", "ada"}
        with made.AuthenticatedClient(base_url=gateway.url, token=added.key) as reader:
            assert "notebooks" in notebook.sync(client=reader, body=listing).result
            write = NotebookArguments(mode=NotebookArgumentsMode.WRITE, new_str="x")
            failed = notebook.sync_detailed(client=reader, body=write)
            assert failed.status_code == 403 and isinstance(failed.parsed, Failure) and failed.parsed.code == "FORBIDDEN"
            assert revoke_key.sync_detailed(added.id, client=admin).status_code == 200
            ended = notebook.sync_detailed(client=reader, body=listing)
            assert ended.status_code == 401 and ended.parsed.code == "UNAUTHENTICATED"


def test_it_shows_what_the_caller_may_do(keyed):
    gateway, keys = keyed
    assert gateway.client.get("/openapi.json").status_code == 401
    shown = gateway.client.get("/openapi.json", headers={"Authorization": f"Bearer {keys['eve']}"}).json()
    assert "/v1/keys" not in shown["paths"] and "/v1/tools/notebook" in shown["paths"]
    assert list(OpenAPIV31SpecValidator(shown).iter_errors()) == []
