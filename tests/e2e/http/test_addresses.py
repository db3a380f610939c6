# SPDX-License-Identifier: MIT
"""Addresses as clients and proxies write them: with one slash at the end, below a path, with a slash inside a name."""

import http.server
import json
import re
import subprocess
import threading
from urllib.parse import urljoin

import httpx
import pytest
from conftest import Gateway, binary, environment

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
EVENTS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A gateway with keys: the headers of an admin, a reader, and of nobody."""
    running = Gateway(tmp_path_factory.mktemp("addresses") / "data")
    made = running.client.post("/v1/keys", json={"agent": "root", "role": "admin"}).json()
    admin = {"Authorization": f"Bearer {made['key']}"}
    reader = running.client.post("/v1/keys", json={"agent": "eve", "role": "reader"}, headers=admin).json()
    yield running, {"admin": admin, "reader": {"Authorization": f"Bearer {reader['key']}"}, "nobody": {}}, made["id"]
    assert running.stop() == 0


def told(answer):
    """What does not differ from one request to the next."""
    body = answer.text if answer.headers.get("content-type", "").startswith("application/json") else ""
    return (answer.status_code, answer.headers.get("allow"), answer.headers.get("content-type"),
            re.sub(r'"(last_used|at|time|uptime\w*)":("[^"]*"|[\d.]+)', "", body))


@pytest.mark.parametrize("who", ("admin", "reader", "nobody"))
def test_one_slash_at_the_end_changes_nothing(keyed, who):
    gateway, headers, number = keyed
    document = gateway.client.get("/openapi.json", headers=headers["admin"]).json()
    paths = {path.format(name="notebook", id=number) for path in document["paths"] if "{path}" not in path}
    paths -= {"/", "/v1/events", "/metrics", "/v1/audit", "/v1/audit/checkpoint"}  # those change from one request to the next
    paths -= {"/openapi.json"}  # its servers are relative to it
    paths -= {path for path in paths if path.startswith("/v1/tools/")} - {"/v1/tools/notebook"}
    assert {"/mcp", "/v1/admin/backup", "/v1/tools/notebook", "/docs/docs.js"} <= paths
    for path in paths:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            if method in ("DELETE", "POST") and path in ("/v1/keys", f"/v1/keys/{number}", "/v1/reload"):
                continue  # they change something, see below
            plain, slash = (gateway.client.request(method, address, headers=headers[who], follow_redirects=False) for address in (
                path, path + "/"))
            assert told(plain) == told(slash), (method, path)
            assert slash.status_code not in (301, 302, 307, 308)
            assert gateway.client.request(method, path + "//", headers=headers["admin"]).status_code == 404
            if not path.startswith(("/v1/tools/", "/v1/keys/")):  # there it is part of the name
                assert gateway.client.request(method, path + "%2F", headers=headers["admin"]).status_code == 404


@pytest.mark.parametrize("who", ("admin", "reader", "nobody"))
@pytest.mark.parametrize("path", ("/v1/events", "/metrics"))
def test_a_slash_behind_what_never_is_the_same(keyed, path, who):
    """A stream without end, and numbers that grow."""
    gateway, headers, _ = keyed
    for method in ("GET", "HEAD", "POST", "PATCH", "OPTIONS"):
        found = []
        for address in (path, path + "/"):
            with gateway.client.stream(method, address, headers=headers[who], follow_redirects=False) as answer:
                found.append((answer.status_code, answer.headers.get("allow"), answer.headers.get("content-type")))
        assert found[0] == found[1] and found[0][0] not in (301, 302, 307, 308, 404), (method, found)
    for address in (path + "//", path + "%2F"):
        assert gateway.client.get(address, headers=headers["admin"]).status_code == 404


def test_rights_are_those_of_the_outcome(keyed):
    gateway, headers, _ = keyed
    body = {"agent": "tim"}
    for who, status in (("nobody", 401), ("reader", 403), ("admin", 201)):
        assert gateway.client.post("/v1/keys/", json=body, headers=headers[who]).status_code == status
    write = {"mode": "create", "name": "n", "newStr": "x"}
    for who, status in (("nobody", 401), ("reader", 403), ("admin", 200)):
        assert gateway.client.post("/v1/tools/notebook/", json=write, headers=headers[who]).status_code == status
    made = gateway.client.get("/v1/keys/", params={"name": "tim"}, headers=headers["admin"]).json()["keys"][0]["id"]
    for who, status in (("nobody", 401), ("reader", 403), ("admin", 200)):
        assert gateway.client.patch(f"/v1/keys/{made}/", json={"note": "n"}, headers=headers[who]).status_code == status
    assert gateway.client.delete(f"/v1/keys/{made}/", headers=headers["reader"]).status_code == 403
    assert gateway.client.delete(f"/v1/keys/{made}/", headers=headers["admin"]).status_code == 200
    assert gateway.client.post("/v1/admin/verify/", headers=headers["admin"]).status_code == 403, "over TCP"


def test_mcp_with_a_slash(keyed):
    gateway, headers, _ = keyed
    common = headers["admin"] | EVENTS
    opened = gateway.client.post("/mcp/", json=INITIALIZE, headers=common)
    assert opened.status_code == 200
    session = common | {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    assert gateway.client.post("/mcp/", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=session).status_code == 200
    with gateway.client.stream("GET", "/mcp/", headers=session) as stream:
        assert stream.status_code == 200 and stream.headers["content-type"] == "text/event-stream"
    assert gateway.client.delete("/mcp/", headers=session).status_code == 204
    modern = common | {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
    assert "supportedVersions" in gateway.client.post("/mcp/", json=DISCOVER, headers=modern).json()["result"]
    refused = gateway.client.post("/mcp/", json=INITIALIZE, headers=EVENTS)
    assert refused.status_code == 401 and refused.json()["jsonrpc"] == "2.0"


def test_a_slash_in_a_name_divides_nothing(keyed):
    gateway, headers, _ = keyed
    for name, shown in (("a%2Fb", "a/b"), ("a%2fb%2F", "a/b/"), ("%2F", "/"), ("a%252Fb", "a%2Fb")):
        for method in ("GET", "POST"):
            answer = gateway.client.request(method, f"/v1/tools/{name}", headers=headers["admin"],
                                            json={} if method == "POST" else None)
            assert answer.status_code == 404 and answer.json()["code"] == "UNKNOWN_TOOL", (name, answer.text)
            assert f'"{shown}"' in answer.json()["message"]
    assert gateway.client.get("/v1/tools/a/b", headers=headers["admin"]).json()["code"] == "NOT_FOUND"


@pytest.mark.parametrize("serves", (True, False))
@pytest.mark.parametrize("arguments", ((), ("{}",), ("a=b",)))
def test_a_slash_in_the_name_of_a_command(gateway, tmp_path, serves, arguments):
    done = subprocess.run([binary(), "call", "note/book", *arguments, "--json", "--data-dir",
                           str(gateway.data_dir if serves else tmp_path / "data")],
                          capture_output=True, text=True, timeout=120, env=environment(), check=False)
    assert json.loads(done.stdout)["code"] == "UNKNOWN_TOOL" and "note/book" in done.stdout, done


# ---- below a path ----


class Proxy(http.server.BaseHTTPRequestHandler):
    """Puts a gateway below /x/y/, and has nothing else."""

    def do_GET(self):
        if not self.path.startswith("/x/y/"):
            self.send_error(404)
            return
        answer = httpx.get(self.server.target + self.path.removeprefix("/x/y"), follow_redirects=False, trust_env=False)
        self.send_response(answer.status_code)
        for name in ("content-type", "location"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_):
        pass


@pytest.fixture(params=("", "/x/y"))
def base(request, gateway):
    """A gateway's address, and that of a proxy with a path."""
    if not request.param:
        yield gateway.url
        return
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.target = gateway.url
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}{request.param}"
        proxy.shutdown()


