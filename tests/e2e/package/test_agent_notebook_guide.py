# SPDX-License-Identifier: MIT
"""The guide of the agents' notebook and packaging/compose.yaml: what can run, runs as it stands there."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import httpx
import pytest
import yaml
from conftest import SOURCE, Gateway, binary, environment, eventually, whole
from test_guides import GUIDES, TIMEOUT, block
from tree import entry_names

GUIDE = GUIDES / "agent-notebook.md"
COMPOSE = SOURCE / "packaging" / "compose.yaml"
BACKENDS = pathlib.Path(binary()).parents[1] / "modules" / "backends"
WAIT = 120
# The tests' servers are slow ones, on busy machines.
PATIENCE = "30s"


def shell(text, folder, **more):
    path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=folder,
                          timeout=TIMEOUT, env={**environment(), "PATH": path, "HOME": str(folder), **more})
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def ask(gateway, tool, arguments=None):
    def asked():
        answer = gateway.call(tool, arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    return whole(asked, WAIT) if tool in ("memory_recall", "memory_timeline") else asked()


def mongo_of(servers):
    """A MongoDB server, where the gateway can speak to one."""
    if not (BACKENDS / "mongo.so").exists():
        pytest.skip("the mongo backend is not built")
    return servers.mongo()


def results(text):
    """The answers that the guide's curl prints, one behind the other."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value["result"])
    return found


def test_on_one_machine(start, tmp_path):
    gateway = start()
    begin, checkpoint = (block(GUIDE, "sh", word) for word in ("notebook_create", "checkpoint_snapshot"))
    text = (begin + checkpoint).replace("127.0.0.1:8420", f"127.0.0.1:{gateway.port}")
    answers = results(shell(text, tmp_path))
    updated, listed, searched, logged, recalled, summary, diff, restored = answers
    assert updated["version"] == 2 and listed["notebook_id"] == updated["notebook_id"]
    assert [row["title"] for row in searched["results"]] == ["Launch plan"]
    assert "content" not in searched["results"][0]
    if "backlog" in recalled:  # a slow machine
        recalled = ask(gateway, "memory_recall", {"query": "printer"})
    assert logged["memory_id"] in [row.get("memory_id") for row in recalled["results"]]
    assert summary["status"] == "set"
    assert diff["notebooks"]["moved"] == [] and restored["status"] == "restored"


def test_redis_keys(start, servers):
    redis = servers.redis()
    gateway = start(["journal=redis", f"redis.uri={redis.uri}", f"redis.timeout={PATIENCE}"])
    entry = ask(gateway, "notebook_create", {"collection": "pages", "title": "T",
                                            "content": "what is short " * 30 + "the end of the content"})
    ask(gateway, "memory_log", {"content": "a memory"})
    ask(gateway, "memory_summary", {"text": "a summary"})
    ask(gateway, "checkpoint_snapshot")
    day = ask(gateway, "memory_timeline")["events"][0]["timestamp"][:10]
    answers = {}
    for line in block(GUIDE, "redis", "LRANGE").splitlines():
        words = shlex.split(line.replace("2026-02-16", day).replace("abc123abc123", entry["notebook_id"]))
        answers[words[0]] = redis.execute(*words)
    assert [json.loads(line)["type"] for line in answers["LRANGE"]] == ["notebook_ref", "memory"]
    assert "title" in answers["HGETALL"] and answers["GET"] == "a summary" and len(answers["ZREVRANGE"]) == 1
    # The keys that the guide names are there, and the content is nowhere.
    keys = redis.execute("KEYS", "*")
    named = [name for name in entry_names(GUIDE.read_text()) if name.startswith("aether:")]
    assert named
    for pattern in named:
        begins = pattern.split("<")[0].split("YYYY")[0]
        assert pattern.endswith(":idx") or any(key.startswith(begins) for key in keys), pattern
    for key in keys:
        kind = redis.execute("TYPE", key)
        read = {"string": ("GET", key), "list": ("LRANGE", key, "0", "-1"), "hash": ("HGETALL", key),
                "zset": ("ZRANGE", key, "0", "-1")}[kind]
        assert "the end of the content" not in json.dumps(redis.execute(*read)), key


def team_config(folder, mongo, redis):
    text = block(GUIDE, "yaml", "documents: mongo")
    for there, here in (("mongodb://127.0.0.1:27017/", mongo.uri), ("redis://127.0.0.1:6379/0", redis.uri)):
        assert there in text
        text = text.replace(there, here)
    (folder / "team.yaml").write_text(f"{text}mongo.timeout: {PATIENCE}\nredis.timeout: {PATIENCE}\n")
    return folder / "team.yaml"


