# SPDX-License-Identifier: MIT
"""Commands in hints and errors work as they are printed: each is provoked, typed, and what was refused works then. The
last tests hold the list of all that the sources name against the tests that run them."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile

import pytest
from cells_support import Book, need, write_notebook, write_spec
from conftest import SOURCE, Gateway, binary, environment
from hints_support import TIMEOUT, as_printed, commands, owners, typed
from keys_support import PLUGINS, READ, WRITE, add, bearer, key_id, notegate, refused
from servers import free_port
from tls_support import authority  # noqa: F401 (a fixture)

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
# From elsewhere: a proxy's header.
FAR = {"X-Forwarded-For": "192.0.2.1"}


def hint(answer, status, code):
    return refused(answer, status, code)["hint"]


# ---- rights of a key ----


@pytest.mark.parametrize("options, status, code", [((), 403, "RUN_FORBIDDEN"), (("--run", "--mode", "edit"), 403, "MODE_FORBIDDEN")])
def test_a_tool_that_runs_code(start, options, status, code):
    need("python3")
    gateway = start(sets=["plugins=cells"])
    key = add(gateway.data_dir, "ada", *options)
    write_notebook(gateway.data_dir / "files" / "n.ipynb", [("c", "print(6 * 7)")])

    def run():
        return gateway.call("runNotebookCells", {"notebook": "n.ipynb", "cellIds": ["c"]}, bearer(key))

    as_printed(hint(run(), status, code), gateway.data_dir)
    answer = run()
    assert answer.status_code == 200 and "42" in answer.json()["result"], answer.text


@pytest.mark.parametrize("tool", ["checkpoint_restore", "checkpoint_delete"])
def test_work_of_others(start, tool):
    gateway = start(sets=["plugins=agent_notebook"])
    lead, plain = add(gateway.data_dir, "lead", "--role", "admin"), add(gateway.data_dir, "plain")
    made = gateway.call("checkpoint_snapshot", {"label": "one"}, bearer(lead)).json()["result"]

    def take():
        return gateway.call(tool, {"checkpoint_id": made["checkpoint_id"]}, bearer(plain))

    as_printed(hint(take(), 403, "FORBIDDEN"), gateway.data_dir, ID=key_id(plain))
    answer = take()
    assert answer.status_code == 200, answer.text


def test_an_admin_who_may_not_run_code(start):
    gateway = start(sets=[PLUGINS])
    admin, ada = add(gateway.data_dir, "root", "--role", "admin"), add(gateway.data_dir, "ada")

    def keys():
        listed = gateway.client.get("/v1/keys", headers=bearer(admin)).json()["keys"]
        return {key["agent"]: key["run"] for key in listed}

    answer = gateway.client.post("/v1/keys", headers=bearer(admin), json={"agent": "guest", "run": True})
    as_printed(hint(answer, 403, "RUN_FORBIDDEN"), gateway.data_dir)
    answer = gateway.client.patch(f"/v1/keys/{key_id(ada)}", headers=bearer(admin), json={"run": True})
    as_printed(hint(answer, 403, "RUN_FORBIDDEN"), gateway.data_dir)
    assert keys() == {"root": False, "guest": True, "ada": True}


# ---- keys that open nothing ----


@pytest.mark.parametrize("headers", [{}, FAR], ids=["here", "elsewhere"])
def test_a_paused_key(start, headers):
    gateway = start(sets=[PLUGINS])
    key = add(gateway.data_dir, "ada")
    assert notegate(gateway.data_dir, "key", "pause", "ada").returncode == 0
    said = hint(gateway.call("notebook", READ, bearer(key) | headers), 401, "UNAUTHENTICATED")
    assert (str(gateway.data_dir) in said) == (not headers)
    # Here the command names the store, as another user of the machine must.
    as_printed(said, gateway.data_dir if headers else None, ID=key_id(key))
    assert gateway.call("notebook", READ, bearer(key)).status_code == 200


@pytest.mark.parametrize("headers", [{}, FAR], ids=["here", "elsewhere"])
@pytest.mark.parametrize("sent", ["none", "wrong"])
def test_no_good_key(start, sent, headers):
    gateway = start(sets=[PLUGINS])
    key = add(gateway.data_dir, "ada")
    wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
    said = hint(gateway.call("notebook", READ, bearer(wrong if sent == "wrong" else None) | headers), 401, "UNAUTHENTICATED")
    assert (str(gateway.data_dir) in said) == (not headers)
    made = as_printed(said, gateway.data_dir if headers else None)
    assert gateway.call("notebook", READ, bearer(made.stdout.strip()) | headers).status_code == 200


@pytest.mark.parametrize("auth", ["auto", "off"])
def test_a_public_address_without_a_key(tmp_path, auth):
    data = tmp_path / "data"
    words = [binary(), "serve", "--data-dir", str(data), "--listen", "0.0.0.0:0", "--set", f"auth={auth}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, env=environment(), check=False)
    assert done.returncode == 1 and "cannot listen on 0.0.0.0" in done.stderr
    key = as_printed(done.stderr).stdout.strip()
    gateway = Gateway(data, sets=["auth=auto"], listen="0.0.0.0:0")
    try:
        assert gateway.call("notebook", READ, bearer(key)).status_code == 200
    finally:
        assert gateway.stop() == 0


def test_the_last_key(start):
    gateway = start(sets=[PLUGINS])
    admin = add(gateway.data_dir, "ops", "--role", "admin")

    def revoke(key):
        return gateway.client.delete(f"/v1/keys/{key_id(key)}", headers=bearer(admin))

    said = hint(revoke(admin), 409, "CONFLICT")
    other = as_printed(said, gateway.data_dir).stdout.strip()
    assert revoke(other).status_code == 200
    said = hint(revoke(admin), 409, "CONFLICT")
    assert "1 key revoked" in as_printed(said, gateway.data_dir, at=1).stdout
    assert gateway.call("notebook", READ).status_code == 200


# ---- files of others ----


def own_user(folder):
    """A user whom modes of files hold: none do root."""
    if os.geteuid() != 0:
        return {}
    os.chown(folder, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY}


@pytest.fixture(name="top")
def passable(tmp_path_factory):
    """A folder that every user can pass, as pytest's are root's alone."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.mark.parametrize("mode", [0o755, 0o500])
