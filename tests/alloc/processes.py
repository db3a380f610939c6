# SPDX-License-Identifier: MIT
"""Commands as processes of their own, each with one of its own allocations failing, from its start to its end.

After each: it was not killed by anything; it did what it does, or said why not and ended with a code that tells; what it wrote is all
there or not at all; `verify` finds nothing; the same command works on the same data.
"""
import json
import re
import shutil
import signal
import subprocess
import threading

from control import SEEN
from wire import VARIES, Wire
from world import environment

SECONDS = 240
# Allocations of one command that are tried, spread over all that it makes: its last ones, which are its own
# and not those of every start, and so many of the others.
LAST = 40
OTHERS = 80
# More than any command makes.
MANY = 1 << 40
FAILED = 1
PROTOCOL = "2025-11-25"
SHARED = ("--space", "shared")


class Found(Exception):
    """Faults found by a failed allocation."""


class Done:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit {self.code}, said {self.out[-600:]!r}, complained {self.err[-2000:]!r}"

    def json(self):
        return json.loads(self.out)


class Command:
    """`words(place, mark)`; `look(place, mark, done)` raises Found where the data are not as `done` says."""

    def __init__(self, name, words, look=None, stdin=None, before=None, served=False, empty=False, judge=None):
        self.name, self.words, self.look, self.stdin, self.before = name, words, look, stdin, before
        # served: by a gateway that runs on these data; empty: without any data.
        self.served, self.empty, self.judge = served, empty, judge or same


# ---- is its message right?


def same(_place, _mark, done, want):
    """As without a failure, or a sentence and a code."""
    if done.code == want.code and VARIES.sub("#", done.out) == VARIES.sub("#", want.out):
        return
    if done.code != FAILED or not done.err.strip():
        raise Found(f"{done} instead of {want}")


def checked(place, mark, done, want):
    """`check` reports each fault in its own line."""
    if done.code != FAILED or not (done.out.strip() or done.err.strip()):
        same(place, mark, done, want)


def spoken(_place, _mark, done, _want):
    """Each request of `talk` has its answer, or the process said why it ended."""
    answered = set()
    for line in done.out.splitlines():
        try:
            answered.add(json.loads(line).get("id"))
        except ValueError as error:
            raise Found(f"a line that is no message: {line[:300]!r}") from error
    # A process that has no memory to read a message does not know its id.
    unnamed = any('"id":null,"error"' in line for line in done.out.splitlines())
    if done.code == 0 and not {1, 2, 3} <= answered and not unnamed:
        raise Found(f"{sorted({1, 2, 3} - answered)} have no answer: {done}")
    if done.code not in (0, FAILED) or done.code and not done.err.strip():
        raise Found(str(done))


# ---- are the data as it says?


def expected(done):
    """How often it may have been done, by what the process says."""
    return (1,) if done.code == 0 else (0, 1) if "may have been carried out" in done.err else (0,)


def is_written(place, mark, done):
    place.count(mark, expected(done), done)


def is_spoken(place, mark, done):
    for line in done.out.splitlines():
        message = json.loads(line)
        if message.get("id") == 3:
            failed = "error" in message or message["result"].get("isError")
            unsure = "check whether" in line
            place.count(mark, (0, 1) if unsure else (0,) if failed else (1,), done)
            return
    place.count(mark, (0, 1), done)


def is_added(place, mark, done):
    keys = [key for key in place.all_keys() if key["agent"] == mark]
    if len(keys) not in expected(done):
        raise Found(f"{keys} after {done}")


def is_revoked(place, mark, done):
    keys = [key for key in place.all_keys() if key["agent"] == mark]
    if len(keys) != 1 or (keys[0]["state"] == "revoked") not in expected(done):
        raise Found(f"{keys} after {done}")


def is_backup(place, mark, done):
    path = place.folder / f"{mark}.backup"
    if path.exists() != (done.code == 0) or list(place.folder.glob("*.tmp")):
        raise Found(f"{sorted(file.name for file in place.folder.iterdir())} after {done}")
    if done.code == 0:
        other = place.folder / "other"
        told = place.run(["restore", str(path)], data=other)
        shutil.rmtree(other, ignore_errors=True)
        path.unlink()
        if told.code != 0:
            raise Found(f"a backup that cannot be restored: {told}")


def is_restored(place, _mark, done):
    told = place.run(["call", "notebook", "mode=read", "name=sweep", *SHARED])
    if (told.code == 0) != (done.code == 0):
        raise Found(f"{told} after {done}")
    if done.code:
        place.empty()


