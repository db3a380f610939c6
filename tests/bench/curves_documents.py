# SPDX-License-Identifier: MIT
"""Curves of data: more notebooks, more entries, longer texts, longer histories."""
import time

import rig
from curves import CONNECTIONS, Curve, disk_bytes, tool

WRITERS = 32
HOT = 100
HITS = 10
BASE = 1000
FLAT = 1.5
# A list or a search among many entries, against few.
WIDE = 3.0
FRESH = "the first updates of a page"
LINE = "A line about what an agent has found, long enough to be one.\n"


class Grown(Curve):
    """Two gateways: one keeps BASE documents, the other grows; each measurement is made on both, in turn."""

    smoke, quick, full = (100, 1000), (100, 1000, 10000), (100, 1000, 10000, 100000, 1000000)
    long_from = 100000
    plugins = ""
    bytes_each = 0

    def begin(self):
        self.base, self.grown = (self.gateway("plugins=" + self.plugins) for _ in range(2))
        self.have = {self.base: 0, self.grown: 0}
        self.disk = None
        for gateway in self.have:
            self.make_hot(gateway)
        self.grow(self.base, BASE)

    def make_hot(self, gateway):
        """The documents that are read and written again and again."""

    def grow(self, gateway, size):
        """Until there are so many documents."""
        raise NotImplementedError

    def both(self, chart, name, key, size, loads, limit=None, top=None):
        """One kind of call on both gateways."""
        bench = self.bench
        ours, base = bench.beside(lambda: loads(self.grown), lambda: loads(self.base))
        rule = {"limit": limit, "from": BASE} | ({"to": top} if top else {}) if limit else {}
        self.add(chart, "µs" if key == "cpu_us" else "ms", name, size, ours[key], base[key],
                 f"the same with {BASE:,} documents", **rule)
        return ours, base

    def restarted(self, size):
        """Disk when stopped, time of a start, memory after it."""
        gateway = self.grown
        gateway.stop(keep=True)
        disk = disk_bytes(gateway.data)
        gateway.start()
        self.ask(gateway)
        took = (time.perf_counter() - gateway.began) * 1000
        self.add("start to first answer", "ms", "after a clean stop", size, took)
        self.add("start to first answer", "ms", "CPU of it", size, rig.cpu_seconds(gateway.pid) * 1000)
        if self.disk and size > self.disk[0]:
            each = (disk - self.disk[1]) / (size - self.disk[0])
            self.add("disk per document", "bytes", "since the point before", size, each, self.bytes_each, "its text alone")

    def measured(self, size, calls):
        """Everything that is told of one size. calls: (name, file by gateway, range of chance, limit, where that ends)."""
        bench = self.bench
        self.restarted(size)
        for name, files, among, limit, top in calls:
            def loads(gateway):
                return bench.load(gateway, CONNECTIONS, files[gateway], among=among(gateway))
            for gateway in self.have:
                bench.load(gateway, CONNECTIONS, files[gateway], among=among(gateway), seconds=bench.warm)
            ours, base = self.both("CPU per call", name, "cpu_us", size, loads, limit, top)
            self.add("p99 at full speed", "ms", name, size, ours["p99_ms"], base["p99_ms"], f"the same with {BASE:,} documents")
        memory, base = (rig.memory_mib(gateway.pid) for gateway in (self.grown, self.base))
        self.add("memory", "MiB PSS", "after these calls", size, memory, base, f"the same with {BASE:,} documents")
        # Writes of the measurement do not count for the next size.
        self.grown.stop(keep=True)
        self.disk = (size, disk_bytes(self.grown.data))
        self.grown.start()


