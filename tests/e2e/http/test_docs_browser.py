# SPDX-License-Identifier: MIT
"""/docs in a real browser: groups and effects, forms by keyboard, refusals, nothing cut on a phone, contrast."""

import json

import pytest
from browser_support import Browser
from cells_support import code, write_notebook
from conftest import Gateway
from keys_support import add

pytestmark = pytest.mark.long

LOADED = "document.querySelector('.tool') && document.getElementById('status').textContent"
REFUSED = "document.getElementById('status').className === 'bad' && document.getElementById('status').textContent"
# Elements that reach beyond the window, or hide a part of themselves sideways.
CUT = """[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() &&
    (e.getBoundingClientRect().right > innerWidth + 0.5 || getComputedStyle(e).display !== 'inline' &&
     !['SELECT', 'INPUT'].includes(e.tagName) && e.scrollWidth > e.clientWidth + 1)).map((e) => e.outerHTML)"""
# Texts whose contrast to what is behind them is less than WCAG's AA asks for.
PALE = """(() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (color) => parts(color).slice(0, 3).map((c) => linear(c / 255))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    const color = getComputedStyle(e).backgroundColor;
    return parts(color)[3] === 0 ? behind(e.parentElement) : color;
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const faults = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.matches(':disabled, :disabled *')) continue;
    const style = getComputedStyle(e);
    const says = [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || e.value;
    if (says && ratio(style.color, behind(e)) < 4.5) faults.push(e.outerHTML);
    const box = e.matches('input, select, textarea');
    if (box && ratio(style.borderTopColor, behind(e.parentElement)) < 3) faults.push('border ' + e.id);
  }
  return faults;
})()"""


@pytest.fixture
def browser(tmp_path):
    running = Browser(tmp_path / "browser")
    yield running
    faults = running.faults
    running.close()
    assert not faults, faults


@pytest.fixture
def served(tmp_path):
    """Every plugin has something to work on."""
    root = tmp_path / "root"
    root.mkdir()
    (root / ".opennotes.json").write_text("{}")
    (root / "lines.txt").write_text("one\ntwo\nthree\nfour\n")
    write_notebook(root / "book.ipynb", [code("c", "1")])
    running = Gateway(tmp_path / "data", (f"roots={root}",))
    assert running.call("attachNotebook", {"notebook": "book.ipynb"}).status_code == 200
    assert running.call("opennotes_list", {}).status_code == 200
    yield running, root
    assert running.stop() == 0


def open_all(browser):
    browser.run("document.querySelectorAll('details').forEach((box) => {box.open = true;})")
    browser.until("[...document.querySelectorAll('.tool')].every((box) => box.querySelector('form'))")
    browser.run("document.querySelectorAll('.tool details').forEach((box) => {box.open = false;})")


def open_tool(browser, name):
    browser.run(f"""[...document.querySelectorAll('.tool')].find((box) =>
        box.querySelector('summary code').textContent === {json.dumps(name)}).open = true""")
    browser.until(f"document.querySelector('[id^=\"{name}.\"]')")


def give(browser, tool, **arguments):
    """Types texts into the boxes of the tool's form, and chooses values of its lists."""
    for name, text in arguments.items():
        element = f"document.getElementById({json.dumps(tool + '.' + name)})"
        if browser.run(f"{element}.tagName") == "SELECT":
            browser.run(f"{element}.value = {json.dumps(json.dumps(text))}")
            continue
        browser.run(f"({element}.focus(), {element}.select())")
        browser.type(text)


def call(browser, tool, **arguments):
    """The answer that the page shows."""
    give(browser, tool, **arguments)
    form = f"document.getElementById({json.dumps(tool + '..json')}).form"
    button, answer = f"{form}.querySelector('button')", f"{form}.parentElement.querySelector('pre')"
    browser.run(f"({answer}.textContent = '', {button}.click())")
    return browser.until(f"!{button}.disabled && {answer}.textContent")


