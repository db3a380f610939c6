# SPDX-License-Identifier: MIT
"""After a round, when all is healed: is everything there that was acknowledged, once, in order, and nothing else?"""
import collections
import datetime
import json
import os
import time

from gateways import wait
from rivals import RIVAL, Rivals, refusal_fault
from shared_work import COLLECTIONS
from wire import Gone, Wire, events

# Clocks were up to half a day off.
DAYS = (-1, 0, 1)
PAGE = 100
NEVER = 10 ** 9
# The feed is read again after such a silence; an event or a reference that is late by so much is lost.
SILENCE_SECONDS, LATE_SECONDS, SOON_SECONDS = 3, 90, 0.1
# Refusals that a client may meet at any time, and those that only a broken disk or a lack of memory excuses.
USUAL = {"BUSY", "BACKEND_UNAVAILABLE", "TIMEOUT", "STORAGE_FULL", "RATE_LIMITED", "CANCELLED"}
BROKEN = {"INTERNAL", "TOOL_FAILED"}
RPC_INTERNAL = -32603
DATA_FILES = {"crashed", "gateway.id", "mcp.key", "notegate.db", "notegate.lock", "notegate.sock", "opennotes"}


class Checks:
    """Gathers what is wrong: one sentence each."""

    def __init__(self, system, places, books, faults):
        self.system, self.places, self.books, self.faults = system, places, books, faults
        self.gateway = system.gateways[-1]
        self.wrong = []
        self.revisions = {}    # (collection, space, id): the revision that it has now

    def expect(self, true, what):
        if not true:
            self.wrong.append(what)

    def run(self):
        for book in self.books:
            self.wrong += [f"{book.agent}: {wrong}" for wrong in book.wrong]
            self.check_refusals(book)
        self.check_shared()
        for book in self.books:
            self.check_own(book)
        running = os.path.join(self.system.root, "running.ipynb")
        if os.path.exists(running):
            self.sources(running)
        self.check_references()
        self.check_events()
        self.verify()
        return self.wrong

    def check_refusals(self, book):
        allowed = USUAL | (BROKEN if self.faults.broke_something() else set())
        allowed |= {"TOO_LARGE"} if "size" in self.faults.seen else set()
        agents = {each.agent for each in self.books} | {"rig"}
        for line in book.refused:
            code = "INTERNAL" if line["status"] == 500 or line.get("code") in (None, RPC_INTERNAL) else line["code"]
            if code in allowed or line["status"] in (429, 503, 504):
                continue
            fault = refusal_fault(book, line, self.system.kind == "cluster", agents) if line["kind"].startswith(RIVAL) else ""
            self.expect(fault is None, f"{book.agent} was refused: {json.dumps(line)[:600]}: {fault}")

    # ---- what all wrote

    def lines_of(self, path):
        with open(path, newline="") as file:
            return file.read().split("\n")

    def titles(self, collection):
        found, offset = [], 0
        while True:
            part = self.gateway.tool("notebook_list", {"collection": collection, "limit": PAGE, "offset": offset})
            found += part["results"]
            offset += PAGE
            if not part["has_more"]:
                return found

    def new_files(self, folder, wanted):
        """The names of files that are whole."""
        found = []
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name)) as file:
                text = file.read()
            token = name.removesuffix(".md")
            self.expect(wanted(token, text), f"{folder}/{name} is not whole: {text!r}")
            found.append(token)
        return found

    def sources(self, path):
        with open(path) as file:
            return ["".join(cell["source"]) for cell in json.load(file)["cells"]]

    def found(self):
        """For each kind of place the tokens in it, oldest first, and whether that order means something."""
        places = {"notebook": (self.gateway.tool("notebook", {"mode": "read", "name": "torture"}).split("\n"), True)}
        self.entries = {}
        for collection in COLLECTIONS:
            page = self.places["pages"][collection]
            whole = self.gateway.tool("notebook_read", {"collection": collection, "notebook_id": page})
            places[collection] = whole["content"].split("\n"), True
            self.entries[collection] = self.titles(collection)
            places[f"new {collection}"] = [entry["title"] for entry in self.entries[collection]], False
        self.told = self.timeline("shared")
        places["memory"] = [event["content"] for event in self.told if event["type"] == "memory"], False
        points = self.gateway.tool("checkpoint_list", {"limit": 1000})["checkpoints"]
        places["checkpoint"] = [point["label"] for point in points if point.get("label")], False
        notes = self.system.notes
        places["file"] = self.lines_of(self.places["read file"])[::-1], True
        places["note"] = self.lines_of(os.path.join(notes, "shared.md")), True
        places["note top"] = self.lines_of(os.path.join(notes, "top.md"))[::-1], True
        places["cell"] = self.sources(self.places["cells"])[::-1], True
        places["new file"] = self.new_files(self.places["new"], lambda token, text: text == token), False
        places["new note"] = self.new_files(os.path.join(notes, "new"), lambda token, text: (
            text.startswith("---\n") and text.rstrip("\n").endswith("\n" + token))), False
        return places

    def check_shared(self):
        for kind, (lines, ordered) in self.found().items():
            counts = collections.Counter(line for line in lines if line.startswith("t-"))
            tried = set()
            for book in self.books:
                tokens = book.tokens(kind, True)
                tried.update(book.tokens(kind, False))
                self.expect(not book.double, f"{book.agent} acknowledged twice: {book.double}")
                for token in tokens:
                    self.expect(counts[token] == 1, f"{kind}: acknowledged {token} is there {counts[token]} times")
                place = {line: number for number, line in enumerate(lines)}
                at = [place.get(token, NEVER) for token in tokens]
                self.expect(not ordered or at == sorted(at), f"{kind}: what {book.agent} wrote is out of order")
            for token, count in counts.items():
                self.expect(count == 1 and token in tried, f"{kind}: {token} is there {count} times, tried: {token in tried}")

    def timeline(self, space):
        """Each day's events, by agent, for one answer has at most 1000."""
        today = datetime.datetime.now(datetime.timezone.utc).date()
        told = []
        for day in DAYS:
            for agent in [book.agent for book in self.books] + ["rig"]:
                part = self.whole("memory_timeline", {
                    "date": str(today + datetime.timedelta(days=day)), "limit": 1000, "agent": agent}, space)
                self.expect(part["count"] < 1000, f"{agent} has too many events for one answer")
                told += part["events"]
        return told

    def whole(self, tool, arguments, space):
        """The journal may be a moment behind, and says so."""
        until = time.monotonic() + LATE_SECONDS
        while True:
            part = self.gateway.tool(tool, arguments, space=space)
            if "backlog" not in part or time.monotonic() > until:
                self.expect("backlog" not in part, f"{tool} keeps a backlog of {part.get('backlog')}")
                return part
            time.sleep(SOON_SECONDS)

    # ---- what each wrote alone

    def check_own(self, book):
        for kind, own in (book.own or {}).items():
            if own["made"]:
                getattr(self, f"own_{kind}")(book.agent, own)

    def same(self, agent, kind, found, own):
        self.expect(found == own, f"{agent}'s own {kind} is {found!r}, not {own!r}")

    def own_notebook(self, agent, own):
        """Under its last name alone, unless it is deleted."""
        listed = self.gateway.tool("notebook", {"mode": "list"}).split("\n")
        there = [name for name in own["revisions"] if any(line.startswith(f"- {name}: ") for line in listed)]
        self.same(agent, "notebook's names", there, [] if own["deleted"] else [own["name"]])
        if not own["deleted"]:
            text = self.gateway.tool("notebook", {"mode": "read", "name": own["name"]})
            self.same(agent, "notebook", text.split("\n"), own["lines"])
        for name, revision in own["revisions"].items():
            self.revisions["notebooks", "shared", name] = revision

    def own_page(self, agent, own):
        where = {"collection": "pages", "notebook_id": own["id"]}
        history = self.gateway.tool("notebook_history", {**where, "limit": 1})
        self.same(agent, "page's version", (history["current_version"], history["deleted"]), (own["revision"], own["deleted"]))
        if not own["deleted"]:
            text = self.gateway.tool("notebook_read", where)["content"]
            self.same(agent, "page", text.removesuffix("\n").split("\n"), own["lines"])
        self.revisions["pages", "shared", own["id"]] = own["revision"]

    def own_file(self, agent, own):
        names = [name for name in os.listdir(self.places["own"]) if name.startswith(f"{agent}-")]
        self.same(agent, "files", names, [] if own["gone"] else [os.path.basename(own["path"])])
        if not own["gone"]:
            self.same(agent, "file", "\n".join(self.lines_of(own["path"])), "\n".join([*own["lines"], ""]))

    def note_lines(self, path):
        """Those behind the front matter that are not empty."""
        lines = self.lines_of(os.path.join(self.system.notes, path))
        return [line for line in lines[lines.index("---", 1) + 1:] if line]

    def own_note(self, agent, own):
        """With the links to it, which lead where it is, or was until it was deleted."""
        home, links = own["home"], f"own/own-{agent}-links.md"
        found = [os.path.relpath(os.path.join(folder, name), self.system.notes)
                 for folder, _, names in os.walk(self.system.notes) for name in names if name.startswith(f"own-{agent}")]
        self.same(agent, "notes", sorted(found), sorted([own["path"], *([links] if own["linked"] else [])]))
        self.same(agent, "note", self.note_lines(own["path"]), own["lines"])
        if own["linked"]:
            name = os.path.basename(home).removesuffix(".md")
            self.same(agent, "links", self.note_lines(links), [f"[[{name}]] [it]({os.path.relpath(home, 'own')})"])

    def own_cells(self, agent, own):
        self.same(agent, "cells", self.sources(own["path"]), own["lines"])

    def own_memory(self, agent, own):
        space = f"~{agent}"
        found = [event["content"] for event in self.timeline(space) if event["type"] == "memory"]
        self.same(agent, "memory", sorted(found), sorted(own["lines"]))
        summary = self.gateway.tool("memory_summary", {"mode": "read"}, agent=agent, space=space)["summary"]
        self.same(agent, "summary", summary or "", own["summary"])

    # ---- what follows from writes

    def check_references(self):
        """Each version of each entry has one line in the journal."""
        told = collections.Counter((event["collection"], event["notebook_id"], event["version"])
                                   for event in self.told if event["type"] == "notebook_ref" and event["action"] != "opened")
        ids = {(collection, entry["notebook_id"]) for collection in COLLECTIONS for entry in self.entries[collection]}
        ids.add(("pages", self.places["rival page"]))
        ids |= {("pages", book.own["page"]["id"]) for book in self.books if book.own and book.own["page"]["made"]}
        for collection, number in ids:
            history = self.gateway.tool("notebook_history", {"collection": collection, "notebook_id": number, "limit": 1000})
            last = history["current_version"]
            versions = [each["version"] for each in history["history"]][::-1]
            self.expect(versions == list(range(1, last + 1)), f"{collection}/{number}: its history has the versions {versions}")
            for version in range(1, last + 1):
                count = told.pop((collection, number, version), 0)
                self.expect(count == 1, f"{collection}/{number}: version {version} has {count} references")
            self.revisions[collection, "shared", number] = last
        self.expect(not told, f"references of what is not there: {list(told)[:5]}")

    def feed(self):
        """All events, until each write has one: what a killed gateway had begun, another one ends, perhaps later than what came after."""
        self.gateway.tool("notebook", {"mode": "create", "name": "end", "newStr": "end of the round"})
        missing = {line["revision"] for line in self.written() if isinstance(line["revision"], str)}
        missing |= {(*document, revision) for document, revision in self.revisions.items() if revision}
        missing.add(("notebooks", "shared", "end", 1))
        last, until = 0, time.monotonic() + LATE_SECONDS
        while missing and time.monotonic() < until:
            for event in self.events_since(last):
                last = event["seq"]
                missing -= {event["revision"], (event["collection"], event["space"], event["id"], event["revision"])}
                yield event
                if not missing:
                    break

    def events_since(self, last):
        wire = Wire(self.system.port_file(self.gateway.name), agent="rig", timeout=SILENCE_SECONDS)
        wire.port_file = None
        wire.where = lambda: (0, self.gateway.port)
        try:
            answer = wire.start("GET", f"/v1/events?since={last}")
            self.expect(answer.status == 200, f"/v1/events: {answer.status}")
            for _, _, data in events(answer):
                yield json.loads(data)
        except Gone:
            pass
        finally:
            wire.close()

    def written(self, *kinds):
        """Of these kinds, or all."""
        return [line for book in self.books for line in book.acknowledged.values() if not kinds or line["kind"] in kinds]

    def check_events(self):
        """Every change was an event once, and each document's events are in the order of its revisions."""
        last, seen, hashes = 0, collections.defaultdict(list), collections.defaultdict(list)
        told = list(self.feed())
        for event in told:
            self.expect(event["seq"] > last, f"event {event['seq']} after {last}")
            last = event["seq"]
            if isinstance(event["revision"], int):
                seen[event["collection"], event["space"], event["id"]].append(event["revision"])
            else:
                hashes[event["revision"]].append(event)
        for document, revisions in seen.items():
            if document[0] in ("notebooks", *COLLECTIONS):
                self.expect(revisions == list(range(1, len(revisions) + 1)), f"events of {document}: revisions {revisions}")
        for document, revision in self.revisions.items():
            self.expect(len(seen[document]) == revision, f"{len(seen[document])} events of {document}, at revision {revision}")
        for line in self.written("file", "note", "note top", "cell"):
            found = hashes[line["revision"]]
            self.expect(len(found) == 1, f"{len(found)} events of the {line['kind']} {line['token']}, {line['revision']}: {found}")
        for book in self.books:
            # A cell that is moved to its own place changes nothing.
            own = collections.Counter(line["revision"] for line in book.acknowledged.values() if line["kind"] == "own"
                                      and isinstance(line["revision"], str) and line["tool"] != "moveNotebookCell")
            for revision, count in own.items():
                found = [event for event in hashes[revision] if event["agent"] == book.agent]
                self.expect(len(found) >= count, f"{len(found)} events of {count} own writes of {book.agent} at {revision}")
        Rivals(self).check(told)

    def verify(self):
        done = self.gateway.command("verify")
        self.expect(done.returncode == 0, f"verify: {done.stdout} {done.stderr}")

    # ---- when the gateways have ended

    def check_rest(self):
        """Nothing is left but what was written; the data are whole without a gateway, too."""
        for gateway in self.system.gateways:
            code = gateway.end()
            self.expect(code == 0, f"{gateway.name}: SIGTERM ended with {code}")
            if self.system.kind != "memory":
                done = gateway.command("verify")
                self.expect(done.returncode == 0, f"{gateway.name}: verify: {done.stdout} {done.stderr}")
            if os.path.isdir(gateway.data):
                rest = set(os.listdir(gateway.data)) - DATA_FILES
                self.expect(not rest, f"left in the data of {gateway.name}: {rest}")
                crashes = os.path.join(gateway.data, "crashed")
                if os.path.exists(crashes):
                    with open(crashes, encoding="utf-8") as file:
                        # A library that aborts where there is no memory is told among them.
                        more = len(file.read().splitlines()) - gateway.excused_ends
                        self.expect(more <= 0, f"{gateway.name} has recorded {more} more crashes than its faults excuse in {crashes}")
        known = {"shared.txt", "second.txt", "shared.ipynb", "running.ipynb", "shared.md", "top.md", "a.txt", "b.txt", "hub.md",
                 "boxed.md", "rival-one.md", "rival-two.md"}
        for top in (self.system.root, self.system.notes):
            for folder, _, names in os.walk(top):
                for name in names:
                    if name not in known and not name.startswith(("t-", "agent-", "own-agent-")):
                        self.wrong.append(f"left: {folder}/{name}")
        wait(lambda: not self.processes(), f"processes are left: {self.processes()}")
        return self.wrong

    def processes(self):
        """Every process of a gateway, and the gateway itself, has the folder of the round in its command line or
        environment."""
        mark, found = self.system.folder.encode(), []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/cmdline", "rb") as file:
                    words = file.read()
                with open(f"/proc/{number}/environ", "rb") as file:
                    words += file.read()
            except OSError:
                continue
            if mark in words and int(number) not in (os.getpid(), self.system.proxy.pid):
                found.append((number, words[:200]))
        return found
