/* SPDX-License-Identifier: MIT */
/* keys_spec.c - checks a request for a key; every refusal names the accepted values. */
#include "keys_table.h"

#include "core/base/clock.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"

#define RATE_MAX 1e6
#define RATE_MIN 1e-3
/* Bytes of a wrong value that a message quotes. */
#define SHOWN_MAX 80
#define MINUTE_S 60.0
#define HOUR_S 3600.0
/* Bytes of a user's name; a user with a longer one is named by the number. */
#define USER_NAME_SIZE 80

struct spec_reader {
    struct call *call;
    struct key_spec *spec;
    struct ng_str own; /* "~agent" */
    unsigned given;    /* members that the request has; enum key_member, or-ed */
};

static int shown(struct ng_str text)
{
    return (int)utf8_cut(text, SHOWN_MAX).len;
}

/* A member with a value; NULL: it is not there, or null, which means the default. */
static const struct ng_value *take_value(struct spec_reader *reader,
                                         const struct ng_value *object, const char *name,
                                         enum key_member member)
{
    const struct ng_value *value = json_get(object, name);
    reader->given |= value != NULL ? member : 0;
    return json_is(value, NG_TYPE_NULL) ? NULL : value;
}

/* A member that is a string; absent where it is not there or null. */
static int take_text(struct call *call, const struct ng_value *object, const char *name,
                     struct ng_str *ret)
{
    const struct ng_value *value = json_get(object, name);
    *ret = str_make(NULL, 0);
    if (value == NULL || value->type == NG_TYPE_NULL) {
        return NG_OK;
    }
    if (value->type != NG_TYPE_STRING) {
        return call_fail(call, NG_EINVAL, "`%s` must be a string", name);
    }
    *ret = value->text;
    return NG_OK;
}

static int check_members(struct call *call, const struct ng_value *object, bool patches)
{
    static const char known[] =
        "agent role mode run restore spaces tools no_tools rate expires note";
    if (object == NULL || object->type != NG_TYPE_OBJECT) {
        return call_fail(call, NG_EINVAL, "the body must be a JSON object with %s",
                         patches ? "the members to change" : "`agent`");
    }
    for (const struct ng_value *member = object->first; member != NULL; member = member->next) {
        if (!str_in_words(member->key, known) && !(patches && str_is(member->key, "paused"))) {
            return call_fail(call, NG_EINVAL,
                             "`%.*s` is not a member of a key; its members are agent, role, "
                             "mode, run, restore, spaces, tools, no_tools, rate, expires%s",
                             shown(member->key), member->key.data,
                             patches ? ", note and paused" : " and note");
        }
    }
    return NG_OK;
}

/* "~agent" */
static int name_own(struct spec_reader *reader)
{
    struct ng_str agent = reader->spec->agent;
    reader->own = arena_printf(&reader->call->arena, "~%.*s", (int)agent.len, agent.data);
    return reader->own.data != NULL ? NG_OK : call_no_memory(reader->call);
}

static int take_agent(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    struct key_spec *spec = reader->spec;
    int rc = take_text(call, object, "agent", &spec->agent);
    if (rc != NG_OK) {
        return rc;
    }
    if (!call_name_valid(spec->agent)) {
        return call_fail(call, NG_EINVAL,
                         "the agent name is \"%.*s\"; it must have 1 to 64 of the characters "
                         "A-Z a-z 0-9 . _ @ -",
                         shown(spec->agent), spec->agent.data == NULL ? "" : spec->agent.data);
    }
    return name_own(reader);
}

static int take_role(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    struct key_spec *spec = reader->spec;
    struct ng_str role;
    struct ng_str mode;
    (void)take_value(reader, object, "role", KEY_ROLE);
    (void)take_value(reader, object, "mode", KEY_MODE);
    int rc = take_text(call, object, "role", &role);
    if (rc == NG_OK) {
        rc = take_text(call, object, "mode", &mode);
    }
    if (rc != NG_OK) {
        return rc;
    }
    spec->role = NG_ROLE_WRITER;
    spec->mode = NG_MODE_AGENT;
    if (role.data != NULL && !key_parse_role(role, &spec->role)) {
        return call_fail(call, NG_EINVAL,
                         "the role is \"%.*s\", it must be reader, writer or admin",
                         shown(role), role.data);
    }
    if (mode.data != NULL && !key_parse_mode(mode, &spec->mode)) {
        return call_fail(call, NG_EINVAL, "the mode is \"%.*s\", it must be ask, edit or agent",
                         shown(mode), mode.data);
    }
    return NG_OK;
}

