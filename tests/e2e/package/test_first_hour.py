# SPDX-License-Identifier: MIT
"""The first hour: four people type README.md's commands on a clean Debian, from nothing to a call, an MCP client, a
folder of notes and a root of their own, and another user of the machine looks in. Every command that an answer names is
typed as it is printed, by the user that it names."""

import asyncio
import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import struct
from typing import NamedTuple

import httpx2
import pytest
from conftest import SOURCE, binary
from installed_support import CACHE, DATA, Machine, base, build_package, clean
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0 or shutil.which("debootstrap") is None,
                                                   reason="needs root and debootstrap")]

# Packages, a build and its start.
RUN_SECONDS = 900
# What is compiled once, for the next person and the next run; packaging/test cleans it up as what it downloads.
COMPILED = CACHE / "ccache"
CCACHE = {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": "/var/cache/ccache", "CCACHE_NOHASHDIR": "1",
          "CCACHE_MAXSIZE": "200M"}
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1


class Person(NamedTuple):
    user: str
    clone: str
    has_sudo: bool  # the machine; the person may use it
    types: dict = {}  # in place of README's words, as README says


SRV = {"$HOME/notes": "/srv/notes", "$HOME/project": "/srv/project", "~/project": "/srv/project"}
VPS = Person("root", "/root/notegate", False, {"notegate serve": "packaging/run serve", **SRV})
WITH_SUDO = Person("ada", "/home/ada/notegate", True)
WITHOUT_SUDO = Person("ada", "/home/ada/notegate", False)
SERVICE = Person("ada", "", True, {"notegate call": "sudo -u notegate notegate call", **SRV})


def blocks(title, kind="sh"):
    section = re.search(rf"^## {title}\n(.*?)^## ", (SOURCE / "README.md").read_text(), re.M | re.S).group(1)
    return re.findall(rf"^```{kind}\n(.*?)^```$", section, re.M | re.S)


RUN, FIRST_CALL, PATH = blocks("Start")
FIRST_ANSWER = blocks("Start", "json")[0]
CONNECT, = blocks("Connect an agent")
NOTES_SERVE, NOTES = blocks("A folder of notes")
ROOT_SERVE, ROOT = blocks("A root of your own")
MAKE_FOLDERS = re.search(r"`(install -d [^`]+)`", (SOURCE / "README.md").read_text()).group(1)


def named(text):
    """The commands that a text names, each with the user that is to type it: '', the reader."""
    found = re.findall(r"(?:by (?:user )?(an administrator|\w+) with )?`([^`]+)`(?: as (an administrator|root))?", text)
    assert found and "..." not in str(found), text
    return [(before or behind, command) for before, command, behind in found]


class Hour:
    """A person at a machine, and bob, who has no rights on it."""

    def __init__(self, person, machine):
        self.person, self.machine, self.names = person, machine, itertools.count(1)

    def _typed(self, text):
        for word, other in self.person.types.items():
            text = text.replace(word, other)
        return f"{PATH}{text}" if self.person.clone else text

    def type(self, text, status=0):
        done = self.machine.command(self.person.user, self._typed(text), self.person.clone or "/", status)
        return done.stdout if status == 0 else done.stderr

    def serve(self, text):
        """Stops the gateway and starts one in the first terminal: what is printed until it listens."""
        self.machine.stop()
        text = re.sub(r"((?:sudo )?packaging/run|notegate serve)", r"exec \1", self._typed(text), count=1)
        return self.machine.serve(self.person.user, text, self.person.clone, RUN_SECONDS)

    def follow(self, text, reader, status=0):
        """Types each command that the text names; the output of the last."""
        for who, command in named(text):
            user = {"": reader, "an administrator": "ada"}.get(who, who)
            assert self.person.has_sudo or "sudo" not in command, text
            done = self.machine.command(user, command.replace("NAME", f"guest{next(self.names)}"), "/", status)
        return done.stdout if status == 0 else done.stderr

    def first_call(self, user=None, key=None):
        """README's first call."""
        header = f" -H 'Authorization: Bearer {key.strip()}'" if key else ""
        done = self.machine.command(user or self.person.user, FIRST_CALL.rstrip() + header)
        assert done.stdout == FIRST_ANSWER.strip(), done

    def key(self, user):
        """The same call, which is refused: a key, made as the answer says."""
        answer = json.loads(self.machine.command(user, FIRST_CALL).stdout)
        assert answer["code"] == "UNAUTHENTICATED", answer
        return self.follow(answer["hint"], user)

    def guest(self, program=None):
        if program:
            self.follow(self.machine.command("bob", f"{program} call notebook mode=list", "/home/bob", 1).stderr, "bob")
        self.first_call("bob", self.key("bob"))

    def connect(self, key=None):
        """An MCP client of the person's, to the address that Claude Code is told."""
        async def run():
            headers = {"Authorization": f"Bearer {key.strip()}"} if key else {}
            async with httpx2.AsyncClient(headers=headers) as http_client:
                async with Client(streamable_http_client(shlex.split(CONNECT)[-1], http_client=http_client)) as client:
                    assert {"notebook", "fileEditor"} <= {tool.name for tool in (await client.list_tools()).tools}
                    return (await client.call_tool("notebook", {"mode": "list"})).content[0].text

        os.seteuid(int(self.machine.command(self.person.user, "id -u").stdout))
        try:
            assert "plan" in asyncio.run(run())
        finally:
            os.seteuid(0)

    def notes(self):
        created, found, note = (json.loads(line) for line in self.type(NOTES).splitlines())
        assert created["created"]["path"] == found["results"][0]["path"] == "projects/drone-swarm.md"
        assert note["note"]["content"].endswith("Ask [[Ada]].\n")

    def root(self):
        folder = self.machine.root / self.person.types.get("$HOME/project", "/home/ada/project")[1:]
        assert "notegate" in self.type(ROOT)
        assert (folder / "hello.txt").read_text() == "Hello\nworld\n", "undone"


