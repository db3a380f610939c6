/* SPDX-License-Identifier: MIT */
/* every.c - a plugin that uses every member of the host table and of the descriptors of ABI 1
 * as it was frozen. It is compiled with the headers beside it and loaded by every later build:
 * this file never changes. */
#define NG_ABI 1
#include <notegate/plugin.h>

#include <stdio.h>
#include <stdlib.h>

#define EVERY_COLLECTION "every_things"
#define EVERY_EFULL (NG_EPLUGIN - 0)
#define EVERY_NO_PARAMS "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"

struct every {
    struct ng_str greeting;
    int64_t most;
    double ratio;
    size_t words;
    bool loud;
};

static struct ng_str str(const char *text)
{
    return ng_str_of(text);
}

static int every_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    const struct ng_host *host = call->host;
    const struct ng_str *items = NULL;
    struct every *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    self->greeting = host->conf_text(conf, "greeting");
    self->most = host->conf_int(conf, "most");
    self->ratio = host->conf_number(conf, "ratio");
    self->loud = host->conf_bool(conf, "loud");
    self->words = host->conf_list(conf, "words", &items);
    struct ng_str folder = host->conf_text(conf, "folder");
    if (folder.len > 0 && host->file_folder(call, folder) != NG_OK) {
        free(self);
        return NG_ENOTFOUND;
    }
    *ret_self = self;
    return NG_OK;
}

static void every_stop(void *self)
{
    free(self);
}

/* ---- what needs no document ---- */

static int every_values(struct ng_call *call, struct ng_writer *out)
{
    const struct ng_host *host = call->host;
    const struct ng_value *value = NULL;
    struct ng_writer *writer = host->json_writer(call);
    host->json_object(writer);
    host->json_name(writer, "list");
    host->json_array(writer);
    host->json_int(writer, 7);
    host->json_number(writer, 0.5);
    host->json_bool(writer, true);
    host->json_null(writer);
    host->json_end(writer);
    host->json_name_str(writer, str("text"));
    host->json_string(writer, str("t"));
    host->json_end(writer);
    int rc = host->json_parse(call, host->json_result(writer), &value);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *list = host->json_get(value, "list");
    const struct ng_value *first = host->json_first(list);
    int64_t seven = 0;
    if (host->json_type(list) != NG_TYPE_ARRAY || host->json_count(list) != 4 ||
        host->json_integer(first, &seven) != NG_OK || seven != 7 ||
        host->json_double(host->json_next(first)) != 0.5 ||
        host->json_key(host->json_first(value)).len != 4 ||
        host->json_text(host->json_get(value, "text")).len != 1) {
        return ng_fail(call, NG_EINTERNAL, "JSON is not as it was");
    }
    host->json_name(out, "copy");
    host->json_copy(out, value);
    return NG_OK;
}

