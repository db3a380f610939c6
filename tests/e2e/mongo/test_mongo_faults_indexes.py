# SPDX-License-Identifier: MIT
"""Indexes that are built slowly, refused, aborted or dropped: calls go on, and searches find the same."""

import contextlib
import time

import pymongo
import pytest
import servers as real
from cli_support import notegate
from conftest import eventually
from mongo_proxy import error
from mongo_world import (DATABASE, SECONDS, append, at_once, content, create, lined, made, mongo, page, proxy,  # noqa: F401
                         serving, text)

NOT_ALLOWED = error(13, "not authorized on notegate_e2e to execute command { createIndexes: \"notebooks\" }")
# Of the usual time limit; each write took as long as this before indexes had a thread of their own.
LIMIT_SECONDS = 5


def index_names(mongo, database, collection):  # noqa: F811
    with pymongo.MongoClient(mongo.uri) as client:
        return set(client[database][collection].index_information())


def is_text(command):
    indexes = command.body.get("indexes") or [{}]
    return indexes[0].get("name") == "text_words"


# ---- ordinary indexes ----

def ordinary(command):
    return not is_text(command)


def test_slow_build(mongo, proxy, tmp_path):  # noqa: F811
    """On a collection with documents a build has no answer yet: no call waits for it.

    MongoDB's manual: createIndexes answers when the build is done; reads and writes of the collection go on meanwhile."""
    database = DATABASE + "_slow"
    with serving(tmp_path, proxy.uri, database=database) as gateway:
        made(create(gateway, "n0"))
        made(page(gateway, "Old"))
    with pymongo.MongoClient(mongo.uri) as client:
        for collection in ("notebooks", "pages"):
            client[database][collection].drop_indexes()
    with proxy.fault("createIndexes", times=None, hold=True) as slow:
        with serving(tmp_path, proxy.uri, database=database) as gateway:
            eventually(lambda: slow.hits, SECONDS, "a build")
            begun = time.monotonic()
            for number in range(1, 9):
                made(create(gateway, f"n{number}"))
                made(append(gateway, "n0", f"line {number}"))
            for answer in at_once(*[lambda number=number: page(gateway, f"Page {number}") for number in range(8)]):
                made(answer)
            assert time.monotonic() - begun < LIMIT_SECONDS
            proxy.remove(slow)
            eventually(lambda: {"by_updated", "order"} <= index_names(mongo, database, "pages"), SECONDS, "indexes")


def test_refused(mongo, proxy, tmp_path):  # noqa: F811
    """A user without the right: one line that says so, fewer and fewer attempts, and the other collections have theirs.

    MongoDB's manual: createIndexes needs a right of its own; without it the answer is Unauthorized (13)."""
    database, before = DATABASE + "_refused", proxy.mark()
    with proxy.fault("createIndexes", "notebooks", where=ordinary, times=None, answer=NOT_ALLOWED) as fault:
        with serving(tmp_path, proxy.uri, database=database) as gateway:
            made(create(gateway, "n"))
            made(page(gateway))
            eventually(lambda: fault.hits >= 2, SECONDS, "a second attempt")
            told = gateway.logged("cannot be created")
            assert len(told) == 1 and "notebooks" in told[0] and "right createIndex" in told[0], told
            for collection in ("pages", "code_snippets", "keys"):
                eventually(lambda name=collection: "by_updated" in index_names(mongo, database, name), SECONDS, collection)
            proxy.remove(fault)
            eventually(lambda: "by_updated" in index_names(mongo, database, "notebooks"), SECONDS, "the indexes at last")
            tries = [one.at for one in proxy.since(before, "createIndexes", "notebooks") if ordinary(one)]
            # A collection that was made meanwhile is tried at once; after that there is a pause.
            assert len(tries) >= 3 and tries[-1] - tries[-2] > 0.9, tries


