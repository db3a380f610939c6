# SPDX-License-Identifier: MIT
"""Completion for bash and zsh: the files are what the program prints, and bash does with them what a person expects."""

import json
import re
import subprocess

import pytest

from cli_support import BINARY, SOURCE, environment, notegate

FOLDER = SOURCE / "packaging" / "completion"
BASH = FOLDER / "notegate.bash"
ZSH = FOLDER / "_notegate"
DRIVER = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _notegate; printf "%s\\n" "${COMPREPLY[@]}"'


def complete(*words, cwd="/", **more):
    done = subprocess.run(["bash", "--norc", "-c", DRIVER, "bash", BASH, str(BINARY), *words], capture_output=True, text=True, cwd=cwd,
                          env=environment(**more), timeout=120, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


def commands():
    return re.findall(r"^  ([a-z-]+) +[A-Z]", notegate("--help").stdout, re.M)


def options(command):
    return re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", notegate(command, "--help").stdout, re.M)


def test_the_files_are_what_the_program_prints():
    for shell, path in (("bash", BASH), ("zsh", ZSH)):
        assert path.read_text() == notegate("--help-completion", shell).stdout, f"notegate --help-completion {shell} >{path}"
    done = notegate("--help-completion", "fish")
    assert done.returncode == 2 and '"fish"' in done.stderr and "bash and zsh" in done.stderr


def test_commands_and_options():
    assert complete("") == commands() and "backup" in commands()
    assert complete("ver") == ["verify"]
    for command in commands():
        assert sorted(complete(command, "--")) == sorted(options(command)), command
    assert complete("backup", "--fi") == ["--files"]
    assert complete("--config", "/etc/x", "backup", "--fi") == ["--files"]
    assert complete("key", "") == ["add", "set", "pause", "resume", "list", "revoke"]
    assert complete("key", "rev") == ["revoke"]
    assert complete("key", "add", "") == []


def test_values():
    assert complete("call", "--mode", "") == ["ask", "edit", "agent"]
    assert complete("key", "add", "x", "--role", "a") == ["admin"]
    assert complete("call", "--agent", "") == []
    for name in complete("tools", "--format", ""):
        assert notegate("tools", "--format", name, env=environment()).returncode == 0, name


def test_files_and_folders(tmp_path):
    (tmp_path / "backups").mkdir()
    (tmp_path / "backup.old").touch()
    assert sorted(complete("restore", "back", cwd=tmp_path)) == ["backup.old", "backups"]
    assert complete("serve", "--data-dir", "back", cwd=tmp_path) == ["backups"]
    assert complete("serve", "--config", "backup.", cwd=tmp_path) == ["backup.old"]


def test_tools(tmp_path):
    listed = json.loads(notegate("tools", "--format", "openai", "--data-dir", tmp_path / "data").stdout)
    names = [tool["function"]["name"] for tool in listed]
    assert names and sorted(complete("call", "", NOTEGATE_DATA_DIR=str(tmp_path / "data"))) == sorted(names)
    assert complete("call", names[0], "") == []


@pytest.mark.parametrize("shell, path", [("bash", BASH), ("zsh", ZSH)])
def test_the_shell_reads_it(shell, path):
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    for command in commands():
        assert all(name in path.read_text() for name in options(command))
