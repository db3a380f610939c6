# SPDX-License-Identifier: MIT
"""The main job: real clients of every kind work in one notebook and on one source file at once, and nothing is lost."""

import asyncio
import contextlib
import json
import os
import re
import subprocess

import httpx2
import pytest
from conftest import SOURCE, Gateway, binary, environment
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

SPACE = "team"
NOTEBOOK = "journal"
SAMPLE = SOURCE / "core" / "base" / "buf.c"
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
ROUNDS = 8 if SANITIZED else 12
TIMEOUT = 120
# Name of the agent and how it comes.
SDK_HTTP = {"ada": "legacy", "bob": "auto", "cyd": "2026-07-28", "dan": "auto"}
STDIO = ("eve", "flo")
CURL = ("gus", "hal")
AGENTS = (*SDK_HTTP, *STDIO, *CURL)
EDITS_PER_ROUND = 3


def notebook_edits(agent, number):
    """Appends a line, changes it, and puts a line behind it."""
    line = f"{agent}:{number:03d}"
    return [
        {"mode": "write", "newStr": f"{line} open"},
        {"mode": "write", "oldStr": f"{line} open", "newStr": f"{line} done"},
        {"mode": "write", "insertLine": f"{line} done", "newStr": f"{line} noted"},
    ]


def file_edits(agent, number):
    """The same with a file, before the agent's own marker and at a line that all agents use."""
    line = f"{agent}:{number:03d}"
    marker = f"/* end of {agent} */"
    return [
        {"command": "str_replace", "old_str": marker, "new_str": f"/* {line} open */\n{marker}"},
        {"command": "str_replace", "old_str": f"/* {line} open */", "new_str": f"/* {line} done */"},
        {"command": "insert", "insert_line": 3, "new_str": f"/* {line} noted */"},
    ]


class Job:
    """The shared notebook and file, and their acknowledged writes."""

    def __init__(self, folder):
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir()
        self.file = self.root / SAMPLE.name
        self.revisions = []
        self.file_revisions = []
        self.gateway = None

    def start(self):
        self.gateway = Gateway(self.folder / "data", args=["--root", f"{SPACE}:{self.root}"])

    def call(self, tool, arguments, agent="first"):
        answer = self.gateway.call(tool, arguments, {"X-Notegate-Agent": agent, "X-Notegate-Space": SPACE})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def notebook(self):
        return self.call("notebook", {"mode": "read", "name": NOTEBOOK})

    def prepare(self):
        self.original = SAMPLE.read_text()
        text = self.original + "".join(f"/* end of {agent} */\n" for agent in AGENTS)
        self.call("fileEditor", {"command": "create", "path": str(self.file), "file_text": text})
        made = self.call("notebook", {"mode": "create", "name": NOTEBOOK, "newStr": "# Journal"})
        assert made["revision"] == 1

    async def work(self, agent, call):
        """One agent's day: its edits one after the other, notebook and file at once; call() gives the revision."""

        async def notes():
            for number in range(ROUNDS):
                for edit in notebook_edits(agent, number):
                    self.revisions.append(await call("notebook", {"name": NOTEBOOK, **edit}))

        async def code():
            for number in range(ROUNDS):
                for edit in file_edits(agent, number):
                    self.file_revisions.append(await call("fileEditor", {"path": str(self.file), **edit}))

        await asyncio.gather(notes(), code())


# ---- the clients ----


async def with_sdk(job, agent, client):
    async with client:

        async def call(tool, arguments):
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content[0].text
            return answer.meta["notegate/revision"]

        await job.work(agent, call)


async def sdk_over_http(job, agent, mode):
    headers = {"X-Notegate-Agent": agent, "X-Notegate-Space": SPACE}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT, trust_env=False) as http:
        transport = streamable_http_client(job.gateway.url + "/mcp", http_client=http)
        await with_sdk(job, agent, Client(transport, mode=mode, read_timeout_seconds=TIMEOUT))


async def sdk_over_stdio(job, agent):
    """`notegate mcp` beside the gateway: it passes everything on to it."""
    words = ["mcp", "--data-dir", str(job.gateway.data_dir), "--agent", agent, "--space", SPACE]
    server = StdioServerParameters(command=binary(), args=words, env=environment(), cwd=str(job.folder))
    await with_sdk(job, agent, Client(server, read_timeout_seconds=TIMEOUT))


