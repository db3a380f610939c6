# SPDX-License-Identifier: MIT
"""Resources, prompts, completion and notifications, by the official SDK over both transports and both protocols."""

import asyncio
import concurrent.futures
import pathlib
import subprocess
import threading
import urllib.parse
import warnings

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import PromptReference, ResourceTemplateReference

from conftest import binary, environment

CALL_TIMEOUT = 120
MODERN = "2026-07-28"
SDK_REVISION = "notegate://{space}/notebook/{id}?revision={revision}"
PLAIN = "notegate://{space}/notebook/{id}"
MANY = 10_000
# Writers at a time while a gateway is filled: their commits are one.
FILLERS = 8


def uri(space, name, kind="notebook"):
    return f"notegate://{space}/{kind}/{urllib.parse.quote(name, safe='~')}"


@pytest.fixture(params=["http", "stdio"])
def target(request, gateway, tmp_path):
    if request.param == "http":
        return gateway.url + "/mcp"
    return StdioServerParameters(command=binary(), args=["mcp", "--data-dir", str(tmp_path / "data")],
                                 cwd=str(tmp_path), env=environment())


@pytest.fixture(params=["legacy", MODERN])
def mode(request):
    return request.param


def with_client(target, mode, use, **options):
    async def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            async with Client(target, mode=mode, read_timeout_seconds=CALL_TIMEOUT, cache=None, **options) as client:
                await use(client)

    asyncio.run(run())


async def write(client, name, text, space=None):
    answer = await client.call_tool("notebook", {"mode": "create", "name": name, "newStr": text})
    assert not answer.is_error, answer
    return answer


