# SPDX-License-Identifier: MIT
"""Servers and URIs that are refused at start, and what an older version left in the database."""

import datetime
import subprocess

import bson
import pymongo
import pytest
from cli_support import notegate
from conftest import binary, environment, eventually
from mongo_proxy import Proxy, error
from mongo_world import DATABASE, SECONDS, append, content, create, lined, made, mongo, proxy, read, serving  # noqa: F401

STANDALONE = ("mongo: 127.0.0.1:{port} is a standalone server; notegate needs a replica set (start mongod with --replSet rs0 and "
              "run rs.initiate())")
LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)


def settings(uri, timeout="2s"):
    return [word for option in ("documents=mongo", f"mongo.uri={uri}", f"mongo.timeout={timeout}", "plugins=notebook")
            for word in ("--set", option)]


def refused(folder, uri, **more):
    """What `serve` and `check` say."""
    folder.mkdir(mode=0o700)
    served = subprocess.run([binary(), "serve", "--data-dir", folder, "--listen", "127.0.0.1:0", *settings(uri, **more)],
                            capture_output=True, text=True, timeout=SECONDS, env=environment())
    checked = notegate("check", "--data-dir", folder, *settings(uri, **more))
    assert served.returncode != 0 and checked.returncode == 1, (served, checked)
    return served.stderr, checked.stdout + checked.stderr


# ---- servers and URIs ----

def as_standalone(hello):
    """mongod without --replSet."""
    for member in ("setName", "setVersion", "hosts", "passives", "arbiters", "secondary", "primary", "me", "electionId",
                   "lastWrite"):
        hello.pop(member, None)


def test_standalone(mongo, tmp_path):  # noqa: F811
    """MongoDB's manual: transactions and change streams need a replica set; hello of a standalone server has no setName."""
    with lined(mongo, as_standalone) as line:
        for told in refused(tmp_path / "data", f"mongodb://127.0.0.1:{line.port}/"):
            assert STANDALONE.format(port=line.port) in told, told
        assert {one.name for one in line.since()} <= {"hello", "isMaster", "ismaster", "endSessions"}, "it was asked for more"


def test_standalone_later(mongo, tmp_path):  # noqa: F811
    """A server that answers only later, and turns out to be standalone: the log says so, and nothing is written.

    MongoDB's manual: a client learns the kind of a server from its hello, at each connection."""
    with lined(mongo, as_standalone) as line:
        with line.fault(times=None, cut="before") as away:
            with serving(tmp_path, f"mongodb://127.0.0.1:{line.port}/", timeout="300ms", ready=False) as gateway:
                assert read(gateway, "n").status_code == 503
                before = line.mark()
                line.remove(away)
                sentence = STANDALONE.format(port=line.port)
                eventually(lambda: gateway.logged(sentence), SECONDS, "the sentence")
                assert read(gateway, "n").status_code == 503 and gateway.client.get("/readyz").status_code == 503
                assert len(gateway.logged(sentence)) == 1
                assert not line.since(before, ("insert", "update", "find"))


def test_older_than_5(mongo, tmp_path):  # noqa: F811
    """MongoDB 4.4, whose wire version is 9, as a replica set."""
    with lined(mongo) as line:
        line.greet = lambda hello: (Proxy._as_member(line, hello), hello.update(maxWireVersion=9))
        for told in refused(tmp_path / "data", line.uri):
            assert f"mongo: 127.0.0.1:{line.port} is MongoDB older than 5.0; notegate needs 5.0 or newer" in told, told
        assert {one.name for one in line.since()} <= {"hello", "isMaster", "ismaster", "endSessions"}, "it was asked for more"


@pytest.mark.parametrize("timeout", ["61s", "10min", "99ms"])
def test_time_limit_of_a_transaction(tmp_path, timeout):
    """MongoDB ends a transaction after a minute."""
    for told in refused(tmp_path / "data", "mongodb://127.0.0.1:1/", timeout=timeout):
        assert "mongo.timeout is" in told and "from 100ms to 60s" in told and "transactionLifetimeLimitSeconds" in told, told


@pytest.mark.parametrize("option", ["w=1", "w=0", "journal=false", "readConcernLevel=local", "readConcernLevel=available",
                                    "retryWrites=false", "retryReads=false", "readPreference=secondary",
                                    "readPreference=nearest"])
def test_options_that_lower(tmp_path, option):
    """MongoDB's manual: options of the URI lower the concerns of each operation that has none of its own."""
    for told in refused(tmp_path / "data", f"mongodb://someone:s3cr3tword@127.0.0.1:1/?{option}"):
        assert f"mongo.uri: {option.split('=')[0]} lowers what notegate promises" in told, told
        assert "s3cr3tword" not in told


def test_options_that_do_not(proxy, tmp_path):  # noqa: F811
    """MongoDB's manual: wtimeoutMS limits how long a write waits for the majority; it takes nothing from the concern."""
    more = "&w=majority&journal=true&readConcernLevel=majority&retryWrites=true&retryReads=true&wtimeoutMS=5000" \
        "&readPreference=primary"
    with serving(tmp_path, proxy.uri + more, database=DATABASE + "_options") as gateway:
        before = proxy.mark()
        made(create(gateway, "n"))
        concern = proxy.since(before, "insert", "notebooks")[0].body["writeConcern"]
        assert (concern["w"], concern["j"], concern["wtimeout"]) == ("majority", True, 5000)


# ---- data of an older version ----

def claim(database, key, like, document, revision, batch):
    """A claimed answer: the call was under way."""
    answer = database["notegate_answers"].find_one({"_id": like})
    answer.update(_id=like.replace(b"\nkept", b"\n" + key), state="claimed", batch=batch, claimed=LATER, collection="notebooks",
                  document=document, revision=revision)
    database["notegate_answers"].insert_one(answer)


