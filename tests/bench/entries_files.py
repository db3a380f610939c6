# SPDX-License-Identifier: MIT
"""Rows of files: edits of plain files, cells of notebook files, search in Markdown notes, moves of linked notes, and searches
over everything."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

import rig
from curves import CONNECTIONS, tool
from entries import Group, Row, Skip, times
from entries_notebook import RARE as RARE_ENTRY
from entries_notebook import WORDS, made_entries
from made_notes import RARE, make_linked_notes, make_notes

# Kinds of a search that are in an index.
INDEXED = ["notebook", "page", "code_snippet", "research_note", "memory"]

MILLIS = "ms CPU"
SYNCS = "fsync,fdatasync,sync_file_range,msync"
COMMITS = "notegate_store_commit_duration_seconds_count"
# A file that was changed a moment ago is read twice.
NEW_SECONDS = 2.2


def metric(gateway, name):
    """The value of one series at /metrics; None: it is not there."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    connection.request("GET", "/metrics")
    found = re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.M)
    connection.close()
    return float(found.group(1)) if found else None


@contextlib.contextmanager
def counted_syncs(pid, path):
    """strace on the process, while the block runs; yields a list that has the number of syncs afterwards."""
    if shutil.which("strace") is None:
        raise Skip("strace is not there")
    tracer = subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-e", "trace=" + SYNCS, "-o", path, "-p", str(pid)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # It says so once it is attached.
    if "attached" not in tracer.stderr.readline():
        tracer.wait()
        raise Skip("strace may not look at another process here")
    found = []
    try:
        yield found
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()
        with open(path) as file:
            found.append(sum(int(count) for count, name in re.findall(r"^\s*(\d+)\s+(\w+)\s*$", file.read(), re.M)
                             if name in SYNCS.split(",")))


class Edited(Group):
    name = "edits of a file"
    bytes_each = 16 * 1024

    def begin(self):
        self.edits = self.sized(50, 3)
        self.server = self.gateway("plugins=file_editor")
        self.path = os.path.join(self.server.data, "files", "edited.txt")
        with open(self.path, "w") as file:
            file.write(("a line of a file that is edited\n" * 1024)[:self.bytes_each])

    def rows(self):
        return [Row("fileEditor, an edit of a 16 KiB file, waits for the disk", self.synced, unit="syncs"),
                Row("fileEditor, an edit of a 16 KiB file, changes of the store", self.committed, unit="commits")]

    def edit(self, number):
        self.call(self.server, "fileEditor", {"command": "insert", "path": self.path, "insert_line": number, "new_str": f"{number}\n"})

    def synced(self):
        self.edit(1)
        with counted_syncs(self.server.pid, os.path.join(self.folder(), "trace")) as found:
            for number in range(self.edits):
                self.edit(number)
        return found[0] / self.edits, f"fsync and fdatasync of the gateway, one agent, {self.edits} edits"

    def committed(self):
        before = metric(self.server, COMMITS)
        if before is None:
            raise SystemExit(f"/metrics has no {COMMITS}")
        cpu = rig.cpu_seconds(self.server.pid)
        for number in range(self.edits):
            self.edit(number)
        used = (rig.cpu_seconds(self.server.pid) - cpu) * 1e6 / self.edits
        return (metric(self.server, COMMITS) - before) / self.edits, f"by /metrics, one agent; {used:.0f} us of CPU per edit"