def talk(mark):
    """Messages of a client of `mcp`."""
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": PROTOCOL, "capabilities": {},
                                                     "clientInfo": {"name": "sweep", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": "notebook", "arguments": {
            "mode": "write", "name": "sweep", "newStr": mark + "\n"}}}]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def new_key(place, mark):
    place.must(place.run(["key", "add", mark]))


def write(_place, mark):
    return ["call", "notebook", "mode=write", "name=sweep", f"newStr={mark}\n", *SHARED]


def backup(place, mark):
    return ["backup", str(place.folder / f"{mark}.backup")]


COMMANDS = [
    Command("command serve", lambda p, m: ["serve", "--listen", "127.0.0.1:0"]),
    Command("command tools", lambda p, m: ["tools"]),
    Command("command call", lambda p, m: ["call", "notebook", "mode=list", *SHARED]),
    Command("command call that writes", write, is_written),
    Command("command key list", lambda p, m: ["key", "list", "--json"]),
    Command("command key add", lambda p, m: ["key", "add", m], is_added),
    Command("command key revoke", lambda p, m: ["key", "revoke", m, "--force"], is_revoked, before=new_key),
    Command("command check", lambda p, m: ["check"], judge=checked),
    Command("command verify", lambda p, m: ["verify"]),
    Command("command backup", backup, is_backup),
    Command("command restore", lambda p, m: ["restore", str(p.archive)], is_restored, before=lambda p, m: p.empty(), empty=True),
    Command("command mcp", lambda p, m: ["mcp", *SHARED], is_spoken, stdin=talk, judge=spoken),
    Command("served call that writes", write, is_written, served=True),
    Command("served key list", lambda p, m: ["key", "list", "--json"], served=True),
    Command("served key add", lambda p, m: ["key", "add", m], is_added, served=True),
    Command("served key revoke", lambda p, m: ["key", "revoke", m, "--force"], is_revoked, before=new_key, served=True),
    Command("served verify", lambda p, m: ["verify"], served=True),
    Command("served backup", backup, is_backup, served=True),
    Command("served mcp", lambda p, m: ["mcp", *SHARED], is_spoken, stdin=talk, judge=spoken, served=True),
]


