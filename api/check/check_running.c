/* SPDX-License-Identifier: MIT */
/* check_running.c - asks the running gateway for its state, its keys and its configuration. */
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/keys/keys.h"

/* Memory of an answer as a tree. */
#define CHECK_ANSWER_MAX ((size_t)256 * 1024 * 1024)
/* The configuration as JSON. */
#define CHECK_VALUES_MAX ((size_t)4 * 1024 * 1024)

void check_running_runners(struct check *check)
{
    struct attach_answer answer;
    struct client_request request = {.method = "GET", .path = "/v1/keys?all=true"};
    struct arena arena;
    struct buf text;
    const struct ng_value *body = NULL;
    arena_init(&arena, CHECK_ANSWER_MAX);
    buf_init(&text, CHECK_ERROR_MAX);
    struct stat info;
    uid_t user = stat(check->attach.data_dir, &info) == 0 ? info.st_uid : geteuid();
    bool told =
        attach_request(&check->attach, &request, &answer) == NG_OK && answer.status == 200 &&
        json_parse(&arena, buf_str(&answer.body), JSON_DEPTH_DEFAULT, &body, NULL) == NG_OK &&
        keys_listed_runners(&arena, json_get(body, "keys"), user, &text) == NG_OK;
    check_line(check, told, "run code", "%s",
               told ? buf_cstr(&text) : "the gateway does not show its keys");
    attach_answer_done(&answer);
    buf_done(&text);
    arena_done(&arena);
}

/* ---- values ---- */

static const struct ng_value *values_find(const struct ng_value *keys, struct ng_str name)
{
    const struct ng_value *at = json_first(keys);
    while (at != NULL && !str_equal(json_get_text(at, "key"), name)) {
        at = at->next;
    }
    return at;
}

/* Is it the default, or a key of a module that is not there? */
static bool value_is_default(const struct ng_value *value)
{
    return value == NULL || str_is(json_get_text(value, "source"), "default");
}

/* Defaults that differ by terminal, cores and the way a path is written tell nothing. */
static bool value_is_told(struct ng_str name, const struct ng_value *theirs,
                          const struct ng_value *ours)
{
    bool both_default = value_is_default(theirs) && value_is_default(ours);
    if (str_is(name, "data_dir") ||
        (both_default && (theirs == NULL || ours == NULL ||
                          str_in_words(name, "roots limits.workers log.format")))) {
        return false;
    }
    return !str_equal(json_get_text(theirs, "value"), json_get_text(ours, "value"));
}

static struct ng_str value_text(const struct ng_value *value)
{
    return str_or(json_get_text(value, "value"), ng_str_of("no value"));
}

static struct ng_str value_source(const struct ng_value *value)
{
    return str_or(json_get_text(value, "source"), ng_str_of("unknown key"));
}

static size_t values_tell(struct check *check, const struct ng_value *listed,
                          const struct ng_value *theirs, const struct ng_value *ours,
                          bool only_new)
{
    size_t told = 0;
    for (const struct ng_value *at = json_first(listed); at != NULL; at = at->next) {
        struct ng_str name = json_get_text(at, "key");
        const struct ng_value *value = values_find(theirs, name);
        const struct ng_value *own = values_find(ours, name);
        if ((only_new && value != NULL) || !value_is_told(name, value, own)) {
            continue;
        }
        struct ng_str shown = value_text(value);
        struct ng_str source = value_source(value);
        struct ng_str own_shown = value_text(own);
        struct ng_str own_source = value_source(own);
        check_line(check, true, "difference",
                   "%.*s: the gateway runs with %.*s (%.*s), this check with %.*s (%.*s)",
                   (int)name.len, name.data, (int)shown.len, shown.data, (int)source.len,
                   source.data, (int)own_shown.len, own_shown.data, (int)own_source.len,
                   own_source.data);
        told++;
    }
    return told;
}

/* The sentence of a refusal; of an older gateway, which does not know the route, another. */
static void values_refused(struct check *check, struct arena *arena,
                           const struct attach_answer *answer)
{
    const struct ng_value *error = NULL;
    struct ng_str why = ng_str_of("it is of an older version, which does not show them");
    if (answer->status != 404) {
        (void)json_parse(arena, buf_str(&answer->body), JSON_DEPTH_DEFAULT, &error, NULL);
        why = str_or(json_get_text(error, "message"), ng_str_of("it does not show them"));
    }
    check_line(check, true, "values",
               "those of the running gateway are unknown, and may differ from the ones of this "
               "check: %.*s",
               (int)why.len, why.data);
}

/* The lines above describe the configuration of this command, which the gateway may not have.
 */
static void check_values_in_effect(struct check *check)
{
    struct attach_answer answer;
    struct client_request request = {.method = "GET", .path = "/v1/config"};
    struct arena arena;
    struct buf own;
    const struct ng_value *theirs = NULL;
    const struct ng_value *ours = NULL;
    arena_init(&arena, CHECK_ANSWER_MAX);
    buf_init(&own, CHECK_VALUES_MAX);
    if (attach_request(&check->attach, &request, &answer) != NG_OK || answer.status != 200) {
        values_refused(check, &arena, &answer);
    } else if (config_print(check->described->config, NULL, NULL, &own) != NG_OK ||
               json_parse(&arena, buf_str(&answer.body), JSON_DEPTH_DEFAULT, &theirs, NULL) !=
                   NG_OK ||
               json_parse(&arena, buf_str(&own), JSON_DEPTH_DEFAULT, &ours, NULL) != NG_OK) {
        check_line(check, false, "values", "out of memory for the configuration");
    } else {
        theirs = json_get(theirs, "keys");
        ours = json_get(ours, "keys");
        size_t told = values_tell(check, theirs, theirs, ours, false) +
                      values_tell(check, ours, theirs, ours, true);
        if (told == 0) {
            check_line(check, true, "values",
                       "the running gateway has those of this check; secrets are not compared");
        }
    }
    attach_answer_done(&answer);
    arena_done(&arena);
    buf_done(&own);
}

void check_running(struct check *check)
{
    struct attach_answer answer;
    struct client_request request = {.method = "GET", .path = "/readyz"};
    if (attach_request(&check->attach, &request, &answer) != NG_OK) {
        check_line(check, false, "gateway",
                   "a process holds the data directory but does not answer");
    } else {
        struct ng_str body = buf_str(&answer.body);
        while (body.len > 0 && body.data[body.len - 1] == '\n') {
            body.len--;
        }
        check_line(check, answer.status == 200, "gateway", "serving; %.*s", (int)body.len,
                   body.data);
    }
    attach_answer_done(&answer);
    check_values_in_effect(check);
}