class Rpc:
    """POSTs to /mcp, of one agent."""

    def __init__(self, gateway, agent, space=None):
        headers = {"X-Notegate-Agent": agent, "Accept": "application/json, text/event-stream"}
        if space is not None:
            headers["X-Notegate-Space"] = space
        self.gateway = gateway
        self.client = httpx.Client(base_url=gateway.url, headers=headers, timeout=CALL_TIMEOUT, trust_env=False)

    def send(self, method, params=None):
        answer = self.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}})
        return answer.json()

    def result(self, method, params=None):
        answer = self.send(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method, params=None):
        answer = self.send(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def note(self, name, text):
        answer = self.result("tools/call", {"name": "notebook",
                                            "arguments": {"mode": "create", "name": name, "newStr": text}})
        assert "isError" not in answer, answer

    def listed(self):
        """All pages."""
        found, cursor = [], None
        while True:
            page = self.result("resources/list", {} if cursor is None else {"cursor": cursor})
            found += page["resources"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found


# ---- lists and reading ----


def test_a_notebook_is_listed_and_read(target, mode):
    async def use(client):
        name = f"Größe 1/{mode} ?#%"
        await write(client, name, "first")
        await write(client, name, "second\n")
        listed = {str(item.uri): item for item in (await client.list_resources()).resources}
        mine = listed[uri("~local", name)]
        assert mine.name == name
        assert mine.size == 7
        assert mine.mime_type == "text/plain"
        assert mine.annotations.last_modified.startswith("20")
        read = await client.read_resource(mine.uri)
        assert [(part.text, part.mime_type, str(part.uri)) for part in read.contents] == [
            ("second\n", "text/plain", str(mine.uri))]
        assert read.meta["notegate/revision"] == 2
        earlier = await client.read_resource(str(mine.uri) + "?revision=1")
        assert earlier.contents[0].text == "first"

    with_client(target, mode, use)


def test_templates_name_every_kind(target, mode):
    async def use(client):
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert PLAIN in templates
        assert SDK_REVISION in templates
        assert "notegate://{space}/file/{id}" in templates

    with_client(target, mode, use)


def test_what_is_not_there_is_an_error_with_its_uri(target, mode):
    async def use(client):
        # Over stdio the caller is the owner and sees all spaces: an absent one there.
        other = uri("~other", "default" if isinstance(target, str) else "none")
        wrong = [uri("~local", "nothing here"), other, uri("~local", "x", "nokind"),
                 "test://nothing", "notegate://~local/notebook/%zz", uri("~local", "default") + "?revision=77"]
        for text in wrong:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(text)
            assert caught.value.error.code == (-32602 if mode == MODERN else -32002), text
            assert caught.value.error.data["uri"] == text

    with_client(target, mode, use)


def test_two_agents_do_not_see_each_other(start):
    gateway = start()
    ann, bob = Rpc(gateway, "ann"), Rpc(gateway, "bob")
    ann.note("secret", "of ann")
    bob.note("plain", "of bob")
    shared = Rpc(gateway, "ann", "shared")
    shared.note("common", "of both")
    assert {item["uri"] for item in ann.listed() if "/notebook/" in item["uri"]} == {
        uri("~ann", "default"), uri("~ann", "secret"), uri("shared", "default"), uri("shared", "common")}
    assert {item["uri"] for item in bob.listed() if "/notebook/" in item["uri"]} == {
        uri("~bob", "default"), uri("~bob", "plain"), uri("shared", "default"), uri("shared", "common")}
    assert bob.result("resources/read", {"uri": uri("shared", "common")})["contents"][0]["text"] == "of both"
    there = bob.error("resources/read", {"uri": uri("~ann", "secret")})
    absent = bob.error("resources/read", {"uri": uri("~ann", "no such")})
    assert there["code"] == absent["code"] == -32002
    assert there["message"] == absent["message"], "it must not be told whether it exists"
    values = bob.result("completion/complete", {"ref": {"type": "ref/resource", "uri": PLAIN},
                                                "argument": {"name": "id", "value": "se"}})
    assert values["completion"]["values"] == []
    # A cursor of another's is none of one's own.
    page = ann.result("resources/list")
    assert "nextCursor" not in page


@pytest.mark.long
def test_pages_are_complete_while_writers_run(start):
    gateway = start()
    agent = Rpc(gateway, "many")

    def fill(numbers):
        with httpx.Client(base_url=gateway.url, headers={"X-Notegate-Agent": "many"}, timeout=CALL_TIMEOUT,
                          trust_env=False) as rest:
            for number in numbers:
                answer = rest.post("/v1/tools/notebook", json={"mode": "create", "name": f"n{number:05}"})
                assert answer.status_code == 200, answer.text

    with concurrent.futures.ThreadPoolExecutor(FILLERS) as pool:
        list(pool.map(fill, [range(first, MANY, FILLERS) for first in range(FILLERS)]))
    stop = threading.Event()
    failed = []

    def disturb(name):
        other = Rpc(gateway, "many")
        number = 0
        while not stop.is_set():
            try:
                other.note(f"{name}{number}", "new")
                other.note(f"n{number % MANY:05}", f"again {number}")
            except AssertionError as error:
                failed.append(error)
                return
            number += 1

    writers = [threading.Thread(target=disturb, args=(name,)) for name in ("a", "z")]
    for writer in writers:
        writer.start()
    try:
        found = [item["uri"] for item in agent.listed()]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not failed
    assert len(found) == len(set(found)), "no entry comes twice"
    assert {uri("~many", f"n{number:05}") for number in range(MANY)} <= set(found)


def test_bad_cursors_are_refused(gateway):
    agent = Rpc(gateway, "cursors")
    for cursor in ["", "x", "bm9wZQ", 7, "A" * 200_000]:
        assert agent.error("resources/list", {"cursor": cursor})["code"] == -32602
    for method in ["prompts/list", "resources/templates/list"]:
        assert agent.error(method, {"cursor": "x"})["code"] == -32602


# ---- files ----


def test_files_are_resources(start, tmp_path):
    gateway = start()
    root = pathlib.Path(gateway.data_dir) / "files"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a b.py").write_text("print(1)\n")
    (root / "pixel.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("hidden")
    for number in range(450):
        (root / f"f{number:03}.txt").write_text(str(number))
    agent = Rpc(gateway, "files")
    files = {item["uri"]: item for item in agent.listed() if "/file/" in item["uri"]}
    program = files[uri("shared", str(root / "src" / "a b.py"), "file")]
    assert program["mimeType"] == "text/x-python"
    assert program["size"] == 9
    assert len(files) == 452
    assert not [item for item in files if ".git" in item]
    read = agent.result("resources/read", {"uri": program["uri"]})["contents"]
    assert read == [{"uri": program["uri"], "mimeType": "text/x-python", "text": "print(1)\n"}]
    picture = agent.result("resources/read", {"uri": uri("shared", str(root / "pixel.png"), "file")})["contents"]
    assert picture[0]["mimeType"] == "image/png"
    assert picture[0]["blob"] == "iVBORw0KGgoA"
    assert agent.error("resources/read", {"uri": program["uri"] + "?revision=1"})["code"] == -32002
    for path in ["/etc/passwd", str(root / "missing.txt"), "relative"]:
        assert agent.error("resources/read", {"uri": uri("shared", path, "file")})["code"] == -32002
    values = agent.result("completion/complete", {"ref": {"type": "ref/resource", "uri": "notegate://{space}/file/{id}"},
                                                  "argument": {"name": "id", "value": str(root / "src")}})
    assert values["completion"]["values"] == [str(root / "src" / "a b.py")]


def test_files_of_roots_in_roots_belong_to_their_space(start, tmp_path):
    outer, inner, other = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "other"
    for folder in (outer, inner, other):
        folder.mkdir()
    for path in (outer / "a.txt", outer / "z.txt", inner / "b.txt", other / "c.txt"):
        path.write_text("x")
    (outer / "link.txt").symlink_to(other / "c.txt")
    gateway = start(args=["--root", str(outer), "--root", f"team:{inner}", "--root", str(other)])

    def files(agent):
        return [item["uri"] for item in agent.listed() if "/file/" in item["uri"]]

    plain = [uri("shared", str(path), "file") for path in (outer / "a.txt", outer / "z.txt", other / "c.txt")]
    team = uri("team", str(inner / "b.txt"), "file")
    assert files(Rpc(gateway, "ann")) == plain
    assert files(Rpc(gateway, "ann", "team")) == [*plain, team]
    assert Rpc(gateway, "ann").error("resources/read", {"uri": team})["code"] == -32002
    member = Rpc(gateway, "ann", "team")
    assert member.result("resources/read", {"uri": team})["contents"][0]["text"] == "x"
    assert member.error("resources/read", {"uri": uri("shared", str(inner / "b.txt"), "file")})["code"] == -32002


def test_a_key_for_one_tool_sees_its_plugin_only(start, tmp_path):
    gateway = start()
    made = subprocess.run([binary(), "key", "add", "narrow", "--tool", "notebook", "--role", "reader",
                           "--data-dir", str(gateway.data_dir)], capture_output=True, text=True, timeout=CALL_TIMEOUT,
                          env=environment(), check=True)
    (pathlib.Path(gateway.data_dir) / "files" / "x.txt").write_text("x")
    agent = Rpc(gateway, "narrow")
    del agent.client.headers["X-Notegate-Agent"]
    agent.client.headers["Authorization"] = "Bearer " + made.stdout.strip()
    assert {item["uri"] for item in agent.listed()} == {uri("~narrow", "default"), uri("shared", "default")}
    templates = agent.result("resources/templates/list")["resourceTemplates"]
    assert {item["uriTemplate"] for item in templates} == {PLAIN, SDK_REVISION}
    assert [prompt["name"] for prompt in agent.result("prompts/list")["prompts"]] == ["notebook_guide"]
    path = str(pathlib.Path(gateway.data_dir) / "files" / "x.txt")
    assert agent.error("resources/read", {"uri": uri("shared", path, "file")})["code"] == -32002
    assert agent.error("prompts/get", {"name": "file_editor_guide"})["code"] == -32602
    assert agent.error("resources/read", {"uri": uri("~local", "default")})["code"] == -32002


# ---- prompts and completion ----


def test_prompts_are_listed_and_given(target, mode):
    async def use(client):
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert {"notebook_guide", "file_editor_guide"} <= set(prompts)
        assert prompts["notebook_guide"].description
        assert [argument.name for argument in prompts["notebook_guide"].arguments] == ["name"]
        guide = await client.get_prompt("notebook_guide")
        assert guide.messages[0].role == "user"
        assert "notebook" in guide.messages[0].content.text
        await write(client, "begin", "the text so far")
        guide = await client.get_prompt("notebook_guide", {"name": "begin"})
        assert guide.messages[0].content.text.endswith("the text so far")
        assert "fileEditor" in (await client.get_prompt("file_editor_guide")).messages[0].content.text
        for name, arguments, part in [("no_such", None, "no_such"), ("notebook_guide", {"nam": "x"}, "nam"),
                                      ("notebook_guide", {"name": "not there"}, "not there")]:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name, arguments)
            assert caught.value.error.code == -32602
            assert part in caught.value.error.message

    with_client(target, mode, use)


@pytest.mark.parametrize("method, params, headers, code", [
    ("prompts/get", {"name": "notebook-mode-agent", "arguments": {"notebook": "/x"}}, {}, "PATH_OUTSIDE_ROOTS"),
    ("prompts/get", {"name": "notebook-mode-agent", "arguments": {}}, {}, None),
    ("prompts/get", {"name": "notebook-mode-agent", "arguments": {"notebook": "none.ipynb"}}, {}, "NOT_FOUND"),
    ("prompts/get", {"name": "notebook_guide", "arguments": {"name": "none"}}, {}, "NOT_FOUND"),
    ("prompts/get", {"name": "none"}, {}, "NOT_FOUND"),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}}, {}, None),
    ("resources/list", {"cursor": "none"}, {}, "INVALID_INPUT"),
], ids=["outside", "none chosen", "no file", "no notebook", "no prompt", "completion", "cursor"])
def test_wrong_values_are_the_requests_fault(gateway, method, params, headers, code):
    answer = gateway.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers=headers)
    error = answer.json()["error"]
    assert answer.status_code == 200 and error["code"] == -32602, error
    assert code is None or error["data"]["code"] == code, error
    assert ".. " not in error["message"]


