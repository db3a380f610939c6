# SPDX-License-Identifier: MIT
"""Short runs of the torture rig; tests/torture/run is the long one."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import streams  # noqa: E402
from gateways import Databases  # noqa: E402

SEED = 20261121
# Load that every machine can take; the rest is for the long runs.
FAULTS = ("kill", "freeze", "term", "cut", "clock", "full", "sync")


def test_nothing_acknowledged_is_lost_when_the_gateway_is_killed():
    done = streams.run(seed=SEED, rounds=6)
    assert done.kills == 6
    assert done.acknowledged > 50
    assert all(told.updates > 0 for told in done.told)
    assert all(done.tasks[status] > 0 for status in ("completed", "cancelled")), done.tasks


@pytest.mark.parametrize("number", [number for number, kind in enumerate(rig.KINDS[:5]) if kind in ("sqlite", "memory")])
def test_rounds(number):
    totals, tools = rig.Totals(), rig.Tools(Databases())
    try:
        rig.run_round(SEED, number, rig.KINDS[number], tools, totals, FAULTS)
    finally:
        tools.close()
    assert sum(totals.writes.values()) > 0
