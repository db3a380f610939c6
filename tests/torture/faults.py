# SPDX-License-Identifier: MIT
"""Faults of a round. A fault begins and ends; its kind, place and time come from the round's seed.

Each is a function of the round's Faults that begins it and returns a function that ends it.
"""
import contextlib
import errno
import os
import resource
import signal
import time

# A repeat of a write that is a day younger or older than the first is another write: clocks stay within that.
CLOCK_HOURS = 11
# Extra memory that a process may take: too little for its work.
FEW_DESCRIPTORS = (0, 6)
LITTLE_MEMORY = (0, 4 << 20)
# How late a piece of a delayed line is at most.
LATE_SECONDS = (0.005, 0.02, 0.1)
# Leave so much when the disk is filled.
ROOM = (0, 300000)
MAIN_KINDS = ("kill", "kill", "kill", "kill", "freeze", "term", "cut", "clock")
DISK_KINDS = ("full", "write", "short", "sync", "name", "size")
PROCESS_KINDS = ("descriptors", "memory", "alloc")
DATABASE_KINDS = ("kill_mongo", "kill_mongo", "freeze_mongo", "kill_redis", "freeze_redis", "cut_database", "cut_database")
# Allowed results of a fault: exit statuses of a process, and its error codes.
FATAL = {"alloc": (-signal.SIGABRT,), "memory": (-signal.SIGABRT,)}
# A start in the middle of such a fault may be refused.
STARTLESS = DISK_KINDS + PROCESS_KINDS


