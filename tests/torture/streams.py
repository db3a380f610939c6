# SPDX-License-Identifier: MIT
"""Rounds of kills alone: client processes write, the gateway is killed again and again, then everything is counted.

    client.py    agents that write over REST and MCP in all protocol versions, each with a bearer key that changes now
    and then
    tasker.py    an agent that makes MCP tasks and checks their results
    follower.py a client that follows the changes, over all kills
    ledger.py    the books: what was acknowledged, what each follower saw
    wire.py      how all of these speak to the gateway

The processes note what happened in logs, a line at a time, after the answer was read: a line says only what is certain.
"""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from follower import FOLLOWERS
from ledger import Seen, Told, Written
from wire import Wire

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Longer than any of it takes on a busy machine.
PATIENCE = 120
# Writes while nothing is killed, each of which the MCP followers must be told of once.
QUIET_WRITES = 20
# One gateway in so many lives long enough for the slow follower to fall behind.
LONG_EVERY = 10
LONG_LIFE = 5


def default_binary():
    return os.environ.get("NOTEGATE_TEST_BINARY") or os.path.join(ROOT, "build", "release", "bin", "notegate")


def tasker_module(folder):
    """The module whose tools run as tasks."""
    module = os.path.join(folder, "tasker.so")
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DNG_ABI=1", f"-I{ROOT}/core/include",
                    "-o", module, os.path.join(ROOT, "tests", "unit", "modules", "tasker.c")], check=True)
    return module


