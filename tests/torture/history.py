# SPDX-License-Identifier: MIT
"""A history: many clients read and write through all gateways while one fault follows another; every operation is written down.

tests/torture/check says whether it is linearizable. All choices come from the seed; the order of the answers does not.
"""
import collections
import datetime
import json
import os
import random
import shutil
import subprocess
import tempfile
import time

from faults import Faults
from gateways import SOURCE, Databases, System, build_shim, default_binary
from history_clients import Client, History, Reader, Shared

HERE = os.path.dirname(os.path.abspath(__file__))
GATEWAYS = {"sqlite": 1, "cluster": 3}
GATEWAY_FAULTS = ("kill", "freeze", "cut", "delay", "hour")
DATABASE_FAULTS = ("kill_mongo", "freeze_mongo", "cut_database", "delay_database", "flush_redis")
FAULTS = {"sqlite": GATEWAY_FAULTS, "cluster": GATEWAY_FAULTS + DATABASE_FAULTS}
# Length of a fault, and of the time without one behind it.
FAULT_SECONDS, HEALTHY_SECONDS = (0.2, 1.2), (0.3, 1.0)
LOOK_SECONDS = 0.02
STORY_SECONDS = 10
# What catches up with a backlog may take as long as it likes, but not stand still for longer than this.
STILL_SECONDS = 90
FENCE = "fence"
PLUGINS = "notebook,agent_notebook"
TIMELINE_ROWS = 1000
# Never full: that is a fault of the rounds.
DISK = "8G"


class Failed(Exception):
    """The history could not be made."""


def module(folder):
    """The module with the tools that change several documents."""
    path = os.path.join(folder, "together.so")
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DNG_ABI=1", f"-I{SOURCE}/core/include",
                    "-o", path, os.path.join(HERE, "together.c")], check=True)
    return path


def today():
    return datetime.datetime.now(datetime.timezone.utc).date()


