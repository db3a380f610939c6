# SPDX-License-Identifier: MIT
"""A Redis that lost data: emptied, back from an old copy, without its index. What is missing is delivered again, in
order, each event once; the backlog is shown meanwhile. Recall finds the same with every journal."""

import shutil

import pytest
from conftest import Gateway, eventually
from test_redis_journal import ARRIVE_SECONDS, KINDS, backlog, expect_logged, lines, log, logged, ready, recall, settings, under_load

INDEX = "aether:memory:idx"


@pytest.fixture
def launch(tmp_path):
    """launch(sets) gives a Gateway in the one data directory; a former one is killed before."""
    started = []

    def launched(sets):
        for gateway in started:
            if gateway.process.poll() is None:
                gateway.process.kill()
                gateway.process.wait()
                gateway.client.close()
        started.append(Gateway(tmp_path / "data", sets))
        return started[-1]

    yield launched
    assert started[-1].stop() == 0


def references(redis):
    return {name: redis.execute("HGET", name, "version") for name in redis.execute("KEYS", "aether:notebook:ref:*")}


def settled(gateway):
    eventually(lambda: ready(gateway) == "ready" and backlog(gateway) == 0, ARRIVE_SECONDS, "an empty backlog")


def memories(redis):
    return [line["content"] for line in lines(redis) if line["type"] == "memory"]


def make_pages(gateway, count):
    for number in range(count):
        answer = gateway.call("notebook_create", {"collection": "pages", "title": f"Page {number}", "content": "text\n"})
        assert answer.status_code == 200, answer.text


@pytest.mark.long
@KINDS
def test_flushed_while_idle(servers, start, kind):
    """Nothing is written afterwards: the gateway notices by itself."""
    redis = servers.redis(**kind)
    gateway = start(settings(redis.uri))
    texts = [log(gateway, f"before {i}") for i in range(600)]
    expect_logged(redis, texts)
    make_pages(gateway, 3)
    eventually(lambda: len(references(redis)) == 3, ARRIVE_SECONDS, "the references")
    settled(gateway)
    before = references(redis)
    redis.execute("FLUSHALL")
    eventually(lambda: len(references(redis)) == 3, ARRIVE_SECONDS, "the references once more")
    settled(gateway)
    assert memories(redis) == texts
    assert references(redis) == before
    assert gateway.logged("lost its data behind event 0")
    found = recall(gateway, "before 599", lambda found: found["results"])
    assert found["results"][0]["content"] == "before 599"


@KINDS
def test_flushed_under_load(servers, start, kind):
    redis = servers.redis(**kind)

    def flush(alive):
        eventually(lambda: len(logged(redis)) > 20 or not alive(), ARRIVE_SECONDS, "some events")
        redis.execute("FLUSHALL")

    gateway = start(settings(redis.uri))
    under_load(redis, gateway, flush)
    settled(gateway)


def empty(redis):
    for entry in redis.data.iterdir():
        if entry.is_dir() and entry.name.startswith("appendonly"):
            shutil.rmtree(entry)


@pytest.mark.long
def test_restarted_empty(servers, launch):
    """The whole backlog is shown from the first answer on, by the gateway that runs and by one that starts meanwhile."""
    redis = servers.redis()
    gateway = launch(settings(redis.uri))
    texts = [log(gateway, f"text {i}") for i in range(700)]
    expect_logged(redis, texts)
    settled(gateway)
    redis.kill()
    empty(redis)
    redis.restart()
    expect_logged(redis, texts)
    settled(gateway)
    redis.kill()
    empty(redis)
    texts += [log(gateway, f"away {i}") for i in range(5)]
    assert backlog(gateway) == 5
    again = launch(settings(redis.uri))
    eventually(lambda: backlog(again) == 5, ARRIVE_SECONDS, "the backlog")
    redis.restart()
    expect_logged(redis, texts)
    settled(again)


