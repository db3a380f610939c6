# SPDX-License-Identifier: MIT
"""Entries that another program changes in the database: what they are then is their next revision, for every tool."""

import contextlib
import itertools
import threading

import pymongo
import pytest
from cli_support import notegate
from conftest import eventually
from mongo_world import DATABASE, SECONDS, at_once, made, mongo, page, serving  # noqa: F401

NAME = DATABASE + "_changed"
NOBODY = "external"
numbers = itertools.count()
# Of a page: what the other program does.
EDITS = {
    "title": {"$set": {"title": "Another title"}},
    "content": {"$set": {"content": "words of another program\n"}},
    "tags": {"$set": {"metadata.tags": ["other", "tags"]}},
    "all": {"$set": {"title": "Another title", "content": "words of another program\n", "metadata.tags": ["other", "tags"]}},
}
FACETS = {"title": "Another title", "content": "words of another program\n", "tags": ["other", "tags"]}


@pytest.fixture(scope="module")
def database(mongo):  # noqa: F811
    with pymongo.MongoClient(mongo.uri) as client:
        yield client[NAME]


@pytest.fixture(scope="module")
def gateways(mongo, tmp_path_factory):  # noqa: F811
    """Two gateways on one database."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(serving(tmp_path_factory.mktemp("one"), mongo.uri, database=NAME, more=["journal=documents"]))
               for _ in range(2)]


def call(gateway, tool, entry, **arguments):
    return gateway.call(tool, {"collection": "pages", "notebook_id": entry, **arguments})


def entry_of(gateway):
    """A page with two revisions."""
    entry = made(page(gateway, f"Page {next(numbers)}", "first words\n", tags=["own"]))["notebook_id"]
    assert made(call(gateway, "notebook_update", entry, append="more words\n"))["version"] == 2
    return entry


def edited(database, entry, edit):
    assert database["pages"].update_one({"_id": entry}, edit).modified_count == 1


def shown(answer):
    return {"title": answer["title"], "content": answer["content"], "tags": answer["metadata"]["tags"]}


def verified(mongo, database, folder):  # noqa: F811
    """0 faults, once the changes have left their outboxes."""
    eventually(lambda: not database["pages"].count_documents({"notegate.waiting": {"$exists": True}}), SECONDS, "moved events")
    sets = ["documents=mongo", f"mongo.uri={mongo.uri}", f"mongo.database={NAME}", "plugins=agent_notebook,notebook",
            "journal=documents"]
    told = notegate("verify", "--data-dir", folder / "verify", *(word for one in sets for word in ("--set", one)))
    assert told.returncode == 0, told.stdout + told.stderr


def revisions(gateway, entry):
    history = made(call(gateway, "notebook_history", entry))
    assert history["current_version"] == history["total"]
    return [(one["version"], one["changed_by"], one["action"]) for one in history["history"]]


@pytest.mark.parametrize("what", EDITS)
def test_read_and_update(mongo, database, gateways, tmp_path, what):  # noqa: F811
    """Reading makes it revision 3; expected_version means that one."""
    one, other = gateways
    entry = entry_of(one)
    before = shown(made(call(one, "notebook_read", entry)))
    edited(database, entry, EDITS[what])
    after = {**before, **(FACETS if what == "all" else {what: FACETS[what]})}
    for gateway in (one, other, one):
        answer = call(gateway, "notebook_read", entry)
        assert answer.json()["revision"] == made(answer)["metadata"]["version"] == 3 and shown(made(answer)) == after
    refused = call(one, "notebook_update", entry, append="late\n", expected_version=2)
    assert refused.status_code == 409 and "the entry is at version 3" in refused.json()["message"], refused.text
    assert made(call(one, "notebook_update", entry, append="last\n", expected_version=3))["version"] == 4
    assert shown(made(call(other, "notebook_read", entry))) == {**after, "content": after["content"] + "last\n"}
    for revision, content in ((1, "first words\n"), (2, "first words\nmore words\n"), (3, after["content"])):
        assert made(call(other, "notebook_read", entry, version=revision))["content"] == content
    told = revisions(other, entry)
    assert [revision for revision, _, _ in told] == [4, 3, 2, 1] and told[1][1:] == (NOBODY, "external"), told
    verified(mongo, database, tmp_path)


def test_overwritten(mongo, database, gateways, tmp_path):  # noqa: F811
    """A gateway that changed the entry just before changes it again without a look: its change wins, without a fault."""
    one, _ = gateways
    entry = entry_of(one)
    edited(database, entry, EDITS["all"])
    version = made(call(one, "notebook_update", entry, append="last\n"))["version"]
    assert made(call(one, "notebook_read", entry))["metadata"]["version"] == version == len(revisions(one, entry))
    verified(mongo, database, tmp_path)


def test_update_without_a_read(mongo, database, gateways, tmp_path):  # noqa: F811
    """The first call is the update, on a gateway that has not seen the entry."""
    one, other = gateways
    entry = entry_of(one)
    edited(database, entry, EDITS["all"])
    refused = call(other, "notebook_update", entry, append="late\n", expected_version=2)
    assert refused.status_code == 409, refused.text
    assert made(call(other, "notebook_update", entry, append="last\n"))["version"] == 4
    assert made(call(one, "notebook_read", entry))["content"] == FACETS["content"] + "last\n"
    assert len(revisions(one, entry)) == 4
    verified(mongo, database, tmp_path)


def test_history_first(mongo, database, gateways, tmp_path):  # noqa: F811
    one, _ = gateways
    entry = entry_of(one)
    edited(database, entry, EDITS["content"])
    assert revisions(one, entry)[0] == (3, NOBODY, "external")
    verified(mongo, database, tmp_path)


def test_found_by_its_words(database, gateways):
    """Searches and lists know what it is now, once it was read."""
    one, _ = gateways
    entry = entry_of(one)
    word = f"unusual{next(numbers)}"
    edited(database, entry, {"$set": {"content": f"{word}\n", "metadata.tags": [word]}})
    made(call(one, "notebook_read", entry))
    found = made(one.call("notebook_search", {"collection": "pages", "query": word}))
    assert [hit["notebook_id"] for hit in found["results"]] == [entry]
    listed = made(one.call("notebook_list", {"collection": "pages", "tags": [word]}))
    assert [hit["notebook_id"] for hit in listed["results"]] == [entry]


@pytest.mark.long
def test_two_gateways_at_once(mongo, database, gateways, tmp_path):  # noqa: F811
    """One revision, one event, whoever reads first."""
    for _ in range(5):
        entry = entry_of(gateways[0])
        edited(database, entry, EDITS["all"])
        answers = at_once(*[lambda gateway=gateway: call(gateway, "notebook_read", entry) for gateway in gateways * 3])
        assert {made(answer)["metadata"]["version"] for answer in answers} == {3}
        assert len(revisions(gateways[1], entry)) == 3
        eventually(lambda: database["notegate_events"].count_documents({"document": entry}) == 3, SECONDS, "its events")
    verified(mongo, database, tmp_path)


@pytest.mark.long
def test_changed_while_it_is_adopted(mongo, database, gateways, tmp_path):  # noqa: F811
    """The other program goes on: nothing of it is overwritten, and its last state is the newest revision."""
    one, _ = gateways
    entry = entry_of(one)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            made(call(one, "notebook_read", entry))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(50):
            edited(database, entry, {"$set": {"content": f"state {number}\n"}})
            assert database["pages"].find_one({"_id": entry})["content"] == f"state {number}\n"
    finally:
        stop.set()
        reader.join()
    assert made(call(one, "notebook_read", entry))["content"] == "state 49\n"
    verified(mongo, database, tmp_path)
