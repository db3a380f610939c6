# SPDX-License-Identifier: MIT
"""Fixtures for gateways on a server of MongoDB's protocol, with a line in between that tests edit; calls of theirs."""

import contextlib
import itertools
import threading

import pytest
import servers as real
from conftest import Gateway, eventually
from mongo_proxy import Proxy

SECONDS = 60
DATABASE = "notegate_e2e"
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def mongo():
    """One server for the tests of a file."""
    try:
        server = real.MongoServer(synced=False)
    except real.Missing as missing:
        pytest.skip(str(missing))
    with server:
        yield server


@contextlib.contextmanager
def lined(server, greet=None):
    """A line to the server."""
    line = Proxy(server.port, greet)
    try:
        yield line
    finally:
        line.close()


@pytest.fixture(scope="module")
def proxy(mongo):
    with lined(mongo) as line:
        yield line


@pytest.fixture(scope="module")
def text():
    """A line to a server with text indexes. It knows no transactions: their ends are answered for it."""
    try:
        server = real.MongoServer(text=True)
    except real.Missing as missing:
        pytest.skip(str(missing))
    with server, lined(server, lambda hello: None) as line, line.fault(
            ("commitTransaction", "abortTransaction"), times=None, answer={"ok": 1.0}):
        yield line


@contextlib.contextmanager
def serving(folder, uri, timeout="5s", database=DATABASE, plugins="agent_notebook,notebook", more=(), ready=True):
    gateway = Gateway(folder / f"gateway{next(numbers)}", sets=[
        "documents=mongo", f"mongo.uri={uri}", f"mongo.database={database}", f"mongo.timeout={timeout}",
        f"plugins={plugins}", *more])
    try:
        if ready:
            eventually(lambda: gateway.client.get("/readyz").status_code == 200, SECONDS, "readiness")
        yield gateway
    finally:
        gateway.client.close()
        gateway.process.kill()
        gateway.process.wait()
        gateway.read_all()


@pytest.fixture(scope="module")
def patient(proxy, tmp_path_factory):
    """A gateway with the usual time limit."""
    with serving(tmp_path_factory.mktemp("patient"), proxy.uri) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def hasty(proxy, tmp_path_factory):
    """A gateway that gives up soon: two seconds after the beginning of a call."""
    with serving(tmp_path_factory.mktemp("hasty"), proxy.uri, timeout="1s", database=DATABASE + "_hasty",
                 more=["limits.call_timeout=3s"]) as gateway:
        yield gateway


def keyed(key):
    return {"Idempotency-Key": key} if key else None


def create(gateway, name, key=None, text="start"):
    return gateway.call("notebook", {"mode": "create", "name": name, "newStr": text}, keyed(key))


def append(gateway, name, text="more", key=None):
    return gateway.call("notebook", {"mode": "write", "name": name, "newStr": text}, keyed(key))


def read(gateway, name):
    return gateway.call("notebook", {"mode": "read", "name": name})


def content(gateway, name):
    """The text of a notebook, once the database gives it; None: there is none."""
    def told():
        answer = read(gateway, name)
        return answer if answer.status_code in (200, 404) else None

    answer = eventually(told, SECONDS, "an answer about the notebook")
    return answer.json()["result"] if answer.status_code == 200 else None


def page(gateway, title="Page", text="words", key=None, **more):
    return gateway.call("notebook_create", {"collection": "pages", "title": title, "content": text, **more}, keyed(key))


def made(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def unavailable(answer):
    """Says that the database is away, and when to try again."""
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "BACKEND_UNAVAILABLE", answer.text
    assert int(answer.headers["Retry-After"]) >= 0
    return True


def at_once(*calls):
    """All calls at the same time; their answers."""
    answers = [None] * len(calls)

    def run(at, call):
        answers[at] = call()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