@pytest.mark.parametrize("page", ("/", "/docs", "/docs/"))
def test_the_page_finds_its_files(base, page):
    with httpx.Client(trust_env=False, follow_redirects=True) as client:
        answer = client.get(base + page)
        assert answer.status_code == 200 and "<h1>notegate</h1>" in answer.text
        found = set(re.findall(r'(?:src|href)="([^"]*)"', answer.text)) - {"data:,"}
        assert len(found) == 4
        kinds = {client.get(urljoin(str(answer.url), one)).headers["content-type"].split(";")[0] for one in found}
        assert kinds == {"text/css", "text/javascript", "application/json"}
        source = next(one for one in found if one.endswith(".js"))
        script = client.get(urljoin(str(answer.url), source))
        assert re.search(r"new URL\('\.\./' \+ path, script\)", script.text)
        asked = re.findall(r"fetch\(([^,]*)", script.text)
        assert len(asked) == 2 and all(one.startswith("address('") for one in asked)
        for one in re.findall(r"address\('([^']*)'", script.text):
            assert client.get(urljoin(str(script.url), "../" + one + ("notebook" if one.endswith("/") else ""))).status_code == 200


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi.json/"])
def test_operations_are_relative_to_the_document(base, path):
    with httpx.Client(trust_env=False) as client:
        document = client.get(base + path).json()
        server = urljoin(base + path, document["servers"][0]["url"]).rstrip("/")
        assert server == base and client.get(server + "/v1/tools").status_code == 200


def test_the_address_that_the_start_prints_leads_to_the_page(gateway):
    for method in ("GET", "HEAD"):
        answer = gateway.client.request(method, "/", follow_redirects=False)
        assert answer.status_code == 308 and answer.headers["location"] == "docs"
    assert gateway.client.post("/").status_code == 405
