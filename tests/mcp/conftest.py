# SPDX-License-Identifier: MIT
"""Fixtures of the tests with Node clients: the gateway with its conformance plugin, and Node with the pinned packages."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
SCRIPT_SECONDS = 300


def load_e2e():
    """The helpers of tests/e2e, under a name that is free."""
    spec = importlib.util.spec_from_file_location("e2e_conftest", SOURCE / "tests" / "e2e" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


e2e = load_e2e()
from crashes import pytest_runtest_logstart, pytest_runtest_makereport  # noqa: E402,F401 (hooks)

# The plugins of tests here: all that are installed, and the fixtures.
WITH_FIXTURES = ("plugins=+conformance",)


class Node:
    """Node and its packages, as packaging/test installs them (NOTEGATE_TEST_NODE names another folder)."""

    def __init__(self):
        self.home = pathlib.Path(os.environ.get("NOTEGATE_TEST_NODE", SOURCE / "build" / "node"))
        self.modules = self.home / "node_modules"
        self.program = self.modules / ".bin" / "node"
        if not self.program.exists():
            pytest.fail(f"no Node at {self.program}: packaging/test e2e installs it")

    def command(self, *args):
        return [str(self.program), *map(str, args)]

    def environment(self):
        """Nothing of the caller's configuration; the packages' own programs find this Node."""
        values = e2e.environment()
        values["PATH"] = f"{self.program.parent}{os.pathsep}{values.get('PATH', '')}"
        values["NO_COLOR"] = "1"
        return values

    def run(self, *args, cwd, seconds=SCRIPT_SECONDS, extra=None):
        """A program to its end: (exit code, stdout, stderr)."""
        done = subprocess.run(self.command(*args), cwd=cwd, env={**self.environment(), **(extra or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="session")
def node():
    return Node()


@pytest.fixture(scope="session")
def script(node, tmp_path_factory):
    """script("name.mjs", arguments...) gives what a script of this folder printed: one JSON text."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "node_modules").symlink_to(node.modules)
    for path in HERE.glob("*.mjs"):
        shutil.copy(path, folder)

    def run(name, *args):
        code, out, errors = node.run(folder / name, *args, cwd=folder)
        assert code == 0, f"{name} ended with {code}:\n{out}\n{errors}"
        try:
            return json.loads(out)
        except ValueError:
            pytest.fail(f"{name} printed no JSON: {out!r}\n{errors}")

    return run


@pytest.fixture(scope="session")
def start_fixtures(tmp_path_factory):
    """start_fixtures() gives a gateway with the conformance plugin; all are stopped at the end."""
    started = []

    def begin(sets=()):
        gateway = e2e.Gateway(tmp_path_factory.mktemp("gateway") / "data", WITH_FIXTURES + tuple(sets))
        started.append(gateway)
        return gateway

    yield begin
    codes = [gateway.stop() for gateway in started]
    assert all(code == 0 for code in codes), [gateway.errors for gateway in started]


@pytest.fixture(scope="session")
def gateway(start_fixtures):
    return start_fixtures()


@pytest.fixture(scope="session")
def url(gateway):
    return f"{gateway.url}/mcp"
