# SPDX-License-Identifier: MIT
"""CONTRIBUTING.md: every command in it runs, on the development build where there is one; of the suites, each name is one."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import SOURCE

TEXT = (SOURCE / "CONTRIBUTING.md").read_text()
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S) for line in block.splitlines()]
TIMEOUT = 600


@pytest.fixture(scope="module")
def suites():
    done = subprocess.run([SOURCE / "packaging/test", "no-such-suite"], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 2
    return set(re.findall(r"[a-z]\w+", done.stderr))


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("packaging/test")])
def test_suites(command, suites):
    assert set(command.split()[1:2]) <= suites


@pytest.mark.parametrize("command", [line for line in COMMANDS if not line.startswith("packaging/test")])
def test_commands(command):
    if "build/dev" in command or "preset dev" in command:
        if not (SOURCE / "build/dev/tests/test-unit-json").exists():
            pytest.skip("there is no development build")
    program = command.split()[0]
    if program == "gdb" and shutil.which("gdb") is None:
        wanted = re.search(r"--args (\S+)", command).group(1)
        assert (SOURCE / wanted).exists()  # the tests do not install gdb: the program to debug exists
        return
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CMOCKA")}
    done = subprocess.run(["bash", "-euc", command], cwd=SOURCE, capture_output=True, text=True, timeout=TIMEOUT, env=kept)
    assert done.returncode == 0, done.stdout + done.stderr


def test_named_suites_of_the_text(suites):
    assert set(re.findall(r"`packaging/test (\w+)`", TEXT)) <= suites


def test_the_changelog_has_the_release():
    version = re.search(r"^project\(notegate VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
    headings = re.findall(r"^## (.*)$", (SOURCE / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def build_info(source, header):
    """Commit and date that a build of this tree has."""
    script = SOURCE / "packaging/cmake/BuildInfo.cmake"
    subprocess.run(["cmake", f"-DSOURCE={source}", f"-DHEADER={header}", "-P", script], check=True, timeout=TIMEOUT)
    return tuple(re.fullmatch(r'#define BUILD_COMMIT "(.*)"\n#define BUILD_DATE "(.*)"\n', header.read_text()).groups())


def test_a_tree_without_git_has_its_commit_in_a_file(tmp_path):
    """packaging/VERSION, as `git archive` fills it in; in a clone git knows better."""
    tree, header = tmp_path / "tree", tmp_path / "made.h"
    version = tree / "packaging/VERSION"
    version.parent.mkdir(parents=True)
    shutil.copy(SOURCE / "packaging/VERSION", version)
    shutil.copy(SOURCE / ".gitattributes", tree)
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "t", "--date", "2026-01-02T00:00:00Z"]):
        subprocess.run([*git, *words], check=True, timeout=TIMEOUT, env=os.environ | {"GIT_COMMITTER_DATE": "2026-01-03T12:00:00Z"})
    commit, date = build_info(tree, header)
    assert re.fullmatch(r"[0-9a-f]{7,}", commit) and date == "2026-01-03"
    version.write_text("0123abc 2020-01-01\n")
    assert build_info(tree, header) == (f"{commit}-dirty", date)
    archive = tmp_path / "archive"
    archive.mkdir()
    with subprocess.Popen([*git, "archive", "HEAD"], stdout=subprocess.PIPE) as made:
        subprocess.run(["tar", "-x", "-C", archive], stdin=made.stdout, check=True, timeout=TIMEOUT)
    assert (archive / "packaging/VERSION").read_text() == f"{commit} {date}\n"
    assert build_info(archive, header) == (commit, date)
    # A tree that is neither has none.
    shutil.copy(SOURCE / "packaging/VERSION", archive / "packaging/VERSION")
    assert build_info(archive, header) == ("", "") or "Format" not in (SOURCE / "packaging/VERSION").read_text()
