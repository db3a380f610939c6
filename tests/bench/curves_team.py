# SPDX-License-Identifier: MIT
"""Curves of a team: more event streams, more gateways on one database."""
import concurrent.futures
import contextlib
import os
import selectors
import socket
import statistics
import sys
import threading
import time

import rig
from curves import CONNECTIONS, Curve, tool

sys.path.insert(0, os.path.join(rig.ROOT, "tests", "support"))
sys.path.append(os.path.join(rig.ROOT, "tests", "e2e", "support"))
from servers import MongoServer, RedisServer  # noqa: E402

# A line of the gateway's answer for each event, and for nothing else.
EVENT = b"\ndata:"
# The last chunk of an answer, after which its connection stays open.
END = b"0\r\n\r\n"
WRITES_A_SECOND = 20
WAIT_SECONDS = 30


def mongo_line(port):
    """A line to the server that sees each command. ImportError without the packages of the tests."""
    from mongo_proxy import Proxy, of_a_call

    class Line(Proxy):
        def waited_for(self, mark):
            """How many round trips since then a call waited for."""
            return len([one for one in self.since(mark) if of_a_call(one)])

    return Line(port)


class Readers:
    """Open event streams of as many agents, and how many events they have had."""

    def __init__(self, port):
        self.port = port
        self.selector = selectors.DefaultSelector()
        self.tails = {}
        self.events = self.ended = 0
        self.stopping = False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def open(self, count):
        """Until there are so many."""
        opened = []
        for number in range(len(self.tails), count):
            opened.append(self.ask(number))
            self.tails[opened[-1]] = b""
        for stream in opened:
            self.follow(stream)

    def ask(self, number, header=b""):
        stream = socket.create_connection(("127.0.0.1", self.port), WAIT_SECONDS)
        stream.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                       b"X-Notegate-Space: bench\r\nX-Notegate-Agent: stream-%d\r\n%s\r\n" % (number, header))
        return stream

    def follow(self, stream):
        head = stream.recv(4096)
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"an event stream was refused: {head[:200]!r}")
        stream.setblocking(False)
        self.selector.register(stream, selectors.EVENT_READ)

    def read(self):
        while not self.stopping:
            for key, _ in self.selector.select(0.1):
                try:
                    data = key.fileobj.recv(1 << 16)
                except (BlockingIOError, OSError):
                    continue
                text = self.tails[key.fileobj] + data
                self.came(key.fileobj, text)
                self.tails[key.fileobj] = text[-len(EVENT) + 1:]
                if not data or text.endswith(END):
                    self.gone(key.fileobj)

    def came(self, _stream, text):
        self.events += text.count(EVENT)

    def gone(self, stream):
        """The gateway has ended it."""
        self.selector.unregister(stream)
        self.ended += 1

    def wait(self, events):
        """Until they have had so many in all."""
        end = time.monotonic() + WAIT_SECONDS
        while self.events < events:
            if time.monotonic() > end:
                raise SystemExit(f"{self.events} of {events} events had come after {WAIT_SECONDS} s")
            time.sleep(0.01)

    def close(self):
        if self.stopping:
            return
        self.stopping = True
        self.thread.join()
        self.selector.close()
        for stream in self.tails:
            stream.close()


class Streams(Curve):
    name, title, x = "streams", "Open event streams", "streams"
    about = (f"{WRITES_A_SECOND} writes a second, each of which is told to every stream. CPU per event: what the gateway uses more than for "
             "the writes alone, by the number of events that came.")
    smoke, quick, full = (10, 100), (10, 100, 1000), (10, 100, 1000, 5000)

    def begin(self):
        self.server = self.gateway("limits.streams=20000", "limits.connections=20000")
        self.write = self.file("write", lambda: tool("notebook", {"mode": "create", "name": "told", "newStr": "########"}))
        self.bench.load(self.server, 1, self.write, seconds=self.bench.warm)
        self.empty = rig.memory_mib(self.server.pid)
        self.alone = self.written(None)
        self.readers = Readers(self.server.port)
        self.stack.callback(self.readers.close)

    def written(self, readers):
        """A row of paced writes, with all of what telling them costs."""
        before, seen = rig.cpu_seconds(self.server.pid), readers and readers.events
        row = self.bench.load(self.server, CONNECTIONS, self.write, WRITES_A_SECOND, seconds=max(1, self.bench.seconds))
        if readers:
            readers.wait(seen + row["answered"] * len(readers.tails))
        row["cpu"] = rig.cpu_seconds(self.server.pid) - before
        return row

    def point(self, size):
        self.readers.open(size)
        row = self.written(self.readers)
        memory = rig.memory_mib(self.server.pid)
        self.add("memory", "MiB PSS", "gateway", size, memory, self.empty, "the same gateway without streams")
        self.add("memory per stream", "KiB", "gateway", size, max(0.01, (memory - self.empty) * 1024 / size))
        more = row["cpu"] - self.alone["cpu"] / self.alone["answered"] * row["answered"]
        self.add("CPU per event told", "µs", "gateway", size, max(0.01, more * 1e6 / (row["answered"] * size)))
        self.latencies("latency of the writes", size, row, self.alone, "the same writes without streams")


