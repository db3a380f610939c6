# SPDX-License-Identifier: MIT
"""A round of torture: agents write, things go wrong, all is healed, everything is counted.

    rig.py        rounds (this file)
    gateways.py   what stands: gateways, databases, lines, a small disk
    faults.py     what goes wrong
    agent.py      a client process; shared_work.py, own_work.py, own_files.py and rival_work.py are what it writes, journal.py what it
                  notes
    proxy.py      lines that break in mid-answer
    checks.py     what must be true afterwards; rivals.py of what agents took from each other
    streams.py    rounds of another kind: keys, followers of the changes and tasks while one gateway is killed
    wire.py       how all of these speak to the gateway

All choices of a round come from the seed and the round's number, so it can be run again by itself.
"""
import collections
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import rivals
import streams
from checks import Checks
from faults import Faults
from gateways import PATIENCE, System, build_shim, default_binary, wait
from journal import Book, acknowledged_so_far
from shared_work import COLLECTIONS

HERE = os.path.dirname(os.path.abspath(__file__))
# The backends in turn, one for each round.
KINDS = ("sqlite", "cluster", "sqlite", "memory", "sqlite", "mongo", "sqlite", "streams")
AGENTS = {"sqlite": 6, "memory": 4, "mongo": 4, "cluster": 6}
STEPS = {"sqlite": (3, 8), "memory": (3, 6), "mongo": (2, 4), "cluster": (3, 5)}
# How far the agents come before the next fault, and how long that may take.
PROGRESS, LONGEST = (3, 60), (0.2, 3.0)
STREAMS_KILLS = 5
# Databases are used by so many rounds.
FRESH_DATABASES = 8
LOOK_EVERY = 0.05
# So many of the rounds read the shared file under a second name that it has.
LINKED = 0.5
# One round of sqlite in so many has a Jupyter kernel at work, where one is installed.
KERNEL_EVERY = 6
KERNEL = "/usr/share/jupyter/kernels/python3/kernel.json"
KERNEL_SOURCE = "import os, subprocess, time\nsubprocess.Popen(['sleep', '600'])\nfor i in range(600):\n    print(i, flush=True)\n    time.sleep(0.1)"


class Violation(Exception):
    """A promise was broken."""


class NotReady(Exception):
    """Nothing had begun: a round that does not count."""


