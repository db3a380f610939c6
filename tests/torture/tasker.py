#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An agent that makes MCP tasks, of both protocols, and looks after every kill whether what they say is true.

    tasker.py SETTINGS-FILE

A task that was answered is there. One that had ended stays as it was; one that ran when its gateway was killed has failed and
says why; one that asks goes on asking; one that was cancelled stays so.
"""
import json
import random
import sys
import time

from wire import Gone, Wire, stopped

FOREVER_MS = 600000
# Below what the gateway keeps for one caller, and lets run at a time.
TASKS_MAX = 400
FOREVER_MAX = 3
OVER = ("completed", "failed", "cancelled")
RESTARTED = "restarted while the tool ran"


class Task:
    def __init__(self, number, kind, life):
        self.number = number
        self.kind = kind
        self.life = life
        self.status = "working"
        self.cancelled = None  # None: not asked for; False: asked for, not answered; True
        self.answered_in = None  # the life in which its question was answered


class Tasker:
    def __init__(self, settings):
        self.stop_file = settings["stop_file"]
        self.rng = random.Random(f"{settings['seed']}-tasker")
        self.wire = Wire(settings["port_file"], settings["keys"]["tasker"])
        self.tasks = []
        self.log = open(f"{settings['folder']}/tasker.log", "a", buffering=1)

    def send(self, method, params):
        """The result or the error in either protocol version: a task of one version can be read in the other."""
        protocol = self.wire.stateless if self.rng.random() < 0.5 else self.wire.handshake
        status, body = protocol(method, params)
        if status in (503, 504):
            raise Gone
        return body.get("result"), body.get("error")

    def make(self, kind=None):
        living = sum(task.kind == "forever" and task.life == self.wire.life and task.status == "working" for task in self.tasks)
        kind = kind or self.rng.choice(["short", "short", "ask"] + (["forever"] if living < FOREVER_MAX else []))
        tool, arguments = ("k_ask", {}) if kind == "ask" else (
            "k_slow", {"ms": FOREVER_MS if kind == "forever" else self.rng.randrange(30)})
        params = {"name": tool, "arguments": arguments}
        if self.rng.random() < 0.5:
            _, body = self.wire.stateless("tools/call", params)
            result = body.get("result", {})
            number = result.get("taskId") if result.get("resultType") == "task" else None
        else:
            _, body = self.wire.handshake("tools/call", {**params, "task": {}})
            number = body.get("result", {}).get("task", {}).get("taskId")
        assert number, f"no task: {body}"
        self.tasks.append(Task(number, kind, self.wire.life))
        self.log.write(f"made {kind} {number}\n")
        return self.tasks[-1]

    def look(self, task):
        status, body = self.wire.stateless("tasks/get", {"taskId": task.number})
        if status in (503, 504):
            raise Gone
        assert "result" in body, f"task {task.number} ({task.kind}, life {task.life} of {self.wire.life}): {body}"
        self.judge(task, body["result"])

    def judge(self, task, found):
        """Is it true, for what was done to the task and for the gateways that lived since?"""
        status, story = found["status"], f"{vars(task)} in life {self.wire.life}: {found}"
        restarted = self.wire.life != task.life
        if task.status in OVER:
            assert status == task.status, f"it was over: {story}"
        if status == "working":
            assert not restarted or task.answered_in == self.wire.life, story
        elif status == "failed":
            assert restarted and RESTARTED in found["error"]["message"], story
            # A task that waits for an answer does not run: only a task before its question or after its answer can have
            # died.
            assert task.status != "input_required" or task.answered_in not in (None, self.wire.life), story
        elif status == "completed":
            text = found["result"]["content"][0]["text"]
            assert task.kind != "forever", story
            assert text == ("+said" if task.kind == "ask" else "slept for tasker in ~tasker"), story
        elif status == "input_required":
            assert task.kind == "ask" and "first" in found["inputRequests"], story
        else:
            assert status == "cancelled" and task.cancelled is not None, story
        if task.cancelled:
            assert status == "cancelled", story
        task.status = status

    def cancel(self, task):
        task.cancelled = task.cancelled or False
        result, error = self.send("tasks/cancel", {"taskId": task.number})
        # One that runs fails with its gateway, if that was killed just before.
        if task.kind == "ask" or task.life == self.wire.life:
            assert result is not None, f"{vars(task)}: {error}"
            task.cancelled = True

    def answer(self, task):
        try:
            status, body = self.wire.stateless("tasks/update", {"taskId": task.number, "inputResponses": {
                "first": {"action": "accept", "content": {"name": "said"}}}})
        finally:
            task.answered_in = self.wire.life
        if status in (503, 504):
            raise Gone
        assert "result" in body, f"{vars(task)}: {body}"

    def step(self):
        self.wire.open()
        if len(self.tasks) < TASKS_MAX and self.rng.random() < 0.4:
            self.make()
            return
        if not self.tasks:
            return
        task = self.rng.choice(self.tasks)
        self.look(task)
        if task.kind == "ask" and task.status == "input_required" and self.rng.random() < 0.3:
            (self.answer if self.rng.random() < 0.8 else self.cancel)(task)
        elif task.kind == "forever" and task.status == "working" and self.rng.random() < 0.5:
            self.cancel(task)

    def run(self):
        while not stopped(self.stop_file):
            try:
                self.step()
                time.sleep(0.002)
            except Gone:
                time.sleep(0.01)
        # The gateway is up now, and is not killed any more. One of each end at least, however few there were.
        self.wire.open()
        brief = self.make("short")
        while brief.status == "working":
            self.look(brief)
            time.sleep(0.01)
        self.make("forever")
        for task in self.tasks:
            self.look(task)
            if task.kind == "forever" and task.status == "working":
                self.cancel(task)
                self.look(task)
        kinds = {status: sum(task.status == status for task in self.tasks) for status in (*OVER, "input_required", "working")}
        self.log.write(f"all {json.dumps(kinds)}\n")
        self.wire.close()


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    Tasker(settings).run()


if __name__ == "__main__":
    main()
