# SPDX-License-Identifier: MIT
"""The mixed load of the soak: a load generator for each kind of call, and readers of the event streams."""
import json
import os
import re
import subprocess
import threading

import rig
from budgets import session_call, stateless_call
from curves_team import Readers

STREAMS = 50
ID = re.compile(rb"\nid: ([0-9]+)\n")
TAIL = 8192  # bytes of what came in which the last whole number is looked for
NOTES = 100
ENTRIES = 500
# More than the gateway's cache of documents holds, so that it is full when the time begins.
MEMORIES, FEW = 20000, 100
TEXT = "A line about what an agent has found, long enough to be one.\n" * 8
# Maximum of created documents, calls a second: searches cost more with more documents, which a soak does not test.
MADE_A_SECOND = 5


def notes_below(folder):
    """A folder of notes, and one of files that are edited."""
    notes, files = os.path.join(folder, "notes"), os.path.join(folder, "files")
    for path in (notes, files):
        os.mkdir(path)
    for number in range(NOTES):
        with open(os.path.join(notes, f"note-{number:03}.md"), "w") as file:
            file.write(f"---\ntags: [t{number % 7}]\n---\n# Note {number}\n\n{TEXT}\nSee [[note-{(number * 7) % NOTES:03}]].\n")
    for number in range(4):
        with open(os.path.join(files, f"file-{number:04}.txt"), "w") as file:
            file.write(TEXT + "number 00000000\n" + TEXT)
    return notes, files


class Load:
    """One kind of call at one rate."""

    def __init__(self, name, connections, file, writes=False, most=None):
        self.name, self.connections, self.file, self.writes, self.most = name, connections, file, writes, most
        self.rate = 0.0
        self.process = self.thread = self.listener = None
        self.rows, self.words, self.not_200, self.answered = [], [], 0, 0

    def start(self, out, port, seconds, rate=None, every=None):
        self.rows, self.words, self.not_200, self.answered = [], [], 0, 0
        self.process = subprocess.Popen(
            rig.load_command(out, port, self.connections, seconds, self.file, rate, every=every), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def read(self):
        at = 0.0
        for line in self.process.stdout:
            row = json.loads(line)
            at += row["seconds"]
            self.rows.append(row | {"at": at})
            self.not_200 += row["not_200"]
            self.answered += row["answered"]

    def listen(self):
        for line in self.process.stderr:
            self.words.append(line.strip())

    def said(self):
        """The first complaint: an answer that was not 200, or why it ended."""
        self.listener.join()
        return self.words[0] if self.words else f"exit {self.process.returncode}"

    def end(self, seconds=30):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        code = self.process.returncode
        if code != 0:
            raise SystemExit(f"{self.name}: {self.said()}")
        self.listener.join()

    def close(self):
        """Its present operation."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Mix:
    def __init__(self, out, gateway, files, stack, memories=MEMORIES):
        self.out, self.gateway = out, gateway
        self.loads = self.prepared(files, memories)
        for load in self.loads:
            stack.callback(os.unlink, load.file)
            stack.callback(load.close)

    def create(self, title, **more):
        answer = self.gateway.call("notebook_create", {"collection": "pages", "title": title, "content": TEXT, **more})
        return {"collection": "pages", "notebook_id": answer["result"]["notebook_id"]}

    def prepared(self, files, memories):
        """The kinds of calls, and their documents."""
        def rest(tool, arguments):
            return rig.request("/v1/tools/" + tool, arguments, ["X-Notegate-Agent: bench"])
        self.gateway.call("notebook", {"mode": "create", "name": "notes", "newStr": "a line of notes\n" * 4})
        read, changed = self.create("The page that is read"), self.create("The page that is changed")
        for number in range(10):
            self.create(f"Zanzibar {number}")
        made = rest("notebook_create", {"collection": "pages", "title": "Page ########", "content": TEXT, "tags": ["soak"]})
        rig.load(self.out, self.gateway.port, 8, 60, made, self.gateway.pid, count=ENTRIES)
        thought = rest("memory_log", {"content": "Thought ########"})
        rig.load(self.out, self.gateway.port, 16, 600, thought, self.gateway.pid, count=memories)
        write = {"mode": "create", "name": "agent-@@@@", "newStr": "########" + "y" * 184 + "########"}
        file = {"command": "regex_replace", "path": os.path.join(files, "file-@@@@.txt"), "pattern": "number [0-9]+",
                "new_str": "number ########"}
        return [
            Load("REST read", 8, rest("notebook", {"mode": "read", "name": "notes"})),
            Load("MCP read", 8, stateless_call("/mcp")),
            Load("MCP read in a session", 4, session_call("/mcp", self.gateway.port)),
            Load("durable write", 8, rest("notebook", write), writes=True),
            Load("entry update", 4, rest("notebook_update", changed | {"content": "######## " + TEXT}), writes=True),
            Load("entry read", 4, rest("notebook_read", read), writes=True),  # each is a reference
            Load("entry search", 1, rest("notebook_search", {"query": "zanzibar", "limit": 10})),
            Load("entry list", 1, rest("notebook_list", {"limit": 10})),
            Load("entry create", 2, made, writes=True, most=MADE_A_SECOND),
            Load("memory", 1, thought, writes=True, most=MADE_A_SECOND),
            Load("file edit", 2, rest("fileEditor", file), writes=True),
            Load("note read", 2, rest("opennotes_get", {"path": "note-007.md"})),
            Load("note search", 1, rest("opennotes_search", {"query": "agent", "limit": 10})),
        ]

    def peak(self, seconds):
        """All kinds at once, as fast as they are answered: the rate of each is its share of the peak. Their sum."""
        for load in self.loads:
            load.start(self.out, self.gateway.port, seconds, rate=load.most)
        for load in self.loads:
            load.end(seconds + 30)
            load.rate = max(1.0, load.rows[-1]["rate"] if load.rows else 0.0)
        return sum(load.rate for load in self.loads)

    def begin(self, seconds, share, every):
        for load in self.loads:
            load.start(self.out, self.gateway.port, seconds, rate=load.rate * share, every=every)

    def ended(self):
        return [load for load in self.loads if load.process.poll() is not None]

    def finish(self):
        for load in self.loads:
            load.end()

    def answered(self):
        return sum(load.answered for load in self.loads)

    def written(self, since):
        return sum(row["answered"] for load in self.loads if load.writes for row in load.rows if row["at"] >= since)


class Streams(Readers):
    """Event streams that are read all the time, and gone on with where they fell limits.stream_backlog behind."""

    def __init__(self, port):
        self.resumed, self.last = 0, {}
        super().__init__(port)
        self.open(STREAMS)

    def came(self, stream, text):
        super().came(stream, text)
        newest = ID.findall(text[-TAIL:])
        if newest:
            self.last[stream] = newest[-1]

    def gone(self, stream):
        """As every client does: it comes back with the number of the last event it has had."""
        last = self.last.pop(stream, None)
        self.selector.unregister(stream)
        del self.tails[stream]
        stream.close()
        if last is None:
            self.ended += 1
            return
        self.resumed += 1
        try:
            again = self.ask(self.resumed % STREAMS, b"Last-Event-ID: %s\r\n" % last)
            self.tails[again], self.last[again] = b"", last
            self.follow(again)
        except (OSError, SystemExit):
            self.ended += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
