# SPDX-License-Identifier: MIT
"""The guides of api/guides with keys: every command and snippet runs as it stands there (those in JavaScript and the
inspector's in tests/mcp), and the table of rights is what the gateway does. The guides without keys: test_readme.py; that of
the agents' notebook: test_agent_notebook_guide.py."""

import asyncio
import http.client
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import threading

import httpx
import httpx2
import pytest
import yaml
from conftest import ANSWER_SECONDS, SOURCE, Gateway, binary, environment, eventually
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from odd import build_plugin
from servers import free_port
from tls_support import Authority
from vendors import LAST_WORDS, Vendors

TIMEOUT = 120
GUIDES = SOURCE / "api" / "guides"
CLIENTS = GUIDES / "clients.md"
SECURING = GUIDES / "securing.md"
RIGHTS = GUIDES / "rights.md"
BESIDE = pathlib.Path(sys.executable).parent


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.M | re.S)


def block(page, kind, start):
    """The one block that begins so, or whose text has `start`."""
    found = [text for text in blocks(page, kind) if start in text]
    assert len(found) == 1, f"{len(found)} blocks of {page.name} have {start!r}"
    return found[0]


def as_service(command):
    """The command without its `sudo`, whose user is the one of the test."""
    assert command.startswith("sudo "), command
    return re.sub(r"^sudo (-u notegate )?", "", command)


def test_no_command_ends_in_an_ellipsis():
    for page in (SOURCE / "README.md", *GUIDES.glob("*.md")):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        commands = [code for code in re.findall(r"`([^`]+)`", text) if re.match(r"(sudo|notegate|npx|curl|runuser|packaging/\w+) ", code)]
        assert not [code for code in commands if re.search(r"\.\.\.|…", code)], page.name


# ---- securing ----


