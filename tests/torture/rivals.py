# SPDX-License-Identifier: MIT
"""After a round: what the agents took from each other (rival_work.py), made again in the order of the events.

Each event must be a write of its agent that was acknowledged, in the order of that agent, or one of which it got no answer: so a refused
one changed nothing. Each acknowledged write must have its events. At the end the model must be what is there.
"""
import collections
import copy
import os
import re

from rival_work import BOXED, FOLDERS, HUB, NAMES, NOTES, TRASH, Files, Notes, Page, Texts, is_refusal
from wire import Wire

RIVAL = "rival "
# Of a refused undo, where that is not another agent's newer change.
CAUSES = re.compile("was edited after the move that changed it|something else is there now|has that name now|already exists|"
                    "came with the move of|other changes of the document kept coming|is at another revision than expected")
NEWER = re.compile(r"is not yours: the agent (\S+) made it at \d{4}-")


def is_undo(arguments, tool):
    return (arguments.get("command") == "undo_edit" or "undo" in (arguments.get("mode"), arguments.get("operation"))
            or (tool == "notebook_restore" and "version" not in arguments))


def refusal_fault(book, line, may_be_late, agents):
    """None, or what is wrong with the refusal of a rival write."""
    message = line.get("message") or ""
    if not is_refusal(line.get("code"), message):
        return "it may not be refused so"
    if line["code"] != "CONFLICT" or not is_undo(line["arguments"], line["tool"]):
        return None
    named = NEWER.search(message)
    if named:
        return None if named.group(1) in agents - {book.agent} else "it names the wrong agent"
    late = may_be_late and "Another program changed" in message
    return None if late or CAUSES.search(message) else "it names no agent"


class Replay:
    """may_be_late: an event may come after others. With several gateways what a killed one had begun is ended later; a file that changes
    with a move does not wait until the move is ended."""

    def __init__(self, kind, model, books, may_be_late):
        self.kind, self.model, self.may_be_late = kind, model, may_be_late
        self.owed = collections.Counter()    # events that belong to others which were there
        self.acknowledged, self.unknown = {}, {}
        for book in books:
            mine = [line for line in book.tried.values() if line["kind"] == kind]
            refused = {line["no"] for line in book.refused if is_refusal(line.get("code"), line.get("message"))}
            self.acknowledged[book.agent] = [line for line in mine if line["try"] in book.acknowledged]
            self.unknown[book.agent] = [line for line in mine if line["try"] not in refused | set(book.acknowledged)]

    def explains(self, agent, change, late):
        if self.owed[agent, change] > 0:
            self.owed[agent, change] -= 1
            return True
        acknowledged, unknown = self.acknowledged.get(agent, []), self.unknown.get(agent, [])
        for writes, line in [(acknowledged, line) for line in acknowledged[:1]] + [(unknown, line) for line in unknown]:
            model = copy.deepcopy(self.model)
            model.late = late
            made = model.apply(agent, line["tool"], line["arguments"])
            if made and change in made:
                made.remove(change)
                self.owed.update((agent, each) for each in made)
                writes.remove(line)
                self.model = model
                return True
        return False

    def run(self, changes):
        """changes: (agent, (name, sign)) in the order of the events. What is wrong."""
        waiting = list(changes)
        while waiting:
            near = range(len(waiting) if self.may_be_late else 1)
            at = next((at for at in near if self.explains(*waiting[at], late=at > 0)), None)
            if at is None:
                agent, change = waiting[0]
                return [f"{self.kind}: no write of {agent} makes {change}; there are {self.model.texts}, its next ones are "
                        f"{self.acknowledged.get(agent, [])[:1]} and perhaps {self.unknown.get(agent)}"]
            del waiting[at]
        wrong = [f"{self.kind}: no event of {lines[0]}, which {agent} was told of" for agent, lines in self.acknowledged.items() if lines]
        return wrong + [f"{self.kind}: a part is missing: {owed}" for owed, count in self.owed.items() if count]


