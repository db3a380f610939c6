# SPDX-License-Identifier: MIT
"""The user that serves, the data directory it serves from, and the folders that it was named."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import pytest

from cells_support import Book, need
from conftest import SOURCE, Gateway, binary, environment, eventually
from hints_support import as_printed

NOBODY = 65534
TIMEOUT = 120
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


def notegate(*words, **more):
    return subprocess.run([binary(), *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                          env=environment() | more, check=False)


def refused(*words):
    """`serve` ends with a sentence."""
    done = notegate("serve", "--listen", "127.0.0.1:0", *words)
    assert done.returncode == 1 and "listening" not in done.stdout
    return done.stderr


@pytest.fixture
def top():
    """A folder that every user can pass, as pytest's are root's alone."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody(top):
    """A gateway that root started and that became the user nobody, in a new directory."""
    running = Gateway(top / "a" / "data", ["plugins=notebook,cells"], ["--user", "nobody"], cwd=top)
    yield running
    assert running.stop() == 0, "".join(running.errors)


# ---- another user than root ----


@needs_root
def test_it_becomes_the_user_for_good(as_nobody):
    status = pathlib.Path(f"/proc/{as_nobody.process.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == [str(NOBODY)] * 4 and fields["Gid"].split() == [str(NOBODY)] * 4
    assert "0" not in fields["Groups"].split()
    assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == 0 and fields["NoNewPrivs"] == "1"
    info = as_nobody.data_dir.stat()
    assert (info.st_uid, info.st_mode & 0o7777) == (NOBODY, 0o700)
    assert as_nobody.data_dir.parent.stat().st_uid == 0  # the user needs only to pass
    for path in as_nobody.data_dir.rglob("*"):
        assert path.lstat().st_uid == NOBODY, path
    assert not as_nobody.logged("runs as root")


@needs_root
def test_root_is_its_owner_still(as_nobody):
    """By its socket, and over TCP: root started it."""
    data = ("--data-dir", as_nobody.data_dir)
    done = notegate("call", "notebook", "mode=create", "name=x", "newStr=1", *data)
    assert done.returncode == 0, done.stderr
    assert "0 in force" not in notegate("check", *data).stderr
    assert f"may run code, as user {NOBODY}" in notegate("check", *data).stdout
    assert notegate("key", "list", *data).returncode == 0
    assert notegate("verify", *data).returncode == 0
    assert as_nobody.call("notebook", {"mode": "list"}).status_code == 200
    assert as_nobody.reload()["restart_needed"] is False


@needs_root
def test_without_keys_that_programs_may_run_code_is_a_warning(as_nobody):
    line, = map(json.loads, eventually(lambda: as_nobody.logged("may run code"), what="the line"))
    assert (line["level"], line["where"]) == ("warning", "serve") and line["message"].endswith(f"as user {NOBODY}")
    assert "no key exists" in line["message"]


@needs_root
def test_kernels_are_the_users(as_nobody):
    need("python3")
    files = as_nobody.data_dir / "files"
    book = Book(as_nobody, "n.ipynb", [("a", "import os\nprint(os.getuid(), os.environ['HOME'], os.environ['USER'])")],
                folder=files)
    os.chown(book.path, NOBODY, NOBODY)
    book.run("a")
    assert book.text("a").split()[0] == str(NOBODY) and book.text("a").split()[2] == "nobody"
    ask = (f"import socket\nplain = socket.create_connection(('127.0.0.1', {as_nobody.port}))\n"
           "plain.sendall(b'GET /v1/keys HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n"
           "print(plain.recv(1000).split()[1])")
    other = Book(as_nobody, "m.ipynb", [("a", ask)], folder=files)
    os.chown(other.path, NOBODY, NOBODY)
    other.run("a")
    assert other.text("a").strip() == "b'401'"
    assert as_nobody.call("notebook", {"mode": "list"}).status_code == 200  # root's still, beside kernels


@needs_root
def test_user_in_the_configuration(top):
    path = top / "notegate.yaml"
    path.write_text(f"user: nobody\ndata_dir: {top}/data\nlisten: 127.0.0.1:0\nplugins: [notebook]\n")
    path.chmod(0o600)  # root reads it before it becomes the user nobody
    with subprocess.Popen([binary(), "serve", "--config", str(path)], stdout=subprocess.PIPE, text=True,
                          env=environment(), cwd=top) as process:
        assert "listening" in process.stdout.readline()
        assert os.stat(f"/proc/{process.pid}/task").st_uid in (0, NOBODY)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        assert f"Uid:\t{NOBODY}\t" in status
        process.terminate()
    assert process.returncode == 0


@needs_root
def test_where_its_data_is_by_default(top):
    """Root's place, for the user that serves as well; another user's own stays their own."""
    def data_dir(user, *words):
        done = subprocess.run(["setpriv", "--reuid", user, "--regid", user, "--clear-groups", binary(), "check",
                               "--help-config", *words], capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment() | {"HOME": str(top)}, cwd=top, check=False)
        return next(line for line in done.stdout.splitlines() if line.startswith("data_dir = ")).split(" = ")[1]

    assert data_dir("0") == "/var/lib/notegate"
    assert data_dir(str(NOBODY), "--set", "user=nobody") == "/var/lib/notegate"
    assert data_dir("1234", "--set", "user=nobody") == f"{top}/.local/share/notegate"


@needs_root
def test_who_cannot_become_whom(top):
    assert 'user is "no-such-one": there is no such user' in refused("--data-dir", top / "d", "--user", "no-such-one")
    os.chown(top, NOBODY, NOBODY)
    done = subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", binary(), "serve",
                           "--data-dir", str(top / "d"), "--user", "root"], capture_output=True, text=True,
                          timeout=TIMEOUT, env=environment() | {"HOME": str(top)}, cwd=top, check=False)
    assert done.returncode == 1 and "only root can become another user" in done.stderr
    assert not (top / "d").exists()