@pytest.fixture(scope="module", name="bases")
def made(tmp_path_factory):
    """They need the network: before this process has one of its own."""
    package = build_package(pathlib.Path(binary()).resolve().parents[1], tmp_path_factory.mktemp("package"))
    return {"package": package, "installed": base(package), "clean": clean()}


@pytest.fixture(scope="module", autouse=True)
def own_network(bases):
    """README's port is free there, and apt has only what is at hand."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    with socket.socket() as plain:
        fcntl.ioctl(plain, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
    yield
    assert libc.setns(before, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    os.close(before)


@pytest.fixture(name="begin")
def beginner(bases, tmp_path):
    with contextlib.ExitStack() as over:
        def begin(person):
            lower = bases["clean" if person.clone else "installed"]
            machine = Machine(lower, tmp_path, **CCACHE, CCACHE_BASEDIR=person.clone)
            over.callback(machine.close)
            if not person.has_sudo:
                machine.command("root", "SUDO_FORCE_REMOVE=yes dpkg --purge sudo")
            if person.clone:
                left_out = shutil.ignore_patterns("build", ".git")
                shutil.copytree(SOURCE, machine.root / person.clone[1:], ignore=left_out, symlinks=True)
                COMPILED.mkdir(exist_ok=True)
                (COMPILED / "installed").touch()
                kept = machine.root / CCACHE["CCACHE_DIR"][1:]
                shutil.copytree(COMPILED, kept)
                over.callback(shutil.copytree, kept, COMPILED, dirs_exist_ok=True)
                machine.command("root", f"chown -R {person.user}: {person.clone} {CCACHE['CCACHE_DIR']}")
            return Hour(person, machine)

        yield begin


def check_phases(said, *phases):
    for phase in phases:
        assert re.search(rf"^{phase} in \d+ s\.$", said, re.M), said


def test_root_on_a_machine_without_sudo(begin):
    hour = begin(VPS)
    check_phases(hour.serve(RUN), "Installed", "Built release", "Made ready for the user notegate")
    hour.first_call()
    hour.connect()
    hour.guest("/opt/notegate/bin/notegate")
    # README's command for everybody, typed by root: each refusal names the next step.
    hour.machine.stop()
    hour.machine.command("root", "mkdir /root/project")
    said = hour.machine.command("root", f"{PATH}notegate serve --root ~/project", VPS.clone, 1).stderr
    said = hour.follow(said, "root", 1)
    assert "The root /root/project cannot be opened" in said
    hour.follow(said, "root")
    hour.serve("packaging/run serve --root /srv/notegate")
    # As README says for root.
    hour.type(MAKE_FOLDERS)
    hour.serve(NOTES_SERVE)
    hour.notes()
    hour.serve(ROOT_SERVE)
    hour.root()
    assert hour.machine.stores() == [DATA]


def user_story(hour):
    said = hour.serve(RUN)
    hour.first_call()
    hour.connect()
    hour.guest()
    hour.type("mkdir ~/notes ~/project")
    hour.serve(NOTES_SERVE)
    hour.notes()
    hour.serve(ROOT_SERVE)
    hour.root()
    assert hour.machine.stores() == ["/home/ada/.local/share/notegate"]
    return said


def test_a_user_with_sudo(begin):
    hour = begin(WITH_SUDO)
    check_phases(user_story(hour), "Installed", "Built release")
    # A gateway that sudo started is another user's. The user's own store is not taken for it.
    hour.serve("sudo packaging/run")
    hour.first_call(key=hour.key("ada"))
    said = hour.machine.command("ada", f"{PATH}notegate key list", WITH_SUDO.clone, 1).stderr
    assert "and it has keys of its own" in said


def test_a_user_without_sudo(begin):
    """An administrator installs the packages that packaging/run names."""
    hour = begin(WITHOUT_SUDO)
    said = hour.machine.command("ada", RUN, WITHOUT_SUDO.clone, 1).stderr
    hour.machine.command("root", re.search(r"^ +(apt-get .*)", said, re.M).group(1))
    check_phases(user_story(hour), "Built release")


def test_the_service(begin, bases):
    hour = begin(SERVICE)
    hour.machine.install(bases["package"])
    hour.machine.start()
    hour.guest("notegate")
    key = hour.type("sudo notegate key add ada")
    hour.first_call(key=key)
    hour.connect(key)
    hour.type(f"sudo {MAKE_FOLDERS}")
    hour.machine.stop()
    hour.machine.configure("roots: [/srv/project]", "opennotes.notebooks: [/srv/notes]")
    # `check` by root, beside no gateway, names the user whose data it is.
    said = hour.machine.command("root", "notegate check", status=1).stdout
    assert "chown" not in said
    hour.follow(re.search(r"^failed data directory: (.*)$", said, re.M).group(1).split(", or choose")[0], "root")
    hour.machine.start()
    hour.notes()
    hour.root()
    assert hour.machine.stores() == [DATA]
