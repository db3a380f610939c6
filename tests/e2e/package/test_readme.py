# SPDX-License-Identifier: MIT
"""The READMEs: every command and snippet of README.md and of the guides without keys runs unchanged, in the order of the
pages, and every link has a target. The guides with keys are in test_guides.py."""

import asyncio
import contextlib
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading

import pytest
import yaml
from cells_support import need
from conftest import LISTENING, SOURCE, Gateway, binary, environment, eventually
from mcp import Client

README = SOURCE / "README.md"
GUIDES = SOURCE / "api" / "guides"
TOOLS = GUIDES / "tools.md"
CONFIGURATION = GUIDES / "configuration.md"
OPERATING = GUIDES / "operating.md"
KEYLESS = (README, TOOLS, CONFIGURATION, OPERATING)
README_WORDS = 1800  # eight minutes of a newcomer's time
TIMEOUT = 300
PAGES = sorted(
    path
    for pattern in ("*.md", "*/README.md", "*/*/README.md", "api/guides/*.md")
    for path in SOURCE.glob(pattern)
    if path.relative_to(SOURCE).parts[0] not in ("build", ".git")
)


def blocks(page, kind):
    """The fenced blocks of that kind, without the fences."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.M | re.S)


SHELL = [block for page in KEYLESS for block in blocks(page, "sh")]
SNIPPETS = blocks(README, "json")


class Place:
    """A home folder, a gateway whose port stands for the README's, and a shell that finds `notegate`."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.home.mkdir()
        self.gateway = Gateway(folder / "data")
        self.answers = {}

    def text(self, block):
        return block.replace("127.0.0.1:8420", f"127.0.0.1:{self.gateway.port}")

    def environment(self, **more):
        path = f"{os.path.dirname(binary())}:{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.home), "NOTEGATE_DATA_DIR": str(self.gateway.data_dir)}
        return {**environment(), **own, **more}

    def shell(self, block, cwd=None, **more):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.text(block)], capture_output=True, text=True,
                              timeout=TIMEOUT, env=self.environment(**more), cwd=cwd or self.home)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("readme"))
    yield made
    assert made.gateway.stop() == 0


def use_client(target, use):
    async def run():
        async with Client(target, read_timeout_seconds=TIMEOUT) as client:
            return await use(client)

    return asyncio.run(run())


async def list_and_call(client):
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"notebook", "fileEditor"} <= names
    answer = await client.call_tool("notebook", {"mode": "list"})
    assert not answer.is_error
    return answer.content[0].text


# ---- the blocks of commands, each with its expected effect ----


def check_run(place, block):
    """The gateway of the tests stands for the one that packaging/run starts, which is this one call."""
    script = SOURCE / block.strip()
    assert os.access(script, os.X_OK)
    assert re.search(r'exec .*bin/notegate" "\$@"', script.read_text())
    assert place.gateway.client.get("/readyz").status_code == 200


