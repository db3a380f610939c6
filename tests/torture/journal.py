# SPDX-License-Identifier: MIT
"""An agent's journal: what it was about to do, and what it was told. One line of JSON each, written before and after the call.

    {"try": 7, "kind": "page", "token": "t-2-7", "tool": "notebook_update", "keyed": true, "document": "..."}
    {"ack": 7, "revision": 12}        it was acknowledged
    {"no": 7, "code": "BUSY", "message": "..."}   it was refused: it may be there, but not twice
    {"own": {...}}                    at the end: what the agent's own documents must be like
    {"wrong": "..."}                  what it saw cannot be
"""
import collections
import json


class Writer:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.number = 0

    def note(self, **line):
        self.file.write(json.dumps(line) + "\n")

    def intend(self, **what):
        self.number += 1
        self.note(**{"try": self.number, **what})
        return self.number


class Book:
    """One journal, read."""

    def __init__(self, path, agent):
        self.agent = agent
        self.tried, self.acknowledged, self.refused = {}, {}, []
        self.own, self.wrong, self.double = None, [], []
        with open(path) as file:
            for line in file.read().splitlines():
                self._take(json.loads(line))

    def _take(self, line):
        if "try" in line:
            self.tried[line["try"]] = line
        elif "ack" in line:
            self.double += [line["ack"]] if line["ack"] in self.acknowledged else []
            self.acknowledged[line["ack"]] = {**self.tried[line["ack"]], **line}
        elif "no" in line:
            self.refused.append({**self.tried.get(line["no"], {}), **line})
        elif "own" in line:
            self.own = line["own"]
        elif "wrong" in line:
            self.wrong.append(line["wrong"])

    def tokens(self, kind, acknowledged):
        """Of one kind of place, in the order of the calls."""
        return [line["token"] for line in (self.acknowledged if acknowledged else self.tried).values() if line["kind"] == kind]

    def tools(self):
        return collections.Counter(line["tool"] for line in self.acknowledged.values())


def acknowledged_so_far(paths):
    """How many acknowledgements stand in these journals: how far the agents are."""
    count = 0
    for path in paths:
        try:
            with open(path, "rb") as file:
                count += file.read().count(b'{"ack"')
        except FileNotFoundError:
            pass
    return count