class Team:
    """A gateway that is made as the guide says, without system services: its names stand for the guide's."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.authority = Authority(folder)
        self.authority.issue()
        self.data = folder / "data"
        self.config = folder / "notegate.yaml"
        self.keys = {}
        self.process = None
        self.port = None

    def shell(self, text, **more):
        path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.home), "NOTEGATE_DATA_DIR": str(self.data),
               "CURL_CA_BUNDLE": str(self.authority.path)}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=self.home,
                              timeout=TIMEOUT, env={**environment(), **own, **more})
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def add_keys(self, text):
        for line in text.strip().splitlines():
            words = shlex.split(line)
            assert words[:3] == ["notegate", "key", "add"]
            self.keys[words[3]] = self.shell(line).strip()

    def start(self, text):
        """With the guide's file, whose paths and port are the test's."""
        port = free_port()
        text = text.replace("/etc/notegate/tls/certificate.pem", str(self.folder / "certificate.pem"))
        text = text.replace("/etc/notegate/tls/key.pem", str(self.folder / "key.pem")).replace("8420", str(port))
        self.config.write_text(text)
        self.process = subprocess.Popen(
            [binary(), "serve", "--config", str(self.config), "--data-dir", str(self.data)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(), cwd=self.home)
        line = self.process.stdout.readline()
        assert "listening on https://" in line, line + self.process.stderr.read()
        self.port = port

    def curl(self, text, key):
        """A command of the guide; the name it calls leads here, as DNS would say."""
        text = text.replace("notes.example.com:8420", f"notes.example.com:{self.port}")
        text = text.replace("curl -s", f"curl -sk --connect-to notes.example.com:{self.port}:127.0.0.1:{self.port}")
        return json.loads(self.shell(text, NOTEGATE_KEY=key))

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.communicate(timeout=TIMEOUT)
            assert self.process.returncode == 0


@pytest.fixture
def team(tmp_path):
    made = Team(tmp_path)
    yield made
    made.stop()


def test_securing(team):
    config = block(SECURING, "yaml", "listen")
    refused = subprocess.run([binary(), "serve", "--listen", "0.0.0.0:0", "--data-dir", str(team.data)],
                             capture_output=True, text=True, env=environment(), cwd=team.home, timeout=TIMEOUT)
    assert refused.returncode == 1 and "notegate key add" in refused.stderr, "no key, no public address"
    shell = blocks(SECURING, "sh")
    team.add_keys(shell[0])
    team.add_keys(shell[1])
    assert set(team.keys) == {"ada", "builder", "reviewer", "ci"}
    team.start(config)
    listing = next(text for text in shell if "/v1/tools " in text)
    assert {"notebook", "fileEditor"} <= {tool["name"] for tool in team.curl(listing, team.keys["ada"])["tools"]}
    assert {tool["name"] for tool in team.curl(listing, team.keys["ci"])["tools"]} == {"notebook"}
    assert team.curl(listing, "ng_wrong")["code"] == "UNAUTHENTICATED"
    # What the builder writes, the reviewer finds.
    post = "curl -s https://notes.example.com:8420/v1/tools/{} -H \"Authorization: Bearer $NOTEGATE_KEY\" --json '{}'"
    made = post.format("notebook_create", '{"collection": "pages", "title": "Plan", "content": "drone"}')
    assert team.curl(made, team.keys["builder"])["result"]["status"] == "created"
    found = team.curl(post.format("notebook_search", '{"query": "drone"}'), team.keys["reviewer"])
    assert [entry["title"] for entry in found["result"]["results"]] == ["Plan"]
    # As the service's user, while it is stopped: here any store.
    command = re.search(r"`(sudo -u notegate notegate key add [^`]+)`", SECURING.read_text()).group(1)
    assert team.shell(as_service(command), NOTEGATE_DATA_DIR=str(team.folder / "stopped")).startswith("ng_")
    # Another name for the same address is not served.
    other = listing.replace("notes.example.com", "evil.example").replace("8420", str(team.port))
    other = other.replace("curl -s", f"curl -sk --connect-to evil.example:{team.port}:127.0.0.1:{team.port}")
    assert json.loads(team.shell(other, NOTEGATE_KEY=team.keys["ada"]))["code"] == "FORBIDDEN"
    # Day to day.
    shown = team.shell("notegate key list")
    row = re.search(r"^\S+ +ci +.*$", shown, re.M).group(0)
    assert shown.startswith("ID ") and " writer " in row and "the nightly build" in row
    checked = "notegate check | grep 'run code'"
    assert "no key may" in team.shell(checked)
    team.add_keys(next(text for text in shell if "--run" in text))
    assert "analyst (" in team.shell(checked)
    asked = next(text for text in shell if '"agent": "guest"' in text)
    guest = team.curl(asked, team.keys["ada"])
    assert guest["agent"] == "guest" and guest["role"] == "reader" and guest["key"].startswith("ng_")
    assert team.curl(asked, team.keys["builder"])["code"] == "FORBIDDEN"
    shown = team.shell(next(text for text in shell if "key revoke" in text))
    assert "reviewer" in shown and "revoked" in shown
    assert team.curl(listing, team.keys["ci"])["code"] == "UNAUTHENTICATED"
    assert team.curl(listing, team.keys["reviewer"])["tools"]


def test_over_its_rate(start):
    gateway = start()
    made = gateway.client.post("/v1/keys", json={"agent": "fast", "rate": 1})
    headers = {"Authorization": f"Bearer {made.json()['key']}"}
    answers = [gateway.call("notebook", {"mode": "list"}, headers) for _ in range(10)]
    late = [answer for answer in answers if answer.status_code == 429]
    assert late and int(late[0].headers["retry-after"]) >= 1 and late[0].json()["code"] == "RATE_LIMITED"


def test_the_service_is_there(team):
    unit = (SOURCE / "packaging" / "systemd" / "notegate.service").read_text()
    started = block(SECURING, "sh", "systemctl enable")
    assert "sudo -u notegate notegate check" in started and "User=notegate" in unit
    assert "systemctl restart" in started, "a service that runs keeps its address until then"
    assert "ExecReload=" in unit and "[Install]" in unit
    assert "ok     configuration" in team.shell("notegate check")


class Proxy(threading.Thread):
    """Does what the guide tells nginx to do: sets the headers it names and passes bytes on as they come."""

    def __init__(self, port, text):
        super().__init__(daemon=True)
        self.upstream = port
        self.headers = dict(re.findall(r'proxy_set_header (\S+) "?(.*?)"?;', text))
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, peer = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client, peer[0]), daemon=True).start()

    def serve(self, client, peer):
        with client, socket.create_connection(("127.0.0.1", self.upstream)) as upstream:
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            head, body = data.split(b"\r\n\r\n", 1)
            first, *lines = head.decode().split("\r\n")
            given = dict(line.split(": ", 1) for line in lines)
            host = given["Host"]
            for name, value in self.headers.items():
                given = {key: kept for key, kept in given.items() if key.lower() != name.lower()}
                if value:
                    given[name] = value.replace("$host", host.split(":")[0]).replace("$remote_addr", peer)
            given["Connection"] = "close"
            lines = [first, *(f"{name}: {value}" for name, value in given.items())]
            upstream.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            threading.Thread(target=self.pass_on, args=(client, upstream), daemon=True).start()
            self.pass_on(upstream, client)

    @staticmethod
    def pass_on(source, target):
        try:
            while chunk := source.recv(65536):
                target.sendall(chunk)
        except OSError:
            pass  # one side has seen enough


def test_behind_a_proxy(start):
    text = block(SECURING, "nginx", "proxy_pass")
    for line in ("proxy_buffering off;", "proxy_http_version 1.1;"):
        assert line in text
    gateway = start(sets=["allowed_hosts=notes.example.com"])
    proxy = Proxy(gateway.port, text)
    asked = httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", headers={"Host": "notes.example.com"}, timeout=ANSWER_SECONDS)
    assert asked.get("/v1/tools").status_code == 401, "a key, also while there is none"
    key = gateway.client.post("/v1/keys", json={"agent": "ada"}).json()["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert asked.get("/v1/tools", headers=bearer).status_code == 200
    made = asked.post("/v1/tools/notebook", headers=bearer, json={"mode": "create", "name": "n", "newStr": "x"})
    assert made.status_code == 200
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=ANSWER_SECONDS)
    connection.request("GET", "/v1/events?since=0", headers={"Host": "notes.example.com", **bearer})
    stream = connection.getresponse()
    assert stream.status == 200
    assert eventually(lambda: b'"notebooks"' in stream.readline(), what="the event through the proxy")
    connection.close()
    proxy.server.close()


# ---- clients ----


class Place:
    """A gateway with keys, and where the guide's snippets run."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.home.mkdir()
        self.gateway = Gateway(folder / "data")
        self.key = self.gateway.client.post("/v1/keys", json={"agent": "ada"}).json()["key"]
        self.headers = {"Authorization": f"Bearer {self.key}"}
        made = self.gateway.call("notebook", {"mode": "create", "name": "guide", "newStr": "x"}, self.headers)
        assert made.status_code == 200, made.text

    def text(self, text):
        return text.replace("127.0.0.1:8420", f"127.0.0.1:{self.gateway.port}")

    def environment(self, **more):
        path = f"{os.path.dirname(binary())}:{BESIDE}:{os.environ['PATH']}"
        return {**environment(), "PATH": path, "HOME": str(self.home), "NOTEGATE_KEY": self.key, **more}

    def run(self, command, **more):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.home, timeout=TIMEOUT,
                              env=self.environment(**more))
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, text, **more):
        return self.run([sys.executable, "-c", self.text(text)], **more)

    def shell(self, text):
        return self.run(["bash", "-euo", "pipefail", "-c", self.text(text)])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("guide"))
    yield made
    assert made.gateway.stop() == 0