def test_tools_stand_in_groups_and_say_what_they_do(browser, served):
    gateway, _ = served
    browser.open(f"{gateway.url}/docs")
    status = browser.until(LOADED)
    document = gateway.client.get("/openapi.json").json()
    posts = [path["post"] for path in document["paths"].values() if "x-notegate" in path.get("post", {})]
    plugins = list(dict.fromkeys(post["tags"][0] for post in posts))
    assert status == f"{len(posts)} tools of {len(plugins)} plugins"
    shown = browser.run("""[...document.querySelectorAll('section')].map((one) => [
        one.querySelector('h2').firstChild.data.trim(),
        [...one.querySelectorAll('summary')].map((head) => [...head.children].map((part) => part.textContent))])""")
    assert [name for name, _ in shown] == plugins and len(plugins) == 7
    cards = {name: (effect, about) for _, tools in shown for name, effect, about in tools}
    assert cards.keys() == {post["operationId"] for post in posts}
    for post in posts:
        about = cards[post["operationId"]][1]
        assert post["description"].startswith(about) and len(about) > 20 and ". " not in about, post["operationId"]
    assert cards["runNotebookCells"][0] == cards["restartKernel"][0] == "runs code"
    assert cards["getNotebookCells"][0] == "reads" and cards["addNotebookCell"][0] == "writes"
    assert cards["fileEditor"][0] == "writes, may overwrite or remove"
    asked = [url for url in browser.requests if url != "about:blank"]
    assert asked and all(url.startswith((gateway.url, "data:")) for url in asked), "nothing comes from elsewhere"


