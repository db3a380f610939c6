# SPDX-License-Identifier: MIT
"""Clients and readers of a history: each writes every operation that it begins and what came of it, as lines of JSON.

    {"type": "invoke", "process": 3, "number": 17, "time": NS, "function": "append", "documents": ["notebooks/shared/r1-4"],
     "token": "03-000017", "expected": 12, "via": "rest"}
    {"type": "ok", "process": 3, "number": 17, "time": NS, "revision": 13}
    {"type": "fail", ..., "error": "CONFLICT", "current": 15}     it was refused and has changed nothing
    {"type": "unknown", ..., "error": "BACKEND_UNAVAILABLE"}      it may have happened
    {"type": "event", "reader": "feed-0", "seq": 99, "document": "notebooks/shared/r1-4", "revision": 13, "agent": "client-3", "time": NS}

Times are CLOCK_MONOTONIC in nanoseconds. `create`, `append`, `replace` and `read` are of one notebook, `step` and `look` of the documents
of a group. `memory` logs a memory: the revision is that of the client's document of memories. A token occurs in one operation
only, and only the operation that names it as `old` takes it out of a document.
"""
import collections
import http.client
import json
import random
import threading
import time

from quick_wire import Gone, QuickWire, Unsent, compact
from wire import Wire, events

REGISTERS, GROUPS, GROUP_SIZE = 8, 2, 4
# A document is left for a new one after so many changes: the check of one is short then.
CHANGES_MAX = 100
KEYED = 0.4
ANSWER_SECONDS, RETRY_SECONDS = 4, 20
PAUSE = (0.005, 0.05)
# Functions and their shares.
SHARES = {"read": 45, "append": 22, "guarded append": 10, "replace": 6, "guarded replace": 5, "step": 5, "look": 7,
          "memory": 3}
COLLECTIONS = "notebooks,together,agent_memory"
# Of these a writer knows that nothing was changed.
REFUSED = ("CONFLICT", "NOT_FOUND", "TOOL_FAILED")
TRANSPORTS = ("rest", "rest", "stateless", "handshake")


class Shared:
    """What all clients of a run share: the count of operations, the present document of each slot."""

    def __init__(self, folder, port_files, seed, operations):
        self.folder, self.port_files, self.seed = folder, port_files, seed
        self.left, self.begun = operations, 0
        self.lock = threading.Lock()
        self.epochs = collections.Counter()
        self.documents = {}    # what was ever named, in order: (slot, epoch)
        self.halt = threading.Event()
        self.wrong = []

    def take(self):
        with self.lock:
            if self.left <= 0 or self.halt.is_set():
                return False
            self.left -= 1
            self.begun += 1
            return True

    def present(self, slot):
        with self.lock:
            return self.documents.setdefault((slot, self.epochs[slot]), (slot, self.epochs[slot]))

    def over(self, slot, epoch):
        with self.lock:
            self.epochs[slot] = max(self.epochs[slot], epoch + 1)