static int every_answer(void *user, struct ng_call *call, struct ng_str args)
{
    const struct every *self = user;
    const struct ng_host *host = call->host;
    const struct ng_str *roots = NULL;
    (void)args;
    host->progress(call, 1, 2, str("half of it"));
    host->log(call, NG_LOG_DEBUG, "from %s", "every");
    host->log_text(call, NG_LOG_DEBUG, str("from every"));
    host->notify_log(call, NG_LOG_INFO, "every", str("{\"a\":1}"));
    host->lists_changed(host, NG_LIST_TOOLS);
    char *bytes = ng_alloc(call, 16);
    struct ng_str day = host->day(call, 0);
    struct ng_str text = host->format(call, "%.*s %lld", (int)self->greeting.len,
                                      self->greeting.data, (long long)self->most);
    struct ng_writer *out = host->reply_json(call);
    if (bytes == NULL || out == NULL || text.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    host->json_object(out);
    host->json_name(out, "text");
    host->json_string(out, text);
    host->json_name(out, "day");
    host->json_int(out, (int64_t)day.len);
    host->json_name(out, "words");
    host->json_int(out, (int64_t)self->words);
    host->json_name(out, "ratio");
    host->json_number(out, self->ratio);
    host->json_name(out, "sound");
    host->json_bool(out, self->loud && !host->cancelled(call) && host->remaining_ms(call) > 0 &&
                             host->now_ms() > 0 && host->file_roots(call, &roots) > 0 &&
                             !host->client_can(call, NG_ASK_FORM) &&
                             host->asked_state(call).data == NULL &&
                             host->idempotency_token(call).data == NULL &&
                             call->caller->agent.len > 0 && call->caller->space_count > 0);
    int rc = every_values(call, out);
    host->json_end(out);
    return rc;
}

static int every_parts(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    const struct ng_str pieces[] = {str("two "), str("pieces")};
    (void)self;
    (void)args;
    int rc = host->reply_parts(call, pieces, NG_COUNT(pieces));
    if (rc == NG_OK) {
        rc = host->reply_media(call, "image", "image/png", str("png"));
    }
    if (rc == NG_OK) {
        rc = host->reply_resource(call, str("every://one"), "text/plain", str("one"), true);
    }
    if (rc == NG_OK) {
        rc = host->reply_link(call, str("every://two"), str("two"), "text/plain");
    }
    if (rc == NG_OK) {
        rc = host->revision_number(call, 3);
    }
    return rc == NG_OK ? host->revision_text(call, str("r3")) : rc;
}

static int every_fails(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    (void)self;
    (void)args;
    host->hint(call, "Try %s.", "again");
    host->hint_text(call, str("Try again."));
    struct ng_writer *details = host->details(call);
    host->json_object(details);
    host->json_name(details, "why");
    host->json_string(details, str("full"));
    host->json_end(details);
    return host->fail_text(call, EVERY_EFULL, str("it is full"));
}

static int every_asks(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    (void)self;
    (void)args;
    host->ask_state(call, str("kept"));
    const struct ng_value *answer =
        host->ask(call, "name", NG_ASK_FORM,
                  str("{\"message\":\"Name?\",\"requestedSchema\":{\"type\":\"object\","
                      "\"properties\":{\"name\":{\"type\":\"string\"}}}}"));
    return answer == NULL ? NG_EINPUT : ng_reply(call, str("answered"));
}

/* ---- later ---- */

struct every_later {
    struct ng_deferred *deferred;
};

static void every_over(void *user, int rc, struct ng_str message)
{
    (void)user;
    (void)rc;
    (void)message;
}

static int every_finishes(struct ng_call *call, void *user)
{
    struct every_later *later = user;
    (void)call;
    call->host->finish(later->deferred, NG_OK);
    free(later);
    return NG_OK;
}

static int every_continues(struct ng_call *call, void *user)
{
    const struct ng_host *host = call->host;
    struct every_later *later = malloc(sizeof(*later));
    (void)user;
    if (later == NULL || !host->may_block(call)) {
        free(later);
        return ng_fail(call, NG_EINTERNAL, "no worker, or out of memory");
    }
    host->detach_client(call, 1000);
    int rc = host->on_complete(call, every_over, NULL);
    if (rc == NG_OK) {
        rc = host->fail_on_completion(call, NG_OK, str(""));
    }
    host->mask_cancel(call);
    if (rc == NG_OK) {
        rc = ng_reply(call, str("later"));
    }
    if (rc != NG_OK) {
        free(later);
        return rc;
    }
    later->deferred = host->defer(call);
    rc = host->background(call, every_finishes, later);
    if (rc != NG_OK) {
        host->finish(later->deferred, rc);
        free(later);
    }
    return NG_PENDING;
}

static int every_later_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return call->host->continue_on_worker(call, every_continues, NULL);
}

/* ---- documents ---- */

static int every_draft(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    const struct ng_str pieces[] = {str("first words")};
    const struct ng_str *word = user;
    (void)present;
    int rc = host->draft_json(next, str("{\"tag\":\"a\"}"));
    if (rc == NG_OK) {
        rc = host->draft_text(next, pieces, NG_COUNT(pieces));
    }
    if (rc == NG_OK) {
        rc = host->draft_splice(next, 0, 5, *word);
    }
    host->draft_event(next, str("{\"by\":\"every\"}"));
    return rc;
}

static int every_erase(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    (void)present;
    (void)user;
    call->host->draft_delete(next);
    return ng_reply(call, str("erased"));
}

static int every_row(void *user, const struct ng_doc *row)
{
    int *count = user;
    *count += row->revision > 0;
    return 0;
}

