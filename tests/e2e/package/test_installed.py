# SPDX-License-Identifier: MIT
"""The package on a clean Debian: every documented command meets the store that the service serves, or is refused with the way out."""

import itertools
import pathlib
import re
import shutil
import subprocess
import time

import pytest
from conftest import SOURCE, binary
from installed_support import DATA, Machine, base, build_package, run

pytestmark = pytest.mark.long

BUILD = pathlib.Path(binary()).resolve().parents[1]
USERS = ("root", "notegate", "ada", "bob")
FOLDERS = ("/", "/root", "/tmp")
SECOND_STORE = f"{DATA}/.local/share/notegate"


@pytest.fixture(scope="module", name="package")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    return build_package(BUILD, folder)


@pytest.fixture(name="machine")
def clean(package, tmp_path):
    machine = Machine(base(package), tmp_path)
    yield machine
    machine.close()


@pytest.fixture(name="installed")
def with_package(machine, package):
    machine.install(package)
    machine.configure(f"listen: 127.0.0.1:{machine.port}")
    return machine


def documented():
    """The commands of README and guides for administrators, each once, with values for their placeholders."""
    found = []
    for page in ("README.md", *(f"api/guides/{name}.md" for name in ("securing", "configuration", "operating"))):
        text = (SOURCE / page).read_text()
        lines = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)).splitlines()
        lines += re.findall(r"`((?:sudo )?(?:-u notegate )?notegate [^`]+)`", text)
        found += [re.search(r"notegate (check|verify|backup|tools|key list)\b[^|#]*", line) for line in lines]
    return sorted({match.group(0).split(" --")[0].strip() for match in found if match and "..." not in match.group(0)})


def meets(machine, user, cwd, command, number):
    """Runs it; asserts that its output is about the store with `precious`."""
    name = f"/tmp/{user}-{number}"
    command = re.sub(r"backup \S+", f"backup {name}", command)
    done = machine.command(user, command, cwd)
    if " backup " in command:
        assert f"{name}: " in done.stdout and f" of {DATA}\n" in done.stdout, done
        assert '"id":"precious"' in (machine.root / name[1:]).read_text(), command
    elif " verify" in command:
        assert re.search(rf"^{DATA} \(sqlite\): [1-9]\d* documents, [1-9]\d* revisions, [1-9]\d* events$", done.stdout, re.M), done
        assert "everything is in order" in done.stdout
    elif " check" in command:
        assert re.search(rf"^ok +data directory: {DATA}\b", done.stdout, re.M), done
    elif " key list" in command:
        assert re.search(r"\bholder\b", done.stdout), done
    else:
        assert "notebook" in done.stdout


def refused(machine, user, cwd, command):
    done = machine.command(user, re.sub(r"backup \S+", f"backup /tmp/{user}-refused", command), cwd, status=1)
    said = re.search(r"`((?:sudo|runuser) -u notegate (?:-- )?notegate [^`]+)`", done.stderr)
    assert said, f"{command}\n{done}"
    if user == "root":
        assert said.group(1).startswith("runuser")
        machine.command("root", said.group(1).replace("/tmp/root-refused", f"/tmp/as-printed-{time.monotonic_ns()}"), cwd)
    else:
        assert said.group(1).startswith("sudo")


def restore_refused(machine, running):
    """The store is in use, another user's, or not empty: in each case its directory is named."""
    machine.command("notegate", "notegate backup /tmp/for-restore --force")
    for user in ("notegate", "root"):
        done = machine.command(user, "cat /tmp/for-restore >/tmp/as-$USER; notegate restore /tmp/as-$USER", status=1)
        why = f"{DATA} is in use by process" if running else "store is not empty" if user == "notegate" else "`runuser -u notegate -- notegate restore /tmp/as-root`"
        assert why in done.stderr, done
    # As the guide has it for root, into a directory that this user can make.
    guide = (SOURCE / "api" / "guides" / "operating.md").read_text()
    printed = re.search(r"`(runuser -u notegate -- notegate restore - --data-dir DIR <FILE)`", guide).group(1)
    again = f"/tmp/again-{time.monotonic_ns()}"
    machine.command("root", printed.replace("DIR", again).replace("FILE", "/tmp/as-root"))
    assert machine.command("root", f"stat -c %U {again}/notegate.db").stdout == "notegate\n"
    machine.command("root", f"rm -r /tmp/as-* {again}")


