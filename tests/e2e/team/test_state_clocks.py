# SPDX-License-Identifier: MIT
"""Gateways on one database whose times of day are hours apart: what a client keeps for one of them is good at the others."""

import json

import pytest
from conftest import Gateway, eventually
from mcp_support import modern
from preload_support import shim

HOUR = 3600
PATIENCE = 120


@pytest.mark.plain_build
def test_state_lives_by_no_clock(tmp_path, servers, monkeypatch):
    shim(monkeypatch, tmp_path, "clock")
    mongo = servers.mongo()
    gateways = []
    try:
        for offset in (0, HOUR + 60, -HOUR - 60):
            monkeypatch.setenv("CLOCK_OFFSET", str(offset))
            gateways.append(Gateway(tmp_path / f"data {offset}", ["plugins=conformance", "documents=mongo", "mongo.timeout=30s",
                                                                  f"mongo.uri={mongo.uri}"]))
        for gateway in gateways:
            eventually(lambda gateway=gateway: gateway.client.get("/readyz").status_code == 200, PATIENCE, "readiness")
        for asked_at in gateways:
            for opened_at in gateways:
                check(asked_at, opened_at)
    finally:
        codes = [gateway.stop() for gateway in gateways]
    assert codes == [0] * len(gateways)


def check(asked_at, opened_at):
    asking = {"name": "test_input_required_result_request_state", "arguments": {}}

    def ask(gateway, params):
        body, headers = modern(params)
        answer = gateway.client.post("/mcp", json=body, headers=headers)
        unread = answer.status_code == 503 or "has not reached its database" in answer.text
        return None if unread else answer  # the secret of the database was not read yet

    asked = eventually(lambda: ask(asked_at, asking), PATIENCE, "the question").json()["result"]
    key, = asked["inputRequests"]
    again = asking | {"inputResponses": {key: {"action": "accept", "content": {"ok": True}}}, "requestState": asked["requestState"]}
    answer = eventually(lambda: ask(opened_at, again), PATIENCE, "the answer")
    assert "state-ok" in json.dumps(answer.json()), answer.text
