# SPDX-License-Identifier: MIT
"""The command line: words and exit codes, both ways of every command, backup and back."""

import json
import os
import re
import signal
import stat
import subprocess
import urllib.request

import pytest

from cli_support import BINARY, BUILD, SOURCE, Gateway, environment, notegate, wait_for


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    return tmp_path / "data"


def call(data, *words, **more):
    return notegate("call", "notebook", *words, "--data-dir", data, **more)


def fill(data, names=3, writes=5):
    """Notebooks with some history."""
    for name in range(names):
        done = call(data, "mode=create", f"name=n{name}", "newStr=first \u00e9\n")
        assert done.returncode == 0, done.stderr
        for number in range(writes):
            done = call(data, "mode=write", f"name=n{name}", f"newStr=line {number} \u00fc\U0001f600\n")
            assert done.returncode == 0, done.stderr


def contents(data):
    listing = call(data, "mode=list").stdout
    return [listing] + [
        json.loads(call(data, "mode=read", f"name=n{n}", "--json").stdout) for n in range(3)]


# ---- words ----


@pytest.mark.parametrize("words, told", [
    ([], "no command"),
    (["srve"], 'did you mean "serve"'),
    (["serve", "--lisen", "x"], 'did you mean "--listen"'),
    (["call"], "needs TOOL"),
    (["serve", "--port", "1"], 'unknown option "--port"; use --listen 127.0.0.1:PORT'),
    (["serve", "-p", "1"], 'unknown option "-p"; use --listen 127.0.0.1:PORT'),
    (["sevre"], 'did you mean "serve"'),
    (["status"], "`notegate check`"),
    (["call", "notebook", "--agent", "a b"], '--agent is "a b"'),
    (["call", "notebook", "--space", "~"], '--space is "~"'),
    (["mcp", "--mode", "ed"], '--mode is "ed", it must be ask, edit or agent'),
    (["serve", "extra"], 'unexpected argument "extra" for "serve"'),
    (["tools", "--format"], "--format needs a value"),
    (["tools", "--json=1"], "--json takes no value"),
    (["tools", "--agent", "x"], '"tools" does not take --agent'),
    (["tools", "--format", "opnai"], 'unknown format "opnai"'),
    (["call", "notebook", "{"], "not JSON"),
    (["call", "notebook", "[]"], "nor a JSON object"),
    (["call", "notebook", "{}", "x=1"], 'comes after the arguments'),
])
def test_usage_errors(words, told, tmp_path):
    done = notegate(*words, env=environment(NOTEGATE_DATA_DIR=str(tmp_path / "d")))
    assert done.returncode == 2
    assert told in done.stderr
    assert "--help" in done.stderr
    assert done.stdout == ""


def test_help_and_version():
    whole = notegate("--help")
    assert whole.returncode == 0
    for name in ("serve", "mcp", "call", "tools", "log", "show", "diff", "blame", "undo", "check", "verify", "backup", "restore"):
        assert f"\n  {name} " in whole.stdout
        one = notegate(name, "--help")
        assert one.returncode == 0
        assert one.stdout.startswith(f"Usage: notegate {name} [OPTIONS]")
        for option in ("--config", "--set", "--listen", "--data-dir", "--root", "--help"):
            assert option in one.stdout
        version = notegate(name, "--version")
        assert version.stdout == notegate("--version").stdout
    assert notegate("--version").stdout.startswith("notegate ")


def test_man_page_is_the_help():
    page = (SOURCE / "packaging" / "notegate.1").read_text()
    assert page == notegate("--help-man").stdout


def test_unknown_key_names_the_nearest(data):
    done = notegate("serve", "--data-dir", data, "--set", "limits.bodi=1")
    assert done.returncode == 1
    assert "limits.body" in done.stderr


# ---- call ----


def both_ways(data):
    """Without a gateway, then through one."""
    yield
    with Gateway(data):
        yield


