/* SPDX-License-Identifier: MIT */
/* fuzz_opennotes_markdown.c - any text as Markdown: the reported parts are in order, within the
 * text, and well formed. */
#include <stdlib.h>
#include <string.h>

#include "../../plugins/opennotes/markdown/markdown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct ng_str text;
    uint32_t lines, last_heading, last_task;
    uint64_t headings, links, tasks;
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_text(struct ng_str text)
{
    must(text.data != NULL && text.len <= NOTES_MARKDOWN_TEXT_MAX);
}

static int take_heading(void *user, const struct notes_heading *heading)
{
    struct seen *seen = user;
    must(heading->line >= 1 && heading->line <= seen->lines);
    must(heading->line >= seen->last_heading);
    must(heading->last_line >= heading->line && heading->last_line <= seen->lines);
    must(heading->level >= 1 && heading->level <= 6);
    check_text(heading->text);
    check_text(heading->slug);
    must(utf8_valid(heading->slug));
    seen->last_heading = heading->line;
    seen->headings++;
    return 0;
}

static void check_place(const struct seen *seen, const struct notes_link *link)
{
    must(link->at == SIZE_MAX || (link->at < link->end && link->end <= seen->text.len));
}

static int take_link(void *user, const struct notes_link *link)
{
    struct seen *seen = user;
    must(link->line >= 1 && link->line <= seen->lines);
    must(notes_link_kind_name(link->kind)[0] != '\0');
    must(link->kind != NOTES_LINK_WIKI || (link->target.len > 0 && link->text.len > 0));
    check_text(link->text);
    check_place(seen, link);
    must(link->target.len <= NOTES_MARKDOWN_TEXT_MAX);
    seen->links++;
    return 0;
}

static int take_image(void *user, const struct notes_link *image)
{
    check_place(user, image);
    return 0;
}

static int take_definition(void *user, const struct notes_definition *found)
{
    const struct seen *seen = user;
    must(found->at + found->target.len <= seen->text.len);
    must(memcmp(seen->text.data + found->at, found->target.data, found->target.len) == 0);
    return 0;
}

static int take_task(void *user, const struct notes_task *task)
{
    struct seen *seen = user;
    must(task->line >= 1 && task->line <= seen->lines && task->line >= seen->last_task);
    check_text(task->text);
    seen->last_task = task->line;
    seen->tasks++;
    return 0;
}

static int take_tag(void *user, const struct notes_inline_tag *tag)
{
    struct seen *seen = user;
    must(tag->line >= 1 && tag->line <= seen->lines);
    must(tag->name.len > 0 && tag->name.len <= NOTES_MARKDOWN_TEXT_MAX);
    must(memchr(tag->name.data, '#', tag->name.len) == NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct notes_markdown_events events = {.heading = take_heading,
                                                        .link = take_link,
                                                        .task = take_task,
                                                        .tag = take_tag,
                                                        .image = take_image,
                                                        .places = true};
    struct notes_markdown_stats stats;
    struct arena arena;
    arena_init(&arena, 0);
    struct ng_str text =
        arena_copy(&arena, notes_utf8_clean(&arena, str_make((const char *)data, size)));
    struct seen seen = {.text = text, .lines = 1};
    for (size_t i = 0; i < text.len; i++) {
        seen.lines += text.data[i] == '\n';
    }
    must(notes_markdown_parse(text, &events, &seen, &stats) == NG_OK);
    must(stats.headings == seen.headings && stats.links == seen.links);
    must(notes_markdown_definitions(text, take_definition, &seen) == NG_OK);
    must(stats.words <= text.len && stats.chars <= text.len);
    arena_done(&arena);
    return 0;
}
