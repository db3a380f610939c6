# SPDX-License-Identifier: MIT
"""Backups by kind: folders of notes, what is left out, and one document, note or file that comes back alone."""

import contextlib
import json
import subprocess
from urllib.parse import quote

import pytest

from cli_support import BINARY, Gateway, environment, notegate
from conftest import Gateway as Served
from keys_support import mcp

ENV = environment(NOTEGATE_PLUGINS="notebook,file_editor,opennotes,agent_notebook")


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    return tmp_path / "data"


@pytest.fixture(name="notes")
def fixture_notes(tmp_path):
    """A registered folder of notes."""
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "plan.md").write_text("# Plan\n")
    (folder / "deep" / "a b.md").write_text("# Deep\n")
    (folder / "deep" / "picture.png").write_bytes(b"\x89PNG\0")
    return folder


def run(*words, **more):
    return notegate(*words, env=ENV, **more)


def done(*words, **more):
    ended = run(*words, **more)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refused(*words, **more):
    ended = run(*words, **more)
    assert ended.returncode == 1, ended
    return ended.stderr


def tool(data, tool_name, /, *options, **args):
    """Its answer: JSON, or a text."""
    told = done("call", tool_name, json.dumps(args), "--data-dir", data, *options)
    return json.loads(told) if told.startswith("{") else told


def folder_of(notes, space="shared"):
    return ["--set", f"opennotes.notebooks={space}:{notes}"]


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def uri(kind, name, space="shared"):
    return f"notegate://{space}/{kind}/{quote(str(name), safe='')}"


# ---- what a backup holds ----