class Gateways(Curve):
    name, title, x = "gateways", "Gateways on one database", "gateways"
    x_log = False
    about = ("Gateways that share a MongoDB-compatible server and Redis, all on this machine and its cores; so many clients for "
             "each. CPU per call is what the gateways use more than idle ones in the same time, and server CPU that of both "
             "databases, which bounds the throughput where the cores are few. Round trips are those that one call waits for at the "
             "database, counted on the line of a gateway that does nothing else.")
    quick, full = (1, 2, 3), (1, 2, 3)
    # (arguments of `notebook`, most CPU per call, as a multiple of one gateway's, and most round trips)
    calls = {"read": ({"mode": "read", "name": "notes"}, 1.3, 1),
             "write, documents of their own": ({"mode": "create", "name": "agent-{gateway}-@@@@", "newStr": "########"}, 1.5, 2),
             "append, one document for all": ({"mode": "write", "name": "of {size} gateways", "newStr": "########"}, 2, 2)}
    counted = 9
    idle_seconds = 3
    # In all: a document of each point, which is as long at its end with any number of gateways.
    appends = 3000

    def begin(self):
        for name in ("mongo", "redis"):
            if not os.path.exists(os.path.join(self.bench.modules, "backends", name + ".so")):
                raise SystemExit(f"the backend {name} is not built")
        self.mongo, self.redis = (self.stack.enter_context(kind()) for kind in (MongoServer, RedisServer))
        self.gateways, self.first = [], {}

    def gateway_at(self, uri):
        return self.gateway("plugins=notebook,agent_notebook", "documents=mongo", f"mongo.uri={uri}", "journal=redis",
                            f"redis.uri={self.redis.uri}")

    def add_gateway(self):
        gateway = self.gateway_at(self.mongo.uri)
        self.gateways.append(gateway)
        if len(self.gateways) == 1:
            self.call(gateway, "notebook", {"mode": "create", "name": "notes", "newStr": "a line of notes\n" * 4})
            self.call(gateway, "notebook", {"mode": "create", "name": "of 0 gateways", "newStr": "begin\n"})

    def together(self, files, count):
        """A load on each of them at once, in rounds: of rates summed and the worst latencies the medians, of CPU by all answers the
        least."""
        rows = [self.round(files, count and count // self.bench.rounds) for _ in range(self.bench.rounds)]
        return {key: (min if key in ("cpu_us", "servers_us") else statistics.median)(row[key] for row in rows) for key in rows[0]}

    def round(self, files, count):
        before = self.servers_cpu()
        with concurrent.futures.ThreadPoolExecutor(len(self.gateways)) as pool:
            rows = list(pool.map(lambda pair: self.bench.load(pair[0], CONNECTIONS, pair[1], count=count),
                                 zip(self.gateways, files)))
        answered = sum(row["answered"] for row in rows)
        used = sum(row["cpu_us"] * row["answered"] - self.idle_us * row["answered"] / row["rate"] for row in rows)
        return {"rate": sum(row["rate"] for row in rows), "cpu_us": max(0.01, used / answered),
                "servers_us": (self.servers_cpu() - before) * 1e6 / answered,
                **{key: max(row[key] for row in rows) for key in ("p50_ms", "p99_ms", "p999_ms")}}

    def idle(self):
        """CPU of an idle gateway, in microseconds a second: it keeps its place among the others, and asks them for news."""
        before = sum(rig.cpu_seconds(gateway.pid) for gateway in self.gateways)
        time.sleep(self.idle_seconds)
        used = sum(rig.cpu_seconds(gateway.pid) for gateway in self.gateways) - before
        return used * 1e6 / self.idle_seconds / len(self.gateways)

    def servers_cpu(self):
        return sum(rig.cpu_seconds(server.process.pid) for server in (self.mongo, self.redis))

    def trips(self, line, gateway, name, calls):
        """Round trips that one of these calls waits for, the median."""
        found = []
        for arguments in calls:
            before = line.mark()
            self.call(gateway, name, arguments)
            found.append(line.waited_for(before))
        return statistics.median(found)

    def count_trips(self):
        """Round trips of a call, by a gateway behind a line that sees each command: it comes second, so it moves no events."""
        try:
            line = mongo_line(self.mongo.port)
        except ImportError as missing:
            self.bench.note(f"{self.name}: round trips are not counted without the Python of build/venv: {missing}")
            return
        with contextlib.closing(line):
            gateway = self.gateway_at(line.uri)
            for name, (arguments, _, most) in self.calls.items():
                own = [arguments | {"name": arguments["name"].format(gateway="trips", size=0).replace("@@@@", str(number))}
                       for number in range(self.counted)]
                self.add("round trips per call", "round trips", name, 1, self.trips(line, gateway, "notebook", own), told=True,
                         most=most)
            gateway.stop()

    def point(self, size):
        while len(self.gateways) < size:
            self.add_gateway()
        self.call(self.gateways[0], "notebook", {"mode": "create", "name": f"of {size} gateways", "newStr": "begin\n"})
        if size == 1:
            self.count_trips()
        self.idle_us = self.idle()
        self.add("CPU of an idle gateway", "µs a second", "gateway", size, max(0.01, self.idle_us), told=True)
        for name, (arguments, limit, _) in self.calls.items():
            files = []
            for index, gateway in enumerate(self.gateways):
                own = arguments | {"name": arguments["name"].format(gateway=index, size=size)}
                files.append(self.file((name, index, size), lambda: tool("notebook", own)))
                self.bench.load(gateway, CONNECTIONS, files[-1], seconds=self.bench.warm)
            row = self.together(files, self.appends // size if name.startswith("append") else None)
            if size == 1:
                self.first[name] = row
            base = self.first.get(name, {})
            for chart, unit, key in (("throughput", "calls/s", "rate"), ("CPU per call", "µs", "cpu_us"),
                                     ("server CPU per call", "µs", "servers_us"), ("p99 at full speed", "ms", "p99_ms")):
                rule = {"cpu_us": {"limit": limit, "from": 2}, "servers_us": {"told": True}}.get(key, {})
                self.add(chart, unit, name, size, row[key], base.get(key), "one gateway", **rule)
