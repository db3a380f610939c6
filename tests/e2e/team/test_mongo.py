# SPDX-License-Identifier: MIT
"""Documents in MongoDB: servers and gateways are killed and go away; acknowledged writes exist, in a sequence without
gaps."""

import contextlib
import datetime
import json
import socket
import ssl
import threading
import time

import httpx
import pymongo
import pytest
from cli_support import notegate
from conftest import Gateway, eventually, whole
from mongo_load import SECONDS, append, create, in_a_line, kept, load, read
from tls_support import Authority


def sets_for(uri, timeout="10s"):
    return ["documents=mongo", f"mongo.uri={uri}", "mongo.database=notegate_e2e", f"mongo.timeout={timeout}"]


@contextlib.contextmanager
def serving(data, uri, **more):
    gateway = Gateway(data, sets=sets_for(uri, **more))
    try:
        yield gateway
    finally:
        gateway.client.close()
        gateway.process.kill()
        gateway.process.wait()


def reachable(gateway):
    with contextlib.suppress(httpx.TransportError):
        return read(gateway) is not None
    return False


def test_server_killed_under_load(tmp_path, servers):
    server = servers.mongo()
    with serving(tmp_path / "data", server.uri) as gateway:
        create(gateway)

        def kill_it(written):
            for kills in range(2):
                eventually(lambda: len(written) >= (kills + 1) * 4, SECONDS, "some writes")
                server.kill()
                server.start()

        in_a_line(gateway, load([gateway], kill_it))


def test_gateway_killed_under_load(tmp_path, servers):
    """Another gateway on the same database serves on, and moves what the killed one left."""
    server = servers.mongo()
    with serving(tmp_path / "one", server.uri) as one, serving(tmp_path / "two", server.uri) as two:
        create(one)

        def kill_it(written):
            eventually(lambda: len(written) >= 6, SECONDS, "some writes")
            one.process.kill()
            one.process.wait()

        in_a_line(two, load([one, two], kill_it))


def test_server_away_at_start(tmp_path, servers):
    """The gateway starts, says that the database is away, and serves once it is there."""
    server = servers.mongo()
    server.stop()
    with serving(tmp_path / "data", server.uri, timeout="1s") as gateway:
        answer = gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "start"})
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
        assert "Retry-After" in answer.headers
        server.start()

        def created():
            return gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "start"}).status_code in (200, 409)

        eventually(created, SECONDS, "the server to be found again")
        eventually(lambda: reachable(gateway), SECONDS, "the notebook")


def last_used(gateway):
    listed = notegate("key", "list", "--json", "--data-dir", gateway.data_dir)
    assert listed.returncode == 0, listed.stderr
    return max((key.get("last_used", "") for key in json.loads(listed.stdout)["keys"]), default="")


@pytest.mark.long
def test_when_a_key_was_used_last(tmp_path, servers):
    """All gateways see the writes of one; a gateway whose server is away stops all the same."""
    server = servers.mongo()
    with serving(tmp_path / "one", server.uri) as one, serving(tmp_path / "two", server.uri) as two:
        made = kept(lambda: one.client.post("/v1/keys", json={"agent": "ada"}))
        headers = {"Authorization": f"Bearer {made.json()['key']}"}
        kept(lambda: one.client.get("/v1/tools", headers=headers))
        used = last_used(one)
        assert used
        assert one.stop() == 0
        eventually(lambda: last_used(two) == used, SECONDS, "the last use")
        eventually(lambda: two.client.get("/v1/tools", headers=headers).status_code == 200 and last_used(two) > used, SECONDS,
                   "a later use")
        server.kill()
        assert two.stop() == 0


def test_credentials_refused(tmp_path, servers):
    """A clear answer within the time limit, which names the server and not the password."""
    server = servers.mongo()
    uri = server.uri.replace("mongodb://", "mongodb://someone:s3cr3tword@")
    with serving(tmp_path / "data", uri, timeout="5s") as gateway:
        answer = gateway.call("notebook", {"mode": "create", "name": "n", "newStr": "start"})
        assert answer.status_code == 503, answer.text
        error = answer.json()
        assert error["code"] == "BACKEND_UNAVAILABLE"
        told = [answer.text]

        def refused():
            ready = gateway.client.get("/readyz")
            assert ready.status_code == 503
            told.append(ready.text + "".join(gateway.errors))
            return "refused the credentials" in "".join(told)

        eventually(refused, SECONDS, "the word that the credentials were refused")
        assert "s3cr3tword" not in "".join(told)


# ---- from sqlite to MongoDB and back ----

