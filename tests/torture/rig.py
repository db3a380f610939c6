# SPDX-License-Identifier: MIT
"""The torture rig: client processes write, the gateway is killed again and again, then everything is counted."""
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def default_binary():
    return os.environ.get("NOTEGATE_TEST_BINARY") or os.path.join(ROOT, "build", "release", "bin", "notegate")


class Rig:
    def __init__(self, seed, agents=6, binary=None, documents="sqlite"):
        self.seed = seed
        self.rng = random.Random(seed)
        self.binary = binary or default_binary()
        self.folder = tempfile.mkdtemp(prefix="notegate-torture-")
        self.data = os.path.join(self.folder, "data")
        self.root = os.path.join(self.folder, "root")
        os.makedirs(self.root)
        self.port_file = os.path.join(self.folder, "port")
        self.stop_file = os.path.join(self.folder, "stop")
        self.file = os.path.join(self.root, "shared.txt")
        self.agents = agents
        self.clients = []
        self.process = None
        self.kills = 0

    def flags(self):
        # A 1 MiB notebook and file would end the test early, not the gateway.
        return ["--data-dir", self.data, "--root", self.root, "--set", "notebook.max_size=64MiB",
                "--set", "file_editor.max_file_size=64MiB", "--set", "log.level=error"]

    def start_gateway(self):
        self.process = subprocess.Popen([self.binary, "serve", "--listen", "127.0.0.1:0", *self.flags()],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not match:
            raise AssertionError(f"the gateway did not start: {line!r} {self.process.stderr.read()}")
        with open(self.port_file + ".new", "w") as file:
            file.write(match.group(1))
        os.replace(self.port_file + ".new", self.port_file)

    def call(self, *arguments):
        result = subprocess.run([self.binary, "call", *self.flags(), "--space", "shared", "--json", *arguments],
                                capture_output=True, text=True)
        if result.returncode != 0:
            raise AssertionError(f"notegate call {arguments}: {result.stdout} {result.stderr}")
        return json.loads(result.stdout)

    def start_clients(self):
        self.logs = [os.path.join(self.folder, f"client-{i}.log") for i in range(self.agents)]
        for i, log in enumerate(self.logs):
            self.clients.append(subprocess.Popen([sys.executable, os.path.join(HERE, "client.py"), self.port_file, log,
                                                  str(i), str(self.seed), self.stop_file, self.file],
                                                 stderr=subprocess.PIPE, text=True))

    def prepare(self):
        self.start_gateway()
        self.call("notebook", json.dumps({"mode": "create", "name": "torture"}))
        self.call("fileEditor", json.dumps({"command": "create", "path": self.file, "file_text": ""}))
        self.start_clients()

    def kill_round(self):
        time.sleep(self.rng.uniform(0.05, 1.0))
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.process.stdout.close()
        self.kills += 1
        self.start_gateway()

    def finish(self):
        """Lets the clients end their last write, then stops everything cleanly."""
        time.sleep(0.5)
        with open(self.stop_file, "w"):
            pass
        for client in self.clients:
            error = client.communicate(timeout=60)[1]
            if client.returncode != 0:
                raise AssertionError(f"seed {self.seed}: a client failed: {error}")
        notebook = self.call("notebook", json.dumps({"mode": "read", "name": "torture"}))["result"]
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(30) != 0:
            raise AssertionError(f"seed {self.seed}: SIGTERM ended with {self.process.returncode}")
        self.check(notebook)

    def check(self, notebook):
        with open(self.file) as file:
            content = {"notebook": notebook.split("\n"), "file": file.read().split("\n")}
        counts = {kind: collections.Counter(lines) for kind, lines in content.items()}
        acknowledged = 0
        for log in self.logs:
            acked, sent = [], []
            with open(log) as file:
                for line in file:
                    state, kind, token = line.split()
                    (acked if state == "ack" else sent).append((kind, token))
            acknowledged += len(acked)
            for kind, token in acked:
                if counts[kind][token] != 1:
                    raise AssertionError(f"seed {self.seed}: acknowledged {token} is in the {kind} "
                                         f"{counts[kind][token]} times ({self.folder})")
            for kind, token in sent:
                if counts[kind][token] > 1:
                    raise AssertionError(f"seed {self.seed}: {token} is in the {kind} {counts[kind][token]} times")
            self.check_order(content["notebook"], [token for kind, token in acked if kind == "notebook"])
            self.check_order(content["file"][::-1], [token for kind, token in acked if kind == "file"])
        left = [name for _, _, names in os.walk(self.root) for name in names if name != "shared.txt"]
        if left:
            raise AssertionError(f"seed {self.seed}: temporary files were left: {left}")
        verify = subprocess.run([self.binary, "verify", *self.flags()], capture_output=True, text=True)
        if verify.returncode != 0:
            raise AssertionError(f"seed {self.seed}: verify: {verify.stdout} {verify.stderr}")
        self.acknowledged = acknowledged

    def check_order(self, lines, tokens):
        """What one client wrote one after the other stands in that order."""
        place = {line: i for i, line in enumerate(lines)}
        places = [place[token] for token in tokens]
        if places != sorted(places):
            raise AssertionError(f"seed {self.seed}: one client's writes are out of order")

    def close(self):
        with open(self.stop_file, "w"):
            pass
        for client in self.clients:
            client.kill()
            client.wait()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(seed, rounds, agents=6, binary=None):
    rig = Rig(seed, agents, binary)
    try:
        rig.prepare()
        for _ in range(rounds):
            rig.kill_round()
        rig.finish()
        return rig.acknowledged, rig.kills
    finally:
        rig.close()
