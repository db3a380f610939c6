/* SPDX-License-Identifier: MIT */
/* mcp_input.c - input requests: the kinds that the client supports, the result that asks, and
 * the retried request with answers and state. */
#include "mcp_input.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/keys/keys.h"

/* Bytes around the answers in the text of the state; and the depth limit of answers. */
#define INPUT_ROOM 64
#define INPUT_DEPTH 64
#define INPUT_DATA_MAX 128

const char *mcp_input_method(enum ng_ask_kind kind)
{
    if (kind == NG_ASK_MODEL) {
        return "sampling/createMessage";
    }
    if (kind == NG_ASK_ROOTS) {
        return "roots/list";
    }
    return "elicitation/create";
}

void mcp_input_print(struct buf *out, const struct ask *ask)
{
    buf_printf(out, "\"method\":\"%s\",\"params\":", mcp_input_method(ask->kind));
    buf_add_str(out, str_or(ask->request, ng_str_of("{}")));
}

void mcp_input_print_all(struct buf *out, const struct call *call)
{
    buf_add_char(out, '{');
    for (const struct ask *ask = call->asks; ask != NULL; ask = ask->next) {
        buf_add_json(out, ask->key);
        buf_add_c(out, ":{");
        mcp_input_print(out, ask);
        buf_add_c(out, ask->next != NULL ? "}," : "}");
    }
    buf_add_char(out, '}');
}

/* ---- what a client can be asked ---- */

static bool is_object(const struct ng_value *value)
{
    return json_is(value, NG_TYPE_OBJECT);
}

unsigned mcp_client_request_kinds(const struct ng_value *capabilities)
{
    const struct ng_value *elicitation = json_get(capabilities, "elicitation");
    unsigned asks = 0;
    if (is_object(json_get(capabilities, "sampling"))) {
        asks |= 1U << NG_ASK_MODEL;
    }
    if (is_object(json_get(capabilities, "roots"))) {
        asks |= 1U << NG_ASK_ROOTS;
    }
    if (is_object(elicitation)) {
        bool form = is_object(json_get(elicitation, "form"));
        bool url = is_object(json_get(elicitation, "url"));
        if (url) {
            asks |= 1U << NG_ASK_URL;
        }
        /* nothing said means forms */
        if (form || !url) {
            asks |= 1U << NG_ASK_FORM;
        }
    }
    return asks;
}

static const char *missing_capability(const struct mcp_exchange *exchange)
{
    for (const struct ask *ask = exchange->call->asks; ask != NULL; ask = ask->next) {
        if ((exchange->call->client_asks & (1U << ask->kind)) == 0) {
            if (ask->kind == NG_ASK_MODEL) {
                return "{\"sampling\":{}}";
            }
            if (ask->kind == NG_ASK_ROOTS) {
                return "{\"roots\":{}}";
            }
            if (ask->kind == NG_ASK_URL) {
                return "{\"elicitation\":{\"url\":{}}}";
            }
            if (json_get(exchange->terms.capabilities, "elicitation") != NULL) {
                return "{\"elicitation\":{\"form\":{}}}";
            }
            return "{\"elicitation\":{}}";
        }
    }
    return NULL;
}

bool mcp_answer_cannot_ask(struct mcp_exchange *exchange, const struct result *result)
{
    const char *missing = NULL;
    if (result->rc == NG_EFAILED) {
        missing = missing_capability(exchange);
    }
    if (missing == NULL || !mcp_is_stateless(exchange->terms.version)) {
        return false;
    }
    char data[INPUT_DATA_MAX];
    (void)snprintf(data, sizeof(data), "{\"requiredCapabilities\":%s}", missing);
    mcp_answer_error(exchange, 400, MCP_MISSING_CAPABILITY, result->message, ng_str_of(data));
    return true;
}

/* ---- state ---- */

static bool is_of_round(struct ng_str name)
{
    return str_is(name, "_meta") || str_is(name, "inputResponses") ||
           str_is(name, "requestState");
}

/* Binds the state to the caller and to all parameters but those that differ from round to
 * round. */
