# SPDX-License-Identifier: MIT
"""A replica set of two members, each a line to the same server: the role of the primary moves from one to the other, and the
driver has to find it."""

import contextlib
import socket
import threading

import bson
from mongo_proxy import GREETINGS, OP_MSG, SET_NAME, Fault, Proxy, aborted, gone, message, not_primary, packed, receive

NOT_WRITABLE, NO_SECONDARY_OK, INTERRUPTED, NO_SUCH_TRANSACTION = 10107, 13435, 11602, 251
REFUSALS = {NOT_WRITABLE, NO_SECONDARY_OK, INTERRUPTED}
# What a member answers in any state.
FREE = GREETINGS | {"ping", "endSessions", "killCursors", "killSessions"}
READS = {"find", "aggregate", "count", "distinct", "getMore"}


class Member(Proxy):
    """One of the set. What the tests say goes before what its state says."""

    def __init__(self, group, port):
        self.group, self.down, self.election = group, False, 0
        super().__init__(port, group.greeting(self))
        self.faults += [
            Fault(times=None, cut="before", where=lambda _: self.down),
            Fault(times=None, answer=self._refuse, where=lambda command: not self.is_primary and command.name not in FREE),
            Fault(times=None, answer=gone, where=lambda command: group.lost(command) and command.name != "commitTransaction"),
            Fault(times=None, change=aborted, edit=self._ended, where=group.lost),
            Fault(times=None, edit=self._interrupt, where=lambda command: command.name not in FREE)]

    @property
    def is_primary(self):
        return self.group.primary is self

    @staticmethod
    def _refuse(command):
        return not_primary(NO_SECONDARY_OK if command.name in READS else NOT_WRITABLE)(command)

    @staticmethod
    def _ended(command, reply):
        """A commit that is sent again: the former primary may have carried it out without an answer."""
        return gone(command) if reply.get("ok") or reply.get("code") == NO_SUCH_TRANSACTION else {"ok": 1.0}

    def _interrupt(self, command, reply):
        """What was under way when the role went is carried out, and its answer is an error."""
        self.group.follow(command, reply)
        return reply if self.is_primary else not_primary(INTERRUPTED)(command)

    def note(self, command):
        self.group.begun(command)
        return super().note(command)


class ReplicaSet:
    """Two members. Transactions do not outlive the primary that began them."""

    def __init__(self, port):
        self.lock, self.port = threading.Lock(), port
        self.open_transactions, self.lost_transactions = set(), set()
        self.election, self.primary, self.unaware = 0, None, None
        self.members = [Member(self, port) for _ in range(2)]
        self.elect(self.members[0])

    @property
    def uri(self):
        hosts = ",".join(self.hosts)
        return f"mongodb://{hosts}/?replicaSet={SET_NAME}&heartbeatFrequencyMS=500"

    @property
    def hosts(self):
        return [f"127.0.0.1:{member.port}" for member in self.members]

    def greeting(self, member):
        def greet(hello):
            primary, me = self.primary, f"127.0.0.1:{member.port}"
            for name in ("topologyVersion", "primary", "electionId"):
                hello.pop(name, None)
            writable = member in (primary, self.unaware)
            hello.update(setName=SET_NAME, setVersion=1, hosts=self.hosts, me=me, isWritablePrimary=writable, ismaster=writable,
                         secondary=not writable)
            if writable or primary:
                hello["primary"] = me if writable else f"127.0.0.1:{primary.port}"
            if writable:
                hello["electionId"] = bson.ObjectId(f"7fffffff{member.election:016x}")
        return greet

    # ---- transactions ----

    def begun(self, command):
        if command.in_transaction and command.body.get("startTransaction"):
            with self.lock:
                self.open_transactions.add(command.transaction)

    def follow(self, command, reply):
        """A commit or abort that the server has carried out ends the transaction, whatever its caller learns."""
        if command.name in ("commitTransaction", "abortTransaction") and reply.get("ok"):
            with self.lock:
                self.open_transactions.discard(command.transaction)
                self.lost_transactions.discard(command.transaction)

    def lost(self, command):
        """Belongs to a transaction that a former primary had begun."""
        if not command.in_transaction or command.name == "abortTransaction":
            return False
        with self.lock:
            return command.transaction in self.lost_transactions

    def _abort(self, session, number):
        """A transaction that is lost keeps no locks. One that was committed stays so."""
        kind, rest = packed(OP_MSG, {"abortTransaction": 1, "lsid": {"id": bson.Binary(session, bson.binary.UUID_SUBTYPE)},
                                     "txnNumber": bson.Int64(number), "autocommit": False, "$db": "admin"})
        with socket.create_connection(("127.0.0.1", self.port)) as plain:
            plain.sendall(message(1, 0, kind, rest))
            receive(plain)

    # ---- elections ----

    def elect(self, member, unaware=False):
        """This member is the primary from now on; None: there is none. unaware: the former one goes on saying that it is."""
        with self.lock:
            lost = set(self.open_transactions)
            self.lost_transactions |= lost
            self.open_transactions.clear()
            self.election += 1
            if member:
                member.election = self.election
            self.unaware = self.primary if unaware else None
            self.primary = member
        for transaction in lost:
            self._abort(*transaction)

    def other(self):
        return next(member for member in self.members if member is not self.primary)

    def close(self):
        for member in self.members:
            member.close()


@contextlib.contextmanager
def replica_set(server):
    group = ReplicaSet(server.port)
    try:
        yield group
    finally:
        group.close()
