/* SPDX-License-Identifier: MIT */
/* openapi_operations.c - the table of the operations that are not tools, and printing them. */
#include "openapi_operations.h"
#include "core/base/text_choice.h"

#include <string.h>

#include "openapi_fixed.h"

enum operation_flags {
    FOR_ADMINS = 1, /* shown to administrators only */
    NO_KEY = 2,     /* `security` is empty */
    FOR_AGENTS = 4, /* has the parameter Agent where callers may name themselves */
    IS_RPC = 8      /* MCP: refusals are messages of JSON-RPC */
};

#define EVENT_STREAM "text/event-stream"
#define NOT_CHANGED "'304':{'description':'Not changed since the ETag in If-None-Match.'}"
#define NOT_READY                                                                              \
    "'503':{'description':'Not now.','content':{'application/json':{'schema':{"                \
    "'$ref':'#/components/schemas/Readiness'}}}}"

struct operation {
    const char *path; /* operations of one path stand together */
    const char *method;
    const char *id, *tag, *summary, *description;
    const char *parameters; /* names of components/parameters, or NULL */
    const char *body;       /* a name of components/schemas, or NULL */
    const char *status;
    const char *answer; /* the description of its answer */
    const char *type;   /* NULL: JSON; "": no content */
    const char *schema; /* a name of components/schemas, or NULL: a string */
    bool streams;       /* or a stream of messages */
    const char *more;   /* further responses, as openapi_put() takes them; or NULL */
    unsigned refusals;  /* enum openapi_refusal */
    unsigned flags;
};

