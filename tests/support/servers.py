# SPDX-License-Identifier: MIT
"""Real servers for the tests: MongoDB's protocol and Redis, each in a temporary folder on a port of its own.

The programs come from build/servers (packaging/servers.sh) and, for the Redis without a search module, from the system.
As a program it lends them to a command:  servers.py run --mongo --redis -- COMMAND
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 120
STOP_SECONDS = 20
# Below the ports that a system gives to outgoing connections, so that a server which is down keeps its port.
PORTS = range(20000, 32000)
PORT_TRIES = 8
EXECUTE_SECONDS = 30
# SIGALRM: a handler of crashes that hangs is ended by it.
CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGALRM)


class Missing(Exception):
    """The program of a server is not installed."""


def folder():
    """Folder into which packaging/servers.sh installs the programs."""
    return pathlib.Path(os.environ.get("NOTEGATE_TEST_SERVERS") or SOURCE / "build" / "servers")


def installed(path):
    """The path of a program that is there."""
    found = shutil.which(str(path))
    if not found and not os.path.exists(path):
        raise Missing(f"{path} is not there: packaging/test installs the servers of the tests")
    return str(found or path)


# By port: a mark for other processes of tests that it is in use, also while no server listens there.
_claims = {}


def free_port():
    while True:
        port = random.choice(PORTS)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0notegate-test-port-{port}")
            with socket.socket() as trial:
                trial.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims[port] = claim
        return port


def give_back(port):
    if port in _claims:
        _claims.pop(port).close()


class RedisError(Exception):
    """Error that Redis sent instead of a reply."""


def freeze(process):
    """SIGSTOP. Returns when each of its threads stands still: on a busy machine some go on for a while after the signal."""
    process.send_signal(signal.SIGSTOP)
    end = time.monotonic() + STOP_SECONDS
    while not _stands_still(process):
        if time.monotonic() > end:
            raise RuntimeError(f"process {process.pid} still runs after SIGSTOP")
        time.sleep(0.002)


def _stands_still(process):
    try:
        stats = [(task / "stat").read_text() for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()]
    except OSError:
        return False  # a thread ended meanwhile
    return all(stat.rsplit(")", 1)[1].split()[0] in "TZX" for stat in stats)


class Server:
    """One server process. It ends with this process, however that ends."""

    def __init__(self, name, place=None):
        self.name = name
        self.port = None
        self.process = None
        self.guard = None
        self.data = pathlib.Path(tempfile.mkdtemp(prefix=f"notegate-{name}-", dir=place))
        self.log = self.data / "log"

    # ---- what the kinds of server say ----

    def command(self):
        raise NotImplementedError

    def answers(self):
        """True when a real command was answered by this very process."""
        raise NotImplementedError

    # ---- life ----

    def start(self):
        """On the port it had, else on a free one; returns when it answers."""
        tries = 1 if self.port else PORT_TRIES
        for left in reversed(range(tries)):
            if tries > 1:
                self.port = free_port()
            self._spawn()
            if self._wait():
                return self
            self._reap()
            if tries > 1:
                give_back(self.port)
            if not left:
                what = "did not start" if tries > 1 else "did not come back"
                raise RuntimeError(f"{self.name} {what}: {self.log.read_text(errors='replace')[-4000:]}")
        return self

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM, and SIGKILL to one that does not end. The data stay."""
        if self.runs():
            self.thaw()
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._reap()

    def kill(self):
        """kill -9."""
        self._reap()

    def restart(self):
        """On the same port and data folder, as after a crash if it was not stopped before."""
        self._reap()
        return self.start()

    def freeze(self):
        """Connections stay open and are accepted; nothing is answered. Returns when each of its threads stands still."""
        freeze(self.process)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        """The end: process and data."""
        self._reap()
        give_back(self.port)
        shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def _spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.data, start_new_session=True)
        # The pipe ends with this process, also by SIGKILL; no other process would end the server then.
        self.guard = subprocess.Popen(["/bin/sh", "-c", 'read -r line || { kill -9 "$1"; rm -rf "$2"; }', "guard",
                                       str(self.process.pid), str(self.data)],
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      start_new_session=True)

    def _wait(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.answers() and self.process.poll() is None:
                    return True
            time.sleep(0.02)
        return False

    def _reap(self):
        if not self.process:
            return
        # The guard first: no other process gets its number then.
        with contextlib.suppress(OSError):
            self.guard.stdin.write(b"\n")
            self.guard.stdin.close()
        self.guard.wait()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process = None


# Starts SecantusDB.
MONGO_PROGRAM = SOURCE / "tests" / "support" / "mongo_server.py"


# The request `ping` of MongoDB's protocol.
PING_BODY = b"\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0"
PING = struct.pack("<iiiiIBi", 25 + len(PING_BODY), 1, 0, 2013, 0, 0, len(PING_BODY) + 4) + PING_BODY


class MongoServer(Server):
    """MongoDB's protocol. text: the one with text indexes, which is weak elsewhere. args: further options. synced: each commit
    is on disk before it is acknowledged. place: folder for its data, instead of the system's temporary one. Without text
    indexes it is the program of NOTEGATE_TEST_MONGO, if that names one with the options of SecantusDB."""

    def __init__(self, text=False, args=(), synced=True, place=None):
        programs = folder() / "venv" / "bin"
        named = os.environ.get("NOTEGATE_TEST_MONGO")
        if text:
            program = [installed(programs / "nx-27017")]
        elif named:
            program = [named]
        else:
            program = [installed(programs / "python3"), str(MONGO_PROGRAM)]
            installed(programs / "secantusd-py")
        super().__init__("mongo-text" if text else "mongo", place)
        self.text = text
        self.program = program
        self.args = [*args, *(["--sync-on-commit"] if synced and not text else [])]
        (self.data / "db").mkdir()

    @property
    def uri(self):
        # With one member named directly, no driver goes to look for others.
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def command(self):
        place = [*self.program, "--host", "127.0.0.1", "--port", str(self.port)]
        if self.text:
            return place + ["--data-dir", str(self.data / "db"), "--log-file", str(self.data / "log"),
                            "--pid-file", str(self.data / "pid"), *self.args]
        return place + ["--storage-path", str(self.data / "db"), "--log-level", "WARNING", *self.args]

    def answers(self):
        with socket.create_connection(("127.0.0.1", self.port), 5) as plain:
            plain.settimeout(5)
            plain.sendall(PING)
            return b"ok\0" in plain.recv(4096)


class RedisServer(Server):
    """Redis. search: with the search module; debian: the system's own, which has TLS. args: further options. place: as above."""

    def __init__(self, search=False, debian=False, args=(), place=None):
        if search and debian:
            raise ValueError("the search module needs a newer server than the system's")
        program = installed("redis-server" if debian else folder() / "bin" / "redis-server")
        self.module = installed(folder() / "lib" / "redisearch.so") if search else None
        super().__init__("redis-search" if search else "redis", place)
        self.program = program
        self.args = list(args)

    @property
    def uri(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self):
        # With everysec an answer may be given before the write: a kill would lose what was acknowledged.
        return [self.program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.data),
                "--appendonly", "yes", "--appendfsync", "always", "--save", "",
                *(["--loadmodule", self.module] if self.module else []), *self.args]

    def execute(self, *words):
        """One command on a connection of its own: text, a number, None, a list of these. RedisError for an error."""
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        request = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        with socket.create_connection(("127.0.0.1", self.port), EXECUTE_SECONDS) as plain:
            plain.sendall(request)
            with plain.makefile("rb") as answer:
                return self._reply(answer)

    @classmethod
    def _reply(cls, answer):
        line = answer.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise RedisError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else answer.read(int(rest) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return None if rest == "-1" else [cls._reply(answer) for _ in range(int(rest))]
        return rest

    def answers(self):
        try:
            answer = self.execute("INFO")
            # While it still reads its data it answers this, and little else.
            return f"process_id:{self.process.pid}\r" in answer and "\nloading:0\r" in answer
        except RedisError as error:
            return str(error).startswith("NOAUTH")


class HaproxyServer(Server):
    """The system's haproxy. config: its text, where it binds :8420 (the frontend's port; becomes a free one on loopback)."""

    def __init__(self, config):
        self.program = installed(shutil.which("haproxy") or "/usr/sbin/haproxy")
        super().__init__("haproxy")
        self.config = config
        self.stats = self.data / "stats"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        text = self.config.replace("bind :8420", f"bind 127.0.0.1:{self.port}")
        text = text.replace("global\n", f"global\n    stats socket {self.stats} level admin\n", 1)
        (self.data / "haproxy.cfg").write_text(text)
        return [self.program, "-db", "-f", str(self.data / "haproxy.cfg")]

    def _ask(self, command):
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(EXECUTE_SECONDS)
            plain.connect(str(self.stats))
            plain.sendall(command.encode() + b"\n")
            with plain.makefile() as answer:
                return answer.read()

    def answers(self):
        return f"\nPid: {self.process.pid}\n" in self._ask("show info")

    def states(self):
        """UP, DOWN and the like by the name of a server."""
        lines = self._ask("show stat").removeprefix("# ").splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines[1:] if line]
        return {row["svname"]: row["status"] for row in rows if row["svname"] not in ("FRONTEND", "BACKEND")}