def test_a_data_directory_of_a_wrong_mode(top, mode):
    user = own_user(top)
    data = top / "it is here"
    env = owners(data, HOME=str(top))
    assert typed("notegate call notebook mode=create name=n", env=env, **user).returncode == 0
    data.chmod(mode)
    done = typed("notegate check --listen 127.0.0.1:0", env=env, **user)
    assert done.returncode == 1, done
    command, = commands(re.search(r"^failed data directory: .*$", done.stdout, re.M).group())
    assert typed(command, env=env, **user).returncode == 0
    done = typed("notegate check --listen 127.0.0.1:0", env=env, **user)
    assert done.returncode == 0, done


def test_a_tls_key_that_all_can_read(authority, tmp_path):  # noqa: F811
    folder = tmp_path / "the keys"
    shutil.copytree(authority.folder, folder)
    (folder / "key.pem").chmod(0o604)
    words = ["check", "--listen", "127.0.0.1:0"]
    for name in ("certificate", "key"):
        words += ["--set", f"tls.{name}={folder / f'{name}.pem'}"]
    done = notegate(tmp_path / "data", *words)
    line, = [line for line in done.stdout.splitlines() if "every user can read the key" in line]
    as_printed(line)
    assert "every user can read" not in notegate(tmp_path / "data", *words).stdout


@needs_root
def test_a_store_of_another_user(top):
    user = own_user(top)
    env = owners(top / "data", HOME=str(top))
    assert typed("notegate call notebook mode=create name=n", env=env, **user).returncode == 0
    done = typed("notegate verify", env=env)
    assert done.returncode == 1, done
    assert "everything is in order" in as_printed(done.stderr, top / "data").stdout


