# SPDX-License-Identifier: MIT
"""Each request with its first, second, third ... own allocation failing, until one passes without a failure.

After each: the gateway lives; the answer is right or says that the gateway failed; what was refused left nothing behind and what
was acknowledged is all there; the same request works. At the end nothing is held, the gateway ends well and `verify` finds
nothing.
"""
import collections
import time

import control as control_page
from cases import CASES
from wire import Answer, Gone, Hangs, Wire
from world import World

# More than any request makes. One that goes on failing beyond has an endless loop.
NUMBERS_MAX = 20000
# A gateway that does not answer within this is asked no more.
AGAIN = 3


# Of a request that makes many, so many first ones fail, then only every so manyth.
EACH = 250
THEN_EVERY = 13


NOTHING = Answer(500, "{}")


def all_numbers(_case=None):
    yield from range(1, EACH)
    yield from range(EACH, NUMBERS_MAX, THEN_EVERY)


# Time limit for finishing an interrupted operation.
BUSY_SECONDS = 60


class Found(Exception):
    """Faults found by a failed allocation."""


class Sweep:
    def __init__(self, world, burst=1, tell=print):
        self.world = world
        self.burst, self.tell = burst, tell
        self.marks = 0
        self.sites = collections.Counter()
        self.findings = []
        self.runs = self.failures = self.cut = 0

    # ---- one request

    def mark(self):
        self.marks += 1
        self.current = f"sweep{self.marks:06d}word"
        return self.current

    def baseline(self, case):
        """Answers and writes if no allocation fails."""
        world, mark = self.world, self.mark()
        self.prepare(case, mark)
        since, _ = world.written(self.seq)
        answer = case.send(world, mark)
        self.seq, rows = world.written(since)
        self.clean(case, mark, answer)
        if not answer.ok and not 400 <= answer.status < 500 and answer.code is None:
            raise Found(f"without any failure: {answer}")
        return answer, rows

    def prepare(self, case, mark):
        if case.before:
            case.before(self.world, mark)
        self.seq, _ = self.world.written(self.seq)

    def clean(self, case, mark, answer):
        if case.after:
            case.after(self.world, mark, answer)
        self.world.ids.pop(mark, None)

    def look_at_answer(self, case, answer, want):
        """Is it right, or does it say that the gateway failed?"""
        if answer is None or answer.failed or answer.code in case.codes:
            return
        if answer.ok != want.ok or answer.status != want.status:
            raise Found(f"answers {answer} instead of {want}")
        if case.exact and answer.same() != want.same():
            raise Found(f"says {answer} instead of {want}")

    def look_at_disk(self, answer, rows, want_rows, before):
        """before: the files as they were; None: they are not looked at."""
        if answer is not None and answer.ok and rows != want_rows:
            raise Found(f"acknowledged, and wrote {rows} instead of {want_rows}: {answer}")
        if answer is not None and not answer.ok:
            if rows:
                raise Found(f"refused, and wrote {rows}: {answer}")
            if before is not None and self.world.tree() != before:
                raise Found(f"refused, and changed {set(self.world.tree().items()) ^ set(before.items())}: {answer}")
        if answer is None and rows and rows != want_rows:
            raise Found(f"gave no answer, and wrote {rows} of {want_rows}")

    def one(self, case, number, want, want_rows):
        """How many allocations failed in it."""
        world, mark = self.world, self.mark()
        self.prepare(case, mark)
        before = world.tree() if case.writes else None
        answer = None
        world.control.arm(number, self.burst)
        try:
            answer = case.send(world, mark)
        except Gone:
            self.cut += 1
        except Hangs as error:
            raise Found(f"no answer: {error}") from error
        finally:
            failed = self.failed = world.control.disarm()
        self.runs += 1
        self.failures += failed
        if not world.alive():
            raise Found(f"the gateway died ({world.process.wait()})")
        if failed:
            self.site = self.trace()
            self.sites[self.site] += 1
        self.look_at_answer(case, answer, want)
        if case.writes:
            self.seq, rows = world.written(self.seq)
            self.look_at_disk(answer, rows, want_rows, before)
        if answer is not None:
            self.clean(case, mark, answer)
        return failed

    def trace(self):
        return tuple(self.world.control.frames()[2:12])

    def again(self, case, want):
        """The next one works: nothing stayed locked, nothing was broken."""
        mark = self.mark()
        try:
            self.prepare(case, mark)
            answer = case.send(self.world, mark)
            end = time.monotonic() + BUSY_SECONDS
            while case.busy and answer.code == "BUSY" and time.monotonic() < end:
                time.sleep(0.05)
                answer = case.send(self.world, mark)
        except (Gone, Hangs, AssertionError) as error:
            raise Found(f"the next request: {error!r}") from error
        if answer.ok != want.ok or case.exact and answer.same() != want.same():
            raise Found(f"the next request says {answer} instead of {want}")
        self.clean(case, mark, answer)

    # ---- all of them

    def report(self, case, number, error):
        self.world.control.disarm()
        control = self.world.control
        names = control.maps().names(control.frames()) if control.get(control_page.FAILED) else []
        self.findings.append((case.name, number, str(error), names))
        self.tell(f"FOUND {case.name}, allocation {number}: {error}\n    " + "\n    ".join(names))

    def restart(self):
        """After a finding: nothing that it broke is met again."""
        self.world.kill()
        self.world.start()
        self.seq, _ = self.world.written(0)

    def leave(self, case):
        """Data that a failed request may have left."""
        try:
            if case.after:
                case.after(self.world, self.current, NOTHING)
        except (Gone, Hangs, AssertionError) as error:
            self.tell(f"    and cannot be taken away: {error!r}")

    def run_case(self, case, numbers):
        """How many allocations it makes; numbers: which of them fail."""
        while True:
            try:
                want, want_rows = self.baseline(case)
                break
            except (Found, Gone, Hangs, AssertionError) as error:
                self.report(case, 0, error)
                self.restart()
                return 0
        for number in numbers:
            try:
                if not self.one(case, number, want, want_rows):
                    return number
                self.again(case, want)
            except (Found, Gone, Hangs, AssertionError, KeyError, ValueError) as error:
                self.report(case, number, error if isinstance(error, Found) else repr(error))
                self.restart()
                self.leave(case)
                if not self.failed:
                    return number
        return number

    def start(self):
        self.world.start()
        self.world.fill()
        self.seq, _ = self.world.written(0)

    def finish(self):
        """After the last request."""
        world = self.world
        self.seq, _ = world.written(0)
        try:
            if world.strays():
                raise Found(f"left files behind: {world.strays()}")
            code = world.stop()
            if code != 0:
                raise Found(f"the gateway ended with {code}: {world.log.read_text()[-6000:]}")
            verified = world.command("verify")
            if verified.returncode != 0:
                raise Found(f"verify: {verified.stdout} {verified.stderr}")
        except Found as error:
            self.findings.append(("the end", 0, str(error), []))
            self.tell(f"FOUND at the end: {error}")

    def run(self, chosen, numbers=all_numbers):
        self.start()
        try:
            for case in chosen:
                begin = time.monotonic()
                runs, found, failures = self.runs, len(self.findings), self.failures
                made = self.run_case(case, numbers(case))
                self.tell(f"{case.name}: {self.failures - failures} failures in {self.runs - runs} requests, up to allocation "
                          f"{made}, {time.monotonic() - begin:.1f} s" +
                          (f", {len(self.findings) - found} FOUND" if len(self.findings) > found else ""))
            self.finish()
        finally:
            self.world.kill()
        return self.findings


def choose(words, kernels=True):
    """Cases whose name begins with one of the words; all of them without."""
    return [case for case in CASES if (not words or any(case.name.startswith(word) for word in words))
            and (kernels or not case.kernel)]


# Requests that are another thing where documents are in MongoDB and the journal is in Redis.
SHARED = ("notebook ", "notebook_", "memory_", "checkpoint_", "idempotency", "keys add", "keys revoke", "events", "tools/call (",
          "admin verify", "resources/list (n", "GET /readyz")
SHARED_NAME = "mongo "
# Each takes some seconds there: so many are left out between two that are tried.
SHARED_EVERY = 5


def some_numbers(case):
    """Other ones for each case."""
    first = 1 + len(case.name) % SHARED_EVERY
    yield from range(first, NUMBERS_MAX, SHARED_EVERY)


def choose_shared(words):
    """Those of them whose name begins with one of the words; before it stands SHARED_NAME."""
    return [case for case in CASES if case.name.startswith(SHARED)
            and (not words or any((SHARED_NAME + case.name).startswith(word) for word in words))]


__all__ = ["SHARED_NAME", "Sweep", "Wire", "World", "choose", "choose_shared"]