def test_names_are_completed(target, mode):
    async def use(client):
        for number in range(105):
            await write(client, f"c{number:03}", "x")
        template = ResourceTemplateReference(uri=PLAIN)
        few = (await client.complete(template, {"name": "id", "value": "c00"}, {"space": "~local"})).completion
        assert few.values == [f"c{number:03}" for number in range(10)]
        assert few.total == 10
        assert few.has_more is False
        most = (await client.complete(template, {"name": "id", "value": "c"})).completion
        assert len(most.values) == 100
        assert most.has_more is True
        spaces = (await client.complete(template, {"name": "space", "value": ""})).completion
        assert spaces.values == ["~local", "shared"]
        none = (await client.complete(template, {"name": "id", "value": "c"}, {"space": "~other"})).completion
        assert none.values == []
        of_prompt = PromptReference(name="notebook_guide")
        assert (await client.complete(of_prompt, {"name": "name", "value": "c10"})).completion.values == [
            "c100", "c101", "c102", "c103", "c104"]
        for reference, argument in [(PromptReference(name="no"), "a"), (of_prompt, "no"),
                                    (ResourceTemplateReference(uri="no://{x}"), "x"), (template, "no")]:
            with pytest.raises(MCPError) as caught:
                await client.complete(reference, {"name": argument, "value": ""})
            assert caught.value.error.code == -32602

    with_client(target, mode, use)