class History:
    """One file of lines."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1 << 16)

    def note(self, **line):
        self.file.write(compact(line) + "\n")

    def close(self):
        self.file.close()


def register(slot, epoch):
    return f"r{slot}-{epoch}"


def group(slot, epoch):
    return f"g{slot}-{epoch}"


def group_documents(name):
    return [f"together/shared/{name}.{letter}" for letter in "abcd"[:GROUP_SIZE]]


class Client(threading.Thread):
    def __init__(self, shared, process):
        super().__init__(name=f"client-{process}", daemon=True)
        self.shared, self.process = shared, process
        self.rng = random.Random(f"{shared.seed}-{process}")
        self.history = History(f"{shared.folder}/history-{process:02}.jsonl")
        self.wires = [QuickWire(file, agent=self.name, timeout=ANSWER_SECONDS) for file in shared.port_files]
        self.number = 0
        self.known = {}    # document: (revision, text)
        self.missing = set()
        self.counts = collections.Counter(ok=0, fail=0, unknown=0)

    # ---- asking

    def ask(self, wire, transport, tool, arguments, key):
        """(result, revision, None) or (None, None, error)."""
        headers = {"X-Notegate-Space": "shared", **({"Idempotency-Key": key} if key else {})}
        if transport == "rest":
            status, body = wire.request("POST", f"/v1/tools/{tool}", arguments, headers)
            if status == 200:
                return body["result"], body.get("revision"), None
            return None, None, {"status": status, **(body if isinstance(body, dict) else {})}
        status, body = (wire.stateless if transport == "stateless" else wire.handshake)(
            "tools/call", {"name": tool, "arguments": arguments}, headers)
        if status == 404 and transport == "handshake":
            wire.session = None
            raise Unsent
        result = (body or {}).get("result", {})
        if status == 200 and result and not result.get("isError"):
            return "".join(part["text"] for part in result["content"]), result.get("_meta", {}).get("notegate/revision"), None
        error = result.get("_meta", {}).get("notegate/error") or (body or {}).get("error") or {}
        return None, None, {"status": status, **error}

    def outcome(self, transport, tool, arguments, key, reads):
        """What is known of one operation: ("ok", result, revision), ("fail", error) or ("unknown", error)."""
        end, attempts = time.monotonic() + RETRY_SECONDS, 0
        while True:
            sent = True
            try:
                result, revision, error = self.ask(self.rng.choice(self.wires), transport, tool, arguments, key)
            except Unsent:
                sent, error = False, {"code": "UNSENT"}
            except Gone:
                error = {"code": "GONE"}
            if error is None:
                return "ok", result, revision
            attempts += sent
            refused = error.get("code") in REFUSED
            if reads or (refused and attempts == 1) or (not attempts and not key):
                return "fail", error, None
            # A retry may be refused for what an earlier attempt has changed.
            if refused or not key or time.monotonic() > end:
                return ("unknown" if attempts else "fail"), error, None
            time.sleep(self.rng.uniform(*PAUSE))

    def operate(self, function, documents, tool, arguments, **named):
        """One operation, with its lines: what outcome() says."""
        self.number += 1
        reads = function in ("read", "look")
        key = f"{self.shared.seed}-{self.process}-{self.number}" if not reads and self.rng.random() < KEYED else None
        transport = self.rng.choice(TRANSPORTS)
        where = {"process": self.process, "number": self.number}
        self.history.note(type="invoke", **where, time=time.monotonic_ns(), function=function, documents=documents, via=transport,
                          **({"key": key} if key else {}), **named)
        kind, result, revision = self.outcome(transport, tool, arguments, key, reads)
        now = time.monotonic_ns()
        if kind == "fail" and result.get("code") == "NOT_FOUND" and function == "read":
            kind, result, revision = "ok", None, 0
        self.counts[kind] += 1
        if kind == "ok":
            read = {"result": parse_look(result) if function == "look" else result} if reads else {}
            self.history.note(type=kind, **where, time=now, revision=revision, **read)
        else:
            current = (result.get("details") or {}).get("currentRevision")
            self.history.note(type=kind, **where, time=now, error=str(result.get("code") or "") or f"status {result.get('status')}",
                              **({"current": current} if current is not None else {}))
            if result.get("code") not in REFUSED:
                time.sleep(self.rng.uniform(*PAUSE))
        return kind, result, revision

    # ---- functions

    def token(self):
        return f"{self.process:02}-{self.number + 1:07}"

    def learn(self, slot, epoch, document, revision, text):
        self.missing.discard(document)
        self.known[document] = revision, text
        if revision and revision >= CHANGES_MAX:
            self.shared.over(("r", slot), epoch)
            self.known.pop(document)

    def notebook(self, function, slot, epoch, arguments, **named):
        """One function of one notebook; remembers what it learns."""
        name = register(slot, epoch)
        document = f"notebooks/shared/{name}"
        kind, result, revision = self.operate(function, [document], "notebook", {"name": name, **arguments}, **named)
        if kind == "ok" and function == "read":
            if result is None:
                self.missing.add(document)
            else:
                self.learn(slot, epoch, document, revision, result)
        elif kind == "ok":
            self.learn(slot, epoch, document, revision, "")
        elif kind == "fail" and result.get("code") == "NOT_FOUND":
            self.missing.add(document)

    def change(self, function, slot, epoch):
        document = f"notebooks/shared/{register(slot, epoch)}"
        revision, text = self.known.get(document, (None, ""))
        token = self.token()
        if document in self.missing:
            self.missing.discard(document)
            self.notebook("create", slot, epoch, {"mode": "create", "newStr": token, "expectedRevision": 0}, token=token, expected=0)
            return
        arguments, named = {"mode": "write", "newStr": token}, {"token": token}
        if "guarded" in function and revision is not None:
            named["expected"] = arguments["expectedRevision"] = revision
        if "replace" in function and text:
            named["old"] = arguments["oldStr"] = self.rng.choice(text.split("\n"))
            self.notebook("replace", slot, epoch, arguments, **named)
        else:
            self.notebook("append", slot, epoch, arguments, **named)

    def read(self, slot, epoch):
        self.notebook("read", slot, epoch, {"mode": "read"})

    def look(self, slot, epoch):
        name = group(slot, epoch)
        self.operate("look", group_documents(name), "together_read", {"group": name})

    def together(self, slot, epoch):
        name, token = group(slot, epoch), self.token()
        documents = self.rng.sample(group_documents(name), self.rng.randint(2, GROUP_SIZE))
        kind, _, revision = self.operate("step", documents, "together_append", {
            "group": name, "names": [document.rsplit("/", 1)[1] for document in documents], "token": token}, token=token)
        if kind == "ok" and revision >= CHANGES_MAX:
            self.shared.over(("g", slot), epoch)

    def memory(self):
        token = self.token()
        self.operate("memory", [f"agent_memory/shared/{self.name}"], "memory_log", {"content": token}, token=token)

    def step(self):
        function = self.rng.choices(list(SHARES), SHARES.values())[0]
        if function == "memory":
            self.memory()
            return
        if function in ("step", "look"):
            (_, slot), epoch = self.shared.present(("g", self.rng.randrange(GROUPS)))
            (self.look if function == "look" else self.together)(slot, epoch)
            return
        (_, slot), epoch = self.shared.present(("r", self.rng.randrange(REGISTERS)))
        if function == "read":
            self.read(slot, epoch)
        else:
            self.change(function, slot, epoch)

    def run(self):
        try:
            while self.shared.take():
                self.step()
        except Exception as error:  # noqa: BLE001: told by the rig
            self.shared.wrong.append(f"{self.name}: {type(error).__name__} {error}")
            self.shared.halt.set()
        finally:
            self.history.close()

    def read_all(self):
        """When all is healed: each document once more. False where one could not be read."""
        self.history = History(f"{self.shared.folder}/history-{self.process:02}.jsonl")
        for (kind, slot), epoch in list(self.shared.documents):
            for _ in range(100):
                before = self.counts["ok"]
                (self.read if kind == "r" else self.look)(slot, epoch)
                if self.counts["ok"] > before:
                    break
                time.sleep(0.1)
            else:
                return False
        self.history.close()
        return True


def parse_look(text):
    """{document: [revision, text]} of "id revision token token ..." a line."""
    found = {}
    for line in text.splitlines():
        name, revision, *tokens = line.split(" ")
        found[name] = [int(revision), "\n".join(tokens)]
    return found


class Reader(threading.Thread):
    """Follows the feed at one gateway, over all its faults, until it has seen the fence."""

    def __init__(self, shared, name, port_file, fence):
        super().__init__(name=name, daemon=True)
        self.shared, self.fence = shared, fence
        self.wire = Wire(port_file, agent=name, timeout=ANSWER_SECONDS)
        self.history = History(f"{shared.folder}/{name}.jsonl")
        self.last, self.done, self.stop = None, False, False
        self.seen = 0

    def follow(self):
        answer = self.wire.start("GET", f"/v1/events?since=0&collection={COLLECTIONS}", None,
                                 {"Last-Event-ID": self.last} if self.last else None)
        if answer.status != 200:
            answer.read()
            raise Gone
        for number, name, data in events(answer):
            if name == "closed":
                break
            body = json.loads(data)
            self.last = number
            document = f"{body['collection']}/{body['space']}/{body['id']}"
            if document == self.fence:
                self.done = True
                break
            self.seen += 1
            self.history.note(type="event", reader=self.name, seq=body["seq"], document=document, revision=body["revision"],
                              agent=body["agent"], time=time.monotonic_ns())
        self.wire.close()

    def run(self):
        while not self.done and not self.stop:
            try:
                self.follow()
            except (Gone, ValueError, OSError, http.client.HTTPException):
                self.wire.close()
                time.sleep(0.02)
        self.history.note(type="end", reader=self.name, whole=self.done, time=time.monotonic_ns())
        self.history.close()
