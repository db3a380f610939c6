# SPDX-License-Identifier: MIT
"""The journal in Redis with Sentinels, in a cluster, with certificates of clients, and with restricted users.

Primaries are killed, frozen and replaced, and slots are moved, while agents write and read."""

import contextlib
import json
import subprocess
import threading

import pytest
from conftest import Gateway, binary, environment, eventually
from cryptography.hazmat.primitives import serialization
from servers import RedisError, free_port
from test_redis_journal import ARRIVE_SECONDS, backlog, certificate, log, logged, ready, run, settings

# A failover takes some seconds; a call that waits for it is not to fail on a slow machine.
PATIENT = ["redis.timeout=1s", "redis.failover_timeout=90s", "limits.call_timeout=120s"]
TAG = "{aether}:"


class Load:
    """Agents that write without pause, and one that reads. Each call must succeed."""

    def __init__(self, gateway, writers=3):
        self.gateway, self.over = gateway, threading.Event()
        self.failures, self.written = [], [[] for _ in range(writers)]
        self.reads = 0
        self.threads = [threading.Thread(target=self._write, args=(number,)) for number in range(writers)]
        self.threads.append(threading.Thread(target=self._read))

    def _write(self, number):
        while not self.over.is_set():
            text = f"{number} {len(self.written[number])}"
            answer = self.gateway.call("memory_log", {"content": text})
            if answer.status_code != 200:
                self.failures.append(answer.text)
                return
            self.written[number].append(text)

    def _read(self):
        while not self.over.is_set():
            answer = self.gateway.call("memory_timeline", {"limit": 50})
            if answer.status_code != 200:
                self.failures.append(answer.text)
                return
            self.reads += 1

    def count(self):
        return sum(len(texts) for texts in self.written)

    def more(self, writes=30, reads=3):
        """Waits until so much has been done from now on."""
        before = self.count(), self.reads
        eventually(lambda: self.failures or (self.count() >= before[0] + writes and self.reads >= before[1] + reads),
                   ARRIVE_SECONDS, "more calls")
        assert not self.failures

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def arrived(self, texts):
        """Each text that was acknowledged is there, once, and those of one writer in their order."""
        assert not self.failures
        eventually(lambda: backlog(self.gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
        eventually(lambda: len(texts()) >= self.count(), ARRIVE_SECONDS, "all events")
        found = texts()
        assert len(found) == len(set(found)) == self.count()
        for number, mine in enumerate(self.written):
            assert [text for text in found if text.startswith(f"{number} ")] == mine


# ---- Sentinel ----

def demote(group, _):
    def accepted():
        with contextlib.suppress(RedisError):  # the last failover is not over yet
            return group.sentinels[0].execute("SENTINEL", "FAILOVER", "mymaster") == "OK"

    eventually(accepted, ARRIVE_SECONDS, "the start of a failover")


FAULTS = {
    "killed": lambda group, primary: primary.kill(),
    "frozen": lambda group, primary: primary.freeze(),
    "demoted": demote,
}
BACK = {"killed": lambda server: server.restart(), "frozen": lambda server: server.thaw(), "demoted": lambda server: None}


def is_replica(server):
    with contextlib.suppress(OSError, RedisError):
        return "role:slave" in server.execute("INFO", "replication")
    return False


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_sentinel_failover_under_load(servers, start, fault):
    group = servers.redis_sentinels()
    gateway = start(settings(group.uri, *PATIENT))
    with Load(gateway) as load:
        for _ in range(2):
            former = group.primary()
            FAULTS[fault](group, former)
            following = group.replaced(former)
            load.more()
            BACK[fault](former)
            eventually(lambda: is_replica(former), ARRIVE_SECONDS, "the former primary as a replica")
            load.more()
    # A primary that is replaced while it lives takes writes for a moment that no replica gets: they are delivered again.
    load.arrived(lambda: logged(following))
    eventually(lambda: ready(gateway) == "ready", ARRIVE_SECONDS, "the word ready")


def test_sentinels_that_are_away(servers, start):
    """The first Sentinel is frozen, the second dead: the third tells. Without any the gateway keeps the server it has."""
    group = servers.redis_sentinels()
    group.sentinels[0].freeze()
    group.sentinels[1].kill()
    gateway = start(settings(group.uri, *PATIENT))
    texts = [log(gateway, "one of three")]
    eventually(lambda: logged(group.servers[0]) == texts, ARRIVE_SECONDS, "the event")
    group.sentinels[2].kill()
    texts += [log(gateway, "none of three")]
    eventually(lambda: logged(group.servers[0]) == texts, ARRIVE_SECONDS, "the event")


def test_sentinel_passwords(servers, start):
    group = servers.redis_sentinels(replicas=0, sentinels=1)
    port, hosts = group.servers[0].port, group.uri.split("://")[1].split("/")[0]
    group.sentinels[0].execute("SENTINEL", "SET", "mymaster", "auth-pass", "da:ta")
    group.servers[0].execute("CONFIG", "SET", "requirepass", "da:ta")
    group.sentinels[0].execute("ACL", "SETUSER", "default", "resetpass", ">sen&tinel")
    uri = f"redis+sentinel://:da%%3Ata@{hosts}/%s/0?sentinel_password=%s"
    gateway = start(settings(uri % ("mymaster", "sen%26tinel"), *PATIENT))
    log(gateway, "signed in twice")
    eventually(lambda: backlog(gateway) == 0 and ready(gateway) == "ready", ARRIVE_SECONDS, "the event")
    told = subprocess.run(["redis-cli", "-p", str(port), "-a", "da:ta", "KEYS", "aether:daily:*"], capture_output=True,
                          text=True, check=True)
    assert told.stdout.startswith("aether:daily:")
    for number, (name, password, words) in enumerate([("other", "sen%26tinel", "knows no master 'other'"),
                                                      ("mymaster", "wrong-one", "Sentinel at 127.0.0.1:")]):
        refused = start(settings(uri % (name, password), *PATIENT), name=f"refused{number}")
        log(refused, "waits")
        eventually(lambda: refused.logged(words), ARRIVE_SECONDS, "a line of the log")
        assert not refused.logged("da:ta") and not refused.logged("wrong-one")


# ---- Cluster ----

def cluster_logged(group):
    """The contents of all days, from the node that has the keys."""
    node = group.owner(TAG + "journal:days")
    days = node.execute("ZRANGE", TAG + "journal:days", 0, -1)
    return [json.loads(line).get("content") for day in days
            for line in node.execute("LRANGE", f"{TAG}daily:{day}", 0, -1)]


@pytest.mark.long
def test_cluster_failover_under_load(servers, start):
    group = servers.redis_cluster(masters=3, replicas=1)
    gateway = start(settings(group.uri, "redis.cluster=true", *PATIENT))
    with Load(gateway) as load:
        for end, back in (("kill", "restart"), ("freeze", "thaw")):
            former = group.owner(TAG)
            getattr(former, end)()
            following = group.replaced(former, TAG)
            load.more(writes=0)
            getattr(former, back)()
            eventually(lambda: "connected_slaves:1" in following.execute("INFO", "replication"), ARRIVE_SECONDS,
                       "the former primary as a replica")
            load.more()
    load.arrived(lambda: cluster_logged(group))


def test_cluster_keys(servers, start):
    """Each tool works, through a seed that has none of the keys, and each key has the tag."""
    group = servers.redis_cluster()
    seed = next(node for node in group.nodes if node is not group.owner(TAG))
    gateway = start(settings(f"redis://127.0.0.1:{seed.port}", "redis.cluster=true", *PATIENT))
    log(gateway, "a lonely heron")
    page = run(gateway, "notebook_create", collection="pages", title="Kept", content="text")
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
    assert [row["content"] for row in run(gateway, "memory_recall", query="heron")["results"]] == ["a lonely heron"]
    made = run(gateway, "checkpoint_snapshot", label="first")
    log(gateway, "after it")
    run(gateway, "checkpoint_restore", checkpoint_id=made["checkpoint_id"])
    contents = cluster_logged(group)
    assert "a lonely heron" in contents and "after it" not in contents
    assert run(gateway, "notebook_read", collection="pages", notebook_id=page["notebook_id"])["content"] == "text"
    run(gateway, "checkpoint_delete", checkpoint_id=made["checkpoint_id"])
    keys = [key for node in group.nodes for key in node.execute("KEYS", "*")]
    assert keys and all(key.startswith(TAG) for key in keys)


def test_slot_moves_under_load(servers, start):
    """While the slot belongs to two nodes, reads see everything at each step; what is written meanwhile arrives when it has
    moved."""
    group = servers.redis_cluster()
    gateway = start(settings(group.uri, "redis.cluster=true", *PATIENT))
    old = [log(gateway, f"old {i}") for i in range(40)]
    eventually(lambda: backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")
    seen = []

    def look():
        found = gateway.call("memory_timeline", {"limit": 1000})
        assert found.status_code == 200, found.text
        contents = [row["content"] for row in found.json()["result"]["events"]]
        assert [text for text in reversed(contents) if text in old] == old
        answer = gateway.call("memory_recall", {"query": "old", "limit": 100})
        assert answer.status_code == 200, answer.text
        assert sorted(row["content"] for row in answer.json()["result"]["results"]) == sorted(old)
        seen.append(len(contents))

    source = group.owner(TAG)
    target = next(node for node in group.nodes if node is not source)
    group.move(TAG, target, look)
    look()
    assert len(seen) > 5
    with Load(gateway, writers=2) as load:
        group.move(TAG, source)
        load.more()
        group.move(TAG, target)
        load.more()
    load.arrived(lambda: [text for text in cluster_logged(group) if text not in old])
    assert cluster_logged(group)[:len(old)] == old


def test_not_the_topology(servers, start, tmp_path):
    """A node of a cluster without the setting is told; settings that exclude each other are refused at the start."""
    group = servers.redis_cluster()
    wrong = next(node for node in group.nodes if node is not group.owner("aether:journal:days"))
    gateway = start(settings(f"redis://127.0.0.1:{wrong.port}"))
    log(gateway, "waits")
    eventually(lambda: gateway.logged("redis.cluster"), ARRIVE_SECONDS, "a line of the log")
    for number, sets in enumerate((["redis.uri=redis://a,b"], ["redis.uri=redis://a/3", "redis.cluster=true"],
                                   ["redis.uri=redis+sentinel://a/m", "redis.cluster=true"],
                                   ["redis.uri=redis://a", "redis.prefix=:", "redis.cluster=true"])):
        with pytest.raises(pytest.fail.Exception, match="redis.cluster"):
            Gateway(tmp_path / f"bad{number}", ["plugins=agent_notebook", "journal=redis", *sets])


def test_no_cluster(servers, start, tmp_path):
    """A single server where a cluster is expected: `check` fails, and the gateway says so at its start."""
    sets = settings(servers.redis().uri, "redis.cluster=true")
    told = "is not a node of a Redis Cluster: set redis.cluster to false"
    arguments = [binary(), "check", "--data-dir", str(tmp_path / "checked")]
    checked = subprocess.run([*arguments, *(word for line in sets for word in ("--set", line))], capture_output=True,
                             text=True, timeout=60, env=environment())
    assert checked.returncode == 1 and told in checked.stdout + checked.stderr, checked
    gateway = start(sets)
    eventually(lambda: gateway.logged("the journal is not available, events wait: Redis at", told), ARRIVE_SECONDS, "a line of the log")
    assert run(gateway, "memory_log", content="waits")["memory_id"]


# ---- TLS ----

def test_client_certificate(servers, start, tmp_path):
    folder, other = tmp_path / "good", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    chain, key = certificate(folder)
    stranger = certificate(other)
    port = free_port()
    redis = servers.redis(debian=True, args=[
        "--tls-port", str(port), "--tls-cert-file", str(chain), "--tls-key-file", str(key),
        "--tls-ca-cert-file", str(chain), "--tls-auth-clients", "yes"])
    uri = f"rediss://localhost:{port}"
    trusted = f"redis.tls_ca={chain}"
    gateway = start(settings(uri, trusted, f"redis.tls_cert={chain}", f"redis.tls_key={key}"))
    texts = [log(gateway, "known by name")]
    eventually(lambda: logged(redis) == texts, ARRIVE_SECONDS, "the event")
    none = start(settings(uri, trusted), name="none")
    log(none, "without a certificate")
    eventually(lambda: none.logged("redis.tls_cert"), ARRIVE_SECONDS, "a line of the log")
    unknown = start(settings(uri, trusted, f"redis.tls_cert={stranger[0]}", f"redis.tls_key={stranger[1]}"),
                    name="unknown")
    log(unknown, "not known")
    eventually(lambda: ready(unknown) == "degraded", ARRIVE_SECONDS, "the word degraded")
    assert logged(redis) == texts
    for number, sets in enumerate(([f"redis.tls_cert={chain}"], [f"redis.tls_cert={chain}", f"redis.tls_key={stranger[1]}"],
                                   [f"redis.tls_cert={tmp_path}/none", f"redis.tls_key={key}"])):
        with pytest.raises(pytest.fail.Exception, match="redis.tls_"):
            Gateway(tmp_path / f"bad{number}", settings(uri, trusted, *sets))
    # Nobody is asked for the passphrase.
    locked = tmp_path / "locked.key"
    locked.write_bytes(serialization.load_pem_private_key(key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")))
    with pytest.raises(pytest.fail.Exception, match="redis.tls_key is .* a key without a passphrase"):
        Gateway(tmp_path / "locked", settings(uri, trusted, f"redis.tls_cert={chain}", f"redis.tls_key={locked}"))


# ---- users ----

RIGHTS = ["~aether:*", "+@read", "+@write", "+@scripting", "+@transaction", "+@connection"]
LACKING = {
    "a command": (["-evalsha"], "ACL SETUSER ann +evalsha", ["+evalsha"]),
    "a command of a script": (["-rpush"], "ACL SETUSER ann +rpush", ["+rpush"]),
    "the keys": (["resetkeys", "~other:*"], "ACL SETUSER ann ~aether:*", ["~aether:*"]),
}


@pytest.mark.parametrize("lack", LACKING)
@pytest.mark.parametrize("debian", [True, False], ids=["debian", "new"])
def test_user_without_a_right(servers, start, lack, debian):
    changes, words, remedy = LACKING[lack]
    redis = servers.redis(debian=debian)
    redis.execute("ACL", "SETUSER", "ann", "on", ">secret-one", *RIGHTS)
    gateway = start(settings(f"redis://ann:secret-one@127.0.0.1:{redis.port}"))
    texts = [log(gateway, "with all rights")]
    eventually(lambda: logged(redis) == texts, ARRIVE_SECONDS, "the event")
    made = run(gateway, "checkpoint_snapshot", label="allowed")
    run(gateway, "checkpoint_restore", checkpoint_id=made["checkpoint_id"])
    redis.execute("ACL", "SETUSER", "ann", *changes)
    texts = logged(redis) + [log(gateway, "with one fewer")]
    eventually(lambda: gateway.logged(words), ARRIVE_SECONDS, f"a line of the log with {words}")
    eventually(lambda: ready(gateway) == "degraded", ARRIVE_SECONDS, "the word degraded")
    assert not gateway.logged("secret-one")
    redis.execute("ACL", "SETUSER", "ann", *remedy)
    eventually(lambda: logged(redis) == texts, ARRIVE_SECONDS, "the event")
