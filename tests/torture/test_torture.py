# SPDX-License-Identifier: MIT
"""A short run of the torture rig; tests/torture/run is the long one."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402


def test_nothing_acknowledged_is_lost_when_the_gateway_is_killed():
    done = rig.run(seed=20261121, rounds=12)
    assert done.kills == 12
    assert done.acknowledged > 100
    assert all(told.updates > 0 for told in done.told)
    assert all(done.tasks[status] > 0 for status in ("completed", "failed", "cancelled")), done.tasks
