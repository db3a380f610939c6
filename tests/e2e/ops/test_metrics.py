# SPDX-License-Identifier: MIT
"""/metrics, read by Prometheus' own parser: the form is right and the numbers say what happened."""

import concurrent.futures

import httpx
from conftest import eventually
from prometheus_client.parser import text_string_to_metric_families
from prometheus_support import metrics_are_right, promtool

WRITE = {"mode": "write", "newStr": "text"}
TIMEOUT = 120


def families(gateway):
    answer = gateway.client.get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    # Each family has its head once, before its samples, and each series is there once.
    heads = [row.split()[2] for row in text.splitlines() if row.startswith("# TYPE ")]
    assert len(heads) == len(set(heads))
    series = [row.rsplit(" ", 1)[0] for row in text.splitlines() if not row.startswith("#")]
    assert len(series) == len(set(series))
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(gateway, name, **labels):
    """The sum of the samples of this name that have these labels."""
    family = families(gateway)
    return sum(sample.value for found in family.values() for sample in found.samples
               if sample.name == name and labels.items() <= sample.labels.items())


def test_form_and_names(gateway):
    assert gateway.call("notebook", WRITE, {"X-Notegate-Agent": "ann"}).status_code == 200
    assert gateway.call("notebook", {"mode": "nonsense"}).status_code == 400
    found = families(gateway)
    for name in ("notegate_calls", "notegate_agent_calls", "notegate_agent_errors", "notegate_call_duration_seconds",
                 "notegate_limit", "notegate_in_use", "notegate_data_free_bytes", "notegate_data_total_bytes",
                 "notegate_data_size_bytes", "notegate_store_needed_bytes", "notegate_outbox_backlog", "notegate_build_info",
                 "notegate_store_cache_hits", "notegate_store_cache_misses", "notegate_store_cache_bytes",
                 "notegate_files_kept", "notegate_files_kept_bytes", "notegate_files_kept_limit_bytes",
                 "notegate_files_kept_hits", "notegate_files_kept_misses",
                 "notegate_store_transactions", "notegate_store_batches_per_transaction",
                 "notegate_store_commit_duration_seconds", "notegate_journal_degraded", "notegate_mcp_sessions",
                 "notegate_auth_failures", "notegate_rate_limited", "notegate_log_dropped", "notegate_http_responses",
                 "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds",
                 "process_cpu_seconds"):
        assert name in found and found[name].documentation is not None, name
    limits = {sample.labels["name"] for sample in found["notegate_limit"].samples}
    assert limits == {"body", "depth", "connections", "streams", "stream_backlog", "queue", "workers", "buffered",
                      "call_timeout", "result"}
    assert found["notegate_call_duration_seconds"].type == "histogram"
    for sample in found["notegate_call_duration_seconds"].samples:
        assert sample.labels["tool"]


def test_as_prometheus_wants_it(start):
    """With samples of every family that the defaults have: calls, failures, a key, a recorded call."""
    gateway = start(sets=["journal.record_calls=true"])
    metrics_are_right(gateway)
    assert gateway.call("notebook", WRITE).status_code == 200
    assert gateway.call("notebook", {"mode": "nonsense"}).status_code == 400
    assert gateway.client.post("/v1/keys", json={"agent": "ann"}).status_code == 201
    local = httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost",
                         timeout=TIMEOUT)
    with local:
        told = local.get("/metrics").text
    assert promtool("check", "metrics", given=told) == ""
    found = {family.name: family for family in text_string_to_metric_families(told)}
    assert all(family.documentation for family in found.values())
    for name in ("cache_hits", "cache_misses", "round_trips", "changes_again", "transactions", "failed_transactions",
                 "batches", "puts"):
        assert found["notegate_store_" + name].type == "counter", name
    assert {family.type for family in found.values()} == {"counter", "gauge", "histogram"}


