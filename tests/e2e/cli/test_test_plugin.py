# SPDX-License-Identifier: MIT
"""notegate test-plugin: cases of a plugin in a private gateway, and what it says of wrong cases and modules."""

import json
import re
import signal
import subprocess

import pytest
from conftest import ANSWER_SECONDS, SOURCE, binary, environment, eventually
from odd import build_plugin

GUIDE = SOURCE / "plugins" / "README.md"
FILE_MAX = 4 * 1024 * 1024
CASES_MAX = 1000
NAME_MAX = 200
EXPECT = {"text": "{}"}


@pytest.fixture(scope="module", name="modules")
def built(tmp_path_factory):
    """The guide's echo, and a plugin of mistakes."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "echo.c").write_text(re.search(r"^```c\n(.*?)^```$", GUIDE.read_text(), re.M | re.S).group(1))
    build_plugin(folder, "bad_plugin")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", str(SOURCE / "core" / "include"), "-o", str(folder / "echo.so"),
                    str(folder / "echo.c")], check=True, timeout=ANSWER_SECONDS)
    return folder


class Runner:
    """Runs cases; no run leaves anything in its folder of temporary files."""

    def __init__(self, modules, folder):
        self.modules = modules
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def words(self, cases, module, *more):
        text = cases if isinstance(cases, (str, bytes)) else json.dumps(cases)
        (self.folder / "cases.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        return [binary(), "test-plugin", str(module), str(self.folder / "cases.json"), *more]

    def environment(self, **more):
        return {**environment(), "TMPDIR": str(self.temporary), **more}

    def run(self, cases, module="echo.so", *more, **variables):
        done = subprocess.run(self.words(cases, module, *more), capture_output=True, text=True, cwd=self.modules, check=False,
                              timeout=ANSWER_SECONDS, env=self.environment(**variables))
        assert not list(self.temporary.iterdir()), "the data directory stayed"
        return done

    def passes(self, cases, *words, **variables):
        done = self.run(cases, *words, **variables)
        assert done.returncode == 0 and done.stderr == "", done
        assert done.stdout.splitlines()[-1] == f"{len(cases)} case{'s' * (len(cases) != 1)}, 0 failed"

    def refuses(self, cases, told, code=2, module="echo.so"):
        done = self.run(cases, module)
        assert done.returncode == code and done.stdout == "", done
        assert done.stderr.startswith("notegate: ") and told in done.stderr, done


@pytest.fixture(name="tester")
def fresh(modules, tmp_path):
    return Runner(modules, tmp_path)


def case(**members):
    return {"name": "one", "tool": "echo", "expect": EXPECT, **members}


# ---- passing ----


def test_answers_that_are_expected(tester):
    args = {"a": 1, "list": [{"x": 1, "y": 2}, "z"], "none": None}
    tester.passes([
        case(),
        case(args=args, expect={"text": json.dumps(args)}),
        case(args=args, expect={"result": {}}),
        case(args=args, expect={"result": {"a": 1.0, "none": None}}),
        case(args=args, expect={"result": {"list": [{"x": 1}, "z"]}}),
        case(role="reader", expect={"error": "FORBIDDEN"}),
        case(mode="ask", expect={"error": "MODE_FORBIDDEN", "message": "ask"}),
        case(tool="ehco", agent="eve", space="~eve", role="writer", mode="edit", expect={"error": "UNKNOWN_TOOL"}),
    ])


def test_one_store_in_order(tester):
    """Also of an installed plugin, by its name, and beside another one."""
    write = {"mode": "create", "name": "n", "newStr": "text"}
    read = {"mode": "read", "name": "n"}
    tester.passes([case(tool="notebook", args=read, space="team", expect={"error": "NOT_FOUND"})], "notebook")
    done = tester.run([case(tool="notebook", args=write, expect={"text": "?"}),
                       case(tool="notebook", args=read, expect={"text": "text"}), case()], "echo.so", "--set", "plugins=notebook")
    assert re.search(r"^FAILED one\n.*\n.*\nok one\nok one\n3 cases, 1 failed\n$", done.stdout), done
    assert done.returncode == 1


def test_neither_configuration_nor_environment(tester, tmp_path):
    (tmp_path / "notegate").mkdir()
    (tmp_path / "notegate" / "notegate.yaml").write_text("nonsense: 1\n")
    tester.passes([case()], XDG_CONFIG_HOME=str(tmp_path), NOTEGATE_DOCUMENTS="nothing", NOTEGATE_PLUGINS="nothing")


def test_options_of_the_plugin(tester):
    (tester.folder / "there").touch()
    tester.passes([case(tool="bad_blocks", args={"until": str(tester.folder)}, expect={"text": "done"})], "./bad_plugin.so", "--set",
                  f"bad_plugin.start_until={tester.folder}/there")
    done = tester.run([case()], "echo.so", "--set", "echo.colour=red")
    assert done.returncode == 1 and "echo.colour" in done.stderr
    done = tester.run([case()], "echo.so", "--set", f"data_dir={tester.folder}/data")
    assert done.returncode == 2 and "data_dir" in done.stderr
    assert not (tester.folder / "data").exists()


# ---- failing ----


@pytest.mark.parametrize("expect", [
    {"text": "{ }"}, {"text": ""}, {"result": {"a": 1}}, {"result": "{}"}, {"result": []}, {"error": "NOT_FOUND"}])
def test_an_answer_that_is_not_expected(tester, expect):
    done = tester.run([case(name="other"), case(expect=expect)])
    assert done.returncode == 1
    shown = json.dumps(expect, separators=(",", ":"))
    assert done.stdout == f'ok other\nFAILED one\n  expected: {shown}\n  actual:   {{"result":"{{}}"}}\n2 cases, 1 failed\n'


@pytest.mark.parametrize("expected, actual", [
    ({"list": [1]}, {"list": [1, 2]}), ({"list": [2, 1]}, {"list": [1, 2]}), ({"a": {"b": 1}}, {"a": {"b": 2}}),
    ({"a": None}, {}), ({"a": "1"}, {"a": 1}), ({"a": []}, {"a": {}})])
def test_results_that_do_not_match(tester, expected, actual):
    done = tester.run([case(args=actual, expect={"result": expected})])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 case, 1 failed")


def test_a_failure_that_is_not_expected(tester):
    done = tester.run([case(tool="ehco"), case(tool="ehco", expect={"error": "UNKNOWN_TOOL", "message": "nothing"})])
    assert done.returncode == 1
    assert done.stdout.count('  actual:   {"error":true,"code":"UNKNOWN_TOOL","message":"no tool is called \\"ehco\\""') == 2


# ---- wrong files of cases ----


@pytest.mark.parametrize("text, told", [
    ("[", "not JSON: line 1, column 2: "), ("{}", "a JSON array of 1 to 1000 cases"), ("[]", "a JSON array of 1 to 1000 cases")])
def test_no_cases(tester, text, told):
    tester.refuses(text, f"{tester.folder}/cases.json: ")
    tester.refuses(text, told)


@pytest.mark.parametrize("wrong, told", [
    (1, "a case must be an object"),
    ({"tool": "echo", "expect": EXPECT}, '"name" is missing'),
    ({"name": "n", "expect": EXPECT}, '"tool" is missing'),
    ({"name": "n", "tool": "echo"}, '"expect" is missing'),
    (case(exspect=1), 'unknown member "exspect"; a case may have name, tool, args, agent, space, role, mode, expect'),
    (case(name=""), '"name" must be one line'),
    (case(name="a\nb"), '"name" must be one line'),
    (case(name="n" * (NAME_MAX + 1)), f"1 to {NAME_MAX} bytes"),
    (case(tool=1), '"tool" must be a string'),
    (case(args=[]), '"args" must be an object'),
    (case(agent="a b"), '"agent" must be'),
    (case(space="~"), '"space" must be'),
    (case(role="king"), '"role" must be reader, writer or admin'),
    (case(mode="king"), '"mode" must be ask, edit or agent'),
    (case(expect=1), '"expect" must be an object'),
    (case(expect={}), "must have one of result, text and error"),
    (case(expect={"text": "", "result": 1}), "must have one of result, text and error"),
    (case(expect={"txt": ""}), 'unknown member "txt"; "expect" may have result, text, error, message'),
    (case(expect={"error": 1}), '"error" must be a string'),
    (case(expect={"text": "", "message": ""}), '"message" of "expect" needs "error"'),
])
def test_wrong_cases(tester, wrong, told):
    tester.refuses([case(), wrong], f"cases.json: case 2: {told}" if told[0] in '"ua' else told)


def test_limits(tester):
    tester.passes([case(name="n" * NAME_MAX)])
    tester.refuses([case()] * (CASES_MAX + 1), "1 to 1000 cases")
    tester.refuses(" " * (FILE_MAX + 1), f"larger than {FILE_MAX} bytes")


def test_files_that_cannot_be_read(tester):
    for path in ("/nowhere.json", "/"):
        done = subprocess.run([binary(), "test-plugin", "echo.so", path], capture_output=True, text=True, cwd=tester.modules, check=False,
                              env=environment(), timeout=ANSWER_SECONDS)
        assert done.returncode == 2 and f"{path}: cannot be read: " in done.stderr
    done = subprocess.run([binary(), "test-plugin", "echo.so"], capture_output=True, text=True, check=False, env=environment(),
                          timeout=ANSWER_SECONDS)
    assert done.returncode == 2 and "needs MODULE CASES.json" in done.stderr


# ---- wrong modules ----


def test_modules_that_cannot_be_loaded(tester):
    tester.refuses([case()], "name a file as ./nothing.so", 1, "nothing.so")
    tester.refuses([case()], "./nothing.so ", 1, "./nothing.so")
    tester.refuses([case()], "echo.c is not a shared object", 1, "./echo.c")
    tester.refuses([case()], "has a comma", 2, "./a,b.so")
    (tester.folder / "other.c").write_text("int other;\n")
    subprocess.run(["cc", "-shared", "-o", str(tester.folder / "other.so"), str(tester.folder / "other.c")], check=True,
                   timeout=ANSWER_SECONDS)
    tester.refuses([case()], "other.so", 1, tester.folder / "other.so")


@pytest.mark.plain_build
@pytest.mark.parametrize("tool, told", [
    ("bad_crashes", "the plugin ended the gateway with signal"), ("bad_exits", "the plugin ended the gateway with exit code 70")])
def test_a_module_that_ends_the_process(tester, tool, told):
    done = tester.run([case(name="before", tool="bad_prints", expect={"text": "done"}), case(tool=tool)], "bad_plugin.so")
    assert done.returncode == 1 and told in done.stderr and tool in done.stderr
    assert done.stdout == "ok before\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing(tester, number):
    cases = [case(name="before", tool="bad_prints", expect={"text": "done"}),
             case(tool="bad_blocks", args={"until": str(tester.folder / "never")}, expect={"text": "done"})]
    with subprocess.Popen(tester.words(cases, "./bad_plugin.so"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=tester.modules, env=tester.environment()) as process:
        assert process.stdout.readline() == "ok before\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=ANSWER_SECONDS)
    assert process.returncode == 1 and "stopped by a signal" in errors
    eventually(lambda: not list(tester.temporary.iterdir()), what="an empty folder")