def list_over_mcp(target):
    async def run():
        async with Client(target, read_timeout_seconds=TIMEOUT) as client:
            return (await client.call_tool("notebook", {"mode": "list"})).content[0].text

    return asyncio.run(run())


def list_over_http(url, headers):
    async def run():
        async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http_client:
            async with Client(streamable_http_client(url, http_client=http_client), read_timeout_seconds=TIMEOUT) as client:
                return (await client.call_tool("notebook", {"mode": "list"})).content[0].text

    return asyncio.run(run())


def test_claude_code(place):
    words = shlex.split(place.text(block(CLIENTS, "sh", "claude mcp add")).replace("$NOTEGATE_KEY", place.key))
    assert words[:6] == ["claude", "mcp", "add", "--transport", "http", "notegate"] and words[7] == "--header"
    name, value = words[8].split(": ")
    assert "guide" in list_over_http(words[6], {name: value})


def test_claude_desktop(place):
    server = json.loads(block(CLIENTS, "json", '"command"'))["mcpServers"]["notegate"]
    mine = place.environment(NOTEGATE_DATA_DIR=str(place.gateway.data_dir))
    answer = list_over_mcp(StdioServerParameters(command=server["command"], args=server["args"], env=mine))
    assert "notebooks" in answer


@pytest.mark.parametrize("start, member, variable", [
    ("${env:NOTEGATE_KEY}", "mcpServers", "${env:NOTEGATE_KEY}"), ("promptString", "servers", "${input:key}")])