@needs_root
def test_modules_are_loaded_by_the_user(top):
    """A module of the user nobody belongs to the running user only after the gateway has dropped root's rights."""
    folder = os.path.join(os.path.dirname(os.path.dirname(binary())), "modules", "plugins")
    module = top / "mine" / "notebook.so"
    module.parent.mkdir()
    shutil.copy(os.path.join(folder, "notebook.so"), module)
    os.chown(module, NOBODY, NOBODY)
    os.chown(module.parent, NOBODY, NOBODY)
    assert f"`chown root {module}`" in refused("--data-dir", top / "d", "--set", f"plugins={module}")
    running = Gateway(top / "e", [f"plugins={module}"], ["--user", "nobody"])
    assert running.stop() == 0


def test_root_is_warned_once(start):
    running = start()
    assert running.stop() == 0
    assert len(running.logged("runs as root")) == (1 if os.geteuid() == 0 else 0)


# ---- packaging/run ----


@pytest.fixture
def tree(top):
    """A clone that is built, with nothing to install."""
    packaging = top / "clone" / "packaging"
    packaging.mkdir(parents=True, mode=0o755)
    for name in ("run", "packages.sh"):
        shutil.copy(SOURCE / "packaging" / name, packaging / name)
    with open(packaging / "packages.sh", "a", encoding="utf-8") as script:
        script.write("need_packages() { :; }\nbuild() { :; }\n")
    built = pathlib.Path(binary()).parents[1]
    for name in ("bin", "modules"):
        shutil.copytree(built / name, top / "clone" / "build" / "release" / name)
    return top / "clone"


