# SPDX-License-Identifier: MIT
"""The guide of a lead's morning: its commands run as they stand there, one block after the other, and show what it says."""

import os
import subprocess

import pytest
from conftest import Gateway, binary, environment, eventually
from test_guides import GUIDES, TIMEOUT, blocks

GUIDE = GUIDES / "time-machine.md"
NIGHT = "notegate audit list --run night"
CALLS = 3  # of that run


@pytest.fixture(name="shown", scope="module")
def fixture_shown(tmp_path_factory):
    """What each block prints."""
    home = tmp_path_factory.mktemp("morning")
    gateway = Gateway(home / "data", ["audit=on"])

    def run(text):
        path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=home, timeout=TIMEOUT,
                              env={**environment(), "PATH": path, "HOME": str(home), "NOTEGATE_DATA_DIR": str(gateway.data_dir)})
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def written():
        """Calls do not wait for the audit log: while the disk is slow their entries come late."""
        return run(NIGHT).count(" notebook ") >= CALLS

    *before, proof = blocks(GUIDE, "sh")
    assert NIGHT in proof
    shown = [run(block) for block in before]
    eventually(written, what="the entries of the night")
    yield [*shown, run(proof)]
    assert gateway.stop() == 0, gateway.errors


def test_what_happened(shown):
    assert "night" in shown[1] and "robot" in shown[1]
    for name in ("plan", "budget", "advice"):
        assert f"team/notebooks/{name}" in shown[1]
    assert "+wrong\n" in shown[1] and "-one\n" in shown[1] and "+buy\n" in shown[1]


def test_who_wrote_this_line(shown):
    lines = shown[2].splitlines()
    assert ["ana" in lines[0], "robot" in lines[1], "ben" in lines[2]] == [True] * 3
    assert "(robot night notebook " in lines[1] and "(ben   -     notebook " in lines[2]
    assert lines[-1] == "one"


def test_taken_back(shown):
    assert "overlap" in shown[3] and "nothing" in shown[3] and "undo-" in shown[3]
    assert shown[3].splitlines()[-2:] == ["one", "two"]


def test_proved(shown):
    listed = [line for line in shown[4].splitlines() if " notebook " in line]
    assert len(listed) == CALLS and all(" robot " in line for line in listed)
    assert "whole" in shown[4]