def test_editors(place, start, member, variable):
    given = json.loads(place.text(block(CLIENTS, "json", start)))
    server = given[member]["notegate"]
    if "inputs" in given:
        assert [entry["id"] for entry in given["inputs"]] == ["key"] and given["inputs"][0]["password"] is True
    headers = {name: value.replace(variable, place.key) for name, value in server["headers"].items()}
    assert "guide" in list_over_http(server["url"], headers)


def test_inspector_in_a_browser(place):
    """Its page needs the permissions that the guide names."""
    line = re.search(r"`(allowed_origins: .*?)`", CLIENTS.read_text()).group(1)
    origins = yaml.safe_load(line)["allowed_origins"]
    running = Gateway(place.home.parent / "browser", sets=["allowed_origins=" + ",".join(origins)])
    answer = running.client.options("/mcp", headers={"Origin": origins[0], "Access-Control-Request-Method": "POST",
                                                     "Access-Control-Request-Headers": "authorization"})
    assert answer.status_code == 204 and answer.headers["access-control-allow-origin"] == origins[0]
    assert running.stop() == 0


def test_python_sdk(place):
    assert "guide" in place.python(block(CLIENTS, "python", "streamable_http_client"))


@pytest.mark.parametrize("start, transport", [
    ("client.chat.completions", "openai"), ("client.responses", "openai-responses"), ("Anthropic()", "anthropic"),
    ("genai.Client()", "gemini")])
def test_models(place, start, transport):
    common = block(CLIENTS, "python", "def run(name")
    with Vendors() as vendors:
        shown = place.python(common + block(CLIENTS, "python", start), **vendors.environment())
        assert shown.strip() == LAST_WORDS
        assert [asked for asked, _ in vendors.requests] == [transport, transport]
        assert "guide" in json.dumps(vendors.requests[1][1]), "the tool's answer went to the model"


def test_a_generated_client(place):
    place.shell(block(CLIENTS, "sh", "openapi-python-client"))
    assert "guide" in place.python(block(CLIENTS, "python", "notegate_client"))


def test_where_am_i(place):
    me = json.loads(place.shell(block(CLIENTS, "sh", "/v1/me")))
    assert me["agent"] == "ada" and me["default_space"] == "shared" and len(me["roots"]) == 1
    shown = json.loads(place.shell(f"notegate whoami --data-dir {place.gateway.data_dir} --agent ada"))
    assert shown["agent"] == "ada" and set(me) - set(shown) == {"key"}


def test_curl(place):
    text = block(CLIENTS, "sh", "/v1/tools/notebook")
    first = json.loads(place.shell(text))
    assert "error" not in first, first
    assert json.loads(place.shell(text)) == first
    read = place.gateway.call("notebook", {"mode": "read"}, {**place.headers, "X-Notegate-Space": "shared"})
    assert read.json()["result"].count("ada was here") == 1


def test_events(place):
    made = place.gateway.call("notebook", {"mode": "create", "name": "followed", "newStr": "x"}, place.headers)
    assert made.status_code == 200
    text = block(CLIENTS, "sh", "curl -sN").replace("curl -sN", f"curl -sN --max-time {TIMEOUT}")
    with subprocess.Popen(["bash", "-c", "exec " + place.text(text)], stdout=subprocess.PIPE, text=True, cwd=place.home,
                          env=place.environment()) as process:
        line = eventually(lambda: next((line for line in process.stdout if '"followed"' in line), None), what="an event")
        process.terminate()
    assert set(json.loads(line.removeprefix("data: "))) == set(json.loads(block(CLIENTS, "json", '"action"')))


