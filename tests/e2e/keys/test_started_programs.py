# SPDX-License-Identifier: MIT
"""Programs that the gateway started (kernels, and what their cells run) are not its owner, and need a key."""

import contextlib
import ctypes
import errno
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import threading

import pytest
from cells_support import RUN_SECONDS, Book, guard_of, holder_of, need
from conftest import LISTENING, STOP_SECONDS, Raw, binary, environment, eventually
from preload_support import SANITIZED, fast, shim  # noqa: F401 (a fixture)

# In the cell: asks over TCP or the Unix socket, prints the status.
ASK = '''
import os, socket, sys, time
PORT, LOCAL, KEY = {port}, {local!r}, {key!r}

def connect(way):
    if way == "tcp":
        return socket.create_connection(("127.0.0.1", PORT), timeout=100)
    plain = socket.socket(socket.AF_UNIX)
    plain.settimeout(100)
    plain.connect(LOCAL)
    return plain

def send(plain):
    key = f"Authorization: Bearer {{KEY}}\\r\\n" if KEY else ""
    plain.sendall(("GET /v1/keys HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n" + key + "\\r\\n").encode())
    return plain

def status(plain):
    plain.settimeout(100)  # also where it came from another process
    data = b""
    while part := plain.recv(65536):
        data += part
    return data.split()[1].decode()
'''

WAYS = ["tcp", "unix"]


def ask(running, code, key=None, name="n.ipynb"):
    """Runs the code in a cell; its output."""
    source = ASK.format(port=running.port, local=running.socket_path, key=key) + textwrap.dedent(code)
    book = Book(running, name, [("a", source)])
    book.run("a")
    return book.text("a").strip()


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """One gateway without keys that runs cells."""
    from conftest import Gateway
    need("python3")
    running = Gateway(tmp_path_factory.mktemp("started") / "data", ["plugins=cells,notebook"])
    yield running
    assert running.stop() == 0, "".join(running.errors)


def owner_status(running, way):
    """The same question by this test, which the gateway has not started."""
    raw = running.connect() if way == "tcp" else running.connect_local()
    with raw:
        return raw.request("GET /v1/keys HTTP/1.1", ["Connection: close"]).answer().status


@pytest.mark.parametrize("way", WAYS)
def test_a_cell_is_not_the_owner(cells, way):
    assert ask(cells, f"print(status(send(connect({way!r}))))") == "401"
    assert owner_status(cells, way) == 200


@pytest.mark.parametrize("way", WAYS)
def test_nor_what_it_runs(cells, way):
    """A child, and one that left its parent: then the holder of the kernels has it."""
    code = f"""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while os.getppid() == {{parent}}:
                time.sleep(0.01)
            os.write(writing, status(send(connect({way!r}))).encode())
        os._exit(0)
    os.wait()
    os.close(writing)
    print(os.read(reading, 10).decode())
    """
    # The grandchild waits until its parent is gone.
    code = code.replace("if os.fork() == 0:\n            while", "left = os.getpid()\n        if os.fork() == 0:\n            while")
    assert ask(cells, code.replace("{parent}", "left"), name="orphan.ipynb") == "401"


@pytest.mark.parametrize("way", WAYS)
def test_nor_whose_maker_is_gone(cells, way):
    """A child connects and sends, passes the connection on and ends."""
    code = f"""
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        plain = send(connect({way!r}))
        socket.send_fds(there, [b"x"], [plain.fileno()])
        os._exit(0)
    os.waitpid(child, 0)
    fds = socket.recv_fds(here, 10, 1)[1]
    print(status(socket.socket(fileno=fds[0])))
    """
    assert ask(cells, code, name="passed.ipynb") == "401"


@pytest.mark.parametrize("way", WAYS)
def test_nor_while_no_process_holds_it(cells, way):
    """The connection lies in another socket's queue when the gateway looks."""
    code = f"""
    here, there = socket.socketpair()
    plain = connect({way!r})
    request = b"GET /v1/keys HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n"
    plain.sendall(request[:-1])
    socket.send_fds(there, [b"x"], [plain.fileno()])
    copy = os.dup(plain.fileno())
    os.write(copy, request[-1:])
    os.close(copy)
    plain.close()
    fds = socket.recv_fds(here, 10, 1)[1]
    print(status(socket.socket(fileno=fds[0])))
    """
    assert ask(cells, code, name="flight.ipynb") == "401"


