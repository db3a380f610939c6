# SPDX-License-Identifier: MIT
"""No text that a tool answers with is longer than tools.max_answer, and each says how to go on: over REST and both MCP eras."""

import json
import re

import pytest
from conftest import Gateway, whole
from keys_support import mcp
from mcp_support import HANDSHAKE, MODERN, Session, call

LIMIT = 8192
WAIT = 120
FACES = ("rest", HANDSHAKE, MODERN)
SETS = (f"tools.max_answer={LIMIT}", "file_editor.max_file_size=1MiB", "agent_notebook.max_size=4MiB")
# Lines of one, two, three and four bytes a character, some with a tab.
LINES = [f"{i}\t{'aöє𝄞'[i % 4] * (i % 90)}" for i in range(1, 3001)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    top = tmp_path_factory.mktemp("fit")
    folder = top / "root"
    (folder / "notes").mkdir(parents=True)
    made = Gateway(top / "data", (*SETS, f"roots={folder}", f"opennotes.notebooks={folder / 'notes'}"))
    made.folder = folder
    yield made
    assert made.stop() == 0, "".join(made.errors)


class Face:
    """Calls over one face, whose texts are within the limit."""

    def __init__(self, gateway, name):
        self.gateway, self.name = gateway, name
        self.session = Session(gateway) if name == HANDSHAKE else None

    def result(self, tool, arguments):
        if self.name == "rest":
            answer = self.gateway.call(tool, arguments)
            body = answer.json()
            return (body["result"], body["result"]) if answer.status_code == 200 else (None, body)
        if self.name == HANDSHAKE:
            result = self.session.post(call(tool, arguments)).json()["result"]
        else:
            result = mcp(self.gateway, None, "tools/call", {"name": tool, "arguments": arguments}).json()["result"]
        if result.get("isError"):
            return None, result["_meta"]["notegate/error"]
        text = result["content"][0]["text"]
        return text, result.get("structuredContent", text)

    def __call__(self, tool, **arguments):
        text, result = self.result(tool, arguments)
        assert text is not None, result
        if not isinstance(result, str):
            text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, separators=(",", ":"))
            assert json.loads(text) == result
        assert len(text.encode()) <= LIMIT
        return result

    def fails(self, tool, **arguments):
        text, error = self.result(tool, arguments)
        assert text is None
        return error


@pytest.fixture(params=FACES)
def face(request, gateway):
    made = Face(gateway, request.param)
    yield made
    if made.session:
        made.session.close()


def parts(ask, member, total):
    """The lines of a text, part by part; ask(range) answers one, with numbers."""
    found, wanted = [], [1, -1]
    while wanted:
        *lines, note = ask(wanted).split("\n")
        told = re.fullmatch(rf"\[lines (\d+)-(\d+) of (\d+)(?:; {member} \[(\d+), (\d+)\] continues)?\]", note)
        if told is None:
            found += [*lines, note] if note else lines
            break
        first, last, of, after, end = (int(number or 0) for number in told.groups())
        assert (first, of) == (len(found) + 1, total) and last - first + 1 == len(lines)
        found += lines
        wanted = [after, end] if after else None
        assert wanted is None or (after == last + 1 and end <= total)
        if wanted and end == min(total, 2 * last - first + 1):
            wanted = [after, -1]
    return found


# ---- texts in lines ----


