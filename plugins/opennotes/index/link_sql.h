/* SPDX-License-Identifier: MIT */
/* link_sql.h - resolves links in SQL over the index. */
#ifndef OPENNOTES_LINKS_H
#define OPENNOTES_LINKS_H

/* Of a name `x` that matches: lower is better. */
#define NOTES_LINK_RANK                                                                        \
    "CASE x.kind WHEN 'path' THEN 0 WHEN 'wikipath' THEN 0 WHEN 'file' THEN 1 WHEN 'suffix'"   \
    " THEN 1 WHEN 'title' THEN 2 ELSE 3 END"

/* The note (its column `what`, of notes `m`) that the link `l` resolves to, or NULL. If several
 * notes match a wiki link: the path, the file name or the end of a path, the title, an alias;
 * then the shortest path. */
#define NOTES_LINK_TARGET(what)                                                                \
    "(SELECT " what " FROM names x JOIN notes m ON m.id = x.note WHERE x.key = l.key"          \
    " AND (x.kind = 'path') = (l.kind <> 'wiki')"                                              \
    " ORDER BY " NOTES_LINK_RANK ", length(m.path), m.path LIMIT 1)"

/* For views over all links: resolves each key once. The result depends only on the key and on
 * whether the link is a wiki link, and many links share it. Join `resolved r` ON
 * NOTES_IS_RESOLVED. */
#define NOTES_RESOLVED                                                                         \
    "WITH resolved AS MATERIALIZED (SELECT l.key AS key, l.kind AS kind, " NOTES_LINK_TARGET(  \
        "m.id") " AS id FROM (SELECT DISTINCT key, iif(kind = 'wiki', 'wiki', 'path') AS "     \
                "kind FROM links WHERE key IS NOT NULL) l) "
#define NOTES_IS_RESOLVED "r.key = l.key AND r.kind = iif(l.kind = 'wiki', 'wiki', 'path')"

#endif