@pytest.mark.long
def test_failed_over_with_loss(servers, start):
    """The replica that took over lacked the newest entries: only those are delivered again."""
    redis = servers.redis()
    gateway = start(settings(redis.uri))
    texts = [log(gateway, f"kept {i}") for i in range(40)]
    expect_logged(redis, texts)
    settled(gateway)
    redis.kill()
    copy = redis.data.with_name(redis.data.name + "-copy")
    shutil.copytree(redis.data / "appendonlydir", copy)
    redis.restart()
    try:
        texts += [log(gateway, f"lost {i}") for i in range(30)]
        expect_logged(redis, texts)
        settled(gateway)
        redis.kill()
        shutil.rmtree(redis.data / "appendonlydir")
        shutil.copytree(copy, redis.data / "appendonlydir")
        redis.restart()
        expect_logged(redis, texts)
        settled(gateway)
        assert gateway.logged("lost its data behind event") and not gateway.logged("lost its data behind event 0,")
    finally:
        shutil.rmtree(copy)


def test_index_dropped(servers, start):
    redis = servers.redis(search=True)
    gateway = start(settings(redis.uri))
    texts = [log(gateway, f"a heron {i}") for i in range(20)]
    expect_logged(redis, texts)

    def found_by(engine):
        found = recall(gateway, "herons", lambda found: found["engine"] == engine)
        assert len(found["results"]) == 10
        return found

    found_by("redisearch")
    redis.execute("FT.DROPINDEX", INDEX)
    found_by("redisearch")
    # As a program of the seed makes it: without the words, and with other fields.
    redis.execute("FT.DROPINDEX", INDEX)
    redis.execute("FT.CREATE", INDEX, "ON", "HASH", "PREFIX", "1", "aether:memory:", "SCHEMA", "content", "TEXT",
                  "source", "TAG", "tags", "TAG", "score", "NUMERIC")
    found_by("redisearch")
    assert "words" in str(redis.execute("FT.INFO", INDEX))


@KINDS
def test_hashes_of_an_earlier_version(servers, launch, kind):
    """They have no words: recall scans until all have them."""
    redis = servers.redis(**kind)
    gateway = launch(settings(redis.uri))
    texts = [log(gateway, f"naïve plan {i}") for i in range(300)]
    expect_logged(redis, texts)
    settled(gateway)
    names = redis.execute("KEYS", "aether:memory:*")
    names = [name for name in names if name != INDEX]
    for name in names:
        assert redis.execute("HDEL", name, "words") == 1
    redis.execute("DEL", "aether:journal:words")
    again = launch(settings(redis.uri))
    engine = "redisearch" if kind.get("search") else "scan"
    found = recall(again, "NAIVE", lambda found: found["engine"] == engine)
    assert len(found["results"]) == 10
    eventually(lambda: redis.execute("GET", "aether:journal:words") == "1", ARRIVE_SECONDS, "the version of the words")
    assert all(redis.execute("HEXISTS", name, "words") == 1 for name in names)


# Logged texts, and queries with the number of texts that each finds.
TEXTS = ["Привет МИР", "ΑΘΗΝΑ", "ÜBER alles", "the “drone” landed", "state—machine reset", "drone’s battery",
         "naïve plan", "100€ cost", "get_user_name", "the dogs were running", "会議メモです。ドローンの計画。",
         "two words apart", "apart two words", "1⁄2 and ½", "x" * 300]
QUERIES = ["мир", "αθηνα", "über", "uber", "drone", "machine", "drone's", "naive", "100", "dron*", "user", "get_user",
           "get_user_name", "run", "会議", "ドローン", "計", "the", "what about the dogs", "\"two words\"", "\"words two\"",
           "\"two wor\"*", "1/2", "y*", "x*", "(|", "x" * 300, "x" * 200, "landing plan", "d*"]


