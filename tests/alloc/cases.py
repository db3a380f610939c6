# SPDX-License-Identifier: MIT
"""The requests of the sweep: every tool of every plugin and every other thing that a gateway answers.

A case is `send(world, mark)`: one request, `mark` being a word that no other request has. `before(world, mark)` makes
what it needs, `after(world, mark, answer)` takes away what it left. A case that `writes` must leave nothing behind where it
was refused, and all of it where it was not.
"""
import datetime
import json
from urllib.parse import quote

HEADER = {"X-Notegate-Space": "shared"}
# Stays small: what a checkpoint costs depends on how much there is.
SMALL = {"X-Notegate-Space": "~root"}
CASES = []


class Case:
    def __init__(self, name, send, before=None, after=None, writes=False, short=False, exact=True, slow=False):
        self.name, self.send, self.before, self.after = name, send, before, after
        # slow: seconds for each; exact: two answers to it are the same, but for numbers and ids.
        self.writes, self.short, self.exact, self.slow, self.kernel = writes, short, exact, slow, False
        self.codes = ()  # with which it may fail as well
        self.busy = False  # an interrupted restore is finished first; until then calls are refused


def case(name, send, **more):
    CASES.append(Case(name, send, **more))


def tool(label, name, arguments, headers=None, **more):
    """A tool over REST; `arguments` may be a function of (world, mark)."""
    def send(world, mark):
        return world.wire.tool(name, arguments(world, mark) if callable(arguments) else arguments, headers or HEADER)
    case(label, send, **more)


# ---- notebook

def book(mark="sweep"):
    return {"name": mark}


def notebook(world, **arguments):
    return world.must(world.wire.tool("notebook", arguments, HEADER))


def new_book(world, mark):
    notebook(world, mode="create", name=mark)
    notebook(world, mode="write", name=mark, newStr="first\nsecond\nthird\n")


tool("notebook list", "notebook", {"mode": "list"})
tool("notebook read", "notebook", {"mode": "read", "name": "sweep"}, short=True)
tool("notebook read range", "notebook", {"mode": "read", "name": "sweep", "readRange": [1, 2]})
tool("notebook read of none", "notebook", {"mode": "read", "name": "nothing"})
tool("notebook create", "notebook", lambda w, m: {"mode": "create", "name": m}, writes=True)
tool("notebook append", "notebook", lambda w, m: {"mode": "write", "name": "sweep", "newStr": m + "\n"}, writes=True, short=True)
tool("notebook replace", "notebook", lambda w, m: {"mode": "write", "name": m, "oldStr": "second", "newStr": m},
     before=new_book, writes=True)
tool("notebook insert", "notebook", lambda w, m: {"mode": "write", "name": m, "insertLine": 1, "newStr": m},
     before=new_book, writes=True)
tool("notebook clear", "notebook", lambda w, m: {"mode": "clear", "name": m}, before=new_book, writes=True)
tool("notebook rename", "notebook", lambda w, m: {"mode": "rename", "name": m, "newName": m + "2"}, before=new_book, writes=True)
tool("notebook delete", "notebook", lambda w, m: {"mode": "delete", "name": m}, before=new_book, writes=True)
tool("notebook undo", "notebook", lambda w, m: {"mode": "undo", "name": m}, before=new_book, writes=True)
tool("notebook search", "notebook", {"mode": "search", "query": "second"})
case("idempotency key", lambda w, m: w.wire.tool("notebook", {"mode": "write", "name": "sweep", "newStr": m},
                                                 {**HEADER, "Idempotency-Key": m}), writes=True)
case("idempotency key again", lambda w, m: w.wire.tool(
    "notebook", {"mode": "write", "name": "sweep", "newStr": m}, {**HEADER, "Idempotency-Key": m}),
    before=lambda w, m: w.must(w.wire.tool("notebook", {"mode": "write", "name": "sweep", "newStr": m},
                                           {**HEADER, "Idempotency-Key": m})))

# ---- agent_notebook


def entry_of(world, mark):
    """A page of this mark."""
    answer = world.must(world.wire.tool("notebook_create", {
        "collection": "pages", "title": mark, "content": "# One\nalpha\n## Two\nbeta\n", "tags": ["t", mark]}, HEADER))
    world.ids[mark] = world.first_id(answer)


