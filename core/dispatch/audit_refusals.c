/* SPDX-License-Identifier: MIT */
/* audit_refusals.c - counts refusals by agent and error code, for the audit log. */
#include "audit_refusals.h"

#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#define LINE_INTERVAL_NS ((int64_t)1000000000)
#define NAME_MAX_BYTES 64
#define TARGET_MAX_BYTES 256

struct kept_text {
    size_t len;
    bool has;
    char data[TARGET_MAX_BYTES];
};

/* The last refusal of an agent with a code. */
struct pair {
    const char *code; /* NULL: free */
    char agent[NAME_MAX_BYTES];
    size_t agent_len;
    int64_t told_ns; /* its last line */
    unsigned untold; /* refusals since then */
    struct kept_text key, remote, event, tool, method, target;
};

struct audit_refusals {
    struct lock lock;
    enum audit_refusals_kind kind;
    struct pair pairs[AUDIT_REFUSALS_MAX];
};

struct audit_refusals *audit_refusals_new(enum audit_refusals_kind kind)
{
    struct audit_refusals *refusals = alloc_zeroed(1, sizeof(*refusals));
    if (refusals != NULL) {
        lock_init(&refusals->lock, LOCK_AUDIT);
        refusals->kind = kind;
    }
    return refusals;
}

static void keep(struct kept_text *kept, struct ng_str text)
{
    text = utf8_cut(text, sizeof(kept->data));
    kept->has = text.data != NULL;
    kept->len = text.len;
    if (text.data != NULL) {
        memcpy(kept->data, text.data, text.len);
    }
}

static struct ng_str kept_str(const struct kept_text *kept)
{
    return str_make(kept->has ? kept->data : NULL, kept->len);
}

/* The line of refusals that no line of their own has told: of the last one, with their count.
 */
static void write_line(struct pair *pair)
{
    struct log_record record;
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "event", kept_str(&pair->event));
    log_record_text(&record, "tool", kept_str(&pair->tool));
    log_record_text(&record, "method", kept_str(&pair->method));
    log_record_text(&record, "outcome", ng_str_of(pair->code));
    log_record_int(&record, "count", pair->untold);
    log_record_text(&record, "target", kept_str(&pair->target));
    log_record_text(&record, "agent",
                    str_make(pair->agent_len > 0 ? pair->agent : NULL, pair->agent_len));
    log_record_text(&record, "key", kept_str(&pair->key));
    log_record_text(&record, "remote", kept_str(&pair->remote));
    log_record_end(&record, "%u refused %s", pair->untold, pair->code);
    pair->untold = 0;
}

/* The pair's place; a new pair takes a free one, or that of the oldest. With the lock held. */
static struct pair *place_of(struct audit_refusals *refusals, const char *code,
                             struct ng_str agent)
{
    struct pair *oldest = &refusals->pairs[0];
    for (size_t i = 0; i < AUDIT_REFUSALS_MAX; i++) {
        struct pair *pair = &refusals->pairs[i];
        if (pair->code != NULL && strcmp(pair->code, code) == 0 &&
            str_equal(str_make(pair->agent, pair->agent_len), agent)) {
            return pair;
        }
        if (oldest->code != NULL && (pair->code == NULL || pair->told_ns < oldest->told_ns)) {
            oldest = pair;
        }
    }
    if (oldest->untold > 0) {
        write_line(oldest);
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->code = code;
    memcpy(oldest->agent, agent.data, agent.len);
    oldest->agent_len = agent.len;
    oldest->told_ns = INT64_MIN;
    return oldest;
}

unsigned audit_refusals_count(struct audit_refusals *refusals,
                              const struct audit_refusal *refusal, int64_t now_ns)
{
    unsigned count = 0;
    struct ng_str agent = utf8_cut(refusal->agent, NAME_MAX_BYTES);
    lock_take(&refusals->lock);
    struct pair *pair = place_of(refusals, refusal->code, agent);
    pair->untold++;
    if (pair->told_ns == INT64_MIN || now_ns - pair->told_ns >= LINE_INTERVAL_NS) {
        count = pair->untold;
        pair->untold = 0;
        pair->told_ns = now_ns;
    } else if (refusals->kind == AUDIT_REFUSALS_ENTRIES) {
        pair->untold = 0;
    } else {
        keep(&pair->key, refusal->key);
        keep(&pair->remote, refusal->remote);
        keep(&pair->event, refusal->event);
        keep(&pair->tool, refusal->tool);
        keep(&pair->method, refusal->method);
        keep(&pair->target, refusal->target);
    }
    lock_release(&refusals->lock);
    return count;
}

void audit_refusals_tell(struct audit_refusals *refusals)
{
    lock_take(&refusals->lock);
    for (size_t i = 0; i < AUDIT_REFUSALS_MAX; i++) {
        if (refusals->pairs[i].untold > 0) {
            write_line(&refusals->pairs[i]);
        }
    }
    lock_release(&refusals->lock);
}

void audit_refusals_free(struct audit_refusals *refusals)
{
    if (refusals == NULL) {
        return;
    }
    audit_refusals_tell(refusals);
    lock_done(&refusals->lock);
    free(refusals);
}