def test_mongo_and_redis(servers, tmp_path):
    mongo, redis = mongo_of(servers), servers.redis()
    config = team_config(tmp_path, mongo, redis)
    checked = subprocess.run([binary(), "check", "--config", str(config), "--data-dir", str(tmp_path / "data")],
                             capture_output=True, text=True, env=environment(), timeout=TIMEOUT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    lines = checked.stdout.splitlines()
    assert "ok     documents: answers" in lines and "ok     journal: answers" in lines
    redis.stop()
    checked = subprocess.run([binary(), "check", "--config", str(config), "--data-dir", str(tmp_path / "data")],
                             capture_output=True, text=True, env=environment(), timeout=TIMEOUT)
    assert checked.returncode == 1 and "failed journal: " in checked.stdout, checked.stdout + checked.stderr
    redis.start()
    gateway = Gateway(tmp_path / "data", args=["--config", str(config)])
    try:
        made = ask(gateway, "notebook_create", {"collection": "pages", "title": "T", "content": "text", "tags": ["launch"]})
        eventually(lambda: ask(gateway, "memory_timeline")["count"] == 1, WAIT, "the reference")
        import pymongo
        client = pymongo.MongoClient(mongo.uri)
        try:
            db = client["aether_notebook"]
            found = db.pages.find_one({"metadata.tags": "launch"})
            assert found["_id"] == made["notebook_id"] and found["history"][0]["version"] == 1
            names = set(db.list_collection_names())
            told = set(re.findall(r"`(notegate_[a-z_]+|pages|agent_memory)`", GUIDE.read_text()))
            assert {"pages", "notegate_versions", "notegate_events"} <= names & told
        finally:
            client.close()
    finally:
        assert gateway.stop() == 0


@pytest.mark.parametrize("target", ["sqlite", "mongo"])
def test_moving(servers, tmp_path, target):
    if target == "mongo":
        text = f"documents: mongo\nmongo.uri: {mongo_of(servers).uri}\nmongo.timeout: {PATIENCE}\n"
    else:
        text = "documents: sqlite\n"
    (tmp_path / "team.yaml").write_text(text)
    first = Gateway(tmp_path / "first")
    made = ask(first, "notebook_create", {"collection": "pages", "title": "T", "content": "one"})
    page = {"collection": "pages", "notebook_id": made["notebook_id"]}
    ask(first, "notebook_update", page | {"content": "two"})
    ask(first, "memory_log", {"content": "a memory"})
    point = ask(first, "checkpoint_snapshot")["checkpoint_id"]
    # The backup is made while it runs.
    commands = block(GUIDE, "sh", "notegate backup").splitlines()
    assert [line.split()[1] for line in commands] == ["backup", "restore", "verify"]
    shell(commands[0], tmp_path, NOTEGATE_DATA_DIR=str(tmp_path / "first"))
    assert first.stop() == 0
    shell("\n".join(commands[1:]), tmp_path)
    team = Gateway(tmp_path / "team", args=["--config", str(tmp_path / "team.yaml")])
    try:
        assert ask(team, "notebook_read", page)["content"] == "two"
        assert ask(team, "notebook_read", page | {"version": 1})["content"] == "one"
        assert ask(team, "memory_recall", {"query": "memory"})["count"] == 1
        ask(team, "notebook_update", page | {"content": "three"})
        ask(team, "checkpoint_restore", {"checkpoint_id": point, "notebooks": True})
        assert ask(team, "notebook_read", page)["content"] == "two"
    finally:
        assert team.stop() == 0


def told(gateway):
    """The day without what a reader adds, oldest first."""
    day = ask(gateway, "memory_timeline", {"limit": 1000})
    rows = [(row["type"], row.get("action"), row["event_id"], row.get("content"), row.get("title"), row.get("version"))
            for row in day["events"]]
    return rows[::-1]


def test_the_journal_follows_its_setting(servers, tmp_path):
    """Days, references and memories come to the journal that is set, each once, there and back."""
    redis = servers.redis()
    sets = ["journal=redis", f"redis.uri={redis.uri}", f"redis.timeout={PATIENCE}"]
    before = []
    for number, journal in enumerate(([], sets, [], sets)):
        gateway = Gateway(tmp_path / "data", journal)
        try:
            eventually(lambda: told(gateway) == before, WAIT, "the day of the journal before")
            page = ask(gateway, "notebook_create", {"collection": "pages", "title": f"T{number}", "content": "one"})
            ask(gateway, "notebook_update", {"collection": "pages", "notebook_id": page["notebook_id"], "append": "two"})
            ask(gateway, "memory_log", {"content": f"a memory {number}"})
            assert ask(gateway, "memory_recall", {"query": "memory"})["count"] == number + 1
            assert ask(gateway, "memory_recall", {"query": "T0"})["count"] == 1
            before = eventually(lambda: told(gateway), WAIT, "the day")
            assert len(before) == 3 * (number + 1)
        finally:
            assert gateway.stop() == 0


# ---- the compose file ----

def compose():
    return yaml.safe_load(COMPOSE.read_text())


def test_compose_is_whole():
    made = compose()
    services, gateways = made["services"], [f"gateway-{number}" for number in (1, 2, 3)]
    members = [f"mongo-{number}" for number in (1, 2, 3)]
    assert set(services) == {"redis", "front", *members, *gateways}
    for name in gateways:
        service = services[name]
        own = service["environment"]
        assert own["NOTEGATE_CLUSTER_ADVERTISE"] == f"http://{name}:8420"
        shared = services["gateway-1"]["environment"] | {"NOTEGATE_CLUSTER_ADVERTISE": own["NOTEGATE_CLUSTER_ADVERTISE"]}
        assert own == shared
        assert set(service["depends_on"]) == {"mongo-1", "redis"}
        assert service["volumes"] == [f"{name}:/data"], "a data directory belongs to one gateway"
        assert "ports" not in service
    assert set(made["volumes"]) == {"redis", *members, *gateways}
    for name in (*members, "redis"):
        assert "ports" not in services[name] and services[name]["healthcheck"]
    for name in members:
        assert services[name]["command"][1:3] == ["--replSet", "rs0"] and services[name]["volumes"] == [f"{name}:/data/db"]
        assert f"{name}:27017" in services["gateway-1"]["environment"]["MONGODB_URL"]
    words = services["redis"]["command"]
    kept = dict(zip(words[1::2], words[2::2]))
    assert kept == {"--appendonly": "yes", "--appendfsync": "always", "--maxmemory-policy": "noeviction"}
    front = made["configs"]["front"]["content"]
    assert all(f"server {name} {name}:8420" in front for name in gateways)
    # A lone $ would be the compose file's own.
    assert "$" not in front and "GET uri /readyz" in front
    assert services["front"]["ports"] == ["127.0.0.1:8420:8420"]
    for command in re.findall(r"^docker compose (.*)$", GUIDE.read_text(), re.M):
        named = [word for word in shlex.split(command) if word in services]
        assert "-f packaging/compose.yaml" in command and (named or command.endswith("up -d"))
    assert "NOTEGATE_KEY" in block(GUIDE, "text", "docker compose")
    assert "compose.yaml" in (SOURCE / "packaging" / "README.md").read_text()


def test_compose_gateways(servers, tmp_path):
    """Three gateways with the environment of the file, on servers of the test."""
    mongo, redis = mongo_of(servers), servers.redis()
    given = dict(compose()["services"]["gateway-1"]["environment"])
    assert given.pop("NOTEGATE_LISTEN").startswith("0.0.0.0:") and given.pop("NOTEGATE_DATA_DIR") == "/data"
    assert given.pop("MONGODB_URL").startswith("mongodb://mongo-1:") and given.pop("REDIS_URL").startswith("redis://redis:")
    given |= {"MONGODB_URL": mongo.uri, "REDIS_URL": redis.uri}
    sets = [f"allowed_hosts={given['NOTEGATE_ALLOWED_HOSTS']}"]
    made = subprocess.run([binary(), "key", "add", "ada", "--role", "admin", "--json"], capture_output=True, text=True,
                          env={**environment(), **given, "NOTEGATE_DATA_DIR": str(tmp_path / "data-0")}, timeout=TIMEOUT)
    assert made.returncode == 0, made.stderr
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}", "Host": "localhost:8420"}
    names = {"NOTEGATE_AUTH": "auth", "NOTEGATE_DOCUMENTS": "documents", "NOTEGATE_JOURNAL": "journal"}
    sets += [f"{names[name]}={value}" for name, value in given.items() if name in names]
    sets += [f"mongo.uri={mongo.uri}", f"mongo.timeout={PATIENCE}", f"redis.uri={redis.uri}", f"redis.timeout={PATIENCE}"]
    gateways = []
    try:
        for number in range(3):
            gateways.append(Gateway(tmp_path / f"data-{number}", sets))
        page = None
        for number, gateway in enumerate(gateways):
            with httpx.Client(base_url=gateway.url, timeout=WAIT, trust_env=False, headers=headers) as client:
                if page is None:
                    answer = client.post("/v1/tools/notebook_create",
                                         json={"collection": "pages", "title": "T", "content": "begin\n"})
                    page = {"collection": "pages", "notebook_id": answer.json()["result"]["notebook_id"]}
                answer = client.post("/v1/tools/notebook_update", json=page | {"append": f"gateway {number}\n"})
                assert answer.status_code == 200, answer.text
                content = client.post("/v1/tools/notebook_read", json=page).json()["result"]["content"]
                assert content == "begin\n" + "".join(f"gateway {n}\n" for n in range(number + 1))
    finally:
        codes = [gateway.stop() for gateway in gateways]
    assert codes == [0, 0, 0]
