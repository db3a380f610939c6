# SPDX-License-Identifier: MIT
"""Hooks for a conftest.py: a failed test tells which of the programs that it started crashed. packaging/test never runs such a test
again."""

import signal
import subprocess

import pytest

SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
# How a program ends that crashed, itself or below a shell, and after a sanitizer's report (packaging/test).
CRASHES = [*(-number for number in SIGNALS), *(128 + number for number in SIGNALS), 66]

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
