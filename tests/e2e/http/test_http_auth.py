# SPDX-License-Identifier: MIT
"""Allowed callers while no key exists; Host and Origin."""

import os
import shutil
import socket
import subprocess
import tempfile

import pytest

from conftest import binary, environment

NOBODY = 65534


def status_as_nobody(port, path, user=NOBODY):
    """The status another user of this machine gets: a child that gives up its rights asks."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with socket.create_connection(("127.0.0.1", port), timeout=120) as plain:
                plain.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                              "Connection: close\r\n\r\n".encode())
                data = b""
                while part := plain.recv(65536):
                    data += part
                os.write(writing, data.split()[1])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        status = answer.read()
    os.waitpid(child, 0)
    return status


def refused(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.json()["code"] == code
    return answer.json()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("path,status", [("/v1/tools", "401"), ("/metrics", "401"),
                                         ("/openapi.json", "401"), ("/nothing", "401"),
                                         ("/healthz", "200"), ("/readyz", "200"),
                                         ("/docs", "200")])
def test_another_user_of_this_machine(gateway, path, status):
    assert status_as_nobody(gateway.port, path) == status


@pytest.fixture(params=[[], ["--map-user=65534"]], ids=["unmapped", "mapped to nobody"])
def in_a_namespace(request):
    """The port and socket of a gateway whose user has no number of its own: the system's number for all such users."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    place = tempfile.mkdtemp(dir="/tmp")
    os.chown(place, 1234, 1234)
    command = ["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "unshare", "-U", *request.param, binary(),
               "serve", "--data-dir", place + "/d", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment() | {"HOME": place}) as process:
        line = process.stdout.readline()
        if "listening on" not in line and subprocess.run(command[:8] + ["true"], check=False).returncode:
            pytest.skip("user namespaces are not to be had here")
        assert "listening on" in line
        yield int(line.rsplit(":", 1)[1]), place + "/d/notegate.sock"
        process.terminate()
    shutil.rmtree(place)


def test_users_that_a_namespace_does_not_know(in_a_namespace):
    port, local = in_a_namespace
    for user in (0, 1, 1234, 4321, NOBODY):
        assert status_as_nobody(port, "/v1/tools", user) == "401", user
    with socket.socket(socket.AF_UNIX) as plain:  # its mode shows the owner
        plain.settimeout(120)
        plain.connect(local)
        plain.sendall(b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert plain.recv(100).split()[1] == b"200"


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP",
                                  "Via", "X-Forwarded", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP",
                                  "X-Cluster-Client-IP", "X-Original-Forwarded-For", "Fly-Client-IP",
                                  "X-Envoy-External-Address", "CDN-Loop"])
def test_forwarded_by_a_proxy(gateway, name):
    answer = gateway.call("notebook", {"mode": "list"}, {name: "x"})
    body = refused(answer, 401, "UNAUTHENTICATED")
    assert "proxy" in body["message"] and "key add" in body["hint"]
    assert answer.headers["www-authenticate"].startswith("Bearer")
    mcp = gateway.client.post("/mcp", json={}, headers={name: "x"})
    assert mcp.status_code == 401 and mcp.json()["jsonrpc"] == "2.0"


def test_auth_on(start):
    gateway = start(sets=["auth=on"])
    refused(gateway.call("notebook", {"mode": "list"}), 401, "UNAUTHENTICATED")
    refused(gateway.call("notebook", {"mode": "list"}, {"Authorization": "Bearer ng_x"}), 401,
            "UNAUTHENTICATED")
    assert gateway.client.get("/healthz").status_code == 200


def test_auth_off(start):
    gateway = start(sets=["auth=off"])
    assert gateway.call("notebook", {"mode": "list"}, {"Via": "1.1 x"}).status_code == 200


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
@pytest.mark.parametrize("auth", ["auto", "on", "off"])
def test_public_address_without_a_key(tmp_path, listen, auth):
    done = subprocess.run([binary(), "serve", "--data-dir", str(tmp_path / "d"), "--listen", listen,
                           "--set", f"auth={auth}"], capture_output=True, text=True, timeout=120,
                          env=environment(), check=False)
    assert done.returncode == 1
    assert "notegate key add" in done.stderr


