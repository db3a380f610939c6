# SPDX-License-Identifier: MIT
"""REST over HTTP: calls, errors, negotiation, listing, health."""

import concurrent.futures
import json
import re

import httpx
import jsonschema
import pytest
from conftest import eventually
from openapi_spec_validator import validate

JSON = {"Content-Type": "application/json"}


def fails(answer, status, code):
    """The answer is the error object of this status and code; returns it."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["error"] is True and body["code"] == code, body
    assert isinstance(body["message"], str) and body["message"]
    assert answer.headers["content-type"] == "application/json"
    return body


def test_call_and_answer(gateway):
    answer = gateway.call("notebook", {"mode": "create", "name": "first", "newStr": "a\nb"})
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json()["result"], str)
    assert answer.json()["revision"] == 1
    read = gateway.call("notebook", {"mode": "read", "name": "first"})
    assert "a\nb" in read.json()["result"]


def test_text_is_escaped(gateway):
    text = "quote \" back \\ tab \t nul-free \u2028 \U0001f600 </script>"
    gateway.call("notebook", {"mode": "create", "name": "escapes", "newStr": text})
    assert text in gateway.call("notebook", {"mode": "read", "name": "escapes"}).json()["result"]


def test_large_text(gateway):
    text = "0123456789abcde\n" * 20000
    assert gateway.call("notebook",
                        {"mode": "create", "name": "large", "newStr": text}).status_code == 200
    answer = gateway.client.post("/v1/tools/notebook?raw=true", json={"mode": "read", "name": "large"})
    assert answer.json()["result"] == text


def test_many_at_once(gateway):
    gateway.call("notebook", {"mode": "create", "name": "many", "newStr": "start"})
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(
            lambda n: gateway.call("notebook", {"mode": "write", "name": "many",
                                                "newStr": f"line-{n}-"}), range(100)))
    assert [a.status_code for a in answers] == [200] * 100
    text = gateway.call("notebook", {"mode": "read", "name": "many"}).json()["result"]
    assert all(f"line-{n}-" in text for n in range(100))


def test_empty_body_is_an_empty_object(gateway):
    empty = gateway.client.post("/v1/tools/notebook")
    given = gateway.client.post("/v1/tools/notebook", content=b"{}", headers=JSON)
    assert empty.status_code == given.status_code == 400
    assert empty.json() == given.json()


def test_input_errors(gateway):
    body = fails(gateway.call("notebook", {"mode": "no such"}), 400, "INVALID_INPUT")
    violation = body["details"]["violations"][0]
    assert violation["path"] == "/mode" and violation["expected"] and violation["got"]


@pytest.mark.parametrize("text", [b"{", b"[1]x", b'{"a":1,"a":2}', b"\xff\xfe", b"{'a':1}",
                                  b'{"a":"\xed\xa0\x80"}', b"[" * 200 + b"]" * 200])
def test_not_json(gateway, text):
    answer = gateway.client.post("/v1/tools/notebook", content=text, headers=JSON)
    fails(answer, 400, "INVALID_JSON")


def test_unknown_tool_names_the_nearest(gateway):
    body = fails(gateway.call("notebok"), 404, "UNKNOWN_TOOL")
    assert "notebook" in body["hint"]
    fails(gateway.client.get("/v1/tools/notebok"), 404, "UNKNOWN_TOOL")


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8",
                                  'APPLICATION/JSON;charset="UTF-8"', "application/x+json"])
def test_json_content_types(gateway, kind):
    answer = gateway.client.post("/v1/tools/notebook", content=b'{"mode":"list"}',
                                 headers={"Content-Type": kind})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded",
                                  "application/json; charset=latin-1", "multipart/form-data", ""])
def test_other_content_types(gateway, kind):
    answer = gateway.client.post("/v1/tools/notebook", content=b'{"mode":"list"}',
                                 headers={"Content-Type": kind})
    fails(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_no_content_type(gateway):
    with gateway.connect() as raw:
        raw.request("POST /v1/tools/notebook HTTP/1.1", body=b'{"mode":"list"}')
        answer = raw.answer()
        assert answer.status == 415 and answer.json()["code"] == "UNSUPPORTED_MEDIA_TYPE"


def test_paths_and_methods(gateway):
    assert "/v1/tools" in fails(gateway.client.get("/v1/tool"), 404, "NOT_FOUND")["hint"]
    fails(gateway.client.get("/nothing/here"), 404, "NOT_FOUND")
    first = fails(gateway.client.get("/nothing"), 404, "NOT_FOUND")
    assert "/docs" in first["hint"] and "did you mean" not in first["message"]
    fails(gateway.client.get("/v1/tools/a/b"), 404, "NOT_FOUND")
    answer = gateway.client.put("/v1/tools")
    fails(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    answer = gateway.client.delete("/v1/tools/notebook")
    fails(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "GET, HEAD, POST, OPTIONS"


def test_head_and_options(gateway):
    head = gateway.client.head("/v1/tools")
    get = gateway.client.get("/v1/tools")
    assert head.status_code == 200 and head.content == b""
    assert head.headers["content-length"] == str(len(get.content))
    options = gateway.client.options("/v1/tools/notebook")
    assert options.status_code == 204 and "POST" in options.headers["allow"]


def test_response_headers(gateway):
    answer = gateway.client.get("/v1/tools")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    other = gateway.client.get("/v1/tools")
    assert other.headers["x-request-id"] != answer.headers["x-request-id"]
    assert gateway.client.get("/healthz").headers["cache-control"] == "no-store"


def test_request_id_and_traceparent(gateway):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = gateway.call("notebook", {"mode": "list"},
                          {"X-Request-Id": "abc-1.2_3", "traceparent": trace})
    assert answer.headers["x-request-id"] == "abc-1.2_3"
    assert answer.headers["traceparent"] == trace
    for strange in ("a b", "<x>", "x" * 129, "a\tb"):
        answer = gateway.call("notebook", {"mode": "list"}, {"X-Request-Id": strange})
        assert answer.status_code == 200
        assert answer.headers["x-request-id"] != strange
    answer = gateway.call("notebook", {"mode": "list"}, {"traceparent": "00-zz"})
    assert "traceparent" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/tools", "/openapi.json", "/v1/tools/notebook"])
def test_etag(gateway, path):
    first = gateway.client.get(path)
    tag = first.headers["etag"]
    for given in (tag, "W/" + tag, '"other", ' + tag, "*"):
        again = gateway.client.get(path, headers={"If-None-Match": given})
        assert again.status_code == 304 and again.content == b""
        assert again.headers["etag"] == tag
    other = gateway.client.get(path, headers={"If-None-Match": '"other"'})
    assert other.status_code == 200 and other.content == first.content


# ---- tools in five forms ----

NAME = {"type": "string", "pattern": "^[a-zA-Z][a-zA-Z0-9_-]{0,63}$"}
TEXT = {"type": "string", "minLength": 1}
OBJECT = {"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}}


def strict(**members):
    return {"type": "object", "required": list(members), "properties": members,
            "additionalProperties": False}


FORMS = {
    "openai": {"type": "array", "minItems": 1, "items": strict(
        type={"const": "function"},
        function=strict(name=NAME, description=TEXT, parameters=OBJECT))},
    "openai-responses": {"type": "array", "minItems": 1, "items": strict(
        type={"const": "function"}, name=NAME, description=TEXT, parameters=OBJECT,
        strict={"const": False})},
    "anthropic": {"type": "array", "minItems": 1, "items": strict(
        name=NAME, description=TEXT, input_schema=OBJECT)},
    "gemini": {"type": "array", "minItems": 1, "maxItems": 1, "items": strict(
        functionDeclarations={"type": "array", "minItems": 1, "items": strict(
            name=NAME, description=TEXT, parametersJsonSchema=OBJECT)})},
}
GEMINI = {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum",
          "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf",
          "properties", "additionalProperties", "required"}
OPENAI_REFUSED = {"prefixItems", "$schema", "$id", "if", "then", "else", "not", "allOf", "oneOf",
                  "const", "patternProperties", "dependentRequired", "unevaluatedProperties"}
AT_TOP_REFUSED = {"anyOf", "oneOf", "allOf", "not", "enum"}


def walk(schema):
    """Every schema inside, itself first."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("items", "additionalProperties", "not", "if", "then", "else"):
        yield from walk(schema.get(name))
    for name in ("properties", "$defs", "patternProperties"):
        for part in schema.get(name, {}).values():
            yield from walk(part)
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in schema.get(name, []):
            yield from walk(part)


