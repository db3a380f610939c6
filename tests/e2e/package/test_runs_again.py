# SPDX-License-Identifier: MIT
"""packaging/test on a tree with planted tests: what fails the first time only is flaky, what fails always is red, and so is a crash."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import SOURCE, eventually

TIMEOUT = 600
KEPT = ("packaging/test", "packaging/packages.sh", "packaging/servers.sh", "CMakePresets.json", "tests/requirements.txt",
        "tests/support/results.py", "tests/support/crashes.py", "tests/support/servers.py", "tests/mcp/package.json", "tests/mcp/package-lock.json")
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(planted NONE)
enable_testing()
add_custom_target(quick)
"""
# The first run leaves a mark; `$1` is what it does then.
FIRST = """#!/bin/sh
if [ ! -e "$0.ran" ]; then
    touch "$0.ran"
    eval "$1"
fi
"""
CONFTEST = """import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from crashes import pytest_runtest_logstart, pytest_runtest_makereport  # noqa: E402,F401
"""
PYTHON = """import pathlib
import pytest


def first(request):
    mark = pathlib.Path(__file__).with_name(request.node.name.replace("/", "_"))
    return not mark.exists() and (mark.touch() or True)


"""


@pytest.fixture
def planted(tmp_path):
    """planted(pytest tests, [command of a program of ctest...]) makes the tree; run(arguments) is the exit code and the output."""
    root = tmp_path / "project"
    for name in KEPT:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, root / name)

    def plant(text, commands=("true",)):
        (root / "tests/mcp/conftest.py").write_text(CONFTEST)
        (root / "tests/mcp/test_planted.py").write_text(PYTHON + text)
        programs = ""
        for number, command in enumerate(commands):
            program = root / f"program{number}"
            program.write_text(FIRST)
            program.chmod(0o755)
            programs += f"add_test(NAME unit.planted{number} COMMAND {program} [[{command}]])\n"
        (root / "CMakeLists.txt").write_text(CMAKE + programs)
        return root

    def run(*words):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NOTEGATE_", "PYTEST_"))}
        done = subprocess.run([root / "packaging/test", *words], capture_output=True, text=True, timeout=TIMEOUT, env=kept)
        return done.returncode, done.stdout

    plant.run = run
    return plant


def test_an_installation_is_told_of(tmp_path):
    """Before it, for how long, and after it, how long it took; not where an earlier run has made it."""
    cached = re.search(r"^cached\(\) \{\n.*?^\}$", (SOURCE / "packaging/test").read_text(), re.M | re.S)[0]
    script = (f"root={tmp_path} cache={tmp_path}/cache python=python3\n" 'say() { echo "$*" >&2; }\nmake() { touch "$1/$2"; }\n'
              f"{cached}\ncached tools make one </dev/null")
    first, second = (subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=TIMEOUT) for _ in range(2))
    assert re.fullmatch(r"Installing tools for the tests \(a minute or two\) \.\.\.\nInstalled tools in \d+ s\.\n", first.stderr), first
    assert (second.returncode, second.stderr) == (0, "") and (tmp_path / "build/tools/one").exists()


def test_what_fails_the_first_time_is_flaky(planted):
    root = planted("def test_good():\n    pass\n\n\n@pytest.mark.parametrize('how', ['a b/c'])\n"
                   "def test_luck(request, how):\n    assert not first(request), 'out of luck'\n", ["true", "echo no luck; exit 1"])
    code, said = planted.run("unit", "mcp")
    lines = said.splitlines()
    flaky = [line for line in lines if line.startswith("flaky: ")]
    assert code == 0, said
    assert flaky == ["flaky: unit.planted1 (unit): Failed",
                     "flaky: mcp/test_planted.py::test_luck[a b/c] (mcp): AssertionError: out of luck", "flaky: 2"], said
    assert (root / "build/test/flaky.txt").read_text().splitlines() == flaky[:2]
    assert lines[-2:] == ["flaky: 2", "4 passed, 0 failed, 0 skipped"]
    # The next run starts anew.
    code, said = planted.run("unit", "mcp")
    assert code == 0 and said.splitlines()[-2] == "flaky: 0" and not (root / "build/test/flaky.txt").exists(), said


def test_what_fails_always_is_red(planted):
    planted("def test_good():\n    pass\n\n\ndef test_bad():\n    assert False, 'always'\n")
    code, said = planted.run("unit", "mcp")
    assert code == 1 and said.splitlines()[-2:] == ["flaky: 0", "2 passed, 1 failed, 0 skipped"], said
    assert re.search(r"^mcp +FAILED: 1 passed, 1 failed", said, re.M)


@pytest.mark.long
@pytest.mark.parametrize("command", ["kill -SEGV $$", "kill -ABRT $$", "echo '==1==ERROR: AddressSanitizer: heap'; exit 66"])
def test_a_crash_of_a_program_is_not_run_again(planted, command):
    planted("def test_good():\n    pass\n", [command])
    code, said = planted.run("unit")
    assert code == 1 and said.splitlines()[-2:] == ["flaky: 0", "0 passed, 1 failed, 0 skipped"], said


