/* SPDX-License-Identifier: MIT */
/* memory.c - what the memory tools share: ids, times, agents, entries of the journal as JSON.
 */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define MEMORY_AGENT "agent:"

int memory_no_room(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory");
}

const struct ng_journal *memory_journal(struct ng_call *call, void **ret_handle)
{
    return call->host->journal(call, ret_handle);
}

/* ---- names ---- */

/* Random bytes as hexadecimal digits, in call memory. */
static struct ng_str memory_random(struct ng_call *call, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[16];
    struct ng_str none = {NULL, 0};
    char *text = ng_alloc(call, 2 * count + 1);
    if (text == NULL || getrandom(bytes, count, 0) != (ssize_t)count) {
        (void)ng_fail(call, NG_EINTERNAL, "no id could be made");
        return none;
    }
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 0xf];
    }
    text[2 * count] = '\0';
    return ng_str_of(text);
}

struct ng_str memory_id(struct ng_call *call)
{
    return memory_random(call, (MEMORY_ID_SIZE - 1) / 2);
}

/* Of 32 hexadecimal digits or more. */
static struct ng_str memory_uuid_of(struct ng_call *call, struct ng_str hex)
{
    static const size_t dashes[] = {8, 13, 18, 23};
    struct ng_str uuid = {NULL, 0};
    char *text = hex.data == NULL ? NULL : ng_alloc(call, MEMORY_UUID_SIZE);
    if (text == NULL) {
        return uuid;
    }
    size_t at = 0;
    for (size_t i = 0; i < MEMORY_UUID_SIZE - 1; i++) {
        bool dash = false;
        for (size_t j = 0; j < NG_COUNT(dashes); j++) {
            dash = dash || dashes[j] == i;
        }
        text[i] = dash ? '-' : hex.data[at++];
    }
    text[14] = '4';                             /* version: random */
    text[19] = "89ab"[(hex.data[16] >> 1) & 3]; /* variant */
    text[MEMORY_UUID_SIZE - 1] = '\0';
    return ng_str_of(text);
}

struct ng_str memory_uuid(struct ng_call *call)
{
    return memory_uuid_of(call, memory_random(call, 16));
}

struct ng_str memory_uuid_once(struct ng_call *call)
{
    return memory_uuid_of(call, call->host->idempotency_token(call));
}

bool memory_same(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool memory_is(struct ng_str a, const char *text)
{
    return memory_same(a, ng_str_of(text));
}

struct ng_str memory_agent_name(struct ng_str agent)
{
    size_t prefix = sizeof(MEMORY_AGENT) - 1;
    if (agent.len > prefix && memcmp(agent.data, MEMORY_AGENT, prefix) == 0) {
        agent.data += prefix;
        agent.len -= prefix;
    }
    return agent;
}

struct ng_str memory_agent(struct ng_call *call, struct ng_str name)
{
    struct ng_str bare = memory_agent_name(name);
    return call->host->format(call, MEMORY_AGENT "%.*s", (int)bare.len,
                              bare.data == NULL ? "" : bare.data);
}

struct ng_str memory_cut(struct ng_str text, size_t characters)
{
    size_t seen = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (((unsigned char)text.data[i] & 0xc0) != 0x80 && seen++ == characters) {
            text.len = i;
        }
    }
    return text;
}

/* ---- times ---- */

