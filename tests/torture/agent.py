#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One agent of a round: calls every tool that writes, over REST and MCP of both protocols, and keeps its journal.

    agent.py SETTINGS-FILE NAME

Many of its writes have an idempotency key and are repeated, over another transport and another gateway, until they are answered: these must
be there exactly once. The others are sent once. It looks at what all write, too, which must never go back.
"""
import json
import random
import sys
import time

from journal import Writer
from own_files import own_files
from own_work import own_work
from rival_work import HUB, WHOLE_HUB, RivalWork, is_refusal
from shared_work import COLLECTIONS, SharedWork
from wire import Gone, Wire, stopped

# Of a thousand: what the next step is.
SHARED, OWN, RIVAL = 380, 270, 280
KEYED = 0.6
# An answer that did not come by then is asked for again.
ANSWER_SECONDS = 15
# When all is healed, every write is answered within this.
HEALED_SECONDS = 150
# More would not be told by one answer of the timeline.
STEPS_MAX = 300


class Wrong(Exception):
    """The observed state is impossible."""


class Agent:
    def __init__(self, settings, name):
        self.settings, self.name = settings, name
        self.rng = random.Random(f"{settings['seed']}-{name}")
        self.journal = Writer(f"{settings['folder']}/journal-{name}")
        self.wires = [Wire(file, agent=name, timeout=ANSWER_SECONDS) for file in settings["port_files"]]
        self.shared = SharedWork(self.rng, settings["places"], settings["files"])
        self.rivals = RivalWork(self.rng, settings["places"])
        self.own = own_work(self.rng, name, settings["places"]) + own_files(self.rng, name, settings["places"])
        self.seen = {}    # document: the newest revision told to this agent
        self.mine = {}    # document: tokens that must be in it
        self.stopped_at = None

    def over(self):
        if self.stopped_at is None and stopped(self.settings["stop_file"]):
            self.stopped_at = time.monotonic()
        return self.stopped_at is not None

    # ---- one call

    def call(self, tool, arguments, space, key=None):
        """(result, revision, None) or (None, None, error object), over a transport and a gateway drawn at random."""
        wire = self.rng.choice(self.wires)
        headers = {"X-Notegate-Space": space, **({"Idempotency-Key": key} if key else {})}
        transport = self.rng.choice(["rest", "rest", "stateless", "handshake"])
        if transport == "rest":
            status, body = wire.request("POST", f"/v1/tools/{tool}", arguments, headers)
            if status == 200:
                return body["result"], body.get("revision"), None
            return None, None, {"status": status, **(body or {})}
        status, body = (wire.stateless if transport == "stateless" else wire.handshake)(
            "tools/call", {"name": tool, "arguments": arguments}, headers)
        if status == 404 and transport == "handshake":
            wire.session = None
            raise Gone
        result = (body or {}).get("result", {})
        if status == 200 and "result" in body and not result.get("isError"):
            told = result.get("structuredContent")
            if told is None and not result.get("content"):
                raise Wrong(f"{transport} {tool} {arguments} was answered {body}")
            return (told if told is not None else result["content"][0]["text"],
                    result.get("_meta", {}).get("notegate/revision"), None)
        error = result.get("_meta", {}).get("notegate/error") or (body or {}).get("error", {})
        return None, None, {"status": status, "code": error.get("code"), "message": error.get("message")}

    def write(self, number, tool, arguments, space, key, refusable=False):
        """Once, or until it is answered: (result, revision), or None where that is not known, or it is refused as it may be."""
        while True:
            try:
                result, revision, error = self.call(tool, arguments, space, key)
            except Gone:
                error = None
            else:
                if error is None:
                    self.journal.note(ack=number, revision=revision)
                    return result, revision
                self.journal.note(no=number, status=error["status"], code=error.get("code"), message=error.get("message"))
                if refusable and is_refusal(error.get("code"), error.get("message")):
                    return None
            if not key:
                return None
            if self.over() and time.monotonic() - self.stopped_at > HEALED_SECONDS:
                raise Wrong(f"{tool} {arguments} in {space}, key {key}: no answer though all is healed; the last was {error}")
            time.sleep(self.rng.uniform(0.01, 0.1))

    # ---- steps

    def write_shared(self, token):
        kind, tool, arguments, document = self.shared.draw(token)
        keyed = self.rng.random() < KEYED
        number = self.journal.intend(kind=kind, token=token, tool=tool, keyed=keyed, document=document)
        answer = self.write(number, tool, arguments, "shared", token if keyed else None)
        if answer and document:
            self.see(document, answer[1], f"the answer of {tool} to {token}", not keyed)
            self.mine.setdefault(document, []).append(token)

    def write_own(self, token):
        own = self.rng.choice(self.own)
        tool, arguments = own.step(token)
        number = self.journal.intend(kind="own", token=token, tool=tool, keyed=True, arguments=arguments)
        result, revision = self.write(number, tool, arguments, own.space, token)
        wrong = own.done(result, revision)
        if wrong:
            raise Wrong(f"{tool} {arguments}: {wrong}")

    def write_rival(self, token):
        kind, tool, arguments = self.rivals.draw(token)
        keyed = self.rng.random() < KEYED
        number = self.journal.intend(kind=kind, token=token, tool=tool, keyed=keyed, arguments=arguments)
        if self.write(number, tool, arguments, "shared", token if keyed else None, refusable=True):
            self.rivals.done(kind, tool, arguments)

    def see(self, document, revision, what, newer):
        """An answer of a repeat may be an old one; nothing else goes back."""
        if not isinstance(revision, int):
            raise Wrong(f"{what} tells no revision of {document}: {revision!r}")
        if newer and revision < self.seen.get(document, 0):
            raise Wrong(f"{what} is revision {revision} of {document} after {self.seen[document]}")
        self.seen[document] = max(self.seen.get(document, 0), revision)

    def look(self):
        """A write that was acknowledged to this agent stays there for it."""
        places = self.settings["places"]
        collection = self.rng.choice(COLLECTIONS)
        document, tool, arguments = self.rng.choice([
            ("notebooks/torture", "notebook", {"mode": "read", "name": "torture"}),
            (f"{collection}/{places['pages'][collection]}", "notebook_read",
             {"collection": collection, "notebook_id": places["pages"][collection]})])
        result, revision, error = self.call(tool, arguments, "shared")
        if error:
            return
        self.see(document, revision, f"what {tool} reads", True)
        text = result if isinstance(result, str) else result["content"]
        missing = set(self.mine.get(document, ())) - set(text.split("\n"))
        if missing:
            raise Wrong(f"{document} at revision {revision} is without {sorted(missing)[:3]}, which were acknowledged")

    def look_own(self):
        """Nothing of its own changes by itself: after a restart, too."""
        own = self.rng.choice(self.own)
        if not own.read():
            return
        tool, arguments = own.read()
        result, _, error = self.call(tool, arguments, own.space)
        if error and error.get("code") in ("NOT_FOUND", "NOTE_NOT_FOUND", "ENTRY_NOT_FOUND"):
            raise Wrong(f"{tool} {arguments}: {error}, though its lines are {own.lines}")
        if not error and own.shown(result) != own.lines:
            raise Wrong(f"{tool} {arguments} tells {own.shown(result)}, not {own.lines}")

    def look_rivals(self):
        """The links of one note follow the moves of others, and are never half of it."""
        result, _, error = self.call("opennotes_get", {"path": HUB}, "shared")
        if error and error.get("code") == "NOTE_NOT_FOUND":
            raise Wrong(f"{HUB}: {error}")
        if not error and not WHOLE_HUB.fullmatch(result["note"]["content"]):
            raise Wrong(f"{HUB} is torn: {result['note']['content']!r}")

    def run(self):
        for step in range(STEPS_MAX):
            if self.over():
                break
            token = f"t-{self.name.rsplit('-', 1)[-1]}-{step:04d}"
            draw = self.rng.randrange(1000)
            try:
                if draw < SHARED:
                    self.write_shared(token)
                elif draw < SHARED + OWN:
                    self.write_own(token)
                elif draw < SHARED + OWN + RIVAL:
                    self.write_rival(token)
                else:
                    self.rng.choice([self.look, self.look_own, self.look_rivals])()
            except Gone:
                time.sleep(0.02)
        self.journal.note(own={own.kind: own.state() for own in self.own})


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    agent = Agent(settings, sys.argv[2])
    try:
        agent.run()
    except Wrong as wrong:
        agent.journal.note(wrong=str(wrong))
        sys.exit(1)


if __name__ == "__main__":
    main()
