/* SPDX-License-Identifier: MIT */
/* conformance_input.c - tools that need input before they can answer: one question, several at
 * once, several one after the other, with what the tool remembers in between. */
#include "conformance.h"

#include <string.h>

#define INPUT_NAME                                                                             \
    "{\"message\":\"What is your name?\",\"requestedSchema\":{\"type\":\"object\","            \
    "\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}"
#define INPUT_CONFIRM                                                                          \
    "{\"message\":\"Please confirm\",\"requestedSchema\":{\"type\":\"object\","                \
    "\"properties\":{\"ok\":{\"type\":\"boolean\"}},\"required\":[\"ok\"]}}"
#define INPUT_GREETING                                                                         \
    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"               \
    "\"Generate a greeting\"}}],\"maxTokens\":50}"

/* State of the tools between two rounds. */
#define INPUT_STATE "round-1"
#define INPUT_STATE_NAME "name="

static bool input_same(struct ng_str text, const char *other)
{
    return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

static struct ng_str input_member(struct ng_call *call, const struct ng_value *content,
                                  const char *name)
{
    struct ng_str text = call->host->json_text(call->host->json_get(content, name));
    return text.data != NULL ? text : ng_str_of("(nothing)");
}

int conformance_input_elicitation(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_value *content = NULL;
    (void)self;
    (void)args;
    int rc = conformance_ask_form(call, "user_name", INPUT_NAME, &content);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str pieces[] = {ng_str_of("Hello, "), input_member(call, content, "name"),
                              ng_str_of("!")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

static int input_reply_roots(struct ng_call *call, const struct ng_value *answer)
{
    const struct ng_host *host = call->host;
    const struct ng_value *roots = host->json_get(answer, "roots");
    struct ng_writer *writer = host->json_writer(call);
    if (host->json_type(roots) != NG_TYPE_ARRAY) {
        return ng_fail(call, NG_EINVAL, "the answer to `client_roots` must have `roots`");
    }
    if (writer == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_copy(writer, roots);
    struct ng_str pieces[] = {
        host->format(call, "The client has %zu roots: ", host->json_count(roots)),
        host->json_result(writer)};
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_input_roots(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    const struct ng_value *answer =
        call->host->ask(call, "client_roots", NG_ASK_ROOTS, ng_str_of("{}"));
    return answer == NULL ? NG_EINPUT : input_reply_roots(call, answer);
}

/* Asks for a confirmation and checks that the state comes back with it. */
int conformance_input_state(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_value *content = NULL;
    (void)self;
    (void)args;
    call->host->ask_state(call, ng_str_of(INPUT_STATE));
    int rc = conformance_ask_form(call, "confirm", INPUT_CONFIRM, &content);
    if (rc != NG_OK) {
        return rc;
    }
    if (!input_same(call->host->asked_state(call), INPUT_STATE)) {
        return ng_fail(call, NG_EINVAL,
                       "the answer came without the state that was asked with it");
    }
    return ng_reply(call, ng_str_of("state-ok: the state came back as it was sent"));
}

int conformance_input_multiple(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    (void)self;
    (void)args;
    host->ask_state(call, ng_str_of(INPUT_STATE));
    const struct ng_value *name =
        host->ask(call, "user_name", NG_ASK_FORM, ng_str_of(INPUT_NAME));
    const struct ng_value *greeting =
        host->ask(call, "greeting", NG_ASK_MODEL, ng_str_of(INPUT_GREETING));
    const struct ng_value *roots =
        host->ask(call, "client_roots", NG_ASK_ROOTS, ng_str_of("{}"));
    if (name == NULL || greeting == NULL || roots == NULL) {
        return NG_EINPUT;
    }
    struct ng_str pieces[] = {
        ng_str_of("All answers came, from "),
        input_member(call, host->json_get(name, "content"), "name"),
    };
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

/* The second round; the state says what the first one brought. */
static int input_second_round(struct ng_call *call, struct ng_str state)
{
    static const char request[] =
        "{\"message\":\"Step 2: What is your favorite color?\",\"requestedSchema\":{"
        "\"type\":\"object\",\"properties\":{\"color\":{\"type\":\"string\"}},"
        "\"required\":[\"color\"]}}";
    const struct ng_value *content = NULL;
    call->host->ask_state(call, state);
    int rc = conformance_ask_form(call, "step2", request, &content);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str name = {state.data + strlen(INPUT_STATE_NAME),
                          state.len - strlen(INPUT_STATE_NAME)};
    struct ng_str pieces[] = {name, ng_str_of(" likes "), input_member(call, content, "color")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_input_rounds(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"Step 1: What is your name?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}";
    const struct ng_value *content = NULL;
    struct ng_str state = call->host->asked_state(call);
    size_t prefix = strlen(INPUT_STATE_NAME);
    (void)self;
    (void)args;
    if (state.len >= prefix && memcmp(state.data, INPUT_STATE_NAME, prefix) == 0) {
        return input_second_round(call, state);
    }
    call->host->ask_state(call, ng_str_of(INPUT_STATE));
    int rc = conformance_ask_form(call, "step1", request, &content);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str name = input_member(call, content, "name");
    state = call->host->format(call, INPUT_STATE_NAME "%.*s", (int)name.len, name.data);
    if (state.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    return input_second_round(call, state);
}

/* Asks only what this client said it can be asked. */
int conformance_input_capabilities(void *self, struct ng_call *call, struct ng_str args)
{
    static const struct {
        enum ng_ask_kind kind;
        const char *key;
        const char *request;
    } questions[] = {
        {NG_ASK_FORM, "user_name", INPUT_NAME},
        {NG_ASK_MODEL, "greeting", INPUT_GREETING},
        {NG_ASK_ROOTS, "client_roots", "{}"},
    };
    const struct ng_host *host = call->host;
    size_t asked = 0;
    size_t answered = 0;
    (void)self;
    (void)args;
    for (size_t i = 0; i < NG_COUNT(questions); i++) {
        if (host->client_can(call, questions[i].kind)) {
            const struct ng_value *answer = host->ask(call, questions[i].key, questions[i].kind,
                                                      ng_str_of(questions[i].request));
            asked++;
            answered += answer != NULL ? 1 : 0;
        }
    }
    if (answered < asked) {
        return NG_EINPUT;
    }
    return ng_reply(call, host->format(call, "%zu questions were asked and answered", asked));
}