class Rig:
    def __init__(self, seed, agents=6, binary=None):
        self.seed = seed
        self.rng = random.Random(seed)
        self.binary = binary or default_binary()
        self.folder = tempfile.mkdtemp(prefix="notegate-torture-")
        self.data = os.path.join(self.folder, "data")
        self.root = os.path.join(self.folder, "root")
        os.makedirs(self.root)
        self.port_file = os.path.join(self.folder, "port")
        self.stop_file = os.path.join(self.folder, "stop")
        self.still_file = os.path.join(self.folder, "still")
        self.file = os.path.join(self.root, "shared.txt")
        self.agents = [f"agent-{i}" for i in range(agents)]
        self.writers, self.watchers = [], []
        self.written, self.seen, self.told = [], [], []
        self.process = None
        self.kills = 0
        self.module = tasker_module(self.folder)

    # ---- the gateway

    def flags(self):
        # A 1 MiB notebook and file would end the test early, not the gateway. A short backlog, so that the slow follower
        # falls behind it.
        return ["--data-dir", self.data, "--root", self.root, "--set", "notebook.max_size=64MiB",
                "--set", "file_editor.max_file_size=64MiB", "--set", "log.level=error",
                "--set", f"plugins=notebook,file_editor,{self.module}", "--set", "limits.workers=12",
                "--set", "limits.stream_backlog=50"]

    def start_gateway(self):
        self.process = subprocess.Popen([self.binary, "serve", "--listen", "127.0.0.1:0", *self.flags()],
                                        stdout=subprocess.PIPE, stderr=self.errors(), text=True)
        line = self.process.stdout.readline()
        if "listening on http://127.0.0.1:" not in line:
            raise AssertionError(f"the gateway did not start: {line!r}")
        port = line.rsplit(":", 1)[1].strip()
        with open(self.port_file + ".new", "w") as file:
            file.write(f"{self.kills} {port}")
        os.replace(self.port_file + ".new", self.port_file)

    def errors(self):
        return open(os.path.join(self.folder, "gateway.log"), "a")

    def command(self, *words):
        flags = self.flags() if self.process.poll() is not None else ["--data-dir", self.data]
        result = subprocess.run([self.binary, *words, *flags], capture_output=True, text=True, timeout=PATIENCE)
        if result.returncode != 0:
            raise AssertionError(f"notegate {words}: {result.stdout} {result.stderr}")
        return result.stdout

    def call(self, tool, arguments, space="shared"):
        return json.loads(self.command("call", "--space", space, "--json", tool, json.dumps(arguments)))

    # ---- the others

    def add_keys(self):
        add = {"root": ("--role", "admin"), "reader": ("--role", "reader", "--space", "shared"), "tasker": ()}
        add.update({agent: ("--restore",) for agent in self.agents})
        return {name: self.command("key", "add", name, *options).strip() for name, options in add.items()}

    def spawn(self, program, *words):
        return subprocess.Popen([sys.executable, os.path.join(HERE, program), self.settings_file, *map(str, words)],
                                stderr=subprocess.PIPE, text=True)

    def start_clients(self):
        settings = {"seed": self.seed, "folder": self.folder, "port_file": self.port_file, "file": self.file,
                    "keys": self.keys, "stop_file": self.stop_file}
        self.settings_file = os.path.join(self.folder, "settings")
        with open(self.settings_file, "w") as file:
            json.dump(settings, file)
        for name in FOLLOWERS:
            path = os.path.join(self.folder, f"follower-{name}.log")
            (self.told if name in ("listen", "session") else self.seen).append(
                (Told if name in ("listen", "session") else Seen)(path, name))
        for number in range(len(self.agents)):
            self.written.append(Written(os.path.join(self.folder, f"client-{number}.log"), number))
            self.writers.append(self.spawn("client.py", number))
        self.writers.append(self.spawn("tasker.py"))
        # The followers go on when the writers have stopped.
        settings["stop_file"] = self.still_file
        self.settings_file += "-followers"
        with open(self.settings_file, "w") as file:
            json.dump(settings, file)
        self.watchers = [self.spawn("follower.py", name) for name in FOLLOWERS]

    def prepare(self):
        self.start_gateway()
        self.keys = self.add_keys()
        self.call("notebook", {"mode": "create", "name": "torture"})
        self.call("notebook", {"mode": "create", "name": "fence"})
        for agent in self.agents:
            self.call("notebook", {"mode": "create", "name": agent}, f"~{agent}")
        self.call("fileEditor", {"command": "create", "path": self.file, "file_text": ""})
        self.start_clients()

    def check_alive(self):
        for process in self.writers + self.watchers:
            if process.poll() not in (None, 0):
                raise AssertionError(process.communicate()[1])

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.check_alive()
            if time.monotonic() > end:
                raise AssertionError(f"{what()} ({self.folder})")
            time.sleep(0.02)

    # ---- rounds

    def kill_round(self):
        time.sleep(LONG_LIFE if self.kills % LONG_EVERY == LONG_EVERY - 1 else self.rng.uniform(0.05, 1.0))
        if self.process.poll() is not None:
            raise AssertionError(f"the gateway ended by itself, with {self.process.returncode}; see gateway.log")
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.kills += 1
        self.start_gateway()
        self.check_followers()

    def check_followers(self):
        """All that is acknowledged by now is seen by every follower, once and in order."""
        fresh = [change for written in self.written for change in written.read()]
        for seen in self.seen:
            seen.expect(fresh)

        def all_seen():
            for seen in self.seen:
                seen.read()
            return not any(seen.missing for seen in self.seen)

        self.wait(all_seen, lambda: "not seen: " + "; ".join(
            f"by {seen.name}, which is at {seen.last}: {sorted(seen.missing)[:3]}" for seen in self.seen if seen.missing))

    # ---- the end

    def finish(self):
        """Lets the clients end their last write, then stops everything cleanly."""
        time.sleep(0.5)
        with open(self.stop_file, "w"):
            pass
        for client in self.writers:
            error = client.communicate(timeout=PATIENCE)[1]
            if client.returncode != 0:
                raise AssertionError(f"a client failed: {error}")
        with open(os.path.join(self.folder, "tasker.log")) as file:
            self.tasks = json.loads(file.read().splitlines()[-1].removeprefix("all "))
        self.check_followers()
        for seen in self.seen:
            seen.check_whole()
            for written in self.written:
                seen.check_order(written)
        notebook = self.call("notebook", {"mode": "read", "name": "torture"})["result"]
        own = [self.call("notebook", {"mode": "read", "name": agent}, f"~{agent}")["result"] for agent in self.agents]
        self.check_told()
        self.check_keys()
        with open(self.still_file, "w"):
            pass
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(PATIENCE) != 0:
            raise AssertionError(f"SIGTERM ended with {self.process.returncode}")
        for watcher in self.watchers:
            error = watcher.communicate(timeout=PATIENCE)[1]
            if watcher.returncode != 0:
                raise AssertionError(f"a follower failed: {error}")
        self.check(notebook, own)

    def check_told(self):
        """The MCP followers heard of each change at most once while there were kills, and hear of each now."""
        def settled():
            for told in self.told:
                told.read()
            return all(told.life == self.kills for told in self.told)

        self.wait(settled, lambda: f"not subscribed: {[vars(told) for told in self.told]}")
        whole = next(seen for seen in self.seen if seen.name == "all")
        changes = sum(change[2] == "torture" for change in whole.place)
        # Events of the last writes are on their way, and come before events of new writes.
        before = self.all_told()
        for told, count in zip(self.told, before):
            if count > changes:
                raise AssertionError(f"{told.name} was told {count} times of {changes} changes")
        for number in range(QUIET_WRITES):
            self.call("notebook", {"mode": "write", "name": "torture", "newStr": f"quiet-{number}"})
        goal = [count + QUIET_WRITES for count in before]
        told = self.all_told()
        if told != goal:
            raise AssertionError(f"told {told} times, not {goal}")

    def all_told(self):
        """How often each MCP follower was told of all that was written so far."""
        # Twice: one that had lost events is told of everything once more, and that may come for the first.
        for _ in range(2):
            self.fence()
        return [told.updates for told in self.told]

    def fence(self):
        """A change that comes to the MCP followers behind all others."""
        goal = [told.fences + 1 for told in self.told]
        self.call("notebook", {"mode": "create", "name": "fence", "newStr": str(goal)})

        def fenced():
            for told in self.told:
                told.read()
            return all(told.fences >= count for told, count in zip(self.told, goal))

        self.wait(fenced, lambda: f"told of {[told.fences for told in self.told]} fences, not {goal}")

    def check_keys(self):
        """Keys are as they were acknowledged to be."""
        wire = Wire(self.port_file, self.keys["root"])
        status, body = wire.request("GET", "/v1/keys?all=true")
        wire.close()
        assert status == 200, body
        states = {key["id"]: key["state"] for key in body["keys"]}
        self.rotations = 0
        for written in self.written:
            for number, state in written.keys.items():
                self.rotations += state == "revoked"
                assert states.get(number) == state, f"key {number} is {states.get(number)}, not {state}"

    def check(self, notebook, own):
        with open(self.file) as file:
            lines = {"notebook": notebook.split("\n"), "file": file.read().split("\n")}
        self.acknowledged = 0
        for written, mine in zip(self.written, own):
            lines["own"] = mine.split("\n")
            counts = {kind: collections.Counter(found) for kind, found in lines.items()}
            self.acknowledged += len(written.acknowledged)
            for kind, token in written.acknowledged:
                assert counts[kind][token] == 1, f"acknowledged {token} is in the {kind} {counts[kind][token]} times"
            for kind, token in written.tried:
                assert counts[kind][token] <= 1, f"{token} is in the {kind} {counts[kind][token]} times"
            for kind, found in lines.items():
                self.check_order(found[::-1] if kind == "file" else found,
                                 [token for which, token in written.acknowledged if which == kind])
        left = [name for _, _, names in os.walk(self.root) for name in names if name != "shared.txt"]
        assert not left, f"temporary files were left: {left}"
        self.command("verify")

    @staticmethod
    def check_order(lines, tokens):
        """Successive writes of one client are stored in that order."""
        place = {line: i for i, line in enumerate(lines)}
        places = [place[token] for token in tokens]
        assert places == sorted(places), "one client's writes are out of order"

    def close(self, keep):
        for path in (self.stop_file, self.still_file):
            with open(path, "w"):
                pass
        for process in (*self.writers, *self.watchers, *([self.process] if self.process else [])):
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def run(seed, rounds, agents=6, binary=None):
    """The rig when it is done; AssertionError, with seed and folder, at the first thing that is not as it must be."""
    rig = Rig(seed, agents, binary)
    failed = True
    try:
        rig.prepare()
        for _ in range(rounds):
            rig.kill_round()
        rig.finish()
        failed = False
        return rig
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {rig.kills} kills, {rig.folder}: {error}") from error
    finally:
        rig.close(keep=failed)
