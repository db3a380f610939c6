# SPDX-License-Identifier: MIT
"""Short histories, and the proof that their check finds faults; tests/torture/run --history makes long ones."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
from faults import Faults  # noqa: E402
from history import Failed, Recording  # noqa: E402

SEED = "20261123"
OPERATIONS = {"sqlite": "20000", "cluster": "8000"}
# The stand-in for MongoDB is a program in Python: a hundred operations a second, of some 5 ms of its processor time each.
LONGEST_SECONDS = 600


def command(*words):
    done = subprocess.run(words, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST_SECONDS)
    print(done.stdout)
    return done.returncode, done.stdout


def test_the_checker_accepts_right_histories_and_refuses_wrong_ones():
    assert command("./check", "--test")[0] == 0


@pytest.mark.parametrize("kind", ["sqlite", "cluster"])
def test_a_history_with_faults_is_linearizable(kind, tmp_path):
    folder = str(tmp_path / "history")
    code, said = command("./run", "--history", folder, "--kind", kind, "--seed", SEED, "--operations", OPERATIONS[kind])
    assert code == 0, said
    code, said = command("./check", folder)
    assert code == 0, said


def test_a_history_is_ended_after_a_gateway_has_crashed(tmp_path, monkeypatch):
    def crash(_faults, gateway):
        gateway.process.kill()
        return lambda: None

    monkeypatch.setattr(Faults, "kill", crash)
    folder = str(tmp_path / "history")
    with pytest.raises(Failed, match="gateway0 ended with -9"):
        Recording(folder, "sqlite", SEED, 100000, faults=["kill"]).run()
    code, said = command("./check", folder)
    assert code == 0, said


@pytest.mark.parametrize("plant", ["lost", "double", "torn", "stale"])
def test_a_planted_fault_is_found(plant):
    code, said = command("./plants", plant)
    assert code == 0 and f"{plant}: found in" in said
