# SPDX-License-Identifier: MIT
"""A line to a server of MongoDB's protocol that reads every message: it keeps what was asked and answered, and edits,
delays or cuts single answers, into the forms that MongoDB documents.

Gateways reach it as the primary of a replica set, so that the driver itself decides what a failover means.
"""

import contextlib
import itertools
import socket
import struct
import threading
import time

import bson

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
GREETINGS = {"hello", "ismaster", "isMaster"}
SET_NAME = "secantus"
HOLD_SECONDS = 120


class Command:
    """One command, with its answer once there is one."""

    def __init__(self, body, line):
        self.body = body
        self.line = line
        self.name = next(iter(body))
        value = body[self.name]
        self.collection = body.get("collection") if self.name == "getMore" else value if isinstance(value, str) else None
        self.reply = None
        self.fault = None
        self.at = time.monotonic()
        self.ended = None

    @property
    def in_transaction(self):
        return self.body.get("autocommit") is False

    @property
    def transaction(self):
        """What names its transaction."""
        return bytes(self.body["lsid"]["id"]), self.body["txnNumber"]

    def answered(self, reply):
        self.reply, self.ended = reply, time.monotonic()

    @property
    def retryable(self):
        """The server marks errors of these as retryable."""
        return "txnNumber" in self.body and (not self.in_transaction or self.name in ("commitTransaction", "abortTransaction"))

    def __repr__(self):
        return f"{self.name} {self.collection or ''}{' in a transaction' if self.in_transaction else ''}"


class Fault:
    """What happens to the commands that it wants: as often as `times` says (None: each), and for `seconds`.

    answer: given without the server, a document or made from the command; edit: of the server's answer; change: of the command;
    cut: the line breaks "before" the server has the command or "after" it was carried out; hold: until the fault is over."""

    def __init__(self, names=(), collection=None, where=None, times=1, seconds=None, skip=0, answer=None, edit=None, cut=None,
                 hold=False, change=None):
        self.names = {names} if isinstance(names, str) else set(names)
        self.collection, self.where = collection, where
        self.left, self.skip = times, skip
        self.until = time.monotonic() + seconds if seconds else None
        self.answer, self.edit, self.cut, self.hold, self.change = answer, edit, cut, hold, change
        self.met = []
        self.over = threading.Event()

    @property
    def hits(self):
        return len(self.met)

    def wants(self, command):
        if self.over.is_set() or self.left == 0 or (self.until and time.monotonic() > self.until):
            return False
        if self.names and command.name not in self.names or self.collection and command.collection != self.collection:
            return False
        return not self.where or self.where(command)

    def take(self, command):
        """Called under the proxy's lock."""
        if not self.wants(command):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.left is not None:
            self.left -= 1
        self.met.append(command)
        return True

    def end(self):
        self.over.set()


class Proxy:
    """Between gateways and the server at a port of this machine."""

    def __init__(self, port, greet=None):
        self.server_port = port
        self.greet = greet or self._as_member
        self.lock = threading.Lock()
        self.faults, self.seen, self.sockets = [], [], set()
        self.secondary, self.elections = False, 1
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.lines = 0
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?replicaSet={SET_NAME}"

    def _as_member(self, hello):
        """The only member of its set. Without a topology version the driver asks again by itself, soon after a failure."""
        me = f"127.0.0.1:{self.port}"
        hello.pop("topologyVersion", None)
        hello.update(setName=SET_NAME, setVersion=1, hosts=[me], me=me, isWritablePrimary=not self.secondary,
                     ismaster=not self.secondary, secondary=self.secondary)
        if self.secondary:
            hello.pop("primary", None)
            hello.pop("electionId", None)
        else:
            hello.update(primary=me, electionId=bson.ObjectId(f"7fffffff{self.elections:016x}"))

    # ---- what the tests say ----

    @contextlib.contextmanager
    def fault(self, *args, **more):
        """A fault, until the end of the block."""
        fault = Fault(*args, **more)
        with self.lock:
            self.faults.insert(0, fault)
        try:
            yield fault
        finally:
            self.remove(fault)

    def remove(self, fault):
        fault.end()
        with self.lock, contextlib.suppress(ValueError):
            self.faults.remove(fault)

    def mark(self):
        """A place in what was seen, for since()."""
        with self.lock:
            return len(self.seen)

    def since(self, mark=0, names=(), collection=None):
        names = {names} if isinstance(names, str) else set(names)
        with self.lock:
            return [one for one in self.seen[mark:]
                    if (not names or one.name in names) and (collection is None or one.collection == collection)]

    def cut_all(self):
        """All lines break."""
        with self.lock:
            ends = list(self.sockets)
        for end in ends:
            self._shut(end)

    def close(self):
        with self.lock:
            faults = list(self.faults)
        for fault in faults:
            self.remove(fault)
        self._shut(self.listener)
        self.listener.close()
        self.cut_all()
        self.thread.join()

    # ---- lines ----

    @staticmethod
    def _shut(end):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.server_port))
                except OSError:
                    near.close()
                    continue
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self.lock:
                    self.lines += 1
                    self.sockets |= {near, far}
                    line = Line(self, near, far, self.lines)
                for work in (line.forth, line.back):
                    threading.Thread(target=work, daemon=True).start()

    def closed(self, line):
        for end in (line.near, line.far):
            self._shut(end)
            with self.lock:
                self.sockets.discard(end)

    def note(self, command):
        """Keeps the command; its fault, if there is one."""
        with self.lock:
            self.seen.append(command)
            for fault in self.faults:
                if fault.take(command):
                    command.fault = fault
                    return fault
        return None