class Place:
    """A folder with data of its own, and commands on them."""

    def __init__(self, world, folder):
        self.world, self.folder = world, folder
        self.data = folder / "data"
        self.archive = folder / "archive"
        self.gateway = None
        self.maps = None
        folder.mkdir()
        self.fill()
        self.must(self.run(["backup", str(self.archive)]))

    def fill(self):
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(self.world.data, self.data, ignore=shutil.ignore_patterns("*.sock", "kernels"))

    def empty(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def spawn(self, words, data=None, fails=False, **more):
        flags = [word if word != str(self.world.data) else str(data or self.data) for word in self.world.flags()]
        own = self.world.control.environment() if fails else {}
        return subprocess.Popen([self.world.binary, *words, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.PIPE, text=True, env=environment() | own, cwd=self.folder, **more)

    def run(self, words, data=None, stdin=None, number=None):
        """number: the allocation that fails."""
        control = self.world.control
        if number is not None:
            control.arm(number)
        process = self.spawn(words, data, number is not None)
        try:
            out, err = process.communicate(stdin, SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise Found(f"does not end: {process.communicate()[1][-2000:]}") from error
        finally:
            if number is not None:
                self.failed = control.disarm()
        return Done(process.returncode, out, err)

    @staticmethod
    def must(done):
        if done.code != 0:
            raise Found(f"without any failure: {done}")
        return done

    # ---- a gateway on these data

    def listening(self, process):
        """Its port; None: it ended."""
        line = process.stdout.readline()
        found = re.search(r"listening on http://[^ ]*:(\d+)", line)
        return int(found[1]) if found else None

    def serve(self):
        self.gateway = self.spawn(["serve", "--listen", "127.0.0.1:0"])
        if self.listening(self.gateway) is None:
            raise Found(f"the gateway does not start: {self.gateway.communicate()[1][-2000:]}")

    def end(self):
        if self.gateway is not None:
            self.gateway.send_signal(signal.SIGTERM)
            _, err = self.gateway.communicate(timeout=SECONDS)
            code, self.gateway = self.gateway.returncode, None
            if code != 0:
                raise Found(f"the gateway ended with {code}: {err[-2000:]}")

    def kill(self):
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.communicate()
            self.gateway = None

    # ---- stored data

    def lines(self, mark):
        return self.must(self.run(["call", "notebook", "mode=read", "name=sweep", *SHARED])).out.count(mark)

    def count(self, mark, want, done):
        if self.lines(mark) not in want:
            raise Found(f"{self.lines(mark)} lines instead of {want}: {done}")

    def all_keys(self):
        told = self.must(self.run(["key", "list", "--all", "--json"])).json()
        return told["keys"] if isinstance(told, dict) else told


class Processes:
    """All of them, as Sweep has the requests."""

    def __init__(self, world, tell=print):
        self.world, self.tell = world, tell
        self.marks = self.places = self.runs = self.failures = 0
        self.sites = set()
        self.findings = []

    def mark(self):
        self.marks += 1
        return f"process{self.marks:06d}word"

    # ---- one run

    def send(self, case, place, mark, number):
        if case.name == "command serve":
            return self.start(place, number)
        return place.run(case.words(place, mark), stdin=case.stdin(mark) if case.stdin else None, number=number)

    def start(self, place, number):
        """A gateway with a failure before it listens; one that listens works and ends well."""
        control = self.world.control
        control.arm(number)
        process = place.spawn(["serve", "--listen", "127.0.0.1:0"], fails=True)
        guard = threading.Timer(SECONDS, process.kill)
        guard.start()
        try:
            port = place.listening(process)
            place.seen = control.get(SEEN)
            place.failed = control.disarm()
            if port is not None:
                wire = Wire(port, self.world.key)
                answer = wire.tool("notebook", {"mode": "write", "name": "sweep", "newStr": "x\n"}, {"X-Notegate-Space": "shared"})
                wire.close()
                if not answer.ok:
                    raise Found(f"it listens, and says {answer}")
                process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            guard.cancel()
            if process.poll() is None:
                process.kill()
                process.communicate()
        return Done(process.returncode, "" if port is None else "served", err + out if port is None else err)

    def one(self, case, place, number, want):
        mark = self.mark()
        if case.before:
            case.before(place, mark)
        done = self.send(case, place, mark, number)
        failed = place.failed
        self.runs += 1
        self.failures += failed
        self.sites.add(tuple(self.world.control.frames()[2:12]))
        case.judge(place, mark, done, want)
        if case.look:
            case.look(place, mark, done)
        if not case.served and not (case.empty and done.code):
            told = place.run(["verify"])
            if told.code != 0:
                raise Found(f"verify: {told}, after {done}")

    def again(self, case, place, want):
        mark = self.mark()
        if case.before:
            case.before(place, mark)
        done = self.send(case, place, mark, MANY)
        if done.code != want.code:
            raise Found(f"the next one: {done}")
        if case.look:
            case.look(place, mark, done)

    # ---- all of them

    def begin(self, case):
        self.places += 1
        place = Place(self.world, self.world.folder / f"place{self.places}")
        if case.served:
            place.serve()
        return place

    def leave(self, place):
        place.kill()
        shutil.rmtree(place.folder, ignore_errors=True)

    def report(self, case, number, error):
        control = self.world.control
        names = control.maps().names(control.frames()) if number else []
        self.findings.append((case.name, number, str(error), names))
        self.tell(f"FOUND {case.name}, allocation {number}: {error}\n    " + "\n    ".join(names))

    def total(self, case, place):
        """(how many allocations it makes, how it ends)"""
        mark = self.mark()
        if case.before:
            case.before(place, mark)
        done = self.send(case, place, mark, MANY)
        if done.code != 0:
            raise Found(f"without any failure: {done}")
        seen = place.seen if case.name == "command serve" else self.world.control.get(SEEN)
        if case.look:
            case.look(place, mark, done)
        return seen, done

    def run_case(self, case, only=None):
        place = None
        number = 0
        try:
            place = self.begin(case)
            seen, want = self.total(case, place)
            for number in [only] if only else spread(seen):
                try:
                    self.one(case, place, number, want)
                    self.again(case, place, want)
                except (Found, AssertionError, ValueError, KeyError, OSError, subprocess.TimeoutExpired) as error:
                    self.report(case, number, error if isinstance(error, Found) else repr(error))
                    self.leave(place)
                    place = self.begin(case)
            place.end()
        except (Found, OSError, ValueError) as error:
            self.report(case, number, error)
            seen = 0
        finally:
            if place is not None:
                self.leave(place)
        return seen

    def run(self, chosen, only=None):
        for case in chosen:
            runs, found = self.runs, len(self.findings)
            seen = self.run_case(case, only)
            self.tell(f"{case.name}: {self.runs - runs} of {seen} allocations" +
                      (f", {len(self.findings) - found} FOUND" if len(self.findings) > found else ""))
        return self.findings


def spread(seen):
    """Which ones are tried."""
    first = max(1, seen - LAST + 1)
    step = max(1, (first - 1) // OTHERS)
    return [*range(1, first, step), *range(first, seen + 1)]


def choose(words):
    """Commands whose name begins with one of the words; all of them without."""
    return [case for case in COMMANDS if not words or any(case.name.startswith(word) for word in words)]


__all__ = ["Processes", "choose"]
