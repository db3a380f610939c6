# SPDX-License-Identifier: MIT
"""Fixtures: a started gateway in a data directory of its own, and raw sockets to it."""

import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = SOURCE / "tests" / "e2e" / "support"
sys.path[:0] = [str(SUPPORT), str(SOURCE / "tests" / "support"), str(SOURCE / "tests" / "house")]
from crashes import CRASHES, pytest_runtest_logstart, pytest_runtest_makereport  # noqa: E402,F401 (hooks)
from servers import servers  # noqa: E402,F401 (a fixture)

# Its gateways keep their documents in MongoDB: nothing to collect in a tree without that backend.
collect_ignore = [] if (SOURCE / "backends" / "mongo").is_dir() else ["team/test_cluster.py", "team/test_clocks.py"]
# They measure the plain build, probe it at length, pack it, and preload what would stand before a sanitizer's runtime.
if os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan"):
    collect_ignore += ["ops/test_bench.py", "package/test_first_hour.py", "package/test_installed.py", "http/test_openapi_tools.py",
                       "package/test_package.py", "http/test_repeats.py"]
# Users and roots of their own are made by root only.
if os.geteuid() != 0:
    collect_ignore += ["package/test_installed.py"]
# Nor can anything stand before the thread sanitizer's allocator.
if os.environ.get("NOTEGATE_TEST_PRESET") == "tsan":
    collect_ignore += ["ops/test_allocations.py"]

# No test is about how long these take: a machine that does much besides may need a minute for what takes a moment.
START_SECONDS = 120
STOP_SECONDS = 120
ANSWER_SECONDS = 120
LISTENING = re.compile(r"listening on (https?://\S+)")


def share_authorities():
    """Clients of httpx that name no TLS context share one: httpx would read all authorities anew for each."""
    make = httpx.create_ssl_context
    shared = make(trust_env=False)

    def context(verify=True, cert=None, trust_env=True):
        return shared if verify is True and cert is None else make(verify, cert, trust_env)

    httpx._transports.default.create_ssl_context = context


share_authorities()


def pytest_xdist_make_scheduler(config, log):
    """A file is run by one process. Files with kernels are one scope: kernels, their supervisors and what they compute would be more
    load than two processors have."""
    from xdist.scheduler import LoadFileScheduling

    class OneKernelFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return "e2e/cells" if nodeid.startswith("e2e/cells/") else super()._split_scope(nodeid)

    return OneKernelFile(config, log)


def pytest_configure(config):
    config.addinivalue_line("markers", "plain_build: not for a build with a sanitizer")
    config.addinivalue_line("markers", "long: many gateways, failovers, much data and limits that are waited out, in the suite `long` of packaging/test")


# Files that take long begin first, longest first, so that a run does not end with one of them alone (pytest-xdist: --no-loadscope-reorder).
LONG_FILES = ("package/test_first_hour", "team/test_balancer", "cells/test_cells_kernels", "team/test_redis_topologies", "team/test_cluster",
              "keys/test_started_programs", "http/test_odd_arguments",
              "cells/test_cells_kernel_stops", "package/test_guides", "team/test_memory", "cells/test_cells_bad_kernels",
              "http/test_openapi_tools", "ops/test_durability", "http/test_http_raw", "cells/test_cells_kernel_ends",
              "package/test_installed", "notes/test_opennotes.", "events/test_events.", "team/test_mongo", "cells/test_cells_files",
              "ops/test_bench", "team/test_agent_notebook", "mcp/test_clients", "package/test_readme", "team/test_redis_journal",
              "team/test_main_job", "ops/test_servers", "package/test_agent_notebook_guide", "ops/test_bad_plugins",
              "package/test_contributing", "events/test_events_crowd", "cells/test_cells_runs", "http/test_tls", "http/test_limits")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: next((at for at, name in enumerate(LONG_FILES) if name in str(item.path)), len(LONG_FILES)))
    # A sanitizer has handlers of fatal signals of its own: those tests are not skipped, they are none.
    if os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan"):
        items[:] = [item for item in items if item.get_closest_marker("plain_build") is None]


def binary():
    """The program under test: NOTEGATE_TEST_BINARY, else the release, else the development build."""
    named = os.environ.get("NOTEGATE_TEST_BINARY")
    candidates = [pathlib.Path(named)] if named else [
        SOURCE / "build" / kind / "bin" / "notegate" for kind in ("release", "dev")]
    for path in candidates:
        if path.exists():
            return str(path)
    pytest.fail(f"no notegate binary at {', '.join(map(str, candidates))}: build it first, "
                "or name it in NOTEGATE_TEST_BINARY")


def environment():
    """The tests' own, without anything that would configure the gateway."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("NOTEGATE_", "MONGODB_", "REDIS_"))}


def eventually(condition, seconds=120.0, what="the condition"):
    """Waits until condition() is true and returns its value; fails after `seconds`. what: a text, or a function that makes it."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            pytest.fail(f"{what() if callable(what) else what} did not become true within {seconds} s")
        time.sleep(0.02)


def whole(ask, seconds):
    """The answer of ask() once it has no `backlog`: recall and timeline tell so what has not come to the journal yet."""
    return eventually(lambda: (lambda told: None if "backlog" in told else told)(ask()), seconds, "an answer without a backlog")