def test_recall_finds_the_same(servers, start):
    gateways = {"sqlite": start(["plugins=agent_notebook"], name="sqlite"),
                "plain": start(settings(servers.redis(debian=True).uri), name="plain"),
                "search": start(settings(servers.redis(search=True).uri), name="search")}
    engines = {"plain": "scan", "search": "redisearch"}
    found = {}
    for name, gateway in gateways.items():
        for text in TEXTS:
            log(gateway, text)
        engine = engines.get(name)
        # RediSearch cannot find prefixes of one byte.
        short = {"y*", "x*", "d*"} if name == "search" else set()
        recall(gateway, "plan", lambda found, engine=engine: engine in (None, found["engine"]) and found["results"])
        for query in QUERIES:
            answer = gateway.call("memory_recall", {"query": query, "limit": 50})
            assert answer.status_code == 200, f"{name}, {query}: {answer.text}"
            answer = answer.json()["result"]
            assert answer["engine"] == ("scan" if query in short else engine or answer["engine"]), f"{name}, {query}"
            found.setdefault(query, {})[name] = sorted(row["content"] for row in answer["results"])
    for query, by in found.items():
        assert by["plain"] == by["sqlite"], query
        assert by["search"] == by["sqlite"], query
    for query in ("мир", "über", "drone", "naive", "100", "dron*", "run", "会議", "ドローン"):
        assert found[query]["search"], query


@KINDS
def test_score_and_newest_first(servers, start, kind):
    redis = servers.redis(**kind)
    gateway = start(settings(redis.uri))
    for i in range(400):
        answer = gateway.call("memory_log", {"content": "an equal text", "score": 0.5, "source": f"n{i}"})
        assert answer.status_code == 200, answer.text
    for score in (0.9, 0.7, 0.8):
        gateway.call("memory_log", {"content": "an equal text", "score": score, "source": str(score)})
    for i in range(150):
        gateway.call("memory_log", {"content": "an equal text", "score": 0.4, "source": "later"})
    settled(gateway)
    found = recall(gateway, "equal text", lambda found: len(found["results"]) == 10)
    sources = [row["source"] for row in found["results"]]
    assert sources[:3] == ["0.9", "0.8", "0.7"]
    if found["engine"] == "scan":
        assert {int(source[1:]) for source in sources[3:]} <= set(range(380, 400))
    # Equal ones: the newest, of however many there are.
    for i in range(150):
        gateway.call("memory_log", {"content": "a lonely heron", "source": f"n{i}"})
    settled(gateway)
    found = recall(gateway, "heron", lambda found: len(found["results"]) == 10)
    assert {int(row["source"][1:]) for row in found["results"]} <= set(range(130, 150))


def test_uri_is_required(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="redis.uri is not set"):
        Gateway(tmp_path / "data", ["plugins=agent_notebook", "journal=redis"])


def test_mark_is_kept(servers, launch):
    """A gateway that starts again finds its mark: nothing is delivered twice, nothing told as lost."""
    redis = servers.redis()
    gateway = launch(settings(redis.uri))
    texts = [log(gateway, f"text {i}") for i in range(20)]
    expect_logged(redis, texts)
    settled(gateway)
    marks = redis.execute("HKEYS", "aether:journal:marks")
    again = launch(settings(redis.uri))
    texts.append(log(again, "afterwards"))
    expect_logged(redis, texts)
    assert redis.execute("HKEYS", "aether:journal:marks") == marks and len(marks) == 1
    assert not again.logged("lost its data")


def test_two_databases_on_one_redis(servers, start):
    """Each has a mark of its own."""
    redis = servers.redis()
    gateways = [start(settings(redis.uri), name=f"data{number}") for number in range(2)]
    texts = [log(gateways[number % 2], f"text {number}") for number in range(20)]
    eventually(lambda: sorted(logged(redis)) == sorted(texts), ARRIVE_SECONDS, "all events")
    for gateway in gateways:
        settled(gateway)
    redis.execute("FLUSHALL")
    eventually(lambda: sorted(logged(redis)) == sorted(texts), ARRIVE_SECONDS, "all events once more")
    for gateway in gateways:
        settled(gateway)
        assert len(gateway.logged("lost its data")) == 1
    assert len(redis.execute("HKEYS", "aether:journal:marks")) == 2


def test_refused_mark(servers, start):
    """A key of another program in the place of the mark: events wait, and arrive when it is gone."""
    redis = servers.redis()
    redis.execute("SADD", "aether:journal:marks", "x")
    gateway = start(settings(redis.uri))
    texts = [log(gateway, "one")]
    eventually(lambda: gateway.logged("events wait", "another program"), ARRIVE_SECONDS, "a line of the log")
    redis.execute("DEL", "aether:journal:marks")
    expect_logged(redis, texts)