def test_nor_on_a_connection_that_others_hold_too(cells, tmp_path):
    """This test, which the gateway has not started, gets the cell's connection; both hold it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "pass"))
        listener.listen()
        kept = []

        def take():
            taken = listener.accept()[0]
            kept.extend((taken, *socket.recv_fds(taken, 10, 1)[1]))
            taken.sendall(b"x")

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        code = f"""
        plain = connect("tcp")
        other = socket.socket(socket.AF_UNIX)
        other.connect({str(tmp_path / "pass")!r})
        socket.send_fds(other, [b"x"], [plain.fileno()])
        other.recv(1)
        print(status(send(plain)))
        """
        assert ask(cells, code, name="shared.ipynb") == "401"
        taker.join()
        os.close(kept[1])
        kept[0].close()


def test_nor_with_auth_off(start):
    need("python3")
    running = start(["plugins=cells", "auth=off"])
    for way in WAYS:
        assert ask(running, f"print(status(send(connect({way!r}))))", name=f"{way}.ipynb") == "401"
        assert owner_status(running, way) == 200


def test_a_key_counts(start):
    need("python3")
    running = start(["plugins=cells"])
    made = running.client.post("/v1/keys", json={"agent": "cell", "role": "admin", "run": True})
    assert made.status_code == 201, made.text
    with running.connect_local() as raw:  # from now on a run by TCP needs a key
        assert raw.request("GET /v1/keys HTTP/1.1").answer().status == 200
    running.client.headers["Authorization"] = f"Bearer {made.json()['key']}"
    for way in WAYS:
        assert ask(running, f"print(status(send(connect({way!r}))))", name=f"{way}.ipynb") == "401"
        assert ask(running, f"print(status(send(connect({way!r}))))", key=made.json()["key"], name=f"k{way}.ipynb") == "200"


def test_the_command_line_in_a_cell(cells):
    code = f"""
    import subprocess
    done = subprocess.run([{binary()!r}, "key", "add", "mallory", "--data-dir", {str(cells.data_dir)!r}],
                          capture_output=True, text=True)
    print(done.returncode, done.stderr)
    """
    said = ask(cells, code, name="command.ipynb")
    assert said.startswith("1 ") and "needs a key" in said, said
    owner = subprocess.run([binary(), "key", "list", "--data-dir", str(cells.data_dir)], capture_output=True, text=True,
                           env=environment(), timeout=RUN_SECONDS, check=False)
    assert owner.returncode == 0 and "mallory" not in owner.stdout, owner.stderr


@pytest.mark.parametrize("way", WAYS)
def test_nor_an_orphan_of_all_that_held_it(start, tmp_path, way):
    """Guard and holder are killed: what outlives them comes to the gateway."""
    need("python3")
    running = start(["plugins=cells"])
    pid, told, go = tmp_path / "pid", tmp_path / "told", tmp_path / "go"
    code = f"""
    import ctypes, subprocess
    if os.fork() == 0:
        os.setsid()
        env = {{"PATH": os.environ["PATH"]}}  # without the mark by which left ones are found
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM], env)
    print("started")
    """
    program = (ASK.format(port=running.port, local=running.socket_path, key=None) +
               textwrap.dedent(f"""
    open({str(pid)!r} + "~", "w").write(str(os.getpid()))
    os.rename({str(pid)!r} + "~", {str(pid)!r})
    end = time.monotonic() + 100
    while not os.path.exists({str(go)!r}) and time.monotonic() < end:
        time.sleep(0.02)
    open({str(told)!r} + "~", "w").write(status(send(connect({way!r}))))
    os.rename({str(told)!r} + "~", {str(told)!r})
    """))
    book = Book(running, "n.ipynb", [("a", ASK.format(port=0, local="", key=None) + f"PROGRAM = {program!r}\n" + textwrap.dedent(code))])
    book.run("a")
    eventually(pid.exists, RUN_SECONDS, "the program runs")
    holder, guard = holder_of(running), guard_of(running)
    os.kill(holder, signal.SIGSTOP)
    os.kill(guard, signal.SIGKILL)
    os.kill(holder, signal.SIGKILL)
    eventually(lambda: parent_of(int(pid.read_text())) not in (holder, guard), RUN_SECONDS, "it is an orphan")
    go.touch()
    eventually(told.exists, RUN_SECONDS, "it has asked")
    assert told.read_text() == "401"


def leave_orphans(running, book, tmp_path, count):
    """Programs of a cell that outlive its kernel's guard and holder, and end when the gateway has them; their ids."""
    go, pids = tmp_path / "go", tmp_path / "pids"
    program = textwrap.dedent(f"""
    import os, time
    end = time.monotonic() + 100
    pids = []
    for i in range({count}):
        pids.append(os.fork())
        if pids[-1] == 0:
            while not os.path.exists({str(go)!r}) and time.monotonic() < end:
                time.sleep(0.05)
            os._exit(0)
    with open({str(pids)!r} + "~", "w") as out:
        out.write(" ".join(map(str, pids)))
    os.rename({str(pids)!r} + "~", {str(pids)!r})
    """)
    book.cells([("a", textwrap.dedent(f"""
    import os, sys
    if os.fork() == 0:
        os.setsid()
        env = {{"PATH": os.environ["PATH"]}}  # without the mark by which left ones are found
        os.execve(sys.executable, [sys.executable, "-c", {program!r}], env)
    """))])
    book.run("a")
    eventually(pids.exists, RUN_SECONDS, "they run")
    left = {int(pid) for pid in pids.read_text().split()}
    holder, guard = holder_of(running), guard_of(running)
    os.kill(holder, signal.SIGSTOP)
    os.kill(guard, signal.SIGKILL)
    os.kill(holder, signal.SIGKILL)
    eventually(lambda: left <= set(children_of(running.process.pid)), RUN_SECONDS, "the gateway has them")
    go.touch()
    return left