class Documents(Grown):
    name, title, x = "documents", "Notebooks of one agent", "notebooks"
    plugins = "notebook"
    about = ("Notebooks of 200 bytes on sqlite. Hot set: the same hundred of them are read and written by chance; any: all of them "
             "are, most of which no memory has.")
    bytes_each = 200

    def begin(self):
        self.newest = {}
        super().begin()

    def text(self):
        return "########" + "y" * (self.bytes_each - 16) + "########"

    def make_hot(self, gateway):
        make = self.file("hot", lambda: tool("notebook", {"mode": "create", "name": "doc-++++++++", "newStr": self.text()}))
        self.bench.load(gateway, CONNECTIONS, make, count=HOT)
        self.have[gateway] = HOT

    def ask(self, gateway):
        self.call(gateway, "notebook", {"mode": "read", "name": "doc-00000001"})

    def grow(self, gateway, size):
        # Names of one form: those of the first load count from 0, those of later ones begin with what was there.
        have = self.have[gateway]
        if size > have:
            name = f"{have}-++++++++"
            make = self.file(name, lambda: tool("notebook", {"mode": "create", "name": name, "newStr": self.text()}))
            self.bench.load(gateway, WRITERS, make, count=size - have)
            self.have[gateway] = size
            self.newest[gateway] = (have, size - have)

    def any_of(self, gateway):
        """A read of any that were made last, and how many these are; of the hot ones where there are no others."""
        have, made = self.newest.get(gateway, (0, 0))
        if not made:
            return self.hot_read, HOT
        name = f"{have}-~~~~~~~~"
        return self.file(name, lambda: tool("notebook", {"mode": "read", "name": name})), made

    def point(self, size):
        self.grow(self.grown, size)
        self.hot_read = self.file("hot read", lambda: tool("notebook", {"mode": "read", "name": "doc-~~~~~~~~"}))
        write = self.file("hot write", lambda: tool("notebook", {"mode": "create", "name": "doc-~~~~~~~~",
                                                                 "newStr": self.text()}))
        wide = {gateway: self.any_of(gateway) for gateway in self.have}

        def always(file):
            return {gateway: file for gateway in self.have}
        self.measured(size, [
            ("read, hot set", always(self.hot_read), lambda _: HOT, FLAT, None),
            ("write, hot set", always(write), lambda _: HOT, FLAT, None),
            ("read, any", {gateway: wide[gateway][0] for gateway in wide}, lambda gateway: wide[gateway][1], None, None)])


class Entries(Grown):
    name, title, x = "entries", "Entries of the agents' notebook", "entries"
    plugins = "agent_notebook"
    about = (f"Pages of a few lines on sqlite, with tags, full-text index and references. A list and the searches answer {HITS} results; "
             f"the rare word is in {HITS} pages whatever their number, the common one in all.")
    bytes_each = 40

    def begin(self):
        self.calls = {}
        super().begin()

    def page(self, title, content="A short page about one of many things"):
        return {"collection": "pages", "title": title, "content": content, "tags": ["bench"]}

    def make_hot(self, gateway):
        for number in range(HITS):
            self.call(gateway, "notebook_create", self.page(f"Zanzibar {number}", "short"))
        self.have[gateway] = HITS
        one = self.call(gateway, "notebook_create", self.page("The page that is read", LINE * 16))["notebook_id"]
        other = self.call(gateway, "notebook_create", self.page("The page that is changed", LINE * 16))["notebook_id"]
        where = {"collection": "pages"}
        self.calls[gateway] = {
            "read": self.file((gateway, "read"), lambda: tool("notebook_read", where | {"notebook_id": one})),
            "update": self.file((gateway, "update"), lambda: tool("notebook_update", where | {
                "notebook_id": other, "content": "######## " + LINE * 16}))}

    def ask(self, gateway):
        self.call(gateway, "notebook_search", {"query": "zanzibar", "limit": 1})

    def grow(self, gateway, size):
        have = self.have[gateway]
        if size > have:
            make = self.file("page", lambda: tool("notebook_create", self.page("Page ++++++++")))
            before = rig.cpu_seconds(gateway.pid)
            self.bench.load(gateway, WRITERS, make, count=size - have)
            # Deferred work for the full-text index counts as part of the writes.
            self.ask(gateway)
            if gateway is self.grown:
                self.add("CPU per call", "µs", "create, index included", size,
                         (rig.cpu_seconds(gateway.pid) - before) * 1e6 / (size - have))
            self.have[gateway] = size

    def point(self, size):
        self.grow(self.grown, size)
        limit = {"limit": HITS}
        shared = {"list": self.file("list", lambda: tool("notebook_list", limit)),
                  "search, rare word": self.file("rare", lambda: tool("notebook_search", limit | {"query": "zanzibar"})),
                  "search, common word": self.file("common", lambda: tool("notebook_search", limit | {"query": "things"}))}
        calls = [(name, {gateway: self.calls[gateway][key] for gateway in self.have}, lambda _: None, FLAT, None)
                 for name, key in (("read, hot set", "read"), ("update, hot set", "update"))]
        limits = {"list": WIDE, "search, rare word": WIDE}
        calls += [(name, {gateway: file for gateway in self.have}, lambda _: None, limits.get(name), 100000)
                  for name, file in shared.items()]
        self.measured(size, calls)


