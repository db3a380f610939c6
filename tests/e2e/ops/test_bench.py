# SPDX-License-Identifier: MIT
"""The benchmark's page is made and well formed, and the soak runs; nothing here is about how fast anything was."""

import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from cells_support import need
from conftest import SOURCE, binary

BENCH = SOURCE / "tests" / "bench"
sys.path.insert(0, str(BENCH))
import rig  # noqa: E402

pytestmark = pytest.mark.long

# The cache of documents, full, and what waits to be written; several times as much where it piles up.
READS, READS_MIB = 80000, 160
BUILD = pathlib.Path(binary()).parent.parent
WAIT = 300
CURVES = ("clients", "documents", "revisions", "streams")
VOID = {"meta", "br", "link", "img", "hr", "input"}


class Balance(html.parser.HTMLParser):
    """Every element that begins also ends, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


def well_formed(page):
    """The page's drawings; it stands alone and its elements are balanced."""
    balance = Balance()
    balance.feed(page)
    balance.close()
    assert not balance.open
    assert not re.search(r"""(src|href)=["'](?!#)|@import|url\(""", page), "the page needs something else"
    drawings = re.findall(r"<svg .*?</svg>", page, re.S)
    for drawing in drawings:
        root = xml.etree.ElementTree.fromstring(drawing)
        for element in root.iter():
            for name, value in element.attrib.items():
                assert "nan" not in value and "inf" not in value.lower().split(), f"{name}={value}"
    return drawings


def bench(program, *arguments):
    done = subprocess.run([sys.executable, str(BENCH / program), *arguments], capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_curves_are_drawn(tmp_path):
    page = tmp_path / "report.html"
    bench("run", "--smoke", "--only", ",".join(CURVES), "--build", str(BUILD), "--report", str(page))
    data = json.loads((tmp_path / "report.json").read_text())
    assert [curve["name"] for curve in data["curves"]] == list(CURVES)
    for curve in data["curves"]:
        taken = {point["x"] for series in curve["series"] for point in series["points"]}
        assert len(taken) == 2, curve["missed"]
        # The report of a short run names the parts that it leaves out.
        assert all("--smoke" in missed["why"] for missed in curve["missed"]), curve["missed"]
        assert not taken & {missed["x"] for missed in curve["missed"]}
        assert any(point["base"] for series in curve["series"] for point in series["points"])
    text = page.read_text()
    assert len(well_formed(text)) > 8
    assert "not measured" in text and "times the baseline" in text


def test_a_curve_that_cannot_be_measured_says_so(tmp_path):
    page = tmp_path / "report.html"
    # No gateway starts with such a name of a module.
    broken = tmp_path / "build" / "bin" / "notegate"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\n[ \"$1\" != --version ] || echo notegate\n")
    broken.chmod(0o755)
    bench("run", "--smoke", "--only", "documents", "--build", str(tmp_path / "build"), "--report", str(page))
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["curves"][0]["series"] == []
    assert any("did not start" in missed["why"] for missed in data["curves"][0]["missed"])
    well_formed(page.read_text())


def test_the_soak_runs_and_is_drawn(tmp_path):
    page = tmp_path / "report.html"
    done = subprocess.run([sys.executable, str(BENCH / "soak"), "--minutes", "0.05", "--build", str(BUILD), "--report", str(page)],
                          capture_output=True, text=True, timeout=WAIT)
    data = json.loads((tmp_path / "soak.json").read_text())["soak"]
    rows = {row["what"]: row for row in data["rows"]}
    # Whether memory is flat shows after hours, not seconds.
    for what in ("answers that were not 200", "event streams that ended", "the gateway's exit code", "reports of sanitizers", "verify"):
        assert rows[what]["verdict"] == "met", (rows[what], done.stdout, done.stderr)
    assert len(well_formed(page.read_text())) >= 6


def test_readers_that_are_faster_than_the_disk_wait(tmp_path):
    """Each reading of an entry is written down a little later: the queue stays small, and no call is refused."""
    out = rig.build(None)
    gateway = rig.Gateway(binary(), data=str(tmp_path / "data"))
    try:
        page = {"collection": "pages", "title": "read by all", "content": "a line\n" * 40}
        where = {"collection": "pages", "notebook_id": gateway.call("notebook_create", page)["result"]["notebook_id"]}
        file = rig.request("/v1/tools/notebook_read", where, ["X-Notegate-Agent: bench"])
        for _ in range(3):  # a call that waits for 2 s is told to retry: a disk may stall for so long
            row = rig.load(out, gateway.port, 16, WAIT, file, gateway.pid, count=READS)
            if row["not_200"] == 0:
                break
        assert (row["answered"], row["not_200"]) == (READS, 0)
        assert rig.memory_mib(gateway.pid) < READS_MIB
    finally:
        assert gateway.stop() == 0
    os.unlink(file)


@pytest.mark.parametrize("program", ["run", "soak"])
def test_help(program):
    assert "--report" in bench(program, "--help").stdout


def test_the_benches_of_cells():
    need("python3")
    row = json.loads(bench("cells", "--build", str(BUILD), "--rounds", "2", "--large", "0", "--json").stdout)["rows"][0]
    assert row["notebook"] == "small" and {"nbformat", "safe", "notegate"} <= set(row)
    assert all(row[who][what] > 0 for who in ("nbformat", "safe", "notegate") for what in ("ms", "best_ms", "cpu_ms"))
    rows = json.loads(bench("kernels", "--build", str(BUILD), "--rounds", "1", "--json").stdout)
    assert set(rows) == {"with a new kernel", "in a kernel that is there"}
    assert all(row["times_faster"] > 0 for row in rows.values())