class Faults:
    """only: the kinds that may come, where that is not all that the system can have."""

    def __init__(self, system, rng, only=None):
        self.system, self.rng, self.only = system, rng, only
        self.active = []       # (kind, gateway or None, end)
        self.counts = {}
        self.seen = set()      # kinds that were there in this round
        self.recent = set()    # since the last step began: a process may take a while to end

    def kinds(self):
        kinds = list(DISK_KINDS + PROCESS_KINDS + MAIN_KINDS)
        if not self.system.mounted:
            kinds.remove("full")
        if self.system.kind == "memory":
            kinds = [kind for kind in kinds if kind not in ("kill", "term", "size")]
        if self.system.databases:
            kinds = list(PROCESS_KINDS + MAIN_KINDS + ("full", "write", "name") + 2 * DATABASE_KINDS)
        return [kind for kind in kinds if self.only is None or kind in self.only]

    def begin(self, kind=None):
        """One more fault, of this kind or of one that is drawn: its kind."""
        kind = kind or self.rng.choice(self.kinds())
        gateway = self.rng.choice(self.system.gateways)
        whole = kind in DATABASE_KINDS + ("full",)
        if any(self.excludes(kind, other) for other, where, _ in self.active if whole or where is gateway):
            return None
        if not whole and gateway.process.poll() is not None:
            return None
        end = getattr(self, kind)(gateway)
        self.active.append((kind, gateway, end))
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.seen.add(kind)
        self.recent.add(kind)
        return kind

    @staticmethod
    def excludes(kind, other):
        """Not twice the same, and no stop of what is stopped in another way."""
        for group in (("kill", "freeze", "term"), ("kill_mongo", "freeze_mongo"), ("kill_redis", "freeze_redis")):
            if kind in group and other in group:
                return True
        return kind == other

    def end(self):
        """All faults end, in an order of their own."""
        self.rng.shuffle(self.active)
        while self.active:
            self.active.pop()[2]()

    def broke_something(self):
        """Was there a fault by which a call may fail in the gateway itself?"""
        return bool(self.seen & set(STARTLESS))

    def may_end(self, gateway, code):
        """May this process have ended so, with what is wrong just now?"""
        kinds = self.recent
        if gateway.port is None and code == 1 and kinds & set(STARTLESS + DATABASE_KINDS):
            return True
        return any(code in FATAL.get(kind, ()) for kind in kinds)

    # ---- gateways

    def kill(self, gateway):
        gateway.kill()
        self.system.killed.append(time.monotonic())
        return gateway.start

    def freeze(self, gateway):
        gateway.freeze()
        return gateway.thaw

    def term(self, gateway):
        gateway.wanted = False
        gateway.process.send_signal(signal.SIGTERM)

        def again():
            code = gateway.process.wait(120)
            if code != 0 and not self.seen & set(STARTLESS):
                raise AssertionError(f"{gateway.name}: SIGTERM ended with {code}; see {gateway.log}")
            if any(code in FATAL.get(kind, ()) for kind in self.seen):
                gateway.excused_ends += 1  # without memory, before the signal or while it stopped
            gateway.start()

        return again

    def clock(self, gateway):
        gateway.control.jump(self.rng.uniform(-CLOCK_HOURS, CLOCK_HOURS) * 3600)
        # It stays so, until the next jump: also back.
        return lambda: gateway.control.jump(self.rng.choice([0, self.rng.uniform(-60, 60)]))

    def hour(self, gateway):
        gateway.control.jump(self.rng.choice([-3600, 3600]))
        return lambda: gateway.control.jump(0)

    # ---- lines

    def cut(self, gateway):
        return self.cut_line(gateway.name)

    def delay(self, gateway):
        return self.line(gateway.name, "delay", LATE_SECONDS)

    def cut_database(self, _gateway):
        return self.cut_line(self.rng.choice(self.system.database_lines()))

    def delay_database(self, _gateway):
        return self.line(self.rng.choice(self.system.database_lines()), "delay", LATE_SECONDS)

    def cut_line(self, name):
        return self.line(name, "cut", (0.02, 0.1, 0.5))

    def line(self, name, what, choices):
        self.system.put(what, name, self.rng.choice(choices))
        return lambda: self.system.put(what, name, 0)

    # ---- disks

    def full(self, _gateway):
        filler = os.path.join(self.system.disk, "filler")
        room = self.rng.randint(*ROOM)
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while file.write(b"\0" * 65536):
                pass
        if os.path.exists(filler):
            os.truncate(filler, max(0, os.path.getsize(filler) - room))
        return lambda: os.path.exists(filler) and os.unlink(filler)

    def arm(self, gateway, kind, error, every):
        part = self.rng.choice(["", "/root/", "/notes/", "notegate.db", "-wal"])
        gateway.control.arm(kind, every, error, part if kind != "name" else "")
        return lambda: gateway.control.arm(kind, 0)

    def write(self, gateway):
        return self.arm(gateway, "write", self.rng.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT]), self.rng.choice([1, 3, 10]))

    def short(self, gateway):
        return self.arm(gateway, "short", 0, self.rng.choice([2, 5]))

    def sync(self, gateway):
        return self.arm(gateway, "sync", errno.EIO, self.rng.choice([1, 3, 10]))

    def name(self, gateway):
        return self.arm(gateway, "name", self.rng.choice([errno.EIO, errno.ENOSPC]), self.rng.choice([1, 3, 10]))

    def size(self, gateway):
        gateway.limit(resource.RLIMIT_FSIZE, self.rng.choice([0, 4096, 65536]))
        return lambda: gateway.limit(resource.RLIMIT_FSIZE, None)

    # ---- processes

    def descriptors(self, gateway):
        with contextlib.suppress(OSError):
            used = len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
            gateway.limit(resource.RLIMIT_NOFILE, used + self.rng.randint(*FEW_DESCRIPTORS))
        return lambda: gateway.limit(resource.RLIMIT_NOFILE, None)

    def memory(self, gateway):
        with contextlib.suppress(OSError):
            with open(f"/proc/{gateway.process.pid}/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            gateway.limit(resource.RLIMIT_AS, used + self.rng.randint(*LITTLE_MEMORY))
        return lambda: gateway.limit(resource.RLIMIT_AS, None)

    def alloc(self, gateway):
        gateway.control.arm("alloc", self.rng.choice([20, 300, 5000]), errno.ENOMEM)
        return lambda: gateway.control.arm("alloc", 0)

    # ---- databases

    def kill_mongo(self, _gateway):
        self.system.databases.mongo.kill()
        return self.system.databases.mongo.restart

    def kill_redis(self, _gateway):
        self.system.databases.redis.kill()
        return self.system.databases.redis.restart

    def flush_redis(self, _gateway):
        with contextlib.suppress(OSError):
            self.system.databases.redis.execute("FLUSHALL")
        return lambda: None

    def freeze_mongo(self, _gateway):
        self.system.databases.mongo.freeze()
        return self.system.databases.mongo.thaw

    def freeze_redis(self, _gateway):
        self.system.databases.redis.freeze()
        return self.system.databases.redis.thaw
