# SPDX-License-Identifier: MIT
"""One time zone: notes, their views and templates, and the memories of the journal name the same day."""

import datetime
import json
import zoneinfo

import pytest
from conftest import Gateway

# Their days always differ: they are 25 hours apart.
EAST, WEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"
DAILY = "---\nmade: \"{{date}} {{time}}\"\n---\n"


def ask(gateway, tool, **args):
    answer = gateway.call(tool, args)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def day_of(zone):
    return datetime.datetime.now(zoneinfo.ZoneInfo(zone)).date().isoformat()


def times_are_local(gateway, zone):
    """Times without an offset, an hour ago and in an hour: of the gateway's zone for every tool."""
    ask(gateway, "notebook_create", collection="pages", title="An entry", content="an entry")
    for hours, found in ((-1, True), (1, False)):
        moment = datetime.datetime.now(zoneinfo.ZoneInfo(zone)) + datetime.timedelta(hours=hours)
        local = moment.strftime("%Y-%m-%dT%H:%M:%S")
        assert bool(ask(gateway, "notebook_list", updated_since=local)["results"]) is found
        assert bool(ask(gateway, "notebook_search", query="entry", updated_since=local)["results"]) is found
        assert bool(ask(gateway, "memory_recall", query="", since=local)["results"]) is found
        assert bool(ask(gateway, "history_log", since=local, collection="pages")["changes"]) is found


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / ".opennotes.json").write_text(json.dumps({"templates": {"daily": DAILY}}))
    return folder


@pytest.mark.parametrize(("setting", "system", "zone"), [(EAST, WEST, EAST), (WEST, EAST, WEST), (None, EAST, EAST),
                                                         (None, WEST, WEST), ("UTC", EAST, "UTC")])
def test_one_zone(tmp_path, notes, monkeypatch, setting, system, zone):
    monkeypatch.setenv("TZ", system)
    sets = [f"opennotes.notebooks={notes}"] + ([f"timezone={setting}"] if setting else [])
    gateway = Gateway(tmp_path / "data", sets)
    try:
        before = day_of(zone)
        note = ask(gateway, "opennotes_daily")["note"]
        ask(gateway, "memory_log", content="a memory", tags=[])
        created = ask(gateway, "opennotes_create", title="New")["created"]["path"]
        today = {item["path"] for item in ask(gateway, "opennotes_views", view="today")["results"]}
        events = {day: ask(gateway, "memory_timeline", date=day)["events"] for day in (before, day_of(zone))}
        days = {before, day_of(zone)}
        assert note["title"] in days, (note, days)
        assert note["frontmatter"]["made"][:10] in days
        assert any(events.values()), events
        made = ask(gateway, "opennotes_get", path=created)["note"]["frontmatter"]["created"]
        assert made[:10] in days
        assert datetime.datetime.fromisoformat(made).utcoffset() == datetime.datetime.now(
            zoneinfo.ZoneInfo(zone)).utcoffset()
        assert today >= {created} or len(days) == 2, today
        (row,) = ask(gateway, "opennotes_search", sql="SELECT date('now', 'localtime') AS now, date(modified, 'localtime') AS saved "
                                                      f"FROM read_markdown('{created}')")["results"]
        assert set(row.values()) <= {before, day_of(zone)}, row
        times_are_local(gateway, zone)
    finally:
        gateway.stop()


def test_times_follow_the_zone(tmp_path, notes):
    """Times without an offset in front matter are times of the zone, also of notes that were indexed in another one."""
    (notes / "a.md").write_text("---\ncreated: 2026-01-02\n---\ntext\n")
    shown = []
    for zone in (EAST, WEST, WEST):
        gateway = Gateway(tmp_path / "data", [f"opennotes.notebooks={notes}", f"timezone={zone}"])
        try:
            shown.append(ask(gateway, "opennotes_search", query="text")["results"][0]["created"])
        finally:
            gateway.stop()
    assert shown == ["2026-01-01T10:00:00Z", "2026-01-02T11:00:00Z", "2026-01-02T11:00:00Z"]