def fill(gateway):
    """Entries with histories, one deleted, one of another space, and a notebook."""
    def told(tool, arguments, **headers):
        answer = gateway.call(tool, arguments, headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    space = {"X-Notegate-Space": "other"}
    for number in range(3):
        page = told("notebook_create", {"collection": "pages", "title": f"Page {number}", "content": "one\n", "tags": ["a", "b"]})
        for line in range(number * 4):
            told("notebook_update", {"collection": "pages", "notebook_id": page["notebook_id"], "append": f"line {line} \u20ac\n"})
    gone = told("notebook_create", {"collection": "code_snippets", "title": "Gone", "content": "int x;", "language": "c"})
    told("notebook_delete", {"collection": "code_snippets", "notebook_id": gone["notebook_id"]})
    told("notebook_create", {"collection": "research_notes", "title": "Found", "content": "x", "confidence": 0.5,
                             "key_findings": ["k"]})
    told("notebook", {"mode": "create", "name": "n", "newStr": "start"}, **space)
    told("notebook", {"mode": "write", "name": "n", "newStr": "more"}, **space)
    told("memory_log", {"content": "remembered", "tags": ["t"]})
    told("notebook", {"mode": "write", "name": "n", "newStr": "once"}, **{"Idempotency-Key": "kept", **space})
    # Events on their way to the journal arrive later, wherever the journal is then.
    whole(lambda: told("memory_timeline", {}), SECONDS)


def archived(path):
    """Content of a backup, without its time and source, and without the records that gateways on one database write
    about themselves; the order of lines does not matter."""
    found = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        record.pop("h", None)
        itself = "gateways" in (record.get("name"), record.get("collection")) or record.get("id") in ("relay", "referenced")
        if record["kind"] not in ("notegate backup", "seq", "end") and not itself:
            found.append(json.dumps(record, sort_keys=True))
    return sorted(found)


def test_from_sqlite_and_back(tmp_path, servers):
    """Each document, each version of it, each event and each answer is the same after both ways."""
    plugins = ["--set", "plugins=agent_notebook,notebook"]
    mongo = [word for option in sets_for(servers.mongo().uri, "60s") for word in ("--set", option)]
    first = Gateway(tmp_path / "first", sets=["plugins=agent_notebook,notebook"])
    try:
        fill(first)
    finally:
        first.client.close()
        first.process.terminate()
        first.process.wait()
    copies = [tmp_path / f"copy{number}" for number in range(3)]
    steps = [("backup", copies[0], "first", []), ("restore", copies[0], "team", mongo), ("verify", None, "team", mongo),
             ("backup", copies[1], "team", mongo), ("restore", copies[1], "third", []), ("verify", None, "third", []),
             ("backup", copies[2], "third", [])]
    for word, path, data, more in steps:
        done = notegate(word, *([path] if path else []), "--data-dir", tmp_path / data, *plugins, *more, timeout=300)
        assert done.returncode == 0, (word, data, done.stdout + done.stderr)
    assert archived(copies[0]) == archived(copies[1])
    assert archived(copies[0]) == archived(copies[2])


# ---- TLS ----

def carry(source, target):
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def tls_in_front(port, folder):
    """A port that speaks TLS for the server, which does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    ends = []

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with contextlib.suppress(OSError):
                    inner = socket.create_connection(("127.0.0.1", port))
                    ends.extend((client, inner))
                    client = context.wrap_socket(client, server_side=True)
                    ends.append(client)
                    for pair in ((client, inner), (inner, client)):
                        threading.Thread(target=carry, args=pair, daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for end in ends:
            end.close()


def test_tls(tmp_path, servers):
    """With a known certificate the server is used, otherwise not, and the password is not sent."""
    authority = Authority(tmp_path)
    authority.issue()
    server = servers.mongo()
    with tls_in_front(server.port, tmp_path) as port:
        uri = f"mongodb://127.0.0.1:{port}/?directConnection=true&tls=true"
        with serving(tmp_path / "data", f"{uri}&tlsCAFile={authority.path}", timeout="30s") as gateway:
            create(gateway)
            kept(lambda: append(gateway, "more", "more"))
            assert eventually(lambda: read(gateway), SECONDS, "the notebook")["result"] == "start\nmore"
        uri = uri.replace("mongodb://", "mongodb://someone:s3cr3tword@")
        with serving(tmp_path / "other", uri, timeout="1s") as gateway:
            answer = gateway.call("notebook", {"mode": "read", "name": "n"})
            assert answer.status_code == 503, answer.text
            assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
            assert "s3cr3tword" not in answer.text + gateway.client.get("/readyz").text + "".join(gateway.errors)


def test_a_replica_set_that_is_away(tmp_path):
    """Several hosts of a set, none of them there: the gateway starts and says so."""
    uri = "mongodb://someone:s3cr3tword@127.0.0.1:1,127.0.0.1:2/?replicaSet=rs0&retryWrites=true&authSource=admin"
    with serving(tmp_path / "data", uri, timeout="1s") as gateway:
        answer = gateway.call("notebook", {"mode": "read", "name": "n"})
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
        assert "Retry-After" in answer.headers
        told = answer.text + gateway.client.get("/readyz").text + "".join(gateway.errors)
        assert "127.0.0.1:1,127.0.0.1:2" in told, told
        assert "s3cr3tword" not in told
