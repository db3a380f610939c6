/* SPDX-License-Identifier: MIT */
/* text_choice.h - optional parts of messages, descriptions of errors. */
#ifndef NOTEGATE_CORE_TEXT_CHOICE_H
#define NOTEGATE_CORE_TEXT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline const char *text_if(bool condition, const char *text)
{
    return condition ? text : "";
}

static inline const char *text_or(const char *text, const char *fallback)
{
    return text != NULL ? text : fallback;
}

/* The description of an errno; strerror() is not for threads. */
static inline const char *text_errno(int code)
{
    return text_or(strerrordesc_np(code), "unknown error");
}

/* "s" behind a noun. */
static inline const char *plural(size_t count)
{
    return text_if(count != 1, "s");
}

#endif