async def curl(job, agent):
    async def call(tool, arguments):
        process = await asyncio.create_subprocess_exec(
            "curl", "-sS", "--fail-with-body", "--max-time", str(TIMEOUT), f"{job.gateway.url}/v1/tools/{tool}",
            "-H", "Content-Type: application/json", "-H", f"X-Notegate-Agent: {agent}",
            "-H", f"X-Notegate-Space: {SPACE}", "--data-binary", json.dumps(arguments),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = await process.communicate()
        assert process.returncode == 0, (out, errors)
        return json.loads(out)["revision"]

    await job.work(agent, call)


async def everybody(job):
    await asyncio.gather(
        *(sdk_over_http(job, agent, mode) for agent, mode in SDK_HTTP.items()),
        *(sdk_over_stdio(job, agent) for agent in STDIO),
        *(curl(job, agent) for agent in CURL),
    )


# ---- the job ----


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The job after the work of all agents."""
    job = Job(tmp_path_factory.mktemp("job"))
    job.start()
    try:
        job.prepare()
        asyncio.run(everybody(job))
        yield job
        assert job.gateway.stop() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            job.gateway.process.kill()
        job.gateway.process.wait()


def test_every_notebook_edit_is_there_once(done):
    lines = done.notebook()["result"].split("\n")
    expected = [f"{agent}:{number:03d} {what}" for agent in AGENTS for number in range(ROUNDS)
                for what in ("done", "noted")]
    assert sorted(lines) == sorted(["# Journal", *expected])
    for agent in AGENTS:
        own = [line for line in lines if line.startswith(agent) and line.endswith("done")]
        assert own == sorted(own), f"{agent}'s lines are not in the order they were written"
        for line in own:
            assert lines[lines.index(line) + 1] == line.replace("done", "noted")


def test_revisions_have_no_gaps(done):
    writes = len(AGENTS) * ROUNDS * EDITS_PER_ROUND
    assert sorted(done.revisions) == list(range(2, writes + 2))
    assert done.notebook()["revision"] == writes + 1


def test_every_file_edit_is_there_once(done):
    text = done.file.read_text()
    for agent in AGENTS:
        for number in range(ROUNDS):
            line = f"{agent}:{number:03d}"
            assert text.count(f"/* {line} done */\n") == 1
            assert text.count(f"/* {line} noted */\n") == 1
            assert f"{line} open" not in text
        own = re.findall(rf"/\* {agent}:(\d+) done \*/", text)
        assert own == sorted(own)
    ours = re.compile(r"^/\* (?:end of )?(?:%s)[^*]*\*/\n" % "|".join(AGENTS), re.M)
    assert ours.sub("", text) == done.original
    assert len(set(done.file_revisions)) == len(AGENTS) * ROUNDS * EDITS_PER_ROUND
    shown = done.call("fileEditor", {"command": "view", "path": str(done.file)})
    assert shown["revision"] in done.file_revisions


def test_nothing_else_is_in_the_folder(done):
    assert os.listdir(done.root) == [done.file.name]


def test_undo_takes_back_one_change_after_the_other(done):
    seen = [done.file.read_text()]
    for number in range(3):
        edit = {"command": "insert", "path": str(done.file), "insert_line": 0, "new_str": f"/* undone {number} */"}
        done.call("fileEditor", edit, agent=AGENTS[number])
        seen.append(done.file.read_text())
    for number, text in reversed(list(enumerate(seen[:-1]))):
        done.call("fileEditor", {"command": "undo_edit", "path": str(done.file)}, agent=AGENTS[number])
        assert done.file.read_text() == text


def verified(job):
    shown = subprocess.run([binary(), "verify", "--data-dir", str(job.gateway.data_dir)], capture_output=True,
                           text=True, env=environment(), timeout=TIMEOUT, cwd=job.folder)
    assert shown.returncode == 0, shown.stdout + shown.stderr


@pytest.mark.parametrize("how", ["clean", "killed"])
def test_a_restart_keeps_all(done, how):
    before, text = done.notebook(), done.file.read_text()
    edit = {"command": "insert", "path": str(done.file), "insert_line": 0, "new_str": "/* before the end */"}
    done.call("fileEditor", edit)
    verified(done)
    if how == "clean":
        assert done.gateway.stop() == 0
    else:
        done.gateway.client.close()
        done.gateway.process.kill()
        done.gateway.process.wait()
    done.start()
    assert done.notebook() == before
    assert done.file.read_text() == "/* before the end */\n" + text
    done.call("fileEditor", {"command": "undo_edit", "path": str(done.file)})
    assert done.file.read_text() == text
    verified(done)
    # The next revision is the next number.
    again = done.call("notebook", {"mode": "write", "name": NOTEBOOK, "newStr": "after"})
    assert again["revision"] == before["revision"] + 1


def test_other_spaces_see_nothing_of_it(done):
    headers = {"X-Notegate-Agent": "stranger"}
    assert done.gateway.call("notebook", {"mode": "read", "name": NOTEBOOK}, headers).status_code == 404
    view = {"command": "view", "path": str(done.file)}
    answer = done.gateway.call("fileEditor", view, headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "PATH_OUTSIDE_ROOTS")
