# SPDX-License-Identifier: MIT
"""promtool, of Debian's package `prometheus`."""

import json
import subprocess

TIMEOUT = 120


def promtool(*words, given=None):
    """Runs it, and fails with all that it says where it finds anything."""
    done = subprocess.run(["promtool", *map(str, words)], input=given, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def metrics_are_right(gateway):
    """/metrics of this gateway as Prometheus' own checks want it."""
    answer = gateway.client.get("/metrics")
    assert answer.status_code == 200
    assert promtool("check", "metrics", given=answer.text) == ""


def firing(folder, rules, series, minutes):
    """Checks that at each of these minutes exactly these alerts fire: {minute: {name, ...}}. `series`: their samples in
    promtool's notation, one a minute."""
    expected = [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"} > 0)', "eval_time": f"{minute}m",
                 "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)]}
                for minute, names in minutes.items()]
    given = [{"series": name, "values": values} for name, values in series.items()]
    path = folder / "alerts.test.json"  # JSON is YAML
    path.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": given, "promql_expr_test": expected}]}))
    promtool("test", "rules", path)
