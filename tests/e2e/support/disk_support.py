# SPDX-License-Identifier: MIT
"""Small file systems of a test's own: mounted, filled, remounted."""

import contextlib
import os
import subprocess

import pytest

TIMEOUT = 120


@contextlib.contextmanager
def mounted(place, size):
    """A file system in memory of `size` ("6M") at the new folder `place`."""
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", str(place)],
                          capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, timeout=TIMEOUT)


@contextlib.contextmanager
def bound(source, place):
    """The file `source` as a mount of its own on the new file `place`, as volumes of containers are."""
    place.touch()
    done = subprocess.run(["mount", "--bind", str(source), str(place)], capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        pytest.skip(f"no file can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, timeout=TIMEOUT)


def remount(place, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True, timeout=TIMEOUT)


def fill(place, leave=0):
    """Takes all room but `leave` bytes."""
    filler = place / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 65536)
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))
    return filler


def free_bytes(place):
    room = os.statvfs(place)
    return room.f_bavail * room.f_frsize