@needs_root
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_run_as_root_serves_as_a_user(top, tree, closed):
    data, copy = top / "data", top / "copy"
    if closed:
        tree.chmod(0o700)
    more = environment() | {"NOTEGATE_USER": "nobody", "NOTEGATE_DATA_DIR": str(data), "NOTEGATE_LISTEN": "127.0.0.1:0",
                            "NOTEGATE_TEST_COPY": str(copy)}
    # Data of an earlier gateway, which was root's, with a link that some agent made.
    outside = top / "outside"
    outside.write_text("root's\n")
    subprocess.run([binary(), "call", "notebook", "mode=create", "name=old", "newStr=kept"], check=True, cwd=top,
                   env=more, timeout=TIMEOUT, stdout=subprocess.DEVNULL)
    (data / "files" / "link").symlink_to(outside)
    with subprocess.Popen([str(tree / "packaging" / "run")], stdout=subprocess.PIPE, text=True, env=more, cwd=top) as process:
        line = process.stdout.readline()
        assert "listening" in line
        assert os.readlink(f"/proc/{process.pid}/exe").startswith(str(copy if closed else tree))
        assert f"Uid:\t{NOBODY}\t" in pathlib.Path(f"/proc/{process.pid}/status").read_text()
        asked = subprocess.run([binary(), "call", "notebook", "mode=read", "name=old"], capture_output=True, text=True,
                               env=more, timeout=TIMEOUT, check=False)
        assert "kept" in asked.stdout, asked.stderr
        process.terminate()
    assert process.returncode == 0
    assert outside.stat().st_uid == 0 and data.stat().st_uid == NOBODY


@needs_root
def test_run_makes_the_user(top, tree):
    """Asked of a shell of its own: users are the machine's."""
    made = subprocess.run(["bash", "-c", f"cd {tree}/packaging && . ./packages.sh && getent() {{ return 1; }}\n"
                           "useradd() { echo \"useradd ${*: -1} $1\"; }\nsetpriv() { :; }\nid() { echo 1; }\nprogram=/x\n"
                           "serve_for notegate"], capture_output=True, text=True, timeout=TIMEOUT,
                          env=environment() | {"NOTEGATE_DATA_DIR": str(top / "none")}, check=False)
    assert made.returncode == 0 and "useradd notegate --system" in made.stdout, made.stdout + made.stderr
    assert re.fullmatch(r"Making the system user notegate\.\nMade ready for the user notegate in \d+ s\.\n", made.stderr), made.stderr


# ---- the data directory ----


def test_a_directory_that_others_get_into(top):
    data = top / "it is here"
    for mode in (0o755, 0o770, 0o777, 0o701):
        data.mkdir()
        (data / "own").touch()
        data.chmod(mode)
        said = refused("--data-dir", data)
        assert f"mode {mode:04o}" in said and f"do `chmod 700 '{data}'`" in said, said
        checked = notegate("check", "--data-dir", data)
        assert checked.returncode == 1 and f"chmod 700 '{data}'" in checked.stdout
        assert list(data.iterdir()) == [data / "own"]
        (data / "own").unlink()
        data.rmdir()


@needs_root
def test_a_directory_of_another_user(top):
    data = top / "data"
    data.mkdir(mode=0o700)
    os.chown(data, NOBODY, NOBODY)
    said = refused("--data-dir", data)
    assert "belongs to user nobody" in said and "`runuser -u nobody -- " in said and "chown" not in said
    assert list(data.iterdir()) == []


@needs_root
@pytest.mark.parametrize("sudo", [False, True])
def test_a_link_into_a_closed_home(top, sudo):
    """It is on root's path and not on that of the user who is to run it."""
    home, data = top / "home", top / "data"
    built = pathlib.Path(binary()).parents[1]
    for name in ("bin", "lib", "modules"):
        if (built / name).exists():
            shutil.copytree(built / name, home / name)
    home.chmod(0o700)
    data.mkdir(mode=0o700)
    os.chown(data, NOBODY, NOBODY)
    link = pathlib.Path("/usr/local/bin/notegate")
    if link.is_symlink() or link.exists():
        pytest.skip("this machine has a program there")
    link.symlink_to(home / "bin" / "notegate")
    try:
        done = subprocess.run(["notegate", "verify", "--data-dir", data], capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment() | ({"SUDO_USER": "ada"} if sudo else {}), check=False)
    finally:
        link.unlink()
    said = re.search(r"`(?:runuser -u nobody --|sudo -u nobody) (\S+) verify --data-dir", done.stderr)
    assert done.returncode == 1 and said and said[1] != "notegate", done.stderr
    assert ("sudo -u" in done.stderr) == (sudo and os.access("/usr/bin/sudo", os.X_OK))