static int every_event(void *user, const struct ng_event *event)
{
    int *count = user;
    *count += event->seq > 0;
    return 0;
}

static void every_changed(void *user, int rc)
{
    (void)rc;
    free(user);
}

/* A change outside of any call, with an agent of its own. */
struct every_own {
    struct ng_change change;
    struct ng_str word;
};

static int every_changes_as(struct ng_call *call)
{
    const struct ng_host *host = call->host;
    struct every_own *own = calloc(1, sizeof(*own));
    if (own == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    own->word = str("other");
    own->change = (struct ng_change){.size = sizeof(own->change),
                                     .key = {str(EVERY_COLLECTION), str("shared"), str("two")},
                                     .fn = every_draft,
                                     .user = &own->word,
                                     .action = "made"};
    int rc = host->change_as(host, str("every"), &own->change, 1, every_changed, own);
    if (rc != NG_OK) {
        free(own);
    }
    return rc;
}

static int every_documents(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_str word = ng_arg_text(call, "word");
    struct ng_key key = {str(EVERY_COLLECTION), call->caller->space, str("one")};
    struct ng_change change = {
        .size = sizeof(change), .key = key, .fn = every_draft, .user = &word};
    const struct ng_term term = {.field = str("tag"), .op = NG_TERM_EQ, .value = str("a")};
    const struct ng_query query = {.size = sizeof(query),
                                   .collection = key.collection,
                                   .space = key.space,
                                   .terms = &term,
                                   .term_count = 1,
                                   .limit = 10,
                                   .want_total = true};
    const struct ng_search search = {
        .size = sizeof(search), .query = &query, .text = word, .snippet_chars = 40};
    const struct ng_range range = {.size = sizeof(range), .from = 1, .limit = 10};
    const struct ng_doc *doc = NULL;
    const char *engine = NULL;
    uint64_t total = 0;
    uint64_t found = 0;
    uint64_t revisions = 0;
    int rows = 0;
    (void)self;
    (void)args;
    int rc = host->change_wait(call, &change, 1);
    rc = rc == NG_OK ? every_changes_as(call) : rc;
    rc = rc == NG_OK ? host->get(call, &key, 0, &doc) : rc;
    rc = rc == NG_OK ? host->query(call, &query, every_row, &rows, &total) : rc;
    rc = rc == NG_OK ? host->search(call, &search, every_row, &rows, &found, &engine) : rc;
    rc = rc == NG_OK ? host->history(call, &key, &range, every_row, &rows) : rc;
    rc = rc == NG_OK ? host->history_count(call, &key, &range, &revisions) : rc;
    rc = rc == NG_OK ? host->changes(call, 0, 10, every_event, &rows) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, host->format(call, "%.*s: %d %d %d %d %d", (int)doc->text.len,
                                       doc->text.data, (int)doc->revision, (int)total,
                                       (int)found, (int)revisions, rows > 3));
}

static int every_erases(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_change change = {
        .size = sizeof(change),
        .key = {str(EVERY_COLLECTION), call->caller->space, str("one")},
        .fn = every_erase};
    (void)self;
    (void)args;
    return ng_change_one(call, &change);
}

/* ---- files ---- */

static int every_write(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, void *user)
{
    const struct ng_str pieces[] = {str("a file\n")};
    (void)present;
    (void)user;
    int rc = call->host->draft_text(next, pieces, NG_COUNT(pieces));
    return rc == NG_OK ? ng_reply(call, str("written")) : rc;
}

static int every_moved(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, void *user)
{
    (void)next;
    (void)user;
    return ng_reply(call, present->path);
}

static int every_undone(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                        struct ng_str former, void *user)
{
    (void)now;
    (void)former;
    (void)user;
    return ng_reply(call, call->host->format(call, "undone %d", (int)kind));
}

static int every_chunk(void *user, struct ng_str chunk)
{
    size_t *bytes = user;
    *bytes += chunk.len;
    return 0;
}

static int every_entry(void *user, const struct ng_file_entry *entry)
{
    size_t *count = user;
    *count += entry->name.len > 0;
    return 0;
}