def check_test(place, block):
    script = SOURCE / block.strip()
    assert os.access(script, os.X_OK)
    done = subprocess.run([str(script), "no-such-suite"], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 2
    for suite in ("unit", "e2e", "asan", "tsan", "torture"):
        assert suite in done.stderr + done.stdout


def check_first_call(place, block):
    shown = SNIPPETS[0].strip()
    assert place.shell(block) == shown
    listed = place.gateway.call("notebook", {"mode": "read", "name": "plan"}).json()
    assert listed["result"] == "# Plan\n- write it down"


def check_claude(place, block):
    words = shlex.split(place.text(block))
    assert words[:3] == ["claude", "mcp", "add"]
    assert words[words.index("--transport") + 1] == "http"
    use_client(words[-1], list_and_call)


def check_notebook(place, block):
    shown = place.shell(block)
    assert shown.rstrip("\n").endswith("[x] Task 1\n[ ] Task 2")


def check_path(place, block):
    """In a clone, whose release is the one under test."""
    clone = place.home / "clone"
    (clone / "build").mkdir(parents=True)
    (clone / "build" / "release").symlink_to(os.path.dirname(os.path.dirname(binary())))
    assert place.shell(f"{block}command -v notegate", cwd=clone).strip() == str(clone / "build" / "release" / "bin" / "notegate")


@contextlib.contextmanager
def served(place, block, folder):
    """The gateway that this block starts, with data of its own: the environment of commands beside it."""
    (place.home / folder).mkdir(exist_ok=True)
    environ = {"NOTEGATE_DATA_DIR": str(place.home / f"data of {folder}"), "NOTEGATE_LISTEN": "127.0.0.1:0"}
    process = subprocess.Popen(["bash", "-c", block.strip().replace("notegate serve", "exec notegate serve")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.home,
                               env=place.environment(**environ))
    watch = threading.Timer(TIMEOUT, process.kill)
    watch.start()
    try:
        assert LISTENING.search(process.stdout.readline())
        yield environ
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
        watch.cancel()
    assert process.returncode == 0


def before(block):
    """The block before this one, which starts the gateway for it."""
    return SHELL[SHELL.index(block) - 1]


def check_serve(place, block):
    with served(place, block, "project") as environ:
        target = place.home / "project" / "new.txt"
        place.shell(f"notegate call fileEditor command=create path='{target}' file_text=made", **environ)
        assert target.read_text() == "made"


def check_files(place, block):
    with served(place, before(block), "project") as environ:
        shown = place.shell(block, **environ)
        assert "notegate" in shown, shown
        assert (place.home / "project" / "hello.txt").read_text() == "Hello\nworld\n", "undone"


def check_search(place, block):
    serve = next(one for one in SHELL if one.startswith("notegate serve") and "project" in one)
    with served(place, serve, "project") as environ:
        (place.home / "project" / "main.c").write_text("int main(void)\n")
        shown = place.shell(block, **environ)
        assert shown == f"{place.home}/project/main.c:1: int main(void)\n1 matches in 1 files\n", shown


def check_file_history(place, block):
    """Of a file with one edit."""
    serve = next(one for one in SHELL if one.startswith("notegate serve") and "project" in one)
    with served(place, serve, "project") as environ:
        (place.home / "project" / "a.txt").write_text("one\n")
        edit = "notegate call fileEditor command=str_replace path=~/project/a.txt old_str=one new_str=two"
        place.shell(edit, **environ)
        log, show, diff, blame = (place.shell(line, **environ) for line in block.strip().splitlines())
    assert f"{place.home}/project/a.txt" in log and show == "one\n", (log, show)
    assert "-one\n+two\n" in diff and ") two\n" in blame, (diff, blame)


def check_everything(place, block):
    place.shell("notegate call notebook mode=create name=lights newStr='the harbour lights'")
    first, second = (json.loads(place.shell(line)) for line in block.strip().splitlines())
    assert first["hits"][0]["title"] == "lights" and second["hits"] == []


def check_history(place, block):
    """Of the notebook that the README has made in three steps."""
    place.shell(next(one for one in SHELL if check_of(one) is check_notebook))
    changes, entries, read, diff, changed, blame = (json.loads(place.shell(line)) for line in block.strip().splitlines())
    assert changes["changes"][0]["id"] == "todo" and changes["has_more"] and not entries["changes"]
    assert read["content"] == "[ ] Task 1" and "+[x] Task 1\n" in diff["diff"]
    assert changed["documents"] == []
    assert blame["lines"][0]["text"] == "[x] Task 1" and blame["exact"]


def check_history_commands(place, block):
    """Of the same notebook, in its owner's words."""
    place.shell(next(one for one in SHELL if check_of(one) is check_notebook))
    log, diff, blame, runs, changed = (place.shell(line) for line in block.strip().splitlines())
    assert log.startswith("change ") and "/notebooks/todo@" in log
    assert "-[ ] Task 1\n" in diff and "+[x] Task 1\n" in diff
    assert ") [x] Task 1\n" in blame
    assert all(re.fullmatch(r"\S+  \S+ +\d+ changes?  .*", line) for line in runs.splitlines()) and changed == ""


def check_check(place, block):
    shown = place.shell(block, NOTEGATE_DATA_DIR=str(place.home / "unused"))
    assert "ok     documents: answers" in shown
    assert "limits.body" in shown
    assert not re.search(r"^(FAILED|failed|not ok)", shown, re.M)


def check_difference(place, block):
    """The line that the guide has before the block."""
    line = re.search(r"`(ok     difference: limits.*?)`", CONFIGURATION.read_text()).group(1)
    assert f"{line}\n" in place.shell(block)


def check_operating(place, block):
    shown = place.shell(block)
    assert '"notebook"' in shown
    assert "everything is in order" in shown
    assert '{"status":"ready",' in shown
    assert "notegate_calls_total" in shown
    copy = place.home / "notes.backup"
    assert copy.stat().st_size > 0
    with gzip.open(place.home / "notes.gz") as stream:
        assert b'"kind":"notegate backup","format":2' in stream.readline()
    # `notegate restore FILE` fills an empty data directory from it.
    restored = str(place.home / "restored")
    place.shell(f"notegate restore {copy}", NOTEGATE_DATA_DIR=restored)
    read = place.shell("notegate call notebook mode=read name=plan", NOTEGATE_DATA_DIR=restored)
    assert read.strip() == "# Plan\n- write it down"
    # Those for the service, as the user of this one.
    for command in re.findall(r"`sudo (?:-u notegate )?(notegate [^`]+)`", OPERATING.read_text()):
        assert place.shell(command), command
    piped = re.search(r"`(gunzip -c notes\.gz \| notegate restore -)`", OPERATING.read_text()).group(1)
    restored = str(place.home / "restored from a pipe")
    place.shell(piped, NOTEGATE_DATA_DIR=restored)
    assert place.shell("notegate call notebook mode=read name=plan", NOTEGATE_DATA_DIR=restored) == read


def check_bench(place, block):
    script = SOURCE / block.strip()
    assert os.access(script, os.X_OK)
    assert "--rounds" in place.shell(f"{script} --help")


def check_notes_serve(place, block):
    with served(place, block, "notes") as environ:
        listed = json.loads(place.shell("notegate call opennotes_notebooks", **environ))
        assert listed["current"]["path"] == str(place.home / "notes")


def check_first_note(place, block):
    with served(place, before(block), "notes") as environ:
        created, found, note = (json.loads(line) for line in place.shell(block, **environ).splitlines())
    assert created["created"]["path"] == found["results"][0]["path"] == "projects/drone-swarm.md"
    assert note["note"]["content"].endswith("Ask [[Ada]].\n")
    assert (place.home / "notes" / "projects" / "drone-swarm.md").is_file()


def check_notes(place, block):
    folder = place.home / "ten calls"
    folder.mkdir()
    more = {"NOTEGATE_DATA_DIR": str(place.home / "notes data"), "NOTEGATE_OPENNOTES_NOTEBOOKS": str(folder)}
    answers = [json.loads(line) for line in place.shell(block, **more).splitlines()]
    assert len(answers) == 11
    swarm = "plans/drone-swarm.md"
    assert answers[0]["created"]["path"] == swarm and answers[1]["created"]["path"] == "people/ada.md"
    assert [note["path"] for note in answers[2]["results"]] == [swarm]
    assert [note["path"] for note in answers[3]["results"]] == [swarm]
    assert [row["file_path"] for row in answers[4]["results"]] == [swarm, "people/ada.md"]
    assert answers[6]["note"]["content"].endswith("- [ ] charge them\n")
    assert [link["path"] for link in answers[7]["incoming"]] == [swarm]
    assert [row["status"] for row in answers[8]["results"]] == ["open"]
    assert list((folder / "daily").glob("*.md"))


def check_cells(place, block):
    made, _, attached, _, added, rest = place.shell(block).split("\n", 5)
    assert made.startswith("Created the notebook ") and attached.endswith("it is active")
    assert added.startswith("Successfully added markdown cell at index 0")
    assert "Retrieved all 2 cell(s)" in rest and "# Plots" in rest and '"cellCount":2' in rest


def check_kernels(place, block):
    """In the notebook of the block before: its third cell is made, run, changed, and run in the background."""
    if os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan"):
        assert place.shell(block.splitlines()[0]).startswith(("Installed kernels:\n- ", "No kernel is installed."))
        return  # libzmq is not instrumented
    need("python3")
    if not (place.gateway.data_dir / "files" / "plots.ipynb").exists():
        place.shell(next(one for one in SHELL if check_of(one) is check_cells))
    shown = place.shell(block)
    assert shown.startswith("Installed kernels:\n- ") and "\n- python3: " in "\n" + shown
    assert "Successfully added code cell at index 2." in shown
    assert re.search(r"Successfully executed 1 cell\(s\)\..*?\n\nOutputs:\nCell \w+:\n42\n", shown, re.S)
    assert re.search(r"Successfully updated cell \w+ \(index 2\)\n", shown)
    run = re.search(r"Running 1 cell\(s\) in the background\. Run: (\w+)\n", shown).group(1)

    def over():
        return place.shell(f"notegate call getNotebookRun run={run}").startswith("Successfully executed 1 cell(s).")

    eventually(over, TIMEOUT, "the background run to be over")
    assert "\n48\n" in place.shell("notegate call getCellOutputs cellId=index:2")


CHECKS = {
    "notegate call listKernels": check_kernels,
    "notegate call createNotebook": check_cells,
    "NOTEGATE_OPENNOTES_NOTEBOOKS": check_notes_serve,
    "notegate call opennotes_create title='Drone swarm' path=projects": check_first_note,
    "notegate call opennotes_create title='Drone swarm' path=plans": check_notes,
    "export PATH": check_path,
    "packaging/run": check_run,
    "packaging/test": check_test,
    "curl -s http://127.0.0.1:8420/v1/tools/notebook": check_first_call,
    "claude mcp add": check_claude,
    "notegate call notebook": check_notebook,
    "notegate serve": check_serve,
    "notegate call fileEditor command=create": check_files,
    "notegate call fileEditor command=search": check_search,
    "notegate log ~/project": check_file_history,
    "notegate call search": check_everything,
    "notegate call history_log": check_history,
    "notegate log todo": check_history_commands,
    "notegate check\n": check_check,
    "notegate check --set": check_difference,
    "notegate tools": check_operating,
    "tests/bench/run": check_bench,
}


def check_of(block):
    found = [check for start, check in CHECKS.items() if block.startswith(start)]
    assert len(found) == 1, f"no check knows this block:\n{block}"
    return found[0]


@pytest.mark.parametrize("block", SHELL, ids=[block.split("\n")[0][:40] for block in SHELL])
def test_commands(place, block):
    check_of(block)(place, block)


def test_every_check_is_of_a_block():
    assert sorted(check_of(block).__name__ for block in SHELL) == sorted(check.__name__ for check in CHECKS.values())


# ---- the clients' configurations ----


def server_of(place, index):
    servers = json.loads(place.text(SNIPPETS[index]))
    assert len(servers) == 1
    return next(iter(servers.values()))["notegate"]


@pytest.mark.parametrize("index", [1, 2])
def test_url_configurations(place, index):
    server = server_of(place, index)
    assert server.get("type", "http") == "http"
    assert "Available notebooks" in use_client(server["url"], list_and_call)


@pytest.mark.parametrize("page", [README, TOOLS], ids=lambda page: page.stem)
def test_files_of_configuration(place, tmp_path, page):
    """With folders that are here."""
    text = blocks(page, "yaml")[0]
    for folder in re.findall(r"(/(?:home|srv)/[\w/-]+)", text):
        (tmp_path / folder[1:]).mkdir(parents=True)
        text = text.replace(folder, f"{tmp_path}{folder}")
    file = tmp_path / "notegate.yaml"
    file.write_text(text)
    shown = place.shell(f"notegate check --config {file}", NOTEGATE_DATA_DIR=str(tmp_path / "d"))
    assert re.search(rf"^ok +configuration.*{file}", shown, re.M) and not re.search(r"^(FAILED|failed|not ok)", shown, re.M), shown


def test_every_snippet_is_checked():
    assert len(SNIPPETS) == 3
    assert [len(blocks(page, "yaml")) for page in KEYLESS] == [1, 1, 0, 0]
    assert {kind for page in KEYLESS for kind in re.findall(r"^```(\w+)$", page.read_text(), re.M)} == {"sh", "json", "yaml"}
    assert not [page for page in KEYLESS[1:] if blocks(page, "json")]


# ---- what README promises of itself ----


def test_readme_is_read_in_eight_minutes():
    assert len(README.read_text().split()) <= README_WORDS


def test_each_serve_says_to_stop_the_first_gateway():
    text = README.read_text()
    found = list(re.finditer(r"^```sh\n(?=[^`]*notegate serve)", text, re.M))
    assert len(found) == 2
    for match in found:
        paragraph = text[:match.start()].rstrip().rsplit("\n\n", 1)[-1]
        assert "Stop the first gateway" in paragraph.replace("\n", " ")


def test_every_guide_is_named_in_readme():
    assert all(f"](api/guides/{page.name}" in README.read_text() for page in GUIDES.glob("*.md"))
    assert all(f"](guides/{page.name})" in (SOURCE / "api" / "README.md").read_text() for page in GUIDES.glob("*.md"))


def test_uris_of_resources(place):
    """Each kind of the table is one that the gateway lists."""
    shown = set(re.findall(r"notegate://SPACE/(\w+)/", README.read_text()))

    async def templates(client):
        return {template.uri_template for template in (await client.list_resource_templates()).resource_templates}

    listed = use_client(f"http://127.0.0.1:{place.gateway.port}/mcp", templates)
    kinds = {re.fullmatch(r"notegate://\{\+?space\}/(\w+)/.*", uri).group(1) for uri in listed}
    assert shown - {"note"} == kinds - {"note"}, listed


# ---- statements in prose ----


def test_the_docs_page(place):
    assert place.gateway.client.get("/docs").status_code == 200


def test_the_table_of_keys(place):
    shown = place.shell("notegate check --help-config")
    table = re.search(r"^\| key \| default .*?\n\n", CONFIGURATION.read_text(), re.M | re.S).group(0)
    keys = re.findall(r"^\| `([a-z_.*]+)` \| (?:`([^`]+)`)?", table, re.M)
    assert {"listen", "data_dir", "roots", "documents", "limits.*"} <= {key for key, _ in keys}
    for key, default in keys:
        pattern = re.escape(key).replace(r"\*", r"\w+")
        found = re.search(rf"^\s*{pattern}\b.*\n(?:\s+.*\n)?", shown, re.M)
        assert found, key
        if default and key != "roots":
            assert default in found.group(0), (key, default, found.group(0))


def test_three_ways_to_set_a_key(place, tmp_path):
    file = tmp_path / "notegate.yaml"
    file.write_text("limits:\n  body: 100\n")
    long = {"mode": "read", "name": "x" * 150}

    for sets, args, status in (((), (), 404), ((), ("--config", file), 413),
                               (("limits.body=8MiB",), ("--config", file), 404)):
        gateway = Gateway(tmp_path / "d", sets=sets, args=map(str, args))
        assert gateway.call("notebook", long).status_code == status
        assert gateway.stop() == 0
    assert "limits.body" in place.shell("NOTEGATE_LIMITS_BODY=x notegate check 2>&1 || true", cwd=tmp_path)
    place.shell("NOTEGATE_LIMITS_BODY=8MiB notegate check", cwd=tmp_path,
                NOTEGATE_DATA_DIR=str(tmp_path / "fresh"))


def test_the_sample_configuration(place, tmp_path):
    sample = SOURCE / "packaging" / "notegate.yaml"
    shown = place.shell(f"notegate check --config {sample}", NOTEGATE_DATA_DIR=str(tmp_path / "d"))
    assert "ok     configuration" in shown


def flat(tree, prefix=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value).lower() if isinstance(value, bool) else str(value)


def test_the_sample_has_every_key_with_its_default(place):
    text = (SOURCE / "packaging" / "notegate.yaml").read_text()
    given = dict(flat(yaml.safe_load("".join(re.findall(r"^#((?:  )?[a-z_.]+:(?: .*)?\n)", text, re.M)))))
    plugins = "agent_notebook,cells,file_editor,notebook,opennotes,search"
    shown = place.shell("notegate check --help-config", NOTEGATE_PLUGINS=plugins)
    keys = dict(re.findall(r"^([a-z_.]+) = .*\n.*\n    Type: .*? Default: (.*?)\. Environment: ", shown, re.M))
    assert {"listen", "tls.key", "log.audit", "notebook.max_size"} <= set(keys)
    assert set(given) == set(keys)
    examples = {"data_dir", "log.format", "limits.workers"}  # their defaults depend on the machine
    examples.add("redis.uri")  # an address may hold a password, so the default is not shown
    for key, default in keys.items():
        assert key in examples or default in ("none", given[key]) or default.startswith("/"), key


# ---- the other pages ----


def test_contributing_commands():
    text = (SOURCE / "CONTRIBUTING.md").read_text()
    for script in ("packaging/run", "packaging/test"):
        assert script in text and os.access(SOURCE / script, os.X_OK)
    listed = subprocess.run(["cmake", "--list-presets=workflow"], capture_output=True, text=True, cwd=SOURCE,
                            timeout=TIMEOUT, check=True).stdout
    for preset in ("asan", "tsan", "dev"):
        assert f'"{preset}"' in listed and preset in text


def test_the_plugin_guide_compiles_and_runs(place, tmp_path):
    """Every command of plugins/README.md, in its order, with the first plugin and the cases there."""
    for tool in ("cc", "cmake", "pkg-config"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    guide = SOURCE / "plugins" / "README.md"
    text = guide.read_text()
    # The release that is installed is the one under test.
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(os.path.dirname(os.path.dirname(binary())))
    install = re.search(r"`(cmake --install [^`]+)`", text).group(1)
    exports = re.search(r"`(export PKG_CONFIG_PATH=[^`]+)`", text).group(1)
    (tmp_path / "echo.c").write_text(blocks(guide, "c")[0])
    (tmp_path / "cases.json").write_text(blocks(guide, "json")[0])

    def shell(block):
        return place.shell(f"{exports}\n{block}", cwd=tmp_path, HOME=str(tmp_path), NOTEGATE_DATA_DIR="/nowhere")

    shell(install)
    build, test, publish = blocks(guide, "sh")
    assert json.loads(shell(build)) == {"a": 1}
    assert (tmp_path / "echo-data" / "notegate.db").exists()
    shown = re.search(r"^It prints a line for each case and a count:\n\n```\n(.*?)^```$", text, re.M | re.S).group(1)
    assert shell(test) == shown
    assert re.search(rf"^ok +plugin: echo 1.0.0, 1 tool, {tmp_path}/.local/", shell(publish), re.M)
    line, flags = re.search(r"`(cc [^`]+)`. A module links.*?flags:\n`([^`]+)`", text, re.S).groups()
    shell(f"{line} {flags} && {test}")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(SOURCE)) for page in PAGES])
def test_links(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name) if name else page
        assert other.exists(), f"{page.name}: {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", other.read_text(), re.M)
            slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(SOURCE)) for page in PAGES])
def test_named_paths_are_there(page):
    names = re.findall(r"`((?:packaging|tests|core|api|plugins|backends)/[a-z0-9_./-]*)`", page.read_text())
    missing = [name for name in names if not (SOURCE / name).exists()]
    assert not missing, f"{page.relative_to(SOURCE)} names {missing}"
