# SPDX-License-Identifier: MIT
"""Rows of the history: the first page of history_log under each kind of filter, history_read at a point, history_blame of a long
text with many revisions, the runs of writes, an undo of documents, and versions of files and their undo."""
import json
import os
import random
import sqlite3
import time

import rig
from curves import tool
from curves_load import WRITE
from entries import Group, Row, times

PLUGINS = "plugins=agent_notebook,notebook,history"
# Changes of a run in a row, runs at the same time, agents, and revisions of a document.
RUN, BESIDE, AGENTS, REVISIONS = 100, 4, 97, 100
START_MS = 1750000000000
TEXT = b"a line of notes that is as long as lines are\n" * 6
# Changes that are made at once.
PIECE = 20000
# So many changes, none in the newest half, are of what some rows look for.
RARE = 100


def agent(headers=()):
    return ["X-Notegate-Agent: bench", *headers]


class Fill:
    """Changes as rows of the gateway's file: a million of them in seconds."""

    def __init__(self, path, count):
        self.database = sqlite3.connect(path)
        self.count = count
        self.shelves, self.origins, self.docs = {}, {}, {}
        self.documents = max(1, count // REVISIONS)

    def shelf(self, collection, space):
        return self.shelves.setdefault((collection, space), len(self.shelves) + 1)

    def origin(self, shelf, who, run, seq):
        row = self.origins.setdefault((shelf, who, run), [len(self.origins) + 1, seq, seq, 0])
        row[2], row[3] = seq, row[3] + 1
        return row[0]

    def change(self, seq):
        """Shelf, id, agent, run, tool and action of a change."""
        if seq < self.count / 2 and seq % (self.count // 2 // RARE) == 0:
            shelf = self.shelf("research_notes", ("shared", "team-rare")[seq // (self.count // 2 // RARE) % 2])
            return shelf, f"rare-{seq % 3}", "rare", "run-rare", "import", "imported"
        run = seq // (RUN * BESIDE) * BESIDE + seq % BESIDE
        place = run % self.documents
        collection, space = ("notebooks", "pages", "code_snippets")[run % 3], ("shared", "~bench", f"team-{run % 31}")[run % 7 % 3]
        name = f"{collection}/{place}-{seq // BESIDE % max(1, RUN * BESIDE // REVISIONS)}"
        return self.shelf(collection, space), name, f"agent-{run % AGENTS}", f"run-{run}", "notebook", "updated"

    def rows(self, first, last):
        """Rows of `log` and of `trail`; what the other tables need is kept."""
        log, trail = [], []
        for seq in range(first, last + 1):
            shelf, name, who, run, by, action = self.change(seq)
            doc = self.docs.setdefault((shelf, name), [len(self.docs) + 1, 0, seq, seq, who, action])
            doc[1], doc[3:] = doc[1] + 1, (seq, who, action)
            trail.append((seq, doc[0], self.origin(shelf, who, run, seq), 1, 1))
            log.append((seq, doc[0], doc[1], 1, 0, START_MS + seq, doc[2], START_MS + doc[2], who, by, action, b"", len(TEXT),
                        b'{"lines":7}', TEXT + b"%d" % seq))
        return log, trail

    def run(self):
        with self.database as database:
            for first in range(1, self.count + 1, PIECE):
                log, trail = self.rows(first, min(first + PIECE - 1, self.count))
                database.executemany("INSERT INTO log(seq,doc,revision,kind,flags,time_ms,created_seq,created_ms,agent,tool,action,"
                                     "hash,text_size,json,text) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", log)
                database.executemany("INSERT INTO trail(seq,doc,origin,added,removed) VALUES(?,?,?,?,?)", trail)
            database.executemany("INSERT INTO shelves(shelf,collection,space) VALUES(?,?,?)",
                                 ((number, *key) for key, number in self.shelves.items()))
            database.executemany("INSERT INTO origins VALUES(?,?,?,'',?,'bench',?,?,?)",
                                 ((row[0], *key, *row[1:]) for key, row in self.origins.items()))
            database.executemany(
                "INSERT INTO docs VALUES(?,?,?,?,0,?,?,?,?,?,?,1,0,?,?,x'',x'',?,?)",
                ((doc, shelf, name.encode(), revision, last, first, START_MS + first, START_MS + last, 11, len(TEXT), who, action,
                  b'{"lines":7}', TEXT) for (shelf, name), (doc, revision, first, last, who, action) in self.docs.items()))
            database.execute("INSERT OR REPLACE INTO meta VALUES('seq',?)", (self.count,))
        self.database.close()


def filters(count):
    """Name and arguments: what is frequent, what is rare, what has not been for long, and what there is not."""
    middle = count // RUN // 14 * 7
    return (("no filter", {}), ("a run", {"run": f"run-{middle}"}), ("a run of few changes", {"run": "run-rare"}),
            ("an agent", {"agent": "agent-7"}), ("an agent of few changes", {"agent": "rare"}),
            ("a collection", {"collection": "pages"}), ("a collection of few changes", {"collection": "research_notes"}),
            ("a space", {"space": "team-7"}), ("a space of few changes", {"space": "team-rare"}),
            ("a tool", {"tool": "notebook"}), ("a tool of few changes", {"tool": "import"}),
            ("a tool that has made none", {"tool": "fileEditor"}), ("an action of few changes", {"action": "imported"}),
            ("an id", {"id": f"pages/{middle // 3 * 3 + 1}-1"}), ("an id of few changes", {"id": "rare-0"}),
            ("the beginning of many ids", {"id": "pages/*"}), ("the beginning of some ids", {"id": "pages/10*"}),
            ("an agent and a tool", {"agent": "agent-7", "tool": "import"}),
            ("until an early change", {"until": f"#{count // 10}", "collection": "pages"}))


class Log(Group):
    name = "history_log"

    def begin(self):
        self.count = self.sized(1000000, 2000)
        self.server = self.gateway(PLUGINS)
        self.server.stop(keep=True)
        Fill(os.path.join(self.server.data, "notegate.db"), self.count).run()
        self.server.start()
        self.bench.settle(self.server)

    def rows(self):
        count = self.sized(1000000, 2000)
        return [Row(f"history_log, first page of {count:,} changes, {name}",
                    lambda name=name, given=given: self.page(name, given), ("<=", 5, "ms")) for name, given in filters(count)]

    def page(self, name, given):
        """The time of one call on an idle gateway, its connection apart."""
        file = self.file(name, lambda: rig.request("/v1/tools/history_log", given, agent()))
        rows = json.loads(rig.body_of(self.server.port, file))["result"]
        if isinstance(rows, str):
            rows = json.loads(rows)
        one = self.warmed(self.server, file, clients=1)
        times_ms = min((one() for _ in range(self.bench.rounds)), key=lambda row: row["p50_ms"])
        return times_ms["p50_ms"], (f"p50; {len(rows['changes'])} changes" + (", more" if rows["has_more"] else "") +
                                    f", {times_ms['cpu_us']:.0f} us CPU")


class Read(Group):
    name = "history_read"

    def begin(self):
        self.count = self.sized(100000, 200)
        self.server = self.gateway(PLUGINS)
        self.draw = random.Random(1)
        for size in (1, 16):
            self.grow(size)

    def grow(self, size):
        """Revisions that differ in a few bytes of the middle."""
        half = "a line of notes\n" * (size * 32)
        body = {"mode": "create", "name": f"kib-{size}", "newStr": half[8:] + "########" + half}
        file = self.file(("grow", size), lambda: tool("notebook", body))
        self.load(self.server, file, count=self.count)
        self.bench.settle(self.server)

    def rows(self):
        return [Row(f"history_read, `at` {what} of {self.sized(100000, 200):,} revisions of {size} KiB, CPU to a read without",
                    lambda size=size, point=point: self.ratio(size, point), times(2))
                for size in (1, 16) for what, point in (("a revision", str), ("a change", self.change), ("a time", self.time))]

    def change(self, revision):
        return f"#{self.moments[revision]['seq']}"

    def time(self, revision):
        return self.moments[revision]["time"]

    def ratio(self, size, point):
        given = {"collection": "notebooks", "id": f"kib-{size}"}
        points = [self.draw.randrange(1, self.count) for _ in range(64)]
        if point is not str:
            self.moments = {at: self.call(self.server, "history_read", {**given, "at": str(at)}) for at in points}
            if any(isinstance(moment, str) for moment in self.moments.values()):
                self.moments = {at: json.loads(moment) for at, moment in self.moments.items()}
        files = [self.file((size, point, at), lambda at=at: tool("history_read", {**given, "at": point(at)})) for at in points]
        now = self.file((size, "now"), lambda: tool("history_read", given))
        ours, base = self.beside(self.warmed(self.server, files), self.warmed(self.server, now))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.1f} us to {base['cpu_us']:.1f} us"


class Edits:
    """A notebook of lines that are replaced, added and removed one by one, as rows of the gateway's file."""

    # A revision is whole after so many splices, as the gateway keeps them.
    WHOLE = 128

    def __init__(self, size, count):
        self.draw = random.Random(1)
        self.count = count
        self.lines = [self.line(0) for _ in range(max(2, size // len(self.line(0))))]

    def line(self, revision):
        return b"%06d a line of notes that is as long as lines are, %08d\n" % (revision, self.draw.randrange(10 ** 8))

    def splice(self, revision):
        """Changes the lines; at, removed and inserted bytes."""
        at, how = self.draw.randrange(len(self.lines)), self.draw.random()
        removed = [] if how < 0.2 else self.lines[at:at + 1]
        inserted = [] if how > 0.8 else [self.line(revision)]
        before = sum(map(len, self.lines[:at]))
        self.lines[at:at + len(removed)] = inserted
        return before, len(b"".join(removed)), b"".join(inserted)

    def rows(self):
        """Rows of `log`."""
        size = sum(map(len, self.lines))
        for revision in range(1, self.count + 1):
            kind, json_at, json, at, removed, text = 2, 0, b"", 0, 0, b""
            if revision > 1:
                at, removed, text = self.splice(revision)
                size += len(text) - removed
            if revision % self.WHOLE == 1:
                kind, json_at, json, at, removed, text = 1, None, b"{}", None, None, b"".join(self.lines)
            yield (revision, 1, revision, kind, 0, START_MS + revision, 1, START_MS, "bench", "notebook", "updated", b"", json_at,
                   json_at, at, removed, size, json, text)

    def fill(self, path):
        with sqlite3.connect(path) as database:
            database.executemany("INSERT INTO log(seq,doc,revision,kind,flags,time_ms,created_seq,created_ms,agent,tool,action,hash,"
                                 "json_at,json_removed,text_at,text_removed,text_size,json,text) "
                                 "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", self.rows())
            text, last = b"".join(self.lines), self.count
            database.executemany("INSERT INTO trail(seq,doc,origin,added,removed) VALUES(?,1,1,1,1)",
                                 ((seq,) for seq in range(1, last + 1)))
            database.execute("INSERT INTO shelves(shelf,collection,space) VALUES(1,'notebooks','shared')")
            database.execute("INSERT INTO origins VALUES(1,1,'bench','','run-1','bench',1,?,?)", (last, last))
            database.execute("INSERT INTO docs VALUES(1,1,?,?,0,?,1,?,?,2,?,1,0,'bench','updated',x'',x'',?,?)",
                             (b"long", last, last, START_MS, START_MS + last, len(text), b"{}", text))
            database.execute("INSERT OR REPLACE INTO meta VALUES('seq',?)", (last,))
        database.close()


class Blame(Group):
    name = "history_blame"

    def begin(self):
        self.size, self.count = self.sized(1000000, 10000), self.sized(10000, 300)
        self.server = self.gateway(PLUGINS)
        self.server.stop(keep=True)
        Edits(self.size, self.count).fill(os.path.join(self.server.data, "notegate.db"))
        self.server.start()
        self.bench.settle(self.server)

    def rows(self):
        size, count = self.sized(1000000, 10000), self.sized(10000, 300)
        return [Row(f"history_blame, 200 lines of a text of {size:,} bytes with {count:,} revisions, CPU", self.blame,
                    ("<=", 200, "ms"))]

    def blame(self):
        given = {"collection": "notebooks", "id": "long", "space": "shared"}
        file = self.file("blame", lambda: rig.request("/v1/tools/history_blame", given, agent()))
        answer = json.loads(rig.body_of(self.server.port, file))["result"]
        found = json.loads(answer) if isinstance(answer, str) else answer
        if not found["exact"] or found["lines"][-1]["last"] != min(200, found["total_lines"]):
            raise SystemExit("history_blame has not traced the lines")
        row = min((self.load(self.server, file, clients=1, count=4) for _ in range(self.bench.rounds)), key=lambda row: row["cpu_us"])
        return row["cpu_us"] / 1000, f"p50 {row['p50_ms']:.0f} ms; {len(found['lines'])} runs of lines"


class Runs(Group):
    name = "runs of changes"

    def begin(self):
        self.server = self.gateway("plugins=notebook,history")
        self.made = 0

    def rows(self):
        return [Row(f"notebook write, a run for {every}, CPU to a write without a run", lambda run=run: self.ratio(run), times(most))
                for every, run, most in (("100 changes", "%%%%%%%%", 1.03), ("each change", "########", 1.06))]

    def written(self, run, count):
        """Writes whose runs have not been before."""
        self.made += 1
        headers = [f"X-Notegate-Run: {self.made}-@@@@-{run}"] if run else []
        return self.load(self.server, self.file(self.made, lambda: rig.request("/v1/tools/notebook", WRITE, agent(headers))), count=count)

    def ratio(self, run):
        rate = self.load(self.server, self.file("warm", lambda: rig.request("/v1/tools/notebook", WRITE, agent())))["rate"]
        count = max(64, int(rate * self.bench.seconds))
        ours, base = self.beside(lambda: self.written(run, count), lambda: self.written("", count))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.1f} us to {base['cpu_us']:.1f} us"


class Undo(Group):
    name = "history_undo of documents"

    def begin(self):
        self.count = self.sized(1000, 20)
        self.server = self.gateway("plugins=notebook,history")
        for text in ("as it was\n", "as the night left it\n"):
            for number in range(self.count):
                self.server.call("notebook", {"mode": "create", "name": f"doc-{number}", "newStr": text * 20},
                                 headers={"X-Notegate-Agent": "bench", "X-Notegate-Run": text.split()[-1]})

    def rows(self):
        return [Row(f"history_undo of a run, {self.sized(1000, 20):,} documents", self.undone, ("<=", 2, "s"))]

    def undone(self):
        started = time.monotonic()
        told = self.server.call("history_undo", {"run": "it", "dry_run": False})["result"]
        took = time.monotonic() - started
        if told["conflicts"] or told["undone"] != self.count:
            raise SystemExit(f"history_undo has left documents: {told}")
        return took, f"{took / self.count * 1000:.2f} ms each"


class Files(Group):
    name = "versions of files"
    bytes_each = 16 * 1024

    def begin(self):
        self.edits, self.count = self.sized(400, 10), self.sized(1000, 20)
        self.with_versions = self.gateway("plugins=file_editor,history")
        self.without = self.gateway("plugins=file_editor,history", "history.files=false")
        for server in (self.with_versions, self.without):
            self.write(server, "edited.txt")
        for number in range(self.count):
            self.write(self.with_versions, f"{number}.txt")

    def path(self, server, name):
        return os.path.join(server.data, "files", name)

    def write(self, server, name):
        with open(self.path(server, name), "w") as file:
            file.write(("a line of a file that is edited\n" * 1024)[:self.bytes_each])

    def rows(self):
        return [Row("fileEditor, an edit of a 16 KiB file that keeps its version, CPU to one that does not", self.versions,
                    times(1.1)),
                Row(f"history_undo of a run, {self.sized(1000, 20):,} files of 16 KiB", self.undone, ("<=", 15, "s"))]

    def ask(self, server, name, arguments):
        headers = {"X-Notegate-Agent": "bench", "X-Notegate-Run": "night"}
        return server.call(name, arguments, headers=headers)["result"]

    def edit(self, server, name, number):
        self.ask(server, "fileEditor", {"command": "insert", "path": self.path(server, name), "insert_line": number,
                                        "new_str": f"{number}\n"})

    def cpu_us(self, server):
        before = rig.cpu_seconds(server.pid)
        for number in range(self.edits):
            self.edit(server, "edited.txt", number % 400)
        return (rig.cpu_seconds(server.pid) - before) * 1e6 / self.edits

    def versions(self):
        ours, base = zip(*((self.cpu_us(self.with_versions), self.cpu_us(self.without)) for _ in range(self.bench.rounds)))
        return min(ours) / min(base), f"{min(ours):.0f} us to {min(base):.0f} us, one agent, {self.edits} edits"

    def undone(self):
        for number in range(self.count):
            self.edit(self.with_versions, f"{number}.txt", 100)
        started = time.monotonic()
        told = self.ask(self.with_versions, "history_undo", {"run": "night", "id": os.path.join(self.with_versions.data, "files") + "/*",
                                                             "dry_run": False})
        took = time.monotonic() - started
        if told["conflicts"] or told["undone"] + told["unchanged"] < self.count:
            raise SystemExit(f"history_undo has left files: {told}")
        return took, f"{took / self.count * 1000:.1f} ms each"


GROUPS = (Log, Read, Blame, Runs, Undo, Files)