def test_documented_commands_meet_the_service(installed):
    commands = documented()
    assert {"notegate check", "notegate verify", "notegate key list"} <= set(commands), commands
    assert any("backup" in command for command in commands), commands
    # The guide's first steps, before the service runs.
    assert "ng_" in installed.command("ada", "sudo -u notegate notegate key add holder --role admin", "/home/ada").stdout
    assert installed.stores() == [DATA]
    installed.start()
    for who in ("ada", "root"):
        sudo = "sudo " if who == "ada" else ""
        installed.command(who, f"{sudo}notegate call notebook mode=create name=precious{'' if who == 'root' else '2'} newStr=x")
    number = itertools.count()
    for running in (True, False):
        if not running:
            installed.stop()
        for command, cwd in itertools.product(commands, FOLDERS):
            for user in ("notegate", "root") if running else ("notegate",):
                meets(installed, user, cwd, command, next(number))
            refused(installed, "bob", cwd if cwd != "/root" else "/", command)
            if not running and command != "notegate tools":
                refused(installed, "root", cwd, command)
        for user in ("notegate", "root") if running else ("notegate",):
            name = f"key{next(number)}"
            assert "ng_" in installed.command(user, f"notegate key add {name}", "/root").stdout
            assert name in installed.command("notegate", "notegate key list").stdout
            assert "1 key revoked" in installed.command(user, f"notegate key revoke {name} --force").stdout
        refused(installed, "bob", "/home/bob", "notegate key add bob")
        restore_refused(installed, running)
        for command in commands:
            meets(installed, "ada", "/home/ada", command.replace("notegate", "sudo -u notegate notegate", 1), next(number))
    assert installed.stores() == [DATA], "no command made a store of its own"


def test_a_user_tries_a_plugin(installed, tmp_path):
    """The guide's commands, for users who may not read the machine's configuration, beside a service and without one."""
    guide = (SOURCE / "plugins" / "README.md").read_text()
    (tmp_path / "echo.c").write_text(re.search(r"^```c\n(.*?)^```$", guide, re.M | re.S).group(1))
    run("cc", "-shared", "-fPIC", "-I", str(SOURCE / "core" / "include"), "-o", str(tmp_path / "echo.so"), str(tmp_path / "echo.c"))
    (tmp_path / "cases.json").write_text(re.search(r"^```json\n(.*?)^```$", guide, re.M | re.S).group(1))
    call = re.search(r"^notegate call echo .*$", guide, re.M).group(0)
    test = re.search(r"^notegate test-plugin .*$", guide, re.M).group(0)
    for running in (False, True):
        if running:
            installed.start()
        for user in ("ada", "bob"):
            for name in ("echo.so", "cases.json"):
                shutil.copy(tmp_path / name, installed.root / "home" / user / name)
            assert installed.command(user, call, f"/home/{user}").stdout == '{"a":1}\n'
            assert installed.command(user, test, f"/home/{user}").stdout.endswith("3 cases, 0 failed\n")


def test_a_user_may_have_a_gateway_beside_it(installed):
    installed.start()
    done = installed.command("bob", "notegate call notebook mode=list", "/home/bob", status=1)
    assert "--data-dir" in done.stderr and installed.stores() == [DATA]
    installed.command("bob", "notegate call notebook mode=create name=mine newStr=x --data-dir ~/.local/share/notegate", "/home/bob")
    assert "mine" in installed.command("bob", "notegate call notebook mode=list", "/home/bob").stdout
    assert "mine" not in installed.command("notegate", "notegate call notebook mode=list", "/home/bob").stdout


def older(package, folder):
    """The package as it was: the directory in the unit's command line, not in the configuration."""
    tree = folder / "older"
    run("dpkg-deb", "-R", package, tree)
    unit = tree / "lib" / "systemd" / "system" / "notegate.service"
    unit.write_text(unit.read_text().replace("notegate serve", f"notegate serve --data-dir {DATA}"))
    sample = tree / "etc" / "notegate" / "notegate.yaml"
    sample.write_text(sample.read_text().replace("\ndata_dir: ", "\n#data_dir: "))
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*", "Version: 0.0.9", control.read_text(), flags=re.M))
    made = folder / "older.deb"
    run("dpkg-deb", "--root-owner-group", "--build", tree, made)
    shutil.rmtree(tree)
    return made