struct ng_str memory_time(struct ng_call *call, int64_t ms)
{
    struct tm tm;
    struct ng_str none = {NULL, 0};
    time_t seconds = (time_t)(ms / 1000);
    char *text = ng_alloc(call, MEMORY_TIME_SIZE);
    if (text == NULL || ms < 0 || gmtime_r(&seconds, &tm) == NULL) {
        return none;
    }
    (void)snprintf(text, MEMORY_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                   (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_mon + 1,
                   (unsigned)tm.tm_mday, (unsigned)tm.tm_hour, (unsigned)tm.tm_min,
                   (unsigned)tm.tm_sec % 100, (unsigned)(ms % 1000));
    return ng_str_of(text);
}

/* `digits` digits at *at, and the character behind them if there is one to come. */
static bool memory_number(struct ng_str text, size_t *at, size_t digits, int most, int *ret)
{
    int number = 0;
    for (size_t i = 0; i < digits; i++) {
        if (*at >= text.len || text.data[*at] < '0' || text.data[*at] > '9') {
            return false;
        }
        number = number * 10 + (text.data[(*at)++] - '0');
    }
    *ret = number;
    return number <= most;
}

static bool memory_skip(struct ng_str text, size_t *at, char wanted)
{
    if (*at < text.len && text.data[*at] == wanted) {
        (*at)++;
        return true;
    }
    return false;
}

/* "Z", "+02:00" or nothing, to the end of the text. */
static bool memory_zone(struct ng_str text, size_t at, int64_t *ret_seconds)
{
    int hours = 0;
    int minutes = 0;
    *ret_seconds = 0;
    if (at == text.len || (text.len - at == 1 && text.data[at] == 'Z')) {
        return true;
    }
    bool west = text.data[at] == '-';
    if (!west && text.data[at] != '+') {
        return false;
    }
    at++;
    if (!memory_number(text, &at, 2, 23, &hours) || !memory_skip(text, &at, ':') ||
        !memory_number(text, &at, 2, 59, &minutes)) {
        return false;
    }
    *ret_seconds = (west ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return at == text.len;
}

/* "T10:30", with seconds and parts of them or without. */
static bool memory_clock(struct ng_str text, size_t *at, struct tm *tm, int64_t *ret_ms)
{
    int digit = 0;
    int64_t unit = 100;
    if ((!memory_skip(text, at, 'T') && !memory_skip(text, at, ' ')) ||
        !memory_number(text, at, 2, 23, &tm->tm_hour) || !memory_skip(text, at, ':') ||
        !memory_number(text, at, 2, 59, &tm->tm_min)) {
        return false;
    }
    if (!memory_skip(text, at, ':')) {
        return true;
    }
    if (!memory_number(text, at, 2, 60, &tm->tm_sec)) {
        return false;
    }
    if (memory_skip(text, at, '.')) {
        while (memory_number(text, at, 1, 9, &digit)) {
            *ret_ms += digit * unit;
            unit /= 10;
        }
    }
    return true;
}

bool memory_time_read(struct ng_str text, int64_t *ret_ms)
{
    struct tm tm = {0};
    size_t at = 0;
    int64_t ms = 0;
    int64_t zone = 0;
    if (!memory_number(text, &at, 4, 9999, &tm.tm_year) || !memory_skip(text, &at, '-') ||
        !memory_number(text, &at, 2, 12, &tm.tm_mon) || !memory_skip(text, &at, '-') ||
        !memory_number(text, &at, 2, 31, &tm.tm_mday) || tm.tm_mon == 0 || tm.tm_mday == 0) {
        return false;
    }
    int day = tm.tm_mday;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (at < text.len &&
        (!memory_clock(text, &at, &tm, &ms) || !memory_zone(text, at, &zone))) {
        return false;
    }
    time_t seconds = timegm(&tm);
    if (tm.tm_mday != day || seconds < 0) {
        return false; /* the 31st of a month that has 30 days */
    }
    *ret_ms = ((int64_t)seconds - zone) * 1000 + ms;
    return true;
}

/* ---- JSON ---- */

void memory_put(struct ng_call *call, struct ng_writer *writer, const char *name,
                struct ng_str text)
{
    if (text.data != NULL) {
        call->host->json_name(writer, name);
        call->host->json_string(writer, text);
    }
}

void memory_put_int(struct ng_call *call, struct ng_writer *writer, const char *name,
                    uint64_t number)
{
    call->host->json_name(writer, name);
    call->host->json_int(writer, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

struct ng_str memory_text(struct ng_call *call, const struct ng_value *body, const char *name)
{
    return call->host->json_text(call->host->json_get(body, name));
}

uint64_t memory_int(struct ng_call *call, const struct ng_value *body, const char *name)
{
    int64_t number = 0;
    (void)call->host->json_integer(call->host->json_get(body, name), &number);
    return number < 0 ? 0 : (uint64_t)number;
}

static void memory_write_reference(struct ng_call *call, struct ng_writer *writer,
                                   const struct ng_entry *entry)
{
    const struct ng_value *data = NULL;
    memory_put(call, writer, "type", ng_str_of("notebook_ref"));
    memory_put(call, writer, "action", entry->action);
    memory_put(call, writer, "notebook_id", entry->id);
    memory_put(call, writer, "title", entry->title);
    memory_put(call, writer, "summary", entry->content);
    memory_put(call, writer, "collection", entry->collection);
    memory_put(call, writer, "status", entry->status);
    memory_put_int(call, writer, "version", entry->version);
    if (entry->data.len > 0 && call->host->json_parse(call, entry->data, &data) == NG_OK) {
        call->host->json_name(writer, "data");
        call->host->json_copy(writer, data);
    }
}

void memory_write_entry(struct ng_call *call, struct ng_writer *writer,
                        const struct ng_entry *entry)
{
    const struct ng_host *host = call->host;
    host->json_object(writer);
    if (entry->kind == NG_ENTRY_MEMORY) {
        memory_put(call, writer, "type", ng_str_of("memory"));
        memory_put(call, writer, "memory_id", entry->event_id);
        memory_put(call, writer, "content", entry->content);
        memory_put(call, writer, "source", entry->source);
        host->json_name(writer, "score");
        host->json_number(writer, entry->score);
    } else {
        memory_write_reference(call, writer, entry);
    }
    host->json_name(writer, "tags");
    host->json_array(writer);
    for (size_t i = 0; i < entry->tag_count; i++) {
        host->json_string(writer, entry->tags[i]);
    }
    host->json_end(writer);
    memory_put(call, writer, "timestamp", memory_time(call, entry->time_ms));
    memory_put(call, writer, "agent", memory_agent(call, entry->agent));
    memory_put(call, writer, "event_id", entry->event_id);
    host->json_end(writer);
}

/* ---- arguments, waiting ---- */

int memory_list(struct ng_call *call, const char *argument, const struct ng_str **ret,
                size_t *ret_count)
{
    const struct ng_host *host = call->host;
    const struct ng_value *array = ng_arg(call, argument);
    size_t count = host->json_count(array);
    struct ng_str *list = ng_alloc(call, (count + 1) * sizeof(*list));
    if (list == NULL) {
        return memory_no_room(call);
    }
    size_t kept = 0;
    for (const struct ng_value *item = host->json_first(array); item != NULL;
         item = host->json_next(item)) {
        list[kept++] = host->json_text(item);
    }
    *ret = list;
    *ret_count = kept;
    return NG_OK;
}

int memory_flush(struct ng_call *call, uint64_t *ret_backlog)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    *ret_backlog = 0;
    return journal->flush(handle, call, MEMORY_FLUSH_MS, ret_backlog);
}
