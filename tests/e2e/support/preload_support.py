# SPDX-License-Identifier: MIT
"""Libraries that change what the system does for a gateway, preloaded into it."""

import os
import subprocess

from conftest import SUPPORT

# A sanitizer's runtime must come before everything that is preloaded.
SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")


def shim(monkeypatch, folder, name):
    """Preloads tests/e2e/support/NAME.c into the gateways that are started."""
    built = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", built, SUPPORT / f"{name}.c", "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(built))
