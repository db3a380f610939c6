# SPDX-License-Identifier: MIT
"""Versions of large files on MongoDB: whole up to 7 MiB, whatever history.max_file allows; none of larger files."""

import random

from mongo_world import mongo, serving  # noqa: F401

LARGEST = 7 * 1024 * 1024
MORE = ("history.max_file=64MiB", "file_editor.max_file_size=64MiB", "limits.body=64MiB", "limits.result=64MiB")


def noise(seed, size):
    """Text that has nothing twice."""
    return random.Random(seed).randbytes(size // 2 + 1).hex()[:size]


def versions(gateway, path):
    told = gateway.call("history_log", {"path": str(path)})
    assert told.status_code == 200, told.text
    return [(change["action"], change.get("revision")) for change in told.json()["result"]["changes"]]


def insert(gateway, path, line):
    saved = gateway.call("fileEditor", {"command": "insert", "path": str(path), "insert_line": 0, "new_str": line.rstrip()})
    assert saved.status_code == 200, saved.text


def test_the_largest_version(mongo, tmp_path):  # noqa: F811
    root, line = tmp_path / "root", "one more line\n"
    path = root / "large.txt"
    root.mkdir()
    uri = f"mongodb://127.0.0.1:{mongo.port}/?directConnection=true"
    made, other = noise(1, LARGEST), noise(2, LARGEST - len(line))
    with serving(tmp_path, uri, "30s", "notegate_versions", "file_editor,history", (*MORE, f"roots={root}")) as gateway:
        saved = gateway.call("fileEditor", {"command": "create", "path": str(path), "file_text": made})
        assert saved.status_code == 200, saved.text
        path.write_text(other)
        insert(gateway, path, line)
        assert path.read_text() == line + other
        for number, text in enumerate((made, other, line + other), 1):
            read = gateway.client.get("/v1/history/at", params={"path": str(path), "at": str(number)}, headers={"Accept": "text/plain"})
            assert read.status_code == 200 and read.text == text, (number, read.status_code, read.text[:300], versions(gateway, path))
        insert(gateway, path, line)
        assert path.read_text() == line + line + other
        assert versions(gateway, path) == [("updated", 0), ("updated", 3), ("created", 1)], versions(gateway, path)
