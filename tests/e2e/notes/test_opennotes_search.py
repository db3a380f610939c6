# SPDX-License-Identifier: MIT
"""opennotes_search on a folder of notes: text, typing errors and filters against oracles of a few lines, SQL, pages,
and refusals."""

import json
import os
import random
import unicodedata

import pytest

from conftest import Gateway

NOTES = 240
WORDS = ("alpha beta gamma delta planning planing plan meeting meting metting project projects prject "
         "review reviews Über über straße STRASSE été cafe café naïve résumé 会議 会議室 メモ проект проекты "
         "ab abc abd acb abcd abcdef bacdfe abdcef badcfe x yz test tset tests rest 100% snake_case a_c "
         "e-mail note2 note3 note23").split()
STATUSES = ["open", "done", "Open", "in progress"]


def fold(text):
    """Case-folded, NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words_of(text):
    """Runs of letters, marks and digits."""
    words, word = [], ""
    for c in text + " ":
        category = unicodedata.category(c)
        if category[0] in "LMN" or category == "Co":
            word += c
        elif word:
            words.append(word)
            word = ""
    return words


def distance(a, b):
    """Insertions, deletions, substitutions, swaps of neighbours."""
    rows = {(i, 0): i for i in range(len(a) + 1)} | {(0, k): k for k in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for k in range(1, len(b) + 1):
            best = min(rows[i - 1, k] + 1, rows[i, k - 1] + 1, rows[i - 1, k - 1] + (a[i - 1] != b[k - 1]))
            if i > 1 and k > 1 and a[i - 1] == b[k - 2] and a[i - 2] == b[k - 1]:
                best = min(best, rows[i - 2, k - 2] + 1)
            rows[i, k] = best
    return rows[len(a), len(b)]


class Note:
    """The oracle's record of a note."""

    def __init__(self, rng, number):
        self.path = rng.choice(["", "a/", "a/b/", "c_d/"]) + f"n{number:03}.md"
        self.front_title = " ".join(rng.choices(WORDS, k=2)) if rng.random() < 0.6 else None
        self.title = self.front_title or f"n{number:03}"  # else the file's name
        self.heading = " ".join(rng.choices(WORDS, k=2)) if rng.random() < 0.5 else None
        self.text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 12))) + f" item{number}code{number % 7}"
        if number % 10 == 3:
            self.text += f" {'q' * 40}alpha{'q' * 40}"  # a word too long for the list of words
        self.status = rng.choice(STATUSES + [None])
        self.rank = rng.choice([None, 1, 2, 10, 2.5])
        self.tags = sorted(rng.sample(["x", "y", "a/b"], k=rng.randrange(3)))
        self.links = []
        self.modified = 1_700_000_000 + rng.randrange(40)

    def write(self, folder, target):
        """Makes the file; some of them link to another note."""
        self.links = [target] if target else []
        front = [f"title: {json.dumps(self.title, ensure_ascii=False)}"] if self.front_title else []
        front += [f"status: {self.status}"] if self.status else []
        front += [f"rank: {self.rank}"] if self.rank is not None else []
        front += [f"tags: [{', '.join(self.tags)}]"] if self.tags else []
        front += [f"meta: {{deep: {{n: {len(self.text)}}}}}"]
        # The last link leads nowhere.
        self.body = (f"# {self.heading}\n\n" if self.heading else "") + self.text + "\n"
        if target:
            up = "../" * self.path.count("/")
            self.body += f"[{WORDS[0]}]({up}{target}) [[nowhere at all]]\n"
        path = folder / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.body_line = len(front) + 2
        path.write_text("---\n" + "\n".join(front) + "\n---\n" + self.body)
        os.utime(path, (self.modified, self.modified))

    def text_rank(self, query):
        """0 title, 1 heading, 2 body, None: not found."""
        if query in fold(self.title):
            return 0
        if query not in fold(self.body):
            return None
        return 1 if self.heading and query in fold(self.heading) else 2

    def fuzzy_rank(self, query):
        """The sum of its words' ranks, None where one has no match."""
        total = 0
        for word in words_of(query):
            edits = 0 if len(word) < 3 else 1 if len(word) < 6 else 2
            best = None
            for place, text in ((0, self.title), (3, self.body)):
                for other in words_of(fold(text)):
                    kind = (0 if other == word else 1 if other.startswith(word)
                            else 2 if edits and distance(word, other) <= edits else None)
                    if kind is not None:
                        best = place + kind if best is None else min(best, place + kind)
            if best is None:
                return None
            total += best
        return total


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A gateway on a folder of random notes, and what the oracle knows of them."""
    folder = tmp_path_factory.mktemp("search")
    rng = random.Random(20260128)
    notes = [Note(rng, number) for number in range(NOTES)]
    for note in notes:
        note.write(folder / "notes", rng.choice(notes).path if rng.random() < 0.4 else None)
    gateway = Gateway(folder / "data", sets=["plugins=opennotes", f"opennotes.notebooks={folder}/notes"])
    yield gateway, notes
    gateway.stop()


def search(gateway, **arguments):
    """One call that succeeds."""
    answer = gateway.call("opennotes_search", arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def refused(gateway, **arguments):
    """One call that fails: its error."""
    answer = gateway.call("opennotes_search", arguments)
    assert answer.status_code >= 400, answer.text
    return answer.json()["error"] if isinstance(answer.json()["error"], dict) else answer.json()


def every(gateway, **arguments):
    """All results, page by page as nextOffset says."""
    results, offset = [], 0
    while True:
        page = search(gateway, offset=offset, **arguments)
        results += page["results"]
        assert page["pagination"]["returned"] == len(page["results"]) > 0 or not page["pagination"]["total"]
        if not page["pagination"]["hasMore"]:
            assert len(results) == page["pagination"]["total"]
            return results
        assert page["pagination"]["nextOffset"] == len(results)
        offset = page["pagination"]["nextOffset"]


def ranked(notes, rank):
    """Paths as the oracle orders them: rank, newest, path."""
    found = [(rank(note), -note.modified, note.path) for note in notes if rank(note) is not None]
    return [path for _, _, path in sorted(found)]


QUERIES = ["alpha", "ALPHA", "plan", "ab", "x", "é", "ÉTÉ", "strasse", "Straße", "100%", "%", "_", "a_c", "snake_c",
           "会議", "会", "メモ", "ПРОЕКТ", " ", "zzz", "note2", "e-m", "\"", "'", "*", "\\", "# ", "](",
           "resume", "naïve", "a" * 300,
           "n123", "N04", "item", "item1", "tem17c", "code3", "qalphaq", "q" * 64, "q" * 65, "lph"]


@pytest.mark.parametrize("query", QUERIES)
def test_text(notebook, query):
    gateway, notes = notebook
    wanted = ranked(notes, lambda note: note.text_rank(fold(query)))
    assert [row["path"] for row in every(gateway, query=query, limit=37)] == wanted


# Several pieces, and what of them is looked for.
PIECES = {"alpha beta": ["alpha", "beta"], "planning project": ["plan", "project"], "lpha al": ["lpha", "al"],
          "what about the items?": ["item"], "'%' zzz": ["%", "zzz"], "zzz yyyyy": ["zzz", "yyyyy"]}


@pytest.mark.parametrize("query", PIECES)
def test_text_any(notebook, query):
    """The whole text first, then notes by how many of its pieces they have."""
    gateway, notes = notebook

    def rank(note):
        whole = note.text_rank(fold(query))
        held = sum(piece in fold(note.title) or piece in fold(note.body) for piece in PIECES[query])
        return (whole - 1000 if whole is not None else -held) if whole is not None or held else None
    assert [row["path"] for row in every(gateway, query=query, limit=37)] == ranked(notes, rank)


@pytest.mark.parametrize("query", [query for query in QUERIES if query.strip()])
def test_text_line_and_excerpt(notebook, query):
    """Each hit tells its first line, and at most 200 bytes around it that are in the text."""
    gateway, notes = notebook
    by_path = {note.path: note for note in notes}
    for row in every(gateway, query=query, limit=50):
        note = by_path[row["path"]]
        body, wanted = fold(note.body), fold(query)
        line = body[:body.index(wanted)].count("\n") + 1 if wanted in body else 1
        assert row["line"] == line + note.body_line
        assert row["excerpt"] in note.body and len(row["excerpt"].encode()) <= 200
        if wanted in body and len(wanted.encode()) < 100:
            assert wanted.strip() in fold(row["excerpt"])


def test_decomposed_query(notebook):
    gateway, notes = notebook
    wanted = ranked(notes, lambda note: note.text_rank(fold("été")))
    assert wanted
    assert [row["path"] for row in every(gateway, query=unicodedata.normalize("NFD", "ÉTÉ"))] == wanted


FUZZY = ["alpha", "alhpa", "alpa", "alphaa", "aXpha", "plnaning", "planing", "projcet", "meetng", "tset", "abc", "ab",
         "x", "abcdef", "badcef", "bacdfe", "abdcfe", "uber", "Über", "strase", "проекь", "会議", "会議質", "résmué", "note2",
         "alpha betta", "projekt reveiw", "zzzzzz", "pl", "p", "naive", "e-mail", "100%"]


@pytest.mark.parametrize("query", FUZZY)
def test_fuzzy(notebook, query):
    gateway, notes = notebook
    wanted = ranked(notes, lambda note: note.fuzzy_rank(fold(query)))
    got = [row["path"] for row in every(gateway, query=query, fuzzy=True, limit=50)]
    assert got == wanted


def test_two_swaps_share_no_trigram(notebook):
    gateway, notes = notebook
    with_word = {note.path for note in notes if "bacdfe" in words_of(note.body + " " + note.title)}
    assert with_word
    assert with_word <= {row["path"] for row in every(gateway, query="abcdef", fuzzy=True)}


CONDITIONS = {
    "data.status=open": lambda n: n.status == "open",
    "data.status!=open": lambda n: n.status != "open",
    "data.status = \"in progress\"": lambda n: n.status == "in progress",
    "data.status~OPEN": lambda n: n.status is not None and "open" in n.status.lower(),
    "data.status>e": lambda n: n.status is not None and n.status > "e",
    "data.rank=2": lambda n: n.rank == 2,
    "data.rank=2.0": lambda n: n.rank == 2,
    "data.rank!=2": lambda n: n.rank != 2,
    "data.rank>2": lambda n: n.rank is not None and n.rank > 2,
    "data.rank>=2": lambda n: n.rank is not None and n.rank >= 2,
    "data.rank<10": lambda n: n.rank is not None and n.rank < 10,
    "data.rank<=1": lambda n: n.rank is not None and n.rank <= 1,
    "data.tag=x": lambda n: "x" in n.tags,
    "data.tags=a/b": lambda n: "a/b" in n.tags,
    "data.tags!=y": lambda n: "y" not in n.tags,
    "data.tags~a": lambda n: any("a" in tag for tag in n.tags),
    "data.nothing=1": lambda n: False,
    "data.nothing!=1": lambda n: True,
    "data.meta.deep.n>40": lambda n: len(n.text) > 40,
    "path=*.md": lambda n: "/" not in n.path,
    "path=a/*.md": lambda n: n.path.startswith("a/") and n.path.count("/") == 1,
    "path=a/**": lambda n: n.path.startswith("a/"),
    "path=c_d/n0?[0-4].md": lambda n: n.path.startswith("c_d/n0") and n.path[7] in "01234",
    "path!=a/**": lambda n: not n.path.startswith("a/"),
    "path~C_D": lambda n: "c_d" in n.path,
    "path<a/n100.md": lambda n: n.path < "a/n100.md",
    "title~ALPHA": lambda n: "alpha" in n.title.lower(),
    "title!=x": lambda n: n.title != "x",
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filter(notebook, condition):
    gateway, notes = notebook
    holds = CONDITIONS[condition]
    paths = {note.path for note in notes}
    wanted = {note.path for note in notes if holds(note)}
    got = every(gateway, filters={"and": [condition]}, limit=100)
    assert {row["path"] for row in got} == wanted
    assert len(got) == len(wanted)
    assert {row["path"] for row in every(gateway, filters={"not": [condition]})} == paths - wanted


def test_filters_combine(notebook):
    gateway, notes = notebook
    answer = search(gateway, limit=1000, query="alpha", filters={
        "and": ["data.rank>=1"], "or": ["data.tag=x", "data.tag=y"], "not": ["path=a/**", "data.status=done"]})
    wanted = [path for path in ranked(notes, lambda note: note.text_rank("alpha"))
              for note in notes if note.path == path and note.rank and {"x", "y"} & set(note.tags)
              and not path.startswith("a/") and note.status != "done"]
    assert [row["path"] for row in answer["results"]] == wanted
    assert answer["query"]["type"] == "text"
    assert "alpha" in answer["query"]["executed"] and "data.rank" in answer["query"]["executed"]
    assert search(gateway, filters={"and": ["data.tag=x"]})["query"]["type"] == "boolean"


def test_links(notebook):
    gateway, notes = notebook
    target = next(note.links[0] for note in notes if note.links)
    to = {note.path for note in notes if target in note.links}
    assert {row["path"] for row in every(gateway, filters={"and": [f"links-to={target}"]})} == to
    assert {row["path"] for row in every(gateway, filters={"and": [f"links-to={target[:-3]}"]})} == to
    assert {row["path"] for row in every(gateway, filters={"not": [f"links-to={target}"]})} == {
        note.path for note in notes} - to
    source = next(note for note in notes if note.links)
    assert {row["path"] for row in every(gateway, filters={"and": [f"linked-by!={source.path}"]})} == {
        note.path for note in notes} - set(source.links)
    assert [row["path"] for row in every(gateway, filters={"and": [f"linked-by={source.path}"]})] == source.links
    assert {row["path"] for row in every(gateway, filters={"and": ["links-to=a/**"]})} == {
        note.path for note in notes if note.links and note.links[0].startswith("a/")}


@pytest.mark.parametrize("condition", ["status=open", "data.=x", "data.status", "data..x=1", "=x", "", "data.x==1",
                                       "data.x=~1", "data.x<>1", "path=", "links-to>x", "data.x LIKE 'y'", "tag=x"])
def test_bad_condition(notebook, condition):
    gateway, _ = notebook
    error = refused(gateway, filters={"or": [condition]})
    assert error["code"] == "INVALID_PARAMS"
    assert f'"{condition}"' in error["message"]
    assert error["hint"]


@pytest.mark.parametrize("arguments", [
    {"sql": "SELECT 1", "query": "x"}, {"sql": "SELECT 1", "filters": {}}, {"sql": "SELECT 1", "fuzzy": True},
    {"fuzzy": True}, {"limit": 0}, {"limit": 1001}, {"offset": -1}, {"filters": {"xor": []}}, {"query": 1},
    {"filters": {"and": "data.x=1"}}, {"filters": {"and": [1]}}, {"unknown": 1},
    {"filters": {"and": ["data.x=1"] * 101}}])
def test_bad_arguments(notebook, arguments):
    gateway, _ = notebook
    assert refused(gateway, **arguments)["code"] == "INVALID_PARAMS"


def test_everything(notebook):
    gateway, notes = notebook
    wanted = [path for _, path in sorted((-note.modified, note.path) for note in notes)]
    for arguments in ({}, {"query": ""}, {"filters": {}}, {"filters": {"and": []}}):
        assert [row["path"] for row in every(gateway, **arguments)] == wanted


def test_summary_of_a_note(notebook):
    gateway, notes = notebook
    by_path = {note.path: note for note in notes}
    for row in every(gateway, query="plan"):
        note = by_path[row["path"]]
        assert row.get("title") == note.title
        assert row.get("tags", []) == note.tags
        assert row["modified"].startswith("2023-11-14T")


def test_sql(notebook):
    gateway, notes = notebook
    rows = every(gateway, sql="SELECT file_path, title, metadata ->> 'rank' AS rank, tags, content, word_count "
                              "FROM read_markdown('**/*.md') ORDER BY file_path", limit=50)
    assert [row["file_path"] for row in rows] == sorted(note.path for note in notes)
    by_path = {note.path: note for note in notes}
    for row in rows:
        note = by_path[row["file_path"]]
        assert row["title"] == note.title and row["rank"] == note.rank
        assert json.loads(row["tags"]) == note.tags and row["content"] == note.body
    answer = search(gateway, sql="SELECT count(*) AS n FROM read_markdown('**') n, md_links(n.content) l")
    assert answer["results"] == [{"n": sum(2 * len(note.links) for note in notes)}]
    assert answer["query"] == {"type": "sql", "executed": "SELECT count(*) AS n FROM read_markdown('**') n, "
                                                          "md_links(n.content) l"}
    rows = search(gateway, sql="SELECT h.text FROM read_markdown('**') n, md_headings(n.content) h")
    assert rows["pagination"]["total"] == sum(note.heading is not None for note in notes)


@pytest.mark.parametrize("sql, code", [
    ("DELETE FROM read_markdown", "INVALID_SQL"), ("SELECT * FROM notes", "INVALID_SQL"),
    ("ATTACH '/etc/passwd' AS p", "INVALID_SQL"), ("SELECT metadata['title'] FROM read_markdown", "INVALID_SQL"),
    ("SELECT * FROM read_markdown('../**')", "PATH_TRAVERSAL"),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100001) SELECT i FROM n", "INVALID_SQL")])
def test_sql_refused(notebook, sql, code):
    gateway, _ = notebook
    error = refused(gateway, sql=sql)
    assert error["code"] == code, error
    assert error["hint"]


def test_sql_that_never_ends(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("text\n")
    gateway = Gateway(tmp_path / "data", sets=["plugins=opennotes", f"opennotes.notebooks={folder}",
                                               "opennotes.query_timeout=200ms"])
    try:
        error = refused(gateway, sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n")
        assert error["code"] == "QUERY_TIMEOUT" and "0.2s" in error["message"] and error["hint"]
        assert search(gateway, query="text")["pagination"]["total"] == 1
    finally:
        gateway.stop()


def test_note_larger_than_an_answer(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text("é" * 60_000 + f" number{number}\n")
    gateway = Gateway(tmp_path / "data", sets=["plugins=opennotes", f"opennotes.notebooks={folder}"])
    try:
        rows = every(gateway, sql="SELECT file_path, content FROM read_markdown ORDER BY 1")
        assert [row["file_path"] for row in rows] == [f"{number}.md" for number in range(5)]
        assert all(row["truncated"] and set(row["content"]) <= {"é", "…"} for row in rows)
        assert [row["path"] for row in every(gateway, query="NUMBER3")] == ["3.md"]
        (folder / "3.md").write_text("nothing\n")
        assert every(gateway, query="NUMBER3") == []
    finally:
        gateway.stop()
