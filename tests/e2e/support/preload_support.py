# SPDX-License-Identifier: MIT
"""Libraries that change what the system does for a gateway, preloaded into it."""

import contextlib
import os
import subprocess

import pytest
from conftest import SUPPORT

# A sanitizer's runtime must come before everything that is preloaded.
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
# How many times as fast the clock runs of a gateway whose test lives through its limits. A machine with much to do may stop the
# gateway for a moment, which counts so many times.
FAST = 1 if SANITIZED else 10


def shim(monkeypatch, folder, name):
    """Preloads tests/e2e/support/NAME.c into the gateways that are started."""
    built = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", built, SUPPORT / f"{name}.c", "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(built))


@contextlib.contextmanager
def fast_clock(folder):
    """Gateways that are started here have a clock that runs FAST times as fast."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if FAST > 1:
            shim(monkeypatch, folder, "clock")
            monkeypatch.setenv("CLOCK_RATE", str(FAST))
        yield


@pytest.fixture
def fast(tmp_path):
    """The gateways of this test have a clock that runs FAST times as fast."""
    with fast_clock(tmp_path):
        yield
