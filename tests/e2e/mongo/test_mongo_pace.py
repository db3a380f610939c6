# SPDX-License-Identifier: MIT
"""Pace without clocks: an agent that never pauses starves nobody, changes are made at the same time by all writers, and the
journal in the documents takes few round trips for a reference."""

import contextlib
import threading

import pytest
from cli_support import notegate
from conftest import eventually
from mongo_proxy import GREETINGS, most_at_once
from mongo_world import SECONDS, at_once, create, made, mongo, page, proxy, serving  # noqa: F401

NAME = "notegate_pace"
WRITERS = 2
PLUGINS = "plugins=agent_notebook,notebook"
# More than any of these takes, with some hundred changes a second.
MEANWHILE = 150
BUSY = {"X-Notegate-Agent": "busy"}


# ---- an agent that never pauses ----

class Busy:
    """Connections of one agent that log memories without pause: they all change one document."""

    def __init__(self, gateway):
        self.gateway, self.over = gateway, threading.Event()
        self.logged, self.refused = [[] for _ in range(WRITERS)], []
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)]

    def _run(self, number):
        while not self.over.is_set():
            text = f"{number} {len(self.logged[number])}"
            answer = self.gateway.call("memory_log", {"content": text}, BUSY)
            if answer.status_code != 200:
                self.refused.append(answer.text)
                return
            self.logged[number].append(text)

    def count(self):
        return sum(map(len, self.logged))

    def all(self):
        return [text for mine in self.logged for text in list(mine)]

    @contextlib.contextmanager
    def beside(self, what):
        """What ends meanwhile takes no more than so many of its changes."""
        before = self.count()
        yield
        took = self.count() - before
        print(f"{what}: {took} changes of the busy agent meanwhile")
        assert took <= MEANWHILE, what
        self.goes_on()

    def goes_on(self):
        """It did something since."""
        before = self.count()
        eventually(lambda: self.refused or self.count() >= before + 2 * WRITERS, SECONDS, "more memories")
        assert not self.refused

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.goes_on()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def timeline_is_whole(gateway, busy):
    """It waits up to two seconds for what was logged before it, which a busy machine may need."""
    before = {text for mine in busy.logged for text in mine[-40:]}
    told = made(gateway.call("memory_timeline", {"limit": 1000}))
    lacking = before - {event.get("content") for event in told["events"]}
    print(f"timeline: {len(before)} before it, {len(lacking)} of them lacking, backlog {told.get('backlog')}")
    assert not lacking or "backlog" in told
    return not lacking and "backlog" not in told


@pytest.mark.long
def test_a_busy_agent_starves_nobody(mongo, servers, tmp_path):  # noqa: F811
    """Checkpoints, timelines and backups have all that was acknowledged before, and end while the agent writes on."""
    journal = ["journal=redis", f"redis.uri={servers.redis(debian=True).uri}"]
    with serving(tmp_path, mongo.uri, database=NAME, more=journal) as gateway, Busy(gateway) as busy:
        for _ in range(2):
            with busy.beside("timeline"):
                eventually(lambda: timeline_is_whole(gateway, busy), SECONDS, "a timeline of all that came before it")
        before, target = busy.all(), tmp_path / "copy"
        with busy.beside("snapshot"):
            snapshot = made(gateway.call("checkpoint_snapshot", {"label": "busy"}))
        with busy.beside("backup"):
            copied = notegate("backup", target, "--data-dir", gateway.data_dir)
        assert copied.returncode == 0, copied.stderr
        text = target.read_text()
        assert not [one for one in before if f'"{one}"' not in text and f'\\"{one}\\"' not in text]
        # What the present has and the checkpoint has not came later.
        later = made(gateway.call("checkpoint_diff", {"checkpoint_id": snapshot["checkpoint_id"]}))["memories"]
        assert later["removed_count"] == 0 and later["added_count"] <= busy.count() + WRITERS - len(before), later
    assert not busy.refused


# ---- writers ----

CREATES = 24


@pytest.mark.parametrize("writers", [None, 4])
def test_writers_write_at_the_same_time(proxy, tmp_path, writers):  # noqa: F811
    """Each of `mongo.writers` (16) has a creation under way while none is answered: so many creations take as many round
    trips as there are waves of them.

    MongoDB's manual: a connection carries one command at a time, so as many are under way as there are connections."""
    more, width = ([f"mongo.writers={writers}"], writers) if writers else ([], 16)
    with serving(tmp_path, proxy.uri, database=f"{NAME}_{width}", more=more) as gateway:
        made(create(gateway, "first"))
        answers, count, done = [], 0, 0
        held = dict(names="insert", collection="notebooks", hold=True, times=None)
        with contextlib.ExitStack() as stack:
            fault = stack.enter_context(proxy.fault(**held))
            calls = threading.Thread(target=lambda: answers.extend(
                at_once(*[lambda number=number: create(gateway, f"n{number}") for number in range(CREATES)])))
            calls.start()
            while done < CREATES:
                wave = min(width, CREATES - done)
                eventually(lambda: fault.hits >= wave, SECONDS, f"{wave} creations under way")
                # The next wave is held in its turn, and this one goes on.
                following = stack.enter_context(proxy.fault(**held))
                proxy.remove(fault)
                assert fault.hits == wave
                fault, count, done = following, count + 1, done + wave
        calls.join()
        for answer in answers:
            made(answer)
        assert count == -(-CREATES // width)


# ---- the journal in the documents ----

REFERENCES = 60
# Of the journal's documents, and of the relay for these: measured 3 to 4.
COMMANDS_A_REFERENCE = 6
AT_ONCE = 4


def of_journal(command):
    return (command.collection or "").startswith("journal_")


@pytest.mark.long
def test_the_default_journal_keeps_up(proxy, tmp_path):  # noqa: F811
    """MongoDB's manual: each command with the write concern `majority` waits for other members. So references are written
    many at a time, with few commands each."""
    with serving(tmp_path, proxy.uri, database=f"{NAME}_journal") as gateway:
        made(page(gateway, "first"))
        made(gateway.call("memory_timeline", {}))
        mark = proxy.mark()
        for answer in at_once(*[lambda number=number: page(gateway, f"page {number}") for number in range(REFERENCES)]):
            made(answer)

        def timeline():
            told = made(gateway.call("memory_timeline", {"limit": 1000}))
            return told if len([one for one in told["events"] if one["title"].startswith("page ")]) == REFERENCES else None

        eventually(timeline, SECONDS, "all references")
        seen = [one for one in proxy.since(mark) if one.name not in GREETINGS | {"ping"}]
        mine = [one for one in seen if of_journal(one)]
        inserts = [one for one in mine if one.name == "insert"]
        counts = {}
        for one in seen:
            counts[str(one).strip()] = counts.get(str(one).strip(), 0) + 1
        print(f"{len(mine) / REFERENCES:.1f} commands of the journal for a reference, {len(seen) / REFERENCES:.1f} of all, "
              f"{most_at_once(inserts)} inserts at once: {counts}")
        assert len(mine) <= COMMANDS_A_REFERENCE * REFERENCES
        assert most_at_once(inserts) >= AT_ONCE