def test_agent_space_and_mode(gateway):
    def as_agent(agent, space=None):
        return {"X-Notegate-Agent": agent} | ({"X-Notegate-Space": space} if space else {})

    made = gateway.call("notebook", {"mode": "create", "name": "mine", "newStr": "secret"},
                        as_agent("alice"))
    assert made.status_code == 200, made.text
    read = {"mode": "read", "name": "mine"}
    assert "secret" in gateway.call("notebook", read, as_agent("alice")).json()["result"]
    assert gateway.call("notebook", read, as_agent("bob")).status_code != 200
    assert "secret" in gateway.call("notebook", read, as_agent("bob", "~alice")).json()["result"]
    ask = {"X-Notegate-Mode": "ask"}
    answer = gateway.call("notebook", {"mode": "create", "name": "no"}, ask)
    refused(answer, 403, "MODE_FORBIDDEN")
    assert gateway.call("notebook", {"mode": "list"}, ask).status_code == 200


@pytest.mark.parametrize("headers", [{"X-Notegate-Agent": "a b"}, {"X-Notegate-Agent": "x" * 65},
                                     {"X-Notegate-Agent": ""}, {"X-Notegate-Space": "a/b"},
                                     {"X-Notegate-Space": "~"}, {"X-Notegate-Mode": "god"}])
def test_bad_names(gateway, headers):
    answer = gateway.call("notebook", {"mode": "list"}, headers)
    refused(answer, 400, "INVALID_INPUT")
    (name, value), = headers.items()
    assert name in answer.json()["message"] and f'"{value}"' in answer.json()["message"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example",
                                  "localhost.evil.example", "10.0.0.1", "localhost:x", "[::1",
                                  "a@localhost", "localhost:0", "localhost:99999"])
def test_foreign_hosts(gateway, host):
    host = host.format(port=gateway.port)
    refused(gateway.client.get("/v1/tools", headers={"Host": host}), 403, "FORBIDDEN")
    refused(gateway.client.get("/metrics", headers={"Host": host}), 403, "FORBIDDEN")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1", "127.0.0.1:{port}",
                                  "[::1]:{port}"])
def test_own_hosts(gateway, host):
    host = host.format(port=gateway.port)
    assert gateway.client.get("/v1/tools", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example",
                                    "http://localhost:1", "file://", "http://127.0.0.1@evil.example"])
def test_foreign_origins(gateway, origin):
    for answer in (gateway.client.get("/v1/tools", headers={"Origin": origin}),
                   gateway.client.post("/mcp", json={}, headers={"Origin": origin}),
                   gateway.client.options("/v1/tools", headers={"Origin": origin})):
        assert answer.status_code == 403, answer.text
        assert "access-control-allow-origin" not in answer.headers


def test_own_origins(gateway):
    for origin in (f"http://localhost:{gateway.port}", f"http://127.0.0.1:{gateway.port}"):
        answer = gateway.client.get("/v1/tools", headers={"Origin": origin})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == origin