def twice(world, mark):
    entry_of(world, mark)
    world.must(world.wire.tool("notebook_update", {"collection": "pages", "notebook_id": world.ids[mark],
                                                   "content": "# One\ngamma\n"}, HEADER))


def page(**more):
    return lambda world, mark: {"collection": "pages", "notebook_id": world.ids.get(mark, world.ids["page"]), **{
        key: value(mark) if callable(value) else value for key, value in more.items()}}


tool("notebook_create", "notebook_create", lambda w, m: {
    "collection": "pages", "title": m, "content": "text", "tags": ["x"],
    "sections": [{"heading": "H", "content": "body"}]}, writes=True, short=True)
tool("notebook_create research", "notebook_create", lambda w, m: {
    "collection": "research_notes", "title": m, "content": "text", "key_findings": ["one", "two"], "confidence": 0.5,
    "related_pages": [w.ids["page"]], "source_url": "https://example.org/"}, writes=True)
tool("notebook_create snippet", "notebook_create", lambda w, m: {
    "collection": "code_snippets", "title": m, "content": "int x;", "language": "c", "description": "d"}, writes=True)
tool("notebook_read", "notebook_read", page())
tool("notebook_read section", "notebook_read", page(section="Two"))
tool("notebook_read title", "notebook_read", lambda w, m: {"notebook_id": m.upper()}, before=entry_of, exact=False)
tool("notebook_read version", "notebook_read", page(version=1))
tool("notebook_update content", "notebook_update", page(content=lambda m: "new " + m), before=entry_of, writes=True)
tool("notebook_update edits", "notebook_update", page(edits=lambda m: [{"old_str": "alpha", "new_str": m}]),
     before=entry_of, writes=True)
tool("notebook_update append", "notebook_update", page(append=lambda m: m, expected_version=1), before=entry_of, writes=True)
tool("notebook_update section", "notebook_update", page(section="Two", content=lambda m: m), before=entry_of, writes=True)
tool("notebook_update section append", "notebook_update", page(section="Two", append=lambda m: m), before=entry_of, writes=True)
tool("notebook_search", "notebook_search", {"query": "beta", "collection": "pages", "tags": ["fixed"]})
tool("notebook_search words", "notebook_search", {"query": "betas absent \"alpha\" gam* 日本語", "collection": "pages"}, exact=False)
tool("notebook_list", "notebook_list", {"collection": "pages", "tags": ["fixed"]})
tool("notebook_history", "notebook_history", page())
tool("notebook_diff", "notebook_diff", page(**{"from": 1, "to": 2}))
tool("notebook_restore", "notebook_restore", page(version=1), before=twice, writes=True)
tool("notebook_delete", "notebook_delete", page(), before=entry_of, writes=True)
tool("notebook_delete purge", "notebook_delete", page(purge=True), before=entry_of, writes=True)


def memory_of(world, mark):
    answer = world.must(world.wire.tool("memory_log", {"content": mark}, HEADER))
    world.ids[mark] = answer.json()["result"]["memory_id"]


tool("memory_log", "memory_log", lambda w, m: {"content": m + " happened", "tags": ["x"], "score": 0.5, "source": "sweep"},
     writes=True)
tool("memory_recall", "memory_recall", {"query": "unforgettable", "limit": 3})
tool("memory_recall min_score", "memory_recall", {"query": "unforgettable absent", "min_score": 0.1, "limit": 3})
tool("memory_delete", "memory_delete", lambda w, m: {"id": w.ids[m]}, before=memory_of, exact=False)
tool("memory_timeline", "memory_timeline", {"limit": 2}, exact=False)
tool("memory_summary", "memory_summary", {"mode": "read"}, exact=False)
tool("memory_summary set", "memory_summary", lambda w, m: {"mode": "set", "text": m}, writes=True)
tool("checkpoint_snapshot", "checkpoint_snapshot", lambda w, m: {"label": m}, SMALL, writes=True, exact=False)
tool("checkpoint_list", "checkpoint_list", {"limit": 2}, SMALL, exact=False)
tool("checkpoint_diff", "checkpoint_diff", lambda w, m: {"checkpoint_id": w.ids["checkpoint"]}, SMALL, exact=False)
tool("checkpoint_restore", "checkpoint_restore", lambda w, m: {"checkpoint_id": w.ids["checkpoint"]}, SMALL,
     before=lambda w, m: w.must(w.wire.tool("notebook_update", {
         "collection": "pages", "notebook_id": w.ids["small"], "content": m}, SMALL)), exact=False)
