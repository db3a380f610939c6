# SPDX-License-Identifier: MIT
"""The run of a call by every way into the gateway: what counts, what is refused, what the answer and the audit log tell."""

import hashlib
import itertools
import json
import re
import subprocess

import httpx
import pytest

from cli_support import notegate
from conftest import Gateway, binary, environment, eventually
from keys_support import add, bearer, key_id
from mcp_support import CALL_SECONDS, HANDSHAKE, Lines, Session, call, modern

AUDIT = ["log.audit=true", "log.format=json"]
SETS = [word for pair in AUDIT for word in ("--set", pair)]
META = "io.notegate/run"
HEADER = "X-Notegate-Run"
BATCHES = "2025-03-26"
LABEL = re.compile(r"mcp-[0-9a-f]{16}")
# What a request can give; each value differs from the others.
VALUES = {"meta": "of-meta", "named": "named.1:a_B-2", "meta_trace": "1" * 32, "trace": "2" * 32}
# Given together, and the one that counts.
CASES = [
    (("meta", "named", "meta_trace", "trace"), "meta"),
    (("meta", "trace"), "meta"),
    (("meta",), "meta"),
    (("named", "meta_trace", "trace"), "named"),
    (("named", "trace"), "named"),
    (("named",), "named"),
    (("meta_trace", "trace"), "meta_trace"),
    (("meta_trace",), "meta_trace"),
    (("trace",), "trace"),
    ((), None),
]
BAD = ["a b", "", "a/b", "x" * 65, "undo-", "undo-0123456789ab"]
BAD_META = [*BAD, "ä", "a\nb", 5, True, {"a": 1}, ["x"]]
numbers = itertools.count(1)


def traceparent(trace):
    return f"00-{trace}-b7ad6b7169203331-01"


def headers_of(given):
    found = {HEADER: given["named"]} if "named" in given else {}
    return found | ({"traceparent": traceparent(given["trace"])} if "trace" in given else {})


def meta_of(given):
    found = {META: given["meta"]} if "meta" in given else {}
    return found | ({"traceparent": traceparent(given["meta_trace"])} if "meta_trace" in given else {})


def writes(name):
    return {"mode": "create", "name": name, "newStr": "x"}


def audited(lines, name):
    """The line of the call that made this notebook."""
    for line in list(lines()):
        entry = json.loads(line) if line.startswith("{") else {}
        if any(change["id"] == name for change in entry.get("changes", ())):
            return entry
    return None


class Rest:
    takes = ("named", "trace")
    label = None

    def __init__(self, gateway, client):
        self.lines, self.client = lambda: gateway.errors, client

    def make(self, name, given):
        """The answer's error, if it is one, and the run that it tells."""
        answer = self.client.post("/v1/tools/notebook", json=writes(name), headers=headers_of(given))
        return (None if answer.status_code == 200 else answer.json()), answer.headers.get(HEADER)


class Stateless(Rest):
    takes = tuple(VALUES)

    def make(self, name, given):
        message, headers = modern({"name": "notebook", "arguments": writes(name), "_meta": meta_of(given)})
        answer = self.client.post("/mcp", json=message, headers=headers | headers_of(given))
        return answer.json().get("error"), answer.headers.get(HEADER)


class Handshake(Rest):
    takes = tuple(VALUES)
    version = HANDSHAKE

    def __init__(self, gateway, client):
        super().__init__(gateway, client)
        self.session = Session(gateway, self.version)
        identity = self.session.headers["Mcp-Session-Id"]
        self.label = f"mcp-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"

    def post(self, message, given):
        return self.session.client.post("/mcp", json=message, headers=self.session.headers | headers_of(given))

    def make(self, name, given):
        answer = self.post(call("notebook", writes(name), meta=meta_of(given)), given)
        return answer.json().get("error"), answer.headers.get(HEADER)


class Batch(Handshake):
    version = BATCHES

    def make(self, name, given):
        answer = self.post([call("notebook", writes(name), meta=meta_of(given)), {"jsonrpc": "2.0", "method": "notifications/x"}], given)
        body = answer.json()
        return (body[0] if isinstance(body, list) else body).get("error"), answer.headers.get(HEADER)


class Stdio:
    """`notegate mcp`; with a gateway on its data, that one's log has the lines."""
    takes = ("meta", "meta_trace")

    def __init__(self, data, *flags, gateway=None, stateless=False):
        self.log = data.parent / f"stderr-{next(numbers)}"
        self.talk = Lines.__new__(Lines)
        with self.log.open("w") as log:
            self.talk.process = subprocess.Popen(
                [binary(), "mcp", "--data-dir", str(data), *(SETS if gateway is None else []), *flags], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, env=environment(), cwd=data.parent)
        self.talk.read_lines()
        self.lines = (lambda: gateway.errors) if gateway else lambda: self.log.read_text().splitlines()
        self.stateless = stateless
        self.label = VALUES["named"] if "--run" in flags else LABEL
        if not stateless:
            self.talk.initialize()

    def make(self, name, given):
        number = next(numbers)
        message = call("notebook", writes(name), number, meta_of(given))
        if self.stateless:
            message = modern(message["params"])[0] | {"id": number}
        self.talk.send(message)
        return self.talk.answer(number).get("error"), None

    def run_of(self, given=None):
        name = f"of-{next(numbers)}"
        error, _ = self.make(name, given or {})
        assert error is None, error
        return eventually(lambda: audited(self.lines, name), what=f"the line of {name}")["run"]

    def end(self):
        assert self.talk.end() == 0


