# SPDX-License-Identifier: MIT
"""The audit log of a data directory, read as its pages describe it, without the gateway's code."""

import json

WIDTH = 256
PENDING_HEAD = 8 + 2 + 32


def tile_path(level, index, width):
    parts = [f"{index % 1000:03}"]
    while index >= 1000:
        index //= 1000
        parts.insert(0, f"x{index % 1000:03}")
    return f"tile/{level}/" + "/".join(parts) + (f".p/{width}" if width < WIDTH else "")


def split(bundle):
    at = 0
    while at < len(bundle):
        size = int.from_bytes(bundle[at:at + 2], "big")
        yield bundle[at + 2:at + 2 + size]
        at += 2 + size


def waiting(folder):
    """The entries that are in no tile yet, with their numbers."""
    path = folder / "pending"
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at < len(data):
        number = int.from_bytes(data[at:at + 8], "big")
        size = int.from_bytes(data[at + 8:at + 10], "big")
        yield number, data[at + PENDING_HEAD:at + PENDING_HEAD + size]
        at += PENDING_HEAD + size


def size(folder):
    """The entries that the checkpoint has signed."""
    path = folder / "checkpoint"
    return int(path.read_text().splitlines()[1]) if path.exists() else 0


def raw(data_dir):
    """All entries of a gateway that has stopped, as they stand in the log."""
    folder = data_dir / "audit"
    signed = size(folder)
    found = []
    for index in range((signed + WIDTH - 1) // WIDTH):
        width = min(WIDTH, signed - index * WIDTH)
        found += split((folder / tile_path("entries", index, width)).read_bytes())
    assert len(found) == signed
    return found + [text for number, text in waiting(folder) if number >= signed]


def names(data_dir):
    """What the names in entries stand for."""
    return {row["name"]: row["value"] for file in (data_dir / "audit" / "names").glob("*.jsonl")
            for row in map(json.loads, file.read_text().splitlines())}


def entries(data_dir):
    """All entries, with the values of their names."""
    known = names(data_dir)

    def told(value):
        if isinstance(value, dict):
            return {name: told(member) for name, member in value.items()}
        if isinstance(value, list):
            return [told(item) for item in value]
        return known.get(value, value)

    return [told(json.loads(text)) for text in raw(data_dir)]
