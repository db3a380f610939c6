# SPDX-License-Identifier: MIT
"""A vault of odd notes: all of it is listed, found and paged once, over both interfaces, and reading leaves no trace in it."""

import ctypes
import json
import os
import struct

import pytest

TIMEOUT = 300
TAGS = 200
LINKS = 200
BUDGETS = [(2048, 2000), (51200, 2000), (51200, 10)]
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

BOMB = "---\n" + "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)) + "---\nafter the bomb\n"

# By the bytes of their names.
NOTES = {
    b"plain.md": "---\ntitle: Plain\ntags: [a, a/b]\nstatus: todo\n---\n# Plain\n\nneedle [[Other]] [b](sub/b.md)\n",
    b"Other.md": "needle and Plain, unlinked\n",
    b"sub/b.md": "[up](../plain.md#part) [gone](gone.md) needle\n",
    b"empty.md": "",
    b"bom.md": b"\xef\xbb\xbf---\r\ntitle: Bom\r\n---\r\nneedle\r\nsecond\r\n",
    b"cr.md": b"one\rtwo\rneedle",
    b"bytes.md": b"\xff\xfe needle \x80\xbf\xc3(\xed\xa0\x80\xf4\x90\x80\x80",
    b"nul.md": b"before\0needle\0after\n",
    b"unclosed.md": "---\ntitle: never closed\nneedle\n",
    b"broken.md": "---\ntitle: [\n---\nneedle\n",
    b"bomb.md": BOMB + "needle\n",
    b"deep.md": "---\na: " + "[" * 20000 + "\n---\nneedle\n",
    b"scalar.md": "---\njust a text\n---\nneedle\n",
    b"newline\nname.md": "needle\n",
    b"quote'\"`$(id).md": "needle\n",
    b"percent%20%s%n#x?y.md": "needle\n",
    b"[glob]*?{a,b}.md": "needle\n",
    b"back\\slash.md": "needle\n",
    b"bad\xff\xfename.md": "needle\n",
    b"bad\xff\xffname.md": "needle\n",
    "caf\u00e9.md".encode(): "needle composed\n",
    "cafe\u0301.md".encode(): "needle decomposed\n",
    " leading and trailing .md".encode(): "needle\n",
    "rtl\u202egnp.md".encode(): "needle\n",
    b"UPPER.MD": "needle\n",
    b"-rf.md": "needle\n",
    b"~.md": "needle\n",
    b"..md.md": "hidden: needle\n",
    b"x" * 252 + b".md": "needle\n",
    b"/".join([b"d"] * 60) + b"/deep.md": "needle\n",
    b"line.md": "needle " + "\u00e4\"\\\x01" * 12000,
    b"lines.md": "needle\n" * 4000,
    b"title.md": "---\ntitle: " + "long title \u00e9 " * 4000 + "\n---\nneedle\n",
    b"tags.md": "---\ntags: [" + ", ".join(f"tag{n}/sub{n % 7}" for n in range(TAGS)) + "]\n---\nneedle\n",
    b"links.md": "needle\n" + "".join(f"[l{n}](gone-{n}.md) [[missing {n}]]\n" for n in range(LINKS)),
    b"headings.md": "needle\n" + "".join(f"## h{n}\n" for n in range(500)),
    b"nested.md": "> " * 5000 + "needle\n" + "- " * 3000 + "x\n" + "[" * 30000 + "\n" + "*" * 30000 + "\n",
    b"folder.md/inside.md": "needle\n",
}
HIDDEN = {b"..md.md", b".hidden.md", b".git/x.md"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    root = os.fsencode(tmp_path_factory.mktemp("odd") / "vault")
    outside = os.path.join(os.path.dirname(root), b"outside")
    os.makedirs(outside)
    write(os.path.join(outside, b"secret.md"), "secret needle\n")
    for name, text in {**NOTES, b".hidden.md": "needle", b".git/x.md": "needle"}.items():
        write(os.path.join(root, name), text)
    os.symlink(b"..", os.path.join(root, b"sub", b"up"))
    os.symlink(b"loop", os.path.join(root, b"loop"))
    os.symlink(b"loop.md", os.path.join(root, b"loop.md"))
    os.symlink(os.path.join(outside, b"secret.md"), os.path.join(root, b"out.md"))
    os.symlink(outside, os.path.join(root, b"out"))
    os.symlink(b"/proc/self/root", os.path.join(root, b"proc"))
    os.mkfifo(os.path.join(root, b"pipe.md"))
    # Access times that any reading would move on, where the file system keeps them.
    for folder, _, names in os.walk(root):
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            if not os.path.islink(path):
                os.utime(path, ns=(10**18, 10**18 + 10**9))
    return root


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


class Watch:
    """Events in a tree, by inotify: all except opening and reading."""

    # modify attrib close_write moved_from moved_to create delete delete_self move_self
    MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800

    def __init__(self, root):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder, _, _ in os.walk(root):
            assert self.libc.inotify_add_watch(self.fd, folder, self.MASK) >= 0

    def events(self):
        try:
            return [struct.unpack_from("iIII", os.read(self.fd, 65536))]
        except BlockingIOError:
            return []


def state(root):
    found = {}
    for folder, folders, names in os.walk(root):
        for path in [folder] + [os.path.join(folder, name) for name in names + folders]:
            one = os.lstat(path)
            times = () if os.path.islink(path) else (one.st_atime_ns,)
            found[path] = (one.st_ino, one.st_size, one.st_mode, one.st_mtime_ns, one.st_ctime_ns, *times)
    return found


class Rest:
    def __init__(self, gateway):
        self.gateway = gateway
        gateway.client.timeout = TIMEOUT

    def __call__(self, tool, **arguments):
        answer = self.gateway.call(f"opennotes_{tool}", arguments)
        assert answer.status_code == 200, answer.text[:2000]
        result = answer.json()["result"]
        return result, json.dumps(result, ensure_ascii=False, separators=(",", ":"))


class Mcp(Rest):
    def __call__(self, tool, **arguments):
        answer = self.gateway.client.post("/mcp", headers=MCP, json={
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": f"opennotes_{tool}", "arguments": arguments}})
        result = answer.json()["result"]
        assert not result.get("isError"), str(result)[:2000]
        return result["structuredContent"], result["content"][0]["text"]


def fits(text, budget):
    size, lines = budget
    assert len(text.encode()) <= size * 3 // 4, len(text.encode())
    assert json.dumps(json.loads(text)).count("\\n") <= lines * 3 // 4


def pages(ask, budget, tool, member, limit=1000, **arguments):
    """Every item, by following nextOffset; each page in its budget."""
    offset, items, total = 0, [], None
    while True:
        result, text = ask(tool, offset=offset, limit=limit, **arguments)
        fits(text, budget)
        pagination = result["pagination"]
        found = [(name, item) for name in member for item in result.get(name, [])]
        assert pagination["returned"] == len(found) <= limit
        assert pagination["page"] == offset // limit + 1 and pagination["pageSize"] == limit
        assert total in (None, pagination["total"])
        total = pagination["total"]
        items += found
        assert pagination["hasMore"] == ("nextOffset" in pagination)
        if not pagination["hasMore"]:
            assert len(items) == total
            return items
        assert found and pagination["nextOffset"] == offset + len(found)
        offset = pagination["nextOffset"]


def text_of(ask, budget, path, **arguments):
    """The whole content, by following nextLine and nextByte."""
    parts, more = [], {}
    while True:
        result, text = ask("get", path=path, **more, **arguments)
        fits(text, budget)
        note = result["note"]
        parts.append(note["content"])
        if "nextLine" not in note:
            return "".join(parts)
        assert note["truncated"]
        following = {"startLine": note["nextLine"], **({"startByte": note["nextByte"]} if "nextByte" in note else {})}
        assert following != more
        more = following


def expected(name):
    """The content of a note as it should come out: valid UTF-8, without front matter."""
    text = NOTES[name]
    return (text if isinstance(text, bytes) else text.encode()).decode("utf-8", "replace")


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("transport", [Rest, Mcp])
def test_everything_once_and_no_trace(start, vault, transport, budget):
    before = state(vault)
    watch = Watch(vault)
    gateway = start(sets=[f"opennotes.notebooks={os.fsdecode(vault)}", "plugins=opennotes",
                          f"opennotes.max_bytes={budget[0]}", f"opennotes.max_lines={budget[1]}"])
    ask = transport(gateway)
    notes = [item for _, item in pages(ask, budget, "list", ["notes"], sortBy="path")]
    paths = [note["path"] for note in notes]
    assert len(paths) == len(set(paths)) == len(set(NOTES) - HIDDEN) and paths == sorted(paths, key=str.encode)
    for by in ("modified", "created", "title"):
        for order in ("asc", "desc"):
            assert sorted(item["path"] for _, item in pages(ask, budget, "list", ["notes"], 7, sortBy=by, sortOrder=order)) == paths
    assert len(pages(ask, budget, "list", ["notes"], pattern="**/d/*.md")) == 1
    found = {item["path"] for _, item in pages(ask, budget, "search", ["results"], 3, query="NEEDLE")}
    assert found == set(paths) - {"empty.md"}
    fuzzy = pages(ask, budget, "search", ["results"], 5, query="nedle", fuzzy=True)
    assert {item["path"] for _, item in fuzzy} >= found - {"cr.md"} and len({item["path"] for _, item in fuzzy}) == len(fuzzy)
    todo = pages(ask, budget, "search", ["results"], filters={"and": ["data.status=todo"]})
    assert [item["path"] for _, item in todo] == ["plain.md"]
    rows = pages(ask, budget, "search", ["results"], sql="SELECT file_path, content FROM read_markdown('**/*.md') ORDER BY 1")
    assert set(paths) - {item.get("file_path") for _, item in rows} == set()
    tags = [item["tag"] for _, item in pages(ask, budget, "tags", ["tags"])]
    assert len(tags) == len(set(tags)) == 2 + TAGS * 2
    for view in ("today", "recent", "kanban", "untagged", "orphans", "broken-links"):
        result, text = ask("views", view=view, limit=1000)
        fits(text, budget)
    broken = pages(ask, budget, "views", ["results"], view="broken-links")
    assert len(broken) == LINKS * 2 + 1
    everything = pages(ask, budget, "links", ["incoming", "outgoing", "unlinked"], path="links.md", kind="all")
    assert len([1 for name, _ in everything if name == "outgoing"]) == LINKS * 2
    of_plain = pages(ask, budget, "links", ["incoming", "outgoing", "unlinked"], 1, path="plain.md")
    assert [name for name, _ in of_plain] == ["incoming", "outgoing", "outgoing", "unlinked"]
    broken_fronts = {note["path"] for note in notes if "frontmatterError" in note}
    assert {"broken.md", "bomb.md", "deep.md"} <= broken_fronts
    ask("notebooks")
    ask("views")
    large = {"line.md", "lines.md", "title.md"} if budget[0] < 4000 or budget[1] < 2000 else set()
    assert {ask("get", path=path)[0]["note"]["content"] for path in ("caf\u00e9.md", "caf\u00e9~1.md")} == {
        "needle composed\n", "needle decomposed\n"}
    for path in paths:
        if path not in large:
            content = text_of(ask, budget, path)
            raw = text_of(ask, budget, path, raw=True)
            if path.encode() in NOTES and path not in broken_fronts and not path.startswith("caf"):
                assert raw == expected(path.encode()), path
                assert raw.endswith(content)
    assert state(vault) == before
    assert watch.events() == []
