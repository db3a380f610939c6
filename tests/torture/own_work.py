# SPDX-License-Identifier: MIT
"""Writes of one agent alone: documents of its own, each write on the revision of the write before.

Every write has an idempotency key and is retried until it is answered, so the final state is known exactly, and
a conflict is a fault: the agent's own write was done twice or was lost.
"""
import copy
import os
import re


UNDOS = 10  # in a row


class Own:
    """One document: the model of it, and the next write. `step` gives (tool, arguments), `done` takes the answer."""
    space = "shared"

    def __init__(self, rng, agent, places):
        self.rng, self.agent, self.places = rng, agent, places
        self.made = False
        self.revision = None
        self.lines = []

    def expected(self):
        return {"expectedRevision": self.revision}

    def step(self, token):
        """The next write, and what the model becomes when it is acknowledged."""
        if not self.made:
            self.next = ["begin"]
            return self.create()
        self.next = [*self.lines, token] if len(self.lines) < 2 or self.rng.random() < 0.6 else [*self.lines[:-1], token]
        return self.append(token) if len(self.next) > len(self.lines) else self.replace(self.lines[-1], token)

    def done(self, result, revision):
        """None, or what is wrong with the answer."""
        before, self.revision, self.made, self.lines = self.revision, revision, True, self.next
        if isinstance(revision, int) and revision != (before or 0) + 1:
            return f"revision {revision} after {before}"
        return None

    def read(self):
        """A call that tells what is there now, or None; shown() is the lines that it tells."""
        return None

    def state(self):
        return {"made": self.made, "lines": self.lines, "revision": self.revision}


class OwnNotebook(Own):
    """Also renamed, deleted and taken back: `undo` is what an undo brings back, newest last: the lines, and the name before a rename."""
    kind = "notebook"

    def __init__(self, *args):
        super().__init__(*args)
        self.name, self.renames, self.deleted = self.agent, 0, False
        self.revisions = {}
        self.undo, self.undone = [], 0

    def step(self, token):
        draw = self.rng.random()
        self.next, self.next_name, self.next_deleted = self.lines, self.name, False
        self.next_undo, self.next_undone = self.undo, 0
        self.changed = [self.name]
        if self.deleted:
            self.next_undone = 1
            return "notebook", {"mode": "undo", "name": self.name}
        if self.made and draw < 0.15 and self.undo and self.undone < UNDOS:
            self.next, self.next_name = self.undo[-1]
            self.next_undo, self.next_undone = self.undo[:-1], self.undone + 1
            self.changed = [self.name, self.next_name] if self.next_name != self.name else [self.name]
            return "notebook", {"mode": "undo", "name": self.name}
        if self.made and draw < 0.2:
            self.next_deleted = True
            return "notebook", {"mode": "delete", "name": self.name, **self.expected()}
        if self.made and draw < 0.27:
            self.renames += 1
            self.next_name = f"{self.agent}-{self.renames}"
            self.next_undo = [*self.undo, (self.lines, self.name)]
            self.changed = [self.name, self.next_name]
            return "notebook", {"mode": "rename", "name": self.name, "newName": self.next_name, **self.expected()}
        self.next_undo = [*self.undo, (self.lines, self.name)] if self.made else []
        return super().step(token)

    def create(self):
        return "notebook", {"mode": "create", "name": self.name, "newStr": "begin"}

    def append(self, token):
        return "notebook", {"mode": "write", "name": self.name, "newStr": token, **self.expected()}

    def replace(self, old, token):
        return "notebook", {"mode": "write", "name": self.name, "oldStr": old, "newStr": token, **self.expected()}

    def done(self, result, revision):
        for name in self.changed:
            self.revisions[name] = self.revisions.get(name, 0) + 1
        wanted = 0 if self.next_deleted else self.revisions[self.next_name]
        self.made, self.lines, self.name, self.deleted = True, self.next, self.next_name, self.next_deleted
        self.undo, self.undone, self.revision = self.next_undo, self.next_undone, self.revisions[self.next_name]
        return None if revision == wanted else f"revision {revision}, not {wanted}"

    def read(self):
        return None if self.deleted or not self.made else ("notebook", {"mode": "read", "name": self.name})

    def shown(self, told):
        return told.split("\n")

    def state(self):
        return {**super().state(), "name": self.name, "deleted": self.deleted, "revisions": self.revisions}


