# SPDX-License-Identifier: MIT
"""The tool formats, judged by the vendors' own Python libraries: each takes our tools as they come, its types accept them, it
sends them to a server that keeps the vendor's published rules, and a whole turn with a tool call goes through."""

import json

import pytest
from anthropic import Anthropic
from anthropic.types import ToolParam
from conftest import Gateway
from google import genai
from google.genai import types
from jsonschema import Draft202012Validator
from odd import conformance_module, odd_plugins
from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from openai.types.shared_params import FunctionDefinition
from pydantic import ConfigDict, TypeAdapter
from vendors import LAST_WORDS, RULES, WANTED, Vendors, subschemas

FORMATS = sorted(RULES)
QUESTION = "Which notebooks are there?"


class StrictFunction(FunctionDefinition):
    """OpenAI's type, and nothing that it does not name; so the next three."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


class StrictChat(ChatCompletionFunctionToolParam):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


class StrictResponses(FunctionToolParam):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


class StrictAnthropic(ToolParam):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A gateway with every tool there is, and some with schemas as no vendor likes them."""
    folder = tmp_path_factory.mktemp("formats")
    running = Gateway(folder / "data", sets=[odd_plugins(folder)])
    yield running
    assert running.stop() == 0, "".join(running.errors)


@pytest.fixture(scope="module")
def vendors():
    with Vendors() as running:
        yield running


def tools_in(gateway, form):
    answer = gateway.client.get("/v1/tools", params={"format": form})
    assert answer.status_code == 200
    return answer.json()


def definitions_of(tools, form):
    """Every tool's definition."""
    if form == "openai":
        return [tool["function"] for tool in tools]
    return tools[0]["functionDeclarations"] if form == "gemini" else tools


def schemas_of(tools, form):
    """Every tool's name and schema."""
    member = {"anthropic": "input_schema", "gemini": "parametersJsonSchema"}.get(form, "parameters")
    return {one["name"]: one[member] for one in definitions_of(tools, form)}


# ---- the vendors' types ----


def test_openai_types(everything):
    for tool in tools_in(everything, "openai"):
        TypeAdapter(StrictChat).validate_python(tool)
        TypeAdapter(StrictFunction).validate_python(tool["function"])
    for tool in tools_in(everything, "openai-responses"):
        TypeAdapter(StrictResponses).validate_python(tool)


def test_anthropic_types(everything):
    for tool in tools_in(everything, "anthropic"):
        TypeAdapter(StrictAnthropic).validate_python(tool)


def test_google_types(everything):
    for tool in tools_in(everything, "gemini"):
        made = types.Tool.model_validate(tool)  # its models refuse members they do not know
        assert len(made.function_declarations) == len(tool["functionDeclarations"])
        for declaration in made.function_declarations:
            assert declaration.parameters is None
            assert declaration.parameters_json_schema["type"] == "object"


# ---- the vendors' rules ----


@pytest.mark.parametrize("form", FORMATS)
def test_rules(everything, form):
    tools = tools_in(everything, form)
    assert list(RULES[form](tools)) == []
    names = {tool["name"] for tool in tools_in(everything, "mcp")["tools"]}
    schemas = schemas_of(tools, form)
    assert set(schemas) == names, "every tool is in every format"
    assert {"odd_composed", "odd_older", "notebook", "fileEditor"} <= names
    if conformance_module():
        assert "json_schema_2020_12_tool" in names
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("form", FORMATS)
def test_rules_notice(everything, form):
    """The rules above are no formality: the schemas as the plugins wrote them break them."""
    own = {tool["name"]: tool["inputSchema"] for tool in tools_in(everything, "mcp")["tools"]}
    tools = tools_in(everything, form)
    schemas = schemas_of(tools, form)
    for name in ("odd_composed", "odd_older"):
        schemas[name].clear()
        schemas[name].update(own[name])
        problems = list(RULES[form](tools))
        assert problems and (form == "anthropic" or len(problems) > 1), (name, problems)
        schemas[name].clear()
        schemas[name].update(type="object")