# ---- changes ----


class Heard:
    """The notifications that came, and waiting for them."""

    def __init__(self):
        self.got = []
        self.changed = asyncio.Condition()

    async def __call__(self, message):
        method = getattr(message, "method", None)
        if method is not None:
            async with self.changed:
                self.got.append((method, getattr(message.params, "uri", None) and str(message.params.uri)))
                self.changed.notify_all()

    async def until(self, condition):
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: condition(self.got)), CALL_TIMEOUT)


def test_a_session_hears_of_what_it_subscribed_to(target):
    heard = Heard()

    async def use(client):
        name = uri("~local", "watched")
        updated = ("notifications/resources/updated", name)
        await client.subscribe_resource(name)
        await client.subscribe_resource(name)
        await write(client, "other", "x")
        await write(client, "watched", "1")
        await write(client, "watched", "2")
        # The change of the list is reported once, after all changes.
        await heard.until(lambda got: got.count(updated) >= 2 and ("notifications/resources/list_changed", None) in got)
        await client.unsubscribe_resource(name)
        await write(client, "watched", "3")
        last = uri("~local", "last")
        await client.subscribe_resource(last)
        await write(client, "last", "1")
        await heard.until(lambda got: ("notifications/resources/updated", last) in got)
        assert heard.got.count(updated) == 2, "once for each change"
        assert {item[1] for item in heard.got} == {None, name, last}
        for text in ["test://x", uri("~other", "x", "notebook" if isinstance(target, str) else "no"), name + "?revision=1"]:
            with pytest.raises(MCPError) as caught:
                await client.subscribe_resource(text)
            assert caught.value.error.code == -32002

    with_client(target, "legacy", use, message_handler=heard)


