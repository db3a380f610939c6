# SPDX-License-Identifier: MIT
"""A gateway whose allocations fail, with all plugins, and the data on its disk."""
import hashlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile

from control import Control
from wire import Answer, Gone, Wire

START_SECONDS = 120
# `verify` of all that a sweep has written to MongoDB, beside other work.
COMMAND_SECONDS = 900
STOP_SECONDS = 120
PLUGINS = "plugins=+conformance"
# Collections that the gateway keeps for itself, at times of its own; so is what no tool wrote, but for keys.
OWN = ("gateways", "notebook_openings")
LEFT_BEHIND = re.compile(r"\.notegate-|\.tmp$|~$")


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("NOTEGATE_", "MONGODB_", "REDIS_"))}


def told(rows):
    """Of (collection, tool, action) those that a request wrote."""
    return sorted(row for row in rows if row[0] not in OWN and (row[1] or row[0] == "keys"))


class World:
    def __init__(self, binary, library, folder=None):
        self.binary = binary
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="notegate-alloc-"))
        self.data, self.files, self.notes = (self.folder / name for name in ("data", "files", "notes"))
        self.folder.mkdir(exist_ok=True)
        self.data.mkdir(mode=0o700)
        (self.files / "still").mkdir(parents=True)
        (self.files / "still" / "a.txt").write_text("a\n")
        self.notes.mkdir()
        (self.notes / "still.md").write_text(
            "---\ntitle: still\ntags: [fixed]\nstatus: todo\n---\n# still\n\nwords [[other]]\n\n## Part\n\nmore\n")
        (self.notes / "other.md").write_text("# other\n\n- [ ] to do [[still]]\n")
        self.control = Control(self.folder, library)
        self.log = self.folder / "log"
        self.process = self.database = None
        self.ids = {}

    def flags(self):
        return ["--data-dir", str(self.data), "--root", str(self.files), "--set", PLUGINS,
                "--set", f"opennotes.notebooks={self.notes}", "--set", "log.level=warning", "--set", "shutdown_timeout=5s"]

    # ---- the gateway

    def command(self, *words, fail=None, stdin=None):
        """A command of its own; fail: the number of the allocation that fails in it."""
        more = self.control.environment() if fail is not None else {}
        if fail is not None:
            self.control.arm(fail)
        try:
            return subprocess.run([self.binary, *words, *self.flags()], capture_output=True, text=True, timeout=COMMAND_SECONDS,
                                  env=environment() | more, cwd=self.folder, input=stdin, check=False)
        finally:
            if fail is not None:
                self.control.disarm()

    def start(self):
        if not hasattr(self, "key"):
            told = self.command("key", "add", "root", "--role", "admin", "--note", "for the sweep", "--json")
            assert told.returncode == 0, told.stderr
            self.key, self.ids["key"] = (json.loads(told.stdout)[name] for name in ("key", "id"))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--listen", "127.0.0.1:0", *self.flags()], stdout=subprocess.PIPE, stderr=log, text=True,
                env=environment() | self.control.environment(), cwd=self.folder)
        line = self.process.stdout.readline()
        assert "listening on http://" in line, line + self.log.read_text()[-3000:]
        self.port = int(line.rsplit(":", 1)[1])
        self.open_database()
        self.wire, self.stranger, self.leaving = Wire(self.port, self.key), Wire(self.port, "ng_nobody"), None
        self.kernel_of = None
        self.meet()

    def open_database(self):
        self.database = sqlite3.connect(f"file:{self.data / 'notegate.db'}?mode=ro", uri=True, timeout=30)

    def close_database(self):
        self.database.close()

    def meet(self):
        """A session of the handshake protocol."""
        assert self.wire.initialize().ok
        self.must(self.wire.notify("notifications/initialized"))

    def fill(self):
        """Documents that the cases read."""
        for arguments in ({"mode": "create", "name": "sweep"}, {"mode": "write", "name": "sweep", "newStr": "1\n2\n3\n"}):
            self.must(self.wire.tool("notebook", arguments, {"X-Notegate-Space": "shared"}))
        shared = {"X-Notegate-Space": "shared"}
        made = self.must(self.wire.tool("notebook_create", {
            "collection": "pages", "title": "page", "content": "# One\nalpha\n## Two\nbeta\n", "tags": ["fixed"]}, shared))
        self.ids["page"] = self.first_id(made)
        self.must(self.wire.tool("notebook_update", {"collection": "pages", "notebook_id": self.ids["page"],
                                                     "append": "delta\n"}, shared))
        self.must(self.wire.tool("memory_log", {"content": "unforgettable", "tags": ["a"]}, shared))
        small = {"X-Notegate-Space": "~root"}
        made = self.must(self.wire.tool("notebook_create", {"collection": "pages", "title": "small", "content": "x"}, small))
        self.ids["small"] = self.first_id(made)
        kept = self.must(self.wire.tool("checkpoint_snapshot", {"label": "first"}, small))
        self.ids["checkpoint"] = self.first_id(kept)

    @staticmethod
    def first_id(answer):
        """The id of what an answer says was made."""
        result = answer.json()["result"]
        for name in ("notebook_id", "checkpoint_id", "id"):
            if name in result:
                return result[name]
        raise AssertionError(f"no id in {answer}")

    @staticmethod
    def must(answer):
        assert answer.ok, str(answer)
        return answer

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """The exit code of a gateway that was asked to end."""
        for wire in (self.wire, self.stranger, self.leaving):
            if wire is not None:
                wire.close()
        self.close_database()
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it did not end"

    def kill(self):
        if self.process is not None and self.alive():
            self.process.kill()
            self.process.wait()

    # ---- clients

    def fresh(self):
        self.other = Wire(self.port, self.key)
        return self.other

    def join(self):
        self.leaving = Wire(self.port, self.key)
        assert self.leaving.initialize().ok

    def session_stream(self):
        """Begins; there is nothing to be said on it."""
        status, headers = self.wire.open_stream("/mcp", {"MCP-Protocol-Version": "2025-11-25",
                                                         "Mcp-Session-Id": self.wire.session})
        answer = Answer(status, "", headers)
        answer.ok, answer.failed = status == 200, status >= 500
        return answer

    def has_kernel(self):
        if self.kernel_of == self.process.pid:
            return True
        self.kernel_of = self.process.pid
        return False

    # ---- data on disk

    def written(self, since):
        """(the newest sequence number, writes after `since`)"""
        rows = self.database.execute(
            "SELECT log.seq, shelves.collection, log.tool, log.action FROM log JOIN docs USING (doc) "
            "JOIN shelves USING (shelf) WHERE log.seq > ? ORDER BY log.seq", (since,)).fetchall()
        newest = max((row[0] for row in rows), default=since)
        return newest, told(row[1:] for row in rows)

    def tree(self):
        """Every file that tools may change."""
        return {str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
                for folder in (self.files, self.notes) for path in sorted(folder.rglob("*")) if path.is_file()}

    def strays(self):
        return [name for name in self.tree() if LEFT_BEHIND.search(name)]


__all__ = ["Gone", "World", "told"]
