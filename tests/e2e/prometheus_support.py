# SPDX-License-Identifier: MIT
"""promtool, of Debian's package `prometheus`."""

import subprocess

TIMEOUT = 120


def promtool(*words, given=None):
    """Runs it, and fails with all that it says where it finds anything."""
    done = subprocess.run(["promtool", *map(str, words)], input=given, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def metrics_are_right(gateway):
    """/metrics of this gateway as Prometheus' own checks want it."""
    answer = gateway.client.get("/metrics")
    assert answer.status_code == 200
    assert promtool("check", "metrics", given=answer.text) == ""
