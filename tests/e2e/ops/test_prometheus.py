# SPDX-License-Identifier: MIT
"""The alerts and the dashboard of packaging/prometheus: each alert fires when it should, and all they name is told."""

import json
import re

import httpx
import pytest
import yaml
from conftest import SOURCE, Gateway
from disk_support import fill, mounted
from prometheus_client.parser import text_string_to_metric_families
from prometheus_support import firing, promtool

FOLDER = SOURCE / "packaging" / "prometheus"
ALERTS = FOLDER / "notegate.alerts.yaml"
DASHBOARD = FOLDER / "notegate.dashboard.json"
RULES = {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
# Labels that Prometheus adds; and metrics of roots on other file systems (test_disk.py has one).
OWN = {"up", "notegate_root_free_bytes", "notegate_root_total_bytes"}
NAMES = re.compile(r"\b(?:notegate|process)_[a-z0-9_]+\b|\bup\b")
TIMEOUT = 120


def labels(**more):
    return "{" + ",".join(f'{name}="{value}"' for name, value in {"job": "notegate", "instance": "a:1", **more}.items()) + "}"


def series(name, values, /, **more):
    return {name + labels(**more): values}


def calls(outcome, values):
    return series("notegate_calls_total", values, tool="notebook", outcome=outcome)


def bucket(bound, values):
    return series("notegate_store_commit_duration_seconds_bucket", values, le=bound)


# Metrics of a healthy gateway: samples of 120 minutes.
WELL = {
    **series("up", "1+0x120"),
    **series("process_start_time_seconds", "1000+0x120"),
    **series("notegate_data_free_bytes", "600+0x120"),
    **series("notegate_data_total_bytes", "1000+0x120"),
    **series("notegate_root_free_bytes", "600+0x120", root="/r"), **series("notegate_root_total_bytes", "1000+0x120", root="/r"),
    **series("notegate_store_needed_bytes", "0+0x120"),
    **series("notegate_store_commit_failures_total", "3+0x120"),
    **bucket("0.01", "0+60x120"), **bucket("2.5", "0+60x120"), **bucket("+Inf", "0+60x120"),
    **series("notegate_journal_degraded", "0+0x120"),
    **series("notegate_outbox_backlog", "5000-10x120"),
    **calls("ok", "0+600x120"), **calls("INTERNAL", "7+0x120"), **calls("STORAGE_FULL", "7+0x120"),
    **calls("BUSY", "5+0x120"), **calls("TIMEOUT", "0+1x120"),
    **series("notegate_in_use", "50+0x120", name="streams"), **series("notegate_limit", "100+0x120", name="streams"),
    **series("notegate_auth_failures_total", "0+5x120"),
    **series("process_open_fds", "40+0x120"), **series("process_max_fds", "100+0x120"),
    **series("notegate_reload_failures_total", "1+0x120"),
    **series("notegate_log_dropped_total", "9+0x120"),
}

# For each alert what makes it fire, and what fires at the 60th minute. The last two values: no series before, then one.
CASES = [
    ({"NotegateDown"}, series("up", "1+0x30 0+0x60")),
    ({"NotegateRestarts"}, series("process_start_time_seconds", "1000+0x50 2000 3000 4000 5000+0x60")),
    ({"NotegateWritesRefused"}, series("notegate_store_needed_bytes", "0+0x30 262144+0x60")),
    ({"NotegateWritesRefused"}, calls("STORAGE_FULL", "0+0x57 1+0x60")),
    ({"NotegateWritesRefused"}, calls("STORAGE_FULL", "_x57 1+0x60")),
    ({"NotegateDiskNearlyFull"}, series("notegate_data_free_bytes", "99+0x120")),
    ({"NotegateDiskNearlyFull"}, series("notegate_root_free_bytes", "99+0x120", root="/r")),
    ({"NotegateDiskFillsUp"}, series("notegate_data_free_bytes", "490-1x120")),
    ({"NotegateCommitsFail"}, series("notegate_store_commit_failures_total", "0+0x57 1+0x60")),
    ({"NotegateCommitsSlow"}, {**bucket("0.01", "0+30x120"), **bucket("2.5", "0+50x120")}),
    ({"NotegateJournalAway"}, series("notegate_journal_degraded", "0+0x30 1+0x60")),
    ({"NotegateBacklogGrows"}, series("notegate_outbox_backlog", "0+100x120")),
    ({"NotegateInternalErrors"}, calls("INTERNAL", "7+0x57 8+0x60")),
    ({"NotegateInternalErrors"}, calls("INTERNAL", "_x57 1+0x60")),
    ({"NotegateCallsFail"}, calls("TIMEOUT", "0+100x120")),
    ({"NotegateBusy"}, calls("BUSY", "0+10x120")),
    ({"NotegateLimitNearlyReached"}, series("notegate_in_use", "95+0x120", name="streams")),
    ({"NotegateCallersTurnedAway"}, series("notegate_auth_failures_total", "0+20x120")),
    ({"NotegateFilesNearlyOut"}, series("process_open_fds", "90+0x120")),
    ({"NotegateReloadFailed"}, series("notegate_reload_failures_total", "0+0x55 1+0x60")),
    ({"NotegateLogDropped"}, series("notegate_log_dropped_total", "9+0x55 400+0x60")),
]


def test_the_rules_are_right():
    assert f"SUCCESS: {len(RULES)} rules found" in promtool("check", "rules", ALERTS)
    for name, rule in RULES.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"]["summary"] and rule["annotations"]["description"], name


def test_nothing_fires_where_all_is_well(tmp_path):
    firing(tmp_path, ALERTS, WELL, {30: set(), 60: set(), 119: set()})


def test_every_alert_has_a_case():
    assert {name for names, _ in CASES for name in names} == set(RULES)


@pytest.mark.parametrize("names, wrong", CASES, ids=[" ".join(names) + f" {i}" for i, (names, _) in enumerate(CASES)])
def test_an_alert_fires(tmp_path, names, wrong):
    firing(tmp_path, ALERTS, {**WELL, **wrong}, {60: names})


# ---- what a gateway really tells ----


def snapshot(gateway):
    """{series: value} of /metrics, as the job `notegate` has them. Over the Unix socket, which no key guards."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost",
                      timeout=TIMEOUT) as client:
        text = client.get("/metrics").text
    return {sample.name + labels(**sample.labels): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples} | {"up" + labels(): 1}


def number(value):
    return str(int(value)) if value == int(value) else f"{value:.9f}"


def fires(folder, before, after, minutes):
    """30 minutes of one snapshot, then the other."""
    both = {name: (f"{number(before[name])}+0x29" if name in before else "_x30") + f" {number(value)}+0x60"
            for name, value in after.items()}
    firing(folder, ALERTS, both, minutes)


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path / "disk", "40M") as place:
        yield place


def test_a_full_disk_fires(disk, tmp_path):
    gateway = Gateway(disk / "data")
    assert gateway.call("notebook", {"mode": "create", "name": "n"}).status_code == 200
    before = snapshot(gateway)
    fill(disk, leave=512 * 1024)
    body = {"mode": "create", "name": "big", "newStr": "x" * 1000000}
    assert gateway.call("notebook", body).status_code == 507
    after = snapshot(gateway)
    assert gateway.stop() == 0
    fires(tmp_path, before, after, {29: set(), 32: {"NotegateWritesRefused", "NotegateCommitsFail"},
                                    40: {"NotegateWritesRefused", "NotegateDiskNearlyFull"}})


def test_a_database_that_is_gone_fires(tmp_path):
    gateway = Gateway(tmp_path / "data")
    assert gateway.call("notebook", {"mode": "create", "name": "n"}).status_code == 200
    before = snapshot(gateway)
    (tmp_path / "data" / "notegate.db").unlink()
    assert gateway.call("notebook", {"mode": "create", "name": "m"}).status_code == 503
    after = snapshot(gateway)
    assert gateway.stop() == 0
    fires(tmp_path, before, after, {29: set(), 32: {"NotegateCommitsFail"}})


def test_strangers_and_a_broken_configuration_fire(start, tmp_path):
    config = tmp_path / "notegate.yaml"
    config.write_text("auth: \"on\"\n")
    config.chmod(0o600)
    gateway = start(args=["--config", str(config)])
    before = snapshot(gateway)
    for _ in range(101):
        assert gateway.client.get("/v1/tools").status_code == 401
    config.write_text("auth: nonsense\n")
    with httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost",
                      timeout=TIMEOUT) as client:
        assert client.post("/v1/reload").status_code == 400
    after = snapshot(gateway)
    fires(tmp_path, before, after, {29: set(), 32: {"NotegateCallersTurnedAway", "NotegateReloadFailed"}})


# ---- names ----


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The names of all samples of a gateway."""
    gateway = Gateway(tmp_path_factory.mktemp("told") / "data")
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    names = {name.split("{")[0] for name in snapshot(gateway)}
    assert gateway.stop() == 0
    return names | OWN


def dashboard():
    found = json.loads(DASHBOARD.read_text())
    return found, [(panel["title"], target["expr"]) for panel in found["panels"] for target in panel.get("targets", [])]


def test_all_that_is_named_is_told(told):
    expressions = [(name, rule["expr"]) for name, rule in RULES.items()] + dashboard()[1]
    assert len(expressions) > len(RULES) + 30
    for where, expression in expressions:
        named = set(NAMES.findall(expression))
        assert named and named <= told, (where, named - told)


def test_outcomes_are_codes():
    header = (SOURCE / "core" / "include" / "notegate" / "errors.h").read_text()
    codes = set(re.findall(r'X\(NG_\w+, -\d+, "(\w+)"', header)) | {"ok"}
    named = {code for rule in RULES.values() for text in re.findall(r'outcome=~?"([^"]+)"', rule["expr"])
             for code in text.split("|")}
    assert named and named <= codes


def test_the_dashboard_is_well_formed(tmp_path):
    found, expressions = dashboard()
    assert found["title"] == "notegate" and found["uid"] == "notegate" and found["schemaVersion"] >= 30
    variables = {item["name"] for item in found["templating"]["list"]}
    assert variables == {"datasource", "job", "instance"}
    ids = [panel["id"] for panel in found["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in found["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"] and panel["description"], panel["title"]
    # Each expression is read by Prometheus itself, as the rule that records it.
    rules = []
    for index, (_, expression) in enumerate(expressions):
        for name, value in (("$__rate_interval", "5m"), ("$job", "notegate"), ("$instance", ".*")):
            expression = expression.replace(name, value)
        assert "$" not in expression, expression
        rules.append({"record": f"panel:{index}", "expr": expression})
    path = tmp_path / "panels.json"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", path)