class Command:
    """`notegate call`, which has the line itself where no gateway serves."""
    takes = ("named",)
    label = None

    def __init__(self, data, gateway=None):
        self.data, self.gateway, self.done = data, gateway, None
        self.lines = (lambda: gateway.errors) if gateway else (lambda: self.done.stderr.splitlines())

    def make(self, name, given):
        words = ["--run", given["named"]] if "named" in given else []
        pairs = [f"{key}={value}" for key, value in writes(name).items()]
        self.done = notegate("call", "notebook", *pairs, "--data-dir", self.data, *words, *([] if self.gateway else SETS))
        return (None if self.done.returncode == 0 else {"message": self.done.stderr, "exit": self.done.returncode}), None


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("runs") / "data", AUDIT)
    yield running
    assert running.stop() == 0


DOORS = ["rest", "socket", "stateless", "handshake", "batch", "relay", "relay stateless", "relay --run", "stdio", "stdio stateless",
         "stdio --run", "call", "call alone"]


@pytest.fixture
def door(request, gateway, tmp_path):
    kind, _, more = request.param.partition(" ")
    flags = ("--run", VALUES["named"]) if more == "--run" else ()
    if request.param.startswith(("relay", "stdio")):
        served = gateway if kind == "relay" else None
        data = served.data_dir if served else tmp_path / "data"
        made = Stdio(data, *flags, gateway=served, stateless=more == "stateless")
        yield made
        made.end()
    elif kind == "call":
        yield Command(tmp_path / "data") if more else Command(gateway.data_dir, gateway)
    elif kind == "socket":
        with httpx.Client(base_url="http://localhost", transport=httpx.HTTPTransport(uds=gateway.socket_path),
                          timeout=CALL_SECONDS) as client:
            yield Rest(gateway, client)
    else:
        made = {"rest": Rest, "stateless": Stateless, "handshake": Handshake, "batch": Batch}[kind](gateway, gateway.client)
        yield made
        if hasattr(made, "session"):
            made.session.close()


@pytest.mark.parametrize("door", DOORS, indirect=True)
def test_what_counts(door):
    taken = 0
    for number, (names, counts) in enumerate(CASES):
        if not set(names) <= set(door.takes):
            continue
        taken += 1
        name = f"run-{next(numbers)}-{number}"
        error, told = door.make(name, {source: VALUES[source] for source in names})
        assert error is None, error
        expected = VALUES[counts] if counts else door.label
        if counts == "meta_trace" and door.label == VALUES["named"]:
            expected = door.label
        entry = eventually(lambda wanted=name: audited(door.lines, wanted), what=f"the line of {names}")
        if expected is LABEL:
            assert LABEL.fullmatch(entry["run"]), entry
        else:
            assert entry.get("run") == expected, (names, entry)
        if isinstance(door, Rest):
            assert told == expected, names
    assert taken >= 2


@pytest.mark.parametrize("door", DOORS, indirect=True)
def test_what_is_refused(door, gateway):
    for source, bad in [*(("named", bad) for bad in BAD), *(("meta", bad) for bad in BAD_META)]:
        if source not in door.takes:
            continue
        name = f"refused-{next(numbers)}"
        error, told = door.make(name, {source: bad})
        assert error is not None, (source, bad)
        value = bad if isinstance(bad, str) else json.dumps(bad, separators=(",", ":"))
        said = error["message"].replace(value, "VALUE", 1) if value else error["message"]
        where = "--run" if isinstance(door, Command) else HEADER if source == "named" else f'`_meta["{META}"]`'
        assert said.startswith(f"{'notegate: ' if isinstance(door, Command) else ''}{where} is "), error
        assert '"VALUE"' in said if value and isinstance(bad, str) else 'is ""' in said or "is VALUE; it must be a string" in said, said
        assert ("an undo alone" if value.startswith("undo-") else "1 to 64 of the characters A-Z a-z 0-9 . _ : -") in said, said
        assert told is None
        if isinstance(door, Command):
            assert error["exit"] == 2
        elif isinstance(door, Rest) and source == "named":
            assert error.get("data", error)["code"] == "INVALID_INPUT"
        else:
            assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_INPUT")
        assert audited(door.lines, name) is None
    listed = gateway.call("notebook", {"mode": "list"}).text
    assert "refused-" not in listed


def test_a_null_is_none_and_a_trace_that_is_none_does_not_count(gateway):
    session = Handshake(gateway, gateway.client)
    for given in ({"meta": None}, {"meta_trace": "0" * 32}, {"trace": "0" * 32}, {"trace": "x" * 32}):
        error, told = session.make(f"none-{next(numbers)}", given)
        assert error is None and told == session.label, given
    session.session.close()