static int make_binding(const struct mcp_exchange *exchange, struct mcp_binding *ret)
{
    const struct call *call = exchange->job->call;
    const struct ng_value *params = exchange->message.params;
    const struct ng_value *member = json_first(params);
    /* The argument `space` is part of params, and not read before the call. */
    bool named = call->caller.space_named && (call->options & CALL_SPACE_ARGUED) == 0;
    struct buf text;
    buf_init(&text, exchange->job->gateway->limits.body * 2 + INPUT_ROOM);
    for (; member != NULL; member = member->next) {
        if (!is_of_round(member->key)) {
            buf_add_json(&text, member->key);
            buf_add_char(&text, ':');
            json_print(&text, member);
            buf_add_char(&text, ',');
        }
    }
    struct ng_str pieces[] = {
        call->caller.agent,
        call->key == NULL ? ng_str_of("") : ng_str_of(call->key->id),
        named ? call->caller.space : ng_str_of(""),
        exchange->message.method,
        buf_str(&text),
    };
    int rc = text.rc;
    if (text.rc == NG_OK) {
        rc = mcp_binding_make(pieces, NG_COUNT(pieces), ret);
    }
    buf_done(&text);
    return rc;
}

struct ng_str mcp_ask_state(const struct call *call)
{
    if (call->ask_state_out.data != NULL) {
        return call->ask_state_out;
    }
    return call->ask_state_in;
}

/* {"a":{answers},"s":"the code's own state"}, sealed; nothing where there is neither. */
static int print_state(struct mcp_exchange *exchange, struct buf *out)
{
    const struct call *call = exchange->call;
    struct ng_str state = mcp_ask_state(call);
    struct mcp_binding binding;
    struct buf text;
    if (state.data == NULL && call->ask_answers == NULL) {
        return NG_OK;
    }
    buf_init(&text, MCP_SEAL_PAYLOAD_MAX);
    buf_add_c(&text, "{\"a\":");
    if (call->ask_answers == NULL) {
        buf_add_c(&text, "{}");
    } else {
        json_print(&text, call->ask_answers);
    }
    if (state.data != NULL) {
        buf_add_c(&text, ",\"s\":");
        buf_add_json(&text, state);
    }
    buf_add_char(&text, '}');
    int rc = text.rc;
    if (text.rc == NG_OK) {
        rc = make_binding(exchange, &binding);
    }
    buf_add_c(out, ",\"requestState\":\"");
    if (rc == NG_OK) {
        rc = mcp_seal_close(mcp_client_requests_seal(exchange->job->client_requests), &binding,
                            clock_unix_ms(), buf_str(&text), out);
    }
    buf_add_char(out, '"');
    buf_done(&text);
    return rc;
}

/* ---- asking ---- */

/* An answer that was there and is not of its form. */
static bool refuse_malformed(struct mcp_exchange *exchange)
{
    const struct ask *ask = exchange->call->asks;
    while (ask != NULL && !ask->malformed) {
        ask = ask->next;
    }
    if (ask == NULL) {
        return false;
    }
    char sentence[MCP_SENTENCE_MAX];
    struct ng_str key = utf8_cut(ask->key, INPUT_DATA_MAX);
    const char *wanted = "it must be an object with `action` (accept, decline or cancel), and "
                         "with the object `content` where a form was accepted";
    if (ask->kind == NG_ASK_MODEL) {
        wanted = "it must be an object";
    } else if (ask->kind == NG_ASK_ROOTS) {
        wanted = "it must be an object with the array `roots`";
    }
    (void)snprintf(sentence, sizeof(sentence),
                   "`params.inputResponses.%.*s` is not an answer to %s: %s", (int)key.len,
                   key.data, mcp_input_method(ask->kind), wanted);
    (void)mcp_refuse_params(exchange, sentence);
    return true;
}

int mcp_input_answer(struct mcp_exchange *exchange, bool *ret_answered)
{
    struct buf state;
    *ret_answered = refuse_malformed(exchange);
    if (*ret_answered) {
        return NG_OK;
    }
    buf_init(&state, 2 * MCP_SEAL_PAYLOAD_MAX);
    int rc = print_state(exchange, &state);
    if (rc != NG_OK) {
        mcp_run_set_result(exchange, NG_EFAILED,
                           "the answers so far are larger than a request can be");
        buf_done(&state);
        return NG_OK;
    }
    struct buf *out = mcp_result_open(exchange);
    buf_add_c(out, "\"inputRequests\":");
    mcp_input_print_all(out, exchange->call);
    buf_add_str(out, buf_str(&state));
    mcp_result_end(exchange, "input_required", STR_NONE);
    mcp_answer_close(exchange);
    buf_done(&state);
    *ret_answered = true;
    return NG_OK;
}

