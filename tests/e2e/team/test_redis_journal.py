# SPDX-License-Identifier: MIT
"""The journal in a real Redis, behind a real gateway: away, killed, frozen, refusing.

Every event arrives once, in order."""

import datetime
import ipaddress
import json
import re
import signal
import threading

import pytest
from conftest import Gateway, eventually
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from servers import RedisError, free_port

# The relay tries again after at most half a minute; a machine may be slow.
ARRIVE_SECONDS = 120
KINDS = pytest.mark.parametrize("kind", [{"debian": True}, {"search": True}], ids=["plain", "search"])


def settings(uri, *more):
    return ["plugins=agent_notebook", "documents=sqlite", "journal=redis", f"redis.uri={uri}", *more]


def log(gateway, text):
    answer = gateway.call("memory_log", {"content": text})
    assert answer.status_code == 200, answer.text
    return text


def logged(redis):
    """The contents of all days, oldest first."""
    days = sorted(redis.execute("KEYS", "aether:daily:*"))
    lines = [line for day in days for line in redis.execute("LRANGE", day, 0, -1)]
    return [json.loads(line)["content"] for line in lines]


def ready(gateway):
    answer = gateway.client.get("/readyz")
    assert answer.status_code == 200, answer.text
    return answer.json()["status"]


def backlog(gateway):
    text = gateway.client.get("/metrics").text
    return int(re.search(r"^notegate_outbox_backlog (\d+)$", text, re.M).group(1))


def expect_logged(redis, texts):
    def there():
        try:
            return len(logged(redis)) >= len(texts)
        except (OSError, RedisError):
            return False

    eventually(there, ARRIVE_SECONDS, "the arrival of all events")
    assert logged(redis) == texts
    names = redis.execute("ZRANGE", "aether:journal:recent", 0, -1)
    assert len(names) == len(texts)
    for name in names:
        assert redis.execute("HGET", f"aether:{name}", "content") in texts


def recall(gateway, query, good=lambda found: True):
    """A whole answer that is good; a Redis that was away may be so for a moment more."""
    def recalled():
        answer = gateway.call("memory_recall", {"query": query})
        assert answer.status_code in (200, 503), answer.text
        found = answer.json()["result"] if answer.status_code == 200 else {"backlog": None}
        return found if "backlog" not in found and good(found) else None

    return eventually(recalled, ARRIVE_SECONDS, "a whole answer")


@KINDS
def test_away_for_many_writes(servers, start, kind):
    redis = servers.redis(**kind)
    gateway = start(settings(redis.uri))
    texts = [log(gateway, f"before {i}") for i in range(5)]
    expect_logged(redis, texts)
    # The event is in Redis before the gateway has read that it is.
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
    redis.kill()
    texts += [log(gateway, f"away {i}") for i in range(300)]
    eventually(lambda: ready(gateway) == "degraded", ARRIVE_SECONDS, "the word degraded")
    assert backlog(gateway) == 300
    redis.restart()
    expect_logged(redis, texts)
    eventually(lambda: ready(gateway) == "ready", ARRIVE_SECONDS, "the word ready")
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
    eventually(lambda: gateway.logged("the journal accepts events again"), ARRIVE_SECONDS, "a line of the log")


def lines(redis):
    """All lines of all days, oldest first."""
    days = sorted(redis.execute("KEYS", "aether:daily:*"))
    return [json.loads(line) for day in days for line in redis.execute("LRANGE", day, 0, -1)]


def run(gateway, tool, **arguments):
    answer = gateway.call(tool, arguments, headers={"X-Notegate-Agent": "percy"})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@KINDS
