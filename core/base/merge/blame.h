/* SPDX-License-Identifier: MIT */
/*
 * blame.h - the revision that put in each line of a text, from the changes that led to it.
 *
 * Lines are the pieces between line feeds, as in merge3.h. A line of a revision is that of the
 * revision before it as far as diff_lines() finds it there. Only the lines of a changed stretch
 * are compared, so a step costs as much as its stretch is long, wherever it is, and not as much
 * as the text. Any splice that makes the next text will do: the result is that of comparing
 * whole texts.
 *
 * Forward: from the oldest text on, by the splices that a store keeps; blame_step() goes to the
 * next newer revision. Backward: from the newest text on, and blame_step() goes to the next
 * older one (the splice's inserted bytes are those of the older text); it may end early, when
 * blame_settled() is true. Both give the same result.
 *
 * A text is at most BLAME_TEXT_MAX bytes. All steps together compare at most BLAME_STEPS_MAX
 * steps of diff_lines_within(); behind that, the lines in the middle of a changed stretch count
 * as put in by its revision: the result names a later revision for some lines, and
 * blame_exact() is false. Not for use by two threads at a time.
 */
#ifndef NOTEGATE_CORE_BLAME_H
#define NOTEGATE_CORE_BLAME_H

#include "notegate/abi.h"
#include "notegate/backend.h"

#define BLAME_TEXT_MAX ((size_t)4 << 20)
#define BLAME_STEPS_MAX ((int64_t)100 * 1000 * 1000)

enum blame_way { BLAME_FORWARD, BLAME_BACKWARD };

struct blame;

/* Begins with the oldest or the newest text. NG_OK; NG_ETOOLARGE; NG_EINTERNAL (out of memory).
 */
int blame_new(enum blame_way way, struct ng_str text, uint64_t revision, struct blame **ret);
void blame_free(struct blame *blame); /* NULL is a no-op */

/*
 * Goes to the text of the next revision. NG_OK. NG_EINVAL: the splice does not fit the text;
 * NG_ETOOLARGE: the text would be too long: nothing has changed. NG_EINTERNAL: out of memory;
 * then only blame_free() is allowed.
 */
int blame_step(struct blame *blame, uint64_t revision, const struct ng_splice *splice);
/* The same with the whole text of the next revision, for stores without splices: it costs as
 * much as the text is long. */
int blame_step_text(struct blame *blame, uint64_t revision, struct ng_str text);
/* The splice from the current text to this one; it points into `text`. */
struct ng_splice blame_splice_to(const struct blame *blame, struct ng_str text);
/* The current text is UTF-8. NG_OK: so is the next one. NG_EINVAL: it is not, or the splice
 * does not fit. NG_EINTERNAL: out of memory; nothing has changed. It looks at the splice alone.
 */
int blame_check_utf8(const struct blame *blame, const struct ng_splice *splice);

/* The next older revision. NG_OK; NG_ENOTFOUND: there is none; other codes: it failed. The text
 * is borrowed until the next call. */
typedef int blame_older_fn(void *user, uint64_t *ret_revision, struct ng_str *ret_text);

/* Backward: steps to older texts until all lines are settled or none is left. NG_OK or the code
 * of what failed. */
int blame_walk(struct blame *blame, blame_older_fn *older, void *user);

/* Backward: every line has its revision, older ones change nothing. Forward: false. */
bool blame_settled(const struct blame *blame);
/* No comparison was cut short. */
bool blame_exact(const struct blame *blame);

/*
 * The revision of each line of the newest text, in memory that the caller frees. A line that is
 * older than all steps has the revision of the oldest text. NG_OK or NG_EINTERNAL (out of
 * memory).
 */
int blame_result(const struct blame *blame, uint64_t **ret_revisions, size_t *ret_count);

#endif
