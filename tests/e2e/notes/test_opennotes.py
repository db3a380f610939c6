# SPDX-License-Identifier: MIT
"""Notebooks of Markdown files that other programs change: the lists agree with the files."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import site
import sqlite3
import subprocess
import threading
import unicodedata

import pytest
from conftest import SOURCE, SUPPORT, Gateway, eventually
from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET", "") in ("asan", "tsan")


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def ask(gateway, tool, **args):
    answer = gateway.client.post(f"/v1/tools/opennotes_{tool}", json=args)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def everything(gateway, name="list", **args):
    """All pages, by following nextOffset."""
    offset, items = 0, []
    member = "notes" if name == "list" else "results"
    while True:
        page = ask(gateway, name, offset=offset, limit=1000, **args)
        items += page[member]
        pagination = page["pagination"]
        assert pagination["returned"] == len(page[member])
        if not pagination["hasMore"]:
            assert pagination["total"] == len(items)
            return items
        assert pagination["nextOffset"] > offset
        offset = pagination["nextOffset"]


def index_of(gateway):
    """The one index, read beside the gateway."""
    files = list((gateway.data_dir / "opennotes").glob("*.db"))
    assert len(files) == 1
    return sqlite3.connect(files[0])


class Model:
    """A folder of notes changed at random, and what should be told of it."""

    def __init__(self, folder, seed):
        self.folder, self.random, self.titles, self.count = folder, random.Random(seed), {}, 0

    def path(self):
        depth = self.random.randrange(3)
        return "/".join([self.random.choice("xyz") for _ in range(depth)]
                        + [f"n{self.random.randrange(12)}.md"])

    def write(self):
        path = self.path()
        self.count += 1
        title = f"title {self.count}" + "!" * self.random.randrange(3)
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: {title}\n---\nText {self.count}\n"
        if self.random.random() < 0.5:
            target.write_text(text)
        else:
            beside = target.parent / ".saving"
            beside.write_text(text)
            beside.rename(target)
        self.titles[path] = title

    def remove(self):
        if self.titles:
            path = self.random.choice(sorted(self.titles))
            (self.folder / path).unlink()
            del self.titles[path]

    def move(self):
        if self.titles:
            path, to = self.random.choice(sorted(self.titles)), self.path()
            (self.folder / to).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).rename(self.folder / to)
            self.titles[to] = self.titles.pop(path)

    def folder_change(self):
        name, other = self.random.sample("xyz", 2)
        if self.random.random() < 0.5:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            self.titles = {path: title for path, title in self.titles.items() if not path.startswith(f"{name}/")}
        elif (self.folder / name).is_dir() and not (self.folder / other).exists():
            (self.folder / name).rename(self.folder / other)
            self.titles = {re.sub(f"^{name}/", f"{other}/", path): title for path, title in self.titles.items()}

    def same_size(self):
        """Another text of the same length, and the same modification time."""
        if self.titles:
            path = self.random.choice(sorted(self.titles))
            target = self.folder / path
            found = target.stat()
            title = self.titles[path].swapcase()
            target.write_text(target.read_text().replace(self.titles[path], title, 1))
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
            self.titles[path] = title

    def step(self):
        self.random.choices([self.write, self.remove, self.move, self.folder_change, self.same_size],
                            [6, 2, 2, 1, 2])[0]()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_changes(start, notes, seed):
    """300 changes by another program; after each, the next call sees it."""
    gateway = start(sets=[f"opennotes.notebooks={notes}"])
    model = Model(notes, seed)
    for number in range(300):
        for _ in range(model.random.randrange(1, 4)):
            model.step()
        listed = {note["path"]: note.get("title") for note in everything(gateway)}
        assert listed == model.titles, f"after change {number}"


def test_changes_while_stopped(start, notes):
    """Changes between two runs are found by size, times and inode."""
    model = Model(notes, 3)
    gateway = start(sets=[f"opennotes.notebooks={notes}"])
    for _ in range(6):
        for _ in range(15):
            model.step()
        assert {note["path"]: note.get("title") for note in everything(gateway)} == model.titles
        gateway.stop()
        for _ in range(15):
            model.step()
        gateway = start(sets=[f"opennotes.notebooks={notes}"])
        assert {note["path"]: note.get("title") for note in everything(gateway)} == model.titles


def test_several_notebooks_and_many_callers(start, tmp_path):
    """Agents at once on several notebooks while a program writes: every call sees at least the state before the
    call."""
    folders = [tmp_path / f"nb{number}" for number in range(3)]
    for folder in folders:
        folder.mkdir()
    gateway = start(sets=["opennotes.notebooks=" + ",".join(map(str, folders))])
    written = [0] * len(folders)
    done, wrong = threading.Event(), []

    def write():
        for number in range(60):
            for at, folder in enumerate(folders):
                (folder / f"{number}.md").write_text(f"# {number}\n")
                written[at] = number + 1
        done.set()

    def read(at):
        while not done.is_set():
            before = written[at]
            total = ask(gateway, "list", notebook=str(folders[at]), limit=1)["pagination"]["total"]
            if total < before:
                wrong.append((at, before, total))

    threads = [threading.Thread(target=write)] + [
        threading.Thread(target=read, args=(number % len(folders),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for folder in folders:
        assert ask(gateway, "list", notebook=str(folder), limit=1)["pagination"]["total"] == 60


def test_spaces(start, tmp_path):
    """A notebook of a space is visible to callers that may see the space."""
    mine, ours = tmp_path / "mine", tmp_path / "ours"
    for folder in (mine, ours):
        folder.mkdir()
        (folder / f"{folder.name}.md").write_text("x")
    gateway = start(sets=[f"opennotes.notebooks={ours},team:{mine}"])
    team = {"X-Notegate-Space": "team"}

    def call(tool, args, headers=None):
        return gateway.client.post(f"/v1/tools/opennotes_{tool}", json=args, headers=headers).json()

    assert [item["name"] for item in call("notebooks", {})["result"]["notebooks"]] == ["ours"]
    hidden = call("list", {"notebook": str(mine)})
    assert hidden["code"] == "NOTEBOOK_NOT_FOUND" and str(mine) not in hidden.get("hint", "")
    found = call("notebooks", {}, team)["result"]
    assert found["current"]["name"] == "mine" and len(found["notebooks"]) == 2
    assert call("list", {}, team)["result"]["notes"][0]["path"] == "mine.md"


def test_prefix(start, notes):
    """The tools' prefix is configuration."""
    gateway = start(sets=[f"opennotes.notebooks={notes}", "opennotes.prefix=vault_"])
    names = [tool["name"] for tool in gateway.client.get("/v1/tools").json()["tools"]]
    assert "vault_list" in names and not [name for name in names if name.startswith("opennotes_")]
    assert gateway.client.post("/v1/tools/vault_list", json={}).json()["result"]["notes"] == []
    wrong = gateway.client.post("/v1/tools/vault_list", json={"limit": 0}).json()
    assert wrong["code"] == "INVALID_PARAMS"


