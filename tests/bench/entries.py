# SPDX-License-Identifier: MIT
"""The budgets of single calls (entries, memories, files, notes): what a row is, and the order in which they are measured.

A group is a class of rows that share servers and data. Each row stands beside a baseline of the same run, measured in turn
with it. A row that fails or takes too long says why, and the others go on.
"""
import concurrent.futures
import json
import operator
import os
import shutil
import subprocess
import tempfile
import time

import rig
from curves import Bench, Curve

CLIENTS = 32
# Seconds of one measurement, of all rounds of a row, and of a group, at most: with 10^6 entries it takes longer.
SECONDS, ROW_SECONDS = 1, 40
GROUP_SECONDS, LONG_GROUP = 600, 5400
PLUGINS = "plugins=agent_notebook,notebook"
SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge}


class Skip(Exception):
    """A row has no measurement here, for a reason that is no failure."""


class Row:
    """What is measured, by which method of the group, and its limit: none, or (sign, number, unit)."""

    def __init__(self, what, measure, limit=None, unit=""):
        self.what, self.measure, self.limit, self.unit = what, measure, limit, unit

    def line(self, value, detail):
        line = {"what": self.what, "measured": round(value, 4), "budget": self.unit, "verdict": "", "detail": detail}
        if self.limit:
            sign, most, unit = self.limit
            line |= {"budget": f"{sign} {most:g} {unit}", "verdict": "met" if SIGNS[sign](value, most) else "MISSED"}
        return line

    def without(self, word, why):
        return {"what": self.what, "measured": None, "budget": f"{self.limit[0]} {self.limit[1]:g} {self.limit[2]}"
                if self.limit else self.unit, "verdict": word, "detail": why}


def times(most):
    return "<=", most, "times"


def micros(most):
    return "<=", most, "us"


class Group(Curve):
    """Rows that share servers and data, which begin() makes."""

    def __init__(self, bench, mode):
        super().__init__(bench)
        self.mode = mode
        self.small = mode == "smoke"
        self.found = {}

    def rows(self):
        raise NotImplementedError

    # ---- tools of the rows ----

    def sized(self, size, small):
        """Sizes are tiny where only the report is tried."""
        return small if self.small else size

    def once(self, key, measure):
        """A measurement that several rows tell about."""
        if key not in self.found:
            self.found[key] = measure()
        return self.found[key]

    def many(self, gateway, name, calls):
        """Results of many calls, several at once."""
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            return list(pool.map(lambda arguments: self.call(gateway, name, arguments), calls))

    def load(self, server, file, clients=CLIENTS, **options):
        return self.bench.load(server, clients, file, **options)

    def beside(self, ours, theirs):
        """Rounds of both in turn, fewer where calls are slow."""
        return self.bench.beside(ours, theirs, ROW_SECONDS)

    def warmed(self, server, file, clients=CLIENTS, **options):
        """A load to be repeated: of as many calls as take the time of one measurement. All that begin are answered, so that
        the CPU of slow ones is whole."""
        rate = self.load(server, file, clients, seconds=self.bench.warm, **options)["rate"]
        count = max(2 * clients, int(rate * self.bench.seconds))
        return lambda: self.load(server, file, clients, count=count, **options)

    def cpu(self, gateway, file, detail="", **options):
        """Value and detail of a row whose limit is in microseconds, beside bare libmicrohttpd that answers as many bytes."""
        bare = rig.Bare(self.bench.out, len(rig.body_of(gateway.port, file)))
        try:
            ours, base = self.beside(self.warmed(gateway, file, **options), self.warmed(bare, file))
        finally:
            bare.stop()
        return ours["cpu_us"], f"{base['cpu_us']:.1f} us by bare libmicrohttpd for as long an answer{detail}"

    def folder(self):
        """A temporary folder that goes with the group."""
        folder = tempfile.mkdtemp(prefix="notegate-bench-")
        self.stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def program(self, name, *arguments):
        """What one of the programs for baselines prints."""
        command = [os.path.join(self.bench.out, name), *(str(word) for word in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=self.bench.left())
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def plain_writer(self, size):
        """A row of the plain writer, on a new file."""
        folder = tempfile.mkdtemp(prefix="notegate-bench-")
        try:
            return self.program("plain_writer", os.path.join(folder, "plain.db"), self.bench.seconds, size)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # ---- running ----

    def guarded(self, step):
        """The error of a step, None where it succeeded."""
        try:
            step()
        except Skip as skip:
            return "skipped", str(skip)
        except SystemExit as error:
            if isinstance(error.code, int):
                raise  # the whole run is to end
            return "not measured", str(error)
        except Exception as error:  # whatever is wrong with one row, the others are measured
            return "not measured", f"{type(error).__name__}: {error}"
        return None

    def measure(self):
        """A line for each row."""
        began = time.monotonic()
        self.bench.until = began + (LONG_GROUP if self.mode == "full" else GROUP_SECONDS)
        lines = []
        try:
            failed = self.guarded(self.begin)
            for row in self.rows():
                found = []
                why = failed or self.guarded(lambda: found.append(row.line(*row.measure())))
                lines += found if not why else [row.without(*why)]
        finally:
            self.guarded(self.close)
        self.bench.note(f"{self.name}: {time.monotonic() - began:.0f} s")
        return lines


def measure(groups, args, out, binary):
    """The table of all groups."""
    bench = Bench(out, binary, args)
    bench.seconds = min(args.seconds, SECONDS)
    return [line for group in groups for line in group(bench, args.mode).measure()]
