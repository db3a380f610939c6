# SPDX-License-Identifier: MIT
"""Hooks for a conftest.py: a failed test tells which of the programs that it started crashed. packaging/test never runs such a test
again."""

import subprocess

import pytest

from servers import CRASH_SIGNALS

# How a program ends that crashed, itself or below a shell, after a sanitizer's report (packaging/test), and a gateway that a module
# ended (core/fault/crash.c).
CRASHES = [*(-number for number in CRASH_SIGNALS), *(128 + number for number in CRASH_SIGNALS), 66, 70]

started = []


class Watched(subprocess.Popen):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        started.append(self)


subprocess.Popen = Watched


def pytest_runtest_logstart():
    started[:] = [process for process in started if process.returncode is None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    crashed = [process for process in started if process.poll() in CRASHES] if report.failed else []
    if crashed and hasattr(report.longrepr, "addsection"):
        report.longrepr.addsection("crashes", "\n".join(f"a program crashed: exit code {process.returncode}: {process.args}"
                                                        for process in crashed))
    return report
