# SPDX-License-Identifier: MIT
"""Threads have names: a list of threads, a profiler and a core file say what each of them does."""

import pathlib

from conftest import eventually

# Threads that libraries start and name by themselves.
LIBRARIES = ("ZMQ", "MHD-")


def threads_of(pid):
    """{thread: name} without the first thread, which has the program's name."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if path.name != str(pid):
            found[path.name] = (path / "comm").read_text().strip()
    return found


def test_every_thread_has_a_name(gateway):
    assert gateway.call("notebook", {"mode": "create", "name": "threads"}).status_code == 200
    local = gateway.connect_local()
    local.send(b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert local.answer().status == 200

    def named():
        names = threads_of(gateway.process.pid).values()
        return all(name.startswith(("ng-", *LIBRARIES)) for name in names)

    eventually(named, what=f"a name for each of {threads_of(gateway.process.pid)}")
    names = set(threads_of(gateway.process.pid).values())
    assert {"ng-http-0", "ng-http-1", "ng-writer", "ng-journal", "ng-feed", "ng-timers", "ng-log"} <= names, names