def test_allowed_names(start):
    gateway = start(sets=["allowed_hosts=gate.example,other.example:99",
                          "allowed_origins=https://app.example"])
    get = gateway.client.get
    assert get("/v1/tools", headers={"Host": "gate.example:1234"}).status_code == 200
    assert get("/v1/tools", headers={"Host": "other.example:99"}).status_code == 200
    refused(get("/v1/tools", headers={"Host": "other.example"}), 403, "FORBIDDEN")
    preflight = gateway.client.options("/v1/tools/notebook", headers={
        "Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "X-Notegate-Space" in preflight.headers["access-control-allow-headers"]


def test_allowed_patterns(start):
    gateway = start(sets=["allowed_hosts=*.gate.example,10.0.0.0/8,fd00::/8",
                          "allowed_origins=https://*.app.example"])
    get = gateway.client.get
    for host in ("a.gate.example", "a.b.gate.example:1", "10.9.8.7:8420", "[fd00::7]"):
        assert get("/v1/tools", headers={"Host": host}).status_code == 200, host
    for host in ("gate.example", "agate.example", "11.0.0.1", "10.0.0.1.evil.example", "[fe80::1]"):
        refused(get("/v1/tools", headers={"Host": host}), 403, "FORBIDDEN")
    assert get("/v1/tools", headers={"Origin": "https://a.app.example"}).status_code == 200
    refused(get("/v1/tools", headers={"Origin": "https://app.example"}), 403, "FORBIDDEN")


@pytest.mark.parametrize("entry", ["allowed_hosts=*", "allowed_hosts=a.*.b", "allowed_hosts=10.0.0.5/8",
                                   "allowed_origins=*", "allowed_origins=https://app.example/"])
def test_names_that_cannot_match_are_refused(tmp_path, entry):
    key, value = entry.split("=", 1)
    for command in ("serve", "check"):
        done = subprocess.run([binary(), command, "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0",
                               "--set", entry], capture_output=True, text=True, timeout=120, env=environment(), check=False)
        assert done.returncode != 0
        assert f'{key} has "{value}"' in done.stdout + done.stderr, command


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_answer_any_host(start, path):
    gateway = start(sets=["auth=on"])
    for host in ("10.244.1.7:8420", "pod.example", "[fd00::7]:8420"):
        assert gateway.client.get(path, headers={"Host": host}).status_code == 200, host
        refused(gateway.client.get("/metrics", headers={"Host": host}), 403, "FORBIDDEN")
        # Nothing else changes: a request with a wrong host name does not learn which paths exist.
        refused(gateway.client.get("/nothing", headers={"Host": host}), 403, "FORBIDDEN")
        refused(gateway.client.post(path, headers={"Host": host}), 403, "FORBIDDEN")


def test_discovery_finds_nothing_without_a_key(start):
    gateway = start(sets=["auth=on"])
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
                 "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        refused(gateway.client.get(path), 404, "NOT_FOUND")
        refused(gateway.client.get(path, headers={"Authorization": "Bearer ng_wrong"}), 404, "NOT_FOUND")
    for path in ("/.well-known", "/well-known/x", "/register"):
        refused(gateway.client.get(path), 401, "UNAUTHENTICATED")


PAGE = "https://inspector.example"
# Headers of MCP clients in a browser, besides those that a page may always send.
BROWSER_HEADERS = ["authorization", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-param-region",
                   "mcp-protocol-version", "mcp-session-id"]


def names_in(header):
    return {name.strip().lower() for name in header.split(",")}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_preflight_of_a_client_in_a_browser(start, method):
    gateway = start(sets=[f"allowed_origins={PAGE}", "auth=on"])
    asked = ",".join([*BROWSER_HEADERS, "cookie", "mcp-param-a b"])
    answer = gateway.client.options("/mcp", headers={
        "Origin": PAGE, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": asked})
    assert answer.status_code == 204, "without a key: browsers send none with it"
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert {"GET", "POST", "DELETE", "OPTIONS"} == set(answer.headers["access-control-allow-methods"].split(", "))
    assert answer.headers["allow"] == answer.headers["access-control-allow-methods"]
    allowed = names_in(answer.headers["access-control-allow-headers"])
    assert set(BROWSER_HEADERS) <= allowed
    assert "cookie" not in allowed and not any(" " in name for name in allowed)
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "access-control-allow-credentials" not in answer.headers


def test_a_page_may_read_what_a_client_needs(start):
    gateway = start(sets=[f"allowed_origins={PAGE}"])
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
    answer = gateway.client.post("/mcp", headers={"Origin": PAGE, "Accept": "application/json, text/event-stream"},
                                 json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == PAGE
    exposed = names_in(answer.headers["access-control-expose-headers"])
    assert {"mcp-session-id", "www-authenticate", "retry-after", "x-request-id"} <= exposed
    assert "Origin" in answer.headers["vary"]


def test_other_pages_are_told_nothing(start):
    gateway = start(sets=[f"allowed_origins={PAGE}"])
    answer = gateway.client.options("/mcp", headers={
        "Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_refusals_can_be_read_by_a_page(start):
    gateway = start(sets=[f"allowed_origins={PAGE}", "auth=on"])
    answer = gateway.client.post("/mcp", headers={"Origin": PAGE}, json={})
    assert answer.status_code == 401 and "Bearer" in answer.headers["www-authenticate"]
    assert answer.headers["access-control-allow-origin"] == PAGE