def test_made_by_an_administrator(mongo, proxy, tmp_path):  # noqa: F811
    """A user without the right to make indexes uses those that are there.

    MongoDB's manual: createIndexes needs a right of its own, also where the index exists; the shell writes numbers as doubles."""
    database = DATABASE + "_administrator"
    with serving(tmp_path, mongo.uri, database=database) as gateway, pymongo.MongoClient(mongo.uri) as client:
        made(create(gateway, "n"))
        events = client[database]["notegate_events"]
        eventually(lambda: events.count_documents({"quiet": False}) == 1 and {"ref", "quiet"} <= index_names(mongo, database, "notegate_events"),
                   SECONDS, "the indexes")
        eventually(lambda: "by_updated" in index_names(mongo, database, "notebooks"), SECONDS, "the indexes of notebooks")
        events.drop_index("ref")
        client[database].command("createIndexes", "notegate_events", indexes=[{"name": "made_by_hand", "key": {"ref": 1.0}, "unique": True}])
        with proxy.fault("createIndexes", where=ordinary, times=None, answer=NOT_ALLOWED) as fault, \
                serving(tmp_path, proxy.uri, database=database) as another:
            made(append(another, "n"))
            eventually(lambda: events.count_documents({"quiet": False}) == 2, SECONDS, "a number")
            for collection in ("notegate_events", "notebooks"):
                eventually(lambda name=collection: any(one.collection == name for one in fault.met), SECONDS, "a refusal")
            assert another.client.get("/readyz").status_code == 200
            assert not another.logged("notegate_events cannot be created") and not another.logged("notebooks cannot be created")


def refused_late(command):
    """After a check has asked for the first time whether the documents answer."""
    time.sleep(1)
    return NOT_ALLOWED


@pytest.mark.long
def test_numbers_wait_for_their_index(mongo, proxy, tmp_path):  # noqa: F811
    """Without the unique index a change could get two numbers: none gets one. The changes are made, and everybody who has to
    know it is told."""
    database = DATABASE + "_ref"

    def is_ref(command):
        return any(index["name"] == "ref" for index in command.body["indexes"])

    with proxy.fault("createIndexes", "notegate_events", where=is_ref, times=None, answer=NOT_ALLOWED) as fault, \
            pymongo.MongoClient(mongo.uri) as client:
        with serving(tmp_path, proxy.uri, database=database, ready=False) as gateway:
            events = client[database]["notegate_events"]
            made(create(gateway, "n"))
            made(append(gateway, "n"))
            eventually(lambda: fault.hits >= 2, SECONDS, "a second attempt")
            ready = gateway.client.get("/readyz")
            assert ready.status_code == 503 and "unique index ref of notegate_events" in ready.text, ready.text
            told = gateway.logged("cannot be created")
            assert len(told) == 1 and "notegate_events" in told[0] and "events wait" in told[0], told
            for answer in (NOT_ALLOWED, refused_late):
                with proxy.fault("createIndexes", "notegate_events", where=is_ref, times=None, answer=answer):
                    checked = notegate("check", "--data-dir", tmp_path / "check", "--set", "documents=mongo",
                                       "--set", f"mongo.uri={proxy.uri}", "--set", f"mongo.database={database}",
                                       "--set", "plugins=notebook")
                assert checked.returncode == 1 and "events wait" in checked.stdout, checked
            assert content(gateway, "n") == "start\nmore" and not events.count_documents({})
            proxy.remove(fault)
            eventually(lambda: gateway.client.get("/readyz").status_code == 200, SECONDS, "readiness")
            eventually(lambda: events.count_documents({"quiet": False}) == 2, SECONDS, "the numbers")
            assert "ref" in index_names(mongo, database, "notegate_events")


def test_one_refused(mongo, proxy, tmp_path):  # noqa: F811
    """One index has the name of another form: the rest of its collection is made.

    MongoDB's manual: an index with the name of another one is refused, with all others of its command."""
    database = DATABASE + "_one"
    with pymongo.MongoClient(mongo.uri) as client:
        client[database]["pages"].create_index([("title", 1)], name="by_updated")
    with serving(tmp_path, proxy.uri, database=database) as gateway:
        eventually(lambda: {"order", "ids", "waiting", "by_metadata_tags"} <= index_names(mongo, database, "pages"), SECONDS,
                   "the other indexes")
        eventually(lambda: gateway.logged("pages cannot be created"), SECONDS, "a line")
        made(page(gateway))


TAGGED = {"space": "shared", "metadata.tags": "launch"}
FORMER_TAGS = ["space", "notegate.deleted", "notegate.fields.metadata/tags", "notegate.updated", "notegate.created_seq"]


