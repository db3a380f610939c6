# SPDX-License-Identifier: MIT
"""Agents that append to one notebook on MongoDB until each line is acknowledged, while servers die or change their roles;
what must be true then."""

import threading
import time

import httpx
import mongo_world
from conftest import eventually
from mongo_world import SECONDS

AGENTS = 4
LINES = 12
NAME = "n"


def kept(ask):
    """The answer of a call that a database may be too slow for: it has a key, and is repeated until it is done."""
    def done():
        answer = ask()
        assert answer.status_code in (200, 201, 409, 503, 504), answer.text
        return answer if answer.status_code in (200, 201) else None

    return eventually(done, SECONDS * 2, "an acknowledged write")


def create(gateway, name=NAME):
    kept(lambda: mongo_world.create(gateway, name, f"create-{name}"))


def append(gateway, text, key=None):
    return mongo_world.append(gateway, NAME, text, key)


def read(gateway):
    answer = mongo_world.read(gateway, NAME)
    return answer.json() if answer.status_code == 200 else None


def write_until_kept(gateways, agent, written, stop):
    """Each line with a key of its own, again until it is acknowledged, by whichever gateway answers."""
    for number in range(LINES):
        line = f"{agent}-{number}"
        for tries in range(10000):
            if stop.is_set():
                return
            try:
                answer = append(gateways[(agent + tries) % len(gateways)], line, key=f"key-{line}")
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                written.append(line)
                break
            assert answer.status_code in (409, 503, 504), answer.text
            time.sleep(0.05)


def load(gateways, during):
    """All agents write while during() runs. Returns the acknowledged writes."""
    written, stop = [], threading.Event()
    threads = [threading.Thread(target=write_until_kept, args=(gateways, agent, written, stop)) for agent in range(AGENTS)]
    for thread in threads:
        thread.start()
    try:
        during(written)
        for thread in threads:
            thread.join(SECONDS * 4)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(written) == AGENTS * LINES
    return written


def in_a_line(gateway, written):
    """Every acknowledged line is there once, each agent's in its order, and each made one revision."""
    now = eventually(lambda: read(gateway), SECONDS, "the notebook")
    lines = now["result"].split("\n")
    assert lines[0] == "start"
    assert sorted(lines[1:]) == sorted(written)
    for agent in range(AGENTS):
        mine = [line for line in lines if line.startswith(f"{agent}-")]
        assert mine == [f"{agent}-{number}" for number in range(LINES)]
    assert now["revision"] == len(lines)
