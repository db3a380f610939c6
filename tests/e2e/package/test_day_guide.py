# SPDX-License-Identifier: MIT
"""The guide of a day's work: it has the tasks of day_support.TASKS, each within its calls, and each call runs as it stands there
and gives the answer that stands below it."""

import re
import shlex

import pytest
from cells_support import need
from day_support import TASKS
from test_guides import GUIDES, block, blocks
from test_undo_guide import shell  # noqa: F401 (a fixture)

GUIDE = GUIDES / "day.md"
GROUPS = blocks(GUIDE, "console")
LEFT_OUT = "…"
HOME = "/home/me"


def is_whole(command):
    """False: it goes on in the next line."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def tasks_of(group):
    """[(task, [[command, answer]])]"""
    found, command = [], None
    for line in group.splitlines():
        if command is not None:
            command += f"\n{line}"
        elif line.startswith("# "):
            found.append((line[2:], []))
        elif line.startswith("$ "):
            command = line[2:]
        else:
            found[-1][1][-1][1] += f"{line}\n"
        if command is not None and is_whole(command):
            found[-1][1].append([command, ""])
            command = None
    return found


def pattern_of(answer, home):
    """A line of `…` alone is any lines, elsewhere it is within a line."""
    lines = [r"(?:.*\n)*" if line == LEFT_OUT else re.escape(line).replace(LEFT_OUT, ".*") + r"\n" for line in answer.splitlines()]
    return "".join(lines).replace(HOME, str(home))


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_calls_and_answers(shell, number):  # noqa: F811
    need("python3")
    shell(block(GUIDE, "sh", "notegate call"))
    for task, calls in tasks_of(GROUPS[number]):
        assert 1 <= len(calls) <= TASKS[task], task
        for command, answer in calls:
            told = shell(command).rstrip("\n") + "\n"
            assert answer and re.fullmatch(pattern_of(answer, shell.home), told), f"{task}\n{answer}\n{told}"


def test_it_has_all_tasks():
    assert sorted(task for group in GROUPS for task, _ in tasks_of(group)) == sorted(TASKS)