def test_a_long_description_is_cut_where_it_must_be(everything):
    whole = next(tool["description"] for tool in tools_in(everything, "mcp")["tools"] if tool["name"] == "odd_wordy")
    assert len(whole) > 1024
    for form in FORMATS:
        told = next(tool["description"] for tool in definitions_of(tools_in(everything, form), form) if tool["name"] == "odd_wordy")
        assert told == (whole[:1021] + "..." if form.startswith("openai") else whole)


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_lost(everything, form):
    """Keywords that a vendor does not know are in the descriptions."""
    schemas = schemas_of(tools_in(everything, form), form)
    told = json.dumps(schemas["odd_composed"])
    for word in ("oneOf", "minProperties", "dependentRequired", "patternProperties", "contains", "base64"):
        assert word in told, word
    assert "filter[id]" in json.dumps(schemas["odd_older"])


@pytest.mark.parametrize("form", FORMATS)
def test_valid_arguments_stay_valid(everything, form):
    """The lowered schema accepts everything that the tool accepts."""
    schemas = schemas_of(tools_in(everything, form), form)
    given = {
        "odd_composed": {"kind": "a", "size": 3, "both": "xy", "again": {"street": "x", "inner": {"street": "y"}},
                         "same": None, "pair": ["a", 1], "any": [1], "map": {"x-a": "b"}},
        "odd_older": {"filter[id]": "1", "$top": 4, "node": {"next": {"next": None}}, "free": [1], "not": 4},
        "notebook": {"mode": "read", "name": "plan"},
        "fileEditor": {"command": "view", "path": "/x", "view_range": [1, -1]},
    }
    for name, arguments in given.items():
        Draft202012Validator(schemas[name]).validate(arguments)
    for name in ("odd_composed", "odd_older"):
        answer = everything.call(name, given[name])
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.json()["result"]) == given[name]
    for one, _ in subschemas(schemas["odd_older"]):
        assert one.get("$ref", "#/$defs/node") == "#/$defs/node"


# ---- a whole turn with each library: ask, be asked for a call, make it, answer ----


def run_tool(gateway, name, arguments):
    assert name == "notebook" and arguments == WANTED
    answer = gateway.call(name, arguments)
    assert answer.status_code == 200
    return answer.json()["result"]


def turn_openai(gateway, url, tools):
    client = OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
    messages = [{"role": "user", "content": QUESTION}]
    said = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    messages.append(said.model_dump(exclude_none=True))
    for call in said.tool_calls:
        result = run_tool(gateway, call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message.content


def turn_openai_responses(gateway, url, tools):
    client = OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
    items = [{"role": "user", "content": QUESTION}]
    said = client.responses.create(model="m", input=items, tools=tools)
    for call in said.output:
        items.append(call.model_dump(exclude_none=True))
        result = run_tool(gateway, call.name, json.loads(call.arguments))
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return client.responses.create(model="m", input=items, tools=tools).output_text


def turn_anthropic(gateway, url, tools):
    client = Anthropic(base_url=url, api_key="unused", max_retries=0)
    messages = [{"role": "user", "content": QUESTION}]
    said = client.messages.create(model="m", max_tokens=100, messages=messages, tools=tools)
    assert said.stop_reason == "tool_use"
    call = said.content[0]
    result = run_tool(gateway, call.name, call.input)
    messages += [{"role": "assistant", "content": said.content},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": result}]}]
    return client.messages.create(model="m", max_tokens=100, messages=messages, tools=tools).content[0].text


def turn_gemini(gateway, url, tools):
    client = genai.Client(api_key="unused", http_options=types.HttpOptions(base_url=url))
    config = types.GenerateContentConfig(tools=tools)
    contents = [types.UserContent(QUESTION)]
    said = client.models.generate_content(model="m", contents=contents, config=config)
    contents.append(said.candidates[0].content)
    for call in said.function_calls:
        result = run_tool(gateway, call.name, call.args)
        contents.append(types.UserContent(types.Part.from_function_response(name=call.name, response={"result": result})))
    return client.models.generate_content(model="m", contents=contents, config=config).text


TURNS = {"openai": turn_openai, "openai-responses": turn_openai_responses, "anthropic": turn_anthropic,
         "gemini": turn_gemini}


@pytest.mark.parametrize("form", FORMATS)
def test_a_whole_turn(everything, vendors, form):
    tools = tools_in(everything, form)
    vendors.requests.clear()
    assert TURNS[form](everything, vendors.url, tools) == LAST_WORDS
    assert [transport for transport, _ in vendors.requests] == [form, form]
    for _, asked in vendors.requests:
        assert asked["tools"] == tools, "the library sent them as they were"
