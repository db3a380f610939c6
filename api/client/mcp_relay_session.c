/* SPDX-License-Identifier: MIT */
/* mcp_relay_session.c - a restarted gateway has lost its sessions: the relay opens another one
 * as its client did, and repeats the client's settings. */
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "mcp_relay_job.h"

/* The settings that a client made in its session and did not take back. */
struct relay_setting {
    struct relay_setting *next;
    char name[RELAY_NAME_MAX]; /* the resource's; "" for the level of the log */
    struct buf body;
};

static void setting_free(struct relay_setting *setting)
{
    buf_done(&setting->body);
    free(setting);
}

/* Under the lock. */
static void forget_setting(struct relay *relay, const char *name)
{
    struct relay_setting **at = &relay->settings;
    while (*at != NULL && strcmp((*at)->name, name) != 0) {
        at = &(*at)->next;
    }
    struct relay_setting *found = *at;
    if (found != NULL) {
        *at = found->next;
        relay->setting_count--;
        setting_free(found);
    }
}

static void keep_setting(struct relay *relay, const char *name, struct ng_str body)
{
    struct relay_setting *setting = alloc_zeroed(1, sizeof(*setting));
    forget_setting(relay, name);
    if (setting == NULL || relay->setting_count >= RELAY_SETTINGS_MAX) {
        free(setting);
        return;
    }
    memcpy(setting->name, name, strlen(name) + 1);
    buf_init(&setting->body, body.len);
    if (buf_add_str(&setting->body, body) != NG_OK) {
        setting_free(setting);
        return;
    }
    setting->next = relay->settings;
    relay->settings = setting;
    relay->setting_count++;
}

void relay_session_note(struct relay *relay, const struct relay_job *job)
{
    const char *method = job->message.method;
    struct ng_str body = buf_str(&job->body);
    if (job->message.version[0] != '\0') {
        return;
    }
    lock_take(&relay->lock);
    if (job->message.is_initialize) {
        buf_clear(&relay->initialize);
        (void)buf_add_str(&relay->initialize, body);
        while (relay->settings != NULL) {
            forget_setting(relay, relay->settings->name);
        }
    } else if (strcmp(method, "logging/setLevel") == 0) {
        keep_setting(relay, "", body);
    } else if (strcmp(method, "resources/subscribe") == 0 && job->message.name[0] != '\0') {
        keep_setting(relay, job->message.name, body);
    } else if (strcmp(method, "resources/unsubscribe") == 0) {
        forget_setting(relay, job->message.name);
    }
    lock_release(&relay->lock);
}

/* Sends a message of the relay itself; its answer is discarded. */
static bool say(struct relay *relay, struct ng_str body)
{
    struct relay_job *job = relay_job_new(relay);
    bool ok = job != NULL && buf_add_str(&job->body, body) == NG_OK;
    if (ok) {
        relay_message_read(buf_str(&job->body), &job->message);
        job->kind = RELAY_JOB_OWN;
        ok = relay_job_try(job);
    }
    if (job != NULL) {
        relay_job_free(job);
    }
    return ok;
}

/* The next setting's message, of which `done` were said; "" when there are no more. */
static void copy_setting(struct relay *relay, size_t done, struct buf *out)
{
    buf_clear(out);
    lock_take(&relay->lock);
    const struct relay_setting *setting = relay->settings;
    for (; setting != NULL && done > 0; done--) {
        setting = setting->next;
    }
    if (setting != NULL) {
        (void)buf_add_str(out, buf_str(&setting->body));
    }
    lock_release(&relay->lock);
}

static bool open_again(struct relay *relay)
{
    struct buf text;
    size_t done = 0;
    buf_init(&text, ATTACH_ANSWER_MAX);
    lock_take(&relay->lock);
    (void)buf_add_str(&text, buf_str(&relay->initialize));
    lock_release(&relay->lock);
    bool ok = text.len > 0 && say(relay, buf_str(&text)) &&
              say(relay, ng_str_of("{\"jsonrpc\":\"2.0\",\"method\":"
                                   "\"notifications/initialized\"}"));
    if (ok) {
        copy_setting(relay, done, &text);
    }
    while (ok && text.len > 0) {
        (void)say(relay, buf_str(&text));
        copy_setting(relay, ++done, &text);
    }
    buf_done(&text);
    return ok;
}

bool relay_session_again(struct relay *relay, const char *lost)
{
    lock_take(&relay->opening);
    lock_take(&relay->lock);
    bool ok = strcmp(relay->session, lost) != 0; /* another thread did it */
    lock_release(&relay->lock);
    ok = ok || open_again(relay);
    lock_release(&relay->opening);
    return ok;
}

void relay_session_done(struct relay *relay)
{
    while (relay->settings != NULL) {
        forget_setting(relay, relay->settings->name);
    }
    buf_done(&relay->initialize);
}