def test_call_both_ways(data):
    for _ in both_ways(data):
        assert call(data, "mode=create", "name=a", "newStr=one\ntwo\n").returncode == 0
        done = call(data, '{"mode":"read","name":"a"}')
        assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
        done = call(data, "-", stdin='{"mode":"read","name":"a"}')
        assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
        answer = json.loads(call(data, "mode=read", "name=a", "--json").stdout)
        assert answer["result"] == "one\ntwo\n"
        assert isinstance(answer["revision"], int)
        done = call(data, "mode=read", "name=a", "readRange=1,1")
        assert done.returncode == 0
        assert "one" in done.stdout and "two" not in done.stdout


def test_call_errors_both_ways(data):
    for _ in both_ways(data):
        done = call(data, "mode=read", "name=nothing")
        assert done.returncode == 1
        assert done.stdout == "" and done.stderr.startswith("notegate: ")
        done = call(data, "mode=read", "name=nothing", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"] is True
        done = notegate("call", "notebok", "mode=read", "--data-dir", data)
        assert done.returncode == 1
        assert "notebook" in done.stderr
        done = call(data, "mode=read", "readRange=a,b")
        assert done.returncode == 2
        assert '"readRange" is an integer; "a" is not' in done.stderr
        done = call(data, "mode=read", "mode=list")
        assert done.returncode == 2
        done = call(data, "mode=create", "name=x", "--mode", "ask")
        assert done.returncode == 1
        assert "MODE_FORBIDDEN" in done.stderr


def test_tools_that_are_not_listed_now(data):
    """With no notebook attached a call that names one works; what a mode forbids is refused in its own words."""
    own = ["--data-dir", data, "--set", "plugins=cells"]
    assert notegate("call", "createNotebook", "notebook=a.ipynb", *own).returncode == 0
    file = data / "files" / "a.ipynb"
    before = file.read_bytes()
    words = ["call", "updateNotebookCell", "notebook=a.ipynb", "cellId=index:0", "content=1"]

    def check(cells):
        done = notegate("call", "getNotebookCells", "notebook=a.ipynb", *cells)
        assert done.returncode == 0 and "Retrieved all 1 cell(s)" in done.stdout, done.stderr
        done = notegate(*words, *cells, "--mode", "ask")
        assert done.returncode == 1
        assert "Agent mode" in done.stderr and "mode is ask (MODE_FORBIDDEN)" in done.stderr
        done = notegate("call", "clearCellOutputs", "notebook=a.ipynb", *cells, "--mode", "ask")
        assert done.returncode == 1 and "MODE_FORBIDDEN" in done.stderr
        done = notegate("call", "addNotebookCell", "notebook=a.ipynb", "type=code", "index=x", "content=1", *cells)
        assert done.returncode == 2 and '"index" is' in done.stderr
        assert file.read_bytes() == before

    check(own)
    with Gateway(data, "--set", "plugins=cells") as gateway:
        check(own[:2])
        # A definition can be read of every tool that may be called.
        with urllib.request.urlopen(f"{gateway.url}/v1/tools/getNotebookCells") as answer:
            assert json.load(answer)["name"] == "getNotebookCells"
    assert notegate(*words, *own).returncode == 0
    assert file.read_bytes() != before


# One argument may have 128 KiB.
LONG = "x" * 100_000
LONG_WORDS = [
    ([LONG], "unknown command"), (["help", LONG], "unknown command"), ([f"--{LONG}"], "unknown option"),
    (["tools", "--format", LONG], "there are mcp"), (["tools", LONG], "no tool is called"), (["call", LONG, "a=b"], "UNKNOWN_TOOL"), (["call", "notebook", LONG], "nor a JSON object"),
    (["call", "notebook", f"{LONG}=1"], "expected no member"), (["call", "notebook", f"readRange={LONG}"], '"readRange" is an integer'),
    (["call", "notebook", f"readRange={LONG[:60_000]}"], '"readRange" is an integer'),
    (["call", "notebook", f"readRange=[{LONG}"], "line 1, column 2"), (["call", "notebook", "mode=read", "--agent", LONG], "--agent is"),
    (["call", "notebook", "mode=write", "name=n", f"oldStr={LONG}", "newStr=y"], "not found in notebook 'n' (TOOL_FAILED)"),
    (["call", "notebook", json.dumps({f"x{number}": 1 for number in range(2000)})], "and at least 22 more (INVALID_INPUT)"),
    (["check", "--config", LONG], "cannot be read"), (["serve", "--set", f"{LONG}=1"], "--help-config"),
    (["serve", "--set", f"plugins={LONG}"], "module"), (["restore", LONG], "cannot be read"),
]


def test_errors_are_short(data):
    """What is said of a long word is cut, and never nothing; each violation is told once."""
    assert call(data, "mode=create", "name=n").returncode == 0
    for _ in both_ways(data):
        for words, told in LONG_WORDS:
            if words[0] not in ("call", "tools") and (data / "notegate.sock").exists():
                continue
            done = notegate(*words, "--data-dir", data)
            assert done.returncode != 0 and done.stdout == "", (words[0][:20], done.stderr[:200])
            assert told in done.stderr or "path is too long" in done.stderr, (words[0][:20], done.stderr[:200])
            assert len(done.stderr) < 4096 and done.stderr.count("expected no member") <= 10, done.stderr
            assert "bytes ...]" in done.stderr or len(done.stderr) < 1000


def test_no_list_is_made_of_broken_json(data):
    for _ in both_ways(data):
        done = call(data, "mode=read", 'readRange=[1')
        assert done.returncode == 2 and '"readRange" is a JSON array' in done.stderr and "line 1, column 3" in done.stderr
        assert "'[n'" in call(data, "mode=read", "name=[n").stderr, "where a text may be meant"


def test_the_text_of_an_object_is_the_object(data):
    create = json.dumps({"mode": "create", "name": "t", "newStr": "text"})
    assert call(data, "-", stdin=json.dumps(create)).returncode == 0
    for _ in both_ways(data):
        done = call(data, "-", stdin=json.dumps(json.dumps({"mode": "read", "name": "t"})))
        assert (done.returncode, done.stdout) == (0, "text\n")
        for text in ("x", "null", "[]", json.dumps(json.dumps({}))):
            done = call(data, "-", stdin=json.dumps(text))
            assert done.returncode == 2 and "one JSON object" in done.stderr


def test_spaces(data):
    for _ in both_ways(data):
        assert call(data, "mode=create", "name=s", "newStr=mine", "--agent", "ada").returncode == 0
        assert call(data, "mode=read", "name=s", "--agent", "ada").stdout == "mine\n"
        assert call(data, "mode=read", "name=s", "--agent", "bob").returncode == 1


def test_tools_both_ways(data):
    seen = []
    for _ in both_ways(data):
        for form in ("mcp", "openai", "openai-responses", "anthropic", "gemini"):
            done = notegate("tools", "--format", form, "--data-dir", data)
            assert done.returncode == 0, done.stderr
            seen.append(json.loads(done.stdout))
    assert seen[:5] == seen[5:]


# ---- serve ----


def test_serve_starts_and_stops(data):
    with Gateway(data) as gateway:
        assert gateway.line.startswith(notegate("--version").stdout.strip() + " listening on http://127.0.0.1:")
        assert (data / "notegate.sock").is_socket()
        assert (data / "notegate.sock").stat().st_mode & 0o777 == 0o600
        code, errors = gateway.stop()
        assert code == 0
        assert "curl" not in errors  # a call to try is for people
    with Gateway(data) as gateway:
        assert gateway.stop(signal.SIGINT)[0] == 0


def test_second_serve_and_restore_refuse(data, tmp_path):
    (tmp_path / "backup").write_text("x\n")
    with Gateway(data) as gateway:
        for words in (["serve", "--listen", "127.0.0.1:0"], ["restore", tmp_path / "backup"]):
            done = notegate(*words, "--data-dir", data)
            assert done.returncode == 1
            assert f"process {gateway.process.pid}" in done.stderr


def test_reload(data, tmp_path):
    config = tmp_path / "notegate.yaml"
    config.write_text("log.level: info\nlimits.body: 1MiB\nlimits.workers: 4\n")
    with Gateway(data, "--config", str(config)) as gateway:
        config.write_text("log.level: info\nlimits.body: 64\nlimits.workers: 5\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_for(lambda: call(data, "mode=write", "newStr=" + "x" * 100).returncode == 1,
                 "the new limit holds")
        config.write_text("limits.bodi: 1\n")
        gateway.process.send_signal(signal.SIGHUP)
        code, errors = gateway.stop()
        assert code == 0
        assert "limits.body: the new value is in effect" in errors
        assert "limits.workers: changed; takes effect after a restart" in errors


def test_reload_of_roots_is_tried_again(data, tmp_path):
    config = tmp_path / "notegate.yaml"
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    config.write_text(f"roots: [{first}]\n")
    with Gateway(data, "--config", str(config)) as gateway:
        def logged(text):
            return next(line for line in gateway.process.stderr if text in line)

        second.write_text("a file is no root\n")
        config.write_text(f"roots: [{second}]\nlimits.body: 64\n")
        gateway.process.send_signal(signal.SIGHUP)
        assert "roots: " in logged("nothing was changed")
        assert call(data, "mode=write", "newStr=" + "x" * 100).returncode == 0
        second.unlink()
        second.mkdir()
        gateway.process.send_signal(signal.SIGHUP)
        logged("roots: the new value is in effect")
        assert gateway.stop()[0] == 0


def test_reload_tells_what_does_not_hold(data, tmp_path):
    config = tmp_path / "notegate.yaml"
    config.write_text("log.level: info\nlimits.workers: 4\nlimits.body: 1MiB\n")
    with Gateway(data, "--config", str(config)) as gateway:
        # Also where the same reload raises the level that is logged.
        config.write_text("log.level: warning\nlimits.workers: 5\nlimits.body: 64\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_for(lambda: call(data, "mode=write", "newStr=" + "x" * 100).returncode == 1,
                 "the new limit holds")
        code, errors = gateway.stop()
        assert code == 0
        assert "limits.workers: changed; takes effect after a restart" in errors


# ---- mcp ----


def test_mcp_both_ways(data):
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "w", "method": "tools/call",
         "params": {"name": "notebook", "arguments": {"mode": "list"}}},
        {"jsonrpc": "2.0", "id": 9, "method": "no/such"},
    ]
    for _ in both_ways(data):
        done = notegate("mcp", "--data-dir", data, stdin="".join(json.dumps(x) + "\n" for x in lines))
        assert done.returncode == 0, done.stderr
        answers = {x["id"]: x for x in map(json.loads, done.stdout.splitlines())}
        assert set(answers) == {1, "w", 9}
        assert answers[1]["result"]["protocolVersion"] == "2025-11-25"
        assert answers["w"]["result"]["content"][0]["type"] == "text"
        assert answers[9]["error"]["code"] == -32601