@pytest.mark.long
def test_a_crash_of_the_gateway_is_not_run_again(planted):
    planted("@pytest.fixture\ndef gateway(request):\n    yield first(request)\n    if request.node.rep:\n"
            "        pytest.fail('the gateway crashed: exit code -11')\n\n\n"
            "def test_call(request, gateway):\n    request.node.rep = gateway\n    assert not gateway, 'no answer'\n")
    code, said = planted.run("mcp")
    assert code == 1 and said.splitlines()[-2] == "flaky: 0", said


@pytest.mark.long
@pytest.mark.parametrize("command", ["kill -SEGV $$", "sh -c 'kill -ABRT $$'; exit $?"])
def test_a_crash_of_what_a_test_starts_is_not_run_again(planted, command):
    planted("import subprocess\n\n\ndef test_call(request):\n"
            f"    assert not first(request) or subprocess.run(['sh', '-c', {command!r}]).returncode == 0\n")
    code, said = planted.run("mcp")
    assert code == 1 and said.splitlines()[-2:] == ["flaky: 0", "0 passed, 1 failed, 0 skipped"], said


@pytest.mark.long
@pytest.mark.parametrize("second", ["pytest.skip('no server')", "assert False, 'an acknowledged write was lost'"])
def test_what_the_second_run_must_not_do(planted, second):
    planted(f"def test_luck(request):\n    assert not first(request), 'out of luck'\n    {second}\n")
    code, said = planted.run("mcp")
    assert code == 1 and said.splitlines()[-2:] == ["flaky: 0", "0 passed, 1 failed, 0 skipped"], said


@pytest.mark.long
def test_a_run_that_broke_off_is_red(planted):
    root = planted("def test_luck(request):\n    assert not first(request), 'out of luck'\n")
    (root / "tests/mcp/conftest.py").write_text(CONFTEST + "\n\ndef pytest_unconfigure(config):\n"
                                                "    if not hasattr(config, 'workerinput'):\n        raise SystemExit(3)\n")
    code, said = planted.run("mcp")
    assert code == 1 and said.splitlines()[-2:] == ["flaky: 0", "0 passed, 1 failed, 0 skipped"], said


@pytest.mark.parametrize(("asked", "last"), [
    (["mcp"], ""), (["stress", "tests/mcp/test_planted.py::test_endless", "--hogs", "0"], "passed 0 of 0 beside")])
def test_a_signal_ends_what_runs(planted, tmp_path, asked, last):
    root = planted(f"import os\nimport threading\n\n\ndef test_endless():\n    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
                   "    threading.Event().wait()\n")
    with subprocess.Popen([root / "packaging/test", *asked], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        number = eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), TIMEOUT, "the test to run")
        process.terminate()
        assert process.wait(TIMEOUT) == 143
        eventually(lambda: not pathlib.Path(f"/proc/{number}").exists(), TIMEOUT, "the end of the test")
        assert last in process.stdout.read().splitlines()[-1]


@pytest.mark.long
def test_six_of_two_suites_are_more_than_luck(planted):
    planted("@pytest.mark.parametrize('number', range(3))\ndef test_luck(request, number):\n    assert not first(request)\n", ["exit 1"] * 3)
    code, said = planted.run("unit", "mcp")
    assert code == 1 and "none is run again" in said and said.splitlines()[-2:] == ["flaky: 3", "3 passed, 3 failed, 0 skipped"], said


@pytest.mark.long
def test_six_are_more_than_luck(planted):
    planted("@pytest.mark.parametrize('number', range(6))\ndef test_luck(request, number):\n    assert not first(request)\n")
    code, said = planted.run("mcp")
    assert code == 1 and "none is run again" in said and said.splitlines()[-2:] == ["flaky: 0", "0 passed, 6 failed, 0 skipped"], said


@pytest.mark.long
def test_one_test_many_times(planted):
    planted("def test_luck(request):\n    assert not first(request), 'out of luck 7'\n", ["exit 1"])
    code, said = planted.run("stress", "tests/mcp/test_planted.py::test_luck", "--times", "3", "--hogs", "1")
    assert code == 1 and "run 1 failed: mcp/test_planted.py::test_luck: AssertionError: out of luck 7" in said, said
    assert said.splitlines()[-1].startswith("tests/mcp/test_planted.py::test_luck: passed 2 of 3 beside 1 process")
    assert planted.run("stress", "tests/mcp/test_planted.py::test_luck", "--times", "2", "--hogs", "0")[0] == 0
    code, said = planted.run("stress", "unit.planted0", "--times", "2", "--hogs", "1")
    assert code == 1 and "unit.planted0: passed 1 of 2" in said, said
    for wrong in (["stress"], ["stress", "unit.planted0", "--times"], ["stress", "unit.planted0", "--times", "x"], ["stress", "tests/none/test_x.py"]):
        assert planted.run(*wrong)[0] == 2