class Round:
    def __init__(self, seed, number, kind, tools, only=None):
        self.seed, self.number, self.kind, self.tools, self.only = seed, number, kind, tools, only
        self.rng = random.Random(f"{seed}-{number}")
        self.folder = tempfile.mkdtemp(prefix=f"notegate-torture-{number}-")
        self.stop_file = os.path.join(self.folder, "stop")
        self.agents = {}
        self.died, self.refused_starts = 0, 0
        self.running = None
        self.story = open(os.path.join(self.folder, "story"), "w", buffering=1)
        self.began = time.monotonic()

    def tell(self, *words):
        self.story.write(f"{time.monotonic() - self.began:8.2f} {' '.join(map(str, words))}\n")

    # ---- before

    def prepare(self):
        self.system = System(self.kind, self.folder, f"{self.seed}-{self.number}", self.tools.binary, self.tools.shim,
                             self.tools.databases)
        self.system.start()
        gateway, root = self.system.gateways[0], self.system.root
        self.places = {"file": os.path.join(root, "shared.txt"), "new": os.path.join(root, "new"),
                       "own": os.path.join(root, "own"), "cells": os.path.join(root, "shared.ipynb"), "pages": {}}
        os.mkdir(self.places["new"])
        gateway.tool("notebook", {"mode": "create", "name": "torture", "newStr": "begin"})
        for collection in COLLECTIONS:
            self.places["pages"][collection] = gateway.tool("notebook_create", {
                "collection": collection, "title": "shared", "content": "begin\n"})["notebook_id"]
        gateway.tool("fileEditor", {"command": "create", "path": self.places["file"], "file_text": "begin\n"})
        self.places["read file"] = self.places["file"]
        if self.rng.random() < LINKED:
            self.places["read file"] = os.path.join(root, "second.txt")
            os.link(self.places["file"], self.places["read file"])
        for title in ("shared", "top"):
            gateway.tool("opennotes_create", {"title": title, "content": "begin"})
        gateway.tool("createNotebook", {"notebook": self.places["cells"]})
        rivals.prepare(gateway, root, self.system.notes, self.places)
        if self.kind == "sqlite" and self.number % KERNEL_EVERY == 0 and os.path.exists(KERNEL):
            self.running = os.path.join(root, "running.ipynb")
            made = gateway.tool("createNotebook", {"notebook": self.running, "kernel": "python3"})
            self.cell = re.search(r"Cell ID: (\S+)", made).group(1)
            gateway.tool("updateNotebookCell", {"notebook": self.running, "cellId": self.cell, "content": KERNEL_SOURCE})
        self.faults = Faults(self.system, self.rng, self.only)

    def run_cell(self):
        """A kernel, and what that has started, shall not outlive its gateway."""
        if not self.running:
            return
        with contextlib.suppress(OSError):
            status, _ = self.system.gateways[0].ask("POST", "/v1/tools/runNotebookCells", {
                "notebook": self.running, "cellIds": [self.cell], "background": True}, {"X-Notegate-Space": "shared"}, 20)
            self.tell("a cell is run:", status)

    def start_agents(self):
        settings = os.path.join(self.folder, "settings")
        with open(settings, "w") as file:
            json.dump({"seed": f"{self.seed}-{self.number}", "folder": self.folder, "stop_file": self.stop_file,
                       "port_files": [self.system.port_file(gateway.name) for gateway in self.system.gateways],
                       "places": self.places, "files": True}, file)
        for number in range(AGENTS[self.kind]):
            name = f"agent-{number}"
            log = open(os.path.join(self.folder, f"log-{name}"), "w")
            self.agents[name] = subprocess.Popen([sys.executable, os.path.join(HERE, "agent.py"), settings, name],
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            log.close()

    def journals(self):
        return [os.path.join(self.folder, f"journal-{name}") for name in self.agents]

    # ---- while things go wrong

    def look(self):
        """Gateways that ended are started again, if what is wrong with them just now excuses it."""
        for gateway in self.system.gateways:
            code = gateway.look()
            if code is None:
                continue
            if not self.faults.may_end(gateway, code):
                raise Violation(f"{gateway.name} ended with {code}; see {gateway.log} and {self.folder}/story")
            self.tell(gateway.name, "ended with", code)
            if gateway.port is None and code == 1:
                self.refused_starts += 1
            else:
                self.died += 1
                gateway.excused_ends += 1
            gateway.start()
        for name, process in self.agents.items():
            if process.poll() not in (None, 0):
                with open(os.path.join(self.folder, f"log-{name}")) as file:
                    trouble = file.read()
                book = Book(os.path.join(self.folder, f"journal-{name}"), name)
                raise Violation(f"{name}: {'; '.join(book.wrong) or trouble}")

    def go_on(self):
        """Lets the agents work a while."""
        goal = acknowledged_so_far(self.journals()) + self.rng.randint(*PROGRESS)
        end = time.monotonic() + self.rng.uniform(*LONGEST)
        while time.monotonic() < end and acknowledged_so_far(self.journals()) < goal:
            self.look()
            time.sleep(LOOK_EVERY)
        self.look()

    def torture(self):
        for _ in range(self.rng.randint(*STEPS[self.kind])):
            self.run_cell()
            self.go_on()
            self.faults.recent.clear()
            for _ in range(self.rng.choice([1, 1, 2, 3])):
                self.tell("begins:", self.faults.begin(), [kind for kind, _, _ in self.faults.active])
            self.go_on()
            self.tell("ends")
            self.faults.end()

    # ---- after

    def finish_agents(self):
        with open(self.stop_file, "w"):
            pass

        def done():
            self.look()
            return all(process.poll() is not None for process in self.agents.values())

        wait(done, "the agents have their answers", 2 * PATIENCE)
        self.look()

    def check(self):
        self.system.wait_ready()
        self.tell("ready")
        self.books = [Book(path, name) for path, name in zip(self.journals(), self.agents)]
        checks = Checks(self.system, self.places, self.books, self.faults)
        wrong = checks.run()
        self.tell("checked")
        wrong = checks.check_rest()
        if wrong:
            raise Violation("\n    ".join(dict.fromkeys(wrong[:30])))

    def run(self):
        try:
            self.prepare()
        except AssertionError as error:
            # The stand-in for MongoDB may hang at its first inserts.
            raise (NotReady(str(error)) if self.system.databases else error) from error
        self.tell("prepared")
        self.start_agents()
        self.torture()
        self.tell("healed")
        self.finish_agents()
        self.tell("agents done")
        self.check()

    def close(self, keep):
        for process in self.agents.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        if hasattr(self, "system"):
            if keep:
                self.system.keep()
            if self.system.databases:
                for server in (self.system.databases.mongo, self.system.databases.redis):
                    if server.process:
                        server.thaw()
                if keep:
                    self.system.databases.close()
            self.system.close()
        self.story.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


class Totals:
    """Text of the report."""

    def __init__(self):
        self.rounds, self.faults = collections.Counter(), collections.Counter()
        self.writes, self.seconds = collections.Counter(), 0
        self.died, self.refused_starts = 0, 0

    def add(self, done):
        self.rounds[done.kind] += 1
        self.faults.update(done.faults.counts)
        self.died += done.died
        self.refused_starts += done.refused_starts
        for book in done.books:
            for tool, count in book.tools().items():
                self.writes[done.kind, tool] += count

    def report(self):
        kinds = sorted({kind for kind, _ in self.writes})
        lines = [f"{sum(self.rounds.values()) - self.rounds['not begun']} rounds in {self.seconds:.0f} s: "
                 + ", ".join(f"{count} {kind}" for kind, count in sorted(self.rounds.items())),
                 f"faults: {', '.join(f'{count} {kind}' for kind, count in sorted(self.faults.items())) or 'none'}",
                 f"as their faults excuse, gateways ended by themselves: {self.died}; would not start: {self.refused_starts}",
                 f"acknowledged writes: {sum(self.writes.values())}",
                 f"{'':22}" + "".join(f"{kind:>9}" for kind in kinds)]
        for tool in sorted({tool for _, tool in self.writes}):
            lines.append(f"  {tool:20}" + "".join(f"{self.writes[kind, tool]:9}" for kind in kinds))
        return "\n".join(lines)


class Tools:
    """Shared by all rounds: the program, the shim, the databases."""

    def __init__(self, databases, binary=None):
        self.folder = tempfile.mkdtemp(prefix="notegate-torture-shim-")
        self.binary = os.path.abspath(binary or default_binary())
        self.shim = build_shim(self.folder)
        self.databases = databases

    def close(self):
        self.databases.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_streams(seed, number, totals, tools):
    done = streams.run(f"{seed}-{number}", STREAMS_KILLS, binary=tools.binary)
    totals.rounds["streams"] += 1
    totals.faults["kill"] += done.kills
    totals.writes["streams", "notebook, fileEditor"] += done.acknowledged


def run_round(seed, number, kind, tools, totals, only=None):
    """Raises Violation with all that is needed to run it again. only: kinds of faults."""
    if kind == "streams":
        try:
            return run_streams(seed, number, totals, tools)
        except AssertionError as error:
            raise Violation(f"round {number} (streams) of seed {seed}: {error}") from error
    if kind in ("mongo", "cluster"):
        tools.databases.want(FRESH_DATABASES)
    one, failed = Round(seed, number, kind, tools, only), True
    try:
        one.run()
        failed = False
        totals.add(one)
    except NotReady as error:
        failed = False
        totals.rounds["not begun"] += 1
        tools.databases.close()
        print(f"round {number} did not begin: {error}", flush=True)
    except (Violation, AssertionError) as error:
        one.tell("FAILED", error)
        raise Violation(f"round {number} ({kind}) of seed {seed}: {error}\n"
                        f"    all of it: {one.folder}; again: tests/torture/run --seed {seed} --round {number}") from error
    finally:
        one.close(keep=failed)
    return None