static int check_space(struct spec_reader *reader, const struct ng_value *item)
{
    struct call *call = reader->call;
    if (item->type != NG_TYPE_STRING) {
        return call_fail(call, NG_EINVAL, "`spaces` must be an array of strings");
    }
    struct ng_str space = item->text;
    struct ng_str name = space;
    bool own = space.len > 0 && space.data[0] == '~';
    if (own) {
        name = str_make(space.data + 1, space.len - 1);
    }
    if (!call_name_valid(name)) {
        return call_fail(call, NG_EINVAL,
                         "the space is \"%.*s\"; it must have 1 to 64 of the characters A-Z "
                         "a-z 0-9 . _ @ -, or be the agent's own, %.*s",
                         shown(space), space.data, (int)reader->own.len, reader->own.data);
    }
    return NG_OK;
}

/* The given spaces, each once; if none is given, the agent's own and shared. */
static int take_spaces(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    const struct ng_value *array = take_value(reader, object, "spaces", KEY_SPACES);
    const struct ng_value *item = NULL;
    size_t room = 2;
    if (array != NULL) {
        if (array->type != NG_TYPE_ARRAY || array->count > KEY_SPACES_MAX) {
            return call_fail(call, NG_EINVAL, "`spaces` must be an array of at most %d strings",
                             KEY_SPACES_MAX);
        }
        item = array->first;
        room += array->count;
    }
    struct ng_str *spaces = arena_alloc(&call->arena, room * sizeof(*spaces));
    size_t count = 0;
    if (spaces == NULL) {
        return call_no_memory(call);
    }
    for (; item != NULL; item = item->next) {
        int rc = check_space(reader, item);
        if (rc != NG_OK) {
            return rc;
        }
        if (!key_names_have(spaces, count, item->text)) {
            spaces[count++] = item->text;
        }
    }
    reader->spec->first_is_default = count > 0;
    if (count == 0) {
        spaces[count++] = reader->own;
        spaces[count++] = ng_str_of("shared");
    }
    reader->spec->spaces = spaces;
    reader->spec->space_count = count;
    return NG_OK;
}

static int take_tools(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    struct key_spec *spec = reader->spec;
    const struct ng_value *array = take_value(reader, object, "tools", KEY_TOOLS);
    if (array == NULL) {
        return NG_OK;
    }
    /* An empty list is refused: it would mean "all tools", but read as "none". */
    if (array->type != NG_TYPE_ARRAY || array->count == 0 || array->count > KEY_TOOLS_MAX) {
        return call_fail(call, NG_EINVAL,
                         "`tools` must be an array of 1 to %d strings; leave it out to allow "
                         "all tools",
                         KEY_TOOLS_MAX);
    }
    int rc = key_names_read(call, "tools", array, &spec->tools, &spec->tool_count);
    if (rc == NG_OK && key_names_have(spec->tools, spec->tool_count, ng_str_of("*"))) {
        spec->tool_count = 0; /* all */
    }
    return rc;
}

static int take_no_tools(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    struct key_spec *spec = reader->spec;
    const struct ng_value *array = take_value(reader, object, "no_tools", KEY_NO_TOOLS);
    if (array == NULL) {
        return NG_OK;
    }
    if (array->type != NG_TYPE_ARRAY || array->count > KEY_TOOLS_MAX) {
        return call_fail(call, NG_EINVAL, "`no_tools` must be an array of at most %d strings",
                         KEY_TOOLS_MAX);
    }
    return key_names_read(call, "no_tools", array, &spec->no_tools, &spec->no_tool_count);
}

/* "5", "5/s", "30/min", "100/h". */
static bool parse_rate(struct arena *arena, struct ng_str text, double *ret)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"/s", 1},          {"/sec", 1},    {"/m", MINUTE_S},
                 {"/min", MINUTE_S}, {"/h", HOUR_S}, {"", 1}};
    const struct ng_value *number = NULL;
    size_t len = 0;
    while (len < text.len && text.data[len] != '/') {
        len++;
    }
    struct ng_str unit = str_make(text.data + len, text.len - len);
    if (json_parse(arena, str_make(text.data, len), 1, &number, NULL) != NG_OK ||
        number->type != NG_TYPE_NUMBER) {
        return false;
    }
    for (size_t i = 0; i < NG_COUNT(units); i++) {
        if (str_is(unit, units[i].name)) {
            *ret = json_double(number) / units[i].seconds;
            return true;
        }
    }
    return false;
}

