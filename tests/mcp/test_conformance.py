# SPDX-License-Identifier: MIT
"""The two official MCP conformance suites against the real gateway: one test for each scenario, nothing expected to fail."""

import json
import re
import subprocess

import pytest

# The longest that one run of a suite may take.
SUITE_SECONDS = 600
# A folder of results: server-NAME-2026-11-22T03-09-28-412Z.
RESULT_FOLDER = re.compile(r"^server-(.+)-\d{4}-\d\d-\d\dT[\dZ-]+$")

# Requirements of 2025-11-25, frozen by the suite: 30.
REQUIRED_2025 = """
server-initialize logging-set-level ping completion-complete tools-list tools-call-simple-text tools-call-image
tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-with-logging tools-call-error
tools-call-with-progress tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults server-sse-multiple-streams
elicitation-sep1330-enums resources-list resources-read-text resources-read-binary resources-templates-read
resources-subscribe resources-unsubscribe prompts-list prompts-get-simple prompts-get-with-args
prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection
""".split()
# Cases that the suite runs without counting them, and that pass all the same.
FURTHER_2025 = "server-session-lifecycle json-schema-2020-12 server-sse-polling".split()

# Requirements of 2026-07-28: 37.
REQUIRED_2026 = """
server-stateless completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
tools-call-embedded-resource tools-call-mixed-content tools-call-error tools-call-with-progress server-sse-multiple-streams
resources-list resources-read-text resources-read-binary resources-templates-read sep-2164-resource-not-found prompts-list
prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection caching
input-required-result-basic-elicitation input-required-result-basic-sampling input-required-result-basic-list-roots
input-required-result-request-state input-required-result-multiple-input-requests input-required-result-multi-round
input-required-result-missing-input-response input-required-result-non-tool-request input-required-result-result-type
input-required-result-unsupported-methods input-required-result-tampered-state input-required-result-capability-check
input-required-result-ignore-extra-params input-required-result-validate-input
""".split()
FURTHER_2026 = """
json-schema-2020-12 http-header-validation http-custom-header-server-validation tasks-lifecycle tasks-capability-negotiation
tasks-wire-fields tasks-request-state-removal tasks-mrtr-input tasks-request-headers tasks-dispatch-and-envelope
tasks-required-task-error tasks-mrtr-composition
""".split()

# All that version 0.1.16 has: 32.
ALL_0_1 = """
server-initialize logging-set-level ping completion-complete tools-list tools-call-simple-text tools-call-image
tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-with-logging tools-call-error
tools-call-with-progress tools-call-sampling tools-call-elicitation json-schema-2020-12 elicitation-sep1034-defaults
server-sse-polling server-sse-multiple-streams elicitation-sep1330-enums resources-list resources-read-text
resources-read-binary resources-templates-read resources-subscribe resources-unsubscribe prompts-list prompts-get-simple
prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection
""".split()

# A run: the package, its arguments, and the arguments for one scenario.
RUNS = {
    "2025-11-25": ("conformance-0.2", ("--requirements", "2025-11-25"), ("--spec-version", "2025-11-25")),
    "2026-07-28": ("conformance-0.2", ("--requirements", "2026-07-28"), ("--spec-version", "2026-07-28")),
    "0.1.16": ("conformance-0.1", ("--suite", "all"), ()),
}
# SEP-2640 applies to a server that declares the extension for skills.
SKILLS = "sep-2640-skills-directory sep-2640-skills-enumeration sep-2640-skills-manifest".split()