def test_counts_by_kind_and_folder(data, notes, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("a")
    options = ["--root", str(root), *folder_of(notes)]
    for number in range(2):
        tool(data, "notebook", *options, mode="create", name=f"n{number}", newStr="x")
        page = tool(data, "notebook_create", *options, collection="pages", title=f"p{number}", content="x", tags=["t"])
    tool(data, "notebook_delete", *options, collection="pages", notebook_id=page["notebook_id"])
    for running in (False, True):
        with Gateway(data, *options, "--set", "plugins=notebook,file_editor,opennotes,agent_notebook") if running \
                else contextlib.nullcontext():
            named = () if running else options  # a gateway that runs has its own
            told = done("backup", tmp_path / f"with{running}", "--data-dir", data, "--files", *named)
            by_json = json.loads(done("backup", tmp_path / f"json{running}", "--data-dir", data, "--files", "--json", *named))
            plain = done("backup", tmp_path / f"plain{running}", "--data-dir", data, *named)
            plain_json = json.loads(done("backup", tmp_path / f"pj{running}", "--data-dir", data, "--json", *named))
            streamed = run("backup", "-", "--data-dir", data, *named)
        kinds = by_json["by_kind"]
        assert (kinds["pages"], kinds["notebooks"], by_json["deleted"]) == (1, 2, 1)
        assert sum(kinds.values()) + by_json["deleted"] == by_json["documents"]
        assert "1 pages" in told and "1 deleted" in told, told
        assert f"files: 1 of {root}, 3 of the opennotes folder {notes}\n" in told
        assert by_json["by_folder"] == [{"path": str(root), "space": "shared", "files": 1},
                                        {"path": str(notes), "space": "shared", "plugin": "opennotes", "files": 3}]
        left = f"left out: the files of {root}, the opennotes folder {notes}; --files takes them along\n"
        assert left in plain and left in streamed.stderr and "left out" not in told
        assert plain_json["without"] == [{"path": str(root), "space": "shared"},
                                         {"path": str(notes), "space": "shared", "plugin": "opennotes"}]
    assert rows(tmp_path / "withTrue")[0]["format"] == 3
    assert rows(tmp_path / "plainTrue")[0]["format"] == 1, "older programs read it"


def test_nothing_is_left_out_of_a_plain_store(data, tmp_path):
    tool(data, "notebook", mode="create", name="n", newStr="x")
    assert "left out" not in done("backup", tmp_path / "copy", "--data-dir", data)
    assert "left out" not in done("backup", tmp_path / "files", "--data-dir", data, "--files")
    assert rows(tmp_path / "files")[0]["format"] == 2


def test_a_folder_in_a_root_is_the_roots(data, notes, tmp_path):
    """Each file comes once, and goes back with the root, also where the folder is not registered."""
    options = ["--root", str(tmp_path / "notes"), *folder_of(notes / "deep")]
    tool(data, "notebook", *options, mode="create", name="n", newStr="x")
    told = done("backup", tmp_path / "copy", "--data-dir", data, "--files", *options)
    assert f"files: 3 of {notes}\n" in told and rows(tmp_path / "copy")[0]["format"] == 2
    assert "3 files" in done("restore", tmp_path / "copy", "--data-dir", tmp_path / "again", "--root", notes)


# ---- folders of notes ----


def test_folders_of_notes_come_back(data, notes, tmp_path):
    tool(data, "notebook", *folder_of(notes, "team"), mode="create", name="n", newStr="x")
    copy, again = tmp_path / "copy", tmp_path / "again"
    done("backup", copy, "--data-dir", data, "--files", *folder_of(notes, "team"))
    kept = tmp_path / "kept"
    notes.rename(kept)
    # Not registered, registered in another space, missing: refused before anything is made.
    told = refused("restore", copy, "--data-dir", again)
    assert f"files of {notes} (space team), and no folder of the plugin opennotes is configured" in told
    assert "opennotes.notebooks" in told
    assert f"files of {notes} (space team)" in refused("restore", copy, "--data-dir", again, *folder_of(notes))
    told = refused("restore", copy, "--data-dir", again, *folder_of(notes, "team"))
    assert f"the folder {notes} cannot be opened: No such file or directory; make it first" in told
    assert not notes.exists()
    # To where it was, or to another folder of the space; nothing is replaced.
    other = tmp_path / "other"
    for place in (notes, other):
        place.mkdir()
        (place / "plan.md").write_text("# Mine\n")
        told = refused("restore", copy, "--data-dir", again, *folder_of(place, "team"))
        assert f"{place}/plan.md exists with other content" in told
        (place / "plan.md").unlink()
        assert not (place / "deep").exists()
    assert "3 files" in done("restore", copy, "--data-dir", again, *folder_of(other, "team"))
    assert subprocess.run(["diff", "-r", str(kept), str(other)], check=False).returncode == 0
    assert "# Plan" in json.dumps(tool(again, "opennotes_get", *folder_of(other, "team"), "--space", "team", path="plan.md"))


def test_a_folder_behind_a_link(data, notes, tmp_path):
    """It is registered by its link; its notes have their own paths."""
    link = tmp_path / "link"
    link.symlink_to(notes)
    tool(data, "notebook", *folder_of(link), mode="create", name="n", newStr="x")
    copy = tmp_path / "copy"
    done("backup", copy, "--data-dir", data, "--files", *folder_of(link))
    (notes / "plan.md").unlink()
    done("restore", copy, "--data-dir", data, "--only", uri("note", notes / "plan.md"), *folder_of(link))
    assert (notes / "plan.md").read_text() == "# Plan\n"
    (notes / "plan.md").unlink()
    done("restore", copy, "--data-dir", tmp_path / "again", *folder_of(notes))
    assert (notes / "plan.md").exists()


# ---- one of them ----


ENTRIES = {
    "pages": {"title": "A page", "content": "## One\n\ntext"},
    "code_snippets": {"title": "Code", "content": "print(1)", "language": "python"},
    "research_notes": {"title": "Found", "content": "it is so", "source_url": "https://example.org/"},
}


def restored_events(data):
    """The events of a backup that a restore made."""
    copy = data.parent / "events"
    done("backup", copy, "--data-dir", data, "--force")
    return [row for row in rows(copy) if row["kind"] == "event" and row["tool"] == "restore"]


def test_one_entry(data, tmp_path):
    """Into an empty store, into one that has others, and after a deletion."""
    ids = {}
    for kind, entry in ENTRIES.items():
        ids[kind] = tool(data, "notebook_create", collection=kind, tags=["t"], summary="short", **entry)["notebook_id"]
        tool(data, "notebook_create", collection=kind, title="Another", content="other", tags=["t"],
             **({"language": "c"} if kind == "code_snippets" else {}))
    tool(data, "notebook_update", collection="pages", notebook_id=ids["pages"], append="\nmore")
    copy = tmp_path / "copy"
    done("backup", copy, "--data-dir", data)
    before = {kind: tool(data, "notebook_read", collection=kind, notebook_id=ids[kind]) for kind in ENTRIES}
    for kind in ENTRIES:
        name = uri(kind, ids[kind])
        for where in (tmp_path / "fresh", data):
            if where == data:
                told = refused("restore", copy, "--data-dir", where, "--only", name)
                assert f"{name} exists (revision" in told and "a restore replaces nothing" in told and "--data-dir" in told
                tool(where, "notebook_delete", collection=kind, notebook_id=ids[kind])
            assert f"restored {name}\n" == done("restore", "--only", name, copy, "--data-dir", where)
            back = tool(where, "notebook_read", collection=kind, notebook_id=ids[kind])
            assert all(back[member] == before[kind][member] for member in ("title", "content", "summary")), back
            assert back["metadata"]["tags"] == ["t"] and back["metadata"]["created_by"] == before[kind]["metadata"]["created_by"]
            assert tool(where, "notebook_search", query=ENTRIES[kind]["title"], collection=kind)["total"] >= 1
    events = restored_events(tmp_path / "fresh")
    assert sorted(row["collection"] for row in events) == sorted(ENTRIES) and all(row["data"] for row in events)
    assert tool(tmp_path / "fresh", "notebook_list", collection="pages")["total"] == 1, "and no other one"
    assert done("verify", "--data-dir", tmp_path / "fresh") and done("verify", "--data-dir", data)


def test_one_notebook_and_an_earlier_revision(data, tmp_path):
    tool(data, "notebook", mode="create", name="to do/\u00e4", newStr="first")
    tool(data, "notebook", mode="write", name="to do/\u00e4", newStr="second")
    tool(data, "notebook", "--agent", "ada", mode="create", name="own", newStr="hers")
    copy = tmp_path / "copy"
    done("backup", copy, "--data-dir", data)
    name = uri("notebook", "to do/\u00e4", "~local")
    archive = copy.read_bytes()
    for number, (wanted, text) in enumerate(((name, "second"), (f"{name}?revision=1", "first"))):
        again = tmp_path / f"again{number}"
        piped = subprocess.run([str(BINARY), "restore", "-", "--only", wanted, "--data-dir", str(again), "--json"], input=archive,
                               capture_output=True, env=ENV, cwd="/", timeout=120, check=False)
        assert piped.returncode == 0 and json.loads(piped.stdout) == {"uri": wanted, "written": True}, piped
        assert text in done("call", "notebook", json.dumps({"mode": "read", "name": "to do/\u00e4"}), "--data-dir", again)
    done("restore", copy, "--only", uri("notebook", "own", "~ada"), "--data-dir", again)
    assert "hers" in done("call", "notebook", "mode=read", "name=own", "--agent", "ada", "--data-dir", again)
    for part in (archive[:len(archive) // 2], archive[:-1], b""):
        cut = subprocess.run([str(BINARY), "restore", "-", "--only", name, "--data-dir", str(tmp_path / "cut")], input=part,
                             capture_output=True, env=ENV, cwd="/", timeout=120, check=False)
        assert cut.returncode == 1 and b"nothing was restored from -: line" in cut.stderr, cut
    assert "to do" not in done("call", "notebook", "mode=list", "--data-dir", tmp_path / "cut")


def test_an_undone_notebook_alone(data, tmp_path):
    """The numbers that an undo wrote are of its store: in another one they name something else."""
    for text in ("one", "two"):
        tool(data, "notebook", mode="create", name="n", newStr=text)
    tool(data, "notebook", mode="undo", name="n")
    done("backup", tmp_path / "copy", "--data-dir", data)
    again = tmp_path / "again"
    for text in ("other", "another", "third"):
        tool(again, "notebook", mode="create", name="n", newStr=text)
    tool(again, "notebook", mode="delete", name="n")
    done("restore", tmp_path / "copy", "--only", uri("notebook", "n", "~local"), "--data-dir", again)
    assert done("call", "notebook", "mode=read", "name=n", "--data-dir", again).strip() == "one"
    assert "Undid the creation" in done("call", "notebook", "mode=undo", "name=n", "--data-dir", again)


def test_one_note_and_one_file(data, notes, tmp_path):
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("a")
    (root / "sub" / "b.txt").write_text("b")
    (root / "link").symlink_to("sub")
    options = ["--root", str(root), *folder_of(notes)]
    tool(data, "notebook", *options, mode="create", name="n", newStr="x")
    copy = tmp_path / "copy"
    done("backup", copy, "--data-dir", data, "--files", *options)
    for path, kind in ((notes / "deep" / "a b.md", "note"), (root / "sub" / "a.txt", "file")):
        content = path.read_bytes()
        only = ["restore", "--only", uri(kind, path), copy, "--data-dir", data, *options]
        assert done(*only) == f"already as in the backup: {path}\n"
        path.write_text("changed")
        told = refused(*only)
        assert f"{path} exists with other content" in told and "move it away" in told and path.read_text() == "changed"
        mode = path.parent.stat().st_mode
        subprocess.run(["rm", "-r", str(path.parent)], check=True)
        assert done(*only) == f"restored {path}\n"
        assert path.read_bytes() == content and path.parent.stat().st_mode == mode
        assert [other.name for other in path.parent.iterdir()] == [path.name], "nothing else"
    # Elsewhere: only the root of the file is needed.
    other = tmp_path / "other"
    other.mkdir()
    answer = json.loads(done("restore", "--only", uri("note", notes / "plan.md"), copy, "--data-dir", tmp_path / "again", "--json",
                             *folder_of(other)))
    assert answer["path"] == str(other / "plan.md") and answer["written"] and (other / "plan.md").read_text() == "# Plan\n"
    told = refused("restore", "--only", uri("note", notes / "plan.md"), copy, "--data-dir", tmp_path / "again")
    assert "no folder of the plugin opennotes is configured" in told
    # What the backup has not.
    only = ["--data-dir", data, *options]
    assert f"it has no {uri('file', root / 'none')}; to see what it has: grep" in refused(
        "restore", copy, "--only", uri("file", root / "none"), *only)
    assert "has not the content of this file: a link" in refused("restore", copy, "--only", uri("file", root / "link"), *only)
    plain = tmp_path / "plain"
    done("backup", plain, *only)
    assert "backup without --files" in refused("restore", plain, "--only", uri("file", root / "sub" / "a.txt"), *only)


def test_a_uri_that_a_gateway_lists(data, notes, tmp_path):
    """As a client of MCP has it, for each note and notebook."""
    served = Served(data, [f"opennotes.notebooks=shared:{notes}"])
    assert served.call("notebook", {"mode": "create", "name": "to do", "newStr": "text"}, {"X-Notegate-Space": "shared"}).status_code == 200
    listed = [entry["uri"] for entry in mcp(served, None, "resources/list").json()["result"]["resources"]]
    assert served.stop() == 0
    options = ["--data-dir", data, *folder_of(notes)]
    copy = tmp_path / "copy"
    done("backup", copy, "--files", *options)
    before = {path: path.read_text() for path in notes.rglob("*.md")}
    asked = [one for one in listed if "/note/" in one]
    assert len(asked) == len(before) == 2, listed
    for path in before:
        path.unlink()
    for one in asked:
        assert done("restore", "--only", one, copy, *options).startswith("restored ")
    assert {path: path.read_text() for path in notes.rglob("*.md")} == before
    notebook, = [one for one in listed if "/notebook/" in one and not one.endswith("/default")]
    again = tmp_path / "again"
    assert done("restore", "--only", notebook, copy, "--data-dir", again) == f"restored {notebook}\n"
    assert "text" in done("call", "notebook", json.dumps({"mode": "read", "name": "to do"}), "--space", "shared", "--data-dir", again)


def test_what_cannot_be_restored_alone(data, tmp_path):
    tool(data, "notebook", mode="create", name="project plan", newStr="x")
    tool(data, "notebook", mode="create", name="gone", newStr="last words")
    tool(data, "notebook", mode="clear", name="gone")
    page = tool(data, "notebook_create", collection="pages", title="t", content="c", tags=["t"])["notebook_id"]
    tool(data, "notebook_delete", collection="pages", notebook_id=page)
    copy = tmp_path / "copy"
    done("backup", copy, "--data-dir", data)

    def only(name):
        return refused("restore", copy, "--only", name, "--data-dir", data)

    plan = uri("notebook", "project plan", "~local")
    wrong = uri("notebook", "projekt plan", "~local")
    assert f"it has no {wrong}; did you mean {plan}?" in only(wrong)
    assert f"did you mean {plan}?" in only(uri("notebook", "project plan", "team"))
    assert "to see what it has" in only(uri("notebook", "something else", "~local"))
    told = only(uri("pages", page))
    assert "was deleted before the backup; its last content is ?revision=1" in told
    done("restore", copy, "--only", uri("pages", page) + "?revision=1", "--data-dir", data)
    assert tool(data, "notebook_read", collection="pages", notebook_id=page)["content"] == "c"
    assert "names no kind of document" in only(uri("song", "x")) and "pages" in only(uri("song", "x"))
    assert "cannot be restored alone" in only(uri("checkpoint", "x"))
    for odd in ("notes.md", "notegate://shared", "https://example.org/", plan + "?revision=0"):
        ended = run("restore", copy, "--only", odd, "--data-dir", data)
        assert ended.returncode == 2 and "is no URI of a resource" in ended.stderr, ended
    assert "cannot be read" in refused("restore", tmp_path / "missing", "--only", plan, "--data-dir", data)
    told = refused("restore", copy, "--only", plan, "--set", "documents=memory", "--data-dir", tmp_path / "memory")
    assert "would be lost at once" in told
    with Gateway(data) as gateway:
        told = only(plan)
        assert str(gateway.process.pid) in told and "exists" not in told
