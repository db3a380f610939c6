# SPDX-License-Identifier: MIT
"""Small helpers of the command line's tests: the binary, a data directory, a serving gateway."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("NOTEGATE_TEST_BINARY", SOURCE / "build" / "dev" / "bin" / "notegate"))
BUILD = BINARY.parents[1]
WAIT_S = 120


def environment(**more):
    """The environment without anything that would configure a gateway."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NOTEGATE_")}
    kept["NOTEGATE_PLUGINS"] = "notebook"
    kept.update(more)
    return kept


def notegate(*words, stdin="", env=None, timeout=WAIT_S, cwd=None):
    """Runs one command to its end."""
    return subprocess.run(
        [str(BINARY), *map(str, words)], input=stdin, capture_output=True, text=True,
        timeout=timeout, env=env or environment(), cwd=cwd or "/")


class Gateway:
    """`notegate serve` on a free port."""

    def __init__(self, data_dir, *flags):
        self.data_dir = data_dir
        self.process = subprocess.Popen(
            [str(BINARY), "serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0",
             *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd="/")
        ready, _, _ = select.select([self.process.stdout], [], [], WAIT_S)
        self.line = self.process.stdout.readline() if ready else ""
        if "listening on http://" not in self.line:
            self.process.kill()
            raise AssertionError("no start: " + self.line + self.process.communicate()[1])
        self.url = self.line.split(" listening on ")[1].strip()

    def stop(self, number=signal.SIGTERM):
        """Stops it; the exit code and its stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def wait_for(condition, what):
    """Waits until condition() holds."""
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)
