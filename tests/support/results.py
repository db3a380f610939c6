#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads what ctest and pytest wrote of a run (JUnit files), for packaging/test:

results.py counts FILE...    passed, failed and skipped cases; a test in a later file replaces that of an earlier one
results.py again LOG FILE    of the failed tests those that may be run again: a line each, name, TAB, first line of the failure
results.py failed LOG FILE...  all failed tests in that form, without those that passed in a later file
results.py slowest FILE...   the ten slowest tests

A crash, a sanitizer's report and a lost write are never left to a second run: those tests are not in `again`."""

import collections
import pathlib
import re
import sys
from xml.etree import ElementTree

# In the text of a failure that is no luck: a crash of a program, a sanitizer's report, a lost write, a test that could not be read.
NEVER_AGAIN = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|: runtime error: |the gateway crashed|a program crashed: "
    r"|(?:AssertionError: |--- )an acknowledged write was lost|\((?:Aborted|Illegal instruction|Floating point exception)\)|the module ended the process with"
    r"|Segmentation fault|Bus error|core dumped|Test failed with exception|Subprocess aborted|\*\*\*Exception|collection failure"
    r"|worker '\w+' crashed|\*\*\*Not Run")
# A line of ctest on how a program ended: its name, dots, the state.
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*(.*?) +[\d.]+ sec", re.M)
CASES = {state: re.compile(rf"^\[  {state} *\] (\d+) test", re.M) for state in ("PASSED", "FAILED", "SKIPPED")}
LINE_MAX = 200
SLOWEST = 10

Test = collections.namedtuple("Test", "name passed failed skipped seconds text title")


def of_ctest(case, ended):
    """A program of cmocka has many cases; others count as one."""
    name = case.get("name")
    text = case.findtext("system-out") or ""
    passed, failed, skipped = (sum(int(count) for count in CASES[state].findall(text)) for state in ("PASSED", "FAILED", "SKIPPED"))
    skip = case.find("skipped")
    if skip is not None and "SKIP_RETURN_CODE" in skip.get("message", ""):
        passed, failed, skipped = 0, 0, 1
    elif case.get("status") != "run":
        failed = max(failed, 1)
    elif passed + failed + skipped == 0:
        passed = 1
    how = ended.get(name, "")
    found = re.search(r"^(?:ERROR: |\[  ERROR   \] --- (?:\[   LINE   \] --- )?)(.*)$", text, re.M)
    title = found[1] if found else how.strip(" *")
    return Test(name, passed, failed, skipped, float(case.get("time", 0)), f"{text}\n{how}", title)


def of_pytest(case):
    file = case.get("file", "")
    within = case.get("classname", "")[len(file) - len(".py"):].strip(".").replace(".", "::")
    name = "::".join(part for part in (file, within, case.get("name")) if part)
    bad = [part for part in case if part.tag in ("failure", "error")]
    skipped = case.find("skipped") is not None
    text = "\n".join(f"{part.get('message', '')}\n{part.text or ''}" for part in bad)
    return Test(name, int(not bad and not skipped), int(bool(bad)), int(skipped and not bad), float(case.get("time", 0)), text,
                next((line for line in text.splitlines() if line.strip()), ""))


def tests_of(path, log=""):
    ended = dict(ENDED.findall(log))
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        yield of_ctest(case, ended) if case.get("status") is not None else of_pytest(case)


def counts(paths):
    tests = {}
    for path in paths:
        of_file = {}
        for test in tests_of(path):
            if not of_file.get(test.name, test).failed or test.failed:
                of_file[test.name] = test
        tests.update(of_file)
    print(*(sum(getattr(test, state) for test in tests.values()) for state in ("passed", "failed", "skipped")))


def failed(log, paths, only_luck):
    found = {}
    for path in paths:
        tests = list(tests_of(path, log))
        for name in {test.name for test in tests}:
            found.pop(name, None)
        for test in tests:
            if test.failed:  # and where its end fails too, there is another one of that name
                found.setdefault(test.name, []).append(test)
    for name, tests in found.items():
        if not only_luck or not any(NEVER_AGAIN.search(test.text) for test in tests):
            print(name, tests[0].title.strip()[:LINE_MAX], sep="\t")


def slowest(paths):
    tests = sorted(((test.seconds, test.name, pathlib.Path(path).stem) for path in paths for test in tests_of(path)), reverse=True)
    for seconds, name, suite in tests[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name} ({suite})")


def main(what, *paths):
    if what == "counts":
        counts(paths)
    elif what == "slowest":
        slowest(paths)
    else:
        failed(pathlib.Path(paths[0]).read_text(errors="replace"), paths[1:], what == "again")


if __name__ == "__main__":
    main(*sys.argv[1:])