def test_pages_of_events(place):
    for name in ("first", "second"):
        assert place.gateway.call("notebook", {"mode": "create", "name": name, "newStr": "x"}, place.headers).status_code == 200
    page = json.loads(place.shell(block(CLIENTS, "sh", "Accept: application/json")))
    assert set(page) == set(json.loads(block(CLIENTS, "json", '"has_more"')))
    assert [event["id"] for event in page["events"]][-2:] == ["first", "second"]


@pytest.mark.parametrize("form", ["openai", "openai-responses", "anthropic", "gemini", "mcp"])
def test_formats(place, form):
    assert f"`{form}`" in CLIENTS.read_text()
    shown = json.loads(place.shell(block(CLIENTS, "sh", "format=anthropic").replace("anthropic", form)))
    assert "fileEditor" in json.dumps(shown)
    if form == "anthropic":
        assert all(set(tool) == {"name", "description", "input_schema"} for tool in shown)


def test_every_snippet_is_run():
    """Those above, and in tests/mcp those in JavaScript and the inspector's."""
    assert len(blocks(CLIENTS, "sh")) == 8 and len(blocks(CLIENTS, "json")) == 5
    assert len(blocks(CLIENTS, "python")) == 7 and len(blocks(CLIENTS, "js")) == 2
    assert len(blocks(SECURING, "sh")) == 7 and len(blocks(SECURING, "yaml")) == 1


def test_every_format_is_shown():
    assert set(re.findall(r'tools\("([\w-]+)"\)', CLIENTS.read_text())) == {
        "openai", "openai-responses", "anthropic", "gemini"}


# ---- rights ----


def rights_table():
    rows = re.findall(r"^\| (reader|writer|admin) \| (ask|edit|agent) \|(.*)\|$", RIGHTS.read_text(), re.M)
    assert len(rows) == 9
    kinds = ["rights_reads", "rights_writes", "rights_agent", "rights_runs", "rights_admin"]
    return [(role, mode, dict(zip(kinds, (cell.strip(" `") for cell in cells.split("|")), strict=True)))
            for role, mode, cells in rows]


@pytest.fixture(scope="module")
def rights(tmp_path_factory):
    """A gateway with a tool of each kind and a key of each role, all in mode agent."""
    folder = tmp_path_factory.mktemp("rights")
    running = Gateway(folder / "data", sets=[f"plugins=+{build_plugin(folder, 'rights_tools')}"])
    keys = {}
    for role in ("admin", "writer", "reader"):
        headers = {"Authorization": f"Bearer {keys['admin']}"} if keys else {}
        made = running.client.post("/v1/keys", headers=headers,
                                   json={"agent": f"a-{role}", "role": role, "run": True})
        keys[role] = made.json()["key"]
    yield running, keys
    assert running.stop() == 0


@pytest.mark.parametrize("role, mode, cells", rights_table(), ids=lambda value: value if isinstance(value, str) else "")
def test_rights(rights, role, mode, cells):
    gateway, keys = rights
    own, without = (gateway.client.post("/v1/keys", json={"agent": "of-that-mode", "role": role, "mode": mode, "run": run},
                                        headers={"Authorization": f"Bearer {keys['admin']}"}).json()["key"]
                    for run in (True, False))
    # A key of that mode, a key of mode agent lowered for the call, and one that has no right to run code.
    for headers in ({"Authorization": f"Bearer {own}"}, {"Authorization": f"Bearer {keys[role]}", "X-Notegate-Mode": mode},
                    {"Authorization": f"Bearer {without}"}):
        if without in headers["Authorization"] and cells["rights_runs"] == "yes":
            cells = {**cells, "rights_runs": "RUN_FORBIDDEN"}
        listed = {tool["name"] for tool in gateway.client.get("/v1/tools", headers=headers).json()["tools"]}
        paths = gateway.client.get("/openapi.json", headers=headers).json()["paths"]
        for name, wanted in cells.items():
            answer = gateway.call(name, {}, headers)
            got = "yes" if answer.status_code == 200 else answer.json()["code"]
            assert (name, got) == (name, wanted)
            assert answer.status_code in (200, 403)
            assert (name in listed) == (wanted == "yes") == (f"/v1/tools/{name}" in paths)
        reads = gateway.call("notebook", {"mode": "list"}, headers)
        writes = gateway.call("notebook", {"mode": "write", "name": "n", "newStr": "x"}, headers)
        assert reads.status_code == 200
        assert (writes.status_code != 403) == (cells["rights_writes"] == "yes")