def test_ten_thousand_notes(start, notes):
    """Building shows progress; a cancelled build continues where it stopped."""
    for number in range(10000):
        folder = notes / f"f{number % 100}"
        if number < 100:
            folder.mkdir()
        (folder / f"n{number}.md").write_text(f"---\ntitle: Note {number}\n---\n\nSome text, number {number}.\n")
    gateway = start(sets=[f"opennotes.notebooks={notes}"])
    gateway.client.timeout = 300
    assert ask(gateway, "list", limit=1)["pagination"]["total"] == 10000
    (notes / "f7" / "n7.md").write_text("---\ntitle: Changed\n---\n")
    assert ask(gateway, "get", path="f7/n7.md")["note"]["title"] == "Changed"
    assert ask(gateway, "list", pattern="f7/*.md", limit=1)["pagination"]["total"] == 100


def test_indexes_of_notebooks_that_are_gone(tmp_path):
    """They go after a month, at a start; those of notebooks that are there stay."""
    folders = [tmp_path / name for name in ("here", "gone", "just gone")]
    for folder in folders:
        folder.mkdir()
        (folder / "a.md").write_text("x")
    sets = [f"opennotes.notebooks={','.join(map(str, folders))}", "plugins=opennotes"]
    files = {}
    place = tmp_path / "data" / "opennotes"
    for folder in folders:  # each alone, as the indexes are made from the start
        before = set(place.glob("*.db"))
        gateway = Gateway(tmp_path / "data", sets=[f"opennotes.notebooks={folder}", "plugins=opennotes"])
        try:
            assert ask(gateway, "list", notebook=str(folder))["pagination"]["total"] == 1
            files[folder.name] = (set(place.glob("*.db")) - before).pop()
        finally:
            assert gateway.stop() == 0
    (place / "damaged.db").write_bytes(b"garbage")
    for name in ("gone", "just gone"):
        shutil.rmtree(tmp_path / name)
    month = 31 * 24 * 3600
    for file in (files["here"], files["gone"], place / "damaged.db"):
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - month))
    gateway = Gateway(tmp_path / "data", sets=sets)
    try:
        assert set(place.glob("*.db")) == {files["here"], files["just gone"]}
        assert ask(gateway, "list")["pagination"]["total"] == 1
    finally:
        assert gateway.stop() == 0


