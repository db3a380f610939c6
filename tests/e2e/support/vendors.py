# SPDX-License-Identifier: MIT
"""The model vendors' APIs as far as tools go: one local server that takes what their client libraries send, refuses what the
vendors refuse, asks for one call of `notebook`, and ends the turn when it has the call's answer."""

import http.server
import json
import re
import threading

# Calls of the models of the tests, and their last text.
WANTED = {"mode": "list"}
LAST_WORDS = "That is all I wanted to know."
OPENAI_TOOLS_MAX = 128
OPENAI_DESCRIPTION_MAX = 1024
SUBSCHEMAS = {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
MAPS = {"properties", "$defs", "patternProperties", "dependentSchemas"}
LISTS = {"anyOf", "oneOf", "allOf", "prefixItems"}
TOP_REFUSED = {"anyOf", "oneOf", "allOf", "not", "enum", "const"}
OPENAI_KNOWS = {
    "type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref",
    "$defs", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
    "uniqueItems", "minLength", "maxLength", "pattern", "default"}
GEMINI_KNOWS = {
    "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems",
    "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"}


def subschemas(schema):
    """The schema and all in it, each with whether it is the top one."""
    waiting = [(schema, True)]
    while waiting:
        one, top = waiting.pop()
        if not isinstance(one, dict):
            continue
        yield one, top
        for key, value in one.items():
            if key in SUBSCHEMAS:
                waiting.append((value, False))
            elif key in MAPS:
                waiting += [(each, False) for each in value.values()]
            elif key in LISTS:
                waiting += [(each, False) for each in value]


def references(schema):
    """Faulty references of a schema: without a target, or not to a definition."""
    for one, _ in subschemas(schema):
        ref = one.get("$ref")
        if ref is None or ref == "#":
            continue
        name = ref.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        if not ref.startswith("#/$defs/") or name not in schema.get("$defs", {}):
            yield f"a reference leads nowhere: {ref}"


def common(name, pattern, schema):
    if not re.fullmatch(pattern, name):
        yield f"the name {name!r} does not match {pattern}"
    if schema.get("type") != "object":
        yield f"{name}: the schema is not of an object"
    for refused in TOP_REFUSED & schema.keys():
        yield f"{name}: {refused} at the top"
    yield from references(schema)


def openai_function(function):
    schema = function["parameters"]
    yield from common(function["name"], r"[a-zA-Z0-9_-]{1,64}", schema)
    if len(function.get("description", "")) > OPENAI_DESCRIPTION_MAX:
        yield f"{function['name']}: the description is too long"
    for one, _ in subschemas(schema):
        for key in one.keys() - OPENAI_KNOWS:
            yield f"{function['name']}: {key} is not permitted"
        if one.get("type") == "array" and "items" not in one:
            yield f"{function['name']}: an array without items"


def openai_chat(tools):
    """Published rules that the request's tools break."""
    if len(tools) > OPENAI_TOOLS_MAX:
        yield "too many tools"
    for tool in tools:
        yield from openai_function(tool["function"])


def openai_responses(tools):
    for tool in tools:
        yield from openai_function(tool)
        if tool["strict"] is not False:  # left out it means true, which refuses optional arguments
            yield f"{tool['name']}: strict"


def anthropic(tools):
    for tool in tools:
        yield from common(tool["name"], r"[a-zA-Z0-9_-]{1,128}", tool["input_schema"])
        for key in tool["input_schema"].get("properties", {}):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key):
                yield f"{tool['name']}: the argument {key!r} does not match the pattern"


def gemini(tools):
    for function in tools[0]["functionDeclarations"]:
        schema = function["parametersJsonSchema"]
        yield from common(function["name"], r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", schema)
        for one, _ in subschemas(schema):
            for key in one.keys() - GEMINI_KNOWS:
                yield f"{function['name']}: {key} is not known"
            if "$ref" in one and any(not key.startswith("$") for key in one):
                yield f"{function['name']}: members beside a reference"
            for value in one.get("enum", []):
                if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                    yield f"{function['name']}: an enum of {value!r}"


RULES = {"openai": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic, "gemini": gemini}


# ---- the answers: a call first, the last words once its answer is there ----


def answer_chat(asked):
    done = any(message["role"] == "tool" for message in asked["messages"])
    call = {"id": "call_1", "type": "function", "function": {"name": "notebook", "arguments": json.dumps(WANTED)}}
    message = {"role": "assistant", "content": LAST_WORDS if done else None}
    if not done:
        message["tool_calls"] = [call]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop" if done else "tool_calls", "message": message}]}


def answer_responses(asked):
    items = asked["input"] if isinstance(asked["input"], list) else []
    done = any(item.get("type") == "function_call_output" for item in items)
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": LAST_WORDS, "annotations": []}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "notebook", "status": "completed",
            "arguments": json.dumps(WANTED)}
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": asked["model"], "status": "completed",
            "output": [said if done else call], "parallel_tool_calls": True, "tool_choice": "auto", "tools": asked["tools"]}


def answer_anthropic(asked):
    last = asked["messages"][-1]["content"]
    done = isinstance(last, list) and last[0]["type"] == "tool_result"
    call = {"type": "tool_use", "id": "toolu_1", "name": "notebook", "input": WANTED}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
            "content": [{"type": "text", "text": LAST_WORDS} if done else call],
            "stop_reason": "end_turn" if done else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}


def answer_gemini(asked):
    done = any("functionResponse" in part for part in asked["contents"][-1]["parts"])
    call = {"functionCall": {"name": "notebook", "args": WANTED}}
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": LAST_WORDS} if done else call]},
                            "finishReason": "STOP"}]}


FACES = [
    (re.compile(r"/chat/completions$"), "openai", answer_chat),
    (re.compile(r"/responses$"), "openai-responses", answer_responses),
    (re.compile(r"/messages$"), "anthropic", answer_anthropic),
    (re.compile(r":generateContent$"), "gemini", answer_gemini),
]


class Handler(http.server.BaseHTTPRequestHandler):
    """Takes one request of any vendor's."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing: the requests are kept in the server."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for function in asked["tools"][0].get("functionDeclarations", []):
            # Google's API takes both spellings, and its library changes ours into the other.
            function.update({"parametersJsonSchema": function.pop("parameters_json_schema")}
                            if "parameters_json_schema" in function else {})
        status, answer = 404, {"error": {"message": "no such address"}}
        for pattern, transport, make in FACES:
            if pattern.search(self.path.split("?")[0]):
                self.server.requests.append((transport, asked))
                problems = list(RULES[transport](asked["tools"]))
                status = 400 if problems else 200
                answer = {"error": {"message": "; ".join(problems)}} if problems else make(asked)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Vendors:
    """The server, while a `with` runs."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.requests = self.server.requests = []
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def environment(self):
        """Settings that lead the vendors' libraries here instead of to the vendors."""
        return {"OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "unused", "ANTHROPIC_BASE_URL": self.url,
                "ANTHROPIC_API_KEY": "unused", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_API_KEY": "unused"}