@pytest.mark.long
def test_orphans_are_reaped(fast, start, tmp_path):  # noqa: F811
    """Else each keeps its place in the table of processes for as long as the gateway lives."""
    need("python3")
    running = start(["plugins=cells,notebook"])
    book = Book(running, "n.ipynb", [("a", "")])
    left = leave_orphans(running, book, tmp_path, 40)
    eventually(lambda: not left & set(children_of(running.process.pid)), RUN_SECONDS, "none is left")
    # The gateway's own child is still its own: a new holder runs kernels, and is waited for at the stop.
    book.cells([("a", "print(6 * 7)")])
    book.run("a")
    assert book.text("a") == "42\n"
    assert ask(running, "print(status(send(connect('tcp'))))", name="after.ipynb") == "401"
    assert owner_status(running, "tcp") == 200


def test_orphans_are_reaped_between_reloads(fast, start, tmp_path):  # noqa: F811
    """Reloads come more often than the gateway looks for orphans."""
    need("python3")
    running = start(["plugins=cells,notebook"])
    left = leave_orphans(running, Book(running, "n.ipynb", [("a", "")]), tmp_path, 3)

    def none_left():
        running.process.send_signal(signal.SIGHUP)
        return not left & set(children_of(running.process.pid))

    eventually(none_left, RUN_SECONDS, "none is left")


# ---- programs that the gateway cannot look at ----

PR_SET_DUMPABLE = 4
# Root may look at all programs: then gateway and caller are this user's.
USER = 12345 if os.geteuid() == 0 else os.geteuid()
WRAPPERS = {"plain": [], "shell": ["bash", "-c", '/bin/true; exec "$@"', "shell"]}
IGNORING = ["bash", "-c", 'trap "" CHLD; exec "$@"', "shell"]


@contextlib.contextmanager
def gateway_of_user(wrapper, *sets):
    """The port and socket of a gateway of USER that the wrapper becomes."""
    place = tempfile.mkdtemp(dir="/tmp")
    drop = []
    if os.geteuid() == 0:
        os.chown(place, USER, USER)
        drop = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    command = [*drop, *wrapper, binary(), "serve", "--data-dir", place + "/d", "--listen", "127.0.0.1:0"]
    for item in sets:
        command += ["--set", item]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment() | {"HOME": place}) as process:
        try:
            told = LISTENING.search(process.stdout.readline())
            assert told
            yield process.pid, int(told.group(1).rsplit(":", 1)[1]), place + "/d/notegate.sock"
        finally:
            process.terminate()
            assert process.wait(STOP_SECONDS) == 0
    shutil.rmtree(place)