def test_notebook_references(servers, start, kind):
    """Redis is away from the second call on: nothing of it is missing afterwards, and no content came with it."""
    redis = servers.redis(**kind)
    gateway = start(settings(redis.uri))
    content = "# Plan\n\n" + "beginning " * 30 + "\n\nend-of-the-plan\n"
    kept = run(gateway, "notebook_create", collection="pages", title="Kept", content=content, tags=["red"])
    eventually(lambda: len(lines(redis)) == 1, ARRIVE_SECONDS, "the first reference")
    redis.kill()
    gone = run(gateway, "notebook_create", collection="code_snippets", title="Gone",
               content="x" * 300 + "\nend-of-the-plan\n")
    keys = [{"notebook_id": entry["notebook_id"], "collection": name}
            for entry, name in ((kept, "pages"), (gone, "code_snippets"))]
    for version in range(2, 22):
        for key in keys:
            assert run(gateway, "notebook_update", **key, content=content + str(version))["version"] == version
    run(gateway, "notebook_update", **keys[0], status="complete")
    run(gateway, "notebook_delete", **keys[1])
    redis.restart()
    eventually(lambda: len(lines(redis)) >= 44, ARRIVE_SECONDS, "all references")
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")

    events = lines(redis)
    assert len(events) == 44 and len({event["event_id"] for event in events}) == 44
    for key, last in zip(keys, ("updated", "deleted")):
        mine = [event for event in events if event["notebook_id"] == key["notebook_id"]]
        assert [event["version"] for event in mine] == list(range(1, 23))
        assert [event["action"] for event in mine] == ["created"] + ["updated"] * 20 + [last]
        for event in mine:
            assert (event["type"], event["collection"], event["agent"]) == \
                ("notebook_ref", key["collection"], "agent:percy")
            assert len(event["summary"]) <= 200
        reference = redis.execute("HGETALL", f"aether:notebook:ref:{key['notebook_id']}")
        reference = dict(zip(reference[::2], reference[1::2]))
        assert reference["content"].startswith(f"[Notebook {last}] ")
        assert (reference["source"], reference["tags"], reference["score"], reference["version"]) == \
            ("notebook", key["collection"], "0.8", "22")
    assert not any(b"end-of-the-plan" in file.read_bytes() for file in (redis.data / "appendonlydir").glob("*"))


@KINDS
def test_away_at_start(servers, start, kind):
    redis = servers.redis(**kind)
    redis.kill()
    gateway = start(settings(redis.uri))
    eventually(lambda: ready(gateway) == "degraded", ARRIVE_SECONDS, "the word degraded")
    texts = [log(gateway, "a lonely heron")]
    answer = gateway.call("memory_recall", {"query": "heron"})
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0, answer.text
    assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
    redis.restart()
    expect_logged(redis, texts)
    engine = "redisearch" if kind.get("search") else "scan"

    # A new index may still be reading older entries.
    found = recall(gateway, "HERON", lambda found: found["engine"] == engine)
    assert [row["content"] for row in found["results"]] == texts


def test_gateway_killed_before_delivery(servers, tmp_path):
    redis = servers.redis()
    first = Gateway(tmp_path / "data", settings(redis.uri))
    try:
        texts = [log(first, f"before {i}") for i in range(3)]
        expect_logged(redis, texts)
        redis.freeze()
        texts += [log(first, f"frozen {i}") for i in range(50)]
    finally:
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        first.client.close()
    # A request sent before the kill may be done after the restart: it counts once, too.
    redis.thaw()
    second = Gateway(tmp_path / "data", settings(redis.uri))
    try:
        expect_logged(redis, texts)
        eventually(lambda: backlog(second) == 0, ARRIVE_SECONDS, "an empty backlog")
        assert logged(redis) == texts
    finally:
        assert second.stop() == 0


def under_load(redis, gateway, meanwhile):
    """Four clients write; meanwhile() is called again and again until they are done. Each entry arrives once, each client's in order."""
    per_writer, writers = 150, 4
    failures = []

    def write(number):
        for i in range(per_writer):
            answer = gateway.call("memory_log", {"content": f"{number} {i}"})
            if answer.status_code != 200:
                failures.append(answer.text)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]

    def alive():
        return any(thread.is_alive() for thread in threads)

    for thread in threads:
        thread.start()
    while alive():
        meanwhile(alive)
    for thread in threads:
        thread.join()
    assert not failures
    eventually(lambda: len(logged(redis)) >= per_writer * writers, ARRIVE_SECONDS, "all events")
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
    texts = logged(redis)
    assert len(texts) == len(set(texts)) == per_writer * writers
    for number in range(writers):
        mine = [int(text.split()[1]) for text in texts if text.startswith(f"{number} ")]
        assert mine == list(range(per_writer))


@KINDS
def test_redis_killed_under_load(servers, start, kind):
    redis = servers.redis(**kind)

    def kill(alive):
        before = len(logged(redis))
        eventually(lambda: len(logged(redis)) > before or not alive(), ARRIVE_SECONDS, "a new event")
        redis.kill()
        redis.restart()

    under_load(redis, start(settings(redis.uri)), kill)


def test_frozen(servers, start):
    redis = servers.redis(search=True)
    gateway = start(settings(redis.uri, "redis.timeout=500ms"))
    texts = [log(gateway, "before")]
    expect_logged(redis, texts)
    redis.freeze()
    texts += [log(gateway, "while it is frozen")]
    for tool, arguments in (("memory_recall", {"query": "before"}), ("memory_timeline", {}), ("memory_summary", {})):
        answer = gateway.call(tool, arguments)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "BACKEND_UNAVAILABLE"
    eventually(lambda: ready(gateway) == "degraded", ARRIVE_SECONDS, "the word degraded")
    redis.thaw()
    expect_logged(redis, texts)


