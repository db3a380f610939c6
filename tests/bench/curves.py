# SPDX-License-Identifier: MIT
"""Growth curves: what one is, what it measures with, and the order in which their points are taken.

A curve is a class with a point for each size. All short points of all curves come first, the long ones last, so that a run
which is cut has the most to tell. Each point has a time limit; one that fails or takes longer is in the report as not
measured, with the reason.
"""
import contextlib
import http.client
import os
import statistics
import subprocess
import sys
import time

import rig

CONNECTIONS = 8
WARM_SECONDS = 0.3
# A gateway that used less of a core than this share for so many seconds has finished its background work.
SETTLED_SECONDS, SETTLED_SHARE = 0.3, 0.05
# Seconds that one point may take, growing included.
SHORT_POINT, LONG_POINT = 180, 1800
FAILURES = (SystemExit, OSError, subprocess.SubprocessError, http.client.HTTPException, ValueError, KeyError)


class Late(SystemExit):
    """The time of a point is over."""


class Bench:
    """Tools for the measurements of all curves."""

    def __init__(self, out, binary, args):
        self.out, self.binary = out, binary
        self.rounds, self.seconds = args.rounds, args.seconds
        self.warm = min(WARM_SECONDS, args.seconds)
        self.modules = os.path.join(os.path.dirname(os.path.dirname(binary)), "modules")
        self.until = None

    def left(self):
        """Seconds that the point has left."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise Late("its time was over")
        return seconds

    def load(self, server, connections, file, rate=None, count=None, among=None, seconds=None):
        """A load on one server: of so many requests, or for the time of one measurement."""
        wanted = seconds or self.seconds
        while True:
            given = self.left() if count else min(self.left(), wanted)
            row = rig.load(self.out, server.port, connections, given, file, server.pid, rate, count=count, among=among)
            if count and row["answered"] < count:
                raise Late(f"{row['answered']} of {count} calls were answered when its time was over")
            if row["answered"]:
                return row
            wanted *= 4  # the machine is busy with something else

    def settle(self, server):
        """Work of the gateway after its answers (search index, references) would be counted in the next measurement."""
        used = rig.cpu_seconds(server.pid)
        while True:
            time.sleep(min(self.left(), SETTLED_SECONDS))
            before, used = used, rig.cpu_seconds(server.pid)
            if used - before < SETTLED_SECONDS * SETTLED_SHARE:
                return

    def beside(self, ours, theirs, seconds=float("inf")):
        """Interleaved rounds of two measurements that give a row each: medians, and of CPU the least, as what disturbs
        can only add to it. After so many seconds no round begins."""
        rows, end = [], time.monotonic() + seconds
        while not rows or (len(rows) < self.rounds and time.monotonic() < end):
            rows.append((theirs(), ours()))
        return tuple({key: (min if key == "cpu_us" else statistics.median)(row[side][key] for row in rows)
                      for key in rows[0][side]} for side in (1, 0))

    def note(self, text):
        print(text, file=sys.stderr, flush=True)


def request(path, body, agent="bench", space="bench"):
    return rig.request(path, body, [f"X-Notegate-Agent: {agent}", f"X-Notegate-Space: {space}"])


def tool(name, arguments, **options):
    """The request of a call over REST."""
    return request("/v1/tools/" + name, arguments, **options)


def disk_bytes(folder):
    """Disk space of the files below."""
    return sum(os.lstat(os.path.join(path, name)).st_blocks * 512 for path, _, names in os.walk(folder) for name in names)


class Curve:
    """One thing that grows. Its class says what, and which points belong to which length of run."""

    name = title = about = x = ""
    x_log = True
    smoke = quick = full = ()
    # From here on a point takes long.
    long_from = float("inf")

    def __init__(self, bench):
        self.bench = bench
        self.stack = contextlib.ExitStack()
        self.series, self.missed, self.files = {}, [], {}
        self.begun = False

    # ---- what a curve implements ----

    def begin(self):
        """Before the first point: servers, data, baselines."""

    def point(self, size):
        raise NotImplementedError

    # ---- resources ----

    def gateway(self, *sets, **options):
        """A gateway that ends with the curve."""
        flags = [flag for item in sets for flag in ("--set", item)]
        gateway = rig.Gateway(self.bench.binary, *flags, **options)
        self.stack.callback(gateway.stop)
        return gateway

    def file(self, key, make):
        """A request that is made once, and removed with the curve."""
        if key not in self.files:
            self.files[key] = make()
            self.stack.callback(os.unlink, self.files[key])
        return self.files[key]

    def call(self, gateway, name, arguments):
        """One call, its result."""
        answer = gateway.call(name, arguments, headers={"X-Notegate-Agent": "bench", "X-Notegate-Space": "bench"},
                              timeout=self.bench.left())
        if "result" not in answer:
            raise SystemExit(f"{name}: {answer}")
        return answer["result"]

    def add(self, chart, unit, name, x, value, base=None, baseline=None, **rule):
        """A value of one series; rule: limit (times the baseline), from and to (where that holds)."""
        series = self.series.setdefault((chart, name), {"chart": chart, "unit": unit, "name": name, "points": [],
                                                        "baseline": baseline, **rule})
        series["points"].append({"x": x, "value": value, "base": base})

    def latencies(self, chart, x, row, base=None, baseline=None, before=""):
        for key, name in (("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9")):
            self.add(chart, "ms", before + name, x, row[key], base and base[key], baseline)

    # ---- running ----

    def take(self, size):
        """One point, or the reason why there is none."""
        limit = LONG_POINT if size >= self.long_from else SHORT_POINT
        began = time.monotonic()
        self.bench.until = began + limit
        try:
            if not self.begun:
                self.begin()
                self.begun = True
            self.point(size)
            self.bench.note(f"{self.name} {size}: {time.monotonic() - began:.0f} s")
        except FAILURES as error:
            self.missed.append({"x": size, "why": f"{error} (after {time.monotonic() - began:.0f} s of at most {limit} s)"})
            self.bench.note(f"{self.name} {size}: not measured: {error}")

    def close(self):
        self.stack.close()

    def result(self):
        for series in self.series.values():
            series["points"].sort(key=lambda point: point["x"])
        return {"name": self.name, "title": self.title, "about": self.about, "x": self.x, "x_log": self.x_log,
                "series": list(self.series.values()), "missed": self.missed}


def take_all(curves, mode, written):
    """The points of a mode; written() is called whenever there is more to tell. Returns what could not be measured."""
    for long in (False, True):
        for curve in curves:
            points = [size for size in getattr(curve, mode) if (size >= curve.long_from) == long]
            for size in points:
                curve.take(size)
                written()
            if long or not any(size >= curve.long_from for size in getattr(curve, mode)):
                curve.close()
    failed = [f"{curve.name} {missed['x']}: {missed['why']}" for curve in curves for missed in curve.missed]
    for curve in curves:
        curve.missed += [{"x": size, "why": f"no point of --{mode}"} for size in curve.full
                         if size not in getattr(curve, mode)]
    written()
    return failed