static int take_rate(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    const struct ng_value *value = take_value(reader, object, "rate", KEY_RATE);
    if (value == NULL) {
        return NG_OK;
    }
    double rate = 0; /* stays 0 if the value has no rate's form */
    if (value->type == NG_TYPE_NUMBER) {
        rate = json_double(value);
    } else if (value->type == NG_TYPE_STRING && !parse_rate(&call->arena, value->text, &rate)) {
        rate = 0;
    }
    if (!(rate >= RATE_MIN && rate <= RATE_MAX)) {
        return call_fail(call, NG_EINVAL,
                         "the rate is \"%.*s\"; write it as calls a second, 5 or 5/s, or as "
                         "30/min",
                         shown(value->text), value->text.data == NULL ? "" : value->text.data);
    }
    reader->spec->rate = rate;
    return NG_OK;
}

static int take_bool(struct spec_reader *reader, const struct ng_value *object,
                     const char *name, enum key_member member, bool *ret)
{
    const struct ng_value *value = take_value(reader, object, name, member);
    if (value != NULL && value->type != NG_TYPE_TRUE && value->type != NG_TYPE_FALSE) {
        return call_fail(reader->call, NG_EINVAL, "`%s` must be true or false", name);
    }
    *ret = json_is(value, NG_TYPE_TRUE);
    return NG_OK;
}

static int take_run(struct spec_reader *reader, const struct ng_value *object)
{
    int rc = take_bool(reader, object, "run", KEY_RUN, &reader->spec->run);
    if (rc != NG_OK) {
        return rc;
    }
    return take_bool(reader, object, "restore", KEY_RESTORE, &reader->spec->restore);
}

static int take_paused(struct spec_reader *reader, const struct ng_value *object)
{
    bool paused = false;
    int rc = take_bool(reader, object, "paused", KEY_PAUSED, &paused);
    reader->spec->paused_ms = paused ? clock_unix_ms() : 0;
    return rc;
}

static int take_expiry(struct spec_reader *reader, const struct ng_value *object)
{
    struct call *call = reader->call;
    struct key_spec *spec = reader->spec;
    struct ng_str text;
    (void)take_value(reader, object, "expires", KEY_EXPIRES);
    int rc = take_text(call, object, "expires", &text);
    if (rc != NG_OK || text.data == NULL) {
        return rc;
    }
    if (key_parse_expiry(text, spec->created_ms, &spec->expires_ms) != NG_OK) {
        return call_fail(call, NG_EINVAL,
                         "the expiry is \"%.*s\"; write it as 12h, 30d, 2027-01-31 or "
                         "2027-01-31T12:00:00Z, at most 100 years ahead",
                         shown(text), text.data);
    }
    if (spec->expires_ms <= spec->created_ms) {
        return call_fail(call, NG_EINVAL, "the expiry \"%.*s\" is in the past", shown(text),
                         text.data);
    }
    return NG_OK;
}

/* Is there a control character (C0, DEL, C1) or a line separator (U+2028, U+2029) at `at`? */
static bool is_control(struct ng_str text, size_t at)
{
    unsigned char byte = (unsigned char)text.data[at];
    unsigned char next = at + 1 < text.len ? (unsigned char)text.data[at + 1] : 0;
    unsigned char last = at + 2 < text.len ? (unsigned char)text.data[at + 2] : 0;
    return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next < 0xa0) ||
           (byte == 0xe2 && next == 0x80 && (last == 0xa8 || last == 0xa9));
}

bool key_note_valid(struct ng_str note)
{
    for (size_t i = 0; i < note.len; i++) {
        if (is_control(note, i)) {
            return false;
        }
    }
    return note.len > 0 && utf8_valid(note) && utf8_count(note) <= KEY_NOTE_CHARS;
}

static int take_note(struct spec_reader *reader, const struct ng_value *object)
{
    struct ng_str text;
    (void)take_value(reader, object, "note", KEY_NOTE);
    int rc = take_text(reader->call, object, "note", &text);
    if (rc == NG_OK && text.len > 0 && !key_note_valid(text)) {
        size_t count = utf8_count(text);
        if (count > KEY_NOTE_CHARS) {
            return call_fail(reader->call, NG_EINVAL,
                             "the note has %zu characters; at most %d are kept", count,
                             KEY_NOTE_CHARS);
        }
        return call_fail(reader->call, NG_EINVAL,
                         "the note has a line end or another control character; it "
                         "must be one line");
    }
    if (text.len > 0) {
        reader->spec->note = text;
    }
    return rc;
}