static int every_reads(struct ng_call *call, struct ng_str path, struct ng_str folder)
{
    const struct ng_host *host = call->host;
    struct ng_file file = {.size = sizeof(file)};
    const struct ng_file_list list = {.size = sizeof(list), .path = folder, .depth = 1};
    size_t bytes = 0;
    size_t entries = 0;
    int rc = host->file_stat(call, path, &file);
    rc = rc == NG_OK ? host->file_read(call, path, 100, &file) : rc;
    rc = rc == NG_OK ? host->file_stream(call, path, every_chunk, &bytes, &file) : rc;
    rc = rc == NG_OK ? host->file_list(call, &list, every_entry, &entries) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, host->format(call, "%d bytes, %d entries", (int)bytes, (int)entries));
}

static int every_files(void *self, struct ng_call *call, struct ng_str args)
{
    const struct ng_host *host = call->host;
    struct ng_str what = ng_arg_text(call, "do");
    struct ng_str path = ng_arg_text(call, "path");
    (void)self;
    (void)args;
    switch (what.data[0]) {
    case 'w': {
        const struct ng_file_edit edit = {
            .size = sizeof(edit), .path = path, .fn = every_write, .create = true};
        return host->file_edit(call, &edit);
    }
    case 'm': {
        const struct ng_file_transfer transfer = {.size = sizeof(transfer),
                                                  .from = path,
                                                  .to = ng_arg_text(call, "to"),
                                                  .replied = every_moved};
        return host->file_transfer(call, &transfer);
    }
    case 'u': {
        const struct ng_file_undo undo = {
            .size = sizeof(undo), .path = path, .replied = every_undone};
        return host->file_undo(call, &undo);
    }
    default:
        return every_reads(call, path, ng_arg_text(call, "to"));
    }
}

static int every_journal(void *self, struct ng_call *call, struct ng_str args)
{
    void *handle = NULL;
    const struct ng_journal *journal = call->host->journal(call, &handle);
    (void)self;
    (void)args;
    return ng_reply(call, str(journal != NULL ? "a journal" : "no journal"));
}

/* ---- resources and prompts ---- */

static int every_list(void *self, struct ng_call *call, struct ng_str space,
                      struct ng_listing *listing)
{
    struct ng_str after = call->host->list_after(listing);
    (void)self;
    (void)space;
    if (after.data != NULL) {
        return NG_OK;
    }
    return call->host->list_add(listing, str("one"), str("One"), str("The only one."),
                                "text/plain", 3, 0);
}

static int every_read(void *self, struct ng_call *call, struct ng_str space, struct ng_str id,
                      uint64_t revision)
{
    (void)self;
    (void)space;
    (void)revision;
    return ng_reply(call, id);
}

static int every_complete(void *self, struct ng_call *call, struct ng_str space,
                          const char *variable, struct ng_str prefix,
                          struct ng_listing *listing)
{
    (void)variable;
    (void)prefix;
    return every_list(self, call, space, listing);
}

static int every_prompt(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, str("Say something."));
}

static int every_word(void *self, struct ng_call *call, const char *argument,
                      struct ng_str prefix, struct ng_listing *listing)
{
    return every_complete(self, call, str("shared"), argument, prefix, listing);
}

static int every_health(void *self, struct ng_call *call)
{
    (void)self;
    (void)call;
    return NG_OK;
}

static struct ng_str every_working(void *self, struct ng_call *call)
{
    (void)self;
    (void)call;
    return (struct ng_str){NULL, 0};
}

static bool every_is_configured(void *self, struct ng_call *call)
{
    (void)call;
    return self != NULL;
}

/* ---- what it declares ---- */

static const struct ng_option every_options[] = {
    {.name = "prefix", .type = NG_OPTION_TEXT, .help = "of the names of its tools"},
    {.name = "greeting", .type = NG_OPTION_TEXT, .fallback = "hello", .help = "a text"},
    {.name = "most", .type = NG_OPTION_INT, .fallback = "3", .min = 1, .max = 9, .help = "n"},
    {.name = "ratio", .type = NG_OPTION_NUMBER, .fallback = "0.25", .help = "a number"},
    {.name = "loud", .type = NG_OPTION_BOOL, .fallback = "true", .help = "a switch"},
    {.name = "words", .type = NG_OPTION_LIST, .fallback = "a, b", .help = "texts"},
    {.name = "secret",
     .type = NG_OPTION_TEXT,
     .secret = true,
     .env = "EVERY_SECRET",
     .help = "s"},
    {.name = "kind",
     .type = NG_OPTION_TEXT,
     .choices = "one two",
     .fallback = "one",
     .help = "k"},
    {.name = "folder", .type = NG_OPTION_TEXT, .help = "a folder of its own"},
};

