/* SPDX-License-Identifier: MIT */
/* key.c - one key: its references, its rights, its token bucket. */
#include "key.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/str.h"

/* A bucket holds this many seconds of its rate, and one call at least. */
#define KEY_BURST_S 2.0

void key_free(struct key *key)
{
    lock_done(&key->lock);
    arena_done(key->memory);
    free(key->memory);
    free(key);
}

bool key_lists_tool(const struct key *key, const char *tool)
{
    for (size_t i = 0; i < key->tool_count; i++) {
        if (str_is(key->tools[i], tool)) {
            return true;
        }
    }
    return false;
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
    key->tokens = key_burst(key);
    key->filled_ns = now_ns;
}

bool key_take_at(struct key *key, int64_t now_ns, int *ret_retry_s)
{
    if (key == NULL || key->rate <= 0) {
        return true;
    }
    lock_take(&key->lock);
    double burst = key_burst(key);
    /* Two threads may come with times in the other order. */
    if (now_ns > key->filled_ns) {
        key->tokens += (double)(now_ns - key->filled_ns) / 1e9 * key->rate;
        if (key->tokens > burst) {
            key->tokens = burst;
        }
        key->filled_ns = now_ns;
    }
    bool taken = key->tokens >= 1.0;
    if (taken) {
        key->tokens -= 1.0;
    } else {
        double wait = ceil((1.0 - key->tokens) / key->rate);
        if (wait < 1.0) {
            *ret_retry_s = 1;
        } else if (wait > KEY_RETRY_MAX_S) {
            *ret_retry_s = KEY_RETRY_MAX_S;
        } else {
            *ret_retry_s = (int)wait;
        }
    }
    lock_release(&key->lock);
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
