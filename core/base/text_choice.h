/* SPDX-License-Identifier: MIT */
/* text_choice.h - optional parts of messages. */
#ifndef NOTEGATE_CORE_TEXT_CHOICE_H
#define NOTEGATE_CORE_TEXT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

static inline const char *text_if(bool condition, const char *text)
{
    return condition ? text : "";
}

static inline const char *text_or(const char *text, const char *fallback)
{
    return text != NULL ? text : fallback;
}

/* "s" behind a noun. */
static inline const char *plural(size_t count)
{
    return text_if(count != 1, "s");
}

#endif