class Rivals:
    def __init__(self, checks):
        self.checks, self.gateway, self.places, self.notes = checks, checks.gateway, checks.places, checks.system.notes

    # ---- events

    def former(self, name, number):
        """The text of a revision; None: it is a deletion."""
        wire = Wire(None, agent="rig")
        wire.where = lambda: (0, self.gateway.port)
        try:
            _, body = wire.stateless("resources/read", {"uri": f"notegate://shared/notebook/{name}?revision={number}"})
        finally:
            wire.close()
        return body["result"]["contents"][0]["text"] if "result" in body else None

    def of_document(self, event):
        name, number = event["id"], event["revision"]
        if event["collection"] == "notebooks":
            return name, (number, self.former(name, number))
        where = {"collection": "pages", "notebook_id": name}
        text = None if event["action"] == "deleted" else self.gateway.tool("notebook_read", {**where, "version": number})["content"]
        return name, (number, text)

    def of_file(self, event):
        name = event["id"].removeprefix(self.notes + "/")
        return name, event["revision"] if isinstance(event["revision"], str) else event["action"]

    def place(self, event):
        """The kind of write that made it, or None."""
        name, collection = event["id"], event["collection"]
        if event["agent"] == "rig" or "to" in event:
            return None  # the other half of a move
        if collection in ("files", "notes"):
            if os.path.dirname(name) == os.path.dirname(self.places["rivals"][0]):
                return "rival file"
            return "rival note" if name.startswith((f"{self.notes}/rivals/", f"{self.notes}/{TRASH}rivals/")) else None
        if event["space"] != "shared":
            return None
        return {"notebooks": "rival text" if name in NAMES else None,
                "pages": "rival page" if name == self.places["rival page"] else None}.get(collection)

    # ---- what is there

    def files_below(self, top, start=""):
        found = {}
        for folder, _, names in os.walk(os.path.join(top, start)):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, newline="", encoding="utf-8") as file:
                    found[path] = file.read()
        return found

    def there(self, kind):
        if kind == "rival file":
            return self.files_below(os.path.dirname(self.places["rivals"][0]))
        if kind == "rival note":
            found = {**self.files_below(self.notes, "rivals"), **self.files_below(self.notes, TRASH + "rivals")}
            return {path.removeprefix(self.notes + "/"): text for path, text in found.items()}
        if kind == "rival text":
            listed = self.gateway.tool("notebook", {"mode": "list"})
            return {name: self.gateway.tool("notebook", {"mode": "read", "name": name}) for name in NAMES if f"- {name}: " in listed}
        where = {"collection": "pages", "notebook_id": self.places["rival page"]}
        gone = self.gateway.tool("notebook_history", where)["deleted"]
        return {} if gone else {where["notebook_id"]: self.gateway.tool("notebook_read", where)["content"]}

    def check(self, all_events):
        changes = collections.defaultdict(list)
        for event in all_events:
            kind = self.place(event)
            if kind:
                changed = self.of_file(event) if event["collection"] in ("files", "notes") else self.of_document(event)
                changes[kind].append((event["agent"], changed))
        for kind, model in (("rival file", Files), ("rival note", Notes), ("rival text", Texts), ("rival page", Page)):
            late = model is Notes or (model is Files and self.checks.system.kind == "cluster")
            replay = Replay(kind, model(dict(self.places["rival texts"][kind])), self.checks.books, late)
            wrong = replay.run(changes[kind])
            texts = {name: text for name, text in replay.model.texts.items() if name not in FOLDERS}
            if not wrong:
                found = self.there(kind)
                self.checks.expect(found == texts, f"{kind}: {found} is there, and not {texts}")
            self.checks.wrong += wrong


def prepare(gateway, root, notes, places):
    """What the agents begin with."""
    folder = os.path.join(root, "rivals")
    os.mkdir(folder)
    places["rivals"] = [os.path.join(folder, name) for name in ("a.txt", "b.txt")]
    gateway.tool("fileEditor", {"command": "create", "path": places["rivals"][0], "file_text": "begin\nhead\n"})
    gateway.tool("notebook", {"mode": "create", "name": NAMES[0], "newStr": "begin"})
    places["rival page"] = gateway.tool("notebook_create", {
        "collection": "pages", "title": "rival", "content": "begin\n"})["notebook_id"]
    for path, content in ((NOTES[0], "head"), (f"{FOLDERS[0]}/{BOXED}", "boxed"),
                          (HUB, "[[rival-one]] [note](rival-one.md) [boxed](box/boxed.md)")):
        title = os.path.basename(path).removesuffix(".md").replace("-", " ")
        gateway.tool("opennotes_create", {"title": title, "path": os.path.dirname(path), "content": content})
    begin = {}
    for path in (NOTES[0], f"{FOLDERS[0]}/{BOXED}", HUB):
        with open(os.path.join(notes, path), newline="", encoding="utf-8") as file:
            begin[path] = file.read()
    places["rival texts"] = {
        "rival file": {places["rivals"][0]: "begin\nhead\n"}, "rival text": {NAMES[0]: "begin"},
        "rival page": {places["rival page"]: "begin\n"}, "rival note": {**begin, FOLDERS[0]: ""}}