@pytest.mark.parametrize("bytes_max", ["within", "over"])
def test_view(face, gateway, bytes_max):
    """Also of a file that is over the editor's own limit."""
    more = [] if bytes_max == "within" else ["z" * 80] * 15000
    path = gateway.folder / f"view-{bytes_max}.txt"
    path.write_text("\n".join(LINES + more))
    total = len(LINES) + len(more)
    head = f"Here's the result of running `cat -n` on {path}:\n"

    def ask(wanted):
        text = face("fileEditor", command="view", path=str(path), view_range=wanted)
        assert text.startswith(head)
        return text.removeprefix(head)

    if more:
        error = face.fails("fileEditor", command="view", path=str(path))
        assert error["code"] == "TOO_LARGE" and "`view_range`" in error["hint"] and "`search`" in error["hint"]
        first = ask([1, -1])
        assert re.search(rf"\n\[lines 1-(\d+) of {total}; view_range \[\d+, \d+\] continues\]$", first)
        assert ask([total, -1]) == f"{total:6}  {'z' * 80}\n"
        return
    assert ask([1, -1]) == face("fileEditor", command="view", path=str(path)).removeprefix(head)
    shown = parts(ask, "view_range", total)
    assert shown == [f"{i:6}  {line}".replace("\t", " " * 8) for i, line in enumerate(LINES, 1)]


def test_view_of_long_lines(face, gateway):
    path = gateway.folder / "long.txt"
    path.write_text("ö" * LIMIT + "\nshort\n" + "x" * LIMIT * 3)
    text = face("fileEditor", command="view", path=str(path))
    told = re.search(r"\n     1  (ö+)\n\[line 1 of 3 is cut after (\d+) bytes; view_range \[2, 3\] continues\]$", text)
    assert len(told[1].encode()) == int(told[2]) > LIMIT // 2
    assert face("fileEditor", command="view", path=str(path), view_range=[2, 3]).endswith(
        "\n     2  short\n[lines 2-2 of 3; view_range [3, 3] continues]")
    assert re.search(r"x\n\[line 3 of 3 is cut after \d+ bytes\]$",
                     face("fileEditor", command="view", path=str(path), view_range=[3, -1]))


def test_notebook(face):
    name = f"fit-{face.name}"
    face("notebook", mode="create", name=name, newStr="\n".join(LINES))

    def ask(wanted):
        return face("notebook", mode="read", name=name, readRange=wanted)

    assert parts(ask, "readRange", len(LINES)) == [f"{i}: {line}" for i, line in enumerate(LINES, 1)]
    *lines, note = face("notebook", mode="read", name=name).split("\n")
    assert lines == LINES[:len(lines)]
    count = len(lines)
    assert note == f"[lines 1-{count} of {len(LINES)}; readRange [{count + 1}, {2 * count}] continues]"
    # Exactly the limit, and a byte more.
    face("notebook", mode="create", name=name, newStr="x" * LIMIT)
    assert face("notebook", mode="read", name=name) == "x" * LIMIT
    face("notebook", mode="create", name=name, newStr="ö" * LIMIT + "\nlast")
    told = re.fullmatch(r"(ö+)\n\[line 1 of 2 is cut after (\d+) bytes; readRange \[2, 2\] continues\]",
                        face("notebook", mode="read", name=name))
    assert len(told[1].encode()) == int(told[2]) > LIMIT // 2
    told = re.fullmatch(r"1: (ö+)\n\[line 1 of 2 is cut after (\d+) bytes; readRange \[2, 2\] continues\]",
                        face("notebook", mode="read", name=name, readRange=[1, 2]))
    assert len(told[1].encode()) == int(told[2]) > LIMIT // 2


@pytest.mark.parametrize("collection", ["pages", "code_snippets"])
def test_entry(face, collection):
    content = "# Top\n" + "\n".join(LINES)
    made = face("notebook_create", collection=collection, title=f"fit {face.name}", content=content, summary="s" * 900)
    found, line = "", 1
    while line:
        read = face("notebook_read", notebook_id=made["notebook_id"], start_line=line)
        assert read["lines"]["start"] == line and read["lines"]["total"] == len(LINES) + 1
        assert read["lines"]["count"] == read["content"].count("\n") + ("next_line" not in read)
        found, line = found + read["content"], read.get("next_line")
    assert found == content
    read = face("notebook_read", notebook_id=made["notebook_id"])
    assert content.startswith(read["content"]) and read["content"].endswith("\n")
    assert read["next_line"] == read["lines"]["count"] + 1 and not {"sections", "history"} & set(read)
    assert set(read["left_out"]) == {"history"} | ({"sections"} if collection == "pages" else set())
    face("notebook_delete", notebook_id=made["notebook_id"])


