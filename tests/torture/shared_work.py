# SPDX-License-Identifier: MIT
"""Writes of all agents at once: each write leaves its own token in a place that is read back at the end.

A place is a kind: "file" is the lines of one shared file, "page" the lines of one shared page, and so on; checks.py reads them.
"""
import os

COLLECTIONS = ("pages", "code_snippets", "research_notes")


class SharedWork:
    """Draws writes. `places` says where the shared documents are (see Round.prepare)."""

    def __init__(self, rng, places, files):
        self.rng = rng
        self.places = places
        kinds = [self.notebook, self.notebook, self.page, self.page, self.entry, self.memory, self.checkpoint]
        if files:
            kinds += [self.file, self.file, self.new_file, self.note, self.note_top, self.new_note, self.cell]
        self.kinds = kinds

    def draw(self, token):
        """(kind, tool, arguments, document): `document` names what has numbered revisions, else None."""
        return self.rng.choice(self.kinds)(token)

    def notebook(self, token):
        return "notebook", "notebook", {"mode": "write", "name": "torture", "newStr": token}, "notebooks/torture"

    def page(self, token):
        collection = self.rng.choice(COLLECTIONS)
        page = self.places["pages"][collection]
        return collection, "notebook_update", {
            "collection": collection, "notebook_id": page, "append": token + "\n"}, f"{collection}/{page}"

    def entry(self, token):
        collection = self.rng.choice(COLLECTIONS)
        return f"new {collection}", "notebook_create", {"collection": collection, "title": token, "content": token}, None

    def memory(self, token):
        return "memory", "memory_log", {"content": token, "tags": ["torture"]}, None

    def checkpoint(self, token):
        return "checkpoint", "checkpoint_snapshot", {"label": token}, None

    def file(self, token):
        return "file", "fileEditor", {"command": "insert", "path": self.places["file"], "insert_line": 0,
                                      "new_str": token}, None

    def new_file(self, token):
        return "new file", "fileEditor", {"command": "create", "path": os.path.join(self.places["new"], token),
                                          "file_text": token}, None

    def note(self, token):
        return "note", "opennotes_edit", {"path": "shared.md", "operation": "append", "content": token}, None

    def note_top(self, token):
        return "note top", "opennotes_edit", {"path": "top.md", "operation": "prepend", "content": token}, None

    def new_note(self, token):
        return "new note", "opennotes_create", {"title": token, "path": "new", "content": token}, None

    def cell(self, token):
        return "cell", "addNotebookCell", {"notebook": self.places["cells"], "type": "code", "index": 0,
                                           "content": token}, None