def receive(end):
    """The next message: its number, what it answers, its kind, and all bytes after these. None at the end."""
    head = b""
    while len(head) < 16:
        piece = end.recv(16 - len(head))
        if not piece:
            return None
        head += piece
    length, number, answers, kind = struct.unpack("<iiii", head)
    rest = bytearray()
    while len(rest) < length - 16:
        piece = end.recv(length - 16 - len(rest))
        if not piece:
            return None
        rest += piece
    return number, answers, kind, bytes(rest)


def message(number, answers, kind, rest):
    return struct.pack("<iiii", len(rest) + 16, number, answers, kind) + rest


# Used at any time by each gateway for itself, or after the answer: references to what was written or opened.
BACKGROUND = {"notegate_meta", "notegate_events", "$cmd.aggregate", "gateways", "keys", "key_uses", "mcp_tasks",
              "notebook_openings"}


def of_a_call(command):
    """A round trip that a call waited for."""
    return (command.name not in GREETINGS | {"ping", "listCollections", "createIndexes"} and command.collection not in BACKGROUND
            and not (command.collection or "").startswith("journal_"))


def is_heartbeat(command):
    return command.name == "update" and "beat" in command.body["updates"][0]["u"].get("$inc", {})


def most_at_once(commands):
    """How many of these were open at the same time."""
    steps = sorted([(one.at, 1) for one in commands] + [(one.ended, -1) for one in commands if one.ended])
    return max(itertools.accumulate((step for _, step in steps), initial=0))


def is_stream(command):
    """Opens a change stream or asks it for more."""
    return is_opening(command) or command.name == "getMore" and command.collection == "$cmd.aggregate"


def is_opening(command):
    return command.name == "aggregate" and "$changeStream" in command.body["pipeline"][0]


def parse(kind, rest):
    """The command or answer of a message."""
    if kind == OP_QUERY:
        at = rest.index(b"\0", 4) + 9
        return bson.decode(rest[at:at + struct.unpack_from("<i", rest, at)[0]])
    if kind == OP_REPLY:
        return bson.decode(rest[20:])
    at, body, lists = 4, {}, {}
    end = len(rest) - 4 * (rest[0] & 1)
    while at < end:
        section, size = rest[at], struct.unpack_from("<i", rest, at + 1)[0]
        part = rest[at + 1:at + 1 + size]
        at += 1 + size
        if section == 0:
            body = bson.decode(part)
            continue
        name, _, documents = part[4:].partition(b"\0")
        lists[name.decode()] = bson.decode_all(documents)
    return {**body, **lists}


def packed(kind, reply, flags=0):
    """An answer as the bytes of a message of this kind, after its head."""
    if kind == OP_QUERY:
        return OP_REPLY, struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(reply)
    return OP_MSG, struct.pack("<IB", flags, 0) + bson.encode(reply)