static const struct ng_code every_codes[] = {
    {.name = "EVERY_FULL", .status = 507, .summary = "There is no more room."},
};

static const struct ng_field every_fields[] = {
    {.name = "tag", .use = NG_FIELD_TAG},
};

static const struct ng_collection every_collections[] = {
    {.name = EVERY_COLLECTION,
     .flags = NG_COLLECTION_TEXT_SEARCH,
     .fields = every_fields,
     .field_count = NG_COUNT(every_fields),
     .field_size = sizeof(every_fields[0])},
};

static const struct ng_resources every_resources[] = {
    {.kind = "thing",
     .title = "Things",
     .summary = "All things.",
     .mime_type = "text/plain",
     .collection = EVERY_COLLECTION,
     .list = every_list,
     .read = every_read,
     .complete = every_complete},
};

static const struct ng_prompt every_prompts[] = {
    {.name = "every_prompt",
     .title = "A prompt",
     .summary = "Asks for something.",
     .params = "{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\"}}}",
     .get = every_prompt,
     .complete = every_word,
     .modes = NG_IN_MODE(NG_MODE_AGENT),
     .space = NG_SPACE_SHARED},
};

static const struct ng_tool every_tools[] = {
    {.name = "every_answer",
     .title = "Answer",
     .summary = "Answers in JSON.",
     .params = EVERY_NO_PARAMS,
     .result = "{\"type\":\"object\"}",
     .run = every_answer,
     .effect = NG_EFFECT_READS,
     .flags = NG_TOOL_IDEMPOTENT,
     .aliases = "every_reply",
     .listed = every_is_configured},
    {.name = "every_parts", .summary = "Parts.", .params = EVERY_NO_PARAMS, .run = every_parts},
    {.name = "every_fails", .summary = "Fails.", .params = EVERY_NO_PARAMS, .run = every_fails},
    {.name = "every_asks", .summary = "Asks.", .params = EVERY_NO_PARAMS, .run = every_asks},
    {.name = "every_later",
     .summary = "Ends later.",
     .params = EVERY_NO_PARAMS,
     .run = every_later_run,
     .flags = NG_TOOL_MEMORY},
    {.name = "every_documents",
     .summary = "Changes and finds documents.",
     .params = "{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\"}},"
               "\"required\":[\"word\"]}",
     .run = every_documents,
     .space = NG_SPACE_SHARED},
    {.name = "every_erases",
     .summary = "Deletes.",
     .params = EVERY_NO_PARAMS,
     .run = every_erases,
     .space = NG_SPACE_SHARED,
     .flags = NG_TOOL_DESTRUCTIVE},
    {.name = "every_files",
     .summary = "Writes, moves, reads, takes back.",
     .params = "{\"type\":\"object\",\"properties\":{\"do\":{\"enum\":[\"write\",\"move\","
               "\"undo\",\"read\"]},\"path\":{\"type\":\"string\"},\"to\":{\"type\":"
               "\"string\"}},\"required\":[\"do\",\"path\"]}",
     .run = every_files,
     .read_argument = "do",
     .read_values = "read"},
    {.name = "every_journal",
     .summary = "Is there a journal?",
     .params = EVERY_NO_PARAMS,
     .run = every_journal},
};

static const struct ng_plugin every = {
    .name = "every",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = every_tools,
    .tool_count = NG_COUNT(every_tools),
    .start = every_start,
    .stop = every_stop,
    .options = every_options,
    .option_count = NG_COUNT(every_options),
    .codes = every_codes,
    .code_count = NG_COUNT(every_codes),
    .collections = every_collections,
    .collection_count = NG_COUNT(every_collections),
    .resources = every_resources,
    .resource_count = NG_COUNT(every_resources),
    .prompts = every_prompts,
    .prompt_count = NG_COUNT(every_prompts),
    .health = every_health,
    .name_prefix = "every_",
    .working = every_working,
    .configured = every_is_configured,
};

NG_EXPORT_PLUGIN(every);
