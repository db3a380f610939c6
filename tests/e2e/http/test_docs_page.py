# SPDX-License-Identifier: MIT
"""/docs: what the page is made of, and that with keys on it can do its work without telling anything to strangers."""

import html.parser
import re

import pytest
from cells_support import code, write_notebook
from conftest import Gateway


class Page(html.parser.HTMLParser):
    """The elements of a page, each with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.inline = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] in ("script", "style") and data.strip():
            self.inline.append(data)

    def by_id(self, name):
        found = [(tag, attrs) for tag, attrs in self.elements if attrs.get("id") == name]
        assert len(found) == 1, name
        return found[0]


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A gateway with keys, and theirs by agent."""
    running = Gateway(tmp_path_factory.mktemp("docs") / "data")
    keys = {}
    for body in ({"agent": "root", "role": "admin"}, {"agent": "eve", "role": "reader"},
                 {"agent": "tim", "tools": ["notebook"]}):
        headers = {"Authorization": f"Bearer {keys['root']}"} if keys else {}
        keys[body["agent"]] = running.client.post("/v1/keys", json=body, headers=headers).json()["key"]
    yield running, keys
    assert running.stop() == 0


@pytest.fixture(scope="module")
def page(keyed):
    answer = keyed[0].client.get("/docs")
    assert answer.status_code == 200
    return Page(answer.text)


@pytest.fixture(scope="module")
def script(keyed):
    return keyed[0].client.get("/docs/docs.js").text


def test_static_pages_need_no_key(keyed):
    gateway, _ = keyed
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css"):
        answer = gateway.client.get(path)
        assert answer.status_code == 200
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
        assert "'unsafe-inline'" not in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert gateway.client.get("/v1/tools").status_code == 401, "but its data does"


def test_nothing_comes_from_elsewhere(page, script):
    for tag, attributes in page.elements:
        for name in ("src", "href", "action"):
            assert re.match(r"(?![/\w]*:)\w|data:,$", attributes.get(name, "docs")), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert page.inline == []
    assert not re.search(r"https?:|eval\(|innerHTML|insertAdjacentHTML|document\.write", script)


def test_the_script_finds_its_elements(page, script):
    used = set(re.findall(r"byId\('(\w+)'\)", script))
    used |= set(re.findall(r"'(\w+)'", re.search(r"const kept = \[(.*?)\]", script).group(1)))
    assert {"key", "space", "mode", "tools", "caller", "find"} <= used
    for name in used:
        page.by_id(name)


def test_every_box_has_a_label(page):
    named = {attributes.get("for") for tag, attributes in page.elements if tag == "label"}
    boxes = [attributes["id"] for tag, attributes in page.elements if tag in ("input", "select", "textarea")]
    assert len(boxes) == 5 and set(boxes) == named


def test_the_key_stays_in_the_tab(page, script):
    tag, attributes = page.by_id("key")
    assert tag == "input" and attributes["type"] == "password" and attributes["autocomplete"] == "off"
    assert "sessionStorage" in script
    assert not re.search(r"localStorage|cookie|indexedDB|location|history", script)


def test_the_page_sends_what_is_taken(keyed, script):
    """Every header it sets is one that a caller with a key may send, the agent's apart, which goes without a key only."""
    gateway, keys = keyed
    sent = re.findall(r"if \(([^)]*)\) all\['([\w-]+)'\]", script)
    assert {name for _, name in sent} == {"Authorization", "X-Notegate-Agent", "X-Notegate-Space", "X-Notegate-Mode"}
    assert ("agent && !key", "X-Notegate-Agent") in sent
    headers = {"Authorization": f"Bearer {keys['eve']}", "X-Notegate-Space": "shared", "X-Notegate-Mode": "ask"}
    assert gateway.client.get("/v1/tools", headers=headers).status_code == 200


def test_it_shows_what_the_key_may_do(keyed):
    gateway, keys = keyed

    def shown(agent, path):
        answer = gateway.client.get(path, headers={"Authorization": f"Bearer {keys[agent]}"})
        return answer.json()

    for agent in keys:
        tools = {tool["name"]: tool for tool in shown(agent, "/v1/tools")["tools"]}
        document = shown(agent, "/openapi.json")
        posts = {post["operationId"]: post for post in with_effect(document)}
        assert posts.keys() == tools.keys()
        tags = {tag["name"]: tag["description"] for tag in document["tags"]}
        for name, post in posts.items():
            effect, hints = post["x-notegate"], tools[name]["annotations"]
            assert hints["readOnlyHint"] == (effect["effect"] == "reads"), name
            assert hints["destructiveHint"] == (effect["destructive"] and effect["effect"] != "reads"), name
            assert post["description"] == tools[name]["description"]
            (plugin,) = post["tags"]
            assert plugin in tags[plugin]
            assert document["components"]["schemas"][f"{name}_arguments"]["type"] == "object"
    assert {tool["name"] for tool in shown("tim", "/v1/tools")["tools"]} == {"notebook"}


def with_effect(document):
    return [path["post"] for path in document["paths"].values() if "x-notegate" in path.get("post", {})]


def test_it_says_which_tools_run_code(start, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    write_notebook(root / "book.ipynb", [code("c", "1")])
    gateway = start(sets=[f"roots={root}"])
    assert gateway.call("attachNotebook", {"notebook": "book.ipynb"}).status_code == 200
    posts = with_effect(gateway.client.get("/openapi.json").json())
    run = {post["operationId"]: post["tags"] for post in posts if post["x-notegate"]["effect"] == "runs"}
    assert run == {"runNotebookCells": ["cells"], "restartKernel": ["cells"]}
    assert "runs: 'runs code'" in gateway.client.get("/docs/docs.js").text


@pytest.mark.parametrize("auth, hint", [
    ("auto", "Leave the key out: this gateway has none."), ("on", "The gateway's user makes a key with `notegate key add NAME`")])
def test_a_key_sent_to_a_gateway_without_keys(start, auth, hint):
    """The page shows the server's own sentences, which REST and MCP have alike."""
    wrong = {"Authorization": "Bearer ng_" + "a" * 12 + "_" + "b" * 43}
    gateway = start(sets=[f"auth={auth}"])
    refused = gateway.client.get("/openapi.json", headers=wrong)
    assert refused.status_code == 401 and "this gateway has no keys" in refused.json()["message"]
    assert refused.json()["hint"].startswith(hint)
    accept = {"Accept": "application/json, text/event-stream"}
    asked = gateway.client.post("/mcp", headers=wrong | accept, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert asked.status_code == 401 and hint in asked.text
    script = gateway.client.get("/docs/docs.js").text
    assert "sentence(body.hint)" in script and "Give a key above" not in script


def test_errors_have_what_the_page_shows(keyed):
    gateway, _ = keyed
    for key in ("", "ng_wrong"):
        refused = gateway.client.get("/v1/tools", headers={"Authorization": f"Bearer {key}"} if key else {})
        assert refused.status_code == 401
        assert refused.json()["message"] and refused.json()["hint"]