def test_rights_in_words(rights):
    gateway, keys = rights
    admin = {"Authorization": f"Bearer {keys['admin']}"}

    def code(answer):
        return "yes" if answer.status_code < 300 else answer.json()["code"]

    made = gateway.client.post("/v1/keys", headers=admin, json={"agent": "low", "mode": "ask", "spaces": ["team"]})
    low = {"Authorization": f"Bearer {made.json()['key']}"}
    read = {"mode": "list"}
    assert code(gateway.call("notebook", read, {**low, "X-Notegate-Mode": "edit"})) == "MODE_FORBIDDEN"
    assert code(gateway.call("notebook", read, {**low, "X-Notegate-Space": "other"})) == "FORBIDDEN"
    assert code(gateway.call("notebook", read, {**low, "X-Notegate-Space": "team"})) == "yes"
    assert code(gateway.call("notebook", read, low)) == "yes", "in its first space"
    assert code(gateway.call("notebook", read, {**admin, "X-Notegate-Space": "other"})) == "yes"
    # A tool that runs code for some arguments asks by itself.
    for headers, code_of in ((low, "RUN_FORBIDDEN"), (admin, "yes")):
        assert code(gateway.call("rights_asks", {}, headers)) == "yes"
        assert code(gateway.call("rights_asks", {"run": True}, headers)) == code_of
    ask = {**admin, "X-Notegate-Mode": "ask"}
    assert code(gateway.client.get("/v1/keys", headers=ask)) == "yes"
    assert code(gateway.client.post("/v1/keys", headers=ask, json={"agent": "x"})) == "MODE_FORBIDDEN"
    for role in ("reader", "writer"):
        assert code(gateway.client.get("/v1/keys", headers={"Authorization": f"Bearer {keys[role]}"})) == "FORBIDDEN"
        assert code(gateway.client.post("/v1/reload", headers={"Authorization": f"Bearer {keys[role]}"})) == "FORBIDDEN"
        assert code(gateway.client.get("/v1/config", headers={"Authorization": f"Bearer {keys[role]}"})) == "FORBIDDEN"
    assert code(gateway.client.get("/v1/config", headers=admin)) == "yes"
    listed = gateway.client.post("/v1/keys", headers=admin, json={"agent": "l", "role": "admin", "tools": ["notebook"]})
    for path in ("/v1/keys", "/v1/config"):
        assert code(gateway.client.get(path, headers={"Authorization": f"Bearer {listed.json()['key']}"})) == "FORBIDDEN"


def test_changing_a_key(start, tmp_path):
    gateway = start()
    shell, curl = blocks(RIGHTS, "sh")
    own = {"PATH": f"{os.path.dirname(binary())}:{os.environ['PATH']}", "NOTEGATE_DATA_DIR": str(gateway.data_dir)}

    def run(text, **more):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=tmp_path,
                              timeout=TIMEOUT, env={**environment(), **own, **more})
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    first, *changes = shell.strip().splitlines()
    key = run(first).strip()
    headers = {"Authorization": f"Bearer {key}"}
    tools = {tool["name"] for tool in gateway.client.get("/v1/tools", headers=headers).json()["tools"]}
    assert "notebook_create" in tools and not tools & {"notebook_delete", "checkpoint_restore", "memory_log"}
    said = run("\n".join(changes)).split()
    assert [said[0], said[4], said[8], said[12]] == ["changed", "changed", "paused", "resumed"]
    tools = {tool["name"] for tool in gateway.client.get("/v1/tools", headers=headers).json()["tools"]}
    assert {"notebook_delete", "checkpoint_restore"} <= tools
    admin = run("notegate key add root --role admin").strip()
    shown = next(row.split()[0] for row in run("notegate key list").splitlines() if row.split()[1] == "writer")
    changed = json.loads(run(curl.replace("http://127.0.0.1:8420", gateway.url), ID=shown, NOTEGATE_KEY=admin))
    assert changed["paused"] is True and "expires" not in changed and changed["note"] == "edits the handbook"
    assert gateway.client.get("/v1/tools", headers=headers).status_code == 401
