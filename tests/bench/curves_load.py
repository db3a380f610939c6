# SPDX-License-Identifier: MIT
"""Curves of load: more clients at once, and more calls a second."""
import json
import os
import shutil
import subprocess
import tempfile

import rig
from curves import CONNECTIONS, Curve, tool

READ = {"mode": "read", "name": "notes"}
TEXT = "a line of notes\n" * 4
# As the plain writer: nothing is equal in two successive texts but their middle.
WRITE = {"mode": "create", "name": "agent-@@@@", "newStr": "########" + "y" * 184 + "########"}
BARE = "bare libmicrohttpd, same requests, as many bytes"
PLAIN = "one plain sqlite writer, each row committed"


class Loaded(Curve):
    """A gateway with a notebook, and a bare libmicrohttpd that answers as much."""

    def begin(self):
        self.server = self.gateway()
        self.call(self.server, "notebook", {"mode": "create", "name": "notes", "newStr": TEXT})
        self.read = self.file("read", lambda: tool("notebook", READ))
        self.write = self.file("write", lambda: tool("notebook", WRITE, agent="bench-@@@@"))
        self.bare = rig.Bare(self.bench.out, len(rig.body_of(self.server.port, self.read)))
        self.stack.callback(self.bare.stop)
        self.bench.load(self.server, CONNECTIONS, self.read, seconds=self.bench.warm)

    def plain(self):
        """Writes of a plain writer in the same time."""
        folder = tempfile.mkdtemp(prefix="notegate-bench-")
        try:
            done = subprocess.run([os.path.join(self.bench.out, "plain_writer"), os.path.join(folder, "plain.db"),
                                   str(self.bench.seconds), "200"], check=True, capture_output=True, text=True)
            return json.loads(done.stdout)
        finally:
            shutil.rmtree(folder)


class Clients(Loaded):
    name, title, x = "clients", "Clients at once", "clients"
    about = ("Reads and durable writes of small notebooks, as fast as they are answered; each client is an agent with a connection "
             "of its own. Latency at half of the rate of that many clients.")
    smoke, quick, full = (1, 8), (1, 8, 64, 512), (1, 8, 64, 512)

    def point(self, size):
        bench = self.bench
        ours, bare = bench.beside(lambda: bench.load(self.server, size, self.read),
                                  lambda: bench.load(self.bare, size, self.read))
        self.add("throughput", "calls/s", "read", size, ours["rate"], bare["rate"], BARE)
        self.add("CPU per call", "µs", "read", size, ours["cpu_us"], bare["cpu_us"], BARE, limit=2.0,
                 **{"from": CONNECTIONS})
        writes, plain = bench.beside(lambda: bench.load(self.server, size, self.write), self.plain)
        self.add("throughput", "calls/s", "durable write", size, writes["rate"], plain["rate"], PLAIN)
        self.add("CPU per call", "µs", "durable write", size, writes["cpu_us"], plain["cpu_us"], PLAIN)
        paced, paced_bare = bench.beside(lambda: bench.load(self.server, size, self.read, ours["rate"] / 2),
                                         lambda: bench.load(self.bare, size, self.read, ours["rate"] / 2))
        self.latencies("latency of reads", size, paced, paced_bare, BARE)
        paced = bench.load(self.server, size, self.write, writes["rate"] / 2)
        self.latencies("latency of durable writes", size, paced)


class Paced(Loaded):
    name, title, x = "paced", "Latency under a paced load", "percent of the peak rate"
    x_log = False
    about = ("Calls come at a fixed rate, whether or not earlier ones are answered; latency counts from when a call was due. The peak "
             "is what 32 clients get out of the gateway in this run, of reads and of durable writes.")
    smoke, quick, full = (25, 50), (10, 25, 50, 75), (10, 25, 50, 60, 75, 90)
    clients = 32

    def begin(self):
        super().begin()
        self.peaks = {file: self.bench.load(self.server, self.clients, file)["rate"] for file in (self.read, self.write)}

    def point(self, size):
        bench, rate = self.bench, self.peaks[self.read] * size / 100
        ours, bare = bench.beside(lambda: bench.load(self.server, self.clients, self.read, rate),
                                  lambda: bench.load(self.bare, self.clients, self.read, rate))
        self.latencies("reads", size, ours, bare, BARE + ", same rate")
        row = bench.load(self.server, self.clients, self.write, self.peaks[self.write] * size / 100)
        self.latencies("durable writes", size, row)
        self.add("CPU per call", "µs", "read", size, ours["cpu_us"], bare["cpu_us"], BARE + ", same rate")
        self.add("CPU per call", "µs", "durable write", size, row["cpu_us"])
