# SPDX-License-Identifier: MIT
"""What agents take from each other: all of them edit, rename, delete and take back the same few files, notes, named texts and a page.

RivalWork draws the calls, of which many are refused. The models are the rules of these tools: rivals.py makes the changes again with
them, in the order of the events.
"""
import os
import re
from collections import namedtuple

from own_files import STEPS, revision_of

# Answers that say: nothing was changed.
REFUSALS = {"CONFLICT", "NOT_FOUND", "FILE_EXISTS", "NO_HISTORY", "NOTE_NOT_FOUND", "NOTE_EXISTS", "ENTRY_NOT_FOUND", "VERSION_NOT_FOUND"}
FAILURES = re.compile("No edit history found|was renamed. Nothing was undone|undone, which is the most in a row")
NAMES = ("rival-a", "rival-b")
NOTES, FOLDERS, HUB, BOXED = ("rivals/rival-one.md", "rivals/rival-two.md"), ("rivals/box", "rivals/case"), "rivals/hub.md", "boxed.md"
TRASH = ".trash/"
# The hub's links to each of them.
LINKS = {"rivals/rival-one.md": "[[rival-one]] [note](rival-one.md)", "rivals/rival-two.md": "[[rival-two]] [note](rival-two.md)",
         "rivals/box": "[boxed](box/boxed.md)", "rivals/case": "[boxed](case/boxed.md)"}
WHOLE_HUB = re.compile(r"\[\[rival-(one|two)\]\] \[note\]\(rival-\1\.md\) \[boxed\]\((box|case)/boxed\.md\)\n?(t-\d+-\d{4}\n?)*")


def is_refusal(code, message):
    return code in REFUSALS or (code == "TOOL_FAILED" and FAILURES.search(message or "") is not None)


class RivalWork:
    """`places` says where they are (see Round.prepare)."""

    def __init__(self, rng, places):
        self.rng, self.places = rng, places
        self.undo = None    # of this agent's last change

    def draw(self, token):
        """(kind, tool, arguments)"""
        undo, self.undo = self.undo, None
        if undo and self.rng.random() < 0.5:
            return undo
        return self.rng.choice([self.text, self.page, self.file, self.note])(token)

    def done(self, kind, tool, asked):
        """It was acknowledged: the next call may take it back."""
        if kind == "rival file":
            self.undo = kind, tool, {"command": "undo_edit", "path": asked.get("destination", asked["path"])}
        elif kind == "rival note":
            path = TRASH + asked["path"] if tool == "opennotes_delete" else asked.get("to", asked["path"])
            self.undo = kind, "opennotes_edit", {"operation": "undo", "path": path}
        elif kind == "rival text":
            self.undo = kind, tool, {"mode": "undo", "name": asked.get("newName", asked["name"])}
        else:
            self.undo = kind, "notebook_restore", {"collection": "pages", "notebook_id": asked["notebook_id"]}

    def two(self, choices):
        return self.rng.sample(choices, 2)

    def file(self, token):
        path, other = self.two(self.places["rivals"])
        what = self.rng.choice([{"command": "create", "file_text": f"{token}\nhead\n"}, {"command": "delete"},
                                *2 * [{"command": "move", "destination": other}], *4 * [{"command": "undo_edit"}],
                                *2 * [{"command": "insert", "insert_line": 0, "new_str": token}],
                                *2 * [{"command": "str_replace", "old_str": "head", "new_str": f"head {token}"}]])
        return "rival file", "fileEditor", {"path": path, **what}

    def note(self, token):
        note, other = self.two(NOTES)
        folder, elsewhere = self.two(FOLDERS)
        edited = self.rng.choice([note, other, HUB])
        edits = [{"path": edited, "operation": "append", "content": token},
                 {"path": note, "operation": "str_replace", "oldStr": "head", "newStr": f"head {token}"}]
        undos = [{"path": path, "operation": "undo"} for path in (note, other, note, other, HUB, folder, TRASH + note)]
        moves = [(note, other), (note, other), (folder, elsewhere), (TRASH + note, note), (TRASH + note, note)]
        draw = self.rng.random()
        if draw < 0.1:
            return "rival note", "opennotes_delete", {"path": note}
        if draw < 0.4:
            path, to = self.rng.choice(moves)
            return "rival note", "opennotes_move", {"path": path, "to": to}
        return "rival note", "opennotes_edit", self.rng.choice(undos if draw < 0.7 else edits)

    def text(self, token):
        name, other = self.two(NAMES)
        what = self.rng.choice([*2 * [{"mode": "create", "newStr": token}], *3 * [{"mode": "write", "newStr": token}], {"mode": "delete"},
                                *2 * [{"mode": "rename", "newName": other}], *4 * [{"mode": "undo"}]])
        return "rival text", "notebook", {"name": name, **what}

    def page(self, token):
        where = {"collection": "pages", "notebook_id": self.places["rival page"]}
        tool, what = self.rng.choice([*3 * [("notebook_update", {"append": token + "\n"})], ("notebook_delete", {}),
                                      *3 * [("notebook_restore", {})], ("notebook_restore", {"version": 1})])
        return "rival page", tool, {**where, **what}