def test_entry_of_one_long_line(face):
    made = face("notebook_create", collection="pages", title=f"line {face.name}", content='"ö' * LIMIT + "\nlast")
    read = face("notebook_read", notebook_id=made["notebook_id"])
    assert read["lines"] == {"start": 1, "count": 1, "total": 2, "truncated": True} and read["next_line"] == 2
    assert len(read["content"]) > LIMIT // 4
    assert face("notebook_read", notebook_id=made["notebook_id"], start_line=2)["content"] == "last"


def test_entry_says_what_it_leaves_out(face):
    findings = ["f" * 50] * 150
    made = face("notebook_create", collection="research_notes", title=f"r {face.name}", content="text", key_findings=findings)
    read = face("notebook_read", notebook_id=made["notebook_id"])
    assert read["content"] == "text" and set(read["left_out"]) == {"key_findings", "history"}
    assert "next_line" not in read and read["lines"] == {"start": 1, "count": 1, "total": 1}


def test_entry_once_or_twice(face):
    """The text below each heading, and `code`, where there is room for the text twice."""
    made = face("notebook_create", collection="pages", title=f"twice {face.name}", content="# A\n\n" + "a" * 1000)
    assert face("notebook_read", notebook_id=made["notebook_id"])["sections"][0]["content"] == "a" * 1000
    face("notebook_update", notebook_id=made["notebook_id"], content="# A\n\n" + "a" * 5000)
    read = face("notebook_read", notebook_id=made["notebook_id"])
    assert read["sections"] == [{"heading": "A", "level": 1}] and len(read["content"]) == 5005 and "lines" not in read


# ---- lists ----


def test_lists_of_entries(face):
    word = "fit" + re.sub(r"\W", "", face.name)
    titles = [f"{word} {i} {'t' * 200}" for i in range(60)]
    for title in titles:
        face("notebook_create", collection="pages", title=title, content="c", summary='"' * 300, tags=[word])
    for tool, more in (("notebook_list", {"tags": [word]}), ("notebook_search", {"query": word, "tags": [word]})):
        seen, offset = [], 0
        while offset is not None:
            found = face(tool, limit=100, offset=offset, **more)
            assert found["total"] == 60 and found["offset"] == offset
            assert found["has_more"] == ("next_offset" in found)
            seen += [row["title"] for row in found["results"]]
            assert found["results"] and found.get("next_offset", 60) == len(seen)
            offset = found.get("next_offset")
        assert sorted(seen) == sorted(titles), tool


def test_an_entry_that_is_too_large_for_a_list(face):
    made = face("notebook_create", collection="pages", title=f"large {face.name}", content="c", summary="\x01" * 1900,
                tags=[f"{i}{'t' * 150}" for i in range(60)] + [f"large{face.name}"])
    found = face("notebook_list", limit=1)
    assert found["results"][0]["notebook_id"] == made["notebook_id"]
    assert re.search(r"\[\.\.\. \d+ bytes left out\]$", found["results"][0]["summary"])
    face("notebook_delete", notebook_id=made["notebook_id"])


def test_versions(face):
    made = face("notebook_create", collection="pages", title=f"v {face.name}", content="\n".join(LINES[:200]) + "\n")
    for i in range(80):
        face("notebook_update", notebook_id=made["notebook_id"], append=f"line {i} " + '"' * 60)
    seen, offset = [], 0
    while offset is not None:
        found = face("notebook_history", notebook_id=made["notebook_id"], limit=1000, offset=offset)
        assert found["history"] and found["total"] == 81
        seen += [row["version"] for row in found["history"]]
        offset = found.get("next_offset")
        assert found["has_more"] == (offset is not None)
    assert seen == list(range(81, 0, -1))
    diff, offset = "", 0
    while offset is not None:
        found = face("notebook_diff", notebook_id=made["notebook_id"], **{"from": 1}, offset=offset)
        diff, offset = diff + found["diff"], found.get("next_offset")
        assert found["truncated"] == (offset is not None)
    assert found["lines_added"] == 80 and diff.count('\n+line ') == 80