struct ng_str key_maker(struct call *call)
{
    char name[USER_NAME_SIZE];
    if (call->key != NULL) {
        return arena_printf(&call->arena, "agent %.*s (%s)", (int)call->caller.agent.len,
                            call->caller.agent.data, call->key->id);
    }
    if (call->user == CALL_NO_USER || !trust_knows_user(call->user)) {
        return str_make(NULL, 0);
    }
    trust_user_name(call->user, name, sizeof(name));
    if (name[0] == '#' || !key_note_valid(ng_str_of(name))) {
        return arena_printf(&call->arena, "unix user #%lu", (unsigned long)call->user);
    }
    return arena_printf(&call->arena, "unix user %s (%lu)", name, (unsigned long)call->user);
}

int key_spec_check(struct call *call, const struct key_spec *spec, unsigned members)
{
    for (size_t i = 0; i < spec->space_count && spec->role != NG_ROLE_ADMIN; i++) {
        struct ng_str space = spec->spaces[i];
        bool is_own = space.len == spec->agent.len + 1 &&
                      memcmp(space.data + 1, spec->agent.data, spec->agent.len) == 0;
        if (space.len > 0 && space.data[0] == '~' && !is_own) {
            return call_fail(call, NG_EINVAL,
                             "the space \"%.*s\" is another agent's own; only that agent and "
                             "the role admin may use it",
                             shown(space), space.data);
        }
    }
    if ((members & (KEY_TOOLS | KEY_NO_TOOLS)) != 0 &&
        !key_spec_allows_tool(call->gateway->registry, spec)) {
        return call_fail(call, NG_EINVAL,
                         "`no_tools` excludes every tool that `tools` allows, so the key could "
                         "use none");
    }
    return NG_OK;
}

static int (*const steps[])(struct spec_reader *, const struct ng_value *) = {
    take_role, take_spaces, take_tools, take_no_tools,
    take_rate, take_run,    take_note,  take_expiry,
};

static int take_all(struct spec_reader *reader, const struct ng_value *object)
{
    int rc = NG_OK;
    reader->spec->created_ms = clock_unix_ms();
    for (size_t i = 0; rc == NG_OK && i < NG_COUNT(steps); i++) {
        rc = steps[i](reader, object);
    }
    return rc;
}

int keys_read_spec(struct call *call, const struct ng_value *object, struct key_spec *ret)
{
    struct spec_reader reader = {.call = call, .spec = ret};
    memset(ret, 0, sizeof(*ret));
    int rc = check_members(call, object, false);
    if (rc == NG_OK) {
        rc = take_agent(&reader, object);
    }
    if (rc == NG_OK) {
        rc = take_all(&reader, object);
    }
    if (rc == NG_OK) {
        rc = key_spec_check(call, ret, reader.given);
    }
    return rc;
}

int keys_read_patch(struct call *call, struct ng_str agent, const struct ng_value *object,
                    struct key_patch *ret)
{
    struct spec_reader reader = {.call = call, .spec = &ret->spec};
    struct ng_str named;
    memset(ret, 0, sizeof(*ret));
    ret->spec.agent = agent;
    int rc = check_members(call, object, true);
    if (rc == NG_OK) {
        rc = take_text(call, object, "agent", &named);
    }
    if (rc == NG_OK && named.data != NULL && !str_equal(named, agent)) {
        rc = call_fail(call, NG_EINVAL,
                       "the agent of a key does not change, it is %.*s; add another key for "
                       "\"%.*s\"",
                       (int)agent.len, agent.data, shown(named), named.data);
    }
    if (rc == NG_OK) {
        rc = name_own(&reader);
    }
    if (rc == NG_OK) {
        rc = take_all(&reader, object);
    }
    if (rc == NG_OK) {
        rc = take_paused(&reader, object);
    }
    ret->members = reader.given;
    if (rc == NG_OK && ret->members == 0) {
        rc = call_fail(call, NG_EINVAL,
                       "nothing to change: name a member of the key, for example `mode` or "
                       "`paused`");
    }
    return rc;
}
