# SPDX-License-Identifier: MIT
"""A restore that was killed: no gateway serves half a database, the restore can be repeated, and nothing that a gateway has
acknowledged is deleted. Backups of large documents."""

import subprocess

import pymongo
import pytest
from cli_support import notegate
from conftest import binary, environment, eventually
from mongo_world import DATABASE, SECONDS, append, content, create, made, mongo, page, proxy, read, serving, unavailable  # noqa: F401

HALF = "holds a part of a backup"
NOTEBOOKS = [f"n{number}" for number in range(5)]


def settings(uri, database):
    return [word for option in ("documents=mongo", f"mongo.uri={uri}", f"mongo.database={database}",
                                "plugins=agent_notebook,notebook") for word in ("--set", option)]


def run(command, *words):
    done = notegate(command, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def backup(mongo, tmp_path_factory):  # noqa: F811
    """A backup, with revisions and a page."""
    folder = tmp_path_factory.mktemp("backup")
    database = DATABASE + "_source"
    with serving(folder, mongo.uri, database=database) as gateway:
        for name in NOTEBOOKS:
            made(create(gateway, name))
            made(append(gateway, name))
        made(page(gateway))
    with pymongo.MongoClient(mongo.uri) as client:
        client[database]["notegate_meta"].delete_many({})  # the lease of a killed gateway
    run("backup", folder / "copy", "--data-dir", folder / "data", *settings(mongo.uri, database))
    return folder / "copy"


def waits_for_numbers(proxy, mark):  # noqa: F811
    return [one for one in proxy.since(mark, "find") if "outbox.revision" in str(one.body["filter"])]


def test_backup_of_unnumbered_changes(mongo, proxy, tmp_path):  # noqa: F811
    """A gateway that was killed before its first change had a number has left a store all the same."""
    database = DATABASE + "_unnumbered"
    with proxy.fault("insert", "notegate_events", times=None, hold=True) as fault:
        with serving(tmp_path, proxy.uri, database=database) as gateway:
            made(create(gateway, "n"))
            eventually(lambda: fault.hits, SECONDS, "an event")
        fault.change = lambda body: {"ping": 1, "$db": body["$db"]}
    with pymongo.MongoClient(mongo.uri) as client:
        client[database]["notegate_meta"].delete_many({})  # the lease of the killed gateway
        assert not client[database]["notegate_events"].count_documents({})
    before = proxy.mark()
    with proxy.fault("insert", "notegate_events", times=None, hold=True):
        process = subprocess.Popen([binary(), "backup", tmp_path / "copy", "--data-dir", tmp_path / "data", *settings(proxy.uri, database)],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
        eventually(lambda: process.poll() is not None or waits_for_numbers(proxy, before), SECONDS, "the wait for the relay")
    told = process.communicate()[0]
    assert process.returncode == 0, told


def killed_restore(proxy, backup, folder, database):  # noqa: F811
    """A restore that dies with its documents stored and its events not."""
    with proxy.fault("insert", "notegate_events", times=None, hold=True) as fault:
        process = subprocess.Popen([binary(), "restore", backup, "--data-dir", folder / "killed", *settings(proxy.uri, database)],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment())
        eventually(lambda: fault.hits, SECONDS, "the events of the restore")
        process.kill()
        process.communicate()
        # What it had sent must not arrive after its death.
        fault.change = lambda body: {"ping": 1, "$db": body["$db"]}


def refuses(gateway):
    for answer in (read(gateway, NOTEBOOKS[0]), append(gateway, NOTEBOOKS[0]), create(gateway, "new"), page(gateway),
                   gateway.call("notebook_search", {"query": "words"}), gateway.call("notebook_list", {"collection": "pages"})):
        unavailable(answer)


@pytest.mark.long
def test_killed_restore(mongo, proxy, backup, tmp_path):  # noqa: F811
    database = DATABASE + "_killed"
    killed_restore(proxy, backup, tmp_path, database)
    with pymongo.MongoClient(mongo.uri) as client, serving(tmp_path, mongo.uri, database=database, ready=False) as gateway:
        assert client[database]["notebooks"].count_documents({}) == len(NOTEBOOKS)
        refuses(gateway)
        assert gateway.client.get("/readyz").status_code == 503
        assert gateway.logged(HALF)
        assert client[database]["notebooks"].count_documents({}) == len(NOTEBOOKS)
        run("restore", backup, "--data-dir", tmp_path / "again", *settings(mongo.uri, database))
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, SECONDS, "readiness")
        assert [content(gateway, name) for name in NOTEBOOKS] == ["start\nmore"] * len(NOTEBOOKS)
        made(append(gateway, NOTEBOOKS[0]))
    with pymongo.MongoClient(mongo.uri) as client:
        client[database]["notegate_meta"].delete_many({"_id": "relay"})
    run("verify", "--data-dir", tmp_path / "verify", *settings(mongo.uri, database))


def test_restore_beside_a_gateway(mongo, tmp_path):  # noqa: F811
    """One that serves already refuses within a heartbeat while a restore runs, and says why."""
    database = DATABASE + "_beside"
    with serving(tmp_path, mongo.uri, database=database) as gateway, pymongo.MongoClient(mongo.uri) as client:
        meta = client[database]["notegate_meta"]
        made(create(gateway, NOTEBOOKS[0]))
        meta.insert_one({"_id": "import", "gateway": "another"})
        eventually(lambda: HALF in gateway.client.get("/readyz").text, SECONDS, "the reason")
        refuses(gateway)
        meta.delete_one({"_id": "import"})
        eventually(lambda: gateway.client.get("/readyz").status_code == 200, SECONDS, "readiness")
        assert content(gateway, NOTEBOOKS[0]) == "start"


def test_repeated_restore_deletes_no_change(mongo, proxy, backup, tmp_path):  # noqa: F811
    """A gateway of an older version served what a killed restore had left."""
    database = DATABASE + "_served"
    killed_restore(proxy, backup, tmp_path, database)
    with pymongo.MongoClient(mongo.uri) as client:
        meta = client[database]["notegate_meta"]
        mark = meta.find_one_and_delete({"_id": "import"})
        assert mark
        with serving(tmp_path, mongo.uri, database=database) as gateway:
            made(append(gateway, NOTEBOOKS[0], "acknowledged"))
        meta.insert_one(mark)
        before = client[database]["notebooks"].count_documents({})
        done = notegate("restore", backup, "--data-dir", tmp_path / "again", *settings(mongo.uri, database))
        assert done.returncode != 0 and "is not empty" in done.stderr + done.stdout, done
        assert client[database]["notebooks"].count_documents({}) == before
        meta.delete_many({})
    with serving(tmp_path, mongo.uri, database=database) as gateway:
        assert content(gateway, NOTEBOOKS[0]).endswith("acknowledged")


def test_restore_into_a_restored_one(mongo, backup, tmp_path):  # noqa: F811
    """What a complete restore has stored is no remainder."""
    database = DATABASE + "_twice"
    run("restore", backup, "--data-dir", tmp_path / "first", *settings(mongo.uri, database))
    done = notegate("restore", backup, "--data-dir", tmp_path / "second", *settings(mongo.uri, database))
    assert done.returncode != 0 and "is not empty" in done.stderr + done.stdout, done
    with serving(tmp_path, mongo.uri, database=database) as gateway:
        assert [content(gateway, name) for name in NOTEBOOKS] == ["start\nmore"] * len(NOTEBOOKS)


def walks(proxy, since):  # noqa: F811
    """The pages of walks over all notebooks."""
    return [one for one in proxy.since(since, "find", "notebooks")
            if one.body.get("sort") == {"_id": 1} and set(one.body["filter"]) <= {"_id"}]


@pytest.mark.long
def test_pages_of_large_documents(mongo, proxy, tmp_path):  # noqa: F811
    """Documents are walked in pages of a few megabytes, and a backup asks for their versions alone."""
    database, count, size = DATABASE + "_large", 10, 1 << 20
    with serving(tmp_path, mongo.uri, database=database) as gateway:
        for number in range(count):
            made(create(gateway, f"n{number}", text="x" * size))
    with pymongo.MongoClient(mongo.uri) as client:
        client[database]["notegate_meta"].delete_many({})
    before = proxy.mark()
    run("verify", "--data-dir", tmp_path / "verify", *settings(proxy.uri, database))
    # By where they begin: the driver may send a read again.
    whole = [one for one in walks(proxy, before) if "space" not in one.body.get("projection", {})]
    assert len({str(one.body["filter"]) for one in whole}) == 2
    before = proxy.mark()
    run("backup", tmp_path / "copy", "--data-dir", tmp_path / "backup", *settings(proxy.uri, database))
    shown = [document for one in walks(proxy, before) for document in one.reply["cursor"]["firstBatch"]]
    assert len(shown) == count and not any({"json", "text", "outbox"} & set(document) for document in shown)