# ---- for pytest: `from servers import servers` in a conftest.py ----

class Servers:
    """Makes servers for one test, or says that they are missing (in CI a skipped test fails the run)."""

    def __init__(self, stack):
        self.stack = stack

    def _start(self, kind, *args, **options):
        import pytest
        try:
            server = kind(*args, **options)
        except Missing as missing:
            pytest.skip(str(missing))
        return self.stack.enter_context(server)

    def mongo(self, text=False, args=()):
        return self._start(MongoServer, text, args)

    def redis(self, search=False, debian=False, args=()):
        return self._start(RedisServer, search, debian, args)

    def haproxy(self, config):
        return self._start(HaproxyServer, config)

    def redis_sentinels(self, **options):
        from redis_groups import RedisSentinels
        return self._start(RedisSentinels, **options)

    def redis_cluster(self, **options):
        from redis_groups import RedisCluster
        return self._start(RedisCluster, **options)


try:
    import pytest
except ImportError:
    pass
else:
    @pytest.fixture
    def servers():
        """servers.mongo(), servers.redis(search=True): fresh ones, gone at the end of the test."""
        with contextlib.ExitStack() as stack:
            yield Servers(stack)


# ---- as a program ----

# Lent servers are not killed: they need not wait for the disk.
LENT_REDIS = ["--appendfsync", "everysec"]
def one_node_cluster():
    # As a program this file is not the module that the groups import.
    sys.modules.setdefault("servers", sys.modules[__name__])
    from redis_groups import OneNodeCluster
    return OneNodeCluster(LENT_REDIS)