def tag_index(collection):
    """The members of its keys; none while it is being replaced."""
    return [member for member, _ in collection.index_information().get("by_metadata_tags", {"key": []})["key"]]


def test_of_an_older_version(mongo, proxy, tmp_path):  # noqa: F811
    """Its index has other keys, its documents have the fields twice: the index is replaced, and the documents are found."""
    database = DATABASE + "_former"
    with pymongo.MongoClient(mongo.uri) as client:
        pages = client[database]["pages"]
        pages.create_index([(member, 1) for member in FORMER_TAGS], name="by_metadata_tags")
        with serving(tmp_path, proxy.uri, database=database) as gateway:
            eventually(lambda: "metadata.tags" in tag_index(pages), SECONDS, "the index with other keys")
            assert not gateway.logged("cannot be created")
            old, new = (made(page(gateway, title, tags=["launch"]))["notebook_id"] for title in ("Old", "New"))
            pages.update_one({"_id": old}, {"$set": {"notegate.fields": {"title": "Old", "metadata/tags": ["launch"]}}})
            found = made(gateway.call("notebook_list", {"collection": "pages", "tags": ["launch"]}))
            assert {one["notebook_id"] for one in found["results"]} == {old, new}
            made(gateway.call("notebook_update", {"collection": "pages", "notebook_id": old, "append": "more"}))
            assert not pages.count_documents({"notegate.fields": {"$exists": True}})


def test_the_guides_query(mongo, proxy, tmp_path):  # noqa: F811
    """What the guide shows for mongosh uses an index of ours."""
    database = DATABASE + "_guide"
    with pymongo.MongoClient(mongo.uri) as client, serving(tmp_path, proxy.uri, database=database) as gateway:
        pages = client[database]["pages"]
        for number in range(20):
            made(page(gateway, f"Page {number}", tags=["launch" if number % 10 == 0 else "other"]))
        eventually(lambda: "by_metadata_tags" in index_names(mongo, database, "pages"), SECONDS, "the index")
        # A server may answer by an index that it is still filling.
        eventually(lambda: pages.count_documents(TAGGED) == 2, SECONDS, "both pages by the index")
        plan = client[database].command("explain", {"find": "pages", "filter": TAGGED})["queryPlanner"]["winningPlan"]
        assert "by_metadata_tags" in str(plan) and "COLLSCAN" not in str(plan), plan


# ---- the text index ----

@contextlib.contextmanager
def searching(text, folder, database, **more):  # noqa: F811
    with serving(folder, f"mongodb://127.0.0.1:{text.port}/?directConnection=true", database=database, **more) as gateway:
        yield gateway


def found(gateway, query):
    """The engine, and the titles."""
    result = made(gateway.call("notebook_search", {"query": query}))
    return result["engine"], sorted(one["title"] for one in result["results"])


def by_text(command):
    return "$text" in command.body.get("filter", {})


def test_aborted_build(text, tmp_path):  # noqa: F811
    """IndexBuildAborted says nothing about the server's abilities: the index is made later.

    MongoDB's manual: IndexBuildAborted means that a build was stopped; the command may be sent again."""
    with text.fault("createIndexes", "pages", where=is_text, answer=error(276, "Index build aborted")) as fault:
        with searching(text, tmp_path, DATABASE + "_aborted") as gateway:
            made(page(gateway, "Plan", "the drones fly"))
            assert found(gateway, "drones")[1] == ["Plan"]
            eventually(lambda: fault.hits, SECONDS, "an aborted build")
            eventually(lambda: found(gateway, "drones") == ("text", ["Plan"]), SECONDS, "the text index")