def test_an_upgrade_goes_on_serving_the_same_data(machine, package, tmp_path):
    """Also where the administrator's own configuration, which has no data_dir, was kept."""
    machine.install(older(package, tmp_path))
    machine.configure(f"listen: 127.0.0.1:{machine.port}")
    machine.start()
    assert "--data-dir" in machine.unit()["ExecStart"][0]
    machine.command("root", "notegate call notebook mode=create name=precious newStr=x")
    machine.stop()
    machine.install(package, "--force-confold")
    assert "--data-dir" not in machine.unit()["ExecStart"][0]
    assert not re.search(r"^data_dir:", (machine.root / "etc/notegate/notegate.yaml").read_text(), re.M)
    for running in (True, False):
        if running:
            machine.start()
        else:
            machine.stop()
        for user in ("root", "notegate") if running else ("notegate",):
            assert "precious" in machine.command(user, "notegate call notebook mode=list").stdout
    assert machine.stores() == [DATA]


def test_an_upgrade_tells_of_data_that_would_be_left_behind(machine, package, tmp_path):
    """The unit's directory once overrode the configuration's: the message names the directory served until now."""
    machine.install(older(package, tmp_path))
    machine.configure(f"listen: 127.0.0.1:{machine.port}")
    machine.start()
    machine.command("root", "notegate call notebook mode=create name=precious newStr=x")
    machine.stop()
    (machine.root / SECOND_STORE[1:]).mkdir(parents=True)
    (machine.root / SECOND_STORE[1:] / "notegate.db").write_text("")
    done = machine.install(package, "--force-confold")
    assert f"{SECOND_STORE} has a second store" in done.stderr
    machine.configure("data_dir: '/srv/notes'  # since May")
    done = machine.install(package, "--force-confold")
    assert f"the data is in {DATA}, and /etc/notegate/notegate.yaml says data_dir: /srv/notes" in done.stderr
    assert "not restarted" in done.stderr


def test_nightly_backups(installed):
    """The unit's own command keeps the newest fourteen; they come back, files and all."""
    installed.start()
    installed.command("root", "notegate call notebook mode=create name=precious newStr=x")
    folder = installed.root / "var" / "lib" / "notegate-backup"
    words, environ = installed.as_unit("notegate-backup.service")
    for day in range(1, 21):
        old = folder / f"notegate-2020-01-{day:02}T023000Z.backup"
        old.write_text("old")
    (folder / "mine.backup").write_text("mine")
    for running in (True, False):
        if not running:
            installed.stop()
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made = next(path for path in folder.iterdir() if not path.name.startswith(("notegate-2020", "notegate-2021", "mine")))
        assert made.stat().st_mode & 0o777 == 0o600 and DATA in done.stdout
        made.rename(folder / f"notegate-2021-01-0{1 + running}T023000Z.backup")  # two in one second have one name
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 15 and kept[1].startswith("notegate-2020-01-09"), kept
    # A backup that fails takes no older one away.
    done = subprocess.run([*words, "--no-such-option"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and sorted(path.name for path in folder.iterdir()) == kept
    again = installed.command("notegate", f"notegate restore /var/lib/notegate-backup/{kept[-1]} --data-dir {DATA}/again")
    assert "restored" in again.stdout


def test_remove_and_purge_leave_the_data(installed):
    installed.start()
    installed.command("root", "notegate call notebook mode=create name=precious newStr=x")
    installed.stop()
    installed.command("root", "dpkg --purge notegate")
    assert installed.stores() == [DATA] and not (installed.root / "etc" / "notegate" / "notegate.yaml").exists()


def test_a_user_has_a_key_of_the_service(installed):
    installed.start()
    key = installed.command("root", "notegate key add bob", "/root").stdout.strip()
    done = installed.command("bob", "notegate call notebook mode=list", "/home/bob", status=1)
    assert "with a key of that gateway in NOTEGATE_KEY" in done.stderr, done
    keyed = f"NOTEGATE_LISTEN=127.0.0.1:{installed.port} NOTEGATE_KEY={key} notegate"
    assert '"agent":"bob"' in installed.command("bob", f"{keyed} whoami", "/home/bob").stdout
    installed.command("bob", f"{keyed} call notebook mode=create name=mine newStr=x", "/home/bob")
    assert "- mine: " in installed.command("bob", f"{keyed} call notebook mode=list", "/home/bob").stdout
    assert installed.stores() == [DATA]
    # A store of the user's own comes first.
    installed.command("bob", "notegate call notebook mode=create name=own newStr=x --data-dir ~/.local/share/notegate", "/home/bob")
    assert "- own: " in installed.command("bob", f"{keyed} call notebook mode=list", "/home/bob").stdout