# For what an ended process had written; longer only where a child of it lives on with its stderr.
READ_SECONDS = 10


class Gateway:
    """One serving process."""

    def __init__(self, data_dir, sets=(), args=(), listen="127.0.0.1:0", verify=True, cwd=None):
        self.data_dir = pathlib.Path(data_dir)
        command = [binary(), "serve", "--data-dir", str(data_dir), "--listen", listen]
        for item in sets:
            command += ["--set", item]
        self.process = subprocess.Popen(
            command + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(), cwd=cwd or self.data_dir.parent)
        self.ending = False
        self.errors = []
        self.lines = queue.Queue()
        self.readers = [threading.Thread(target=self._drain, args=(stream, keep), daemon=True) for stream, keep in (
            (self.process.stdout, self.lines.put), (self.process.stderr, self.errors.append))]
        for reader in self.readers:
            reader.start()
        self.url = self._wait()
        self.host, port = self.url.split("://")[1].rsplit(":", 1)
        self.host = self.host.strip("[]")
        self.port = int(port)
        self.socket_path = str(self.data_dir / "notegate.sock")
        self.client = httpx.Client(base_url=self.url, timeout=ANSWER_SECONDS, trust_env=False, verify=verify)

    @staticmethod
    def _drain(stream, keep):
        for line in stream:
            keep(line)

    def _wait(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                found = LISTENING.search(self.lines.get(timeout=0.1))
            except queue.Empty:
                found = None
                if self.process.poll() is not None:
                    break
            if found:
                return found.group(1)
        self.process.kill()
        self.process.wait()
        self.read_all()
        pytest.fail("the gateway did not start: " + "".join(self.errors))

    def read_all(self):
        """Waits until `errors` has all that a process wrote which has ended, and soon those that it had started."""
        for reader in self.readers:
            reader.join(READ_SECONDS)

    def call(self, tool, arguments=None, headers=None):
        """One call over REST; the answer."""
        return self.client.post(f"/v1/tools/{tool}", json=arguments or {}, headers=headers)

    def connect(self):
        """A raw connection."""
        return Raw(socket.create_connection((self.host, self.port), timeout=ANSWER_SECONDS), self.port)

    def connect_local(self):
        """A raw connection to the Unix socket."""
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(ANSWER_SECONDS)
        plain.connect(self.socket_path)
        return Raw(plain, self.port)

    def in_use(self, name):
        """A number of notegate_in_use."""
        text = self.client.get("/metrics").text
        found = re.search(rf'^notegate_in_use{{name="{name}"}} (\S+)$', text, re.M)
        assert found, f"no notegate_in_use of {name} in:\n{text}"
        return float(found.group(1))

    def counted(self, name):
        """The sum of a counter over its labels."""
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", self.client.get("/metrics").text, re.M))

    def logged(self, *parts):
        """The lines of the log that have all these parts."""
        return [line for line in list(self.errors) if all(part in line for part in parts)]

    def reload(self):
        """POST /v1/reload; the report."""
        answer = self.client.post("/v1/reload")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def terminate(self):
        """SIGTERM, once: a second one would cut off what a slow machine still ends."""
        if not self.ending:
            self.ending = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self, seconds=STOP_SECONDS):
        """SIGTERM; the exit code."""
        self.client.close()
        if self.process.poll() is None:
            self.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                pytest.fail("the gateway did not end after SIGTERM: " + "".join(self.errors))
        self.read_all()
        if self.process.returncode in CRASHES:
            pytest.fail(f"the gateway crashed: exit code {self.process.returncode}: " + "".join(self.errors))
        return self.process.returncode


class Answer:
    """A parsed HTTP answer."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Raw:
    """Bytes to the gateway and answers back, with nothing in between that corrects them."""

    def __init__(self, plain, port):
        self.socket = plain
        self.port = port
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def request(self, line, headers=(), body=b"", host=True):
        """A request whose parts are as given; Content-Length only where there is a body."""
        lines = [line.encode()]
        if host:
            lines.append(f"Host: 127.0.0.1:{self.port}".encode())
        lines += [h if isinstance(h, bytes) else h.encode() for h in headers]
        if body:
            lines.append(f"Content-Length: {len(body)}".encode())
        return self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def _more(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def answer(self, head=False):
        """The next answer; None: the connection ended before one."""
        while b"\r\n\r\n" not in self.buffer:
            try:
                if not self._more():
                    return None
            except ConnectionResetError:
                return None
        top, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = top.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        length = 0 if head or status in (204, 304) else int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            if not self._more():
                pytest.fail("the answer's body was cut off")
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(status, headers, body)

    def ended(self):
        """True when the gateway has closed and nothing more came."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def start(tmp_path):
    """start(sets=[...], ...) gives a Gateway; all are stopped at the end."""
    started = []

    def begin(sets=(), args=(), listen="127.0.0.1:0", name="data", verify=True):
        gateway = Gateway(tmp_path / name, sets, args, listen, verify)
        started.append(gateway)
        return gateway

    yield begin
    codes = [gateway.stop() for gateway in started]
    assert all(code == 0 for code in codes), [gateway.errors for gateway in started]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """One gateway for a whole module of tests."""
    running = Gateway(tmp_path_factory.mktemp("gateway") / "data")
    yield running
    assert running.stop() == 0, "".join(running.errors)