def lock(database, name, intent):
    return database["notebooks"].update_one({"notegate.id": name}, {"$set": {"notegate.intent": intent}}).modified_count


def intent(database, number, state, changes):
    """A change of several documents as versions before 0.2 wrote it down: the change of each is bytes of an update."""
    database["notegate_intents"].insert_one({"_id": number, "state": state, "gateway": "gone", "started": LATER})
    for at, (name, base, change) in enumerate(changes):
        more = {"change": bson.encode(change)} if change else {}
        database["notegate_intent_puts"].insert_one({"_id": f"{number}/{at}", "intent": number, "collection": "notebooks",
                                                     "document": f"~local/{name}", "base": base, **more})


def emptied(database):
    return database["notebooks"].count_documents({"notegate.waiting": {"$exists": True}}) == 0


def changed(proxy, gateway, database, name):  # noqa: F811
    """Appends to a notebook; the update that did it, and the document before."""
    before, mark = database["notebooks"].find_one({"notegate.id": name}), proxy.mark()
    made(append(gateway, name, "two"))
    update = proxy.since(mark, "update", "notebooks")[0].body["updates"][0]["u"]
    update.setdefault("$unset", {})["notegate.intent"] = ""
    eventually(lambda: emptied(database), SECONDS, "moved events")
    return update, before


def left_behind(proxy, folder, database, name):  # noqa: F811
    """A database as a gateway of an older version left it that was killed: `one` and `two` in a change that was done and
    applied to `one` only; `three` and the new `four` in one that was open; two claimed answers."""
    with serving(folder, proxy.uri, database=name) as gateway:
        for notebook in ("one", "two", "three"):
            made(create(gateway, notebook))
        made(append(gateway, "one", "two", "kept"))
        eventually(lambda: emptied(database), SECONDS, "moved events")
        done, two = changed(proxy, gateway, database, "two")
        undone, three = changed(proxy, gateway, database, "three")
    for before in (two, three):
        database["notebooks"].replace_one({"_id": before["_id"]}, before)
        for kept, key in (("notegate_events", "ref"), ("notegate_versions", "_id")):
            assert database[kept].delete_one({key: f"notebooks/{before['_id']}#{2:020}"}).deleted_count
    database["notegate_meta"].delete_many({})
    one = database["notebooks"].find_one({"notegate.id": "one"})
    intent(database, "intent-done", "done", [("one", 1, done), ("two", 1, done), ("three", 1, None)])
    intent(database, "intent-open", "open", [("three", 1, undone), ("four", 0, undone)])
    assert lock(database, "two", "intent-done") and lock(database, "three", "intent-open")
    database["notebooks"].insert_one({"_id": "~local/four", "space": "~local", "outbox": [], "notegate": {
        "id": "four", "revision": bson.Int64(0), "deleted": True, "outbox_bytes": bson.Int64(0), "intent": "intent-open",
        "place_of": "intent-open"}})
    like = database["notegate_answers"].find_one({})["_id"]
    claim(database, b"landed", like, one["_id"], one["notegate"]["revision"], one["notegate"]["batch"])
    claim(database, b"not", like, "~local/three", 2, "batch-of-nobody")


def finished(gateway, database):
    """Each change is whole or not there at all."""
    assert [content(gateway, name) for name in ("one", "two", "three", "four")] == ["start\ntwo", "start\ntwo", "start", None]
    assert not {"notegate_intents", "notegate_intent_puts"} & set(database.list_collection_names())
    assert not database["notebooks"].count_documents({"notegate.intent": {"$exists": True}})
    assert not database["notegate_answers"].count_documents({"state": "claimed"})
    eventually(lambda: emptied(database), SECONDS, "moved events")
    assert database["notegate_events"].count_documents({"ref": f"notebooks/~local/two#{2:020}"}) == 1
    # The answer of the one is given again, the other call is carried out.
    made(append(gateway, "one", "two", "landed"))
    assert content(gateway, "one") == "start\ntwo"
    made(append(gateway, "three", "two", "not"))
    assert content(gateway, "three") == "start\ntwo"
    made(create(gateway, "four"))


@pytest.mark.long
@pytest.mark.parametrize("broken", [False, True])
def test_an_older_version(mongo, proxy, tmp_path, broken):  # noqa: F811
    """Changes that were done are completed, others undone, also by two gateways at once and over breaking lines.

    MongoDB's manual: a line that breaks says nothing about the command: it is repeated in a form that may be made twice."""
    name = f"{DATABASE}_old_{broken}"
    with pymongo.MongoClient(mongo.uri) as client:
        database = client[name]
        left_behind(proxy, tmp_path, database, name)
        cuts = dict(names=("update", "delete", "drop"), cut="after", times=4) if broken else dict(names="nothing")
        with proxy.fault(**cuts) as fault, serving(tmp_path, proxy.uri, database=name) as one, \
                serving(tmp_path, proxy.uri, database=name):
            assert not broken or fault.hits == 4
            finished(one, database)
        database["notegate_meta"].delete_many({})  # the lease of killed gateways
        checked = notegate("verify", "--data-dir", tmp_path / "verify", *settings(mongo.uri), "--set", f"mongo.database={name}")
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_right_to_drop(mongo, proxy, tmp_path):  # noqa: F811
    """Without the right to drop collections the gateway starts all the same.

    MongoDB's manual: drop needs a right of its own; without it the answer is Unauthorized (13)."""
    with proxy.fault("drop", times=None, answer=error(13, "not authorized on notegate_e2e to execute command { drop: ... }")):
        with serving(tmp_path, proxy.uri, database=DATABASE + "_drop") as gateway:
            made(create(gateway, "n"))
