# SPDX-License-Identifier: MIT
"""Commands that hints name, run as they are printed."""

import os
import pathlib
import re
import subprocess

from conftest import binary, environment

TIMEOUT = 120
# What a reader puts in place of the words in capitals.
FILLED = {"NAME": "guest", "TOOL": "notebook"}


def commands(text, **filled):
    """The commands that a text has in backquotes, with its words in capitals filled in."""
    found = [command for command in re.findall(r"`([^`]+)`", text) if re.match(r"\S*[^: ] ", command)]
    assert found, text
    for word, value in (FILLED | filled).items():
        found = [re.sub(rf"\b{re.escape(word)}(?!\w)", value, command) for command in found]
    return found


def owners(data_dir=None, **more):
    """The environment of a gateway's owner, whose `notegate` is the tested one."""
    named = {"NOTEGATE_DATA_DIR": str(data_dir)} if data_dir else {}
    return environment() | {"PATH": f"{pathlib.Path(binary()).parent}:{os.environ['PATH']}"} | named | more


def typed(command, data_dir=None, env=None, **more):
    """One command in a shell of that owner's."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=TIMEOUT, cwd="/", check=False,
                          env=env or owners(data_dir), **more)


def as_printed(text, data_dir=None, at=0, **filled):
    """The command that a text names; it must work."""
    command = commands(text, **filled)[at]
    done = typed(command, data_dir)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done