def test_memories(face):
    source = f"fit{face.name}"
    logged = [face("memory_log", content=f"{i} {'m' * 700}", source=source)["memory_id"] for i in range(30)]
    found = whole(lambda: face("memory_recall", query="", source=source, limit=1000), WAIT)
    assert found["has_more"] is True and 0 < found["count"] == len(found["results"]) < 30
    seen, offset = [], 0
    while offset is not None:
        found = whole(lambda: face("memory_timeline", limit=1000, offset=offset), WAIT)
        assert found["events"] and found["count"] == len(found["events"])
        seen += [row.get("id") for row in found["events"]]
        offset = found.get("next_offset")
        assert found.get("has_more", False) == (offset is not None)
    assert [memory for memory in seen if memory in logged] == logged[::-1]
    # One that does not fit alone.
    face("memory_log", content="\x01" * 9000, source=source, tags=["t" * 100] * 20)
    found = whole(lambda: face("memory_recall", query="", source=source, limit=1), WAIT)
    assert re.search(r"\[\.\.\. \d+ bytes left out\]$", found["results"][0]["content"]) and "has_more" not in found


def test_the_summary(face):
    face("memory_summary", text="short")
    assert face("memory_summary") == {"summary": "short", "status": "read", "space": "shared"}
    for told in (face("memory_summary", text="sö" * LIMIT), face("memory_summary")):
        assert told["truncated"] is True and re.search(r"\[\.\.\. \d+ bytes left out\]$", told["summary"])
    face("memory_summary", text="short")


def test_checkpoints(face):
    pages = [face("notebook_create", collection="pages", title=f"c {i}", content="c")["notebook_id"] for i in range(150)]
    first = face("checkpoint_snapshot", label="x" * 190)["checkpoint_id"]
    for i in range(30):
        face("checkpoint_snapshot", label="\u00f6" * 190)
        face("memory_log", content=f"{i} {'m' * 300}")
    whole(lambda: face("memory_recall", query="", limit=1), WAIT)
    seen, offset = [], 0
    while offset is not None:
        found = face("checkpoint_list", limit=1000, offset=offset)
        assert found["checkpoints"]
        seen += [row["checkpoint_id"] for row in found["checkpoints"]]
        offset = found.get("next_offset")
    assert len(seen) == len(set(seen)) == found["total"] and first in seen
    for page in pages:
        face("notebook_update", notebook_id=page, collection="pages", append="d")
    differs = face("checkpoint_diff", checkpoint_id=first)
    assert differs["memories"]["added_count"] >= 30 > len(differs["memories"]["added"]) > 0
    assert differs["notebooks"]["updated"] >= 150 > len(differs["notebooks"]["moved"]) > 0
    assert differs["notebooks"]["truncated"] is True
    restored = face("checkpoint_restore", checkpoint_id=first, notebooks=True)
    assert restored["notebooks"]["restored"] >= 150 > len(restored["notebooks"]["moved"]) > 0
    assert restored["notebooks"]["truncated"] is True


def test_notes(face, gateway):
    for i in range(100):
        (gateway.folder / "notes" / f"n{i:03}.md").write_text(f"# Title {i} {'t' * 200}\n\nfind me\n")
    for tool, more, name in (("opennotes_list", {}, "notes"), ("opennotes_search", {"query": "find me"}, "results")):
        seen, offset = [], 0
        while offset is not None:
            found = face(tool, limit=1000, offset=offset, **more)
            rows = next(value for key, value in found.items() if isinstance(value, list))
            assert rows, name
            seen += [row["path"] for row in rows]
            offset = found["pagination"].get("nextOffset")
        assert len(seen) == len(set(seen)) == 100, tool
    (gateway.folder / "notes" / "big.md").write_text("\n".join(LINES))
    text, line = "", 1
    while line:
        note = face("opennotes_get", path="big.md", startLine=line)["note"]
        text, line = text + note["content"], note.get("nextLine")
    assert text == "\n".join(LINES)
    (gateway.folder / "notes" / "big.md").unlink()


