# SPDX-License-Identifier: MIT
"""Settings of schemathesis for notegate: the key that it must not revoke, and findings that are intended.

Each reason names one kind of failure, and nothing else is let pass.
"""

import os
import re

import schemathesis

KEY_ID = os.environ.get("NOTEGATE_TEST_KEY_ID", "")
ANOTHER_ID = "a" * 12


STREAM_SECONDS = 0.1


def read_shortly(response, *args, **kwargs):
    """A stream of changes may be silent: once it is open, what does not come soon is not waited for, and no failure either."""
    if response.headers.get("Content-Type", "").startswith("text/event-stream"):
        response.raw.connection.sock.settimeout(STREAM_SECONDS)


@schemathesis.hook
def before_call(context, case, kwargs):
    """The key of the run itself lives on: without it nothing would be tested."""
    kwargs["hooks"] = {"response": read_shortly}
    if case.path_parameters and case.path_parameters.get("id") == KEY_ID:
        case.path_parameters["id"] = ANOTHER_ID


def arguments_of(case):
    """The schema of a tool's arguments; None: this calls no tool."""
    path = case.operation.path
    if case.method != "POST" or not path.startswith("/v1/tools/") or "{" in path:
        return None
    return case.operation.schema.raw_schema["components"]["schemas"][f"{path.rsplit('/', 1)[1]}_arguments"]


def is_empty(case, failure, response):
    """A call without a body, or with null, is one without arguments: clients may leave it out, though the document asks for it."""
    schema = arguments_of(case)
    return (failure.title == "Schema-violating request accepted" and schema is not None and not schema.get("required")
            and response.request.body in (None, b"", b"null"))


def is_null(case, failure, response):
    """Null for an optional member is "not given": some frameworks send it for each."""
    schema = arguments_of(case)
    if case.operation.path.startswith("/v1/keys"):
        name = "KeyRequest" if case.operation.path == "/v1/keys" else "KeyChange"
        schema = case.operation.schema.raw_schema["components"]["schemas"][name]
    if failure.title != "Schema-violating request accepted" or schema is None or not isinstance(case.body, dict):
        return False
    optional = schema["properties"].keys() - set(schema.get("required", ()))
    return any(name in optional and value is None for name, value in case.body.items())


def is_meaning(case, failure, response):
    """Arguments that fit the schema and mean nothing, which a flat schema cannot say (vendors take no other): a member that belongs to
    another command, an empty path, a day that is none, a query that is no SQL, an undo where nothing was done. /v1/history is the tools
    of the history under addresses of their own."""
    return failure.title == "Schema-valid request rejected" and response.status_code in (400, 422) and (
        arguments_of(case) is not None or case.operation.path == "/v1/tools/{name}"
        or re.fullmatch("/v1/history(/[a-z]+)?", case.operation.path) is not None)


def is_elsewhere(case, failure, response):
    """Conditions of the gateway beyond the schema: a key cannot expire before now nor in centuries, or name an agent's
    own space for another, or a glob that no tool matches, or exclude all its tools; entries are not asked for by id and path; no
    stream goes on after an event that is to come, begins at two positions, or has pages; an idempotency key belongs to one request."""
    if failure.title != "Schema-valid request rejected" or response.status_code not in (400, 422):
        return False
    refused = response.json()
    return (refused.get("code") == "IDEMPOTENCY_KEY_REUSED"
            or (case.operation.path.startswith("/v1/keys") and refused["message"].startswith(
                ("the expiry ", 'the space "~', "no tool matches ", "`no_tools` excludes ")))
            or (case.operation.path == "/v1/audit" and {"id", "path"} <= (case.query or {}).keys())
            or (case.operation.path == "/v1/events"
                and re.search("but the last event is|are two positions|limit is for pages", refused["message"])))


def is_mcp(case, failure, response):
    """Method and revision decide the meaning of a message of MCP: two official suites check that (tests/mcp)."""
    return case.operation.path == "/mcp" and failure.title == "Schema-valid request rejected" and response.status_code == 400


def is_revoked(case, failure, response):
    """A key that was ended is shown, as ended."""
    return (failure.title == "Deleted resource still available" and case.operation.path == "/v1/keys/{id}"
            and response.json().get("state") == "revoked")


REASONS = (is_empty, is_null, is_meaning, is_elsewhere, is_mcp, is_revoked)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    return not any(reason(case, failure, response) for reason in REASONS)