static const struct operation table[] = {
    {
        .path = "/v1/tools",
        .method = "get",
        .id = "listTools",
        .tag = "gateway",
        .summary = "The tools the caller may call",
        .description = "With the schemas of their arguments and results.",
        .parameters = "Format",
        .status = "200",
        .answer = "The definitions, in the form asked for.",
        .schema = "Definitions",
        .refusals = OPENAPI_READS,
        .more = NOT_CHANGED,
    },
    {
        .path = "/v1/tools/{name}",
        .method = "get",
        .id = "showTool",
        .tag = "gateway",
        .summary = "The definition of a tool",
        .description = "As GET /v1/tools has it.",
        .parameters = "ToolName Format",
        .status = "200",
        .answer = "The definition.",
        .schema = "Definition",
        .refusals = OPENAPI_READS,
        .more = NOT_CHANGED,
    },
    {
        .path = "/v1/tools/{name}",
        .method = "post",
        .id = "callTool",
        .tag = "gateway",
        .summary = "Call a tool by its name",
        .description = "Each tool has an operation of its own too, with its schemas.",
        .parameters = "ToolName " OPENAPI_TOOL_PARAMETERS,
        .body = "Arguments",
        .status = "200",
        .answer = "The answer of the tool.",
        .schema = "Answer",
        .refusals = OPENAPI_CALLS,
        .flags = FOR_AGENTS,
    },
    {
        .path = "/v1/me",
        .method = "get",
        .id = "whoami",
        .tag = "gateway",
        .summary = "The facts about the caller",
        .description = "Agent, rights, spaces, roots, folders of notes, and the kinds of "
                       "resources: what this caller may use. Administrators see the version "
                       "with its commit and date.",
        .parameters = "Space Mode",
        .status = "200",
        .answer = "The facts.",
        .schema = "Me",
        .refusals = OPENAPI_READS,
        .flags = FOR_AGENTS,
    },
    {
        .path = "/v1/events",
        .method = "get",
        .id = "followChanges",
        .tag = "events",
        .summary = "Every change the caller may see, as server-sent events",
        .description = "`id` is the sequence number, `event` is `change` (or `closed`, the "
                       "last one, with the reason), `data` is one JSON object. With Accept: "
                       "application/json: a page of these objects, oldest first.",
        .parameters = "Since From To Collection ChangedBy ChangedByAgent ChangedInRun Limit "
                      "LastEventId Space",
        .status = "200",
        .answer = "A page, or events until one side ends or `to` is reached.",
        .schema = "EventPage",
        .streams = true,
        .refusals = OPENAPI_READS,
        .flags = FOR_AGENTS,
    },
    {
        .path = "/mcp",
        .method = "post",
        .id = "mcp",
        .tag = "mcp",
        .summary = "One message of the Model Context Protocol",
        .description = "Streamable HTTP; its revisions say which methods and headers there "
                       "are. Accept names application/json and text/event-stream.",
        .parameters = "McpVersion McpSessionOf McpMethod McpName " OPENAPI_CALL_PARAMETERS,
        .body = "McpRequest",
        .status = "200",
        .answer = "The answer, or a stream of messages that ends with it.",
        .schema = "Message",
        .streams = true,
        .more = "'202':{'description':'Taken; there is no answer to it.'}",
        .refusals = OPENAPI_READS | OPENAPI_413,
        .flags = FOR_AGENTS | IS_RPC,
    },
    {
        .path = "/mcp",
        .method = "get",
        .id = "followMcpSession",
        .tag = "mcp",
        .summary = "Messages of the server to a session of an older revision of MCP",
        .description = "Accept names text/event-stream.",
        .parameters = "McpVersion McpSession McpEvent",
        .status = "200",
        .answer = "Messages, until one side ends.",
        .type = EVENT_STREAM,
        .schema = "Event",
        .refusals = OPENAPI_READS,
        .flags = IS_RPC,
    },
    {
        .path = "/mcp",
        .method = "delete",
        .id = "endMcpSession",
        .tag = "mcp",
        .summary = "End a session of an older revision of MCP",
        .description = "Its streams and its running calls end.",
        .parameters = "McpVersion McpSession",
        .status = "204",
        .answer = "It has ended.",
        .type = "",
        .refusals = OPENAPI_READS,
        .flags = IS_RPC,
    },
    {
        .path = "/openapi.json",
        .method = "get",
        .id = "describe",
        .tag = "gateway",
        .summary = "This document",
        .description = "OpenAPI 3.1, with the tools that the caller may call.",
        .status = "200",
        .answer = "The document.",
        .schema = "Document",
        .refusals = OPENAPI_READS,
        .more = NOT_CHANGED,
    },
    {
        .path = "/",
        .method = "get",
        .id = "home",
        .tag = "gateway",
        .summary = "Leads a browser to /docs",
        .description = "The gateway's address, as its start prints it.",
        .status = "308",
        .answer = "Location names the page.",
        .type = "",
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/docs",
        .method = "get",
        .id = "docs",
        .tag = "gateway",
        .summary = "The tools as forms, for a browser",
        .description = "The page asks for a key where one is needed.",
        .status = "200",
        .answer = "The page.",
        .type = "text/html",
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/docs/docs.js",
        .method = "get",
        .id = "docsScript",
        .tag = "gateway",
        .summary = "The script of /docs",
        .description = "A part of the page.",
        .status = "200",
        .answer = "The script.",
        .type = "text/javascript",
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/docs/docs.css",
        .method = "get",
        .id = "docsStyle",
        .tag = "gateway",
        .summary = "The style of /docs",
        .description = "A part of the page.",
        .status = "200",
        .answer = "The style.",
        .type = "text/css",
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/healthz",
        .method = "get",
        .id = "healthz",
        .tag = "operation",
        .summary = "Is the process alive?",
        .description = "Answers for every Host.",
        .status = "200",
        .answer = "Yes.",
        .schema = "Health",
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/readyz",
        .method = "get",
        .id = "readyz",
        .tag = "operation",
        .summary = "Can it take calls?",
        .description = "Answers for every Host. Only callers with a key see the reasons.",
        .status = "200",
        .answer = "Yes.",
        .schema = "Readiness",
        .more = NOT_READY,
        .refusals = OPENAPI_400,
        .flags = NO_KEY,
    },
    {
        .path = "/metrics",
        .method = "get",
        .id = "metrics",
        .tag = "operation",
        .summary = "Numbers for Prometheus",
        .description = "A key of any role will do.",
        .status = "200",
        .answer = "The text format.",
        .type = "text/plain",
        .refusals = OPENAPI_READS,
    },
    {
        .path = "/v1/reload",
        .method = "post",
        .id = "reload",
        .tag = "operation",
        .summary = "Read the configuration again",
        .description = "For the role admin. The answer lists the values in effect and those "
                       "that need a restart.",
        .status = "200",
        .answer = "It was read.",
        .schema = "Reload",
        .refusals = OPENAPI_READS,
    },
    {
        .path = "/v1/config",
        .method = "get",
        .id = "showConfiguration",
        .tag = "admin",
        .summary = "The configuration in effect",
        .description = "For the role admin. Secrets, and what stands before the host of a URI, "
                       "are `***`.",
        .status = "200",
        .answer = "Every key, with the source of its value.",
        .schema = "Configuration",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/admin/backup",
        .method = "post",
        .id = "backup",
        .tag = "admin",
        .summary = "A backup, as it is made",
        .description = "Used by `notegate backup`. Answered only on the Unix socket in the "
                       "data directory, to its owner, without a key; 403 elsewhere.",
        .parameters = "WithFiles",
        .status = "200",
        .answer = "The archive, one JSON object a line; whole if its last line says so.",
        .type = "application/x-ndjson",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS | NO_KEY,
    },
    {
        .path = "/v1/admin/verify",
        .method = "post",
        .id = "verify",
        .tag = "admin",
        .summary = "Check the stored data",
        .description = "Used by `notegate verify`. Answered only on the Unix socket in the "
                       "data directory, to its owner, without a key; 403 elsewhere.",
        .status = "200",
        .answer = "Counts of the checked data, and every fault.",
        .schema = "Verification",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS | NO_KEY,
    },
    {
        .path = "/v1/audit",
        .method = "get",
        .id = "listAudit",
        .tag = "admin",
        .summary = "Entries of the audit log, the newest first",
        .description = "For the role admin. A page looks at up to 50,000 entries: it may be "
                       "short, even empty, and have more behind it.",
        .parameters = "AuditAgent AuditKey AuditRun AuditTool AuditAction AuditSpace "
                      "AuditCollection AuditId AuditPath AuditOutcome AuditSince AuditUntil "
                      "AuditBefore AuditLimit",
        .status = "200",
        .answer = "Entries with the values behind their names.",
        .schema = "AuditPage",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/audit/checkpoint",
        .method = "get",
        .id = "showAuditCheckpoint",
        .tag = "admin",
        .summary = "The newest checkpoint of the audit log",
        .description = "For the role admin.",
        .status = "200",
        .answer = "A signed note (C2SP tlog-checkpoint).",
        .type = "text/plain; charset=utf-8",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/audit/tile/{path}",
        .method = "get",
        .id = "showAuditTile",
        .tag = "admin",
        .summary = "A tile of the audit log, or a bundle of its entries",
        .description = "For the role admin. As C2SP tlog-tiles has them; the path has slashes.",
        .parameters = "AuditTile",
        .status = "200",
        .answer = "The bytes of the file.",
        .type = "application/octet-stream",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/audit/redact",
        .method = "post",
        .id = "redactAudit",
        .tag = "admin",
        .summary = "Remove what tells a value that entries show by a keyed hash",
        .description = "For the role admin.",
        .body = "RedactRequest",
        .status = "200",
        .answer = "How many names told it.",
        .schema = "Redaction",
        .refusals = OPENAPI_WRITES,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/keys",
        .method = "get",
        .id = "listKeys",
        .tag = "admin",
        .summary = "The keys in force, and the paused ones",
        .description = "For the role admin.",
        .parameters = "AllKeys KeysOf",
        .status = "200",
        .answer = "The keys, without their secrets.",
        .schema = "Keys",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/keys",
        .method = "post",
        .id = "addKey",
        .tag = "admin",
        .summary = "Make a key for an agent",
        .description = "For the role admin.",
        .body = "KeyRequest",
        .status = "201",
        .answer = "The key. Its text is in no other answer.",
        .schema = "Key",
        .refusals = OPENAPI_WRITES,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/keys/{id}",
        .method = "get",
        .id = "showKey",
        .tag = "admin",
        .summary = "One key",
        .description = "For the role admin.",
        .parameters = "KeyId",
        .status = "200",
        .answer = "The key, without its secret.",
        .schema = "Key",
        .refusals = OPENAPI_READS,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/keys/{id}",
        .method = "patch",
        .id = "changeKey",
        .tag = "admin",
        .summary = "Change, pause or resume a key",
        .description = "For the role admin. Members that are left out stay; null sets the "
                       "default of a new key. Holds within a second, in every gateway on the "
                       "same database.",
        .parameters = "KeyId",
        .body = "KeyChange",
        .status = "200",
        .answer = "The key with its new members.",
        .schema = "Key",
        .refusals = OPENAPI_WRITES,
        .flags = FOR_ADMINS,
    },
    {
        .path = "/v1/keys/{id}",
        .method = "delete",
        .id = "revokeKey",
        .tag = "admin",
        .summary = "End a key, at once",
        .description = "For the role admin.",
        .parameters = "KeyId Force",
        .status = "200",
        .answer = "The key as it was.",
        .schema = "Key",
        .refusals = OPENAPI_WRITES,
        .flags = FOR_ADMINS,
    },
};

