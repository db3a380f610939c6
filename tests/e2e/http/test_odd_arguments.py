# SPDX-License-Identifier: MIT
"""Every argument of every tool is given each value of a list of odd ones: what comes is an answer or an error that says what was
wrong, never a fault of the gateway, and it lives. Under the sanitizers this finds what reads or writes beside its memory."""

import concurrent.futures
import http.client
import json
import os
import threading

import pytest
from cells_tools_support import code
from cli_support import notegate
from conftest import Gateway
from mcp_support import Lines, Session, call, modern

PLUGINS = "plugins=notebook,file_editor,cells,opennotes,agent_notebook,search,history"
# Longer than a call may take (limits.call_timeout): what is slow answers TIMEOUT.
SECONDS = 180
THREADS = 4
# All values under the address sanitizer, which sees most. Elsewhere each argument gets a part of them, another one than the argument
# before it; under the thread sanitizer, as thread by thread the same code runs, a small one.
EVERY = {"asan": 1, "tsan": 7}.get(os.environ.get("NOTEGATE_TEST_PRESET"), 2)

TEXTS = [
    "", " ", "\0", "a\0b", "\n", "\r", "\t", "/", "//", ".", "..", "../", "~", "-", ",", ",,", ":", "::", ";", "|", "*", "%", "%00", "%s%n", "\\",
    "'", '"', "`", "[", "]", "{", "}", "[[", "(", "(?", "[^]", "=", "#", "# ", "---", "---\n", "---\n---", "```", "&", "<", "@", "\ufeff", "\u2028",
    "\ud800", "\udc00x", "\uffff", "\U0010ffff", "e\u0301" * 3, "null", "NaN", "-0", "1e999", "2147483648", "9007199254740993",
    "99999999999999999999", "index:", "index:-1", "index:0", "index:99999999999999999999", "index:0x", "2026-02-30", "0000-00-00T00:00:00Z",
    "x" * 300, "é" * 300, "/" * 300, "../" * 100, "[" * 300, "a\n" * 2000, "- " * 300,
]
NUMBERS = [0, -1, 1, 2, 0.5, -0.0, 2**31 - 1, 2**31, -2**31 - 1, 2**32, 2**53, 2**53 + 1, -2**53 - 1, 2**63 - 1, 2**63, -2**63, 2**64, 1e308, -1e308,
           5e-324, 10**400]
DEEP = "[" * 60 + "]" * 60
OTHERS = [None, True, False, [], {}, [[]], [{}], [None], {"": ""}, {"\0": "\0"}, {"a": {"b": {"c": []}}}, json.loads(DEEP), ["x"] * 300, [""] * 2000,
          {str(number): number for number in range(300)}]
VALUES = TEXTS + NUMBERS + OTHERS