class Run:
    """A suite's process and, when it has ended, the checks of each scenario."""

    def __init__(self, node, gateway, package, args, folder, of_one=()):
        self.node, self.gateway, self.package, self.of_one = node, gateway, package, of_one
        self.folder = folder
        self.alone = {}
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen(
            node.command(node.modules / package / "dist" / "index.js", "server", "--url", f"{gateway.url}/mcp",
                         *args, "--output-dir", folder / "results"),
            cwd=folder, env=node.environment(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.checks = None

    def results(self):
        if self.checks is None:
            self.process.wait(SUITE_SECONDS)
            self.checks = {}
            for path in (self.folder / "results").glob("*/checks.json"):
                self.checks[RESULT_FOLDER.match(path.parent.name).group(1)] = json.loads(path.read_text())
        return self.checks

    def again(self, scenario):
        """One scenario once more, with nothing beside it."""
        if scenario not in self.alone:
            folder = self.folder / f"again-{scenario}"
            folder.mkdir()
            run = Run(self.node, self.gateway, self.package, ("--scenario", scenario, *self.of_one), folder)
            try:
                self.alone[scenario] = run.results().get(scenario, [])
            finally:
                run.end()
        return self.alone[scenario]

    def said(self):
        self.log.seek(0)
        return self.log.read()[-4000:]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def runs(node, start_fixtures, tmp_path_factory):
    """Every run of a suite, all under way at once: they mostly wait. Each has a gateway of its own."""
    started = {}
    try:
        for name, (package, args, of_one) in RUNS.items():
            started[name] = Run(node, start_fixtures(), package, args, tmp_path_factory.mktemp("suite"), of_one)
        yield started
    finally:
        for run in started.values():
            run.end()


def told(check):
    return (f"{check['status']} {check['id']}: {check.get('errorMessage') or check.get('description')}\n"
            f"    {json.dumps(check.get('details'))[:1500]}")


def bad_ones(checks):
    return [check for check in checks if check["status"] not in ("SUCCESS", "INFO")]


def expect_passed(runs, run, scenario):
    """No check failed or warned, none but the suite's own was skipped, and at least one succeeded. The suites go by the
    clock in places, from 2 s on: a scenario for which the machine was too slow beside all others is run once more, alone."""
    checks = runs[run].results().get(scenario)
    assert checks is not None, f"{scenario} was not run:\n{runs[run].said()}"
    if bad_ones(checks):
        print("\n".join([f"{scenario} ({run}), at first:"] + [told(check) for check in bad_ones(checks)]))
        checks = runs[run].again(scenario)
    bad = bad_ones(checks)
    assert not bad, "\n".join([f"{scenario} ({run}):"] + [told(check) for check in bad])
    assert any(check["status"] == "SUCCESS" for check in checks), [told(check) for check in checks]


@pytest.mark.parametrize("scenario", REQUIRED_2025 + FURTHER_2025)
def test_2025_11_25(runs, scenario):
    expect_passed(runs, "2025-11-25", scenario)


@pytest.mark.parametrize("scenario", REQUIRED_2026 + FURTHER_2026)
def test_2026_07_28(runs, scenario):
    expect_passed(runs, "2026-07-28", scenario)


@pytest.mark.parametrize("scenario", ALL_0_1)
def test_0_1_16(runs, scenario):
    expect_passed(runs, "0.1.16", scenario)


@pytest.mark.parametrize("name", RUNS)
def test_the_suite_itself_is_content(runs, name):
    """Its own verdict is its exit code, but for what was run once more; what it ran is what is named here."""
    run = runs[name]
    named = {
        "2025-11-25": REQUIRED_2025 + FURTHER_2025,
        "2026-07-28": REQUIRED_2026 + FURTHER_2026 + ["tasks-status-notifications"],
        "0.1.16": ALL_0_1,
    }[name]
    assert sorted(run.results()) == sorted(named)
    if run.process.returncode != 0:
        refused = [scenario for scenario, checks in run.results().items()
                   if any(check["status"] in ("FAILURE", "WARNING") for check in checks)]
        assert refused, run.said()
        for scenario in refused:
            expect_passed(runs, name, scenario)


def test_counts():
    assert (len(REQUIRED_2025), len(REQUIRED_2026), len(ALL_0_1)) == (30, 37, 32)


def test_tasks_status_notifications(runs):
    """The suite has no harness for it yet and says so; nothing else may have happened."""
    checks = runs["2026-07-28"].results()["tasks-status-notifications"]
    assert [check["status"] for check in checks] == ["SKIPPED"]


def test_skills_are_not_declared(gateway, node, tmp_path):
    """So the three scenarios of SEP-2640 do not apply; should it be declared one day, they must be run."""
    answer = gateway.client.post("/mcp", headers={
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "server/discover"}, json={
            "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}}})
    extensions = answer.json()["result"]["capabilities"].get("extensions", {})
    assert "io.modelcontextprotocol/skills" not in extensions
    for scenario in SKILLS:
        run = Run(node, gateway, "conformance-0.2",
                  ("--scenario", scenario, "--spec-version", "2026-07-28"), tmp_path)
        try:
            checks = run.results().get(scenario, [])
            assert not [check for check in checks if check["status"] == "FAILURE"], run.said()
        finally:
            run.end()


def test_listening_needs_a_client_that_reads_streams(gateway):
    """A client that accepts only JSON cannot listen: it gets an error and does not wait for ever."""
    answer = gateway.client.post("/mcp", headers={
        "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen"}, json={
            "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
                "notifications": {"toolsListChanged": True}, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}}}})
    assert answer.status_code == 406
    assert answer.json()["error"]["code"] == -32600