def test_mcp_answers_when_the_gateway_is_gone(data):
    with Gateway(data) as gateway:
        with subprocess.Popen([str(BINARY), "mcp", "--data-dir", str(data)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=environment(), cwd="/") as relay:
            ping = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": {
                "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                          "io.modelcontextprotocol/clientCapabilities": {}}}})
            relay.stdin.write(ping + "\n")
            relay.stdin.flush()
            assert "result" in json.loads(relay.stdout.readline())
            gateway.stop()
            relay.stdin.write(ping + "\n")
            relay.stdin.flush()
            answer = json.loads(relay.stdout.readline())
            assert answer["id"] == 5 and answer["error"]["code"] == -32603
            relay.stdin.close()
            assert relay.wait(timeout=20) == 0


# ---- check ----


def test_check(data):
    for _ in both_ways(data):
        done = notegate("check", "--data-dir", data)
        assert done.returncode == 0, done.stdout
        assert all(line.startswith("ok ") for line in done.stdout.splitlines())
        report = json.loads(notegate("check", "--json", "--data-dir", data).stdout)
        assert report["ok"] is True
    os.chmod(data, 0o755)
    done = notegate("check", "--data-dir", data)
    assert done.returncode == 1
    assert "chmod 700" in done.stdout
    done = notegate("check", "--data-dir", data, "--set", "plugins=nothing")
    assert done.returncode == 1
    assert "`nothing` is not there" in done.stdout
    assert "there are: " in done.stdout and "file_editor, history, notebook" in done.stdout


def test_check_finds_what_serve_would_refuse(data):
    def check(*words):
        done = notegate("check", "--data-dir", data, *words)
        return done.returncode, done.stdout

    code, told = check("--listen", "127.0.0.1:0")
    assert code == 0 and "listen: 127.0.0.1:0\n" in told and f"root: {data}/files does not exist yet" in told
    assert call(data, "mode=create", "name=plan", "newStr=text").returncode == 0
    assert f"root: {data}/files, mode 0700" in check("--listen", "127.0.0.1:0")[1]
    # A relative path is no space with a path.
    there = f"{data.parent.name}/{data.name}"
    done = subprocess.run([BINARY, "check", "--data-dir", there, "--listen", "127.0.0.1:0"], capture_output=True,
                          text=True, env=environment(), cwd=data.parent.parent, timeout=60)
    assert done.returncode == 0 and f"root: {there}/files, mode 0700" in done.stdout, done.stdout
    code, told = check("--listen", "nonsense")
    assert code == 1 and 'failed listen: listen is "nonsense"' in told
    code, told = check("--listen", "0.0.0.0:0")
    assert code == 1 and "failed listen: " in told and "no key exists" in told
    for config, why in (("timezone=Mars/Olympus", "failed timezone: timezone is 'Mars/Olympus'"), ("user=nosuch", "failed user: ")):
        code, told = check("--set", config)
        assert code == 1 and why in told
    code, told = check("--set", "tls.certificate=/x")
    assert code == 1 and "failed tls: tls.certificate is set, but tls.key is not" in told


def test_help_config():
    done = notegate("check", "--help-config")
    assert done.returncode == 0
    assert "limits.body" in done.stdout and "notebook.max_size" in done.stdout
    # Also of backends that are there and were not chosen.
    backends = BUILD / "modules" / "backends"
    for name, key in (("mongo", "mongo.uri = "), ("redis", "redis.uri = "), ("sqlite", "sqlite.memory = ")):
        assert not (backends / f"{name}.so").exists() or f"\n{key}" in done.stdout, name


@pytest.mark.parametrize("key,builtin", [("documents", "memory"), ("journal", "documents")])
def test_a_wrong_backend(data, tmp_path, key, builtin):
    config = tmp_path / "some.yaml"
    config.write_text(f"limits.body: 1MiB\n{key}: oracle\n")
    for words in (["call", "notebook", "mode=list"], ["serve", "--listen", "127.0.0.1:0"]):
        done = notegate(*words, "--config", config, "--data-dir", data)
        assert done.returncode == 1
        assert f"{config}:2: `{key}`: module `oracle` is not there" in done.stderr, done.stderr
        assert f"there are: {builtin}, " in done.stderr
        known = {"documents": "sqlite", "journal": "redis"}[key]
        assert not (BUILD / "modules" / "backends" / f"{known}.so").exists() or known in done.stderr
    done = notegate("call", "notebook", "mode=list", "--set", f"{key}=oracle", "--data-dir", data)
    assert f"flag {key}: `{key}`: module `oracle`" in done.stderr


def test_views_written_as_a_mapping(data, tmp_path):
    if not (BUILD / "modules" / "plugins" / "opennotes.so").exists():
        pytest.skip("there is no opennotes")
    config = tmp_path / "some.yaml"
    config.write_text('plugins: [opennotes]\nopennotes.views:\n  due: {"description": "d", "query": {}}\n')
    words = ("tools", "--config", config)
    known = environment()
    known.pop("NOTEGATE_PLUGINS")
    done = notegate(*words, env=known)
    assert done.returncode == 1
    assert f"{config}:3: `opennotes.views` is one text, not a mapping" in done.stderr
    assert "`opennotes.views: '{\"name\": {...}}'`" in done.stderr
    config.write_text("plugins: [opennotes]\nopennotes.views: '{\"due\": {\"description\": \"d\", \"query\": {}}}'\n")
    assert notegate(*words, env=known).returncode == 0


def test_a_plugin_that_is_named_twice(data, tmp_path):
    module = BUILD / "modules" / "plugins" / "notebook.so"
    link = tmp_path / "same.so"
    link.symlink_to(module)
    for plugins in ("notebook,notebook", f"notebook,{module}", f"{module},notebook,{link}", "+notebook"):
        done = notegate("check", "--set", f"plugins={plugins}", "--data-dir", data, "--listen", "127.0.0.1:0")
        assert done.returncode == 0, (plugins, done.stdout, done.stderr)
        assert done.stdout.count("plugin: notebook ") == 1
    with Gateway(data, "--set", f"plugins=notebook,{module}") as gateway:
        gateway.process.send_signal(signal.SIGHUP)
        wait_for(lambda: call(data, "mode=list").returncode == 0, "it answers")
        code, errors = gateway.stop()
        assert code == 0 and "two plugins" not in errors


# ---- backup, restore, verify ----


def test_backup_and_back(data, tmp_path):
    fill(data)
    before = contents(data)
    for number, _ in enumerate(both_ways(data)):
        copy = tmp_path / f"copy{number}"
        again = tmp_path / f"again{number}"
        done = notegate("backup", copy, "--data-dir", data, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["revisions"] >= 18 and told["data_dir"] == str(data)
        assert copy.stat().st_mode & 0o777 == 0o600
        assert not (tmp_path / f"copy{number}.tmp").exists()
        done = notegate("restore", copy, "--data-dir", again)
        assert done.returncode == 0, done.stderr
        assert contents(again) == before
        done = notegate("verify", "--data-dir", again)
        told = done.stdout.splitlines()
        assert done.returncode == 0 and told[1:] == ["everything is in order"]
        assert re.fullmatch(re.escape(str(again)) + r" \(sqlite\): 3 documents, 18 revisions, \d+ events", told[0])
        done = notegate("verify", "--data-dir", data, "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 0 and told["data_dir"] == str(data)
        assert (told["documents"], told["revisions"]) == (3, 18) and told["events"] >= 18
        # The copy of the copy is the same but for the header and the hashes.
        second = tmp_path / f"second{number}"
        assert notegate("backup", second, "--data-dir", again).returncode == 0

        def bare(path):
            rows = [json.loads(x) for x in path.read_text().splitlines()[1:]]
            for row in rows:
                row.pop("h", None)
                row.pop("sha256", None)
            return [r for r in rows if r["kind"] == "revision" and "n0" in json.dumps(r)]

        assert bare(second) == bare(copy)


def test_backup_and_verify_take_the_time_they_need(data, tmp_path):
    for number in range(10):
        assert call(data, "mode=create", f"name=n{number}", "newStr=" + "x\n" * 60000).returncode == 0
    with Gateway(data, "--set", "limits.call_timeout=1ms"):
        done = notegate("backup", tmp_path / "copy", "--data-dir", data)
        assert done.returncode == 0, done.stderr
        done = notegate("verify", "--data-dir", data)
        assert done.returncode == 0, done.stderr


def test_root_makes_nothing_in_the_directory_of_another(data, tmp_path):
    if os.geteuid() != 0:
        return  # no other user can open files of others
    data.mkdir(mode=0o700)
    os.chown(data, 65534, 65534)
    copy = tmp_path / "copy"
    copy.write_text("")
    for words in (["call", "notebook", "mode=list"], ["verify"], ["check"], ["restore", str(copy)]):
        done = notegate(*words, "--data-dir", data)
        assert done.returncode == 1
        assert f"{data} belongs to user nobody" in done.stderr and f"`runuser -u nobody -- {BINARY} {' '.join(words)} --data-dir {data}`" in done.stderr
    assert list(data.iterdir()) == []


def test_no_data_is_not_in_order(tmp_path):
    missing = tmp_path / "mistyped"
    for words in (["verify"], ["backup", str(tmp_path / "copy")]):
        done = notegate(*words, "--data-dir", missing)
        assert done.returncode == 1
        assert f"{missing} does not exist" in done.stderr and "--data-dir" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_made_by_the_command_is_not_in_order(tmp_path):
    """A directory without a store, by whatever way it came about, is neither verified nor copied."""
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    for words in (["verify"], ["backup", str(tmp_path / "copy")], ["key", "list"]):
        for more in ((), ("--set", "documents=memory")):
            done = notegate(*words, "--data-dir", empty, *more)
            assert done.returncode == 1 and str(empty) in done.stderr, done
            assert "there is no store" in done.stderr and "--data-dir" in done.stderr and "`data_dir`" in done.stderr
    assert list(empty.iterdir()) == [] and list(tmp_path.iterdir()) == [empty]


def test_a_backup_is_written_to_a_file_of_its_own(data, tmp_path):
    """A file that another user, or another name, has under the temporary name gets nothing."""
    fill(data, names=1, writes=1)
    copy, left = tmp_path / "copy", tmp_path / "copy.tmp"
    inner = tmp_path / "inner"
    inner.write_text("mine")

    def planted():
        yield "a second name", lambda: os.link(inner, left)
        yield "a link", lambda: left.symlink_to(inner)
        yield "a folder", left.mkdir
        yield "a pipe", lambda: os.mkfifo(left, 0o666)
        if os.geteuid() == 0:
            yield "another user's file", lambda: (left.write_text("theirs"), left.chmod(0o666), os.chown(left, 65534, 65534))

    for what, plant in planted():
        plant()
        before = left.lstat()
        done = notegate("backup", copy, "--data-dir", data)
        assert done.returncode == 0, (what, done.stderr)
        found = copy.stat()
        assert (found.st_uid, found.st_nlink, found.st_mode) == (os.geteuid(), 1, stat.S_IFREG | 0o600), what
        now = left.lstat()
        assert (now.st_ino, now.st_uid, now.st_size) == (before.st_ino, before.st_uid, before.st_size), what
        assert inner.read_text() == "mine", what
        assert sorted(x.name for x in tmp_path.iterdir()) == ["copy", "copy.tmp", "data", "inner"], what
        copy.unlink()
        left.rmdir() if what == "a folder" else left.unlink()
    # One that a killed backup left is taken away, not written into: it may have been opened by others.
    with open(left, "w+", encoding="utf-8") as held:
        left.chmod(0o600)
        assert notegate("backup", copy, "--data-dir", data).returncode == 0
        assert held.read() == "" and not left.exists()


def test_backup_never_replaces(data, tmp_path):
    fill(data, names=1, writes=1)
    copy = tmp_path / "copy"
    copy.write_text("mine")
    done = notegate("backup", copy, "--data-dir", data)
    assert done.returncode == 1 and "--force" in done.stderr
    assert copy.read_text() == "mine"
    assert notegate("backup", copy, "--data-dir", data, "--force").returncode == 0
    assert copy.read_text().startswith('{"kind":"notegate backup"')
    done = notegate("backup", "/dev/full/x", "--data-dir", data)
    assert done.returncode == 1


def test_restore_refuses(data, tmp_path):
    fill(data, names=1, writes=2)
    copy = tmp_path / "copy"
    assert notegate("backup", copy, "--data-dir", data).returncode == 0
    done = notegate("restore", copy, "--data-dir", data)
    assert done.returncode == 1 and "not empty" in done.stderr
    lines = copy.read_text().splitlines(keepends=True)
    for number in range(len(lines)):
        damaged = list(lines)
        middle = len(damaged[number]) // 2
        changed = "x" if damaged[number][middle] != "x" else "y"
        damaged[number] = damaged[number][:middle] + changed + damaged[number][middle + 1:]
        (tmp_path / "bad").write_text("".join(damaged))
        target = tmp_path / "target"
        done = notegate("restore", tmp_path / "bad", "--data-dir", target)
        assert done.returncode == 1
        assert f"line {number + 1}: " in done.stderr
    (tmp_path / "bad").write_text("".join(lines)[:-10])
    done = notegate("restore", tmp_path / "bad", "--data-dir", target)
    assert done.returncode == 1 and "cut off" in done.stderr
    # The store that refused damaged backups accepts the complete one.
    assert notegate("restore", copy, "--data-dir", target).returncode == 0


def test_killed_restore_and_backup(data, tmp_path):
    fill(data, names=3, writes=10)
    before = contents(data)
    copy = tmp_path / "copy"
    assert notegate("backup", copy, "--data-dir", data).returncode == 0
    for number in range(12):
        again = tmp_path / f"again{number}"
        part = tmp_path / f"part{number}"
        for words in (["restore", copy, "--data-dir", again], ["backup", part, "--data-dir", data]):
            with subprocess.Popen([str(BINARY), *map(str, words)], env=environment(), cwd="/",
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(timeout=0.002 * number)
                except subprocess.TimeoutExpired:
                    process.kill()
        if part.exists():  # then it is whole
            assert notegate("restore", part, "--data-dir", tmp_path / f"of{number}").returncode == 0
        done = notegate("restore", copy, "--data-dir", again)
        assert done.returncode == 0 or "not empty" in done.stderr
        assert contents(again) == before


def test_the_program_exports_nothing():
    """Modules see only the table that is handed to them, no symbols of the gateway."""
    done = subprocess.run(["nm", "-D", "--defined-only", BINARY], capture_output=True, text=True)
    names = done.stdout.split()
    assert done.returncode == 0
    assert names == [] or "asan" in str(BINARY) or "tsan" in str(BINARY), names


def test_data_is_the_owners_alone(data):
    assert call(data, "mode=create", "name=n", "newStr=x").returncode == 0
    for path in (data, data / "notegate.db", data / "notegate.lock", data / "files"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("words", (
    ("call", "notebook", "mode=list"), ("tools",), ("verify",), ("key", "list"), ("mcp",), ("whoami",), ("backup", "-"),
    ("key", "add", "ada"), ("key", "set", "{id}", "--note", "text")))
def test_options_that_a_running_gateway_does_not_follow_are_refused(tmp_path, words):
    data = tmp_path / "data"
    if "{id}" in words:
        made = notegate("key", "add", "bob", "--json", "--data-dir", data)
        words = [word.replace("{id}", json.loads(made.stdout)["id"]) for word in words]
    with Gateway(data):
        for sets in ((), ("--set", "log.level=info")):
            quiet = notegate(*words, "--data-dir", data, *sets)
            assert quiet.returncode == 0 and "cannot set" not in quiet.stderr, quiet.stderr
        told = notegate(*words, "--data-dir", data, "--set", "limits.body=1KiB", "--set", "plugins=notebook", "--root", tmp_path,
                        "--listen", "127.0.0.1:0")
        assert told.returncode == 2 and told.stdout == "", told
        assert f"a gateway serves {data}" in told.stderr and "--data-dir" in told.stderr
        assert sorted(re.search(r"cannot set: (.*?)\. Leave", told.stderr).group(1).split(", ")) == [
            "limits.body", "listen", "plugins", "roots"]
    alone = notegate(*words, "--data-dir", data, "--set", "limits.body=1KiB")
    assert alone.returncode == 0 and "cannot set" not in alone.stderr
