# SPDX-License-Identifier: MIT
"""What `notegate check` advises: rights that a user lacks, a text index of another program, the commands of a sharded cluster.
And that the commands of a gateway name the shard key."""

import bson
import pymongo
import pytest
from cli_support import notegate
from conftest import eventually
from mongo_proxy import error
from mongo_world import (DATABASE, SECONDS, append, create, lined, made, mongo, page, proxy, serving, text)  # noqa: F401

USER = {"user": "notegate", "db": "admin"}
# Of the built-in roles (MongoDB manual, "Built-In Roles").
READ = ["changeStream", "collStats", "dbHash", "dbStats", "find", "killCursors", "listCollections", "listIndexes",
        "listSearchIndexes"]
READ_WRITE = [*READ, "convertToCapped", "createCollection", "createIndex", "dropCollection", "dropIndex", "insert", "remove",
              "renameCollectionSameDB", "update"]
SHARDED = {"{space: 1, _id: 1}": {"pages", "code_snippets", "research_notes", "notebooks"},
           "{_id: 1}": {"notegate_versions", "notegate_answers", "notegate_tombstones"}}


def advised(folder, uri, database):
    """The advice of `check`."""
    sets = ["documents=mongo", f"mongo.uri={uri}", f"mongo.database={database}", "plugins=agent_notebook,notebook"]
    told = notegate("check", "--data-dir", folder / "check", *(word for one in sets for word in ("--set", one)))
    assert told.returncode == 0, told.stdout + told.stderr
    return [line.split("advice: ", 1)[1] for line in told.stdout.splitlines() if "advice: " in line]


# ---- rights ----

def user_with(actions, database):
    """The edit of an answer to connectionStatus."""
    privileges = [{"resource": {"db": database, "collection": ""}, "actions": actions},
                  {"resource": {"db": database, "collection": "system.js"}, "actions": READ}]

    def edit(_command, reply):
        return {**reply, "authInfo": {"authenticatedUsers": [USER], "authenticatedUserRoles": [],
                                      "authenticatedUserPrivileges": privileges}}

    return edit


@pytest.mark.parametrize("role", ["read", "readWrite"])
def test_rights(proxy, tmp_path, role):  # noqa: F811
    database = f"{DATABASE}_{role}"
    with proxy.fault("connectionStatus", times=None, edit=user_with(READ if role == "read" else READ_WRITE, database)) as fault:
        advice = advised(tmp_path, proxy.uri, database)
        assert fault.hits == 1
    wanted = [f"the user of mongo.uri lacks rights on the database {database} (insert update remove createCollection createIndex "
              f'dropIndex): db.getSiblingDB("admin").grantRolesToUser("notegate", [{{role: "readWrite", db: "{database}"}}])']
    assert advice == (wanted if role == "read" else [])


# ---- text indexes ----

def is_text(command):
    return command.body["indexes"][0]["name"] == "text_words"


def listed(*indexes):
    """An answer to listIndexes."""
    batch = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, *indexes]
    return {"cursor": {"id": bson.Int64(0), "ns": "any.pages", "firstBatch": batch}, "ok": 1.0}


def text_index(name, *members):
    return {"v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": name, "weights": dict.fromkeys(members, 1),
            "default_language": "english", "language_override": "language", "textIndexVersion": 3}


def engine(gateway):
    return made(gateway.call("notebook_search", {"query": "drones", "collection": "pages"}))["engine"]


REFUSED = error(85, "An equivalent index already exists with a different name and options")


@pytest.mark.long
def test_text_index_of_another_program(text, tmp_path):  # noqa: F811
    """Said once in the log and by `check`, with the command; ours is made soon after it was carried out."""
    database, uri = DATABASE + "_foreign", f"mongodb://127.0.0.1:{text.port}/?directConnection=true"
    sentence = (f"its text index seed_text is not of notegate, and MongoDB has room for one; until it is dropped, searches use a "
                f'filter: db.getSiblingDB("{database}").pages.dropIndex("seed_text")')
    with text.fault("createIndexes", "pages", where=is_text, times=None, answer=REFUSED) as refused, \
            text.fault("listIndexes", "pages", times=None, answer=listed(text_index("seed_text", "title", "content"))) as foreign:
        with serving(tmp_path, uri, database=database) as gateway:
            made(page(gateway, "Plan", "the drones fly"))
            eventually(lambda: refused.hits >= 3, SECONDS, "a third attempt")
            told = gateway.logged("is not of notegate")
            assert len(told) == 1 and sentence in told[0].replace('\\"', '"'), told
            gaps = [later.at - earlier.at for earlier, later in zip(refused.met, refused.met[1:], strict=False)]
            assert gaps[-1] > 1.8, gaps
            assert engine(gateway) == "filter"
            assert advised(tmp_path, uri, database) == [
                f"the collection pages lacks indexes, so that queries and searches take longer: {sentence}"]
            text.remove(refused)
            text.remove(foreign)
            eventually(lambda: engine(gateway) == "text", SECONDS, "the text index")