def unseen_status(port, local, way):
    """Answer to a program of USER whose descriptors no other program may list."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)
            assert ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
            plain = socket.socket(socket.AF_INET if way == "tcp" else socket.AF_UNIX)
            plain.settimeout(100)
            plain.connect(("127.0.0.1", port) if way == "tcp" else local)
            answer = Raw(plain, port).request("GET /v1/keys HTTP/1.1", ["Connection: close"]).answer()
            os.write(writing, f"{answer.status} {answer.body.decode()}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("auth", ["auto", "off"])
def test_a_gateway_without_programs_refuses_no_unseen_caller(wrapper, auth):
    """Also one that a shell became, whose children count among those of the process."""
    with gateway_of_user(WRAPPERS[wrapper], f"auth={auth}") as (_, port, local):
        for way in WAYS:
            assert unseen_status(port, local, way).startswith("200 "), (way, unseen_status(port, local, way))


def test_an_ignored_end_of_children_is_not_inherited():
    """Children that the kernel reaps by itself would not be counted."""
    with gateway_of_user(IGNORING) as (pid, _, _):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        ignored = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")), 16)
        assert ignored & (1 << (signal.SIGCHLD - 1)) == 0


if not SANITIZED:  # a sanitizer's runtime must come before everything that is preloaded

    @pytest.fixture(params=[str(errno.EPROTONOSUPPORT), str(errno.EAFNOSUPPORT), str(errno.EPERM), str(errno.EACCES), "ask"])
    def mute(request, tmp_path, monkeypatch):
        """Gateways that start now cannot ask the kernel whose a TCP connection is."""
        shim(monkeypatch, tmp_path, "mute_netlink")
        monkeypatch.setenv("MUTE_NETLINK", request.param)

    def test_auth_off_where_the_kernel_cannot_be_asked(mute, start):
        need("python3")
        running = start(["plugins=cells", "auth=off"])
        assert owner_status(running, "tcp") == 200
        assert owner_status(running, "unix") == 200
        # While programs of its own run it cannot tell them from others.
        assert ask(running, "print(status(send(connect('tcp'))))", name="tcp.ipynb") == "401"
        with running.connect() as raw:
            answer = raw.request("GET /v1/keys HTTP/1.1").answer()
        assert answer.status == 401 and "was not found" in answer.json()["message"]
        assert owner_status(running, "unix") == 200

    def test_callers_need_a_key_where_the_kernel_cannot_be_asked(mute, start):
        running = start()
        with running.connect() as raw:
            answer = raw.request("GET /v1/keys HTTP/1.1").answer()
        assert answer.status == 401 and "NETLINK_SOCK_DIAG" in answer.json()["message"]
        assert "key add" in answer.json()["hint"]
        assert owner_status(running, "unix") == 200

    def test_a_shortage_is_asked_again(start, tmp_path, monkeypatch):
        shim(monkeypatch, tmp_path, "mute_netlink")
        monkeypatch.setenv("MUTE_NETLINK", str(errno.EMFILE))
        assert owner_status(start(["auth=off"]), "tcp") == 503


@pytest.mark.long
def test_the_last_kernel_leaves_no_program(start):
    """Else a caller that the gateway cannot look at would count as one of its programs for as long as it runs."""
    need("python3")
    running = start(["plugins=cells", "cells.idle_timeout=1s"])
    for _ in range(3):  # the next run gets a holder of its own
        assert ask(running, "print(status(send(connect('tcp'))))") == "401"
        eventually(lambda: not children_of(running.process.pid), RUN_SECONDS, "no program is left")
    assert owner_status(running, "tcp") == 200


@pytest.mark.long
def test_a_guard_that_does_not_end_delays_no_kernel(start):
    """It waits for programs that cannot be killed; the next kernel gets a guard of its own."""
    need("python3")
    running = start(["plugins=cells", "cells.idle_timeout=1s"])
    assert ask(running, "print(1)", name="a.ipynb") == "1"
    held = guard_of(running)
    os.kill(held, signal.SIGSTOP)
    try:
        eventually(lambda: holder_is_gone(running, held), RUN_SECONDS, "the kernel is gone")
        assert ask(running, "print(2)", name="b.ipynb") == "2"
        assert held in children_of(running.process.pid)
    finally:
        os.kill(held, signal.SIGCONT)
    eventually(lambda: not children_of(running.process.pid), RUN_SECONDS, "no program is left")


def holder_is_gone(running, guard):
    """The gateway has closed its end: kernels are listed no more."""
    kernels = running.call("listKernels", {}).json()["result"]
    return guard in children_of(running.process.pid) and "a.ipynb" not in str(kernels)


def children_of(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
            found += [int(child) for child in children.read().split()]
    return found


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])