class Sizes(Curve):
    name, title, x = "sizes", "Length of a notebook", "bytes of text"
    about = ("One gateway on sqlite, notebooks of one length each. Read whole beside bare libmicrohttpd that answers as many bytes; the "
             "other calls beside the same on a notebook of 1,000 bytes.")
    smoke, quick, full = (1000, 10000), (1000, 10000, 100000, 1000000), (1000, 10000, 100000, 1000000)
    edits = 25
    smallest = 1000

    def begin(self):
        self.server = self.gateway("plugins=notebook", "notebook.max_size=2MiB")
        self.calls = {}
        self.made(self.smallest)

    def made(self, size):
        """Requests on notebooks of this length."""
        if size not in self.calls:
            text = (LINE * (size // len(LINE) + 1))[:size]
            name = f"of-{size}"
            for number in range(CONNECTIONS):
                self.call(self.server, "notebook", {"mode": "create", "name": f"{name}-{number:04}", "newStr": text})
            which = {"name": name + "-@@@@"}
            middle = size // len(LINE) // 2
            self.calls[size] = {
                "read": self.file((size, "read"), lambda: tool("notebook", which | {"mode": "read"})),
                "lines": self.file((size, "lines"), lambda: tool("notebook", which | {"mode": "read", "readRange": [1, 10]})),
                "insert": self.file((size, "insert"), lambda: tool("notebook", which | {
                    "mode": "write", "insertLine": middle, "newStr": "x"})),
                "replace": self.file((size, "replace"), lambda: tool("notebook", which | {
                    "mode": "create", "newStr": text[:size // 2] + "########" + text[size // 2 + 8:]}))}
        return self.calls[size]

    def point(self, size):
        bench, calls, small = self.bench, self.made(size), self.made(self.smallest)
        bare = rig.Bare(bench.out, len(rig.body_of(self.server.port, calls["read"])))
        try:
            ours, base = bench.beside(lambda: bench.load(self.server, CONNECTIONS, calls["read"]),
                                      lambda: bench.load(bare, CONNECTIONS, calls["read"]))
        finally:
            bare.stop()
        self.add("CPU per call", "µs", "read whole", size, ours["cpu_us"], base["cpu_us"], "bare libmicrohttpd, as many bytes")
        self.latencies("latency of a read at full speed", size, ours, base, "bare libmicrohttpd, as many bytes")
        baseline = f"the same on {self.smallest:,} bytes"
        ours, base = bench.beside(lambda: bench.load(self.server, CONNECTIONS, calls["lines"]),
                                  lambda: bench.load(self.server, CONNECTIONS, small["lines"]))
        self.add("CPU per call", "µs", "read ten lines", size, ours["cpu_us"], base["cpu_us"], baseline)
        for key, name in (("insert", "insert a line in the middle"), ("replace", "replace, few bytes differ")):
            # So few that the length stays what it is.
            count = CONNECTIONS * self.edits
            before = disk_bytes(self.server.data)
            ours, base = bench.beside(lambda: bench.load(self.server, CONNECTIONS, calls[key], count=count),
                                      lambda: bench.load(self.server, CONNECTIONS, small[key], count=count))
            self.add("CPU per call", "µs", name, size, ours["cpu_us"], base["cpu_us"], baseline)
            each = (disk_bytes(self.server.data) - before) / (2 * count * bench.rounds)
            self.add("disk per revision", "bytes", name + " (with as many of 1,000 bytes)", size, max(each, 0.1))


class Revisions(Curve):
    name, title, x = "revisions", "History of one entry", "revisions"
    about = ("One page of the agents' notebook is changed again and again, all of its versions are kept. Each call beside the same "
             "on a page with 100 versions, on the same gateway.")
    smoke, quick, full = (10, 100), (10, 100, 1000, 10000), (10, 100, 1000, 10000, 100000)
    long_from = 100000
    base_size = 100
    # Measured in one round.
    updates = 500

    def begin(self):
        self.server = self.gateway("plugins=agent_notebook")
        self.pages = {}
        for which, size in (("base", self.base_size), ("grown", 10)):
            page = self.call(self.server, "notebook_create", {"collection": "pages", "title": which, "content": LINE * 16})
            self.pages[which] = {"collection": "pages", "notebook_id": page["notebook_id"]}
            self.bench.load(self.server, WRITERS, self.update(which), count=size - 1)
        self.have = 10

    def update(self, key, which=None):
        which = which or key
        return self.file(key + " update", lambda: tool("notebook_update", self.pages[which] | {
            "content": LINE * 8 + "########\n" + LINE * 8}))

    def calls(self, which, size):
        """(name, limit, request) on one of the pages, which has so many versions."""
        page = self.pages[which]
        for name, limit, call, more in (
                ("read newest", FLAT, "notebook_read", {}), ("read the first version", None, "notebook_read", {"version": 1}),
                ("read the middle version", None, "notebook_read", {"version": size // 2}),
                ("history, newest ten", WIDE, "notebook_history", {"limit": HITS}),
                ("history, oldest ten", None, "notebook_history", {"limit": HITS, "offset": max(0, size - HITS)}),
                ("diff of the newest two", WIDE, "notebook_diff", {"from": size - 1, "to": size})):
            yield name, limit, self.file((which, size, name), lambda: tool(call, page | more))

    def fresh(self):
        """A page that has no history yet."""
        page = self.call(self.server, "notebook_create", {"collection": "pages", "title": "fresh", "content": LINE * 16})
        self.pages["fresh"] = {"collection": "pages", "notebook_id": page["notebook_id"]}
        return self.update("fresh " + page["notebook_id"], "fresh")

    def grow(self, size):
        """The last of the updates are measured, beside the first of other pages."""
        bench, left = self.bench, size - self.have
        each = min(left, self.updates * bench.rounds) // bench.rounds
        self.server.stop(keep=True)
        before = disk_bytes(self.server.data)
        self.server.start()
        if left > each * bench.rounds:
            bench.load(self.server, WRITERS, self.update("grown"), count=left - each * bench.rounds)
        bench.settle(self.server)
        ours, base = bench.beside(lambda: bench.load(self.server, CONNECTIONS, self.update("grown"), count=each),
                                  lambda: bench.load(self.server, CONNECTIONS, self.fresh(), count=each))
        self.add("CPU per call", "µs", "update", size, ours["cpu_us"], base["cpu_us"], FRESH, limit=FLAT)
        self.server.stop(keep=True)
        written = left + each * bench.rounds
        self.add("disk per revision", "bytes", "revision, reference and event", size,
                 (disk_bytes(self.server.data) - before) / written, 17 * len(LINE), "the text whole")
        self.server.start()
        self.have += left

    def point(self, size):
        bench, baseline = self.bench, f"the same on a page with {self.base_size} versions"
        if size > self.have:
            self.grow(size)
        for (name, limit, ours), (_, _, base) in zip(self.calls("grown", size), self.calls("base", self.base_size)):
            row, other = bench.beside(lambda: bench.load(self.server, CONNECTIONS, ours),
                                      lambda: bench.load(self.server, CONNECTIONS, base))
            rule = {"limit": limit, "from": self.base_size} if limit else {}
            self.add("CPU per call", "µs", name, size, row["cpu_us"], other["cpu_us"], baseline, **rule)
            self.add("p99 at full speed", "ms", name, size, row["p99_ms"], other["p99_ms"], baseline)
        self.add("memory", "MiB PSS", "after these calls", size, rig.memory_mib(self.server.pid))