NOTE = "---\ntitle: Note\ntags: [a, b]\n---\n# Note\n\ntext [[other]]\n\n## Part\n\nmore\n"
CELLS = [code("c", "1", outputs=[{"output_type": "stream", "name": "stdout", "text": ["out\n"]}]), code("d", "2"),
         {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# text"}]
# A kernel that is not there: what comes before the start of one is tried, at no cost.
KERNEL = {"kernel": "no-such-kernel"}
IPYNB = {"notebook": "odd.ipynb"}

# Calls that succeed or come far, of which one argument at a time is made odd. A new tool belongs in here.
CALLS = {
    "notebook": [{"mode": "create", "name": "n", "newStr": "one\ntwo"}, {"mode": "list"}, {"mode": "read", "name": "n", "readRange": [1, 2]},
                 {"mode": "write", "name": "n", "oldStr": "one", "newStr": "uno"}, {"mode": "write", "name": "n", "insertLine": 1, "newStr": "x"},
                 {"mode": "clear", "name": "n"}, {"mode": "undo", "name": "n"}, {"mode": "search", "query": "o"}, {"mode": "rename", "name": "n", "newName": "m"},
                 {"mode": "delete", "name": "m"}],
    "fileEditor": [{"command": "view", "path": "odd.txt", "view_range": [1, 2]}, {"command": "view", "path": "."},
                   {"command": "create", "path": "new.txt", "file_text": "text\n"},
                   {"command": "str_replace", "path": "odd.txt", "old_str": "one", "new_str": "uno"},
                   {"command": "insert", "path": "odd.txt", "insert_line": 1, "new_str": "x"}, {"command": "undo_edit", "path": "odd.txt"},
                   {"command": "search", "path": ".", "pattern": "o(n)e", "regex": True, "ignore_case": True, "glob": "*.txt", "max": 9}],
    "runNotebookCells": [{**IPYNB, **KERNEL, "cellIds": ["c"]}, {**IPYNB, "cellIds": ["m"], "timeout": 1}],
    "addNotebookCell": [{**IPYNB, "type": "code", "index": 0, "content": "x"}],
    "updateNotebookCell": [{**IPYNB, "cellId": "c", "content": "x"},
                           {**IPYNB, "cellId": "c", "edits": [{"old_str": "x", "new_str": "y"}]}],
    "getNotebookCells": [{**IPYNB, "cellIds": ["c"]}], "getCellOutputs": [{**IPYNB, "cellId": "c", "offset": 1, "format": "html"}],
    "attachNotebook": [{**IPYNB, "active": True}], "detachNotebook": [IPYNB],
    "selectNotebookCells": [{**IPYNB, "cellIds": ["c"], "active": "c"}], "getNotebookContext": [IPYNB],
    "createNotebook": [{"notebook": "made.ipynb", **KERNEL, "cells": [{"type": "raw", "content": "x"}], "run": False}], "deleteNotebookCells": [{**IPYNB, "cellIds": ["c"]}],
    "moveNotebookCell": [{**IPYNB, "cellId": "c", "index": 1}], "clearCellOutputs": [{**IPYNB, "cellIds": ["c"]}, IPYNB],
    "getNotebookRun": [{"run": "none"}], "interruptKernel": [IPYNB], "restartKernel": [IPYNB], "listKernels": [{}],
    "listNotebooks": [{"path": ".", "limit": 5}],
    "opennotes_search": [{"query": "text", "fuzzy": True}, {"filters": {"and": ["data.tag=a"]}}, {"sql": "SELECT * FROM read_markdown('**/*.md')"}],
    "opennotes_list": [{"pattern": "*.md", "sortBy": "path", "sortOrder": "asc", "limit": 5, "offset": 0}],
    "opennotes_get": [{"path": "odd.md"}, {"path": "odd.md", "section": "Part"}, {"path": "odd.md", "startLine": 2, "maxLines": 2}],
    "opennotes_create": [{"title": "New", "path": "sub", "content": "text", "data": {"k": "v"}}],
    "opennotes_edit": [{"path": "odd.md", "operation": "append", "content": "x"}, {"path": "odd.md", "operation": "set", "data": {"k": "v"}},
                       {"path": "odd.md", "operation": "replace_section", "section": "Part", "content": "x"},
                       {"path": "odd.md", "operation": "append", "section": "Part", "content": "x"},
                       {"path": "odd.md", "operation": "str_replace", "oldStr": "text", "newStr": "text"},
                       {"path": "odd.md", "operation": "undo"}],
    "opennotes_move": [{"path": "odd.md", "to": "sub/moved.md"}, {"path": "sub", "to": "other"}], "opennotes_delete": [{"path": "odd.md"}],
    "opennotes_daily": [{"date": "2026-01-02", "content": "x"}, {"date": "2026-01-02", "content": "x", "section": "Part"}],
    "opennotes_views": [{"view": "kanban", "params": {"status": "open"}}],
    "opennotes_links": [{"path": "odd.md", "kind": "backlinks"}, {"path": "odd.md"}], "opennotes_tags": [{"prefix": "a"}], "opennotes_notebooks": [{}],
    "notebook_create": [{"collection": "pages", "title": "Page", "content": "# Page\n\ntext"},
                        {"collection": "research_notes", "title": "Note", "content": "text", "key_findings": ["a"], "confidence": 0.5}],
    "notebook_read": [{"collection": "pages", "notebook_id": "{page}", "start_line": 1, "max_lines": 5}],
    "notebook_update": [{"collection": "pages", "notebook_id": "{page}", "append": "x"},
                        {"collection": "pages", "notebook_id": "{page}", "edits": [{"old_str": "text", "new_str": "text"}]},
                        {"collection": "pages", "notebook_id": "{page}", "section": "Part", "content": "x"},
                        {"notebook_id": "{page}", "section": "Part", "append": "x"}],
    "notebook_search": [{"query": "text", "collection": "pages", "tags": ["a"]}], "notebook_list": [{"collection": "pages"}, {"deleted": True}],
    "notebook_delete": [{"collection": "pages", "notebook_id": "{page}"}, {"notebook_id": "{page}", "purge": True}], "notebook_history": [{"collection": "pages", "notebook_id": "{page}"}],
    "notebook_diff": [{"collection": "pages", "notebook_id": "{page}", "from": 1, "to": 1, "offset": 1, "max_bytes": 9}],
    "notebook_restore": [{"collection": "pages", "notebook_id": "{page}", "version": 1}, {"notebook_id": "{page}"}],
    "memory_log": [{"content": "text", "source": "s", "tags": ["a"], "score": 0.5}], "memory_recall": [{"query": "text", "tags": ["a"], "since": "1d"}],
    "memory_delete": [{"id": "none"}],
    "memory_timeline": [{"date": "2026-01-02", "limit": 5, "offset": 1}], "memory_summary": [{"text": "x", "mode": "append"}, {}],
    "history_log": [{"agent": "a", "run": ["r"], "tool": "t", "action": "updated", "collection": "pages", "space": "shared", "id": "x*",
                     "since": "#1", "until": "now", "limit": 5, "cursor": "9"}],
    "history_read": [{"collection": "pages", "id": "{page}", "at": "1", "start_line": 1, "max_lines": 5}, {"collection": "pages", "cursor": "a"}],
    "history_diff": [{"collection": "pages", "id": "{page}", "to": "now", "from": "1", "context": 2},
                     {"agent": "a", "tool": ["t"], "action": "updated", "collection": "pages", "space": "shared", "id": "x*",
                      "since": "#1", "until": "now", "context": 2, "cursor": "9-9"}],
    "history_blame": [{"collection": "pages", "id": "{page}", "at": "now", "start_line": 1, "max_lines": 5}],
    "history_undo": [{"agent": "a", "run": ["r"], "tool": "t", "action": "updated", "collection": "pages", "space": "shared", "id": "x*",
                      "since": "#1", "until": "now", "changes": [1], "upto": 5, "dry_run": True}, {"continue": "undo-x"}],
    "history_restore": [{"collection": "pages", "id": "{page}", "at": "1", "expectedRevision": 1}],
    "search": [{"query": "text", "kinds": ["page", "cell"], "limit": 2, "cursor": "0"}, {"query": "text", "kinds": ["file"]}, {"query": "text"}],
    "checkpoint_snapshot": [{"label": "x"}], "checkpoint_list": [{"limit": 5}], "checkpoint_diff": [{"checkpoint_id": "{checkpoint}"}],
    "checkpoint_restore": [{"checkpoint_id": "{checkpoint}", "notebooks": False}], "checkpoint_delete": [{"checkpoint_id": "{checkpoint}"}],
}

WHOLE = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def with_cell(**cell):
    return json.dumps({**WHOLE, "cells": [{**CELLS[0], **cell}]})


BROKEN = {
    "empty": "", "space": " \n", "null": "null", "number": "7", "list": "[]", "object": "{}", "cut": json.dumps(WHOLE)[:-40], "nul": "\0" * 100,
    "binary": b"\xff\xfe\x00\x80" * 50, "deep": "[" * 5000, "no cells": '{"nbformat":4,"nbformat_minor":5,"metadata":{}}',
    "cells are text": json.dumps({**WHOLE, "cells": "x"}), "cells of anything": json.dumps({**WHOLE, "cells": [1, None, "x", [], {}]}),
    "none": json.dumps({**WHOLE, "cells": []}), "format 3": '{"nbformat":3,"nbformat_minor":0,"worksheets":[]}',
    "odd format": json.dumps({**WHOLE, "nbformat": 2**63, "nbformat_minor": -1}), "metadata is text": json.dumps({**WHOLE, "metadata": "x"}),
    "empty id": with_cell(id=""), "id is a number": with_cell(id=5), "long id": with_cell(id="x" * 300), "same ids": json.dumps({**WHOLE, "cells": CELLS * 2}),
    "odd source": with_cell(source=[1, None, {}]), "source is null": with_cell(source=None), "half a character": with_cell(source="\ud800"),
    "odd outputs": with_cell(outputs=[1, {}, {"output_type": "stream"}, {"output_type": "display_data", "data": {"image/png": "?", "text/plain": 7}}]),
    "outputs is text": with_cell(outputs="x"), "unknown type": with_cell(cell_type="chart"), "type is a list": with_cell(cell_type=[]),
    "huge count": with_cell(execution_count=2**64), "lines without ends": with_cell(source=["a", "b", "", "\n", "\r"]),
    "same members": '{"cells":[],"cells":[{}],"metadata":{},"nbformat":4,"nbformat_minor":5}',
}
# No call changes these.
NO_NOTEBOOKS = ("empty", "space", "null", "number", "list", "object", "cut", "nul", "binary", "deep", "no cells", "cells are text", "format 3")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("odd") / "data", [PLUGINS, "journal=documents", "limits.result=2MiB"])
    files = running.data_dir / "files"
    files.mkdir(parents=True, exist_ok=True)
    lay_out(files)
    yield running
    status = running.stop()
    log = "".join(running.errors)
    assert status == 0 and "runtime error" not in log and "Sanitizer" not in log, log[-5000:]


def lay_out(files):
    """Documents of the calls, in their first state."""
    (files / "odd.ipynb").write_text(json.dumps(WHOLE))
    (files / "odd.txt").write_text("one\ntwo\n")
    (files / "odd.md").write_text(NOTE)
    (files / ".opennotes.json").write_text("{}")


class Caller:
    """Plain HTTP on a kept connection: there are tens of thousands of calls."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=SECONDS)
        self.headers = {"Content-Type": "application/json", "X-Notegate-Agent": f"odd{threading.get_ident() % 97}"}

    def call(self, tool, arguments):
        body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        try:
            self.connection.request("POST", f"/v1/tools/{tool}", body, self.headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError(f"{tool} {body[:300]}: no answer ({error!r}); the gateway {self.gateway.process.poll()}") from error
        return answer.status, json.loads(text)

    def check(self, tool, arguments):
        """An answer or a refusal, and nothing that says the gateway was at fault."""
        status, body = self.call(tool, arguments)
        shown = f"{tool} {json.dumps(arguments)[:300]}: {status} {json.dumps(body)[:300]}"
        if status == 200:
            assert not body.get("error"), shown
            return
        assert body.get("error") is True and body["message"] and body["code"] != "INTERNAL" and status != 500, shown
        # BUSY: several threads call at once, and a space is restored by one call at a time.
        assert 400 <= status < 500 or body["code"] in ("QUERY_TIMEOUT", "TIMEOUT", "BUSY"), shown


def odd_for(schema):
    """The odd values of an argument: itself, and where it holds others, those."""
    yield from VALUES
    if schema.get("type") == "array":
        items = schema.get("items", {})
        inner = list(odd_for(items)) if items.get("type") == "object" else VALUES
        for value in inner:
            yield [value]
            yield [value, value]
    if schema.get("type") == "object":
        for name, member in schema.get("properties", {}).items():
            for value in odd_for(member):
                yield {name: value}
        if not schema.get("properties"):
            for value in VALUES:
                yield {"k": value}
            for text in TEXTS:
                yield {text: "v"}


def fill(arguments, names):
    return {name: names.get(value.strip("{}"), value) if isinstance(value, str) else value for name, value in arguments.items()}


def fresh(caller):
    """A page and a checkpoint to be read, changed and deleted."""
    page = caller.call("notebook_create", {"collection": "pages", "title": "Page", "content": "# Page\n\ntext\n\n## Part\n\nmore"})
    checkpoint = caller.call("checkpoint_snapshot", {"label": "odd"})
    assert page[0] == checkpoint[0] == 200, (page, checkpoint)
    return {"page": page[1]["result"]["notebook_id"], "checkpoint": checkpoint[1]["result"]["checkpoint_id"]}


def tools_of(gateway):
    caller = Caller(gateway)
    assert caller.call("attachNotebook", IPYNB)[0] == 200
    assert caller.call("opennotes_list", {})[0] == 200  # from here on its tools are listed
    listed = gateway.client.get("/v1/tools", headers={"X-Notegate-Agent": caller.headers["X-Notegate-Agent"]}).json()["tools"]
    return {tool["name"]: tool["inputSchema"] for tool in listed}


def test_every_argument_of_every_tool(gateway):
    schemas = tools_of(gateway)
    assert set(schemas) == set(CALLS), "each tool has calls that come far"
    work = []
    for tool, calls in CALLS.items():
        given = set()
        for base in calls:
            work += [(tool, base, name) for name in base]
            given |= set(base)
        work += [(tool, calls[0], name) for name in schemas[tool]["properties"] if name not in given]
        work.append((tool, calls[0], "an unknown one"))
    local = threading.local()

    def one(item):
        number, (tool, base, name) = item
        if not hasattr(local, "caller"):
            local.caller = Caller(gateway)
            local.names = fresh(local.caller)
        if "{page}" in base.values() or "{checkpoint}" in base.values():
            local.names = fresh(local.caller)
        lay_out(gateway.data_dir / "files")
        values = list(odd_for(schemas[tool]["properties"].get(name, {})))[number % EVERY::EVERY]
        for value in values:
            local.caller.check(tool, {**fill(base, local.names), name: value})
        return len(values)

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        counts = list(pool.map(one, enumerate(work)))
    assert gateway.process.poll() is None and gateway.client.get("/healthz").status_code == 200
    assert sum(counts) > 30000 // EVERY, "that many there are"


ERROR_BYTES_MAX = 4096
BODY_MAX = 4 * 1024 * 1024
LENGTHS = (1, 1000, 100_000)


def texts_of(schema):
    """Where an argument can hold a long text: ways to put it there."""
    yield lambda text: text
    if schema.get("type") == "array":
        yield lambda text: [text]
    if schema.get("type") == "object" or schema.get("items", {}).get("type") == "object":
        yield lambda text: {text: text[:1]}
        yield lambda text: [{text: text[:1]}]
        for name in {**schema.get("properties", {}), **schema.get("items", {}).get("properties", {})}:
            yield lambda text, name=name: {name: text}
            yield lambda text, name=name: [{name: text}]


def check_error(caller, tool, arguments, shown):
    status, body = caller.call(tool, arguments)
    if status == 200:
        return
    said = body["message"] + body.get("hint", "")
    assert body["message"] and len(said.encode()) < ERROR_BYTES_MAX, (tool, shown, len(said), said[:200], said[-200:])
    assert len(json.dumps(body.get("details", {}), ensure_ascii=False).encode()) < ERROR_BYTES_MAX, (tool, shown, list(body["details"]))


@pytest.mark.parametrize("letter", [pytest.param("é", marks=pytest.mark.long), "a b\n"])
def test_errors_are_short(gateway, letter):
    """However long what was sent is: what an error says of it is cut, and never nothing."""
    schemas = tools_of(gateway)
    caller = Caller(gateway)
    for tool, calls in CALLS.items():
        for base in calls:
            arguments = fill(base, fresh(caller)) if any(isinstance(value, str) and "{" in value for value in base.values()) else base
            for length in LENGTHS:
                text = letter * (length // len(letter.encode()) or 1)
                lay_out(gateway.data_dir / "files")
                check_error(caller, tool, {**arguments, text: 1}, ("an unknown one", length))
                for name in set(schemas[tool]["properties"]) - set(base) if base is calls[0] else ():
                    check_error(caller, tool, {**arguments, name: text}, (name, length))
                for name in base:
                    for put in texts_of(schemas[tool]["properties"].get(name, {})):
                        check_error(caller, tool, {**arguments, name: put(text)}, (name, length))
    for tool, calls in CALLS.items():
        for name in schemas[tool]["properties"]:
            check_error(caller, tool, {**calls[0], name: letter * ((BODY_MAX - 4096) // len(letter.encode()))}, (name, "the limit"))
    many = {"x" * 300 + str(number): number for number in range(2000)}
    for tool, calls in CALLS.items():
        check_error(caller, tool, {**calls[0], **many}, "many")


# What a model or a person reads of an error is below ERROR_BYTES_MAX. A REST answer has that and the details, a member each, which are
# below it, too; an MCP answer has the text, and the REST answer once more for programs.
ANSWER_BYTES_MAX = {"rest": 2 * ERROR_BYTES_MAX, "mcp": 3 * ERROR_BYTES_MAX}
LONG_CALLS = [("notebook", {"mode": "write", "name": "default", "oldStr": "{long}", "newStr": "x"}), ("notebook", {"mode": "{long}", "{long}": 1}),
              ("fileEditor", {"command": "str_replace", "path": "{files}/odd.txt", "old_str": "{long}", "new_str": "x"}),
              ("fileEditor", {"command": "view", "path": "{files}/{long}"}), ("getNotebookCells", {"notebook": "odd.ipynb", "cellIds": ["{long}"]}),
              ("fileEditor", {"command": "view", "path": "{long}"}), ("notebook", {"mode": "read", "name": "{long}"}),
              ("notebook_read", {"notebook_id": "{long}"}), ("getNotebookCells", {"notebook": "odd.ipynb", "cellIds": ["{long}"] * 12}),
              ("opennotes_get", {"path": "x.md", "notebook": "{long}"}), ("memory_recall", {"query": "x", "since": "{long}"}),
              ("opennotes_search", {"sql": "{long}"}), ("opennotes_views", {"view": "{long}"}), ("notebook_list", {"limit": "{long}"}),
              ("notebook_list", {"x" * 300 + str(number): number for number in range(40)})]


def rest_answer(gateway, tool, arguments):
    answer = gateway.call(tool, arguments)
    return "rest", answer.content, answer.json()["message"] + answer.json().get("hint", "")


def mcp_answer(content):
    message = json.loads(content)
    assert message["result"]["isError"] is True
    return "mcp", content, message["result"]["content"][0]["text"]


def command_line_answer(gateway, tool, arguments):
    done = notegate("call", "--data-dir", str(gateway.data_dir), tool, "-", stdin=json.dumps(arguments))
    return "rest", done.stderr.encode(), done.stderr


@pytest.mark.parametrize("filling", ["é b ", "\1", "A"])
@pytest.mark.parametrize("length", [1000, 30_000])
def test_whole_errors_are_short(gateway, length, filling):
    """By every way, with what they have for programs. A control character has six bytes in JSON."""
    lay_out(gateway.data_dir / "files")
    session, lines = Session(gateway), Lines(gateway.data_dir)
    lines.initialize()

    def relayed(tool, arguments):
        lines.send(call(tool, arguments, number=7))
        while (message := lines.next()).get("id") != 7:
            pass
        return mcp_answer(json.dumps(message, ensure_ascii=False).encode())

    def stateless(tool, arguments):
        message, headers = modern({"name": tool, "arguments": arguments})
        return mcp_answer(gateway.client.post("/mcp", json=message, headers={**headers, "Accept": "application/json"}).content)

    ways = {"rest": lambda *given: rest_answer(gateway, *given), "command line": lambda *given: command_line_answer(gateway, *given),
            "handshake": lambda *given: mcp_answer(session.post(call(*given)).content), "modern": stateless, "relay": relayed}
    for tool, given in LONG_CALLS:
        given = json.dumps(given).replace("{files}", str(gateway.data_dir / "files"))
        arguments = json.loads(given.replace("{long}", json.dumps(filling * (length // len(filling.encode())))[1:-1]))
        for way, ask in ways.items():
            kind, content, text = ask(tool, arguments)
            assert 0 < len(text.encode()) < ERROR_BYTES_MAX, (way, tool, len(text), text[:200])
            assert len(content) < ANSWER_BYTES_MAX[kind], (way, tool, len(content))
    session.close()
    assert lines.end() == 0


@pytest.mark.parametrize(("tool", "arguments", "cause"), [
    ("fileEditor", {"command": "view", "path": "{long}"}, "is not an absolute path"),
    ("fileEditor", {"command": "move", "path": "{files}/odd.txt", "destination": "{long}"}, "is not an absolute path"),
    ("notebook", {"mode": "read", "name": "{long}"}, "not found"),
    ("getNotebookCells", {"notebook": "odd.ipynb", "cellIds": [f"none{number}" for number in range(500)]}, "none9 and 490 more"),
])
@pytest.mark.parametrize("length", [300, 1450, 1500, 3000])
def test_a_long_text_does_not_hide_the_cause(gateway, tool, arguments, cause, length):
    lay_out(gateway.data_dir / "files")
    given = json.dumps(arguments).replace("{files}", str(gateway.data_dir / "files")).replace("{long}", "A" * length)
    assert cause in gateway.call(tool, json.loads(given)).json()["message"]


def test_places_of_a_text_are_counted(gateway):
    (gateway.data_dir / "files" / "many.txt").write_text("one\n" * 40000)
    caller = Caller(gateway)
    status, body = caller.call("fileEditor", {"command": "str_replace", "path": str(gateway.data_dir / "files" / "many.txt"), "old_str": "e", "new_str": "x"})
    assert status >= 400
    assert body["message"] == ("No replacement was performed. Multiple occurrences of old_str `e` in lines [1,2,3,4,5,6,7,8,9,10] and 39990 more. "
                               "Please ensure it is unique")


@pytest.mark.parametrize("body", [b"", b"\0", b"null", b"[]", b'""', b"7", b"{", b'{"a":1,"a":2}', b'{"":""}', b"\xff\xfe", b"[" * 1000,
                                  b'{"\\u0000":1}', b'{"a":"\xc3"}'])
def test_arguments_that_are_none(gateway, body):
    caller = Caller(gateway)
    for tool in CALLS:
        status, answer = caller.call(tool, body)
        assert status < 500, (tool, body, answer)


def try_broken(gateway, number, name):
    text = BROKEN[name]
    path = gateway.data_dir / "files" / f"broken{number}.ipynb"
    caller = Caller(gateway)
    for tool, calls in CALLS.items():
        for base in calls:
            if base.get("notebook") != "odd.ipynb":
                continue
            path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
            before = path.read_bytes()
            arguments = {**base, "notebook": path.name}
            caller.check(tool, arguments)
            for handle in ("index:0", "index:4"):
                if "cellIds" in base:
                    caller.check(tool, {**arguments, "cellIds": [handle]})
                if "cellId" in base:
                    caller.check(tool, {**arguments, "cellId": handle})
            if name in NO_NOTEBOOKS:
                assert path.read_bytes() == before, (tool, name)


@pytest.mark.long
def test_broken_notebooks(gateway):
    """All tools of cells on files that are none, or odd ones. Such that look half written are read again, so many at once."""
    with concurrent.futures.ThreadPoolExecutor(len(BROKEN)) as pool:
        for done in [pool.submit(try_broken, gateway, number, name) for number, name in enumerate(BROKEN)]:
            done.result()
    assert gateway.process.poll() is None and gateway.client.get("/healthz").status_code == 200
