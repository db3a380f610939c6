# SPDX-License-Identifier: MIT
"""The servers that other tests lean on: they stop, come back with their data, freeze, and never outlive their owner."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from conftest import SOURCE, eventually
from servers import RedisError

PROGRAM = str(SOURCE / "tests" / "support" / "servers.py")


@pytest.mark.parametrize("kind", [{"debian": True}, {}, {"search": True}], ids=["debian", "new", "search"])
def test_redis_keeps_its_data_over_a_kill(servers, kind):
    server = servers.redis(**kind)
    assert server.execute("SET", "a", "1") == "OK"
    port = server.port
    server.kill()
    with pytest.raises(OSError):
        server.execute("GET", "a")
    server.restart()
    assert server.port == port
    assert server.execute("GET", "a") == "1"
    if kind.get("search"):
        assert server.execute("FT._LIST") == []
    else:
        with pytest.raises(RedisError, match="unknown command"):
            server.execute("FT._LIST")


@pytest.mark.parametrize("text", [False, True])
def test_mongo_comes_back(servers, text):
    server = servers.mongo(text=text)
    assert server.answers()
    server.stop()
    with pytest.raises(OSError):
        server.answers()
    assert server.restart().answers()


def test_frozen_server(servers):
    server = servers.redis()
    with socket.create_connection(("127.0.0.1", server.port), 20) as plain:
        server.freeze()
        plain.sendall(b"PING\r\n")
        plain.settimeout(0.2)
        with pytest.raises(TimeoutError):
            plain.recv(100)
        server.thaw()
        plain.settimeout(20)
        assert plain.recv(100) == b"+PONG\r\n"


def gone(process_id):
    try:
        with open(f"/proc/{process_id}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def lent(command):
    """A started `servers.py run` whose command tells the number of the server's process first."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_URI")}
    ask = ("import os, sys; sys.path.insert(0, sys.argv[1]); import servers; s = servers.RedisServer(); "
           "s.port = int(os.environ['NOTEGATE_TEST_REDIS_NEW_URI'].rsplit(':', 1)[1]); "
           "print(s.execute('INFO', 'server').split('process_id:')[1].split()[0], flush=True); s.close(); ")
    return subprocess.Popen(
        [sys.executable, PROGRAM, "run", "--redis-new", "--", sys.executable, "-c", ask + command,
         str(SOURCE / "tests" / "support")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment)


def test_lent_servers_end_with_the_command(servers):
    servers.redis()  # says so where there is none
    with lent("sys.exit(7)") as process:
        number = int(process.stdout.readline())
        assert process.wait(60) == 7
        assert gone(number)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_lent_servers_end_with_their_owner(servers, how):
    servers.redis()
    with lent("sys.stdin.read()") as process:
        number = int(process.stdout.readline())
        assert not gone(number)
        process.send_signal(how)
        process.wait(60)
        eventually(lambda: gone(number), 120, "the end of the server")