Step = namedtuple("Step", "what agent before after group")


class Model:
    """`texts`: what is there. `steps`: what an undo brings back, for each name, newest last. apply() makes one call's change and returns
    the events that it must make, (name, sign) each, or None where the call must be refused."""

    def __init__(self, texts):
        self.texts = texts
        self.steps = {name: [Step("create", "rig", None, text, None)] for name, text in texts.items()}
        self.late = False

    def push(self, name, what, agent, before, after, group=None):
        if not self.late:
            self.steps[name] = [*self.steps.get(name, []), Step(what, agent, before, after, group)]

    def put(self, name, text):
        self.texts.pop(name, None)
        if text is not None:
            self.texts[name] = text
        return [(name, self.sign(name))]

    def change(self, agent, what, name, text):
        self.push(name, what, agent, self.texts.get(name), text)
        return self.put(name, text)

    def last(self, agent, name):
        """The last change, if it is this agent's."""
        steps = self.steps.get(name)
        return steps[-1] if steps and steps[-1].agent == agent else None


class Files(Model):
    """The sign of a file is its hash, or how it went."""

    def push(self, name, *step):
        super().push(name, *step)
        self.steps[name] = self.steps.get(name, [])[-STEPS:]

    def sign(self, name):
        return revision_of(self.texts[name]) if name in self.texts else "deleted"

    def last(self, agent, name):
        last = super().last(agent, name)
        return last if last and last.after == self.texts.get(name) else None

    def carry(self, name, to):
        self.steps[to] = self.steps.pop(name, [])
        return self.put(to, self.texts.pop(name))

    def undo(self, agent, name):
        last = self.last(agent, name)
        if not last or (last.what == "move" and last.before in self.texts):
            return None
        self.steps[name] = self.steps[name][:-1]
        return self.carry(name, last.before) if last.what == "move" else self.put(name, last.before)

    def move(self, agent, name, to, group=None):
        if name not in self.texts or to in self.texts:
            return None
        made = self.carry(name, to)
        self.push(to, "move", agent, name, self.texts[to], group)
        return made

    def apply(self, agent, tool, asked):
        name, command = asked["path"], asked["command"]
        text = self.texts.get(name)
        if command == "undo_edit":
            return self.undo(agent, name)
        if (text is None) != (command == "create"):
            return None
        if command == "move":
            return self.move(agent, name, asked["destination"])
        if command == "create":
            if self.steps.get(name, [])[-1:] and self.steps[name][-1].what != "delete":
                self.steps[name] = []  # they belong to another file
            return self.change(agent, "create", name, asked["file_text"])
        made = {"delete": lambda: None, "insert": lambda: f"{asked['new_str']}\n{text}",
                "str_replace": lambda: text.replace(asked["old_str"], asked["new_str"])}[command]()
        return self.change(agent, command, name, made)


