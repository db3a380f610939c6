# SPDX-License-Identifier: MIT
"""Commands whose reader leaves, as `head` does, or whose output is full."""

import contextlib
import json
import os
import subprocess

import pytest
from cli_support import BINARY, Gateway, environment, notegate

SECONDS = 120
PRINTS = [["--help"], ["help", "key"], ["--version"], ["--help-man"], ["--help-completion", "bash"],
          ["check", "--help-config"]]
# With the data directory of a store.
READS = [["tools"], ["tools", "notebook"], ["tools", "--format", "openai"],
         ["call", "notebook", "mode=read", "name=long"],
         ["call", "notebook", "mode=read", "name=long", "--json"], ["call", "notebook", "--help"], ["key", "list"],
         ["key", "list", "--json"], ["check"], ["verify"]]


def command(words, output):
    return subprocess.run([BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
                          text=True, timeout=SECONDS, env=environment(), check=False)


def to_nobody(words):
    """A command whose reader has left."""
    read, write = os.pipe()
    os.close(read)
    try:
        return command(words, write)
    finally:
        os.close(write)


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    """Keys, and a text that no pipe holds."""
    data = tmp_path / "data"
    body = {"mode": "create", "name": "long", "newStr": "a line of some length\n" * 4000}
    made = notegate("call", "notebook", json.dumps(body), "--data-dir", data)
    assert made.returncode == 0, made.stderr
    for name in ("ada", "bob"):
        assert notegate("key", "add", name, "--data-dir", data).returncode == 0
    return data


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_a_reader_that_leaves_is_told_nothing(words):
    done = to_nobody(words)
    assert (done.returncode, done.stderr) == (1, "")


def test_no_command_complains_of_a_reader_that_leaves(data):
    for running in (False, True):
        with Gateway(data) if running else contextlib.nullcontext():
            for words in READS:
                usual = notegate(*words, "--data-dir", data)
                done = to_nobody([*words, "--data-dir", data])
                assert (done.returncode, done.stderr) == (1, usual.stderr), words


def test_what_head_shows_is_all_that_is_shown(data):
    line = '"$0" call notebook mode=read name=long --data-dir "$1" | head -1'
    done = subprocess.run(["bash", "-c", line, str(BINARY), str(data)], capture_output=True, text=True, timeout=SECONDS,
                          env=environment(), check=False)
    assert (done.stdout, done.stderr) == ("a line of some length\n", "")


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_a_full_output_is_a_failure(words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = command(words, full)
    assert done.returncode == 1 and "cannot write to the standard output" in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_new_key_that_nobody_has_read_is_named(data, options):
    words = ["key", "add", "eve", *options, "--data-dir", data]
    with open("/dev/full", "w", encoding="utf-8") as full:
        for done in (to_nobody(words), command(words, full)):
            assert done.returncode == 1 and "the key could not be printed; revoke it (" in done.stderr
