# SPDX-License-Identifier: MIT
"""updateNotebookCell with `edits`: texts of a source are replaced, each exactly once, all or none."""

import concurrent.futures
import json

from cells_tools_support import code, gateway, ok, put, refused, who  # noqa: F401 (a fixture among them)

LINES = [f"line_{number} = {number}\n" for number in range(200)]


def edits(*pairs):
    return [{"old_str": old, "new_str": new} for old, new in pairs]


def source(path):
    return "".join(json.loads(path.read_text())["cells"][0]["source"])


def test_texts_are_replaced(gateway):
    path = put(gateway, "edits.ipynb", [code("c", LINES, outputs=[{"output_type": "stream", "name": "stdout", "text": "kept"}])])
    named = {"notebook": "edits.ipynb", "cellId": "c"}
    before = path.read_text().splitlines()
    assert ok(gateway, "updateNotebookCell", {**named, "edits": edits(("line_7 = 7", "line_7 = 'é'"))}) == \
        "Successfully updated cell c (index 0)"
    after = path.read_text().splitlines()
    assert [line for line in after if line not in before] == ['    "line_7 = \'é\'\\n",'] and len(after) == len(before)
    # One after the other: what the first one wrote, the second one finds.
    ok(gateway, "updateNotebookCell", {**named, "edits": edits(("line_0 = 0\n", "a\nb\n"), ("b\nline_1 =", "c ="), ("line_199 = 199\n", ""))})
    assert source(path) == "a\nc = 1\n" + "".join(LINES[2:199]).replace("line_7 = 7", "line_7 = 'é'")
    assert '"kept"' in path.read_text()


def test_each_occurs_exactly_once(gateway):
    path = put(gateway, "once.ipynb", [code("c", "x = 1\ny = 1\nprint(“x”)\naaa\n")])
    named = {"notebook": "once.ipynb", "cellId": "c"}
    before = path.read_bytes()
    error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(("x = 1", "x = 2"), ("z = 1", ""))}, "EDIT_NO_MATCH")
    assert error["message"] == "Failed to update cell: edit 2: the text to replace is not in the cell: 'z = 1'; nothing was changed"
    error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(("= 1", "= 2"))}, "EDIT_AMBIGUOUS")
    assert "edit 1: the text to replace is there more than once (lines 1, 2): '= 1'; nothing was changed" in error["message"]
    refused(gateway, "updateNotebookCell", {**named, "edits": edits(("aa", "b"))}, "EDIT_AMBIGUOUS")  # also where they overlap
    error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(('print("x")', ""))}, "EDIT_NO_MATCH")
    assert "ine 3" in error["hint"], error
    # Nothing was changed: lines are those of the present source, or it is said after which edit.
    first = ("x = 1", "x = 2\nnew = “2”\nnew = 3")
    for second, code_, hint in ((('print("x")', ""), "EDIT_NO_MATCH", "Line 3 has “"),
                                (('new = "2"', ""), "EDIT_NO_MATCH", "After edit 1: Line 2 has “"),
                                (("x = 1", ""), "EDIT_NO_MATCH", "Line 1 has it, but an edit before")):
        error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(first, second)}, code_)
        assert hint in error["hint"], error
    error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(first, ("new", ""))}, "EDIT_AMBIGUOUS")
    assert "more than once after edit 1 (lines 2, 3)" in error["message"], error
    error = refused(gateway, "updateNotebookCell", {**named, "edits": edits(("x = 1", "x\ny"), ("a", "b"))}, "EDIT_AMBIGUOUS")
    assert "more than once (lines 4, 4, ...)" in error["message"], error
    long = refused(gateway, "updateNotebookCell", {**named, "edits": edits(("z" * 5000, ""))}, "EDIT_NO_MATCH")
    assert len(long["message"]) < 500
    for wrong in ({}, {"content": "1", "edits": edits(("x = 1", ""))}, {"edits": []}, {"edits": edits(("", "x"))},
                  {"edits": [{"old_str": "x = 1"}]}, {"edits": edits(("x = 1", "")) * 101}):
        refused(gateway, "updateNotebookCell", {**named, **wrong}, "INVALID_INPUT")
    refused(gateway, "updateNotebookCell", {**named, "edits": edits(("x = 1", "x" * 1_000_001))}, "TOO_LARGE")
    assert path.read_bytes() == before


def test_two_agents_edit_one_cell(gateway):
    """Each changes lines of its own: nothing of either is lost, without revisions."""
    path = put(gateway, "both.ipynb", [code("c", LINES)])

    def work(number):
        for line in range(number, 40, 2):
            ok(gateway, "updateNotebookCell", {"notebook": "both.ipynb", "cellId": "c", "edits": edits((LINES[line], f"done {line}\n"))},
               who(f"agent{number}"))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    assert source(path) == "".join(f"done {line}\n" if line < 40 else text for line, text in enumerate(LINES))