def test_an_argument_is_no_run(gateway):
    answer = gateway.client.post("/v1/tools/notebook", json={"mode": "list", "run": "argued", "_meta": {META: "argued"}})
    assert HEADER not in answer.headers
    message, headers = modern({"name": "notebook", "arguments": {"mode": "list", "_meta": {META: "argued"}}})
    assert HEADER not in gateway.client.post("/mcp", json=message, headers=headers).headers


def test_a_failed_call_and_other_answers_tell_it(gateway):
    named = {HEADER: "named"}
    failed = gateway.call("notebook", {"mode": "read", "name": "no such"}, named)
    assert failed.status_code == 404 and failed.headers[HEADER] == "named"
    for path in ("/v1/tools", "/v1/me", "/v1/tools/notebook?format=openai", "/v1/tools?format=gemini"):
        assert gateway.client.get(path, headers=named).headers[HEADER] == "named", path
    with gateway.client.stream("GET", "/v1/events", headers=named) as stream:
        assert stream.headers[HEADER] == "named"


def test_a_batch_tells_the_run_that_all_have(gateway):
    session = Session(gateway, BATCHES)

    def told(*metas):
        batch = [call("notebook", {"mode": "list"}, number, meta) for number, meta in enumerate(metas)]
        answer = session.post(batch)
        assert answer.status_code == 200, answer.text
        return answer.headers.get(HEADER), sorted(answer.json(), key=lambda one: one["id"])

    label = f"mcp-{hashlib.sha256(session.headers['Mcp-Session-Id'].encode()).hexdigest()[:16]}"
    assert told(None, None)[0] == label
    assert told({META: "a"}, {META: "a"}, {META: "a"})[0] == "a"
    assert told({META: "a"}, {META: "b"})[0] is None
    assert told({META: "a"}, None)[0] is None
    assert told({META: label}, None)[0] == label
    header, answers = told({META: "a"}, {META: "a b"})
    assert header is None
    assert "result" in answers[0] and answers[1]["error"]["data"]["code"] == "INVALID_INPUT"
    session.close()


def test_a_stream_tells_it(gateway):
    """The answer has begun before the call has ended."""
    session = Session(gateway)
    headers = session.headers | {"Accept": "text/event-stream", HEADER: "streamed"}
    with session.client.stream("POST", "/mcp", json=call("notebook", {"mode": "list"}), headers=headers) as answer:
        assert answer.headers[HEADER] == "streamed" and answer.headers["content-type"] == "text/event-stream"
        assert "result" in "".join(answer.iter_text())
    session.close()


def test_sessions_and_processes_differ(gateway, tmp_path):
    one, two = Handshake(gateway, gateway.client), Handshake(gateway, gateway.client)
    assert one.label != two.label
    for made in (one, two):
        made.session.close()
    # The first on its data directory has the gateway, the second goes through it.
    data = tmp_path / "data"
    stdio = [Stdio(data), Stdio(data), Stdio(gateway.data_dir, gateway=gateway), Stdio(gateway.data_dir, gateway=gateway, stateless=True)]
    stdio[1].lines = stdio[0].lines
    found = [[made.run_of() for _ in range(3)] for made in stdio]
    assert all(len(set(runs)) == 1 and LABEL.fullmatch(runs[0]) for runs in found), found
    assert len({runs[0] for runs in found}) == len(stdio), found
    # A new session of the same process has the same label.
    stdio[2].talk.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
    assert "result" in stdio[2].talk.answer(0)
    assert stdio[2].run_of() == found[2][0]
    for made in reversed(stdio):
        made.end()


def test_the_audit_line_with_a_key(tmp_path):
    running = Gateway(tmp_path / "data", AUDIT)
    key = add(running.data_dir, "ada", "--role", "admin")
    named = bearer(key) | {HEADER: "named"}
    assert running.call("notebook", writes("keyed"), named).status_code == 200
    entry = eventually(lambda: audited(lambda: running.errors, "keyed"), what="the line")
    assert (entry["run"], entry["agent"], entry["key"]) == ("named", "ada", key_id(key))
    assert running.client.post("/v1/keys", json={"agent": "ben"}, headers=named).status_code == 201
    line = eventually(lambda: running.logged('"key_add"', '"named"'), what="the line of the key")
    assert json.loads(line[0])["run"] == "named"
    # Who is not known learns nothing of its other headers.
    refused = running.call("notebook", {"mode": "list"}, {HEADER: "a b"})
    assert refused.status_code == 401 and HEADER not in refused.headers
    assert running.stop() == 0


def test_pages_of_other_origins(tmp_path):
    page = "https://app.example"
    running = Gateway(tmp_path / "data", [f"allowed_origins={page}"])
    preflight = running.client.options("/v1/tools/notebook", headers={"Origin": page, "Access-Control-Request-Method": "POST"})
    assert HEADER in preflight.headers["access-control-allow-headers"].split(", ")
    answer = running.client.get("/v1/me", headers={"Origin": page, HEADER: "a"})
    assert HEADER in answer.headers["access-control-expose-headers"].split(", ") and answer.headers[HEADER] == "a"
    assert running.stop() == 0