CASES[-1].busy = True


def snapshot(world, mark):
    world.ids[mark] = world.first_id(world.must(world.wire.tool("checkpoint_snapshot", {"label": mark}, SMALL)))


tool("checkpoint_delete", "checkpoint_delete", lambda w, m: {"checkpoint_id": w.ids[m]}, SMALL, before=snapshot, writes=True,
     exact=False)

# Its journal was once larger than a checkpoint can be, and was kept as it lay; what takes the place of that is kept so, too.
LARGE = {"X-Notegate-Space": "large"}
LARGE_MEMORIES, LARGE_CHARS = 200, 60 * 1024


def kept_aside(world, _mark):
    def restored(checkpoint):
        answer = world.must(world.wire.tool("checkpoint_restore", {"checkpoint_id": checkpoint}, LARGE))
        return answer.json()["result"]["previous_checkpoint_id"]

    if "aside" not in world.ids:
        small = world.first_id(world.must(world.wire.tool("checkpoint_snapshot", {}, LARGE)))
        for _ in range(LARGE_MEMORIES):
            world.must(world.wire.tool("memory_log", {"content": "\x01" * LARGE_CHARS}, LARGE))
        world.ids["aside"] = restored(restored(small))
        restored(world.ids["aside"])


tool("checkpoint_restore aside", "checkpoint_restore", lambda w, m: {"checkpoint_id": w.ids["aside"]}, LARGE, before=kept_aside,
     exact=False)
CASES[-1].busy = True

# ---- cells