class Recording:
    def __init__(self, folder, kind, seed, operations, clients=16, gateways=None, faults=None, binary=None,
                 minutes=None):
        self.folder, self.kind, self.seed, self.operations = os.path.abspath(folder), kind, seed, operations
        self.client_count, self.gateway_count = clients, gateways or GATEWAYS[kind]
        self.seconds = minutes * 60 if minutes else float("inf")
        self.kinds = FAULTS[kind] if faults is None else tuple(faults)
        self.binary = os.path.abspath(binary or default_binary())
        self.rng = random.Random(f"{seed}-faults")
        os.makedirs(self.folder, exist_ok=True)
        if os.listdir(self.folder):
            raise Failed(f"{self.folder} is not empty")
        self.rig = tempfile.mkdtemp(prefix="notegate-history-")
        self.databases = Databases()
        self.broken = []       # what has failed, in order: the history is ended all the same
        self.told_at = self.told_count = 0

    def again(self):
        words = ["tests/torture/run --history DIR", f"--kind {self.kind} --seed {self.seed} --operations {self.operations}",
                 f"--clients {self.client_count} --gateways {self.gateway_count}"]
        return " ".join(words + ([f"--faults {','.join(self.kinds)}"] if self.kinds != FAULTS[self.kind] else []))

    def tell(self, *words):
        self.story.write(f"{time.monotonic() - self.began:8.2f} {' '.join(map(str, words))}\n")

    # ---- the parts

    def start(self):
        self.system = System(self.kind, self.rig, self.seed, self.binary, build_shim(self.rig), self.databases,
                             self.gateway_count, f"{PLUGINS},{module(self.rig)}", DISK)
        if self.kind == "cluster":
            # In memory, where the system can: a kill -9 loses nothing there, and a sync costs nothing.
            self.databases.want(1, self.system.disk)
        self.system.start()
        self.faults = Faults(self.system, self.rng)
        self.first_day = today()
        self.tell("ready")
        files = [self.system.port_file(gateway.name) for gateway in self.system.gateways]
        self.shared = Shared(self.folder, files, self.seed, self.operations)
        self.clients = [Client(self.shared, process) for process in range(self.client_count)]
        self.last = Client(self.shared, self.client_count)
        fence = f"notebooks/shared/{FENCE}"
        self.readers = [Reader(self.shared, f"feed-{number}", file, fence) for number, file in enumerate(files)]
        for each in self.readers + self.clients:
            each.start()

    def counts(self):
        return sum((client.counts for client in self.clients), collections.Counter())

    def tell_progress(self):
        now, count = time.monotonic(), self.shared.begun
        if now - self.told_at >= STORY_SECONDS:
            counts = self.counts()
            self.tell(count, "operations,", f"{(count - self.told_count) / (now - self.told_at):.0f}/s:",
                      ", ".join(f"{counts[kind]} {kind}" for kind in ("ok", "fail", "unknown")))
            self.told_at, self.told_count = now, count

    def look(self):
        self.tell_progress()
        if time.monotonic() - self.began > self.seconds:
            self.shared.halt.set()
        for gateway in self.system.gateways:
            code = gateway.look()
            if code is not None:
                expected = gateway.port is None and code == 1 and self.faults.active
                gateway.start()
                if not expected:
                    raise Failed(f"{gateway.name} ended with {code}; see {gateway.log}")
        if self.shared.wrong:
            raise Failed("; ".join(self.shared.wrong))

    def working(self):
        return any(client.is_alive() for client in self.clients)

    def for_a_while(self, seconds):
        end = time.monotonic() + self.rng.uniform(*seconds)
        while time.monotonic() < end and self.working():
            self.look()
            time.sleep(LOOK_SECONDS)

    def torture(self):
        turn = []
        self.told_at = time.monotonic()
        while self.working():
            self.for_a_while(HEALTHY_SECONDS)
            if not self.kinds:
                continue
            turn = turn or self.rng.sample(self.kinds, len(self.kinds))
            if self.working():
                self.tell("begins:", self.faults.begin(turn.pop()), "at", self.shared.begun)
            self.for_a_while(FAULT_SECONDS)
            self.faults.end()
            self.tell("ends at", self.shared.begun)

    def heal(self):
        """Nothing is wrong any more, whatever has failed, and no client is at work."""
        self.shared.halt.set()
        while self.faults.active:
            self.survive(self.faults.end)
        for server in filter(None, (self.databases.mongo, self.databases.redis)):
            if not server.runs():
                server.restart()
        for gateway in self.system.gateways:
            if gateway.look() is not None:
                gateway.start()
        self.system.wait_ready()
        for client in self.clients:
            client.join()
        self.tell("healed")

    def restart(self):
        """All gateways end and start: no call of before is still under way, and only what is stored is there."""
        self.system.wait_ready()
        for gateway in self.system.gateways:
            code = gateway.end()
            if code != 0:
                raise Failed(f"{gateway.name}: SIGTERM ended with {code}; see {gateway.log}")
        for gateway in self.system.gateways:
            gateway.start()
        self.system.wait_ready()

    @staticmethod
    def catch_up(what, place):
        """Waits until place() is None, for as long as it changes."""
        before, since = None, time.monotonic()
        while (now := place()) is not None:
            if now != before:
                before, since = now, time.monotonic()
            if time.monotonic() - since > STILL_SECONDS:
                raise Failed(f"{what}: no progress within {STILL_SECONDS} s, at {now}")
            time.sleep(LOOK_SECONDS)

    def timeline(self, day, offset=0, limit=TIMELINE_ROWS):
        return self.system.gateways[0].tool("memory_timeline", {"date": day, "offset": offset, "limit": limit})

    def read_journal(self):
        """Writes down the memories that the journal has, oldest first."""
        self.catch_up("the journal", lambda: self.timeline(str(self.first_day), limit=1).get("backlog"))
        journal = History(os.path.join(self.folder, "journal.jsonl"))
        # A gateway's clock was up to an hour off.
        for number in range(-1, (today() - self.first_day).days + 2):
            day, events = str(self.first_day + datetime.timedelta(days=number)), []
            while (page := self.timeline(day, len(events)))["events"]:
                events += page["events"]
            for event in reversed(events):
                journal.note(type="memory", day=day, agent=event["agent"].removeprefix("agent:"), token=event["content"])
        journal.note(type="end", whole=True)
        journal.close()

    def finish(self):
        self.restart()
        if not self.last.read_all():
            raise Failed("a document could not be read although all is healed")
        self.tell("read")
        self.read_journal()
        self.tell("the journal is read")
        self.system.gateways[0].tool("notebook", {"mode": "create", "name": FENCE, "newStr": FENCE})
        self.catch_up("the readers", lambda: [reader.seen for reader in self.readers if reader.is_alive()] or None)
        self.tell("the readers have seen all")

    def close(self):
        self.shared.halt.set()
        for reader in self.readers:
            reader.stop = True
        for each in self.clients + self.readers:
            each.join(STILL_SECONDS)

    def survive(self, part):
        """Runs a part of the history. When it fails or is told to end, the next ones run all the same, so that what was written
        can be checked."""
        try:
            part()
        except (Failed, AssertionError, OSError, RuntimeError, SystemExit, KeyboardInterrupt) as error:
            self.broken.append(str(error) or type(error).__name__)
            self.tell("FAILED:", self.broken[-1])

    # ---- all of it

    def run(self):
        """The text of the report."""
        self.began = time.monotonic()
        with open(os.path.join(self.folder, "run.json"), "w") as file:
            json.dump({"seed": self.seed, "kind": self.kind, "gateways": self.gateway_count, "clients": self.client_count,
                       "operations": self.operations, "faults": self.kinds, "again": self.again()}, file)
        self.story = open(os.path.join(self.folder, "story"), "w", buffering=1)
        try:
            self.start()
            try:
                self.survive(self.torture)
                worked = time.monotonic() - self.began
                self.survive(self.heal)
                self.survive(self.finish)
            finally:
                self.close()
        except (AssertionError, OSError, RuntimeError) as error:
            raise Failed(str(error)) from error
        finally:
            self.clean()
        counts = self.counts()
        report = (f"seed {self.seed}: {self.shared.begun} operations in {worked:.0f} s ({counts['ok']} ok, "
                  f"{counts['fail']} refused, {counts['unknown']} unknown), {len(self.shared.documents)} documents and groups, faults: "
                  + (", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.counts.items())) or "none"))
        if self.broken:
            raise Failed("\n    ".join([*self.broken, report]))
        return report

    def clean(self):
        if hasattr(self, "system"):
            self.system.close()
            for gateway in self.system.gateways:
                shutil.copy(gateway.log, self.folder)
        self.databases.close()
        self.story.close()
        shutil.rmtree(self.rig, ignore_errors=True)
