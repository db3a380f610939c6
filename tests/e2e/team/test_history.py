# SPDX-License-Identifier: MIT
"""What one gateway, and three of them on one database, answer to many clients at once is linearizable: a short form, without faults.
tests/torture/run --history makes long ones while everything breaks."""

import subprocess

import pytest
from conftest import SOURCE

TORTURE = SOURCE / "tests" / "torture"
SEED = "20261128"
# A reader whose events do not go on is given up after 90 s (STILL_SECONDS).
PATIENCE = 600


@pytest.mark.parametrize("kind, operations", [("sqlite", "4000"), ("cluster", "800")])
def test_a_short_history_is_linearizable(kind, operations, tmp_path):
    folder = str(tmp_path / "history")
    for words in ([TORTURE / "run", "--history", folder, "--kind", kind, "--seed", SEED, "--operations", operations, "--faults", ""],
                  [TORTURE / "check", folder]):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout
