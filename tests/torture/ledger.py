# SPDX-License-Identifier: MIT
"""Acknowledged writes against observed events: the rig's books, from the logs of clients and followers."""
import collections
import json


class Log:
    """A file that another process appends to; whole lines, each once."""

    def __init__(self, path):
        self.path = path
        self.at = 0

    def lines(self):
        try:
            with open(self.path) as file:
                file.seek(self.at)
                text = file.read()
        except FileNotFoundError:
            return []
        text = text[:text.rfind("\n") + 1]
        self.at += len(text)
        return text.splitlines()


class Written:
    """Operations of one client, in order."""

    def __init__(self, path, number):
        self.log = Log(path)
        self.agent = f"agent-{number}"
        self.tried, self.acknowledged, self.events = [], [], []
        self.keys = {}

    def change(self, kind, revision):
        """(collection, space, id, revision) of an event; a file's revision is its hash, and enough."""
        if kind == "file":
            return "files", "shared", "", revision
        own = kind == "own"
        return "notebooks", f"~{self.agent}" if own else "shared", self.agent if own else "torture", int(revision)

    def read(self):
        """The changes acknowledged since the last time."""
        fresh = []
        for line in self.log.lines():
            word, *rest = line.split()
            if word == "ack":
                kind, token, revision = rest
                self.acknowledged.append((kind, token))
                fresh.append(self.change(kind, revision))
            elif word in ("sent", "keyed"):
                self.tried.append(tuple(rest))
            else:
                self.keys[rest[0]] = "live" if word == "key-added" else "revoked"
        self.events += fresh
        return fresh


class Seen:
    """Events that one follower of GET /v1/events saw."""

    def __init__(self, path, name):
        self.log = Log(path)
        self.name = name
        self.sees_all = name in ("all", "slow")
        self.last = 0
        self.place = {}
        self.missing = set()
        self.closed = 0

    def expect(self, changes):
        self.missing |= {change for change in changes
                         if (self.sees_all or change[1] == "shared") and change not in self.place}

    def read(self):
        for line in self.log.lines():
            if line.startswith("closed"):
                self.closed += 1
                continue
            seq, collection, space, name, revision, _ = json.loads(line)
            assert seq > self.last, f"follower {self.name}: event {seq} after {self.last}"
            self.last = seq
            assert self.sees_all or space == "shared", f"follower {self.name} was shown {line}"
            change = (collection, space, "" if collection == "files" else name, revision)
            if collection not in ("notebooks", "files"):
                continue
            assert change not in self.place, f"follower {self.name}: {line} is the second event of that change"
            self.place[change] = seq
            self.missing.discard(change)

    def check_whole(self):
        """Revisions of a notebook are counted: none is left out, none is out of order."""
        revisions = collections.defaultdict(list)
        for collection, space, name, revision in self.place:
            if collection == "notebooks":
                revisions[space, name].append(revision)
        for document, seen in revisions.items():
            assert seen == list(range(1, len(seen) + 1)), f"follower {self.name}: revisions of {document} are not 1, 2, 3 ..."

    def check_order(self, written):
        """Successive writes of a client were reported in that order."""
        places = [self.place[change] for change in written.events if self.sees_all or change[1] == "shared"]
        assert places == sorted(places), f"follower {self.name}: {written.agent}'s writes are out of order"


class Told:
    """Notifications of the notebook to one follower over MCP."""

    def __init__(self, path, name):
        self.log = Log(path)
        self.name = name
        self.life = 0
        self.opened = 0
        self.updates, self.fences = 0, 0

    def read(self):
        for line in self.log.lines():
            word, *rest = line.split()
            if word == "open":
                self.life = int(rest[0])
                self.opened += 1
            elif word == "fence":
                self.fences += 1
            else:
                self.updates += 1
