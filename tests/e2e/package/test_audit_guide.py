# SPDX-License-Identifier: MIT
"""The guide of the audit log: each of its commands runs as it stands there, in order."""

import json
import os
import re
import subprocess

import pytest
from conftest import Gateway, binary, environment, eventually
from test_guides import GUIDES, TIMEOUT, blocks

GUIDE = GUIDES / "audit.md"


@pytest.fixture
def guide(tmp_path):
    """shell(TEXT): runs a block of the guide in one folder, with the port of the test's gateway."""
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    port = "8420"

    def shell(text):
        path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text.replace("127.0.0.1:8420", f"127.0.0.1:{port}")],
                              capture_output=True, text=True, cwd=home, timeout=TIMEOUT,
                              env=environment() | {"PATH": path, "HOME": str(home), "NOTEGATE_DATA_DIR": str(data)})
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    before, after = blocks(GUIDE, "sh")[0].split("notegate serve &\n")
    shell(before)
    gateway = Gateway(data)
    port = str(gateway.port)
    assert "plan" in shell(after)
    eventually(lambda: "notebooks/plan@1" in shell("notegate audit list"), what="the entry")
    yield shell, home
    assert gateway.stop() == 0


def test_every_block_in_order(guide):
    shell, home = guide
    _, listing, asked, recovered, verify, kept, export, redact = blocks(GUIDE, "sh")
    lines = shell(listing).splitlines()
    shown, = (json.loads(line) for line in lines if line.startswith("{"))
    assert shown["agent"] == "ann" and shown["docs"][0]["id"] == "plan"
    assert re.search(r"^\S+Z ok rest ann notebook create notebooks/plan@1 #\d+$", lines[0])
    page = json.loads(shell(asked))
    assert page["entries"] == [shown] and page["has_more"] is False
    assert shell(recovered) == ""  # nothing was killed
    assert "the log is whole in itself" in shell(verify)
    assert "goes on from the given checkpoint" in shell(kept)
    shell(export)
    rows = [json.loads(line) for line in (home / "audit.jsonl").read_text().splitlines()]
    assert shown in rows and [row["operation"] for row in rows][:1] == ["key_add"]
    events = [json.loads(line) for line in (home / "audit-ocsf.jsonl").read_text().splitlines()]
    assert len(events) >= len(rows) and {event["class_uid"] for event in events} == {6003}
    told = shell(redact)
    assert told.startswith("revoked ") and "\n1 name redacted\n" in told and "the log is whole" in told
    rows = [json.loads(line) for line in shell("notegate audit list --json").splitlines()]
    assert "ann" not in {row.get("agent") for row in rows}
    # The key's id is there, and no entry tells whose it was: nothing comes after the redaction.
    assert shown["key"] in {row.get("key") for row in rows} and '"ann"' not in shell("notegate audit export")
    assert "401" in shell("curl -s -o refused -w '%{http_code}' http://127.0.0.1:8420/v1/me -H \"Authorization: Bearer $(cat ann.key)\"")