def test_words_find_tools(browser, served):
    browser.open(f"{served[0].url}/docs")
    browser.until(LOADED)
    browser.run("document.getElementById('find').focus()")
    browser.type("kernel restart")
    browser.until("document.getElementById('status').textContent.startsWith('1 of ')")
    shown = "[...document.querySelectorAll('.tool')].filter((box) => box.checkVisibility())"
    assert browser.run(f"{shown}.map((box) => box.querySelector('code').textContent)") == ["restartKernel"]
    assert browser.run("[...document.querySelectorAll('section')].filter((one) => one.checkVisibility()).length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 400, 1200])
def test_nothing_is_cut_and_all_can_be_read(browser, served, width, scheme):
    browser.open(f"{served[0].url}/docs", width, scheme)
    browser.until(LOADED)
    open_all(browser)
    assert browser.run(f"matchMedia('(prefers-color-scheme: {scheme})').matches && innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.run(CUT) == []
    assert browser.run(PALE) == []
    boxes = "[...document.querySelectorAll('input, select, textarea')]"
    assert browser.run(f"{boxes}.filter((e) => !e.labels.length).map((e) => e.id)") == []
    assert browser.run("(() => {const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
                       " return ids.length - new Set(ids).size;})()") == 0


def test_a_box_of_json_is_for_nested_values_only(browser, served):
    gateway, _ = served
    browser.open(f"{gateway.url}/docs")
    browser.until(LOADED)
    open_all(browser)
    boxes = dict(browser.run("""[...document.querySelectorAll('.field')].map((box) => box.children[1]).map((e) =>
        [e.id, e.tagName === 'INPUT' ? e.type : (e.className || e.tagName.toLowerCase())])"""))
    assert boxes["notebook.mode"] == boxes["attachNotebook.active"] == "select"
    assert boxes["runNotebookCells.timeout"] == boxes["fileEditor.insert_line"] == "number"
    assert boxes["notebook.name"] == boxes["runNotebookCells.cellIds"] == boxes["history_log.agent"] == "textarea"
    schemas = gateway.client.get("/openapi.json").json()["components"]["schemas"]
    for one in (name for name, kind in boxes.items() if kind == "json"):
        tool, name = one.split(".")
        schema = schemas[f"{tool}_arguments"]["properties"][name]
        assert "object" in json.dumps(schema), one
    assert "json" in boxes.values()


def test_forms_send_what_is_given(browser, served):
    gateway, root = served
    browser.open(f"{gateway.url}/docs")
    browser.until(LOADED)
    open_tool(browser, "notebook")
    assert browser.run("document.getElementById('notebook.mode').value") == '"list"', "a first click overwrites nothing"
    text = "first\nsecond"
    assert "Created" in call(browser, "notebook", mode="create", name="n", newStr=text)
    assert "Inserted" in call(browser, "notebook", mode="write", insertLine="1", newStr="between")  # a number
    assert gateway.call("notebook", {"mode": "read", "name": "n"}).json()["result"] == "first\nbetween\nsecond"
    open_tool(browser, "fileEditor")
    path = str(root / "lines.txt")
    shown = call(browser, "fileEditor", path=path, view_range="2\n3")  # a list of numbers
    assert "two" in shown and "three" in shown and "four" not in shown
    assert "lines.txt" in call(browser, "fileEditor", command="insert", view_range="", insert_line="0", new_str="zero")
    assert (root / "lines.txt").read_text().startswith("zero\none\n")
    open_tool(browser, "attachNotebook")
    write_notebook(root / "other.ipynb", [code("d", "1")])
    assert "it is active" not in call(browser, "attachNotebook", notebook="other.ipynb", active=False)
    open_tool(browser, "getNotebookCells")
    assert "c" in call(browser, "getNotebookCells", cellIds="c")  # a list of texts
    open_tool(browser, "opennotes_create")
    assert '"path"' in call(browser, "opennotes_create", title="T", data='{"status": "open"}')  # nested
    assert "status: open" in (root / "t.md").read_text()
    refused = call(browser, "fileEditor", command="view", path="/etc/passwd")
    assert '"error": true' in refused


def test_wrong_json_is_not_sent(browser, served):
    browser.open(f"{served[0].url}/docs")
    browser.until(LOADED)
    open_tool(browser, "opennotes_create")
    give(browser, "opennotes_create", title="T", data="{status")
    form = "document.getElementById('opennotes_create..json').form"
    browser.run(f"{form}.querySelector('button').click()")
    assert browser.run("document.getElementById('opennotes_create.data').validationMessage")
    assert browser.run(f"{form}.parentElement.querySelector('pre').hidden")
    give(browser, "opennotes_create", data="{}")
    assert browser.run("document.getElementById('opennotes_create.data').validationMessage") == ""


def test_arguments_as_one_text(browser, served):
    gateway, _ = served
    browser.open(f"{gateway.url}/docs")
    browser.until(LOADED)
    open_tool(browser, "notebook")
    give(browser, "notebook", mode="create", name="raw", newStr="text")
    box = "document.getElementById('notebook..json')"
    browser.run(f"{box}.closest('details').open = true")
    text = json.loads(browser.until(f"{box}.value"))
    assert text == {"mode": "create", "name": "raw", "newStr": "text"}
    assert browser.run("document.getElementById('notebook.mode').matches(':disabled')")
    browser.run(f"({box}.focus(), {box}.select())")
    browser.type(json.dumps({**text, "newStr": ""}))
    assert "Created" in call(browser, "notebook")
    assert gateway.call("notebook", {"mode": "read", "name": "raw"}).json()["result"] == "Notebook 'raw' is empty"


def test_a_call_by_keyboard_alone(browser, served):
    browser.open(f"{served[0].url}/docs")
    browser.until(LOADED)
    focused = "document.activeElement"
    for _ in range(200):  # more than there are stops before it
        browser.press("Tab")
        if browser.run(f"{focused}.tagName === 'SUMMARY' && {focused}.textContent.startsWith('notebook writes')"):
            break
    browser.press("Enter")
    browser.until("document.getElementById('notebook.mode')")
    browser.press("Tab")
    assert browser.run(f"{focused}.id") == "notebook.mode"
    assert browser.run(f"getComputedStyle({focused}).outlineStyle") == "solid", "the focus is seen"
    for _ in range(20):
        browser.press("Tab")
        if browser.run(f"{focused}.textContent") == "Call":
            break
    browser.press("Enter")
    answer = "document.getElementById('notebook..json').form.parentElement.querySelector('pre')"
    assert "otebooks" in browser.until(f"!{answer}.hidden && {answer}.textContent !== '...' && {answer}.textContent")


def test_a_gateway_without_keys_wants_none(browser, served):
    browser.open(f"{served[0].url}/docs")
    browser.until(LOADED)
    browser.run("document.getElementById('key').focus()")
    browser.type("ng_" + "a" * 12 + "_" + "b" * 43)
    browser.press("Enter")
    said = browser.until(REFUSED)
    assert "this gateway has no keys. Leave the key out: this gateway has none." in said and "above" not in said
    assert browser.run("document.querySelectorAll('.tool').length") == 0
    browser.run("document.getElementById('key').value = ''")
    browser.press("Enter")
    assert "tools of" in browser.until(LOADED)


def test_a_gateway_with_keys_wants_one(browser, served):
    gateway, _ = served
    key = add(gateway.data_dir, "ada", "--tool", "notebook")
    browser.open(f"{gateway.url}/docs")
    said = browser.until(REFUSED)
    assert "requires a key" in said and "A key goes into the field above" in said
    assert browser.run("document.activeElement.id") == "key"
    browser.type(key)
    browser.press("Enter")
    assert browser.until(LOADED) == "1 tool of 1 plugin"
    assert not browser.run("document.getElementById('agent').checkVisibility()"), "the agent is the key's"
