# SPDX-License-Identifier: MIT
"""Plugins whose tools have schemas as no vendor and no generator likes them, for the tests of what is made from schemas."""

import pathlib
import shutil
import subprocess

import pytest
from conftest import SOURCE, binary

TIMEOUT = 60


def conformance_module():
    """The plugin of the protocol's test suites, where it was built."""
    build = pathlib.Path(binary()).resolve().parents[1]
    return next(build.rglob("conformance.so"), None)


def odd_plugins(folder):
    """The setting that adds them; odd_schemas is built first."""
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    module = folder / "odd_schemas.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(SOURCE / "core" / "include"),
                    "-o", str(module), str(SOURCE / "tests" / "e2e" / "odd_schemas.c")], check=True, timeout=TIMEOUT)
    added = [str(module)] + (["conformance"] if conformance_module() else [])
    return "plugins=" + ",".join("+" + name for name in added)
