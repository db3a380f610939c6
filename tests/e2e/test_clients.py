# SPDX-License-Identifier: MIT
"""An agent framework that once failed, in an environment of its own; tests/clients/run has the others."""

import json
import sys

import pytest
from cli_support import notegate
from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tests" / "clients"))
import clients  # noqa: E402


@pytest.mark.parametrize("name", ["autogen"])
def test_a_framework_lists_calls_and_fails(start, tmp_path, name):
    gateway = start(sets=["auth=on"])
    made = notegate("key", "add", name, "--data-dir", gateway.data_dir, "--json")
    assert made.returncode == 0, made.stderr
    assert clients.faults(clients.use(name, gateway.url, json.loads(made.stdout)["key"], tmp_path)) == []
