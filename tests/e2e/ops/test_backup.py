# SPDX-License-Identifier: MIT
"""Backups: as a stream to stdout, from a running gateway without a copy on its disk, with the files of the roots, and back."""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess

import pytest

from cli_support import BINARY, Gateway, environment, notegate

MEGABYTE = 1024 * 1024
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
# Read of an archive that goes on.
PIECE = 64 * 1024


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    return tmp_path / "data"


def call(data, *words):
    done = notegate("call", "notebook", *words, "--data-dir", data)
    assert done.returncode == 0, done.stderr
    return done.stdout


def streamed(data, *words):
    """`backup -`: its output as bytes, and its messages."""
    done = subprocess.run([str(BINARY), "backup", "-", "--data-dir", str(data), *words], capture_output=True, env=environment(), cwd="/",
                          timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def rows(archive):
    return [json.loads(line) for line in archive.decode().splitlines()]


# ---- as a stream ----


def test_to_stdout(data, tmp_path):
    call(data, "mode=create", "name=precious", "newStr=x")
    for running in (False, True):
        with Gateway(data) if running else contextlib.nullcontext():
            code, archive, told = streamed(data)
            assert code == 0, told
            assert re.fullmatch(rf"-: 1 documents, 1 revisions, 1 events, {len(archive)} bytes, of {data}\ndocuments: 1 notebooks\n", told), told
            code, again, told = streamed(data, "--json")
            assert code == 0 and json.loads(told)["documents"] == 1 and json.loads(told)["data_dir"] == str(data)
        assert rows(archive)[0]["format"] == 1, "without files the form is the one that older programs read"
        assert [row["kind"] for row in rows(again)] == [row["kind"] for row in rows(archive)]
        copy = tmp_path / f"copy{running}"
        copy.write_bytes(archive)
        fresh = tmp_path / f"fresh{running}"
        assert notegate("restore", copy, "--data-dir", fresh).returncode == 0
        assert "precious" in call(fresh, "mode=list")
    assert not (tmp_path / "-").exists() and not os.path.exists("/-")


def restored(archive, data, **more):
    """`restore -` from a pipe."""
    return subprocess.run([str(BINARY), "restore", "-", "--data-dir", str(data)], input=archive, capture_output=True,
                          env=environment(**more), cwd="/", timeout=600, check=False)


def test_from_stdin(data, tmp_path):
    call(data, "mode=create", "name=precious", "newStr=x")
    code, archive, told = streamed(data)
    assert code == 0, told
    room = tmp_path / "room"
    room.mkdir()
    assert restored(archive, tmp_path / "piped", TMPDIR=str(room)).returncode == 0
    assert "precious" in call(tmp_path / "piped", "mode=list")
    assert list(room.iterdir()) == []
    for damaged in (b"", archive[:-20], archive[:-20] + b"x" * 20):
        done = restored(damaged, tmp_path / "damaged")
        assert done.returncode == 1 and b"nothing was restored from -" in done.stderr, done
    done = restored(archive, tmp_path / "nowhere", TMPDIR=str(tmp_path / "missing"))
    assert done.returncode == 1 and b"TMPDIR" in done.stderr and str(tmp_path / "missing").encode() in done.stderr, done
    assert not (tmp_path / "nowhere").exists()


def test_a_terminal_gets_no_archive(data):
    call(data, "mode=create", "name=precious", "newStr=x")
    ours, theirs = os.openpty()
    try:
        done = subprocess.run([str(BINARY), "backup", "-", "--data-dir", str(data)], stdout=theirs, stderr=subprocess.PIPE, text=True,
                              env=environment(), cwd="/", timeout=120, check=False)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 1 and "is a terminal" in done.stderr


def test_what_stdout_does_not_take_is_a_failure(data):
    call(data, "mode=create", "name=precious", "newStr=x")
    for running in (False, True):
        with Gateway(data) if running else contextlib.nullcontext(), open("/dev/full", "wb") as full:
            done = subprocess.run([str(BINARY), "backup", "-", "--data-dir", str(data)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=environment(), cwd="/", timeout=120, check=False)
            assert done.returncode == 1 and "the standard output cannot be written: No space left" in done.stderr, done


def large(data, notebooks):
    """A store, and an archive, of a megabyte for each."""
    for number in range(notebooks):
        call(data, "mode=create", f"name=n{number}", "newStr=" + os.urandom(50000).hex())
        for _ in range(9):
            call(data, "mode=write", f"name=n{number}", "newStr=" + os.urandom(50000).hex())


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status", encoding="utf-8").read()).group(1)) * 1024


@pytest.mark.long
def test_a_slow_reader_holds_up_nobody(data):
    """Data that it does not read is neither on the disk nor in memory; others keep writing; it gets one state."""
    large(data, 20)
    gateway = Gateway(data)
    with gateway:
        before = resident(gateway.process.pid)
        with subprocess.Popen([str(BINARY), "backup", "-", "--data-dir", str(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(), cwd="/") as slow:
            first = slow.stdout.read(PIECE)
            assert first.startswith(b'{"kind":"notegate backup"')
            for number in range(20):
                call(data, "mode=create", f"name=late{number}", "newStr=x")
            assert "late19" in call(data, "mode=list")
            fds = f"/proc/{gateway.process.pid}/fd"
            open_files = [os.readlink(f"{fds}/{name}") for name in os.listdir(fds) if os.path.islink(f"{fds}/{name}")]
            assert not [name for name in open_files if "(deleted)" in name and str(data) in name], open_files
            if not SANITIZED:  # whose own memory grows
                assert resident(gateway.process.pid) - before < 16 * MEGABYTE
            archive = first + slow.stdout.read()
            assert len(archive) > 18 * MEGABYTE
            assert slow.wait(120) == 0, slow.stderr.read()
        ids = {row["id"] for row in rows(archive) if row["kind"] == "revision" and "id" in row}
        assert {f"n{number}" for number in range(20)} <= ids and not any(name.startswith("late") for name in ids)
        assert gateway.stop()[0] == 0


def test_a_reader_that_leaves_and_a_gateway_that_dies(data, tmp_path):
    large(data, 2)
    with Gateway(data) as gateway:
        for _ in range(3):
            with subprocess.Popen([str(BINARY), "backup", "-", "--data-dir", str(data)], stdout=subprocess.PIPE, env=environment(),
                                  stderr=subprocess.DEVNULL, cwd="/") as gone:
                gone.stdout.read(PIECE)
                gone.kill()
        code, archive, told = streamed(data)
        assert code == 0 and rows(archive)[-1]["kind"] == "end", told
        with subprocess.Popen([str(BINARY), "backup", "-", "--data-dir", str(data)], stdout=subprocess.PIPE, env=environment(),
                              stderr=subprocess.PIPE, cwd="/") as cut:
            cut.stdout.read(PIECE)
            with subprocess.Popen([str(BINARY), "backup", str(tmp_path / "copy"), "--data-dir", str(data)], env=environment(),
                                  stderr=subprocess.DEVNULL, cwd="/") as file:
                gateway.process.send_signal(signal.SIGKILL)
                whole = file.wait(120) == 0
            cut.stdout.read()
            assert cut.wait(120) == 1, "half an archive is none"
        assert (tmp_path / "copy").exists() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["data"] + (["copy"] if whole else []))


def test_with_a_full_disk(tmp_path):
    """Just then a backup is wanted: nothing of it goes to the disk of the data."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "none", str(place)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        call(place / "data", "mode=create", "name=precious", "newStr=x")
        with Gateway(place / "data"):
            filler = os.open(place / "filler", os.O_WRONLY | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):
                while os.write(filler, bytes(4096)) > 0:
                    pass
            os.close(filler)
            done = notegate("backup", tmp_path / "copy", "--data-dir", place / "data", "--files")
            assert done.returncode == 0, done.stderr
        assert '"id":"precious"' in (tmp_path / "copy").read_text()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


# ---- with files ----


def tree(root):
    """Everything below: kind, mode and content; times of files."""
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        mode = stat.S_IMODE(info.st_mode)
        if path.is_symlink():
            found[os.fsencode(path.relative_to(root))] = "link"
        elif path.is_dir():
            found[os.fsencode(path.relative_to(root))] = ("folder", mode)
        elif path.is_file():
            found[os.fsencode(path.relative_to(root))] = ("file", mode, path.read_bytes(), info.st_mtime_ns // 1000000)
    return found


def make_files(root):
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "text.md").write_text("h\u00e9llo\n")
    (root / "deep" / "nothing").touch(mode=0o640)
    (root / "deep" / "er" / "run").write_bytes(os.urandom(700001))
    (root / "deep" / "er" / "run").chmod(0o755)
    (root / "long").write_text("\u00e9\U0001f600" * 150000)
    (root / os.fsdecode(b"not \xff utf-8")).write_bytes(b"\0\xff")
    (root / 'line\nfeed"').write_text("x")
    os.utime(root / "text.md", (1000, 86400))


def test_files_go_and_come_back(data, tmp_path):
    team, shared = tmp_path / "team", tmp_path / "shared"
    shared.mkdir(mode=0o700)
    make_files(shared)
    subprocess.run(["cp", "-a", shared, team], check=True)
    (team / "link").symlink_to("text.md")
    os.mkfifo(team / "pipe")
    (team / ".notegate-0123.tmp").write_text("of a save")
    roots = ["--root", str(shared), "--root", f"team:{team}"]
    done = notegate("call", "notebook", "mode=create", "name=precious", "newStr=x", "--data-dir", data, *roots)
    assert done.returncode == 0, done.stderr
    expected = tree(shared)
    for running in (False, True):
        with Gateway(data, *roots) if running else contextlib.nullcontext():
            code, archive, told = streamed(data, "--files", *(() if running else roots))
        assert code == 0 and "12 files" in told and "2 links, devices or unreadable files" in told, told
        left = {(row["path"], row["why"]) for row in rows(archive) if row["kind"] == "left_out"}
        assert left == {("link", "a link"), ("pipe", "neither a file nor a folder")}
        assert rows(archive)[0]["format"] == 2 and rows(archive)[-1]["files"] == 12
        copy, again = tmp_path / "copy", tmp_path / f"again{running}"
        copy.write_bytes(archive)
        # Other paths, in another order: space and place decide.
        new_team, new_shared = tmp_path / f"team{running}", tmp_path / f"shared{running}"
        new_roots = ["--root", f"team:{new_team}", "--root", str(new_shared)]
        done = notegate("restore", copy, "--data-dir", again, *new_roots)
        assert done.returncode == 1 and str(new_shared) in done.stderr and "make it first" in done.stderr, done.stderr
        new_team.mkdir()
        new_shared.mkdir()
        done = notegate("restore", copy, "--data-dir", again, "--root", str(new_shared))
        assert done.returncode == 1 and f"files of {team} (space team), and no root is configured" in done.stderr
        assert tree(new_shared) == {}, "nothing is made before all can be"
        done = notegate("restore", copy, "--data-dir", again, *new_roots)
        assert done.returncode == 0 and "12 files" in done.stdout, done.stderr
        assert tree(new_shared) == expected and tree(new_team) == expected


def test_the_default_root_comes_back(data, tmp_path):
    """Files that tools made in the data directory itself."""
    env = environment(NOTEGATE_PLUGINS="notebook,file_editor")
    done = notegate("call", "fileEditor", json.dumps({"command": "create", "path": str(data / "files" / "a" / "b.txt"),
                                                      "file_text": "made by a tool\n"}), "--data-dir", data, env=env)
    assert done.returncode == 0, done.stderr
    assert notegate("backup", tmp_path / "copy", "--data-dir", data, "--files").returncode == 0
    again = tmp_path / "again"
    assert notegate("restore", tmp_path / "copy", "--data-dir", again).returncode == 0
    assert (again / "files" / "a" / "b.txt").read_text() == "made by a tool\n"
    assert (again / "files").stat().st_mode & 0o777 == 0o700


def test_roots_in_roots(data, tmp_path):
    """Each file is told once: one that changes meanwhile would differ from itself, and no restore could be."""
    outer = tmp_path / "outer"
    inner = outer / "in" / "ner"
    inner.mkdir(parents=True)
    for folder in (outer, outer / "in", inner):
        (folder / "note").write_text(str(folder))
    (inner / "deep").mkdir()
    (inner / "deep" / "note").write_text("deep")
    (outer / "link").symlink_to("in")
    roots = ["--root", str(outer), "--root", f"team:{inner}", "--root", f"other:{outer}", "--root", f"mine:{inner / 'deep'}"]
    done = notegate("call", "notebook", "mode=create", "name=precious", "newStr=x", "--data-dir", data, *roots)
    assert done.returncode == 0, done.stderr
    code, archive, told = streamed(data, "--files", *roots)
    assert code == 0 and "4 files" in told, told
    files = [(row["root"], row["path"]) for row in rows(archive) if row["kind"] == "file"]
    assert sorted(files) == [(0, "in/note"), (0, "note"), (1, "note"), (3, "note")]
    copy = tmp_path / "copy"
    copy.write_bytes(archive)
    # Into the same places ...
    expected = tree(outer)
    outer.rename(tmp_path / "was")
    (inner / "deep").mkdir(parents=True)
    done = notegate("restore", copy, "--data-dir", tmp_path / "again", *roots)
    assert done.returncode == 0 and "4 files" in done.stdout, done.stderr
    assert {path: entry for path, entry in expected.items() if entry != "link"} == tree(outer)
    # ... and into others, which lie side by side.
    sides = [tmp_path / name for name in ("a", "b", "c", "d")]
    for side in sides:
        side.mkdir()
    spaces = ["", "team:", "other:", "mine:"]
    apart = [word for space, side in zip(spaces, sides) for word in ("--root", f"{space}{side}")]
    done = notegate("restore", copy, "--data-dir", tmp_path / "apart", *apart)
    assert done.returncode == 0, done.stderr
    assert [sorted(os.fsdecode(path) for path in tree(side)) for side in sides] == [
        ["in", "in/note", "note"], ["note"], [], ["note"]]


def test_the_data_directory_is_no_file(tmp_path):
    """A root that holds it gives everything but that."""
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True, mode=0o700)
    (root / "note").write_text("x")
    done = notegate("call", "notebook", "mode=create", "name=n", "newStr=t", "--data-dir", root / "data", "--root", root)
    if done.returncode != 0:
        return  # refused altogether
    code, archive, told = streamed(root / "data", "--files", "--root", str(root))
    assert code == 0, told
    assert {row["path"] for row in rows(archive) if row["kind"] in ("file", "folder")} == {"note"}


def test_a_restore_replaces_no_file(data, tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    make_files(root)
    done = notegate("call", "notebook", "mode=create", "name=precious", "newStr=x", "--data-dir", data, "--root", root)
    assert done.returncode == 0
    copy = tmp_path / "copy"
    assert notegate("backup", copy, "--files", "--data-dir", data, "--root", root).returncode == 0
    other.mkdir()

    def restore():
        return notegate("restore", copy, "--data-dir", tmp_path / "again", "--root", other)

    def spoil_content(path):
        path.write_text("mine")

    def spoil_longer(path):
        path.write_bytes((root / "long").read_bytes() + b"and more")

    def spoil_folder(path):
        path.mkdir()

    def spoil_link(path):
        path.symlink_to(root / "long")

    for spoil in (spoil_content, spoil_longer, spoil_folder, spoil_link):
        spoil(other / "long")
        before = tree(other)
        done = restore()
        assert done.returncode == 1 and f"{other}/long " in done.stderr and "nothing was restored" in done.stderr, done.stderr
        assert tree(other) == before, spoil
        if (other / "long").is_dir():
            (other / "long").rmdir()
        else:
            (other / "long").unlink()
    # The same content is no other: what a restore that was killed had made is gone on with.
    shutil.copy(root / "long", other / "long")
    done = restore()
    assert done.returncode == 0, done.stderr
    assert {name: row[:1] for name, row in tree(other).items()} == {name: row[:1] for name, row in tree(root).items()}
    assert "precious" in call(tmp_path / "again", "mode=list")


def test_a_link_on_the_way_is_not_followed(data, tmp_path):
    root, other, outside = tmp_path / "root", tmp_path / "other", tmp_path / "outside"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_text("x")
    assert notegate("call", "notebook", "mode=create", "name=n", "newStr=t", "--data-dir", data, "--root", root).returncode == 0
    copy = tmp_path / "copy"
    assert notegate("backup", copy, "--files", "--data-dir", data, "--root", root).returncode == 0
    other.mkdir()
    outside.mkdir()
    (other / "folder").symlink_to(outside)
    done = notegate("restore", copy, "--data-dir", tmp_path / "again", "--root", other)
    assert done.returncode == 1 and list(outside.iterdir()) == []


def test_damaged_files_are_refused(data, tmp_path):
    """Every line of them, and paths that lead out, although their hashes are right."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("content")
    (root / "folder").mkdir()
    assert notegate("call", "notebook", "mode=create", "name=n", "newStr=t", "--data-dir", data, "--root", root).returncode == 0
    copy, other = tmp_path / "copy", tmp_path / "other"
    assert notegate("backup", copy, "--files", "--data-dir", data, "--root", root).returncode == 0
    other.mkdir()
    lines = copy.read_text().splitlines(keepends=True)
    for number in range(len(lines)):
        damaged = list(lines)
        middle = len(damaged[number]) // 2
        damaged[number] = damaged[number][:middle] + ("x" if damaged[number][middle] != "x" else "y") + damaged[number][middle + 1:]
        (tmp_path / "bad").write_text("".join(damaged))
        done = notegate("restore", tmp_path / "bad", "--data-dir", tmp_path / "again", "--root", other)
        assert done.returncode == 1 and f"line {number + 1}: " in done.stderr, lines[number]
        assert list(other.iterdir()) == []
    assert notegate("restore", copy, "--data-dir", tmp_path / "again", "--root", other).returncode == 0
    assert (other / "a").read_text() == "content"
