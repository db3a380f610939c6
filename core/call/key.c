/* SPDX-License-Identifier: MIT */
/* key.c - one key: its references, its rights, its token bucket. */
#include "key.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/glob.h"

/* A bucket holds this many seconds of its rate, and one call at least. */
#define KEY_BURST_S 2.0

void key_free(struct key *key)
{
    key_unref(key->first);
    lock_done(&key->lock);
    arena_done(key->memory);
    free(key->memory);
    free(key);
}

const char *key_why_ended(const struct key *key)
{
    if (key_is_revoked(key)) {
        return "was revoked";
    }
    return key_is_paused(key) ? "is paused" : "has expired";
}

static bool any_matches(const struct ng_str *globs, size_t count, struct ng_str tool)
{
    for (size_t i = 0; i < count; i++) {
        if (glob_match(globs[i], tool)) {
            return true;
        }
    }
    return false;
}

bool key_excludes_tool(const struct key *key, struct ng_str tool)
{
    return any_matches(key->no_tools, key->no_tool_count, tool);
}

bool key_lists_tool(const struct key *key, const char *tool)
{
    struct ng_str name = ng_str_of(tool);
    return (key->tool_count == 0 || any_matches(key->tools, key->tool_count, name)) &&
           !key_excludes_tool(key, name);
}

bool key_has_space(const struct key *key, struct ng_str space)
{
    for (size_t i = 0; i < key->space_count; i++) {
        if (str_equal(key->spaces[i], space)) {
            return true;
        }
    }
    return false;
}

static double key_burst(const struct key *key)
{
    double burst = key->rate * KEY_BURST_S;
    if (burst < 1.0) {
        return 1.0;
    }
    return burst;
}

void key_fill(struct key *key, int64_t now_ns)
{
    struct key *state = key_state(key);
    state->tokens = key_burst(key);
    state->filled_ns = now_ns;
}

bool key_take_at(struct key *key, int64_t now_ns, int *ret_retry_s)
{
    if (key == NULL || key->rate <= 0) {
        return true;
    }
    struct key *state = key_state(key);
    lock_take(&state->lock);
    double burst = key_burst(key);
    /* Two threads may come with times in the other order. */
    if (now_ns > state->filled_ns) {
        state->tokens += (double)(now_ns - state->filled_ns) / 1e9 * key->rate;
        if (state->tokens > burst) {
            state->tokens = burst;
        }
        state->filled_ns = now_ns;
    }
    bool taken = state->tokens >= 1.0;
    if (taken) {
        state->tokens -= 1.0;
    } else {
        double wait = ceil((1.0 - state->tokens) / key->rate);
        if (wait < 1.0) {
            *ret_retry_s = 1;
        } else if (wait > KEY_RETRY_MAX_S) {
            *ret_retry_s = KEY_RETRY_MAX_S;
        } else {
            *ret_retry_s = (int)wait;
        }
    }
    lock_release(&state->lock);
    return taken;
}

/* ---- roles and modes ---- */

static const struct {
    const char *name;
    enum ng_role role;
} roles[] = {{"reader", NG_ROLE_READER}, {"writer", NG_ROLE_WRITER}, {"admin", NG_ROLE_ADMIN}};

static const struct {
    const char *name;
    enum ng_mode mode;
} modes[] = {{"ask", NG_MODE_ASK}, {"edit", NG_MODE_EDIT}, {"agent", NG_MODE_AGENT}};

const char *key_role_name(enum ng_role role)
{
    for (size_t i = 0; i < NG_COUNT(roles); i++) {
        if (roles[i].role == role) {
            return roles[i].name;
        }
    }
    return "none";
}

const char *key_mode_name(enum ng_mode mode)
{
    for (size_t i = 0; i < NG_COUNT(modes); i++) {
        if (modes[i].mode == mode) {
            return modes[i].name;
        }
    }
    return "none";
}

bool key_parse_role(struct ng_str text, enum ng_role *ret)
{
    for (size_t i = 0; i < NG_COUNT(roles); i++) {
        if (str_is(text, roles[i].name)) {
            *ret = roles[i].role;
            return true;
        }
    }
    return false;
}

bool key_parse_mode(struct ng_str text, enum ng_mode *ret)
{
    for (size_t i = 0; i < NG_COUNT(modes); i++) {
        if (str_is(text, modes[i].name)) {
            *ret = modes[i].mode;
            return true;
        }
    }
    return false;
}