class Cells(Group):
    """Notebook files of one megabyte, one for each connection."""

    name = "cells of a notebook file"

    def begin(self):
        self.bytes = self.sized(1000000, 20000)
        self.server = self.gateway("plugins=cells")
        self.place = os.path.join(self.server.data, "files")
        for number in range(CONNECTIONS):
            self.write(os.path.join(self.place, f"cells-{number:04}.ipynb"))
        self.plain = os.path.join(self.folder(), "plain.ipynb")
        self.write(self.plain)

    def write(self, path):
        """Cells of people's size, with outputs that are text."""
        cells, size = [], 0
        while size < self.bytes:
            number = len(cells)
            cells.append({"cell_type": "code", "execution_count": number, "id": f"c{number}", "metadata": {},
                          "outputs": [{"name": "stdout", "output_type": "stream", "text": ["a line of output\n"] * 60}],
                          "source": ["import numpy as np\n", f"x = np.arange({number})\n"] + ["y = x.sum() + 1\n"] * 12 + ["y"]})
            size += 2270  # as it is in the file
        with open(path, "w") as file:
            json.dump({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, file, indent=1, sort_keys=True)
            file.write("\n")

    def rows(self):
        size = self.sized("1 MB", "20 KB")
        return [Row(f"getNotebookCells of a {size} notebook, CPU to a plain read", lambda: self.compared(
                    "getNotebookCells", {}, "read"), times(2)),
                Row(f"getNotebookCells, one cell of a {size} notebook, CPU to a plain read", lambda: self.compared(
                    "getNotebookCells", {"cellIds": ["c5"]}, "read"), times(2)),
                Row(f"updateNotebookCell, {size} notebook, CPU to a plain read, write, fsync and rename", lambda: self.compared(
                    "updateNotebookCell", {"cellId": "c5", "content": "changed = ########"}, "replace"), times(2))]

    def compared(self, name, arguments, plain):
        own = {"notebook": os.path.join(self.place, "cells-@@@@.ipynb")} | arguments
        file = self.file((name, str(arguments)), lambda: tool(name, own))
        row, base = self.beside(self.warmed(self.server, file, CONNECTIONS),
                                lambda: self.program("plain_work", plain, self.bench.seconds, self.plain))
        return (row["cpu_us"] / base["cpu_us"], f"{row['cpu_us']:.0f} us to {base['cpu_us']:.0f} us, "
                f"{os.path.getsize(self.plain):,} bytes, {CONNECTIONS} connections with a file each")


class Notes(Group):
    """Search in many notes with a current index."""

    name = "notes"

    def begin(self):
        self.count = self.sized(20000, 50)
        self.notes = os.path.join(self.folder(), "notes")
        make_notes(self.notes, self.count)
        self.server = self.gateway("plugins=opennotes", "opennotes.notebooks=" + self.notes)
        self.arguments = {"query": RARE}
        while "result" not in self.server.call("opennotes_search", self.arguments, timeout=self.bench.left()):
            self.bench.left()  # the index goes on being made
        self.bench.settle(self.server)
        time.sleep(0 if self.small else NEW_SECONDS)

    def rows(self):
        what = f"opennotes_search in {self.sized(20000, 50):,} notes"
        return [Row(f"{what}, warm", self.warm, ("<=", 1, MILLIS)),
                Row(f"{what}, after another program changed one", self.changed, ("<=", 5, MILLIS))]

    def warm(self):
        file = self.file("search", lambda: tool("opennotes_search", self.arguments))
        rows = [self.bench.load(self.server, 1, file) for _ in range(self.bench.rounds + 1)][1:]
        return rig.least_of(rows, "cpu_us") / 1000, f"p50 of one connection {rig.median(rows, 'p50_ms'):.2f} ms"

    def changed(self):
        spent, took = [], []
        names = sorted(name for name in os.listdir(self.notes) if name.endswith(".md"))
        for number in range(self.sized(10, 2)):
            cpu = rig.cpu_seconds(self.server.pid)
            with open(os.path.join(self.notes, names[number]), "a") as file:
                file.write("\nAnother line.\n")
            began = time.perf_counter()
            self.call(self.server, "opennotes_search", self.arguments)
            took.append((time.perf_counter() - began) * 1000)
            spent.append((rig.cpu_seconds(self.server.pid) - cpu) * 1000)
            time.sleep(0 if self.small else NEW_SECONDS)
        return (statistics.median(spent), f"at least {min(spent):.2f} ms; time of a call with its connection "
                f"{statistics.median(took):.2f} ms")


class Linked(Group):
    """Notes that link each other. A folder of them is moved there and back."""

    name = "linked notes"

    def begin(self):
        self.count, self.links, self.folders = self.sized(1000, 40), self.sized(20, 3), 20
        self.notes = os.path.join(self.folder(), "linked")
        make_linked_notes(self.notes, self.count, self.links, self.folders)
        self.server = self.gateway("plugins=opennotes", "opennotes.notebooks=" + self.notes, "roots=" + self.notes)
        self.call(self.server, "opennotes_list", {"limit": 1})  # the index is made now
        self.bench.settle(self.server)

    def rows(self):
        return [Row(f"opennotes_move, one of {self.folders} folders of {self.count:,} notes with {self.count * self.links:,} links",
                    self.moved, ("<=", 2000, "ms"))]

    def moved(self):
        took, links = [], 0
        for number in range(self.sized(6, 2)):
            began = time.perf_counter()
            done = self.call(self.server, "opennotes_move", {"path": ("d3", "e/f3")[number % 2], "to": ("e/f3", "d3")[number % 2]})
            took.append((time.perf_counter() - began) * 1000)
            links = done["links"]
            time.sleep(0 if self.small else NEW_SECONDS)
        return statistics.median(took), f"at most {max(took):.0f} ms; {links} links rewritten"


class Everything(Group):
    """One search over all kinds: many entries, memories and named texts in the store, and many files below a root."""

    name = "a search over everything"

    def begin(self):
        self.entries, self.many_files = self.sized(100000, 100), self.sized(10000, 20)
        self.server = self.gateway("plugins=agent_notebook,notebook,search,file_editor,cells")
        entries = list(made_entries(self.entries))
        self.many(self.server, "notebook_create", entries)
        for tool_name, key, more in (("memory_log", "content", {}), ("notebook", "newStr", {"mode": "create"})):
            self.many(self.server, tool_name, [{key: entry["content"]} | more | ({"name": f"n{number}"} if more else {})
                                               for number, entry in enumerate(entries[:self.entries // 100])])
        place = os.path.join(self.server.data, "files")
        for number in range(self.many_files):
            folder = os.path.join(place, f"f{number // 100}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{number}.txt"), "w") as file:
                file.write(entries[number % len(entries)]["content"] * 4)
        self.call(self.server, "search", {"query": " ".join(WORDS), "kinds": INDEXED})  # the index is made now
        self.bench.settle(self.server)

    def rows(self):
        return [Row(f"search, the first hits of {self.entries:,} entries, memories and named texts, p50 of one connection",
                    lambda: self.searched("words", WORDS, {"kinds": INDEXED}), ("<=", 50, "ms")),
                Row("search, the same with a word of few entries", lambda: self.searched("rare", [RARE_ENTRY], {"kinds": INDEXED}),
                    ("<=", 50, "ms")),
                Row(f"search, all kinds, with {self.many_files:,} files of 4 KB", lambda: self.searched("all", WORDS, {}), unit="ms"),
                *(Row(f"fileEditor search, {what} in {self.many_files:,} files, p50 of one connection to grep -rn",
                      lambda option=option, pattern=pattern: self.as_grep(option, pattern), times(2))
                  for what, option, pattern in (("a text", "-F", RARE_ENTRY), ("an expression", "-E", f"{RARE_ENTRY[:-1]}[a-z]")))]

    def as_grep(self, option, pattern):
        place = os.path.join(self.server.data, "files")
        arguments = {"command": "search", "path": place, "pattern": pattern, "regex": option == "-E"}
        told = self.call(self.server, "fileEditor", arguments).splitlines()[-1]
        if " in 0 files" in told:
            raise SystemExit(f"nothing is found: {told}")
        found = self.file(option, lambda: tool("fileEditor", arguments))

        def grep():
            began = time.perf_counter()
            subprocess.run(["grep", "-rn", option, "--", pattern, place], stdout=subprocess.DEVNULL, timeout=self.bench.left())
            return {"p50_ms": (time.perf_counter() - began) * 1000}

        ours, base = self.beside(lambda: self.bench.load(self.server, 1, found), grep)
        return ours["p50_ms"] / base["p50_ms"], f"{ours['p50_ms']:.1f} ms to {base['p50_ms']:.1f} ms; {told}"

    def searched(self, key, words, more):
        arguments = {"query": " ".join(words)} | more
        found = self.call(self.server, "search", arguments)
        if not found["hits"]:
            raise SystemExit(f"nothing is found by {arguments}")
        file = self.file(key, lambda: tool("search", arguments))
        rows = [self.bench.load(self.server, 1, file) for _ in range(self.bench.rounds + 1)][1:]
        return (rig.median(rows, "p50_ms"), f"{found['total']} hits, complete: {found['complete']}, "
                f"{rig.least_of(rows, 'cpu_us'):.0f} us of CPU")


GROUPS = (Edited, Cells, Notes, Linked, Everything)