def test_listening_tells_what_was_asked_for(target):
    async def use(client):
        name = uri("~local", "heard")
        await write(client, "before", "x")
        unseen = [uri("~other", "x")] if isinstance(target, str) else []
        async with client.listen(resource_subscriptions=[name, uri("~local", "x", "no"), "no://x", *unseen]) as changes:
            assert changes.honored.resource_subscriptions == [name]
            assert not changes.honored.resources_list_changed
            await write(client, "unheard", "x")
            await write(client, "heard", "x")
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert type(event).__name__ == "ResourceUpdated"
            assert str(event.uri) == name
        async with client.listen(resources_list_changed=True, tools_list_changed=True) as changes:
            assert changes.honored.tools_list_changed
            await write(client, "heard", "again")
            await write(client, "brand new", "x")
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert type(event).__name__ == "ResourcesListChanged"

    with_client(target, MODERN, use)


def test_changes_of_files_and_of_tools_are_told(start):
    gateway = start(sets=["plugins=+conformance"])
    path = pathlib.Path(gateway.data_dir) / "files" / "watched.txt"
    name = uri("shared", str(path), "file")
    heard = Heard()

    async def older(client):
        await client.subscribe_resource(name)
        made = await client.call_tool("fileEditor", {"command": "create", "path": str(path), "file_text": "a"})
        assert not made.is_error, made
        await heard.until(lambda got: ("notifications/resources/updated", name) in got)
        await client.call_tool("test_trigger_tool_change", {})
        await heard.until(lambda got: ("notifications/tools/list_changed", None) in got)
        await client.call_tool("test_trigger_prompt_change", {})
        await heard.until(lambda got: ("notifications/prompts/list_changed", None) in got)
        assert heard.got.count(("notifications/resources/updated", name)) == 1

    with_client(gateway.url + "/mcp", "legacy", older, message_handler=heard)

    async def newer(client):
        async with client.listen(resource_subscriptions=[name], prompts_list_changed=True) as changes:
            await client.call_tool("test_trigger_tool_change", {})
            edit = {"command": "str_replace", "path": str(path), "old_str": "a", "new_str": "b"}
            assert not (await client.call_tool("fileEditor", edit)).is_error
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert (type(event).__name__, str(event.uri)) == ("ResourceUpdated", name)
            await client.call_tool("test_trigger_prompt_change", {})
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert type(event).__name__ == "PromptsListChanged"

    with_client(gateway.url + "/mcp", MODERN, newer)