def test_text_index_of_an_older_version(text, tmp_path):  # noqa: F811
    database, uri = DATABASE + "_words", f"mongodb://127.0.0.1:{text.port}/?directConnection=true"
    with text.fault("createIndexes", "pages", where=is_text, answer=REFUSED), \
            text.fault("listIndexes", "pages", answer=listed(text_index("words", "notegate.fields.title", "content"))), \
            text.fault("dropIndexes", "pages", times=None, answer={"ok": 1.0, "nIndexesWas": 2}) as dropped:
        with serving(tmp_path, uri, database=database) as gateway:
            made(page(gateway, "Plan", "the drones fly"))
            eventually(lambda: engine(gateway) == "text", SECONDS, "the text index")
            assert [one.body["index"] for one in dropped.met] == ["words"]
            assert not gateway.logged("cannot be created")


# ---- a sharded cluster ----

def as_router(hello):
    """mongos."""
    for member in ("setName", "setVersion", "hosts", "passives", "arbiters", "secondary", "primary", "me", "electionId",
                   "topologyVersion"):
        hello.pop(member, None)
    hello.update(msg="isdbgrid", isWritablePrimary=True, ismaster=True)


@pytest.fixture(scope="module")
def router(mongo):  # noqa: F811
    with lined(mongo, as_router) as line:
        yield line


def shard_lines(database):
    return {f'sh.shardCollection("{database}.{name}", {key})' for key, names in SHARDED.items() for name in names}


def test_commands_that_shard(router, tmp_path):
    database, uri = DATABASE + "_shards", f"mongodb://127.0.0.1:{router.port}/"
    advice = advised(tmp_path, uri, database)
    assert len(advice) == len(set(advice)) and shard_lines(database) <= set(advice), advice
    assert all(one.startswith(f'sh.shardCollection("{database}.') for one in advice), advice
    assert not [one for one in advice if "notegate_events" in one or "notegate_meta" in one], advice
    for answer in ({"ns": "it is sharded", "sharded": True, "ok": 1.0}, error(13, "not authorized")):
        with router.fault("collStats", None, times=None, answer=answer):
            assert advised(tmp_path, uri, database) == []
    # `readWrite` does not allow to read it.
    assert not [command for command in router.since(0) if command.body.get("$db") == "config"]


def filters(command):
    if command.name == "update":
        return [one["q"] for one in command.body["updates"]]
    if command.name == "delete":
        return [one["q"] for one in command.body["deletes"]]
    return [command.body["filter"]]


def is_scan(query):
    """Of the relay and of upkeep: it asks all shards, whose documents it looks for."""
    named = set().union(query, *query.get("$or", []))
    return not isinstance(query.get("_id"), (str, bytes)) and any(
        name in named for name in ("notegate.waiting", "notegate.words", "notegate.deleted", "state"))


def keyless(router, database):  # noqa: F811
    """Updates, finds and deletes whose filter lacks the shard key."""
    found = []
    for command in router.since(0, ("update", "find", "delete")):
        name = command.collection
        own = name.startswith("notegate_")
        if command.body["$db"] != database or own and name not in SHARDED["{_id: 1}"]:
            continue
        found += [(command, query) for query in filters(command)
                  if not {"_id"} <= set(query) and not is_scan(query) and own
                  or not own and "space" not in query and not is_scan(query)]
    return found


@pytest.mark.long
def test_shard_key_in_each_command(mongo, router, tmp_path):  # noqa: F811
    """Of documents the space and, of one document, its _id; of our own collections the _id."""
    database, uri = DATABASE + "_keyed", f"mongodb://127.0.0.1:{router.port}/"
    with pymongo.MongoClient(mongo.uri) as client, \
            serving(tmp_path, uri, timeout="1s", database=database, more=["mongo.tombstones=3s", "journal=documents"]) as gateway:
        stored = client[database]
        made(create(gateway, "n", key="once"))
        made(append(gateway, "n", key="twice"))
        entries = [made(page(gateway, f"Page {number}", "the drones fly", key=f"page {number}", tags=["launch"]))["notebook_id"]
                   for number in range(3)]
        for entry in entries:
            made(gateway.call("notebook_update", {"collection": "pages", "notebook_id": entry, "append": "more"}))
            made(gateway.call("notebook_read", {"collection": "pages", "notebook_id": entry}))
            made(gateway.call("notebook_read", {"collection": "pages", "notebook_id": entry, "version": 1}))
            made(gateway.call("notebook_history", {"collection": "pages", "notebook_id": entry}))
        assert made(gateway.call("notebook_search", {"query": "drones"}))["total"] == 3
        assert made(gateway.call("notebook_list", {"tags": ["launch"]}))["total"] == 3
        made(gateway.call("notebook_delete", {"collection": "pages", "notebook_id": entries[0]}))
        made(gateway.call("notebook_restore", {"collection": "pages", "notebook_id": entries[0], "version": 1}))
        made(gateway.call("notebook_delete", {"collection": "pages", "notebook_id": entries[1]}))
        eventually(lambda: stored["notegate_tombstones"].count_documents({}), SECONDS, "a tombstone that has left")
        made(gateway.call("notebook_restore", {"collection": "pages", "notebook_id": entries[1], "version": 1}))
        eventually(lambda: "space_id" in stored["pages"].index_information(), SECONDS, "the index of the shard key")
        assert list(stored["pages"].index_information()["space_id"]["key"]) == [("space", 1), ("_id", 1)]
        for name in ("pages", "notebooks"):
            assert all("space" in one for command in router.since(0, "insert", name) if command.body["$db"] == database
                       for one in command.body["documents"])
        assert {one.name for one in router.since(0, ("update", "find", "delete"), "pages")} == {"update", "find", "delete"}
        assert not keyless(router, database)
