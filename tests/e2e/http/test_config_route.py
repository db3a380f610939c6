# SPDX-License-Identifier: MIT
"""GET /v1/config: the values that the gateway runs with, where they come from, for an admin, without secrets."""

import json
import signal

import pytest
from conftest import Gateway, eventually
from keys_support import PLUGINS, add, bearer, refused

MEMBERS = {"key", "value", "default", "source", "reloadable", "help"}


def values(gateway, headers=None):
    answer = gateway.client.get("/v1/config", headers=headers)
    assert answer.status_code == 200, answer.text
    return {one["key"]: one for one in answer.json()["keys"]}


def test_a_keyless_local_caller(start):
    """It is the gateway's own user, an admin as for the keys."""
    gateway = start(sets=[PLUGINS, "limits.body=2048KiB", "log.access=yes", "history.keep=1440min"])
    shown = values(gateway)
    assert all(one.keys() == MEMBERS for one in shown.values())
    assert shown["limits.body"] | {"help": ""} == {
        "key": "limits.body", "value": "2MiB", "default": "4MiB", "source": "command line", "reloadable": True,
        "help": ""}
    assert shown["log.access"]["value"] == "true"
    assert (shown["history.keep"]["value"], shown["history.keep"]["default"]) == ("1d", "90d")
    assert (shown["user"]["value"], shown["user"]["default"], shown["user"]["source"]) == (None, None, "default")
    assert not shown["documents"]["reloadable"] and shown["plugins"]["value"] == "notebook, file_editor"
    assert shown["roots"]["value"] == f"{gateway.data_dir}/files" and "notebook.max_size" in shown
    assert refused(gateway.client.get("/v1/config?all=true"), 400, "INVALID_INPUT")
    assert gateway.client.post("/v1/config").status_code == 405
    document = gateway.client.get("/openapi.json").json()
    assert document["paths"]["/v1/config"]["get"]["operationId"] == "showConfiguration"
    assert set(document["components"]["schemas"]["Configuration"]["properties"]["keys"]["items"]["required"]) == MEMBERS


def test_roles(tmp_path):
    gateway = Gateway(tmp_path / "data", sets=[PLUGINS, "log.audit=true"])
    try:
        keys = {role: add(gateway.data_dir, role, "--role", role) for role in ("admin", "writer", "reader")}
        some = add(gateway.data_dir, "some", "--role", "admin", "--tool", "notebook")
        assert "listen" in values(gateway, bearer(keys["admin"]))
        assert "listen" in values(gateway, bearer(keys["admin"], X_Notegate_Mode="ask"))
        for role in ("writer", "reader"):
            told = refused(gateway.client.get("/v1/config", headers=bearer(keys[role])), 403, "FORBIDDEN")
            assert told["message"] == f"The configuration needs the role admin; this caller's role is {role}"
            assert "/v1/config" not in gateway.client.get("/openapi.json", headers=bearer(keys[role])).json()["paths"]
        told = refused(gateway.client.get("/v1/config", headers=bearer(some)), 403, "FORBIDDEN")
        assert "limited to some tools" in told["message"]
        refused(gateway.client.get("/v1/config"), 401, "UNAUTHENTICATED")
        eventually(lambda: len(gateway.logged("/v1/config", "FORBIDDEN")) >= 3, what="an audit line for each")
    finally:
        assert gateway.stop() == 0


def test_secrets_are_left_out(tmp_path):
    """Those of keys that hold one, those that ${...} brings in, and those in URIs."""
    secret = tmp_path / "secret"
    secret.write_text("hidden-in-file")
    file = tmp_path / "notegate.yaml"
    file.write_text(f'mongo.uri: "mongodb://ada:hidden-in-uri@host/"\nallowed_hosts: ["${{file:{secret}}}"]\n'
                    'cluster.authorities: "https://bob:hidden-as-user@host/authorities.pem"\n')
    gateway = Gateway(tmp_path / "data", sets=[PLUGINS], args=["--config", str(file)])
    try:
        answer = gateway.client.get("/v1/config")
        assert "hidden" not in answer.text
        shown = {one["key"]: one for one in answer.json()["keys"]}
        assert (shown["mongo.uri"]["value"], shown["mongo.uri"]["source"]) == ("***", "file")
        assert shown["allowed_hosts"]["value"] == f"${{file:{secret}}}"
        assert shown["cluster.authorities"]["value"] == "https://***@host/authorities.pem"
    finally:
        assert gateway.stop() == 0


@pytest.mark.parametrize("how", ("signal", "request"))
def test_after_a_reload(tmp_path, how):
    file = tmp_path / "notegate.yaml"
    first = {"limits.body": "1MiB", "roots": [str(tmp_path / "a")], "timezone": "UTC", "notebook.max_size": "1MiB",
             "plugins": ["notebook"]}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    def write(**keys):
        file.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in (first | keys).items()))

    write()
    gateway = Gateway(tmp_path / "data", args=["--config", str(file)])
    try:
        assert values(gateway)["limits.body"]["value"] == "1MiB"
        write(**{"limits.body": "2MiB", "limits.result": "3MiB", "roots": [str(tmp_path / "b")],
                 "timezone": "Europe/Berlin", "notebook.max_size": "2MiB", "plugins": ["notebook", "file_editor"]})
        if how == "signal":
            gateway.process.send_signal(signal.SIGHUP)
        else:
            gateway.reload()
        eventually(lambda: values(gateway)["limits.body"]["value"] == "2MiB", what="the reload")
        shown = values(gateway)
        told = {key: shown[key]["value"] for key in (*first, "limits.result")}
        assert told == {"limits.body": "2MiB", "limits.result": "3MiB", "roots": str(tmp_path / "b"),
                        "plugins": "notebook, file_editor", "timezone": "UTC", "notebook.max_size": "1MiB"}
        assert shown["limits.result"]["source"] == "file" and any(key.startswith("file_editor.") for key in shown)
        # One that is refused changes nothing.
        write(**{"limits.body": "5MiB", "timezone": "Mars/Olympus"})
        assert gateway.client.post("/v1/reload").status_code == 400
        assert values(gateway)["limits.body"]["value"] == "2MiB"
    finally:
        assert gateway.stop() == 0
