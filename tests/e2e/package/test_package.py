# SPDX-License-Identifier: MIT
"""The Debian package of the build under test: its files, its dependencies, the results of Debian's own checks, and a
cell that runs from it. Its installation: test_installed.py."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from cells_support import RUN_SECONDS, need
from conftest import SOURCE, binary, environment

BUILD = pathlib.Path(binary()).resolve().parents[1]
MODULES = "usr/lib/notegate"


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=RUN_SECONDS, check=False, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", name="package")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    package = pathlib.Path(run(SOURCE / "packaging" / "debian" / "build", BUILD, folder).strip())
    assert package.parent == folder and re.fullmatch(r"notegate_[0-9.]+_[a-z0-9]+\.deb", package.name)
    return package


@pytest.fixture(scope="module", name="root")
def unpacked(package, tmp_path_factory):
    """Files that the package installs below /, below a folder."""
    folder = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "-x", package, folder)
    return folder


def notegate(root, data, *words):
    kept = {**environment(), "NOTEGATE_DATA_DIR": str(data), "HOME": str(data.parent)}
    return run(root / "usr" / "bin" / "notegate", *words, env=kept, cwd=data.parent)


def test_what_is_in_it(root):
    assert os.access(root / "usr" / "bin" / "notegate", os.X_OK)
    for name in ("agent_notebook", "cells", "file_editor", "history", "notebook", "opennotes", "search"):
        assert (root / MODULES / "plugins" / f"{name}.so").is_file()
    for name in ("sqlite", "mongo", "redis"):
        assert (root / MODULES / "backends" / f"{name}.so").is_file()
    holder = root / MODULES / "plugins" / "notegate-kernels"
    assert holder.stat().st_mode & 0o777 == 0o755
    unit = (root / "lib" / "systemd" / "system" / "notegate.service").read_text()
    assert (root / re.search(r"^ExecStart=/(\S+)", unit, re.M).group(1)).is_file()
    sample = (SOURCE / "packaging" / "notegate.yaml").read_text()
    installed = (root / "etc" / "notegate" / "notegate.yaml").read_text()
    assert installed == sample.replace("\n#data_dir: /var/lib/notegate\n", "\ndata_dir: /var/lib/notegate\n") != sample
    assert re.search(r"^ExecStart=\S+ serve$", unit, re.M), "the configuration alone says where the data is"
    assert (root / "usr" / "include" / "notegate" / "plugin.h").is_file()
    assert list((root / "usr").rglob("notegate.pc"))


def test_alerts_and_dashboard(root):
    """At the place that the guide names, and as the source's tests have checked them."""
    made = SOURCE / "packaging" / "prometheus"
    names = ["notegate.alerts.yaml", "notegate.dashboard.json"]
    place = re.search(r"`/(\S*/prometheus)`", (root / "usr/share/doc/notegate/api/guides/operating.md").read_text()).group(1)
    assert sorted(path.name for path in (root / place).iterdir()) == names
    for name in names:
        assert (root / place / name).read_text() == (made / name).read_text()
        assert (root / place / name).stat().st_mode & 0o777 == 0o644


def test_documentation_examples_and_completion(root):
    """With its links; and an example is built as the guide says."""
    doc = root / "usr" / "share" / "doc" / "notegate"
    guides = [f"api/guides/{page.name}" for page in (SOURCE / "api" / "guides").glob("*.md")]
    for page in ("README.md", "plugins/README.md", "backends/README.md", *guides):
        assert (doc / page).read_text() == (SOURCE / page).read_text()
    assert not [path for path in doc.rglob("*") if path.is_dir() and not list(path.iterdir())]
    for name in ("hello", "glossary", "ram"):
        sources = sorted((doc / "examples").glob(f"{name}*.c"))
        run("cc", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{root / 'usr' / 'include'}", "-o", root / f"{name}.so", *sources)
    completion = SOURCE / "packaging" / "completion"
    share = root / "usr" / "share"
    assert (share / "bash-completion/completions/notegate").read_text() == (completion / "notegate.bash").read_text()
    assert (share / "zsh/vendor-completions/_notegate").read_text() == (completion / "_notegate").read_text()
    assert (share / "man/man1/notegate.1.gz").is_file()


@pytest.mark.long
def test_lintian_finds_no_error(package):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package], capture_output=True, text=True, timeout=RUN_SECONDS,
                          check=False)
    assert done.returncode == 0 and not re.search(r"^E:", done.stdout, re.M), f"{done.stdout}\n{done.stderr}"


def test_the_units_are_what_systemd_knows(root, tmp_path):
    """No line is unknown, and the service is open to little."""
    for path in (root / "lib" / "systemd" / "system").iterdir():
        text = path.read_text().replace("/usr/bin/", f"{root}/usr/bin/").replace("/usr/lib/notegate/", f"{root}/usr/lib/notegate/")
        (tmp_path / path.name).write_text(text)
    units = sorted(tmp_path.iterdir())
    assert [path.name for path in units] == ["notegate-backup.service", "notegate-backup.timer", "notegate.service"]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    told = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert told == [], done.stderr
    for unit in units:
        if unit.suffix == ".service":
            run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit)


def test_what_it_asks_for(package):
    depends, recommends = (run("dpkg-deb", "-f", package, field) for field in ("Depends", "Recommends"))
    assert {"libc6", "libmicrohttpd12", "libsqlite3-0", "adduser"} <= set(re.findall(r"[a-z][a-z0-9.+-]+", depends))
    # Loaded when the first kernel starts, so the libraries' own list does not know it.
    assert "libzmq5" in recommends and "libzmq5" not in depends


def test_its_scripts(package, tmp_path):
    run("dpkg-deb", "-e", package, tmp_path)
    assert (tmp_path / "conffiles").read_text() == "/etc/notegate/notegate.yaml\n"
    for script in ("postinst", "prerm", "postrm"):
        assert os.access(tmp_path / script, os.X_OK)
        run("sh", "-n", tmp_path / script)


def test_everything_comes_out_of_it(root, tmp_path):
    shown = notegate(root, tmp_path / "data", "check")
    found = dict(re.findall(r"^ok +plugin: (\w+) .*, (/\S+)$", shown, re.M))
    assert {"cells", "notebook", "opennotes"} <= set(found)
    assert all(path.startswith(f"{root / MODULES}/") for path in found.values())


def test_a_cell_runs_out_of_it(root, tmp_path):
    need("python3")
    data = tmp_path / "data"
    notegate(root, data, "call", "createNotebook", "notebook=a.ipynb", "kernel=python3")
    source = "import os\nprint(6 * 7, os.readlink(f'/proc/{os.getppid()}/exe'))"
    notegate(root, data, "call", "addNotebookCell", "notebook=a.ipynb", "type=code", "index=0", f"content={source}")
    shown = notegate(root, data, "call", "runNotebookCells", "notebook=a.ipynb", "cellIds=index:0")
    assert f"42 {root / MODULES / 'plugins' / 'notegate-kernels'}" in shown
    cells = json.loads((data / "files" / "a.ipynb").read_text())["cells"]
    assert "42" in "".join(cells[0]["outputs"][0]["text"])