FAULTS = {
    "no memory": ([("CONFIG", "SET", "maxmemory", "1")], [("CONFIG", "SET", "maxmemory", "0")], "maxmemory"),
    "a replica": ([("REPLICAOF", "127.0.0.1", "1")], [("REPLICAOF", "NO", "ONE")], "primary"),
    "no right": ([("ACL", "SETUSER", "default", "-evalsha")], [("ACL", "SETUSER", "default", "+evalsha")], "right"),
    "another type": ([("SET", "aether:journal:seen", "x")], [("DEL", "aether:journal:seen")], "another program"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refusing_server(servers, start, fault):
    do, undo, word = FAULTS[fault]
    redis = servers.redis()
    gateway = start(settings(redis.uri))
    eventually(lambda: ready(gateway) == "ready", ARRIVE_SECONDS, "the word ready")
    for command in do:
        redis.execute(*command)
    texts = [log(gateway, f"text {i}") for i in range(20)]
    eventually(lambda: gateway.logged("events wait", word), ARRIVE_SECONDS, "a line of the log")
    eventually(lambda: ready(gateway) == "degraded", ARRIVE_SECONDS, "the word degraded")
    for command in undo:
        redis.execute(*command)
    expect_logged(redis, texts)


def test_connections_cut(servers, start):
    """Each delivery's connection may die in its middle."""
    redis = servers.redis()
    gateway = start(settings(redis.uri))
    texts = []
    for i in range(200):
        texts.append(log(gateway, f"text {i}"))
        if i % 5 == 0:
            redis.execute("CLIENT", "KILL", "TYPE", "normal")
    expect_logged(redis, texts)


def test_user_password_and_database(servers, start):
    redis = servers.redis(args=["--databases", "32"])
    redis.execute("ACL", "SETUSER", "ann", "on", ">p@ss:w/rd", "~aether:*", "+@all", "-@dangerous")
    gateway = start(settings(f"redis://ann:p%40ss%3Aw%2Frd@localhost:{redis.port}/17"))
    log(gateway, "in a database of its own")
    eventually(lambda: "db17:" in redis.execute("INFO", "keyspace"), ARRIVE_SECONDS, "a key in database 17")
    found = recall(gateway, "database")
    assert len(found["results"]) == 1
    wrong = start(settings(f"redis://ann:wrong@localhost:{redis.port}/17"), name="wrong")
    eventually(lambda: wrong.logged("check user and password"), ARRIVE_SECONDS, "a line of the log")
    assert not wrong.logged("ann:wrong")
    eventually(lambda: ready(wrong) == "degraded", ARRIVE_SECONDS, "the word degraded")


def test_unix_socket(servers, start, tmp_path):
    path = tmp_path / "r.sock"
    redis = servers.redis(args=["--unixsocket", str(path)])
    gateway = start(settings(f"unix://{path}"))
    expect_logged(redis, [log(gateway, "through a socket")])


def certificate(folder):
    """A certificate of its own making for localhost and 127.0.0.1: the paths of it and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "redis")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .add_extension(x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .sign(key, hashes.SHA256()))
    paths = folder / "redis.crt", folder / "redis.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()))
    return paths


def test_tls(servers, start, tmp_path):
    chain, key = certificate(tmp_path)
    port = free_port()
    redis = servers.redis(debian=True, args=[
        "--tls-port", str(port), "--tls-cert-file", str(chain), "--tls-key-file", str(key),
        "--tls-ca-cert-file", str(chain), "--tls-auth-clients", "no"])
    texts = []
    for number, host in enumerate(("localhost", "127.0.0.1")):
        gateway = start(settings(f"rediss://{host}:{port}", f"redis.tls_ca={chain}"), name=f"data{number}")
        texts += [log(gateway, f"{host} {i} " + "x" * 40000) for i in range(3)]
        expect_logged(redis, texts)
    # An unknown authority, and a name that is not in the certificate.
    unknown = start(settings(f"rediss://localhost:{port}"), name="unknown")
    eventually(lambda: unknown.logged("certificate"), ARRIVE_SECONDS, "a line of the log")
    other = start(settings(f"rediss://127.0.0.2:{port}", f"redis.tls_ca={chain}", "redis.timeout=1s"), name="other")
    eventually(lambda: ready(other) == "degraded", ARRIVE_SECONDS, "the word degraded")
    assert logged(redis) == texts


def test_bad_configuration(tmp_path):
    for setting in ("redis.uri=http://localhost", "redis.uri=redis://:secret%zz@h"):
        with pytest.raises(pytest.fail.Exception, match="redis.uri cannot be used") as failure:
            Gateway(tmp_path / "data", ["plugins=agent_notebook", "journal=redis", setting])
        assert "secret" not in str(failure.value)