class Line:
    """One connection of a gateway, and one of its own to the server."""

    def __init__(self, proxy, near, far, number):
        self.proxy, self.near, self.far, self.number = proxy, near, far, number
        self.waiting = {}
        self.sending = threading.Lock()

    def forth(self):
        with contextlib.suppress(OSError):
            while (got := receive(self.near)) and self._ask(*got):
                pass
        self.proxy.closed(self)

    def back(self):
        with contextlib.suppress(OSError):
            while (got := receive(self.far)) and self._answer(*got):
                pass
        self.proxy.closed(self)

    def _send(self, data):
        with self.sending:
            self.near.sendall(data)

    def _ask(self, number, answers, kind, rest):
        command = Command(parse(kind, rest), self.number)
        fault = self.proxy.note(command)
        if fault and fault.hold:
            fault.over.wait(HOLD_SECONDS)
        if fault and fault.answer is not None:
            reply = fault.answer(command) if callable(fault.answer) else dict(fault.answer)
            command.answered(reply)
            form, data = packed(kind, reply)
            self._send(message(0, number, form, data))
            return True
        if fault and fault.cut == "before":
            return False
        if fault and fault.change:
            kind, rest = packed(OP_MSG, fault.change(command.body))
        self.waiting[number] = (command, kind)
        self.far.sendall(message(number, answers, kind, rest))
        return True

    def _answer(self, number, answers, kind, rest):
        command, asked = self.waiting.pop(answers, (None, None))
        if command is None:
            self._send(message(number, answers, kind, rest))
            return True
        reply = parse(kind, rest)
        flags = struct.unpack_from("<I", rest)[0] if kind == OP_MSG else 0
        if flags & 2:
            self.waiting[number] = (command, asked)  # more answers follow
        fault = command.fault
        if fault and fault.cut == "after":
            command.answered(reply)
            return False
        edited = command.name in GREETINGS or bool(fault and fault.edit)
        if command.name in GREETINGS:
            self.proxy.greet(reply)
        if fault and fault.edit:
            reply = fault.edit(command, reply) or reply
        command.answered(reply)
        if edited:
            kind, rest = packed(asked, reply, flags & 2)
        self._send(message(number, answers, kind, rest))
        return True


# ---- answers as MongoDB documents them ----

NAMES = {13: "Unauthorized", 20: "IllegalOperation", 26: "NamespaceNotFound", 27: "IndexNotFound", 50: "MaxTimeMSExpired",
         64: "WriteConcernFailed", 85: "IndexOptionsConflict", 86: "IndexKeySpecsConflict", 112: "WriteConflict",
         168: "InvalidPipelineOperator", 189: "PrimarySteppedDown", 251: "NoSuchTransaction", 276: "IndexBuildAborted",
         280: "ChangeStreamFatalError", 286: "ChangeStreamHistoryLost", 10107: "NotWritablePrimary", 11601: "Interrupted",
         11602: "InterruptedDueToReplStateChange", 13435: "NotPrimaryNoSecondaryOk",
         40573: "Location40573"}


def error(code, text, labels=()):
    """An error of a whole command."""
    reply = {"ok": 0.0, "errmsg": text, "code": code, "codeName": NAMES[code]}
    return {**reply, "errorLabels": list(labels)} if labels else reply


def concern_failed(_command, reply):
    """A primary whose secondaries are gone answers so after `wtimeout`, to what succeeded and to what failed. The change
    stays on the primary and may be rolled back."""
    return {**reply, "writeConcernError": {"code": 64, "codeName": NAMES[64], "errmsg": "waiting for replication timed out",
                                           "errInfo": {"wtimeout": True}}}


def not_primary(code):
    """The answer of a member that stopped being the primary, with the labels that the server adds."""
    def answer(command):
        labels = ["RetryableWriteError"] if command.retryable else []
        if command.in_transaction and command.name not in ("commitTransaction", "abortTransaction"):
            labels = ["TransientTransactionError"]
        if is_stream(command) and not is_opening(command):
            labels = ["ResumableChangeStreamError"]
        return error(code, "operation was interrupted" if code == 11602 else "not primary", labels)
    return answer


def aborted(body):
    """The request to end the transaction in place of the one to commit it."""
    return {"abortTransaction": 1, **{key: value for key, value in body.items() if key != "commitTransaction"}}


def gone(_command, _reply=None):
    """The answer about a transaction that another primary had begun, or that the server ended."""
    return error(251, "Transaction was aborted", ["TransientTransactionError"])


@contextlib.contextmanager
def stepped_down(proxy, code, seconds):
    """No primary for so long: the member says that it is a secondary, and refuses all that only a primary does."""
    def over():
        proxy.secondary = False

    timer = threading.Timer(seconds, over)
    free = GREETINGS | {"ping", "endSessions", "killCursors"}
    with proxy.fault(where=lambda command: proxy.secondary and command.name not in free, times=None,
                     answer=not_primary(code)) as fault:
        proxy.elections += 1
        proxy.secondary = True
        timer.start()
        try:
            yield fault
        finally:
            timer.cancel()
            over()