KINDS = {
    "mongo": ("NOTEGATE_TEST_MONGO_URI", lambda: MongoServer(synced=False)),
    "mongo-text": ("NOTEGATE_TEST_MONGO_TEXT_URI", lambda: MongoServer(text=True)),
    "redis": ("NOTEGATE_TEST_REDIS_URI", lambda: RedisServer(debian=True, args=LENT_REDIS)),
    "redis-new": ("NOTEGATE_TEST_REDIS_NEW_URI", lambda: RedisServer(args=LENT_REDIS)),
    "redis-search": ("NOTEGATE_TEST_REDIS_SEARCH_URI", lambda: RedisServer(search=True, args=LENT_REDIS)),
    "redis-cluster": ("NOTEGATE_TEST_REDIS_CLUSTER_URI", one_node_cluster),
}


def lend(kinds, stack):
    """The environment with the servers of these kinds, started at the same time."""
    environment = dict(os.environ)
    started, faults = [], []

    def start(server, variable):
        try:
            server.start()
            environment[variable] = server.uri
        except (RuntimeError, OSError) as fault:
            faults.append(str(fault))

    for kind in kinds:
        variable, make = KINDS[kind]
        if environment.get(variable):
            continue
        try:
            server = make()
        except Missing as missing:
            print(f"servers.py: {missing}; {variable} stays unset", file=sys.stderr)
            continue
        stack.callback(server.close)
        started.append(threading.Thread(target=start, args=(server, variable)))
        started[-1].start()
    for thread in started:
        thread.join()
    if faults:
        raise SystemExit("servers.py: " + "\n".join(faults))
    return environment


def end_command(process):
    """SIGTERM, and SIGKILL to one that does not end."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS / 2)
    process.kill()
    process.wait()


def run(kinds, command):
    """The exit code of the command, which ends with us when we are told to end."""
    def told(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, told)
    with contextlib.ExitStack() as stack:
        environment = lend(kinds, stack)
        process = subprocess.Popen(command, env=environment)
        try:
            code = process.wait()
        except SystemExit:
            end_command(process)
            raise
    if -code in CRASH_SIGNALS:
        print(f"servers.py: a program crashed: signal {-code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(description="Lends real servers to a command, in NOTEGATE_TEST_..._URI; "
                                                 "a variable that is set already is left alone.")
    actions = parser.add_subparsers(dest="action", required=True)
    runner = actions.add_parser("run", help="servers.py run --redis -- COMMAND")
    for kind, (variable, _) in KINDS.items():
        runner.add_argument(f"--{kind}", action="append_const", dest="kinds", const=kind, help=variable)
    runner.add_argument("command", nargs="+")
    asked = parser.parse_args()
    return run(asked.kinds or [], asked.command)


if __name__ == "__main__":
    sys.exit(main())
