# SPDX-License-Identifier: MIT
"""Parts of a round: gateways, their databases, the connections between them, the disk they write to."""
import contextlib
import http.client
import json
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
import servers  # noqa: E402

PATIENCE = 150
DISK = "96M"
LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
# As in faulty_system.c.
KINDS = ("write", "short", "sync", "name", "alloc")
CONTROL_SIZE, KIND, CLOCK, PATH_PART = 4096, struct.Struct("IiII"), struct.Struct("q"), struct.Struct("64s")


def default_binary():
    return os.environ.get("NOTEGATE_TEST_BINARY") or os.path.join(SOURCE, "build", "release", "bin", "notegate")


def build_shim(folder):
    shim = os.path.join(folder, "faulty_system.so")
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", shim,
                    os.path.join(HERE, "faulty_system.c")], check=True)
    return shim


class Control:
    """State of the shim in front of one gateway."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(CONTROL_SIZE)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), CONTROL_SIZE)

    def arm(self, kind, every, error=0, path_part=""):
        self.map[88:88 + 64] = PATH_PART.pack(path_part.encode())
        at = KINDS.index(kind) * KIND.size
        _, _, calls, failed = KIND.unpack_from(self.map, at)
        KIND.pack_into(self.map, at, every, error, calls, failed)

    def failed(self):
        return sum(KIND.unpack_from(self.map, number * KIND.size)[3] for number in range(len(KINDS)))

    def jump(self, seconds):
        CLOCK.pack_into(self.map, 80, int(seconds * 10 ** 9))

    def heal(self):
        for kind in KINDS:
            self.arm(kind, 0)


class Gateway:
    def __init__(self, system, number):
        self.system, self.number = system, number
        self.name = f"gateway{number}"
        self.data = os.path.join(system.disk, self.name)
        self.control = Control(os.path.join(system.folder, f"control-{number}"))
        self.out = os.path.join(system.folder, f"{self.name}.out")
        self.log = os.path.join(system.folder, f"{self.name}.log")
        self.process = None
        self.port = None
        self.wanted = False      # it shall run
        self.stopped = False     # by SIGSTOP
        self.excused_ends = 0    # of itself, as it may where there is no memory

    def start(self):
        self.wanted = True
        self.port = None
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("NOTEGATE_", "MONGODB_", "REDIS_"))}
        environment.update(LD_PRELOAD=self.system.shim, FAULTY_SYSTEM=self.control.path)
        with open(self.out, "wb") as out, open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.system.binary, "serve", "--listen", "127.0.0.1:0", *self.system.flags(self.number)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment, cwd=self.system.folder)

    def look(self):
        """Notes the port once it listens. The exit code of a process that ended although it should run, else None."""
        if not self.wanted:
            return None
        code = self.process.poll()
        if code is not None:
            return code
        if self.port is None:
            with open(self.out) as file:
                found = LISTENING.search(file.read())
            if found:
                self.port = int(found.group(1))
                self.system.lead(self.name, self.port)
        return None

    def kill(self):
        self.wanted = False
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.stopped = False

    def freeze(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            self.stopped = True

    def thaw(self):
        if self.stopped and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def end(self):
        """SIGTERM; the exit code, None for one that did not end."""
        self.wanted = False
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    def limit(self, which, soft):
        with contextlib.suppress(OSError):
            hard = resource.prlimit(self.process.pid, which)[1]
            resource.prlimit(self.process.pid, which, (hard if soft is None else soft, hard))

    # ---- asking it, not through the lines that break

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """(status, parsed body); OSError if no gateway answers."""
        if self.port is None:
            raise ConnectionRefusedError(f"{self.name} does not listen yet")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {"message": text.decode(errors="replace")}
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(f"{self.name} broke off: {error}") from error

    def tool(self, tool, arguments, agent="rig", space="shared"):
        """The result; AssertionError where it keeps failing although all is healed."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                status, body = self.ask("POST", f"/v1/tools/{tool}", arguments,
                                        {"X-Notegate-Agent": agent, "X-Notegate-Space": space})
            except OSError as error:
                status, body = 0, {"message": str(error)}
            if status == 200:
                return body["result"]
            if status not in (0, 429, 503, 504) or time.monotonic() > end:
                raise AssertionError(f"{self.name}: {tool} {arguments}: {status} {body}")
            time.sleep(0.1)

    def ready(self):
        try:
            status, body = self.ask("GET", "/readyz", timeout=10)
        except OSError:
            return False
        return status == 200 and body["status"] == "ready"

    def has_indexes(self):
        """Some stand-ins for MongoDB lose what a transaction writes from an index that is being made."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return b"\nnotegate_store_indexes_missing 0\n" in answer.read()
        return False

    def command(self, *words):
        """Beside the gateway while it runs, and by its configuration when it has ended."""
        flags = self.system.flags(self.number) if self.process.poll() is not None else ["--data-dir", self.data]
        return subprocess.run([self.system.binary, *words, *flags], capture_output=True, text=True, timeout=2 * PATIENCE,
                              cwd=self.system.folder)


class Databases:
    """MongoDB and Redis: started when first wanted, used by many rounds."""

    def __init__(self):
        self.mongo = self.redis = None
        self.rounds = 0

    def want(self, fresh_every, place=None):
        """place: folder for their data."""
        if self.mongo and self.rounds % fresh_every == 0:
            self.close()
        if not self.mongo:
            self.mongo = servers.MongoServer(place=place).start()
            self.redis = servers.RedisServer(place=place).start()
        self.rounds += 1

    def close(self):
        for server in (self.mongo, self.redis):
            if server:
                server.close()
        self.mongo = self.redis = None


class System:
    """All of it, for one round. kind: sqlite, memory, mongo (one gateway) or cluster (three). Each gateway has lines of its own to
    the databases."""

    def __init__(self, kind, folder, seed, binary, shim, databases, count=None,
                 plugins="notebook,file_editor,opennotes,agent_notebook,cells", disk=DISK):
        self.plugins = plugins
        self.kind, self.folder, self.seed, self.binary, self.shim = kind, folder, seed, binary, shim
        self.databases = databases if kind in ("mongo", "cluster") else None
        self.disk = os.path.join(folder, "disk")
        os.makedirs(self.disk)
        self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk},mode=0700", "none", self.disk],
                                      capture_output=True).returncode == 0
        self.root, self.notes = os.path.join(self.disk, "root"), os.path.join(self.disk, "notes")
        for path in (self.root, self.notes, os.path.join(self.root, "own")):
            os.mkdir(path)
        self.gateways = [Gateway(self, number) for number in range(count or (3 if kind == "cluster" else 1))]
        self.proxy = None
        self.killed = []

    def flags(self, number):
        sets = ["log.level=warning", "notebook.max_size=64MiB", "limits.workers=12", "shutdown_timeout=20s",
                f"plugins={self.plugins}",
                *([f"opennotes.notebooks={self.notes}"] if "opennotes" in self.plugins else [])]
        if self.kind == "memory":
            sets.append("documents=memory")
        if self.databases:
            name = os.path.basename(self.folder).replace("-", "_")
            mongo, redis = self.line_port(f"mongo-{number}"), self.line_port(f"redis-{number}")
            sets += ["documents=mongo", f"mongo.uri=mongodb://127.0.0.1:{mongo}/?directConnection=true",
                     f"mongo.database={name}", "mongo.timeout=5s", "journal=redis", f"redis.uri=redis://127.0.0.1:{redis}",
                     f"redis.prefix={name}:"]
        words = ["--data-dir", self.gateways[number].data, "--root", self.root]
        for each in sets:
            words += ["--set", each]
        return words

    # ---- lines

    def line_names(self):
        return [gateway.name for gateway in self.gateways] + self.database_lines()

    def database_lines(self):
        return [f"{server}-{gateway.number}" for gateway in self.gateways for server in ("mongo", "redis")] if self.databases else []

    def line_port(self, name):
        with open(self.port_file(name)) as file:
            return int(file.read().split()[1])

    def port_file(self, name):
        return os.path.join(self.folder, f"port-{name}")

    def put(self, what, name, value):
        path = os.path.join(self.folder, f"{what}-{name}")
        with open(path + ".new", "w") as file:
            file.write(str(value))
        os.replace(path + ".new", path)

    def lead(self, name, port):
        self.put("to", name, port)

    # ---- life

    def start(self):
        names = self.line_names()
        self.proxy = subprocess.Popen([sys.executable, os.path.join(HERE, "proxy.py"), self.folder, str(self.seed), *names],
                                      stdin=subprocess.DEVNULL)
        wait(lambda: all(os.path.exists(self.port_file(name)) for name in names), "the lines stand")
        for name in self.database_lines():
            self.lead(name, getattr(self.databases, name.split("-")[0]).port)
        for gateway in self.gateways:
            gateway.start()
        self.wait_ready()
        if self.databases:
            wait(lambda: all(gateway.has_indexes() for gateway in self.gateways), "the indexes are made")

    def wait_ready(self):
        def ready():
            for gateway in self.gateways:
                code = gateway.look()
                if code is not None:
                    raise AssertionError(f"{gateway.name} ended with {code} although nothing is wrong; see {gateway.log}")
            return all(gateway.port and gateway.ready() for gateway in self.gateways)

        wait(ready, "the gateways are ready")

    def close(self):
        for gateway in self.gateways:
            gateway.kill()
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        if self.mounted:
            subprocess.run(["umount", "-l", self.disk], check=True)

    def keep(self):
        """Before close(): what is on the small disk, so that it can be looked at."""
        if self.mounted:
            subprocess.run(["cp", "-a", self.disk, self.disk + "-kept"], capture_output=True)


def wait(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
