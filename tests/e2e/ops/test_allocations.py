# SPDX-License-Identifier: MIT
"""Memory that is not there: some requests, with their first, second, third ... allocation failing. All of them: tests/alloc/run."""

import sys

from conftest import SOURCE, binary

sys.path.insert(0, str(SOURCE / "tests" / "alloc"))
import control  # noqa: E402
import sweep  # noqa: E402

NUMBERS = range(1, 26)


def test_requests_without_memory(tmp_path):
    work = sweep.Sweep(sweep.World(binary(), control.build(tmp_path), tmp_path), tell=lambda text: print(text, flush=True))
    chosen = [case for case in sweep.choose([]) if case.short]
    found = work.run(chosen, lambda case: NUMBERS)
    assert not found, "\n".join(f"{name}, allocation {number}: {what} {where}" for name, number, what, where in found)
    assert work.failures >= len(chosen)