SOURCE = {"cells": [
    {"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {}, "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["said\n"]},
        {"output_type": "display_data", "metadata": {}, "data": {"text/plain": ["x"], "image/png": "aGFsbG8="}}],
     "source": ["print('said')\n", "1 + 1"]},
    {"cell_type": "markdown", "id": "two", "metadata": {}, "source": ["# Title"]}],
    "metadata": {"kernelspec": {"display_name": "p", "name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}


def ipynb(world, mark):
    path = world.files / f"{mark}.ipynb"
    path.write_text(json.dumps(SOURCE, indent=1) + "\n")
    world.must(world.wire.tool("attachNotebook", {"notebook": str(path)}, HEADER))


def away(world, mark, _answer=None):
    world.wire.tool("detachNotebook", {"notebook": str(world.files / f"{mark}.ipynb")}, HEADER)
    (world.files / f"{mark}.ipynb").unlink(missing_ok=True)


def cells(label, name, writes=True, before=ipynb, after=away, more=None, **arguments):
    tool(label, name, lambda w, m: {"notebook": str(w.files / f"{m}.ipynb"), **{
        key: m if value is MARK else value for key, value in arguments.items()}},
        before=before, after=after, writes=writes, **(more or {}))


MARK = object()
cells("attachNotebook", "attachNotebook", before=lambda w, m: (w.files / f"{m}.ipynb").write_text(json.dumps(SOURCE)))
cells("detachNotebook", "detachNotebook")
cells("selectNotebookCells", "selectNotebookCells", cellIds=["two"])
cells("getNotebookContext", "getNotebookContext", writes=False)
cells("createNotebook", "createNotebook", before=None)
cells("addNotebookCell", "addNotebookCell", type="code", index=1, content=MARK, more={"short": True})
cells("updateNotebookCell", "updateNotebookCell", cellId="one", content=MARK)
cells("getNotebookCells", "getNotebookCells", writes=False)
cells("getCellOutputs", "getCellOutputs", writes=False, cellId="one")
cells("deleteNotebookCells", "deleteNotebookCells", cellIds=["two"])
cells("moveNotebookCell", "moveNotebookCell", cellId="two", index=0)
cells("clearCellOutputs", "clearCellOutputs", cellIds=["one"])
tool("listKernels", "listKernels", {}, exact=False)
tool("search", "search", {"query": "first", "kinds": ["notebook", "page", "memory", "file", "cell"]}, exact=False)
tool("history_log", "history_log", {"collection": ["pages", "notebooks"], "since": "#0", "until": "now"}, exact=False)
tool("history_log of an id", "history_log", {"id": "first"}, exact=False)
tool("history_log of ids", "history_log", {"id": "*", "agent": "alloc", "tool": "notebook"}, exact=False)
tool("history_read", "history_read", {"id": "first", "at": "1"}, exact=False)
tool("history_read of a change", "history_read", {"id": "first", "at": "1m"}, exact=False)
tool("history_read documents", "history_read", {"at": "now"}, exact=False)
tool("history_diff", "history_diff", {"id": "first"}, exact=False)
tool("history_diff documents", "history_diff", {"collection": ["pages", "notebooks"], "id": "first*", "since": "#0"}, exact=False)
tool("history_blame", "history_blame", {"id": "first"}, exact=False)
tool("history_undo", "history_undo", {"agent": "local", "since": "#0"}, exact=False)
tool("history_restore", "history_restore", {"id": "first", "at": "1"}, exact=False)
tool("listNotebooks", "listNotebooks", {}, exact=False)


def running(world, mark):
    """A notebook with a kernel, which stays for all the cases that need one."""
    if not world.has_kernel():
        ipynb(world, "kernel")
    world.must(world.wire.tool("runNotebookCells", {
        "notebook": str(world.files / "kernel.ipynb"), "cellIds": ["one"]}, HEADER))


def ended(world, mark, answer):
    """Outputs of a background run are saved before a later run is answered."""
    del answer
    running(world, mark)


def with_kernel(label, name, before=running, slow=False, **arguments):
    tool(label, name, lambda w, m: {"notebook": str(w.files / "kernel.ipynb"), **arguments}, before=before, exact=False,
         slow=slow)
    CASES[-1].kernel = True
    # A failure between the gateway and the kernel counts as a failure of the kernel.
    CASES[-1].codes = ("CELL_FAILED", "KERNEL_FAILED")


with_kernel("runNotebookCells", "runNotebookCells", cellIds=["one"])
with_kernel("runNotebookCells background", "runNotebookCells", cellIds=["one"], background=True)
CASES[-1].after = ended
with_kernel("interruptKernel", "interruptKernel")
with_kernel("restartKernel", "restartKernel", slow=True)


def background(world, mark):
    running(world, mark)
    told = world.must(world.wire.tool("runNotebookCells", {
        "notebook": str(world.files / "kernel.ipynb"), "cellIds": ["one"], "background": True}, HEADER))
    world.ids["run"] = told.json()["result"].split("Run: ")[1].split()[0]


case("getNotebookRun", lambda w, m: w.wire.tool("getNotebookRun", {"run": w.ids["run"]}, HEADER), before=background, exact=False)
CASES[-1].kernel = True
CASES[-1].after = ended

# ---- file_editor


def text_file(world, mark):
    (world.files / f"{mark}.txt").write_text("first\nsecond\nthird\n")


def edited_file(world, mark):
    text_file(world, mark)
    world.must(world.wire.tool("fileEditor", {"command": "str_replace", "path": str(world.files / f"{mark}.txt"),
                                              "old_str": "second", "new_str": "2"}, HEADER))


def no_file(world, mark, _answer=None):
    for path in world.files.glob(f"{mark}*.txt"):
        path.unlink()


def editor(label, command, writes=True, before=text_file, **arguments):
    def made(world, mark):
        more = {key: mark if value is MARK else value for key, value in arguments.items()}
        if "destination" in more:
            more["destination"] = str(world.files / f"{mark}-to.txt")
        return {"command": command, "path": str(world.files / f"{mark}.txt"), **more}
    tool(label, "fileEditor", made, before=before, after=no_file, writes=writes, short=label == "file str_replace")


editor("file view", "view", writes=False)
editor("file view range", "view", writes=False, view_range=[1, 2])
tool("folder view", "fileEditor", lambda w, m: {"command": "view", "path": str(w.files / "still")})
editor("file search", "search", writes=False, pattern="s(e)cond", regex=True, glob="*.{txt,md}")
editor("file create", "create", before=None, file_text=MARK)
editor("file str_replace", "str_replace", old_str="second", new_str=MARK)
editor("file insert", "insert", insert_line=1, new_str=MARK)
editor("file regex_replace", "regex_replace", pattern="s(e)cond", new_str=MARK)
editor("file undo_edit", "undo_edit", before=edited_file)
editor("file copy", "copy", destination=True)
editor("file move", "move", destination=True)
editor("file move edited", "move", before=edited_file, destination=True)

# ---- opennotes

NOTE = "---\ntitle: {0}\ntags: [a, fixed]\nstatus: todo\n---\n# {0}\n\ntext of {0} [[still]] #tag\n\n## Part\n\nmore\n"


def note(world, mark):
    (world.notes / f"{mark}.md").write_text(NOTE.format(mark))


def no_note(world, mark, _answer=None):
    for path in world.notes.rglob(f"{mark}*.md"):
        path.unlink()


def edited_note(world, mark):
    note(world, mark)
    world.must(world.wire.tool("opennotes_edit", {"path": f"{mark}.md", "operation": "append", "content": mark}, HEADER))


def linked_note(world, mark):
    note(world, mark)
    (world.notes / f"{mark}-from.md").write_text(f"[[{mark}]] [a]({mark}.md)\n")


def notes(label, name, arguments, before=None, writes=False, exact=True):
    tool(label, "opennotes_" + name, arguments, before=before, after=no_note if before or writes else None, writes=writes,
         exact=exact, short=label in ("opennotes_edit", "opennotes_search"))


notes("opennotes_search", "search", {"query": "still"})
notes("opennotes_search fuzzy", "search", {"query": "stll", "fuzzy": True})
notes("opennotes_search filters", "search", {"query": "", "filters": {
    "and": ["data.tag=fixed"], "or": ["data.status=todo", "path=still*"], "not": ["title=nothing"]}}, exact=False)
notes("opennotes_search sql", "search", {
    "sql": "SELECT file_path, title FROM read_markdown('**/*.md') WHERE title = 'still' ORDER BY 1"}, exact=False)
notes("opennotes_list", "list", {"pattern": "st*", "sortBy": "title"})
notes("opennotes_get", "get", {"path": "still.md", "includeContent": True})
notes("opennotes_get section", "get", {"path": "still.md", "section": "Part"})
notes("opennotes_create", "create", lambda w, m: {"title": m, "content": "text", "data": {"tags": ["x"], "n": 1}}, writes=True)
notes("opennotes_edit", "edit", lambda w, m: {"path": f"{m}.md", "operation": "append", "content": m}, before=note, writes=True)
notes("opennotes_edit section", "edit", lambda w, m: {
    "path": f"{m}.md", "operation": "replace_section", "section": "Part", "content": m}, before=note, writes=True)
notes("opennotes_edit append in section", "edit", lambda w, m: {
    "path": f"{m}.md", "operation": "append", "section": "Part", "content": m}, before=note, writes=True)
notes("opennotes_edit str_replace", "edit", lambda w, m: {
    "path": f"{m}.md", "operation": "str_replace", "oldStr": "more\n", "newStr": m}, before=note, writes=True)
notes("opennotes_edit prepend", "edit", lambda w, m: {"path": f"{m}.md", "operation": "prepend", "content": m}, before=note, writes=True)
notes("opennotes_edit set", "edit", lambda w, m: {
    "path": f"{m}.md", "operation": "set", "data": {"status": "done", "more": [1, "two"]}}, before=note, writes=True)
notes("opennotes_edit undo", "edit", lambda w, m: {"path": f"{m}.md", "operation": "undo"}, before=edited_note, writes=True)
notes("opennotes_move", "move", lambda w, m: {"path": f"{m}.md", "to": f"moved/{m}-to.md"}, before=linked_note, writes=True)
notes("opennotes_delete", "delete", lambda w, m: {"path": f"{m}.md"}, before=linked_note, writes=True)
notes("opennotes_daily", "daily", lambda w, m: {
    "content": m, "date": (datetime.date(2000, 1, 1) + datetime.timedelta(int(m[5:11]))).isoformat()}, writes=True)
notes("opennotes_daily section", "daily", lambda w, m: {
    "content": m, "section": m, "date": (datetime.date(2000, 1, 1) + datetime.timedelta(int(m[5:11]))).isoformat()}, writes=True)
notes("opennotes_views", "views", {}, exact=False)
notes("opennotes_views today", "views", {"view": "today"}, exact=False)
notes("opennotes_views kanban", "views", {"view": "kanban", "params": {"status": "todo,done"}}, exact=False)
notes("opennotes_links", "links", {"path": "still.md", "kind": "all"}, exact=False)
notes("opennotes_tags", "tags", {}, exact=False)
notes("opennotes_notebooks", "notebooks", {}, exact=False)

# ---- REST


def rest(label, method, path, body=None, **more):
    case(label, lambda w, m: w.wire.rest(method, path, body(w, m) if callable(body) else body, HEADER), **more)


rest("GET /healthz", "GET", "/healthz")
rest("GET /readyz", "GET", "/readyz")
rest("GET /metrics", "GET", "/metrics", exact=False)
rest("GET /v1/tools", "GET", "/v1/tools", short=True)
for form in ("openai", "openai-responses", "anthropic", "gemini"):
    rest(f"GET /v1/tools {form}", "GET", f"/v1/tools?format={form}")
# Which tools are listed depends on it.
rest("GET /v1/tools, notebook attached", "GET", "/v1/tools", before=ipynb, after=away)
rest("GET /openapi.json, notebook attached", "GET", "/openapi.json", before=ipynb, after=away)
rest("GET /v1/tools/NAME", "GET", "/v1/tools/notebook_create")
rest("GET /openapi.json", "GET", "/openapi.json")
rest("GET /docs", "GET", "/docs")
rest("GET of nothing", "GET", "/v1/nothing")
rest("unknown tool", "POST", "/v1/tools/notebok", {})
rest("bad JSON", "POST", "/v1/tools/notebook", '{"mode": ')
rest("bad arguments", "POST", "/v1/tools/notebook", {"mode": "juggle", "x": 1})
case("bad key", lambda w, m: w.stranger.rest("POST", "/v1/tools/notebook", {"mode": "list"}))
case("large body", lambda w, m: w.wire.tool("notebook", {"mode": "write", "name": m, "newStr": m + "x" * 100000},
                                            HEADER), before=new_book, writes=True)
case("new connection", lambda w, m: (w.wire.close(), w.wire.tool("notebook", {"mode": "read", "name": "sweep"}, HEADER))[1])
rest("keys list", "GET", "/v1/keys", exact=False)
rest("keys add", "POST", "/v1/keys", lambda w, m: {
    "agent": m, "role": "reader", "spaces": ["shared"], "tools": ["notebook"], "note": f"of {m}"}, writes=True,
     after=lambda w, m, a: w.wire.rest("DELETE", f"/v1/keys/{a.json()['id']}") if a.ok else None)


def key_of(world, mark):
    answer = world.must(world.wire.rest("POST", "/v1/keys", {"agent": mark}))
    world.ids[mark] = answer.json()["id"]


case("keys show", lambda w, m: w.wire.rest("GET", f"/v1/keys/{w.ids['key']}"))
case("keys revoke", lambda w, m: w.wire.rest("DELETE", f"/v1/keys/{w.ids[m]}?force=true"), before=key_of, writes=True)
rest("config", "GET", "/v1/config")
rest("reload", "POST", "/v1/reload", exact=False)
rest("admin verify", "POST", "/v1/admin/verify", exact=False)
rest("admin backup", "POST", "/v1/admin/backup", exact=False)


def events(path, headers=None):
    def send(world, _mark):
        try:
            return world.wire.rest("GET", path, None, {"Accept": "text/event-stream", **(headers or {})}, lines=3)
        finally:
            world.wire.close()
    return send


case("events", events("/v1/events?since=0"), exact=False, short=True)
case("events resumed", events("/v1/events?collection=notebook", {"Last-Event-ID": "1"}), exact=False)

# ---- MCP


def mcp(label, method, params=None, **more):
    """The same over the handshake and the stateless protocol."""
    def made(world, mark):
        return params(world, mark) if callable(params) else params
    newer, older = more.pop("newer", True), more.pop("older", True)
    if newer:
        case(f"{label} (newer)", lambda w, m: w.wire.modern(method, made(w, m), HEADER), **more)
    if older:
        case(f"{label} (older)", lambda w, m: w.wire.older(method, made(w, m), HEADER), **more)


case("initialize", lambda w, m: w.fresh().initialize(), short=True)
case("notifications/initialized", lambda w, m: w.wire.notify("notifications/initialized"))
mcp("ping", "ping", newer=False)
mcp("server/discover", "server/discover", older=False)
mcp("tools/list", "tools/list")
mcp("tools/list, notebook attached", "tools/list", newer=False, before=ipynb, after=away)
mcp("tools/call", "tools/call", lambda w, m: {"name": "notebook", "arguments": {
    "mode": "write", "name": "sweep", "newStr": m + "\n"}}, writes=True, short=True)
mcp("tools/call read", "tools/call", lambda w, m: {
    "name": "notebook_read", "arguments": {"collection": "pages", "notebook_id": w.ids["page"]}})
mcp("tools/call images", "tools/call", {"name": "test_multiple_content_types", "arguments": {}})
mcp("tools/call progress", "tools/call", {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 1}},
    newer=False, slow=True)
mcp("resources/list", "resources/list", exact=False)
mcp("resources/templates/list", "resources/templates/list")
mcp("resources/read", "resources/read", {"uri": "notegate://shared/notebook/sweep"}, exact=False)
mcp("resources/read file", "resources/read", lambda w, m: {
    "uri": f"notegate://shared/file/{quote(str(w.files / 'still' / 'a.txt'), safe='')}"})
mcp("resources/read of none", "resources/read", {"uri": "notegate://shared/notebook/nothing"})
mcp("resources/subscribe", "resources/subscribe", {"uri": "notegate://shared/notebook/sweep"}, newer=False)
mcp("resources/unsubscribe", "resources/unsubscribe", {"uri": "notegate://shared/notebook/sweep"}, newer=False)
mcp("prompts/list", "prompts/list")
mcp("prompts/get", "prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}})
mcp("completion/complete", "completion/complete", {
    "ref": {"type": "ref/resource", "uri": "notegate://{space}/notebook/{id}"},
    "argument": {"name": "id", "value": "swe"}, "context": {"arguments": {"space": "shared"}}})
mcp("completion/complete notes", "completion/complete", {
    "ref": {"type": "ref/resource", "uri": "notegate://{space}/note/{id}"}, "argument": {"name": "id", "value": "/"}})
mcp("resources/read note", "resources/read", lambda w, m: {
    "uri": f"notegate://shared/note/{quote(str(w.notes / 'still.md'), safe='')}"})
mcp("logging/setLevel", "logging/setLevel", {"level": "info"}, newer=False)
mcp("tools/call that asks", "tools/call", {"name": "test_input_required_result_elicitation", "arguments": {}}, older=False,
    exact=False)


def task(world, mark):
    answer = world.must(world.wire.modern("tools/call", {"name": "slow_compute", "arguments": {"seconds": 3600}}, HEADER))
    world.ids[mark] = answer.json()["result"]["taskId"]


def no_task(world, mark, answer):
    if mark not in world.ids and answer.ok:
        result = answer.json()["result"]
        world.ids[mark] = result.get("taskId") or result["task"]["taskId"]
    if mark in world.ids:
        world.wire.modern("tasks/cancel", {"taskId": world.ids.pop(mark)}, HEADER)


case("tools/call as a task (newer)", lambda w, m: w.wire.modern("tools/call", {
    "name": "slow_compute", "arguments": {"seconds": 3600}}, HEADER), after=no_task)
case("tools/call as a task (older)", lambda w, m: w.wire.older("tools/call", {
    "name": "slow_compute", "arguments": {"seconds": 3600}, "task": {}}, HEADER), after=no_task)
mcp("tasks/get", "tasks/get", lambda w, m: {"taskId": w.ids[m]}, before=task, after=no_task)
mcp("tasks/list", "tasks/list", {}, newer=False, exact=False)
mcp("tasks/cancel", "tasks/cancel", lambda w, m: {"taskId": w.ids[m]}, before=task)


def listen(world, _mark):
    try:
        return world.wire.modern("subscriptions/listen", {"notifications": {
            "toolsListChanged": True, "resourceSubscriptions": ["notegate://shared/notebook/sweep"]}}, lines=3)
    finally:
        world.wire.close()


case("subscriptions/listen", listen, exact=False)
case("session stream", lambda w, m: w.session_stream(), exact=False)
case("session ends", lambda w, m: w.leaving.rest("DELETE", "/mcp", None, {
    "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": w.leaving.session}), before=lambda w, m: w.join())
