# SPDX-License-Identifier: MIT
"""A store whose full-text index an older gateway made: today's gateway rebuilds it, and a kill in the middle leaves a
valid store."""

import contextlib
import sqlite3

import pytest
from conftest import Gateway, eventually

PAGES = 400
LAYOUT = "*3\n"  # mark of today's index, before the names of its columns
OLDER_TOKENS = "unicode61 remove_diacritics 2"
SETS = ["plugins=agent_notebook"]


def opened(data):
    return contextlib.closing(sqlite3.connect(data / "notegate.db", isolation_level=None))


def make_older(data):
    """The full-text tables as they were: other tokens, words of documents in them, nothing that waits, an older version."""
    with opened(data) as store:
        tables = store.execute("SELECT name, sql FROM sqlite_schema WHERE sql LIKE '%USING fts5%'").fetchall()
        assert tables and all("tokenize='notegate'" in sql for _, sql in tables)
        store.execute("PRAGMA writable_schema=ON")  # nothing else drops tables of unknown tokens
        for name, _ in tables:
            store.execute("DELETE FROM sqlite_schema WHERE name = ? OR name GLOB ?", (name, f"{name}_*"))
        store.execute("PRAGMA writable_schema=RESET")
        store.execute("VACUUM")
        for name, sql in tables:
            store.execute(sql.replace("notegate", OLDER_TOKENS))
            columns = [row[1] for row in store.execute(f"PRAGMA table_info({name})")]
            store.execute(f"INSERT INTO {name}(rowid, {columns[-1]}) SELECT doc, CAST(text AS TEXT) FROM docs"
                          " JOIN shelves USING (shelf) JOIN collections ON collections.name = shelves.collection"
                          " WHERE deleted = 0 AND collections.collection = ?", (name.removeprefix("search_"),))
        store.execute("DELETE FROM dirty")
        store.execute("UPDATE collections SET search = replace(search, ?, '')", (LAYOUT,))
        store.execute("PRAGMA user_version=2")
        assert store.execute("SELECT count(*) FROM collections WHERE search LIKE '*3%'").fetchone() == (0,)
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def waiting(data):
    """Documents that today's index does not have yet; None: it is not begun."""
    with opened(data) as store:
        begun = store.execute("SELECT count(*) FROM collections WHERE search LIKE ?", (LAYOUT + "%",)).fetchone()[0]
        return store.execute("SELECT count(*) FROM dirty").fetchone()[0] if begun else None


def found(gateway, query):
    answer = gateway.call("notebook_search", {"query": query, "limit": 100})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@pytest.fixture
def older(tmp_path):
    """The data directory of a gateway that knew words only as they stand."""
    data = tmp_path / "data"
    gateway = Gateway(data, sets=SETS)
    try:
        for number in range(PAGES):
            texts = {0: "The lanterns were burning.", 1: "日本語のノート"}
            answer = gateway.call("notebook_create", {
                "collection": "pages", "title": f"Page {number}", "content": texts.get(number, "common words " * 40)})
            assert answer.status_code == 200, answer.text
    finally:
        assert gateway.stop() == 0
    make_older(data)
    return data


def check(data):
    """All of it is found, by stems and by pairs of signs, and nothing else changed."""
    gateway = Gateway(data, sets=SETS)
    try:
        assert [item["title"] for item in found(gateway, "lantern")["results"]] == ["Page 0"]
        assert [item["title"] for item in found(gateway, "burn absent")["results"]] == ["Page 0"]
        assert [item["title"] for item in found(gateway, "日本")["results"]] == ["Page 1"]
        assert found(gateway, "common")["total"] == PAGES - 2
        assert gateway.call("notebook_list").json()["result"]["total"] == PAGES
        eventually(lambda: waiting(data) == 0, 60, "the index")
    finally:
        assert gateway.stop() == 0
    with opened(data) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_an_older_index_is_made_anew(older):
    check(older)


def test_kills_while_it_is_made_anew(older):
    """Killed when it is begun, and when some and all of it is done."""
    for most in (PAGES * 2, PAGES // 2, 0):
        gateway = Gateway(older, sets=SETS)
        try:
            if most < PAGES:
                gateway.call("notebook_search", {"query": "lantern"})  # waiting documents are indexed before a search
            eventually(lambda: (left := waiting(older)) is not None and left <= most, 120, f"{most} that wait at most")
        finally:
            gateway.process.kill()
            gateway.process.wait()
    check(older)


def test_an_older_gateway_refuses_the_store(older):
    """It knows layouts up to 2 and is told of a newer one; what does not know the tokens can change nothing."""
    gateway = Gateway(older, sets=SETS)
    gateway.process.kill()
    gateway.process.wait()
    with opened(older) as store:
        assert store.execute("PRAGMA user_version").fetchone()[0] > 2
        with pytest.raises(sqlite3.OperationalError, match="no such tokenizer: notegate"):
            store.execute("DROP TABLE search_1")
    check(older)
