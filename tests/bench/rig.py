# SPDX-License-Identifier: MIT
"""Tools of the benchmark: started servers, the load generator, and figures of a process from /proc."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TICK = os.sysconf("SC_CLK_TCK")


def build(args):
    out = os.path.join(ROOT, "build", "bench")
    os.makedirs(out, exist_ok=True)
    include = ["-I" + os.path.join(ROOT, "core", "include")]
    jobs = [
        (["load.c"], "load", []),
        (["bare_http.c"], "bare_http", ["-lmicrohttpd"]),
        (["plain_writer.c"], "plain_writer", ["-lsqlite3"]),
        (["plain_work.c"], "plain_work", ["-lsqlite3"]),
        (["stuck.c"], "stuck.so", ["-shared", "-fPIC", "-DNG_ABI=1", *include]),
    ]
    for sources, name, flags in jobs:
        target = os.path.join(out, name)
        paths = [os.path.join(HERE, source) for source in sources]
        if os.path.exists(target) and all(os.path.getmtime(target) > os.path.getmtime(p) for p in paths):
            continue
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", *paths, "-o", target, *flags], check=True)
    return out


def cpu_seconds(pid):
    """Time that the process has used, in seconds, to the nanosecond where the kernel tells it."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        except (FileNotFoundError, ValueError, IndexError):
            pass
    if total:
        return total / 1e9
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mib(pid, kind="Pss"):
    """PSS shares what other processes have mapped too; "Rss" counts it whole."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return int(re.search(rf"^{kind}:\s+(\d+) kB", file.read(), re.M).group(1)) / 1024


class Gateway:
    def __init__(self, binary, *flags, data=None, env=None, log=subprocess.DEVNULL, before=()):
        self.data = data or tempfile.mkdtemp(prefix="notegate-bench-")
        self.flags = flags
        self.binary = binary
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("NOTEGATE_")} | (env or {})
        self.log = log
        self.before = before  # words of the command in front of the gateway's
        self.start()

    def start(self):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [*self.before, self.binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", self.data,
             "--set", "log.level=error", *self.flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.env)
        line = self.process.stdout.readline()
        match = re.search(r"http://([0-9.]+):(\d+)", line)
        if not match:
            self.stop()
            raise SystemExit(f"the gateway did not start: {line!r}")
        self.port = int(match.group(2))
        self.pid = self.process.pid
        return self

    def call(self, tool, arguments, agent="bench", headers=None, timeout=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("POST", f"/v1/tools/{tool}", json.dumps(arguments),
                               {"Content-Type": "application/json", **(headers or {"X-Notegate-Agent": agent})})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def stop(self, keep=False, seconds=20):
        """Its exit status; it is killed if it does not end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if not keep:
            shutil.rmtree(self.data, ignore_errors=True)
        return self.process.returncode


def request(path, body, headers=()):
    text = json.dumps(body, separators=(",", ":")).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
             f"Content-Length: {len(text)}", *headers]
    handle, name = tempfile.mkstemp(prefix="notegate-bench-")
    with os.fdopen(handle, "wb") as file:
        file.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
    return name


def load_command(out, port, connections, seconds, file, rate=None, count=None, among=None, every=None):
    """file: one request, or a list of them that the connections share out."""
    options = [word for flag, value in (("-r", rate), ("-c", count), ("-n", among), ("-i", every)) if value
               for word in (flag, str(value))]
    return [os.path.join(out, "load"), *options, f"127.0.0.1:{port}", str(connections), str(seconds),
            *([file] if isinstance(file, str) else file)]


def load(out, port, connections, seconds, file, pid, rate=None, **options):
    before = cpu_seconds(pid)
    command = load_command(out, port, connections, seconds, file, rate, **options)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the load generator failed: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    result["cpu_us"] = (cpu_seconds(pid) - before) * 1e6 / max(1, result["answered"])
    if result["not_200"]:
        raise SystemExit(f"{result['not_200']} answers were not 200: {done.stderr.strip()}")
    return result


class Bare:
    def __init__(self, out, size):
        self.process = subprocess.Popen([os.path.join(out, "bare_http"), str(size)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)


def body_of(port, file):
    """The body of the answer to the request in the file."""
    with socket.create_connection(("127.0.0.1", port)) as connection, open(file, "rb") as request_file:
        connection.sendall(request_file.read().replace(b"@@@@", b"0000"))
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.read()


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def least_of(rows, key):
    """Of CPU: what disturbs can only add to it."""
    return min(row[key] for row in rows)


NODE_PACKAGES = ("package.json", "package-lock.json")


def node_modules(out):
    """Node and the TypeScript SDK's servers, installed as pinned; None where that is not possible."""
    folder = os.path.join(out, "node")
    os.makedirs(folder, exist_ok=True)
    texts = [open(os.path.join(HERE, name)).read() for name in NODE_PACKAGES]
    done = os.path.join(folder, "installed")
    if not os.path.exists(done) or open(done).read() != "".join(texts):
        for name in NODE_PACKAGES:
            shutil.copy(os.path.join(HERE, name), folder)
        try:
            subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            return None
        with open(done, "w") as file:
            file.write("".join(texts))
    return folder


class SdkServer:
    """The TypeScript SDK's two servers in one Node."""

    def __init__(self, folder, text):
        modules = os.path.join(folder, "node_modules")
        node = next(os.path.join(modules, name, "bin", "node") for name in sorted(os.listdir(modules))
                    if name.startswith("node-linux-"))
        shutil.copy(os.path.join(HERE, "sdk_server.mjs"), folder)
        self.process = subprocess.Popen([node, "sdk_server.mjs", text], cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "NODE_ENV": "production"})
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)


class Streams:
    """Open event streams."""

    def __init__(self, port, count):
        self.sockets = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
            self.sockets.append(connection)
        for connection in self.sockets:
            connection.settimeout(20)
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit("an event stream was refused")

    def close(self):
        for connection in self.sockets:
            connection.close()
