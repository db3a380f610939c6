# SPDX-License-Identifier: MIT
"""Rows of the agents' notebook on sqlite: reading, listing, searching and writing entries, and the memory."""
import random
import sqlite3
import time

import rig
from curves import tool
from entries import CLIENTS, PLUGINS, Group, Row, micros, times
from made_notes import make_vocabulary

BYTES = 1000
# A memory is a line or two, and so is what the plain writer writes beside it.
MEMORY_BYTES = 200
LIMIT = 10
TAGS = 20
STATUSES = ("draft", "in_progress", "complete", "archived")
COLLECTIONS = ("pages", "code_snippets", "pages", "research_notes")
# Two words, and in each how many-th entry they are: in all collections.
WORDS = {"zanzibar": 21, "quetzal": 31}
# A word of few entries, however many there are.
RARE, RARE_HITS = "vantablack", 10
COMMON = "things"
# One that no entry has.
NO_WORD = '"0badcafe"'
# History of an entry is kept up to a bound: updates of younger ones cost less.
SETTLED_UPDATES = 130
# As the gateway weighs them: title, summary, text.
WEIGHTS = "8.0,3.0,1.0"


def text_of(size, start=""):
    """A text of that many bytes that begins so."""
    line = "A line about what an agent has found, long enough to be one of many things.\n"
    return (start + line * (size // len(line) + 1))[:size]


def made_entries(count):
    """Entries with the words of people: the same in every run."""
    rng = random.Random(1)
    vocabulary, sums = make_vocabulary(rng)
    for number in range(count):
        words = rng.choices(vocabulary, cum_weights=sums, k=BYTES // 5)
        for word, each in [*WORDS.items(), (RARE, count // RARE_HITS)]:
            if number % each == 0:
                words.insert(rng.randrange(20), word)
        lines = [" ".join(words[i:i + 12]) for i in range(0, len(words), 12)]
        yield {"collection": COLLECTIONS[number % len(COLLECTIONS)], "title": " ".join(words[-4:]).capitalize(),
               "summary": " ".join(words[-16:-4]), "content": "\n".join(lines)[:BYTES], "tags": ["bench", f"t{number % TAGS}"],
               "status": STATUSES[number // TAGS % len(STATUSES)]}


class Made(Group):
    """A gateway with that many entries."""

    name = "entries that are read"
    size = 1000

    def begin(self):
        self.count = self.sized(self.size, 100)
        self.server = self.gateway(PLUGINS)
        self.entries = list(made_entries(self.count))
        self.many(self.server, "notebook_create", self.entries)
        self.search(WORDS)  # the index is made now
        self.bench.settle(self.server)

    def search(self, words, **more):
        return self.call(self.server, "notebook_search", {"query": " ".join(words), "limit": LIMIT} | more)

    def rows(self):
        count = f"{self.sized(self.size, 100):,}"
        newest = f"notebook_list, the {LIMIT} newest of {count} entries"
        return [Row("notebook_read, CPU to the plain `notebook` read", self.read, times(2)),
                Row(f"{newest}, CPU", lambda: self.listed("all", {}), micros(25)),
                Row(f"{newest}, one collection, CPU", lambda: self.listed("one", {"collection": "pages"}), micros(25)),
                Row(f"{newest} with a tag, CPU", lambda: self.listed("tag", {"tags": ["t3"]}), micros(40)),
                Row(f"{newest} of a status, CPU", lambda: self.listed("status", {"status": "complete"}), micros(40)),
                Row(f"{newest} with a tag or another, each list asked for once, CPU",
                    lambda: self.listed("tags", {"tags": ["t3", "++++++++"]}), None, "us"),
                *self.searches(count)]

    def searches(self, count):
        words = f"notebook_search, two words of {count} entries"
        rare = f"notebook_search, a word of {RARE_HITS} of {count} entries"
        once, search = ", each search asked for once, CPU to FTS5", times(1.5)
        pages = {"collection": "pages"}
        return [Row(f"{words}, CPU to FTS5", lambda: self.searched("all_entries", WORDS, {}), search),
                Row(f"{words}, one collection, CPU to FTS5", lambda: self.searched("pages", WORDS, pages), search),
                Row(f"{words}, one collection{once}", lambda: self.searched("pages", WORDS, pages, "++++++++"), search),
                Row(f"{rare}{once}", lambda: self.searched("all_entries", [RARE], {}, "++++++++"), search)]

    def read(self):
        entry = next(entry for entry in self.entries if entry["collection"] == "pages")
        self.call(self.server, "notebook", {"mode": "create", "name": "plain", "newStr": entry["content"]})
        made = self.call(self.server, "notebook_create", entry)["notebook_id"]
        plain = self.file("plain", lambda: tool("notebook", {"mode": "read", "name": "plain"}))
        read = self.file("read", lambda: tool("notebook_read", {"collection": "pages", "notebook_id": made}))
        ours, base = self.beside(self.warmed(self.server, read), self.warmed(self.server, plain))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.1f} us to {base['cpu_us']:.1f} us, {BYTES} bytes"

    def listed(self, key, filters):
        arguments = {"limit": LIMIT} | filters
        answer = self.call(self.server, "notebook_list", arguments)
        if not answer["results"]:
            raise SystemExit(f"nothing is listed with {filters}")
        return self.cpu(self.server, self.file(key, lambda: tool("notebook_list", arguments)), f"; of {answer['total']}")

    def table(self):
        """An FTS5 table for all of them, and one for the pages."""
        path = self.folder() + "/fts5.db"
        database = sqlite3.connect(path)
        with database:
            for name in ("all_entries", "pages"):
                database.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(title, summary, content, "
                                 "tokenize='porter unicode61')")
                database.executemany(f"INSERT INTO {name} VALUES (:title, :summary, :content)",
                                     [entry for entry in self.entries if name in ("all_entries", entry["collection"])])
        database.close()
        return path

    def searched(self, table, words, filters, also=""):
        """also: one more word, which no entry has; the baseline has one of the same length."""
        path = self.once("table", self.table)
        match = " OR ".join(f'"{word}"' for word in words)
        database = sqlite3.connect(path)
        hits = database.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (match,)).fetchone()[0]
        database.close()
        total = self.search(words, **filters)["total"]
        # The entry that is read may be there twice.
        if not hits <= total <= hits + 1:
            raise SystemExit(f"the search finds {total} entries, FTS5 {hits}")
        query = " ".join([*words, also]).strip()
        file = self.file((query, table), lambda: tool("notebook_search", {"query": query, "limit": LIMIT} | filters))
        if also:
            match += " OR " + NO_WORD
        ours, base = self.beside(
            self.warmed(self.server, file),
            lambda: self.program("plain_work", "search", self.bench.seconds, path, table, match, WEIGHTS))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.0f} us to {base['cpu_us']:.0f} us, {hits} hits"


class Grown(Made):
    """The searches again, where there are many entries."""

    name = "many entries that are searched"
    size = 100000

    def rows(self):
        return self.searches(f"{self.sized(self.size, 100):,}")


class Long(Group):
    """Entries of 1 MB: the time of a search is not that of their texts."""

    name = "long entries"
    WORD, HITS = "zanzibar", 10

    def begin(self):
        self.count, self.bytes = self.sized(40, 20), self.sized(1000000, 20000)
        self.server = self.gateway(PLUGINS)
        rng = random.Random(1)
        vocabulary, sums = make_vocabulary(rng)
        self.entries = []
        for number in range(self.count):
            words = rng.choices(vocabulary, cum_weights=sums, k=self.bytes // 8)
            if number < self.HITS:  # the last of them far behind
                words[len(words) * (number + 1) // self.HITS - 1] = self.WORD
            self.entries.append({"collection": "pages", "title": f"Long {number}", "summary": "", "content": " ".join(words)})
        self.many(self.server, "notebook_create", self.entries)
        found = self.search()
        if found["total"] != self.HITS or not all(self.WORD in one["excerpt"] for one in found["results"]):
            raise SystemExit("the search does not show all hits")
        self.bench.settle(self.server)

    def search(self):
        return self.call(self.server, "notebook_search", {"query": self.WORD, "collection": "pages", "limit": LIMIT})

    def rows(self):
        return [Row(f"notebook_search, a word in {self.HITS} of {self.count} entries of {self.bytes:,} bytes, each search asked for "
                    "once, CPU to FTS5", self.searched, times(1.5))]

    def searched(self):
        path = self.folder() + "/fts5.db"
        database = sqlite3.connect(path)
        with database:
            database.execute("CREATE VIRTUAL TABLE pages USING fts5(title, summary, content, tokenize='porter unicode61')")
            database.executemany("INSERT INTO pages VALUES (:title, :summary, :content)", self.entries)
        database.close()
        query = {"query": f"{self.WORD} ++++++++", "collection": "pages", "limit": LIMIT}
        ours, base = self.beside(
            self.warmed(self.server, self.file("search", lambda: tool("notebook_search", query))),
            lambda: self.program("plain_work", "search", self.bench.seconds, path, "pages", f'"{self.WORD}" OR {NO_WORD}', WEIGHTS))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.0f} us to {base['cpu_us']:.0f} us"


class Common(Group):
    """The same search on gateways with few entries and with many."""

    name = "a word that is everywhere"

    def begin(self):
        self.few = self.sized(1000, 50)
        self.have = {}
        self.base, self.grown = (self.gateway(PLUGINS) for _ in range(2))
        self.make = self.file("make", lambda: tool("notebook_create", {
            "collection": "pages", "title": "Page ++++++++", "content": text_of(BYTES, "One of ~~~~~~~~. "), "tags": ["bench"]}))
        # One for each client, so that none is answered from memory.
        self.find = [self.file(("find", more), lambda more=more: tool("notebook_search", {"query": COMMON, "limit": LIMIT + more}))
                     for more in range(CLIENTS)]
        self.grow(self.base, self.few)

    def rows(self):
        sizes = [(self.sized(100000, 200), times(10))] + ([(1000000, times(15))] if self.mode == "full" else [])
        few = self.sized(1000, 50)
        return [Row(f"notebook_search, a word in each of {size:,} entries, CPU to {few:,}", lambda size=size: self.search(size), limit)
                for size, limit in sizes]

    def grow(self, gateway, size):
        """Until there are so many, and all are in the index."""
        have = self.have.get(gateway, 0)
        self.load(gateway, self.make, count=size - have, among=1000)
        self.have[gateway] = size
        while True:
            answer = gateway.call("notebook_search", {"query": COMMON, "limit": 1}, timeout=self.bench.left(),
                                  headers={"X-Notegate-Agent": "bench", "X-Notegate-Space": "bench"})
            if answer.get("result", {}).get("total") == size or answer.get("result", {}).get("at_least"):
                break
            if "result" in answer:
                raise SystemExit(f"{answer['result']['total']} of {size} entries are found")
            self.bench.left()  # its time was up: the index goes on being made
        self.bench.settle(gateway)

    def search(self, size):
        self.grow(self.grown, size)
        ours, base = self.beside(lambda: self.first_time(self.grown), lambda: self.first_time(self.base))
        return ours["cpu_us"] / base["cpu_us"], f"{ours['cpu_us']:.0f} us to {base['cpu_us']:.0f} us"


    def first_time(self, gateway):
        """After a change: no search is known. One for each client: all that begin are answered."""
        self.call(gateway, "notebook_create", {"collection": "pages", "title": "Other", "content": "Nothing."})
        self.call(gateway, "notebook_search", {"query": "nothing", "limit": 1})  # the index is up to date
        return self.load(gateway, self.find, count=CLIENTS)


class Written(Group):
    """32 agents that write, each call durable when it is answered."""

    name = "entries that are written"

    def begin(self):
        self.server = self.gateway(PLUGINS)

    def rows(self):
        kinds = (("notebook_create", self.create, BYTES, 80), ("notebook_update", self.update, BYTES, 80),
                 ("memory_log", self.log, MEMORY_BYTES, None))
        rows = []
        for name, make, size, most in kinds:
            rows.append(Row(f"{name}, {CLIENTS} agents, rate to a plain sqlite writer",
                            lambda name=name, make=make, size=size: self.rate(name, make, size), (">=", 2.5, "times")))
            rows.append(Row(f"{name}, {CLIENTS} agents, CPU", lambda name=name, make=make, size=size: self.used(name, make, size),
                            most and micros(most), "us"))
        return rows

    def create(self):
        return self.file("create", lambda: tool("notebook_create", {
            "collection": "pages", "title": "Page ++++++++", "content": text_of(BYTES, "########\n"), "tags": ["bench", "t@@@@"]},
            agent="bench-@@@@"))

    def update(self):
        """Each agent has an entry of its own, whose history is as long as it gets."""
        page = {"collection": "pages", "title": "Page", "content": text_of(BYTES), "tags": ["bench"]}
        made = self.many(self.server, "notebook_create", [page] * CLIENTS)
        # Head and tail change with every write, so that no revision is cheap to keep.
        content = "########\n" + text_of(BYTES - 18) + "\n########"
        files = [self.file(("update", number), lambda entry=entry: tool("notebook_update", {
            "collection": "pages", "notebook_id": entry["notebook_id"], "content": content}, agent="bench-@@@@"))
            for number, entry in enumerate(made)]
        self.load(self.server, files, count=CLIENTS * self.sized(SETTLED_UPDATES, 2))
        return files

    def log(self):
        return self.file("log", lambda: tool("memory_log", {"content": text_of(MEMORY_BYTES, "Thing ######## that happened. ")},
                                             agent="bench-@@@@"))

    def written(self, name, make, size):
        """Rows of ours and of the plain writer, and the CPU with what the gateway does later: index, references."""
        file = self.once(("file", name), make)
        spent = []

        def ours():
            before = rig.cpu_seconds(self.server.pid)
            row = self.load(self.server, file)
            self.bench.settle(self.server)
            spent.append((rig.cpu_seconds(self.server.pid) - before) * 1e6 / row["answered"])
            return row

        self.load(self.server, file, seconds=self.bench.warm)
        self.bench.settle(self.server)
        return *self.beside(ours, lambda: self.plain_writer(size)), min(spent)

    def rate(self, name, make, size):
        ours, plain, _ = self.once(name, lambda: self.written(name, make, size))
        return ours["rate"] / plain["rate"], f"{ours['rate']:.0f}/s to {plain['rate']:.0f}/s, {size} bytes"

    def used(self, name, make, size):
        ours, plain, spent = self.once(name, lambda: self.written(name, make, size))
        return ours["cpu_us"], f"{spent:.1f} us with index and references; {plain['cpu_us']:.1f} us by the plain writer"


class Recalled(Group):
    """The memory of a team, in the journal on sqlite."""

    name = "memories"
    # Each word of this kind is in so many memories.
    hits = 10

    def begin(self):
        self.count = self.sized(100000, 200)
        self.words = self.count // self.hits
        self.server = self.gateway(PLUGINS)
        log = self.file("log", lambda: tool("memory_log", {
            "content": text_of(MEMORY_BYTES, "Thing ~~~~~~~~ that happened. ")}, agent="bench-@@@@"))
        self.load(self.server, log, count=self.count, among=self.words)
        while self.call(self.server, "memory_recall", {"query": "nothing"}).get("backlog"):
            self.bench.left()
            time.sleep(0.1)
        self.bench.settle(self.server)

    def rows(self):
        return [Row(f"memory_recall, a word of some of {self.sized(100000, 200):,} memories, CPU", self.recall, micros(100))]

    def recall(self):
        file = self.file("recall", lambda: tool("memory_recall", {"query": "~~~~~~~~", "limit": LIMIT}))
        return self.cpu(self.server, file, f"; about {self.hits} hits", among=self.words)


GROUPS = (Made, Grown, Long, Common, Written, Recalled)