/* ---- the repeated request ---- */

static bool refuse(struct mcp_exchange *exchange, const char *member, const char *why)
{
    char sentence[MCP_SENTENCE_MAX];
    (void)snprintf(sentence, sizeof(sentence), "`params.%s` %s", member, why);
    (void)mcp_refuse_params(exchange, sentence);
    return false;
}

/* Both objects' members as one object; what came just now counts. Not deep: they share values.
 */
static const struct ng_value *merge(struct arena *arena, const struct ng_value *earlier,
                                    const struct ng_value *now)
{
    struct ng_value *both = arena_zalloc(arena, sizeof(*both));
    const struct ng_value *from[] = {now, earlier};
    if (both == NULL) {
        return NULL;
    }
    both->type = NG_TYPE_OBJECT;
    struct ng_value **last = &both->first;
    for (size_t i = 0; i < NG_COUNT(from); i++) {
        const struct ng_value *at = json_first(from[i]);
        for (; at != NULL; at = at->next) {
            if (i > 0 && json_get_str(now, at->key) != NULL) {
                continue;
            }
            struct ng_value *copy = arena_alloc(arena, sizeof(*copy));
            if (copy == NULL) {
                return NULL;
            }
            *copy = *at;
            copy->next = NULL;
            *last = copy;
            last = &copy->next;
            both->count++;
        }
    }
    return both;
}

/* *ret_answers: those of earlier rounds. */
static bool open_state(struct mcp_exchange *exchange, const struct ng_value *sealed,
                       const struct ng_value **ret_answers)
{
    struct call *call = exchange->call;
    struct mcp_binding binding;
    struct ng_str text = STR_NONE;
    const struct ng_value *state = NULL;
    const char *why = "could not be checked";
    if (sealed->type != NG_TYPE_STRING) {
        return refuse(exchange, "requestState", "must be the string that the gateway returned");
    }
    if (make_binding(exchange, &binding) != NG_OK ||
        mcp_seal_open(mcp_client_requests_seal(exchange->job->client_requests), &binding,
                      clock_unix_ms(), sealed->text, &call->arena, &text, &why) != NG_OK) {
        return refuse(exchange, "requestState", why);
    }
    if (json_parse(&call->arena, text, INPUT_DEPTH + 2, &state, NULL) != NG_OK) {
        return refuse(exchange, "requestState", "could not be read");
    }
    *ret_answers = json_get(state, "a");
    call->ask_state_in = json_get_text(state, "s");
    return true;
}

static bool may_ask(struct ng_str method)
{
    return str_is(method, "tools/call") || str_is(method, "prompts/get") ||
           str_is(method, "resources/read");
}

bool mcp_client_request_begin(struct mcp_exchange *exchange)
{
    struct call *call = exchange->call;
    const struct mcp_job *job = exchange->job;
    const struct ng_value *params = exchange->message.params;
    if (!may_ask(exchange->message.method) || job->client_requests == NULL) {
        return true;
    }
    if (!mcp_is_stateless(exchange->terms.version)) {
        if (job->session != NULL && job->transport->ask != NULL) {
            call->client_asks = atomic_load(&job->session->client_asks);
        }
        return true;
    }
    call->client_asks = mcp_client_request_kinds(exchange->terms.capabilities);
    const struct ng_value *answers = json_get(params, "inputResponses");
    const struct ng_value *sealed = json_get(params, "requestState");
    const struct ng_value *earlier = NULL;
    if (answers != NULL && answers->type != NG_TYPE_OBJECT) {
        return refuse(exchange, "inputResponses",
                      "must be an object: the answers by the keys of the questions");
    }
    if (sealed != NULL && !open_state(exchange, sealed, &earlier)) {
        return false;
    }
    if (answers != NULL || earlier != NULL) {
        call->ask_answers = merge(&call->arena, earlier, answers);
        if (call->ask_answers == NULL) {
            return refuse(exchange, "inputResponses", "could not be kept: out of memory");
        }
    }
    return true;
}