@pytest.mark.parametrize("form", FORMS)
def test_vendor_formats(gateway, form):
    answer = gateway.client.get("/v1/tools", params={"format": form})
    assert answer.status_code == 200
    tools = answer.json()
    jsonschema.validate(tools, FORMS[form])
    if form == "gemini":
        tools = tools[0]["functionDeclarations"]
    for tool in tools:
        tool = tool.get("function", tool)
        schema = tool.get("parameters") or tool.get("input_schema") or tool["parametersJsonSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert not AT_TOP_REFUSED & set(schema)
        for part in walk(schema):
            if form == "gemini":
                assert set(part) <= GEMINI, part
            if form.startswith("openai"):
                assert not OPENAI_REFUSED & set(part), part
                assert part.get("type") != "array" or "items" in part
        assert gateway.client.get(f"/v1/tools/{tool['name']}",
                                  params={"format": form}).status_code == 200


def test_mcp_format(gateway):
    tools = gateway.client.get("/v1/tools").json()["tools"]
    assert gateway.client.get("/v1/tools?format=mcp").json()["tools"] == tools
    for tool in tools:
        assert set(tool) <= {"name", "title", "description", "inputSchema", "outputSchema",
                             "annotations"}
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint",
                                            "openWorldHint"}
        assert gateway.client.get(f"/v1/tools/{tool['name']}").json() == tool


