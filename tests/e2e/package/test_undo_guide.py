# SPDX-License-Identifier: MIT
"""The guide of undo: its calls run as they stand there, and leave what it says."""

import os
import pathlib
import subprocess

import pytest
from conftest import Gateway, binary, environment
from test_guides import GUIDES, TIMEOUT, block, blocks

GUIDE = GUIDES / "undo.md"


@pytest.fixture
def shell(tmp_path):
    """Runs a block of the guide in a home folder with notes and a project."""
    home = tmp_path / "home"
    for folder in ("notes", "project"):
        (home / folder).mkdir(parents=True)
    gateway = Gateway(tmp_path / "data", [f"opennotes.notebooks={home}/notes", f"roots={home}/project"])

    def run(text):
        path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=home, timeout=TIMEOUT,
                              env={**environment(), "PATH": path, "HOME": str(home), "NOTEGATE_DATA_DIR": str(gateway.data_dir)})
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run.home = pathlib.Path(home)
    yield run
    assert gateway.stop() == 0, gateway.errors


def test_a_named_text(shell):
    answers = shell(block(GUIDE, "sh", "mode=undo name=plan")).splitlines()
    assert answers[2] == "Undid the last change of notebook 'plan'"
    assert answers[4] == "Undid the last change of notebook 'plans': renamed back to 'plan'"
    assert answers[6:] == ["Undid the deletion of notebook 'plan'", "one"]


def test_an_entry(shell):
    answers = shell(block(GUIDE, "sh", "notebook_restore"))
    assert '"restored_from":1' in answers.replace(": ", ":") and '"version":3' in answers.replace(": ", ":")
    assert '"content":"one"' in answers.replace(": ", ":")


def test_everything_of_a_run_for_people(shell):
    answers = shell(block(GUIDE, "sh", "undo --run"))
    assert "2 to take back, 0 unchanged, 0 conflicts\n" in answers and "2 taken back, 0 unchanged, 0 conflicts\nrun undo-" in answers
    assert '"content":"one"' in answers.replace(": ", ":")


def test_everything_that_a_run_did(shell):
    answers = shell(block(GUIDE, "sh", "history_undo")).splitlines()
    preview, undone = (line.replace(": ", ":") for line in answers if '"dry_run"' in line)
    assert '"undone":1' in preview and '"undo":' not in preview and '"undo":"undo-' in undone
    assert [line for line in answers if line][-2:] == ["one", "two"]


def test_a_document_restored(shell):
    assert '"restored_from":1' in shell(block(GUIDE, "sh", "history_restore")).replace(": ", ":")


def test_removed_for_good(shell):
    answers = shell(block(GUIDE, "sh", "purge=true")).replace(": ", ":")
    assert '"status":"purged"' in answers and '"pending"' not in answers


def test_a_note_a_file_a_cell(shell):
    shell(block(GUIDE, "sh", "opennotes_create"))
    assert (shell.home / "notes/plan.md").read_text().rstrip().endswith("one")
    assert (shell.home / "project/a.txt").read_text() == "one"
    assert "1 + 1" not in (shell.home / "project/a.ipynb").read_text()


def test_every_block_has_its_test():
    assert len(blocks(GUIDE, "sh")) == 7