def test_a_large_folder_is_listed_whole_while_it_changes(start, tmp_path):
    folder = tmp_path / "large"
    (folder / "f0500.d").mkdir(parents=True)
    stays = [folder / f"f{number:04}" for number in range(0, 2000, 2)] + [folder / "f0500.d" / "in"]
    comes = [folder / f"f{number:04}" for number in range(1, 2000, 2)]
    for path in [*stays, *comes[::2]]:
        path.write_text("")
    gateway = start(args=["--root", str(folder)])
    agent = Rpc(gateway, "ann")
    found, cursor = [], None
    for turn in range(1000):
        page = agent.result("resources/list", {} if cursor is None else {"cursor": cursor})
        found += [item["uri"] for item in page["resources"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
        for number, path in enumerate(comes):  # every page the other half, the last of the page among them
            if number % 2 == turn % 2:
                path.unlink(missing_ok=True)
            else:
                path.write_text("")
    assert turn >= 5
    wanted = {uri("shared", str(path), "file") for path in stays}
    assert sorted(name for name in found if name in wanted) == sorted(wanted)
    assert len(set(found)) == len(found)


def test_a_plugin_that_comes_in_is_told_once(start, tmp_path):
    config = tmp_path / "notegate.yaml"
    config.write_text("plugins: [notebook]\n")
    gateway = start(args=["--config", str(config)])

    def reload():
        config.write_text("plugins: [notebook, file_editor]\n")
        assert gateway.reload()["changes"][0]["holds"]

    async def use(client):
        async with client.listen(tools_list_changed=True, prompts_list_changed=True,
                                 resources_list_changed=True) as changes:
            await asyncio.to_thread(reload)
            told = [type(await asyncio.wait_for(anext(changes), CALL_TIMEOUT)).__name__ for _ in range(3)]
            assert sorted(told) == ["PromptsListChanged", "ResourcesListChanged", "ToolsListChanged"]
            assert "fileEditor" in [tool.name for tool in (await client.list_tools()).tools]
            await write(client, "new", "x")
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert type(event).__name__ == "ResourcesListChanged"

    with_client(gateway.url + "/mcp", MODERN, use)


def test_moves_are_told_of_both_names(start, tmp_path):
    folder = tmp_path / "root 100%"
    folder.mkdir()
    gateway = start(args=["--root", str(folder)])
    old, new = folder / "a b.txt", folder / "ü%20.txt"
    old.write_text("x")
    names = [uri("shared", str(old), "file"), uri("shared", str(new), "file")]

    async def use(client):
        async with client.listen(resource_subscriptions=names, resources_list_changed=True) as changes:
            assert changes.honored.resource_subscriptions == names
            move = {"command": "move", "path": str(old), "destination": str(new)}
            assert not (await client.call_tool("fileEditor", move)).is_error
            told = [await asyncio.wait_for(anext(changes), CALL_TIMEOUT) for _ in range(3)]
            assert sorted(str(event.uri) for event in told if type(event).__name__ == "ResourceUpdated") == sorted(names)
            assert sum(type(event).__name__ == "ResourcesListChanged" for event in told) == 1
            edit = {"command": "str_replace", "path": str(new), "old_str": "x", "new_str": "y"}
            assert not (await client.call_tool("fileEditor", edit)).is_error
            event = await asyncio.wait_for(anext(changes), CALL_TIMEOUT)
            assert (type(event).__name__, str(event.uri)) == ("ResourceUpdated", names[1])

    with_client(gateway.url + "/mcp", MODERN, use)