# ---- texts of other tools, and what is exempt ----


def test_the_core_cuts_other_texts(face, gateway):
    folder = gateway.folder / "many"
    folder.mkdir(exist_ok=True)
    for i in range(150):
        (folder / f"{i:03}-{'n' * 200}").touch()
    text = face("fileEditor", command="view", path=str(folder))
    *lines, note = text.split("\n")
    told = re.fullmatch(r"\[cut here, after (\d+) of (\d+) bytes \(tools\.max_answer\); ask for a part\]", note)
    assert len("\n".join(lines).encode()) == int(told[1]) < LIMIT < int(told[2])
    assert all(re.fullmatch(r"many/\d{3}-n{200}|.*", line) for line in lines) and lines[-1].endswith("n" * 200)


def test_search_in_files(face, gateway):
    (gateway.folder / "s.txt").write_text("\n".join(["needle " + "x" * 200] * 300))
    found = face("fileEditor", command="search", path=str(gateway.folder / "s.txt"), pattern="needle", max=1000)
    assert "300 matches in 1 files\nLeft out: " in found and "over the size of an answer" in found


def test_raw(gateway):
    text = "\n".join(LINES)
    assert gateway.call("notebook", {"mode": "create", "name": "raw", "newStr": text}).status_code == 200
    made = gateway.call("notebook_create", {"collection": "pages", "title": "raw", "content": text}).json()["result"]

    def raw(value, tool, arguments):
        return gateway.client.post(f"/v1/tools/{tool}", params={"raw": value}, json=arguments)

    read = {"mode": "read", "name": "raw"}
    assert raw("true", "notebook", read).json()["result"] == text
    entry = raw("true", "notebook_read", {"notebook_id": made["notebook_id"]}).json()["result"]
    assert entry["content"] == text and "lines" not in entry and "sections" in entry
    assert len(raw("false", "notebook", read).json()["result"].encode()) <= LIMIT
    refused = raw("yes", "notebook", read)
    assert refused.status_code == 400 and refused.json()["code"] == "INVALID_INPUT" and '"yes"' in refused.json()["message"]


def test_resources_are_whole(gateway):
    text = "\n".join(LINES)
    made = gateway.call("notebook", {"mode": "create", "name": "res", "newStr": text, "space": "shared"})
    assert made.status_code == 200
    uri = "notegate://shared/notebook/res"
    read = mcp(gateway, None, "resources/read", {"uri": uri}, Mcp_Name=uri).json()["result"]
    assert read["contents"][0]["text"] == text


def test_a_reload_changes_the_limit(tmp_path):
    config = tmp_path / "notegate.yaml"
    config.write_text("tools.max_answer: 4KiB\n")
    gateway = Gateway(tmp_path / "data", args=("--config", str(config)))
    gateway.call("notebook", {"mode": "create", "newStr": "x" * 5000})
    assert gateway.call("notebook", {"mode": "read"}).json()["result"].startswith("x" * 3000)
    assert gateway.call("notebook", {"mode": "read"}).json()["result"].endswith("[line 1 of 1 is cut after 3896 bytes]")
    config.write_text("tools.max_answer: 8KiB\n")
    gateway.reload()
    assert gateway.call("notebook", {"mode": "read"}).json()["result"] == "x" * 5000
    config.write_text("tools.max_answer: 4095\n")
    assert gateway.client.post("/v1/reload").status_code == 400
    assert gateway.stop() == 0
