# SPDX-License-Identifier: MIT
"""Files and notes of one agent alone, also moved, deleted and taken back: like own_work.py, the state is known exactly."""
import hashlib
import os
import re

from own_work import Own, OwnCells

# The steps that the history of a file keeps.
STEPS = 10


def revision_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Taken(Own):
    """`steps` is what an undo brings back, newest last: (what, what was before)."""

    def __init__(self, *args):
        super().__init__(*args)
        self.steps = []

    def push(self, *step):
        self.next_steps = [*self.steps, step][-STEPS:]

    def edit(self, token):
        self.push("edit", self.lines)
        return super().step(token)


class OwnFile(Taken):
    kind = "file"

    def __init__(self, *args):
        super().__init__(*args)
        self.number, self.gone = 0, False
        self.path = self.place(0)

    def place(self, number):
        return os.path.join(self.places["own"], f"{self.agent}-{number}.txt")

    def where(self, command, **more):
        return "fileEditor", {"command": command, "path": self.path, **more, **({} if self.gone or not self.made else self.expected())}

    def step(self, token):
        draw = self.rng.random()
        self.next, self.next_path, self.next_gone = self.lines, self.path, False
        if self.steps and draw < (0.6 if self.gone else 0.2):
            return self.undo()
        if self.gone or not self.made:
            # The file of this name that was deleted before can come back when this one is away.
            self.steps = self.steps if self.steps and self.steps[-1][0] == "delete" else []
            self.push("create", None)
            self.next = ["begin"]
            return self.where("create", file_text="begin\n")
        if draw < 0.28:
            self.push("delete", self.lines)
            self.next_gone = True
            return self.where("delete")
        if draw < 0.36:
            self.push("move", self.path)
            self.number += 1
            self.next_path = self.place(self.number)
            return self.where("move", destination=self.next_path)
        return self.edit(token)

    def undo(self):
        what, before = self.steps[-1]
        self.next_steps = self.steps[:-1]
        if what == "create":
            self.next_gone = True
        elif what == "move":
            self.next_path = before
        else:
            self.next = before
        return self.where("undo_edit")

    def append(self, token):
        return self.where("insert", insert_line=len(self.lines), new_str=token)

    def replace(self, old, token):
        return self.where("str_replace", old_str=old, new_str=token)

    def done(self, result, revision):
        self.path, self.gone, self.steps = self.next_path, self.next_gone, self.next_steps
        wanted = None if self.gone else revision_of("\n".join(self.next) + "\n")
        return f"revision {revision}, not {wanted}" if revision != wanted else super().done(result, revision)

    def read(self):
        return None if self.gone or not self.made else ("fileEditor", {"command": "view", "path": self.path})

    def shown(self, told):
        return re.findall(r"^ +\d+  (.+)$", told, re.MULTILINE)

    def state(self):
        return {**super().state(), "path": self.path, "gone": self.gone}


class OwnNote(Taken):
    """A note, and a second one with links to it, which only follow: the note is renamed, its folder moved, it is deleted. What is
    deleted stays where the links lead, but in the trash."""
    kind = "note"

    def __init__(self, *args):
        super().__init__(*args)
        self.number, self.linked, self.trashed = 0, False, False
        self.path = f"own/own-{self.agent}.md"

    def place(self):
        return f".trash/{self.path}" if self.trashed else self.path

    def edits(self, operation, **more):
        return "opennotes_edit", {"path": self.place(), "operation": operation, **more, **self.expected()}

    def moves(self, path, to):
        return "opennotes_move", {"path": path, "to": to}

    def step(self, token):
        draw = self.rng.random()
        self.next, self.next_path, self.next_trashed, self.links, self.wanted = self.lines, self.path, self.trashed, False, None
        self.next_steps = self.steps
        if not self.made:
            return super().step(token)
        if not self.linked:
            return self.create_links()
        if self.steps and draw < (0.5 if self.trashed else 0.2):
            return self.undo()
        if self.steps and self.steps[-1][0] == "folder":
            self.steps = []  # an undo of the note alone would be another one
        if self.trashed:
            self.push("move", (self.path, True))
            self.next_trashed = False
            return self.moves(self.place(), self.path)
        folder = os.path.dirname(self.path)
        if draw < 0.3:
            self.push("move", (self.path, False))
            self.number += 1
            name = f"own-{self.agent}-{self.number}"
            self.next_path = self.rng.choice([f"own/{name}.md", f"own/{name}/{name}.md"])
            return self.moves(self.path, self.next_path)
        if draw < 0.36 and folder != "own":
            self.number += 1
            to = f"own/own-{self.agent}-{self.number}"
            self.next_steps = [*self.steps, ("folder", self.path, to)]
            self.next_path = f"{to}/{os.path.basename(self.path)}"
            return self.moves(folder, to)
        if draw < 0.44:
            self.push("move", (self.path, False))
            self.next_trashed = True
            return "opennotes_delete", {"path": self.path}
        self.wanted = "new"
        return self.edit(token)

    def edit(self, token):
        self.push("edit", (self.lines, self.revision))
        return Own.step(self, token)

    def undo(self):
        what, before, *folder = self.steps[-1]
        self.next_steps = self.steps[:-1]
        if what == "folder":
            self.next_path = before
            return "opennotes_edit", {"path": folder[0], "operation": "undo"}
        if what == "move":
            self.next_path, self.next_trashed = before
        else:
            self.next, self.wanted = before
        return self.edits("undo")

    def create(self):
        self.wanted = "new"
        return "opennotes_create", {"title": f"own {self.agent}", "path": "own", "content": "begin"}

    def create_links(self):
        self.links = True
        name = f"own-{self.agent}"
        return "opennotes_create", {"title": f"own {self.agent} links", "path": "own", "content": f"[[{name}]] [it]({name}.md)"}

    def append(self, token):
        return self.edits("append", content=token)

    def replace(self, old, token):
        if self.rng.random() < 0.5:
            return self.edits("str_replace", oldStr=old, newStr=token)
        self.next = [token, *self.lines]
        return self.edits("prepend", content=token)

    def done(self, result, revision):
        if self.links:
            self.linked = True
            return None
        self.path, self.trashed, self.steps = self.next_path, self.next_trashed, self.next_steps
        wanted = self.revision if self.wanted is None else self.wanted
        told = result.get("trash", result.get("path"))
        super().done(result, self.revision if revision is None else revision)
        if told not in (None, self.place(), os.path.dirname(self.path)):
            return f"{told} is told, and not {self.place()}"
        return None if wanted == "new" or self.revision == wanted else f"revision {revision}, not {wanted}"

    def read(self):
        return None if self.trashed or not self.made else ("opennotes_get", {"path": self.path})

    def shown(self, told):
        return [line for line in told["note"]["content"].split("\n") if line]

    def state(self):
        return {**super().state(), "path": self.place(), "home": self.path, "linked": self.linked}


def own_files(rng, agent, places):
    return [kind(rng, agent, places) for kind in (OwnFile, OwnNote, OwnCells)]
