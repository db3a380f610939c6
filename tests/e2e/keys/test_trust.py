# SPDX-License-Identifier: MIT
"""Configuration and modules that others can write are not believed."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from cells_support import Book, bad_kernel, need, need_zmq
from conftest import binary, environment
from hints_support import as_printed

NOBODY = 65534
TIMEOUT = 120
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have files of another user")
COMMANDS = (["tools"], ["check", "--help-config"], ["key", "list"], ["call", "notebook", "mode=list"], ["verify"])


@pytest.fixture
def place(tmp_path):
    """A data directory, a module, and a way to run commands on them in a folder."""
    return Place(tmp_path)


class Place:
    def __init__(self, top):
        self.top = top
        os.chmod(top, 0o755)
        self.home = top / "home"
        self.home.mkdir(mode=0o755)
        self.module = top / "modules" / "notebook.so"
        self.module.parent.mkdir(mode=0o755)
        folder = os.path.join(os.path.dirname(os.path.dirname(binary())), "modules", "plugins")
        shutil.copy(os.path.join(folder, "notebook.so"), self.module)

    def run(self, *words, cwd=None, data=True, **more):
        known = environment() | {"HOME": str(self.home)} | more
        known.pop("XDG_CONFIG_HOME", None)
        if data:
            words = (*words, "--data-dir", str(self.top / "data"))
        return subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                              env=known, cwd=cwd or self.top, check=False)

    def file(self, text, mode=0o644, folder=None):
        folder = folder or self.top / "conf"
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        path = folder / "notegate.yaml"
        path.write_text(text)
        os.chmod(path, mode)
        return path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_file_of_the_current_directory_is_not_read(place, words):
    place.file("plugins: [nothing-of-this-name]\n", folder=place.top / "work")
    assert place.run("call", "notebook", "mode=create", "name=x").returncode == 0
    done = place.run(*words, cwd=place.top / "work")
    assert done.returncode == 0, done.stderr


def test_the_users_file_is_read(place):
    place.file("plugins: [nothing-of-this-name]\n", folder=place.home / ".config" / "notegate")
    assert "nothing-of-this-name" in place.run("tools").stderr
    other = place.file("plugins: [nor-of-this]\n", folder=place.top / "xdg" / "notegate")
    known = environment() | {"HOME": str(place.home), "XDG_CONFIG_HOME": str(other.parents[1])}
    done = subprocess.run([binary(), "tools"], capture_output=True, text=True, timeout=TIMEOUT, env=known, check=False)
    assert "nor-of-this" in done.stderr


def mended(place, done, command, *words, **more):
    """Refused with this command, and taken when that was done."""
    assert done.returncode == 1
    assert f"`{command}`" in done.stderr, done.stderr
    as_printed(f"`{command}`")
    done = place.run(*words, **more)
    assert done.returncode == 0, done.stderr


def test_a_file_that_others_can_write(place):
    path = place.file("limits.workers: 2\n", 0o666)
    words = ("tools", "--config", path)
    mended(place, place.run(*words), f"chmod go-w {path}", *words)
    os.chmod(path.parent, 0o777)
    mended(place, place.run(*words), f"chmod go-w {path.parent}", *words)
    # A folder as /tmp is as good as any other.
    os.chmod(path.parent, 0o1777)
    assert place.run(*words).returncode == 0


@needs_root
def test_a_file_on_a_disk_for_reading(place):
    """As orchestrators mount configuration: its modes allow every user to write, but the file system allows none."""
    path = place.file("limits.workers: 2\n", 0o666)
    os.chmod(path.parent, 0o777)
    script = f"mount --bind {path.parent} {path.parent} && mount -o remount,bind,ro {path.parent} && exec \"$@\""
    if subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "true"], check=False, timeout=TIMEOUT).returncode:
        pytest.skip("mounting is not allowed here")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", binary(), "tools", "--config", str(path)],
                          capture_output=True, text=True, timeout=TIMEOUT, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert place.run("tools", "--config", path).returncode == 1


@needs_root
def test_a_file_of_another_user(place):
    path = place.file("limits.workers: 2\n")
    words = ("tools", "--config", path)
    for owned in (path, path.parent):
        os.chown(owned, NOBODY, NOBODY)
        mended(place, place.run(*words), f"chown root {owned}", *words)


@pytest.mark.parametrize("way", ["plugins", "plugin_path", "environment", "file"])
def test_a_module_that_others_can_write(place, way):
    more = {}
    words = ["tools"]
    if way == "plugins":
        words += ["--set", f"plugins={place.module}"]
    elif way == "plugin_path":
        words += ["--set", "plugins=notebook", "--set", f"plugin_path={place.module.parent}"]
    elif way == "environment":
        more = {"NOTEGATE_PLUGINS": str(place.module)}
    else:
        words += ["--config", place.file(f"plugins: [{place.module}]\n")]
    assert place.run(*words, **more).returncode == 0
    for path in (place.module, place.module.parent):
        os.chmod(path, 0o777)
        mended(place, place.run(*words, **more), f"chmod go-w {path}", *words, **more)
    if os.geteuid() == 0:
        os.chown(place.module, NOBODY, NOBODY)
        mended(place, place.run(*words, **more), f"chown root {place.module}", *words, **more)


@pytest.mark.parametrize("way", ["mode", "owner"])
def test_the_program_that_holds_kernels(place, start, way):
    need("python3")
    here = pathlib.Path(binary()).parents[1] / "modules" / "plugins"
    for name in ("cells.so", "notegate-kernels"):
        shutil.copy(here / name, place.module.parent / name)
    program = place.module.parent / "notegate-kernels"
    running = start(["plugins=cells", f"plugin_path={place.module.parent}"])
    if way == "mode":
        program.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(program, NOBODY, NOBODY)
    else:
        pytest.skip("needs root to have files of another user")
    book = Book(running, "n.ipynb", [("a", "print(1)")])
    answer = book.call("runNotebookCells", cellIds=["a"])
    command = f"chmod go-w {program}" if way == "mode" else f"chown root {program} && chmod go-w {program}"
    assert answer.status_code != 200 and f"; do `{command}`." in answer.json()["message"], answer.text
    as_printed(answer.json()["message"])
    book.run("a")


@pytest.mark.parametrize("what", ["program", "program on PATH", "program's folder", "kernel.json", "folder of kernel.json",
                                  pytest.param("program of another user", marks=needs_root)])
def test_a_kernel_that_others_can_change(start, tmp_path, monkeypatch, what):
    need_zmq()
    tmp_path /= "it is here"
    tmp_path.mkdir()
    bad_kernel(tmp_path / "jupyter", "python3")
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    program = tmp_path / "bin" / "kernel"
    program.parent.mkdir()
    words = json.loads(spec.read_text())
    program.write_text(f'#!/bin/sh\nexec {words["argv"][0]} "$@"\n')
    program.chmod(0o755)
    words["argv"][0] = "kernel" if what == "program on PATH" else str(program)
    spec.write_text(json.dumps(words))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{program.parent}:{os.environ['PATH']}")
    running = start(["plugins=cells"])
    file = {"program's folder": program.parent, "kernel.json": spec, "folder of kernel.json": spec.parent}.get(what, program)
    if "another user" in what:
        os.chown(file, NOBODY, NOBODY)
    else:
        file.chmod(file.stat().st_mode & 0o777 | 0o022)
    book = Book(running, "n.ipynb", [("a", json.dumps({"do": [["busy"], ["stream", "hi\n"], ["reply"], ["idle"]]}))])
    answer = book.call("runNotebookCells", cellIds=["a"])
    assert answer.status_code != 200 and "is not started: other users can change" in answer.json()["message"], answer.text
    as_printed(answer.json()["message"].split("; do ")[1])
    book.run("a")


@pytest.mark.parametrize("program, told", [("kernel", "is in no folder of PATH"), ("./kernel", "is a relative path")])
def test_a_kernel_program_is_not_looked_for_beside_the_notebook(start, tmp_path, monkeypatch, program, told):
    need_zmq()
    bad_kernel(tmp_path / "jupyter", "python3")
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    words = json.loads(spec.read_text())
    words["argv"][0] = program
    spec.write_text(json.dumps(words))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}:")
    book = Book(start(["plugins=cells"]), "n.ipynb", [("a", "1")])
    ran = tmp_path / "ran"
    beside = book.path.parent / "kernel"
    beside.write_text(f"#!/bin/sh\ntouch {ran}\n")
    beside.chmod(0o755)
    answer = book.call("runNotebookCells", cellIds=["a"])
    assert answer.status_code != 200 and told in answer.json()["message"], answer.text
    assert not ran.exists()


def test_the_log_says_which_file_was_read(start, tmp_path):
    path = tmp_path / "some.yaml"
    path.write_text("log.level: info\n")
    read = start(args=["--config", str(path)], name="a")
    assert read.stop() == 0
    assert read.logged(f"configuration: {path}"), read.errors
    none = start(name="b")
    assert none.stop() == 0
    assert none.logged("configuration: "), none.errors


@needs_root
def test_a_folder_that_may_not_be_entered(place):
    """Typed in the home of another user, with the HOME of that user."""
    place.file("limits.workers: 2\n", folder=place.home / ".config" / "notegate")
    os.chmod(place.home, 0o700)
    data = tempfile.mkdtemp(dir="/tmp")  # pytest's own folders are root's alone
    os.chown(data, NOBODY, NOBODY)
    done = subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                           binary(), "check", "--data-dir", str(data)], capture_output=True, text=True,
                          timeout=TIMEOUT, env=environment() | {"HOME": str(place.home)}, cwd=place.home, check=False)
    shutil.rmtree(data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "which is ignored" in done.stdout