class Notes(Files):
    """With a move the hub changes, which has the links: a group, which is taken back as a whole. A folder has the text ""."""
    groups = 0

    def sign(self, name):
        return "moved" if name in FOLDERS or name.endswith(BOXED) else super().sign(name)

    def carry(self, name, to):
        made = super().carry(name, to)
        return made + (super().carry(f"{name}/{BOXED}", f"{to}/{BOXED}") if name in FOLDERS else [])

    def move(self, agent, name, to, group=None):
        if TRASH in name + to:
            return super().move(agent, name, to)
        self.groups += 1
        made = super().move(agent, name, to, self.groups)
        hub = self.texts[HUB].replace(LINKS[name], LINKS[to])
        if made is None or hub == self.texts[HUB]:
            return None
        self.push(HUB, "part", agent, self.texts[HUB], hub, self.groups)
        return made + self.put(HUB, hub)

    def undo(self, agent, name):
        last = self.last(agent, name)
        if last and last.what == "part":
            there = [each for each, steps in self.steps.items() if each != HUB and steps and steps[-1].group == last.group]
            return self.undo(agent, there[0]) if there else None
        if not last or not last.group:
            return super().undo(agent, name)
        part = self.last(agent, HUB)
        if not part or part.group != last.group or last.before in self.texts:
            return None
        self.steps[HUB] = self.steps[HUB][:-1]
        return super().undo(agent, name) + self.put(HUB, part.before)

    def apply(self, agent, tool, asked):
        name = asked["path"]
        if tool == "opennotes_move":
            return self.move(agent, name, asked["to"])
        if tool == "opennotes_delete":
            return self.move(agent, name, TRASH + name)
        if asked["operation"] == "undo":
            return self.undo(agent, name)
        if name not in self.texts:
            return None
        text = self.texts[name]
        return self.change(agent, "edit", name, f"{text}{asked['content']}\n" if asked["operation"] == "append"
                           else text.replace(asked["oldStr"], asked["newStr"]))


class Documents(Model):
    """The sign of a document is its number and its text."""

    def __init__(self, texts):
        super().__init__(texts)
        self.numbers = {name: 1 for name in texts}

    def put(self, name, text):
        self.numbers[name] = self.numbers.get(name, 0) + 1
        return super().put(name, text)

    def sign(self, name):
        return self.numbers[name], self.texts.get(name)

    def undo(self, agent, name):
        last = self.last(agent, name)
        if last:
            self.steps[name] = self.steps[name][:-1]
        return self.put(name, last.before) if last else None


class Texts(Documents):
    def undo(self, agent, name):
        last = self.last(agent, name)
        if not last or last.what not in ("rename", "renamed"):
            return super().undo(agent, name)
        if last.what == "renamed" or last.before[0] in self.texts:
            return None
        former, text = last.before[0], self.texts[name]
        self.steps[name], self.steps[former] = self.steps[name][:-1], last.before[1]
        return self.put(name, None) + self.put(former, text)

    def apply(self, agent, tool, asked):
        name, mode = asked["name"], asked["mode"]
        text = self.texts.get(name)
        if mode == "undo":
            return self.undo(agent, name)
        if text is None and mode != "create":
            return None
        if mode != "rename":
            return self.change(agent, mode, name, {"create": asked.get("newStr"), "write": f"{text}\n{asked.get('newStr')}"}.get(mode))
        to = asked["newName"]
        if to in self.texts:
            return None
        self.push(to, "rename", agent, (name, self.steps[name]), text)
        self.push(name, "renamed", agent, text, None)
        return self.put(name, None) + self.put(to, text)


class Page(Documents):
    def __init__(self, texts):
        super().__init__(texts)
        self.first = dict(texts)

    def undo(self, agent, name):
        last = self.last(agent, name)
        return super().undo(agent, name) if last and last.before is not None else None

    def apply(self, agent, tool, asked):
        name = asked["notebook_id"]
        text = self.texts.get(name)
        if tool == "notebook_restore":
            return self.change(agent, "restore", name, self.first[name]) if "version" in asked else self.undo(agent, name)
        if text is None:
            return None
        return self.change(agent, tool, name, text + asked["append"] if tool == "notebook_update" else None)