def test_unknown_format(gateway):
    assert "gemini" in fails(gateway.client.get("/v1/tools?format=yaml"), 400,
                             "INVALID_INPUT")["message"]
    fails(gateway.client.get("/v1/tools?formt=mcp"), 400, "INVALID_INPUT")


def test_openapi(gateway):
    document = gateway.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    validate(document)
    for tool in gateway.client.get("/v1/tools").json()["tools"]:
        operation = document["paths"][f"/v1/tools/{tool['name']}"]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        name = schema["$ref"].removeprefix("#/components/schemas/")
        assert document["components"]["schemas"][name] == tool["inputSchema"]
    failure = gateway.call("notebook", {"mode": 1}).json()
    jsonschema.validate(failure, document["components"]["schemas"]["Failure"])


def test_docs_page(gateway):
    page = gateway.client.get("/docs")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cross-origin-opener-policy"] == "same-origin"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "http://" not in page.text and "https://" not in page.text
    # The initial content of the form must not overwrite a notebook.
    assert "harmless.has" in gateway.client.get("/docs/docs.js").text
    for path in ("/docs/docs.js", "/docs/docs.css"):
        assert path.removeprefix("/") in page.text
        assert gateway.client.get(path).status_code == 200


# ---- operating ----

def test_health(gateway):
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    ready = gateway.client.get("/readyz").json()
    assert set(ready) == {"status", "version"} and ready["status"] == "ready"


def test_metrics(gateway):
    gateway.call("notebook", {"mode": "list"})
    text = gateway.client.get("/metrics").text
    assert 'notegate_calls_total{tool="notebook",outcome="ok"}' in text
    assert re.search(r"^notegate_outbox_backlog \d+$", text, re.M)
    assert re.search(r'^notegate_build_info{version="[^"]+",commit="[^"]*",date="[^"]*"} 1$', text, re.M)
    for name in ("connections", "buffered", "body"):
        assert f'notegate_limit{{name="{name}"}}' in text
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_unix_socket(gateway):
    assert (gateway.data_dir / "notegate.sock").stat().st_mode & 0o777 == 0o600
    transport = httpx.HTTPTransport(uds=gateway.socket_path)
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        answer = client.post("/v1/tools/notebook", json={"mode": "list"},
                             headers={"X-Notegate-Agent": "owner"})
        assert answer.status_code == 200, answer.text


def test_ipv6(start):
    gateway = start(listen="[::1]:0")
    assert gateway.url.startswith("http://[::1]:")
    assert gateway.client.get("/readyz").status_code == 200
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200


def test_body_limit(start):
    gateway = start(sets=["limits.body=64KiB"])
    fits = json.dumps({"mode": "create", "name": "n", "newStr": "x" * 60000}).encode()
    assert gateway.client.post("/v1/tools/notebook", content=fits,
                               headers=JSON).status_code == 200
    for body in (b"x" * 65537, b"x" * 3000000):
        answer = gateway.client.post("/v1/tools/notebook", content=body, headers=JSON)
        assert "65536" in fails(answer, 413, "TOO_LARGE")["message"]

    def pieces():
        for _ in range(100):
            yield b"x" * 1000

    fails(gateway.client.post("/v1/tools/notebook", content=pieces(), headers=JSON), 413,
          "TOO_LARGE")
    eventually(lambda: gateway.in_use("buffered") == 0)


def test_buffered_limit(start):
    gateway = start(sets=["limits.buffered=100KiB"])
    body = json.dumps({"mode": "create", "name": "n", "newStr": "x" * 300000}).encode()
    answer = gateway.client.post("/v1/tools/notebook", content=body, headers=JSON)
    fails(answer, 503, "BUSY")
    assert int(answer.headers["retry-after"]) >= 1
    eventually(lambda: gateway.in_use("buffered") == 0)
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200