def test_lost_index(text, tmp_path):  # noqa: F811
    """IndexNotFound: this search and the next ones filter, and the index is made again.

    MongoDB's manual: $text without a text index is refused with IndexNotFound (27)."""
    with searching(text, tmp_path, DATABASE + "_lost") as gateway:
        made(page(gateway, "Plan", "the drones fly"))
        eventually(lambda: found(gateway, "drones")[0] == "text", SECONDS, "the text index")
        # This server does not answer so to the same index again.
        exists = {"ok": 1.0, "numIndexesBefore": 6, "numIndexesAfter": 6, "note": "all indexes already exist"}
        with text.fault("createIndexes", "pages", where=is_text, times=None, answer=exists) as again:
            with text.fault("createIndexes", "pages", where=is_text, answer=error(276, "Index build aborted")) as slow:
                with text.fault("find", "pages", where=by_text, answer=error(27, "text index required for $text query")) as fault:
                    assert found(gateway, "drones")[1] == ["Plan"]
                    assert fault.hits == 1
                assert found(gateway, "drones") == ("filter", ["Plan"])
                eventually(lambda: slow.hits, SECONDS, "a build")
            eventually(lambda: found(gateway, "drones") == ("text", ["Plan"]), SECONDS, "the text index")
            assert again.hits == 1


def test_text_beside_refused_indexes(text, tmp_path):  # noqa: F811
    """Neither waits for the other.

    MongoDB's manual: a command that makes several indexes makes all of them or none."""
    refused = error(86, "An existing index has the same name as the requested index")
    with text.fault("createIndexes", "pages", where=lambda command: not is_text(command), times=None, answer=refused):
        with searching(text, tmp_path, DATABASE + "_slash") as gateway:
            eventually(lambda: gateway.logged("pages cannot be created"), SECONDS, "a refusal")
            made(page(gateway, "Plan", "the drones fly"))
            eventually(lambda: found(gateway, "drones") == ("text", ["Plan"]), SECONDS, "the text index")


# ---- words ----

QUERIES = [("get_user_name", ["Names"]), ("user", ["Names"]), ("x" * 600, ["Long"]), ("y" * 600, []), ("run", ["Names"]),
           ("Übermut", ["Words"]), ("ubermut", ["Words"]), ("dro*", ["Words"]), ("100", ["Words"])]


@pytest.mark.parametrize("engine", ["text", "filter"])
def test_words(mongo, text, tmp_path, engine):  # noqa: F811
    """Identifiers, very long words, accents and prefixes are found alike, also in documents that an older version stored:
    the lists of their words and terms are made in the background.

    MongoDB's manual: $text finds whole words of a text index; a pattern finds what it matches, without any index."""
    database = DATABASE + "_words"
    with contextlib.ExitStack() as stack:
        line = text if engine == "text" else stack.enter_context(lined(mongo))
        uri = f"mongodb://127.0.0.1:{line.port}/?directConnection=true"
        with serving(tmp_path, uri, database=database) as gateway:
            made(page(gateway, "Names", "call get_user_name() while running"))
            made(page(gateway, "Long", "x" * 600))
            made(page(gateway, "Words", "\u00dcbermut of a \u201cdrone\u201d costs 100\u20ac \U0001f600"))
        with pymongo.MongoClient(uri) as client:
            pages = client[database]["pages"]
            for one in list(pages.find({}, {"_id": 1})):
                pages.update_one({"_id": one["_id"]}, {"$unset": {"notegate.words": "", "notegate.terms": ""}})
            assert pages.count_documents({"notegate.words": {"$exists": True}}) == 0
            with serving(tmp_path, uri, database=database) as gateway:
                for query, titles in QUERIES:
                    assert found(gateway, query)[1] == titles, query
                for member in ("notegate.words", "notegate.terms"):
                    eventually(lambda name=member: pages.count_documents({name: {"$exists": True}}) == 3, SECONDS, member)
                eventually(lambda: found(gateway, "user")[0] == engine, SECONDS, "the engine")
                for query, titles in QUERIES:
                    assert found(gateway, query)[1] == titles, query


def test_each_finding(mongo, tmp_path):  # noqa: F811
    """A field with several texts is searched in each of them."""
    with serving(tmp_path, mongo.uri, database=DATABASE + "_findings") as gateway:
        made(gateway.call("notebook_create", {"collection": "research_notes", "title": "Animals", "content": "text",
                                              "key_findings": ["a lion sleeps", "the zebra runs"]}))
        for query in ("lion", "zebra", '"zebra runs"'):
            hits = made(gateway.call("notebook_search", {"query": query}))["results"]
            assert [one["title"] for one in hits] == ["Animals"] and query.strip('"') in hits[0]["excerpt"], hits
        assert made(gateway.call("notebook_search", {"query": '"sleeps the"'}))["total"] == 0