static const struct {
    unsigned bit;
    const char *status;
    const char *name; /* of components/responses */
} refusals_table[] = {
    {OPENAPI_400, "400", "BadRequest"},    {OPENAPI_401, "401", "Unauthorized"},
    {OPENAPI_403, "403", "Forbidden"},     {OPENAPI_404, "404", "NotFound"},
    {OPENAPI_409, "409", "Conflict"},      {OPENAPI_413, "413", "TooLarge"},
    {OPENAPI_422, "422", "Unprocessable"}, {OPENAPI_429, "429", "TooManyRequests"},
    {OPENAPI_503, "503", "Unavailable"},   {OPENAPI_507, "507", "StorageFull"},
};

static void print_refusals(struct buf *out, unsigned refusals, bool rpc)
{
    for (size_t i = 0; i < NG_COUNT(refusals_table); i++) {
        if ((refusals & refusals_table[i].bit) != 0) {
            (void)buf_printf(out, ",\"%s\":{\"$ref\":\"#/components/responses/%s\"}",
                             refusals_table[i].status,
                             rpc ? "McpFailure" : refusals_table[i].name);
        }
    }
    (void)buf_printf(out, ",\"default\":{\"$ref\":\"#/components/responses/%s\"}",
                     rpc ? "McpFailure" : "Failure");
}