@pytest.fixture
def disk(tmp_path):
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "none", str(place)],
                             capture_output=True, text=True, timeout=60)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True, timeout=60)


def test_full_disk(disk, tmp_path, notes):
    """Without room for the index the call reports it; the notes are unchanged, and with room the calls succeed."""
    rng = random.Random(5)
    for number in range(60):
        (notes / f"n{number}.md").write_text(" ".join(f"{rng.getrandbits(4000):x}" for _ in range(90)))
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in notes.iterdir()}
    gateway = Gateway(disk / "data", sets=[f"opennotes.notebooks={notes}"])
    try:
        gateway.client.timeout = 300
        for _ in range(2):
            answer = gateway.client.post("/v1/tools/opennotes_list", json={})
            assert answer.status_code == 507, answer.text
            assert answer.json()["code"] == "STORAGE_FULL" and str(disk) in answer.json()["message"]
        assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in notes.iterdir()} == before
        subprocess.run(["mount", "-o", "remount,size=512m", str(disk)], check=True, timeout=60)
        assert ask(gateway, "list", limit=1)["pagination"]["total"] == 60
    finally:
        assert gateway.stop() == 0


def test_resources(start, tmp_path, notes):
    """Notes are resources: all listed once over pages, read by their URI, and subscribers are notified of writes of
    tools."""
    other = tmp_path / "other"
    other.mkdir()
    for number in range(450):
        (notes / f"n{number}.md").write_text(f"---\ntitle: Note {number}\n---\nbody {number}\n")
    (other / "o.md").write_text("other")
    (other / "bytes.md").write_bytes(b"\xff\xfe")
    gateway = start(sets=[f"opennotes.notebooks={notes},{other}", "plugins=opennotes"])
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    def rpc(method, **params):
        answer = gateway.client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return answer

    opened = rpc("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})
    headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
    listed, cursor = [], None
    while True:
        page = rpc("resources/list", **({"cursor": cursor} if cursor else {})).json()["result"]
        listed += page["resources"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    uris = [item["uri"] for item in listed]
    assert len(uris) == len(set(uris)) == 452
    named = {item["name"]: item for item in listed}
    found = rpc("resources/read", uri=named["Note 7"]["uri"]).json()["result"]["contents"][0]
    assert found["mimeType"] == "text/markdown" and found["text"].endswith("body 7\n")
    assert "blob" in rpc("resources/read", uri=named["bytes.md"]["uri"]).json()["result"]["contents"][0]
    gone = rpc("resources/read", uri=named["Note 7"]["uri"].replace("n7.md", "none.md")).json()
    assert "error" in gone


if not SANITIZED:  # a sanitizer's runtime must come before everything that is preloaded

    @pytest.mark.parametrize("watches", [0, 5])
    def test_no_watches_left(start, notes, tmp_path, monkeypatch, watches):
        """If folders cannot be watched all files are checked; the log reports it once."""
        shim = tmp_path / "failing_watch.so"
        source = SUPPORT / "failing_watch.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(shim))
        monkeypatch.setenv("FAILING_WATCH", str(watches))
        model = Model(notes, 4)
        gateway = start(sets=[f"opennotes.notebooks={notes}"])
        monkeypatch.delenv("LD_PRELOAD")
        for number in range(150):
            for _ in range(model.random.randrange(1, 4)):
                model.step()
            listed = {note["path"]: note.get("title") for note in everything(gateway)}
            assert listed == model.titles, f"after change {number}"
        eventually(lambda: gateway.logged("cannot be watched", str(notes)), what="a line of the log")
        assert len(gateway.logged("cannot be watched", str(notes))) == 1


# ---- notes from real use ----

def trees():
    """Folders of installed packages that hold Markdown, largest first."""
    roots = [pathlib.Path("/usr/share/doc"), pathlib.Path("/usr/lib/node_modules"), SOURCE / "build" / "node_modules",
             SOURCE / "tests" / "bench" / "node_modules"]
    roots += [pathlib.Path(path) for path in site.getsitepackages()]
    found = [root for root in roots if root.is_dir() and next(root.rglob("*.[mM][dD]"), None)]
    return found[-1:] if SANITIZED else found


def count_words(text):
    """Runs between white space that hold a letter or digit, as people count them."""
    return sum(1 for word in re.split(r"[\s\0]+", text) if any(c.isalnum() or unicodedata.category(c)[0] in "LMN" for c in word))


# The other parser takes a second for so much: the links of larger notes, which are logs of changes, are not counted.
LINKS_BYTES_MAX = 256 * 1024


def count_links(text):
    """Inline and reference links, as another parser has them."""
    return sum(1 for token in MARKDOWN.parse(text) for child in token.children or []
               if child.type == "link_open" and child.markup == "")


def real_notes(root):
    """Relative path to file: what a person would say the notes are."""
    found, seen = {}, set()

    def walk(folder, prefix, above):
        key = (folder.stat().st_dev, folder.stat().st_ino)
        if key in above:
            return
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            path = pathlib.Path(entry.path)
            if entry.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
                continue
            if entry.is_dir():
                walk(path, f"{prefix}{entry.name}/", above | {key})
            elif entry.is_file() and entry.name.lower().endswith(".md"):
                found[prefix + entry.name] = path

    walk(root, "", frozenset(seen))
    return found


@pytest.mark.long
@pytest.mark.parametrize("root", trees(), ids=str)
def test_installed_packages(start, root):
    """A complete tree from real use: notes, words and links agree with the counts of another program."""
    wanted = real_notes(root)
    gateway = start(sets=[f"opennotes.notebooks={root}"])
    gateway.client.timeout = 300
    listed = everything(gateway)
    paths = [note["path"] for note in listed]
    assert len(set(paths)) == len(paths)
    assert set(paths) == {unicodedata.normalize("NFC", path) for path in wanted}
    with contextlib.closing(index_of(gateway)) as index:
        counted = {path: (words, links) for path, words, links in index.execute(
            "SELECT path, words, (SELECT count(*) FROM links WHERE note = notes.id AND kind IN ('inline', 'reference')) FROM notes")}
        bodies = dict(index.execute("SELECT path, content FROM notes JOIN bodies ON note = notes.id"))
    words_differ, links_differ, links_total = [], [], 0
    for path, file in wanted.items():
        body = bodies[unicodedata.normalize("NFC", path)]
        words, links = counted[unicodedata.normalize("NFC", path)]
        text = file.read_bytes().decode("utf-8-sig", "replace")
        assert text.replace("\0", " ").endswith(body) or "\ufffd" in text, path
        if count_words(body) != words:
            words_differ.append((path, count_words(body), words))
        if len(body) <= LINKS_BYTES_MAX and (counted_links := count_links(body)) != links:
            links_differ.append((path, counted_links, links))
        links_total += links
    assert not words_differ, words_differ[:5]
    # Two parsers may read a handful of broken constructs in thousands of notes differently.
    assert len(links_differ) <= len(wanted) // 1000, (len(links_differ), links_total, links_differ[:20])
