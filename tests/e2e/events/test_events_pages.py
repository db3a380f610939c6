# SPDX-License-Identifier: MIT
"""Points of the history in the address of the events, and pages of them."""

import pytest
from events_support import EVENTS, events_url, stream, write
from sse_support import Stream

JSON = {"Accept": "application/json"}


def page(gateway, headers=None, **params):
    answer = gateway.client.get(EVENTS, params=params, headers={**JSON, **(headers or {})})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    body = answer.json()
    assert set(body) == {"events", "next", "has_more"}
    return body


def pages(gateway, **params):
    """All events, page by page."""
    events, body = [], page(gateway, **params)
    while True:
        events += body["events"]
        if not body["has_more"]:
            return events
        params.pop("from", None)
        body = page(gateway, **{**params, "since": body["next"]})


def message(gateway, headers=JSON, **params):
    answer = gateway.client.get(EVENTS, params=params, headers=headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "INVALID_INPUT"
    return answer.json()["message"]


def names(events):
    return [event["id"] for event in events]


@pytest.fixture
def five(start):
    gateway = start()
    for i in range(5):
        write(gateway, name=f"n{i}", agent="ada" if i % 2 == 0 else "bob", space="shared")
    return gateway


def test_a_page_has_what_a_stream_has(five):
    body = page(five)
    with stream(five, since=0) as reader:
        assert body["events"] == [event.json() for event in reader.take(5)]
    assert (body["has_more"], body["next"]) == (False, body["events"][-1]["seq"])


def test_pages_follow_each_other(five):
    first = page(five, limit=2)
    assert (names(first["events"]), first["has_more"]) == (["n0", "n1"], True)
    for limit in (1, 2, 3, 4, 5, 1000):
        assert names(pages(five, limit=limit)) == [f"n{i}" for i in range(5)]
        assert names(pages(five, limit=limit, agent="bob")) == ["n1", "n3"]
    done = page(five, since=first["events"][-1]["seq"], limit=3)
    assert (names(done["events"]), done["has_more"]) == (["n2", "n3", "n4"], False)
    after = page(five, since=done["next"])
    assert after == {"events": [], "next": done["next"], "has_more": False}
    write(five, name="n5", space="shared")
    assert names(page(five, since=done["next"])["events"]) == ["n5"]


def test_a_page_has_only_the_callers_spaces(five):
    write(five, name="ada's own", agent="ada")
    write(five, name="bob's own", agent="bob")
    own = {agent: names(page(five, {"X-Notegate-Agent": agent})["events"])[5:] for agent in ("ada", "bob", "cy")}
    assert own == {"ada": ["ada's own"], "bob": ["bob's own"], "cy": []}


def test_points(five):
    events = page(five)["events"]
    seqs = [event["seq"] for event in events]
    assert names(page(five, **{"from": f"#{seqs[1]}"})["events"]) == ["n2", "n3", "n4"]
    assert names(page(five, **{"from": f"#{seqs[0]}", "to": f"#{seqs[2]}"})["events"]) == ["n1", "n2"]
    assert names(page(five, to="#0")["events"]) == []
    for point in ("2h", "1d", "2020-01-01", "2020-01-01T00:00:00Z"):
        assert names(page(five, **{"from": point})["events"]) == [f"n{i}" for i in range(5)], point
        assert names(page(five, to=point)["events"]) == [], point
    for point in ("now", "2999-01-01", "0s"):
        assert names(page(five, **{"from": point})["events"]) == [], point
        assert names(page(five, to=point)["events"]) == [f"n{i}" for i in range(5)], point
    # A time is that of the newest change which is not after it.
    for i, event in enumerate(events):
        wanted = [e["id"] for e in events if e["time"] <= event["time"]]
        assert names(page(five, to=event["time"])["events"]) == wanted
        assert names(page(five, **{"from": event["time"]})["events"]) == [f"n{k}" for k in range(len(wanted), 5)], i


def test_a_stream_ends_at_a_point(five):
    seqs = [event["seq"] for event in page(five)["events"]]
    for query, wanted in ((f"from=%23{seqs[0]}&to=%23{seqs[3]}", ["n1", "n2", "n3"]), ("since=0&to=now", ["n0", "n1", "n2", "n3", "n4"]),
                          (f"since={seqs[3]}&to=2h", []), ("to=now", []), ("since=0&to=now&agent=bob", ["n1", "n3"])):
        with Stream(f"{events_url(five)}?{query}", wait_open=False) as reader:
            events = reader.rest()
            assert [event.json()["id"] for event in events[:-1]] == wanted, query
            assert (events[-1].name, events[-1].json()["reason"], events[-1].id) == ("closed", "end", None)
            assert reader.error is None
    with Stream(f"{events_url(five)}?from=2h") as reader:
        assert [event.json()["id"] for event in reader.take(5)] == [f"n{i}" for i in range(5)]
        write(five, name="live", space="shared")
        assert reader.next().json()["id"] == "live"


def test_bad_points_and_sizes_are_refused(five):
    last = page(five)["next"]
    for value in ("7", "x", "", "#", "#x", "2hours", "2026-02-30", "-1d"):
        for name in ("from", "to"):
            said = message(five, **{name: value})
            assert said.startswith(f'{name} is "{value}", it must be #SEQ'), said
    for value in ("0", "1001", "x", "-1", ""):
        assert f'limit is "{value}"' in message(five, limit=value)
    assert "Accept: application/json" in message(five, {}, limit=5)
    assert "from and since are two positions" in message(five, **{"from": "2h", "since": 1})
    assert "from and Last-Event-ID" in message(five, {**JSON, "Last-Event-ID": "1"}, **{"from": "2h"})
    for name in ("since", "from", "to"):
        value = last + 1000 if name == "since" else f"#{last + 1000}"
        assert message(five, **{name: value}).lower() == f"{name} is {last + 1000}, but the last event is {last}"