void openapi_print_refusals(struct buf *out, unsigned refusals)
{
    print_refusals(out, refusals, false);
}

void openapi_print_parameters(struct buf *out, const char *names, bool agent)
{
    const char *comma = "";
    (void)buf_add_char(out, '[');
    if (agent) {
        openapi_put(out, "{'$ref':'#/components/parameters/Agent'}");
        comma = ",";
    }
    while (names != NULL && *names != '\0') {
        size_t length = strcspn(names, " ");
        (void)buf_printf(out, "%s{\"$ref\":\"#/components/parameters/%.*s\"}", comma,
                         (int)length, names);
        names += length + strspn(names + length, " ");
        comma = ",";
    }
    (void)buf_add_char(out, ']');
}

static void print_media(struct buf *out, const char *type, const char *schema)
{
    (void)buf_printf(out, "\"%s\":{\"schema\":{", type);
    if (schema == NULL) {
        openapi_put(out, "'type':'string'}}");
    } else {
        (void)buf_printf(out, "\"$ref\":\"#/components/schemas/%s\"}}", schema);
    }
}

static void print_content(struct buf *out, const struct operation *one)
{
    const char *type = "application/json";
    if (one->type != NULL) {
        type = one->type;
    }
    if (*type == '\0') {
        return;
    }
    openapi_put(out, ",'content':{");
    print_media(out, type, one->schema);
    if (one->streams) {
        (void)buf_add_char(out, ',');
        print_media(out, EVENT_STREAM, "Event");
    }
    (void)buf_add_char(out, '}');
}

static void print_responses(struct buf *out, const struct operation *one)
{
    (void)buf_printf(out, ",\"responses\":{\"%s\":{\"description\":\"%s\"", one->status,
                     one->answer);
    print_content(out, one);
    (void)buf_add_char(out, '}');
    if (one->more != NULL) {
        (void)buf_add_char(out, ',');
        openapi_put(out, one->more);
    }
    print_refusals(out, one->refusals, (one->flags & IS_RPC) != 0);
    (void)buf_add_char(out, '}');
}

static void print_operation(struct buf *out, const struct operation *one, bool with_agent)
{
    bool agent = with_agent && (one->flags & FOR_AGENTS) != 0;
    (void)buf_printf(out,
                     "\"%s\":{\"operationId\":\"%s\",\"summary\":\"%s\",\"description\":"
                     "\"%s\",\"tags\":[\"%s\"]",
                     one->method, one->id, one->summary, one->description, one->tag);
    if ((one->flags & NO_KEY) != 0) {
        openapi_put(out, ",'security':[]");
    }
    if (one->parameters != NULL || agent) {
        openapi_put(out, ",'parameters':");
        openapi_print_parameters(out, one->parameters, agent);
    }
    if (one->body != NULL) {
        (void)buf_printf(out,
                         ",\"requestBody\":{\"required\":true,\"content\":{\"application/"
                         "json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}}",
                         one->body);
    }
    print_responses(out, one);
    (void)buf_add_char(out, '}');
}

void openapi_print_definition(struct buf *out)
{
    for (size_t i = 0; i < NG_COUNT(table); i++) {
        if (strcmp(table[i].id, "showTool") == 0) {
            openapi_put(out, ",'parameters':");
            openapi_print_parameters(out, "Format", false);
            print_responses(out, &table[i]);
        }
    }
}

void openapi_print_operations(struct buf *out, const struct openapi_reader *reader)
{
    const char *path = "";
    for (size_t i = 0; i < NG_COUNT(table); i++) {
        const struct operation *one = &table[i];
        if ((one->flags & FOR_ADMINS) != 0 && !reader->admin) {
            continue;
        }
        if (strcmp(path, one->path) == 0) {
            (void)buf_add_char(out, ',');
        } else {
            (void)buf_printf(out, "%s\"%s\":{", text_if(*path != '\0', "},"), one->path);
        }
        path = one->path;
        print_operation(out, one, reader->agent);
    }
    (void)buf_add_char(out, '}');
}