def test_a_stop_leaves_no_socket(start):
    running = start()
    path = pathlib.Path(running.socket_path)
    assert path.is_socket()
    assert running.stop() == 0
    assert not path.exists()


def test_the_socket_of_a_killed_one_is_replaced(start, tmp_path):
    first = Gateway(tmp_path / "data")
    first.process.kill()
    first.process.wait()
    first.client.close()
    assert os.path.exists(first.socket_path)
    second = start()
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(second.socket_path)
    assert second.stop() == 0 and not os.path.exists(second.socket_path)


# ---- roots ----


@pytest.mark.parametrize("space", ["", "team:"])
def test_a_named_root_that_is_missing(top, space):
    root = top / "typo"
    words = ("--data-dir", top / "data", "--root", f"{space}{root}")
    assert f"{root} is not there" in refused(*words)
    done = notegate("check", *words)
    assert done.returncode == 1 and f"failed root: {root} does not exist" in done.stdout
    assert notegate("call", "notebook", "mode=list", *words).returncode == 1
    assert not root.exists()
    root.mkdir()
    done = notegate("check", "--listen", "127.0.0.1:0", *words)
    assert done.returncode == 0 and f"ok     root: {root}" in done.stdout, done.stdout


def test_the_default_root_is_made(start):
    running = start()
    assert (running.data_dir / "files").stat().st_mode & 0o7777 == 0o700


def test_a_reload_makes_no_root(start, tmp_path):
    first, typo = tmp_path / "first", tmp_path / "typo"
    first.mkdir()
    config = tmp_path / "some.yaml"
    config.write_text(f"roots: [{first}]\n")
    running = start(args=["--config", str(config)])
    config.write_text(f"roots: [{typo}]\n")
    answer = running.client.post("/v1/reload")
    assert answer.status_code != 200 and "is not there" in answer.text
    assert not typo.exists()


def test_an_empty_directory_is_made_private(top):
    data = top / "data"
    data.mkdir(mode=0o755)
    gateway = Gateway(data)
    try:
        assert gateway.logged(f"the data directory {data} was empty", "its mode is 0700 now")
        assert data.stat().st_mode & 0o777 == 0o700
    finally:
        assert gateway.stop() == 0


# ---- the one right next step ----


OTHER_USER = 2
ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/tools", headers=dict([a.split(": ") for a in sys.argv[2:]]))).read().decode())
except urllib.error.HTTPError as error:
    print(error.read().decode())
