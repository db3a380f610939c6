# SPDX-License-Identifier: MIT
"""Rows of what every call pays: the protocols beside bare libmicrohttpd, memory, and round trips to shared databases."""
import contextlib
import os
import re
import shutil
import subprocess

import budgets
import rig
from curves import tool
from curves_team import Gateways, mongo_line
from entries import CLIENTS, PLUGINS, Group, Row, Skip, times
from entries_notebook import BYTES, WORDS, made_entries, text_of
from servers import Missing

ALLOCATORS = re.compile(r"_*(libc_)?(int_)?(malloc|free|cfree|realloc|calloc|memalign|aligned_alloc)(_consolidate)?($|@)|"
                        r"tcache_|unlink_chunk|sysmalloc|systrim|alloc_perturb")


class Protocols(Group):
    name = "protocols"

    def begin(self):
        self.server = self.gateway()
        self.server.call("notebook", {"mode": "create", "name": "notes", "newStr": "a line of notes\n" * 4})

    def rows(self):
        kinds = [("rest", "REST", 1.4)] + [(key, era[1], 1.8) for key, era in budgets.ERAS.items()]
        rows = [Row(f"read over {name}, CPU to bare libmicrohttpd", lambda key=key: self.ratio(key), times(most))
                for key, name, most in kinds]
        return [*rows, Row("p99 of reads at half the peak rate", self.paced, ("<=", 1, "ms"))]

    def reads(self):
        reads, paced, files = budgets.read_rows(self.bench, self.bench.out, self.server)
        for file in files.values():
            os.unlink(file)
        return reads, paced

    def ratio(self, key):
        reads, _ = self.once("reads", self.reads)
        cpu, bare = (rig.least_of(reads[name], "cpu_us") for name in (key, "bare " + key))
        return cpu / bare, f"{cpu:.2f} us to {bare:.2f} us"

    def paced(self):
        _, paced = self.once("reads", self.reads)
        return rig.median(paced, "p99_ms"), f"p50 {rig.median(paced, 'p50_ms'):.3f} ms"


class Memory(Group):
    """What reads leave behind, and what they spend on memory."""

    name = "memory of reads"

    def begin(self):
        self.count = self.sized(200000, 500)
        self.server = self.gateway(PLUGINS)
        # Memory that other calls have used and given back makes the next allocations dearer.
        made = self.many(self.server, "notebook_create", made_entries(self.sized(1000, 100)))
        self.call(self.server, "notebook_search", {"query": " ".join(WORDS)})
        page = next(entry for entry in made if entry["collection"] == "pages")
        self.read = self.file("read", lambda: tool("notebook_read", {"collection": "pages", "notebook_id": page["notebook_id"]}))

    def rows(self):
        return [Row(f"notebook_read, growth of memory over {self.sized(200000, 500):,} calls", self.growth, ("<", 1, "byte a call")),
                Row("notebook_read, share of malloc, realloc and free", self.share, ("<=", 5, "% of CPU"))]

    def growth(self):
        """Pools and caches have their size after the first calls."""
        self.load(self.server, self.read, count=self.count // 4)
        self.bench.settle(self.server)
        before = rig.memory_mib(self.server.pid)
        self.load(self.server, self.read, count=self.count)
        self.bench.settle(self.server)
        after = rig.memory_mib(self.server.pid)
        return (after - before) * 1048576 / self.count, f"PSS {before:.2f} MiB before, {after:.2f} MiB after"

    def share(self):
        if shutil.which("perf") is None:
            raise Skip("perf is not there")
        path = os.path.join(self.folder(), "perf.data")
        seconds = max(4 * self.bench.seconds, 1)
        # Until it is ended: perf takes its time to begin.
        load = subprocess.Popen(rig.load_command(self.bench.out, self.server.port, CLIENTS, self.bench.left(), self.read),
                                stdout=subprocess.DEVNULL)
        try:
            done = subprocess.run(["perf", "record", "-q", "-F", "4000", "-o", path, "-p", str(self.server.pid), "--", "sleep",
                                   str(seconds)], capture_output=True, text=True, timeout=self.bench.left())
        finally:
            load.terminate()
            load.wait()
        if done.returncode != 0:
            raise Skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
        report = subprocess.run(["perf", "report", "-i", path, "--stdio", "--no-children", "-q", "--sort", "dso,symbol",
                                 "-t", ";"], capture_output=True, text=True, timeout=self.bench.left())
        found = re.findall(r"^\s*([\d.]+)%?\s*;\s*(\S+)\s*;\s*\[.\]\s+(\S+)", report.stdout, re.M)
        if not any(place == "notegate" for _, place, _ in found):
            raise SystemExit("perf has recorded nothing of the reads")
        parts = {}
        for share, place, name in found:
            if place.startswith("libc") and ALLOCATORS.match(name):
                parts[name] = parts.get(name, 0) + float(share)
        return sum(parts.values()), ", ".join(f"{name} {share:.1f}" for name, share in sorted(parts.items(), key=lambda part: -part[1])[:4])


class Shared(Gateways, Group):
    """One gateway on MongoDB and Redis."""

    name = "entries on MongoDB and Redis"

    def __init__(self, bench, mode):
        Group.__init__(self, bench, mode)

    def begin(self):
        if self.small:
            raise Skip("not with --smoke")
        try:
            Gateways.begin(self)
        except Missing as missing:
            raise Skip(str(missing)) from None
        self.add_gateway()
        self.server = self.gateways[0]
        page = {"collection": "pages", "title": "Page", "content": text_of(BYTES)}
        made = self.many(self.server, "notebook_create", [page] * (CLIENTS + 1))
        self.pages = [{"collection": "pages", "notebook_id": one["notebook_id"]} for one in made]

    def rows(self):
        rows = []
        for name, make, most in (("notebook_read", self.reading, 1), ("notebook_update", self.updating, 2)):
            rows.append(Row(f"{name} on MongoDB and Redis, round trips", lambda name=name, make=make: self.counted_trips(name, make),
                            ("<=", most, "round trips")))
            rows.append(Row(f"{name} on MongoDB and Redis, CPU", lambda name=name, make=make: self.used(name, make), unit="us"))
        return rows

    def reading(self, _number, page):
        return page

    def updating(self, number, page):
        return page | {"content": f"######## {number}\n" + text_of(BYTES)}

    def counted_trips(self, name, make):
        try:
            line = mongo_line(self.mongo.port)
        except ImportError as missing:
            raise Skip(f"the Python of build/venv is needed: {missing}") from None
        with contextlib.closing(line):
            gateway = self.gateway_at(line.uri)
            calls = [make(number, self.pages[number]) for number in range(self.counted)]
            self.call(gateway, name, make(0, self.pages[-1]))  # its first one finds out what there is
            found = self.trips(line, gateway, name, calls)
            gateway.stop()
        return found, "that one call waits for, in a gateway that has not read the entry before"

    def used(self, name, make):
        files = [self.file((name, number), lambda: tool(name, make(number, page)))
                 for number, page in enumerate(self.pages[:CLIENTS])]
        self.load(self.server, files, seconds=self.bench.warm)
        rows = []
        for _ in range(self.bench.rounds):
            before = self.servers_cpu()
            rows.append(self.load(self.server, files))
            rows[-1]["servers_us"] = (self.servers_cpu() - before) * 1e6 / rows[-1]["answered"]
        return rig.least_of(rows, "cpu_us"), (f"the gateway's own; {rig.least_of(rows, 'servers_us'):.0f} us by the databases, "
                                              f"{rig.median(rows, 'rate'):.0f}/s")


GROUPS = (Protocols, Memory, Shared)