class OwnPage(Own):
    kind = "page"

    def __init__(self, *args):
        super().__init__(*args)
        self.id = None
        self.deleted = False
        self.versions = {}
        self.former = None  # the lines before the last write, where that is the last change

    def where(self, **more):
        return {"collection": "pages", "notebook_id": self.id, **more}

    def step(self, token):
        self.next_deleted, self.next_former = False, None
        back = self.lines if self.deleted else self.former
        if back is not None and self.rng.random() < (0.5 if self.deleted else 0.1):
            self.next = back
            return "notebook_restore", self.where()
        if self.deleted:
            version = self.rng.choice(list(self.versions))
            self.next = self.versions[version]
            return "notebook_restore", self.where(version=version)
        if self.made and self.rng.random() < 0.1:
            self.next, self.next_deleted = self.lines, True
            return "notebook_delete", self.where()
        self.next_former = self.lines if self.made else None
        return super().step(token)

    def create(self):
        return "notebook_create", {"collection": "pages", "title": f"own {self.agent}", "content": "begin\n"}

    def append(self, token):
        return "notebook_update", self.where(append=token + "\n", expected_version=self.revision)

    def replace(self, old, token):
        return "notebook_update", self.where(edits=[{"old_str": old, "new_str": token}], expected_version=self.revision)

    def done(self, result, revision):
        self.id = result["notebook_id"]
        self.deleted, self.former = self.next_deleted, self.next_former
        # A deleted document reports revision 0; its history continues.
        revision = self.revision + 1 if self.deleted and revision == 0 else revision
        wrong = super().done(result, revision)
        if not self.deleted:
            self.versions[revision] = self.lines
        return wrong

    def read(self):
        return None if self.deleted or not self.made else ("notebook_read", self.where())

    def shown(self, told):
        return told["content"].removesuffix("\n").split("\n")

    def state(self):
        return {**super().state(), "id": self.id, "deleted": self.deleted}


class OwnCells(Own):
    """The model's lines are the sources, with the ids beside them."""
    kind = "cells"

    def __init__(self, *args):
        super().__init__(*args)
        self.path = os.path.join(self.places["own"], f"{self.agent}.ipynb")
        self.ids = []

    def where(self, **more):
        return {"notebook": self.path, "expectedRevision": self.revision, **more}

    def step(self, token):
        lines, ids = list(self.lines), list(self.ids)
        what = self.rng.choice(["add", "add", "update", "move", "delete"]) if len(ids) > 2 else "add"
        at = self.rng.randrange(len(ids)) if ids else 0
        self.adds = None
        if not self.made:
            self.adds, self.next, self.next_ids = 0, [""], [None]
            return "createNotebook", {"notebook": self.path}
        if what == "add":
            self.adds = at
            request = "addNotebookCell", self.where(type="code", index=at, content=token)
            lines.insert(at, token)
            ids.insert(at, None)
        elif what == "update":
            request = "updateNotebookCell", self.where(cellId=ids[at], content=token)
            lines[at] = token
        elif what == "move":
            request = "moveNotebookCell", self.where(cellId=ids[at], index=len(ids) - 1)
            lines.append(lines.pop(at))
            ids.append(ids.pop(at))
        else:
            request = "deleteNotebookCells", self.where(cellIds=[ids[at]])
            del lines[at], ids[at]
        self.next, self.next_ids = lines, ids
        return request

    def done(self, result, revision):
        self.ids = self.next_ids
        if self.adds is not None:
            found = re.search(r"Cell ID: (\S+)", result)
            if not found:
                return f"no cell id in {result!r}"
            self.ids[self.adds] = found.group(1)
        return super().done(result, revision)

    def state(self):
        return {**super().state(), "path": self.path, "ids": self.ids}


class OwnMemory(Own):
    """Memory in the agent's own space: logged, taken down in checkpoints, put back. The lines are what it must remember."""
    kind = "memory"

    def __init__(self, *args):
        super().__init__(*args)
        self.space = f"~{self.agent}"
        self.points = {}
        self.summary = self.next_summary = ""

    def step(self, token):
        what = self.rng.choice(["log", "log", "log", "summary", "snapshot", "restore"])
        self.next, self.next_summary, self.snapshot = self.lines, self.summary, False
        if what == "restore" and self.points:
            point = self.rng.choice(list(self.points))
            self.next, self.next_summary = copy.deepcopy(self.points[point])
            return "checkpoint_restore", {"checkpoint_id": point}
        if what == "snapshot":
            self.snapshot = True
            return "checkpoint_snapshot", {"label": token}
        if what == "summary":
            self.next_summary = token
            return "memory_summary", {"text": token}
        self.next = [*self.lines, token]
        return "memory_log", {"content": token}

    def done(self, result, revision):
        self.made = True
        if self.snapshot:
            self.points[result["checkpoint_id"]] = (self.lines, self.summary)
        if "previous_checkpoint_id" in result:
            self.points[result["previous_checkpoint_id"]] = (self.lines, self.summary)
        self.lines, self.summary = self.next, self.next_summary
        return None

    def state(self):
        return {**super().state(), "summary": self.summary}


def own_work(rng, agent, places):
    return [kind(rng, agent, places) for kind in (OwnNotebook, OwnPage, OwnMemory)]
