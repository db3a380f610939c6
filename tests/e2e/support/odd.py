# SPDX-License-Identifier: MIT
"""Plugins for tests: those beside this file, and whose tools have schemas as no vendor and no generator likes them."""

import pathlib
import shutil
import subprocess

import pytest
from conftest import SOURCE, SUPPORT, binary

TIMEOUT = 60


def conformance_module():
    """The plugin of the protocol's test suites, where it was built."""
    build = pathlib.Path(binary()).resolve().parents[1]
    return next(build.rglob("conformance.so"), None)


def build_plugin(folder, name):
    """The module made of NAME.c of this folder."""
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    module = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(SOURCE / "core" / "include"),
                    "-o", str(module), str(SUPPORT / f"{name}.c")], check=True, timeout=TIMEOUT)
    return module


def odd_plugins(folder):
    """The setting that adds them; odd_schemas is built first."""
    added = [str(build_plugin(folder, "odd_schemas"))] + (["conformance"] if conformance_module() else [])
    return "plugins=" + ",".join("+" + name for name in added)