"""


def ask(url, *headers):
    """What another user of the machine is answered."""
    return json.loads(subprocess.run(["/usr/bin/python3", "-c", ASK, url, *headers], user=OTHER_USER, group=OTHER_USER, cwd="/",
                                     capture_output=True, text=True, timeout=TIMEOUT, check=True, env={}).stdout)


@needs_root
def test_another_user_is_told_how_to_get_a_key(as_nobody):
    answer = ask(as_nobody.url)
    assert "only programs of its own user" in answer["message"] and f"--data-dir {as_nobody.data_dir}`" in answer["hint"]
    key = as_printed(answer["hint"]).stdout.strip()
    assert any(tool["name"] == "notebook" for tool in ask(as_nobody.url, f"Authorization: Bearer {key}")["tools"])
    answer = ask(as_nobody.url, f"Authorization: Bearer {key[:-1]}{'a' if key[-1] != 'a' else 'b'}")
    assert "cannot be restored" in answer["hint"], answer
    key = as_printed(answer["hint"]).stdout.strip()
    assert any(tool["name"] == "notebook" for tool in ask(as_nobody.url, f"Authorization: Bearer {key}")["tools"])


@needs_root
def test_a_command_says_that_another_gateway_answers(top):
    gateway = Gateway(top / "data")
    address = gateway.url.removeprefix("http://")

    def other(*words, **more):
        return subprocess.run([binary(), *map(str, words), "--listen", address], capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment() | {"HOME": str(top / "home")} | more, user=OTHER_USER, group=OTHER_USER, cwd="/",
                              check=False, stdin=subprocess.DEVNULL)

    try:
        said = f"another gateway answers at {address}, and its data directory is not {top}/home/.local/share/notegate"
        for words, why in ((["key", "add", "ann"], "it has keys of its own"), (["key", "list"], "it has keys of its own"),
                           (["whoami"], "it knows nothing of this caller"),
                           (["call", "notebook", "mode=list"], "there is no store yet"), (["mcp"], "there is no store yet")):
            done = other(*words)
            assert done.returncode == 1 and said in done.stderr and why in done.stderr, done
        made = as_printed(done.stderr.split("That gateway says: ")[1])
        assert made.stdout.startswith("ng_"), made
        done = other("tools")
        assert done.returncode == 0 and said in done.stderr, done
        assert not (top / "home").exists()
        # A data directory that is named is the one that is meant.
        done = notegate("key", "add", "ann", "--listen", address, "--data-dir", top / "named")
        assert done.returncode == 0 and "another gateway" not in done.stderr, done
    finally:
        assert gateway.stop() == 0


@needs_root
@pytest.mark.parametrize("user", [NOBODY, OTHER_USER], ids=["of the same user", "of another user"])
def test_a_store_beside_a_gateway_of_another_data_directory(as_nobody, top, user):
    home, address = top / "home", as_nobody.url.removeprefix("http://")
    store = home / ".local" / "share" / "notegate"
    home.mkdir()
    os.chown(home, user, user)

    def own(*words, code=0, options=("--listen", address)):
        done = subprocess.run([binary(), *map(str, words), *options], capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment() | {"HOME": str(home)}, user=user, group=user, extra_groups=[], cwd="/", check=False)
        assert done.returncode == code, (words, done)
        return done

    said = f"another gateway answers at {address}, and its data directory is not {store}, "
    write = ("call", "notebook", "mode=create", "name=own", "newStr=text")
    assert f"{said}where there is no store yet" in own(*write, code=1).stderr
    assert f"{said}which this command works on" in own("check").stderr
    assert list(home.iterdir()) == []
    assert own(*write, "--data-dir", store).stderr == "", "the one that is meant"
    for words, shown in ((("check",), f"ok     listen: {address}, which is in use now\n"), (("call", "notebook", "mode=list"), "- own: ")):
        done = own(*words)
        assert f"{said}which this command works on" in done.stderr and shown in done.stdout, done
        assert ("That gateway says: " in done.stderr) == (user != NOBODY)
        assert ("with that gateway's --data-dir" in done.stderr) == (user == NOBODY)
    assert f"{said}and it has keys of its own" in own("key", "add", "ann", code=1).stderr
    assert "own" not in as_nobody.call("notebook", {"mode": "list"}).text
    if user == NOBODY:
        assert "own" not in own("call", "notebook", "mode=list", "--data-dir", as_nobody.data_dir, options=()).stdout


@needs_root
def test_a_command_sends_the_key_of_the_environment(top):
    gateway = Gateway(top / "data")
    address = gateway.url.removeprefix("http://")

    def key(*words):
        made = notegate("key", "add", *words, "--data-dir", top / "data")
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def other(*words, sent, code=0, listen=address, **more):
        env = environment() | {"HOME": str(top / "home"), "NOTEGATE_KEY": sent}
        done = subprocess.run([binary(), *map(str, words), "--listen", listen], capture_output=True, text=True, timeout=TIMEOUT,
                              env=env, user=OTHER_USER, group=OTHER_USER, cwd="/", check=False, **more)
        assert done.returncode == code, (words, done)
        return done

    try:
        ann, admin = key("ann"), key("root", "--role", "admin")
        assert json.loads(other("whoami", sent=ann).stdout)["agent"] == "ann"
        assert "Created" in other("call", "notebook", "mode=create", "name=plan", "newStr=text", sent=ann).stdout
        assert other("call", "notebook", '{"mode": "read", "name": "plan"}', sent=ann).stdout == "text\n"
        listed = json.loads(other("tools", "--format", "openai", sent=ann).stdout)
        assert [tool for tool in listed if tool["function"]["name"] == "notebook"]
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
        answer = json.loads(other("mcp", sent=ann, input=ask + "\n").stdout.splitlines()[0])
        assert "ann" in answer["result"]["instructions"]
        assert "role admin" in other("key", "list", sent=ann, code=1).stderr
        assert " ann " in other("key", "list", sent=admin).stdout
        # A key that is not taken, an option that the gateway cannot follow, nobody there.
        wrong = other("call", "notebook", "mode=list", sent=ann[:-1] + ("a" if ann[-1] != "a" else "b"), code=1)
        assert f"the gateway at {address}, asked with the key in NOTEGATE_KEY: " in wrong.stderr and ann not in wrong.stderr
        unused = other("call", "notebook", "mode=list", "--root", "/", sent=ann, code=2)
        assert f"a gateway serves {address}" in unused.stderr and "roots" in unused.stderr
        nobody = other("call", "notebook", "mode=list", sent=ann, listen="127.0.0.1:0")
        assert nobody.stdout == "Available notebooks:\n- default: Empty\n", "as without a key"
        # These work on the user's own data directory, which it has not.
        assert "does not exist" in other("verify", sent=admin, code=1).stderr
        assert not (top / "home").exists()
    finally:
        assert gateway.stop() == 0


@needs_root
def test_a_data_directory_in_a_closed_home(top):
    """Whether it is there cannot be seen."""
    home = top / "home"
    (home / "data").mkdir(parents=True)
    home.chmod(0o700)
    for words in (["call", "notebook", "mode=list"], ["whoami"], ["key", "list"], ["verify"], ["backup", "/tmp/never"]):
        done = subprocess.run([binary(), *words, "--data-dir", str(home / "data")], capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment(), user=OTHER_USER, group=OTHER_USER, cwd="/", check=False)
        assert done.returncode == 1 and f"{home}/data cannot be looked at: a folder above it is closed" in done.stderr, done


def test_a_start_that_cannot_listen_makes_no_store(top):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = notegate("serve", "--listen", address, "--data-dir", top / "data")
    assert done.returncode == 1 and f"cannot listen on {address}" in done.stderr and "--listen ADDRESS:PORT" in done.stderr
    assert not (top / "data").exists()


@needs_root
def test_what_root_restores_belongs_to_the_owner_of_the_folder(top):
    before, after = top / "before", top / "after"
    for root in (before, after):
        root.mkdir()
    (before / "folder").mkdir()
    (before / "folder" / "file").write_text("text")
    (before / "own").write_text("text")
    made = notegate("call", "notebook", "mode=create", "name=n", "newStr=t", "--data-dir", top / "data", "--root", before)
    assert made.returncode == 0, made.stderr
    assert notegate("backup", top / "copy", "--files", "--data-dir", top / "data", "--root", before).returncode == 0
    os.chown(after, NOBODY, NOBODY)
    done = notegate("restore", top / "copy", "--data-dir", top / "new", "--root", after)
    assert done.returncode == 0, done.stderr
    for name in ("own", "folder", "folder/file"):
        info = (after / name).stat()
        assert (info.st_uid, info.st_gid) == (NOBODY, NOBODY), name
    assert (after / "folder" / "file").stat().st_mode == (before / "folder" / "file").stat().st_mode


@needs_root
def test_a_root_in_a_closed_home(top):
    home = top / "home"
    (home / "project").mkdir(parents=True)
    home.chmod(0o700)
    said = refused("--user", "nobody", "--data-dir", top / "data", "--root", home / "project")
    assert f"The root {home}/project cannot be opened: user nobody" in said
    as_printed(said.replace("/srv/notegate", str(top / "srv")))
    gateway = Gateway(top / "data", args=["--user", "nobody", "--root", top / "srv"], cwd=top)
    assert gateway.stop() == 0