def test_histograms_add_up(gateway):
    for _ in range(10):
        assert gateway.call("notebook", WRITE).status_code == 200
    found = families(gateway)
    for name in ("notegate_call_duration_seconds", "notegate_store_commit_duration_seconds"):
        series = {}
        for sample in found[name].samples:
            series.setdefault(sample.labels.get("tool"), []).append(sample)
        for samples in series.values():
            buckets = [s.value for s in samples if s.name.endswith("_bucket")]
            bounds = [float(s.labels["le"]) for s in samples if s.name.endswith("_bucket")]
            assert buckets == sorted(buckets) and bounds == sorted(bounds) and bounds[-1] == float("inf")
            count = next(s.value for s in samples if s.name.endswith("_count"))
            assert count == buckets[-1] >= 10
    calls = value(gateway, "notegate_calls_total", tool="notebook")
    assert value(gateway, "notegate_call_duration_seconds_count", tool="notebook") == calls


def test_calls_and_errors_by_agent(gateway):
    before = value(gateway, "notegate_agent_calls_total", agent="bob")
    for _ in range(3):
        gateway.call("notebook", WRITE, {"X-Notegate-Agent": "bob"})
    gateway.call("notebook", WRITE, {"X-Notegate-Agent": "bob", "X-Notegate-Mode": "ask"})
    assert value(gateway, "notegate_agent_calls_total", agent="bob") == before + 4
    assert value(gateway, "notegate_agent_errors_total", agent="bob") == 1
    assert value(gateway, "notegate_calls_total", tool="notebook", outcome="MODE_FORBIDDEN") == 1


def test_reads_from_memory_are_hits(gateway):
    gateway.call("notebook", WRITE)
    before = value(gateway, "notegate_store_cache_hits_total")
    for _ in range(5):
        assert gateway.call("notebook", {"mode": "read"}).status_code == 200
    assert value(gateway, "notegate_store_cache_hits_total") >= before + 5


def test_labels_stay_bounded(start):
    gateway = start()

    def visit(number):
        with httpx.Client(base_url=gateway.url, trust_env=False, timeout=TIMEOUT) as client:
            for agent in range(number * 100, number * 100 + 100):
                headers = {"X-Notegate-Agent": f"agent-{agent}"}
                assert client.post("/v1/tools/notebook", json={"mode": "list"}, headers=headers).status_code == 200

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(visit, range(4)))
    agents = families(gateway)["notegate_agent_calls"].samples
    assert len(agents) <= 257
    assert sum(sample.value for sample in agents) == 400
    assert next(sample.value for sample in agents if sample.labels["agent"] == "other") == 144
    gateway.client.post("/v1/tools/no_such_tool", json={})
    assert "no_such_tool" not in gateway.client.get("/metrics").text


def test_refused_callers_and_http_answers(start):
    gateway = start(sets=["auth=on"])
    for _ in range(3):
        assert gateway.client.get("/v1/tools").status_code == 401
    local = httpx.Client(transport=httpx.HTTPTransport(uds=gateway.socket_path), base_url="http://localhost",
                         timeout=TIMEOUT)
    with local:
        # Counted once it is sent; by another thread than the one that is asked here.
        text = eventually(lambda: next((text for text in [local.get("/metrics").text]
                                        if 'notegate_http_responses_total{status="4xx"} 3\n' in text), None),
                          what="the count of three answers")
    assert "notegate_auth_failures_total 3\n" in text


def test_sessions_are_counted(gateway):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    before = value(gateway, "notegate_mcp_sessions")
    headers = {"Accept": "application/json, text/event-stream"}
    answer = gateway.client.post("/mcp", json=hello, headers=headers)
    assert answer.status_code == 200
    assert value(gateway, "notegate_mcp_sessions") == before + 1
    gateway.client.delete("/mcp", headers={"Mcp-Session-Id": answer.headers["mcp-session-id"]})
    eventually(lambda: value(gateway, "notegate_mcp_sessions") == before, what="the end of the session")