@needs_root
def test_a_kernel_of_another_user(top, monkeypatch):
    """The gateway's own user may not change whose it is."""
    need("python3")
    program = top / "bin" / "it's a kernel"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
    program.chmod(0o755)
    os.chown(program, 2, 2)
    write_spec(top / "jupyter", "python3", [str(program), "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    monkeypatch.setenv("JUPYTER_PATH", str(top / "jupyter"))
    running = Gateway(top / "data", ["plugins=cells"], ["--user", "nobody"], cwd=top)
    try:
        book = Book(running, "n.ipynb", [("a", "print(1)")])
        os.chown(book.path, NOBODY, NOBODY)
        answer = book.call("runNotebookCells", cellIds=["a"])
        assert answer.status_code != 200 and "other users can change" in answer.json()["message"], answer.text
        as_printed(answer.json()["message"].split("; do ")[1])
        book.run("a")
    finally:
        assert running.stop() == 0


@needs_root
@pytest.mark.parametrize("words", [["check", "--listen", "127.0.0.1:0"], ["serve", "--listen", "127.0.0.1:0"]], ids=lambda words: words[0])
def test_a_user_that_is_missing(top, words):
    """Made in a copy of /etc, which ends with the command."""
    words = ["notegate", *words, "--set", "user=gateguest", "--data-dir", str(top / "data")]
    done = typed(" ".join(words))
    assert done.returncode == 1, done
    command, = commands(done.stdout + done.stderr, NAME="gateguest")
    shutil.copytree("/etc", top / "etc", symlinks=True)
    before = pathlib.Path("/etc/passwd").read_bytes()
    script = f"mount --bind {top}/etc /etc || exit 77\n{command} >&2 || exit 1\nexec {' '.join(words)}"
    with subprocess.Popen(["unshare", "-m", "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=owners()) as process:
        if words[1] == "serve":
            line = process.stdout.readline()
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            process.terminate()
        output, errors = process.communicate(timeout=TIMEOUT)
    assert pathlib.Path("/etc/passwd").read_bytes() == before
    if process.returncode == 77:
        pytest.skip("mounting is not allowed here")
    if words[1] == "serve":
        assert "listening on" in line and "Uid:\t0\t" not in status, errors
    assert process.returncode == 0 and "no user" not in output, output + errors


# ---- commands of the owner ----


@pytest.fixture(name="owner")
def own_place(tmp_path):
    """The environment of a user with an empty home."""
    for name in ("home", "config"):
        (tmp_path / name).mkdir()
    return owners(HOME=str(tmp_path / "home"), XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_DATA_HOME=str(tmp_path / "share"),
                  NOTEGATE_LISTEN=f"127.0.0.1:{free_port()}")


def test_a_call_without_a_store(top, owner):
    user = own_user(top)
    owner |= {name: str(top) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    call = "notegate call notebook mode=create name=plan"
    done = typed(call, env=owner, **user)
    assert done.returncode == 1 and "there is no store" in done.stderr
    command, = commands(done.stderr)
    with subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=owner,
                          cwd="/", **user) as process:
        assert "listening on" in process.stdout.readline()
        done = typed(call, env=owner, **user)
        process.terminate()
        process.communicate(timeout=TIMEOUT)
    assert done.returncode == 0 and process.returncode == 0, done


@pytest.mark.parametrize("words", [["add", "ada"], ["set", "ada", "--note", "x"], ["revoke", "unknown"]], ids=" ".join)
def test_which_keys_there_are(tmp_path, words):
    data = tmp_path / "data"
    ids = [key_id(add(data, "ada")) for _ in range(2)]
    done = notegate(data, "key", *words)
    listed = as_printed(done.stderr, data).stdout
    assert all(one in listed for one in ids)
    if words[0] == "set":
        assert notegate(data, "key", "set", ids[0], *words[2:]).returncode == 0


def test_tools_that_there_are(tmp_path):
    data = tmp_path / "data"
    for name in ("zzzzz", "zzz*"):
        done = notegate(data, "key", "add", "ada", "--tool", name)
        assert done.returncode != 0
        assert "notebook" in as_printed(done.stderr, data).stdout
    add(data, "ada", "--tool", "notebook")


def test_a_damaged_store(tmp_path):
    data = tmp_path / "data"
    for words in (("mode=create", "newStr=one"), ("mode=write", "newStr=two"), ("mode=write", "newStr=three")):
        assert notegate(data, "call", "notebook", "name=n", *words).returncode == 0
    assert notegate(data, "backup", tmp_path / "good").returncode == 0
    with contextlib.closing(sqlite3.connect(data / "notegate.db", isolation_level=None)) as store:
        store.execute("UPDATE log SET text = x'00' WHERE revision = 1")
    done = notegate(data, "backup", tmp_path / "copy")
    assert done.returncode == 1, done
    command, = commands(done.stderr)
    done = typed(command, data)
    assert done.returncode == 1 and "cannot be rebuilt" in done.stdout and "fault" in done.stdout, done
    # "and restore from a backup"
    assert notegate(tmp_path / "new", "restore", tmp_path / "good").returncode == 0
    assert typed(command, tmp_path / "new").returncode == 0


def test_an_unknown_key_of_the_configuration(tmp_path):
    done = notegate(tmp_path / "data", "tools", "--set", "completely_else=1")
    assert done.returncode != 0
    assert "\nplugins = " in as_printed(done.stderr).stdout


@pytest.mark.parametrize("line, told", [
    ("status", "ok "), ("key set", "changed"), ("key resume", "resumed"), ("key revoke", "revoked"), ("key add", "ng_"),
    ("key nothing", "Usage: "), ("call", "Usage: "), ("call --help", "Usage: notegate call notebook"), ("--nothing", "Usage: ")])
def test_a_command_line_that_makes_no_sense(tmp_path, line, told):
    data = tmp_path / "data"
    add(data, "ada")
    env = owners(data, NOTEGATE_LISTEN="127.0.0.1:0")
    done = typed(f"notegate {line}", env=env)
    said = (done.stdout if "--help" in line else done.stderr).replace("NAME|ID", "NAME")
    name = "ada" if "revoke" in line else "guest"
    known, = {key_id(key) for key in [add(data, "guest")]}
    output = ""
    for command in commands(" ".join(said.split()), **{"NAME": name, "ID": known, "OPTION...": "--note x"}):
        done = typed(command, env=env)
        assert done.returncode == 0, (command, done)
        output += done.stdout
    assert told in output


def test_a_backup_to_a_terminal(tmp_path):
    data = tmp_path / "data"
    add(data, "ada")
    ours, theirs = os.openpty()
    done = subprocess.run([binary(), "backup", "-", "--data-dir", str(data)], stdout=theirs, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT, env=environment(), check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    as_printed(done.stderr, data, FILE=str(tmp_path / "copy"))
    assert (tmp_path / "copy").stat().st_size > 0


def test_texts_that_tell_how(start):
    """The example of a tool, and what /openapi.json says of keys."""
    gateway = start(sets=[PLUGINS])
    shown = typed("notegate tools notebook", gateway.data_dir).stdout
    example = shown.split("Example:\n")[1].strip()
    assert gateway.call("notebook", WRITE | {"name": "TEXT"}).status_code == 200
    done = typed(example.replace("mode=TEXT", "mode=read"), gateway.data_dir)
    assert done.returncode == 0, (example, done.stderr)
    done = typed("notegate call notebook - <<<'{\"mode\": \"list\"}'", gateway.data_dir)  # "- <arguments.json"
    assert done.returncode == 0 and "TEXT" in done.stdout, done
    schemes = gateway.client.get("/openapi.json").json()["components"]["securitySchemes"]
    key = as_printed(schemes["key"]["description"], gateway.data_dir).stdout.strip()
    assert gateway.call("notebook", READ, bearer(key)).status_code == 200


@pytest.mark.parametrize("plugins", ["notebook", "file_editor"])
def test_the_call_to_try(tmp_path, plugins):
    """What a start says at a terminal."""
    data = tmp_path / "data"
    key = add(data, "ada")
    ours, theirs = os.openpty()
    command = [binary(), "serve", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--set", f"plugins={plugins}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment()) as process:
        os.close(theirs)
        said = b""
        while said.count(b"$NOTEGATE_KEY") < 2:
            said += os.read(ours, 4096)
        line = re.search(r"try: (curl .*?)\r?\n", said.decode() + "\n").group(1)
        done = typed(line, env=owners(NOTEGATE_KEY=key))
        process.terminate()
        process.communicate(timeout=TIMEOUT)
    os.close(ours)
    assert done.returncode == 0 and "UNAUTHENTICATED" not in done.stdout, done
    assert "result" in json.loads(done.stdout) or plugins == "file_editor", done.stdout


# ---- none is forgotten ----


STRING = r'"(?:[^"\\\n]|\\.)*"'
JOINED = re.compile(rf"{STRING}(?:\s*{STRING})*")
# Comments, and characters such as '"'.
NO_STRINGS = re.compile(rf"({STRING})|/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])'", re.S)
PROGRAMS = "adduser|chgrp|chmod|chown|curl|install(?= -)|kill|mkdir|mv|rm|runuser|setfacl|sh|sudo|systemctl|useradd|usermod"


def named_by_the_sources():
    """Every command in the product's strings, with the backquote before it, and the files that name it. Of a command that is put
    together each part counts."""
    subcommands = re.findall(r'\.name = "([a-z-]+)"', (SOURCE / "api" / "command" / "command_table.c").read_text())
    command = re.compile(rf"(?:(?<![\w/-])(?:notegate (?={'|'.join(subcommands)})|(?<=`)notegate (?=%|--)|claude (?=mcp)|"
                         rf"(?:{PROGRAMS}) (?=[-/%'a-z0-7]))|"
                         rf"^ (?={'|'.join(subcommands)}) *[a-z]+ [a-zA-Z%]+ --)[^`\n]*")
    found = {}
    for path in sorted(path for area in ("api", "backends", "core", "plugins") for path in (SOURCE / area).rglob("*.[ch]")):
        if "tests" in path.parts:
            continue
        source = NO_STRINGS.sub(lambda match: match[1] or " ", path.read_text())
        for literal in JOINED.findall(source):
            text = "".join(part[1:-1] for part in re.findall(STRING, literal)).replace('\\"', '"').replace("\\n", "\n")
            for match in command.finditer(text):
                quote = "`" if text[:match.start()].endswith("`") else ""
                found.setdefault(quote + match.group().strip(" .'"), set()).add(str(path.relative_to(SOURCE)))
    return found


# The test that types each, below tests/e2e. "": it is no command to type.
TYPED = {
    "`notegate key add NAME": "keys/test_hints.py::test_no_good_key",
    "`notegate key resume ID": "keys/test_hints.py::test_a_paused_key",
    "key %s --data-dir": "keys/test_hints.py::test_a_public_address_without_a_key",
    "`notegate key add NAME --run": "keys/test_hints.py::test_an_admin_who_may_not_run_code",
    "`notegate key set %s --run": "keys/test_hints.py::test_an_admin_who_may_not_run_code",
    "`notegate key set %s %s": "keys/test_hints.py::test_a_tool_that_runs_code",
    "`notegate key set ID --restore": "keys/test_hints.py::test_work_of_others",
    "`notegate key revoke %s --force": "keys/test_hints.py::test_the_last_key",
    "`notegate key list": "keys/test_hints.py::test_which_keys_there_are",
    "`notegate key %s": "keys/test_hints.py::test_a_command_line_that_makes_no_sense",
    "`notegate %s%s--help": "keys/test_hints.py::test_a_command_line_that_makes_no_sense",
    "`notegate audit list": "ops/test_audit_read.py::test_list_and_its_filters",
    "`notegate audit verify": "ops/test_audit_read.py::test_verify_finds_what_was_changed",
    "`notegate log": "cli/test_history_commands.py::test_log",
    "`notegate undo --run": "cli/test_undo_command.py::test_undo_and_undo_of_that",
    "`notegate undo --continue %.*s": "cli/test_undo_command.py::test_the_rest_of_one_that_was_cut_off",
    "`chmod 600": "ops/test_audit.py::test_a_key_that_others_can_read",
    "`notegate check": "keys/test_hints.py::test_a_command_line_that_makes_no_sense",
    "`notegate call TOOL --help": "keys/test_hints.py::test_a_command_line_that_makes_no_sense",
    "`notegate backup FILE": "keys/test_hints.py::test_a_backup_to_a_terminal",
    "`notegate serve": "keys/test_hints.py::test_a_call_without_a_store",
    "`notegate check --help-config": "keys/test_hints.py::test_an_unknown_key_of_the_configuration",
    "`notegate tools": "keys/test_hints.py::test_tools_that_there_are",
    "`notegate verify": "keys/test_hints.py::test_a_damaged_store",
    "`notegate backup": "keys/test_hints.py::test_a_damaged_store",
    "`notegate --help-completion bash": "cli/test_completion.py::test_the_files_are_what_the_program_prints",
    "`notegate --help-completion zsh": "cli/test_completion.py::test_the_files_are_what_the_program_prints",
    "notegate call TOOL - <arguments.json": "keys/test_hints.py::test_texts_that_tell_how",
    "notegate call": "keys/test_hints.py::test_texts_that_tell_how",
    "notegate tools NAME shows the arguments of one; --format mcp prints the definitions": "keys/test_hints.py::test_texts_that_tell_how",
    "`adduser --system --group --home /var/lib/notegate --no-create-home NAME": "keys/test_hints.py::test_a_user_that_is_missing",
    "`adduser --system --group --home /var/lib/notegate --no-create-home": "keys/test_hints.py::test_a_user_that_is_missing",
    "`chmod o=": "keys/test_hints.py::test_a_tls_key_that_all_can_read",
    "`chmod 700": "keys/test_hints.py::test_a_data_directory_of_a_wrong_mode",
    "runuser -u": "keys/test_hints.py::test_a_store_of_another_user",
    "`sudo %s": "package/test_first_hour.py::test_the_service",
    "chown %s%s": "keys/test_trust.py::test_a_file_of_another_user",
    "chmod go-w": "keys/test_trust.py::test_a_file_that_others_can_write",
    "chown root": "keys/test_trust.py::test_a_kernel_that_others_can_change",
    "sh -c": "keys/test_hints.py::test_a_kernel_of_another_user",
    "install -d -o %s /srv/notegate": "ops/test_serve_user.py::test_a_root_in_a_closed_home",
    "install -d -o  /srv/notegate": "",  # its length
    "notegate backup": "",  # "this is not a notegate backup"
    "notegate tools --format openai 2>/dev/null | grep -o '\"function\":{\"name\":\"[^\"]*\"' | cut -d '\"' -f 6":
        "cli/test_completion.py::test_tools",
    # Claude Code is no program of the tests: an MCP client goes to its address.
    "claude mcp add --transport http notegate %s://%s/mcp%s": "package/test_first_hour.py::test_a_user_without_sudo",
    'curl -s %s://%s/v1/tools/notebook -H \'Content-Type: application/json\' -d \'{"mode":"list"}\'%s':
        "keys/test_hints.py::test_the_call_to_try",
    "curl -s %s://%s/v1/tools/%s%s": "keys/test_hints.py::test_the_call_to_try",
}


def test_every_command_has_its_test():
    named = named_by_the_sources()
    new = {command: sorted(files) for command, files in named.items() if command not in TYPED}
    assert not new, f"put each between backquotes and write a test that types it; then name that test in TYPED: {new}"
    gone = TYPED.keys() - named.keys()
    assert not gone, f"no source names these: remove them from TYPED: {gone}"
    for test in filter(None, TYPED.values()):
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (SOURCE / "tests" / "e2e" / file).read_text(), re.M), f"{test} of TYPED is not there"
