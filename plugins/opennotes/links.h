/* SPDX-License-Identifier: MIT */
/* links.h - what a link means, as SQL over the index. */
#ifndef OPENNOTES_LINKS_H
#define OPENNOTES_LINKS_H

/*
 * The note (its column `what`, of notes `m`) that the link `l` leads to, or NULL. Of several a
 * wiki link may mean: the one of that path, else of that file name or end, title, alias; then
 * the shortest path.
 */
#define ON_LINK_TARGET(what)                                                                   \
    "(SELECT " what " FROM names x JOIN notes m ON m.id = x.note WHERE x.key = l.key"          \
    " AND (x.kind = 'path') = (l.kind <> 'wiki')"                                              \
    " ORDER BY CASE x.kind WHEN 'path' THEN 0 WHEN 'wikipath' THEN 0 WHEN 'file' THEN 1 WHEN " \
    "'suffix' THEN 1"                                                                          \
    " WHEN 'title' THEN 2 ELSE 3 END, length(m.path), m.path LIMIT 1)"

#endif
