/* SPDX-License-Identifier: MIT */
/*
 * lock_order.h - every lock of the gateway and its modules, in the order in which a thread
 * takes them: while it holds one, it takes only later ones. core/LOCKING.md says what each
 * guards.
 */
#ifndef NOTEGATE_CORE_LOCK_ORDER_H
#define NOTEGATE_CORE_LOCK_ORDER_H

/*
 * X(rank, kind). Kinds: PLAIN; RECURSIVE, its holder may take it again; SIBLINGS, a thread may
 * hold several of this rank and orders them by another rule.
 */
#define LOCK_ORDER(X)                                                                          \
    X(RELAY_OPENING, PLAIN)                                                                    \
    X(RELAY, PLAIN)                                                                            \
    X(COMMAND_WAIT, PLAIN)                                                                     \
    X(RELOAD, PLAIN)                                                                           \
    X(REST_BACKUP, PLAIN)                                                                      \
    X(CLIENT_REQUEST, PLAIN)                                                                   \
    X(NOTIFIER, PLAIN)                                                                         \
    X(NOTIFIERS, PLAIN)                                                                        \
    X(MCP_BATCH, PLAIN)                                                                        \
    X(MCP_SESSIONS, PLAIN)                                                                     \
    X(MCP_SUBSCRIPTIONS, PLAIN)                                                                \
    X(MCP_LISTEN, PLAIN)                                                                       \
    X(MCP_TASKS, PLAIN)                                                                        \
    X(MCP_HTTP, PLAIN)                                                                         \
    X(MCP_POST, PLAIN)                                                                         \
    X(MCP_FORWARD, PLAIN)                                                                      \
    X(MCP_SESSION, PLAIN)                                                                      \
    X(MCP_STREAM, PLAIN)                                                                       \
    X(MCP_STDIO, PLAIN)                                                                        \
    X(GATEWAY_START, PLAIN)                                                                    \
    X(CLUSTER, PLAIN)                                                                          \
    X(FILES_ROOTS, PLAIN)                                                                      \
    X(FILES_LOCKS, PLAIN)                                                                      \
    X(KEY, PLAIN)                                                                              \
    X(IDEMPOTENCY, PLAIN)                                                                      \
    X(DISK, PLAIN)                                                                             \
    X(FEED_READERS, PLAIN)                                                                     \
    X(FEED_READER, PLAIN)                                                                      \
    X(JOURNAL_APPEND, PLAIN)                                                                   \
    X(STORE_CHANGE, PLAIN)                                                                     \
    X(STORE_DOCUMENT, SIBLINGS)                                                                \
    X(STORE_ORDER, RECURSIVE)                                                                  \
    X(STORE_TABLE, PLAIN)                                                                      \
    X(STORE_RETRY, PLAIN)                                                                      \
    X(STORE_RESULTS, PLAIN)                                                                    \
    X(STORE_WATCH, PLAIN)                                                                      \
    X(KEYS, PLAIN)                                                                             \
    X(STORE_IDLE, PLAIN)                                                                       \
    X(STORE_CLOCK, PLAIN)                                                                      \
    X(MONGO_WATCH, PLAIN)                                                                      \
    X(FEED, PLAIN)                                                                             \
    X(JOURNAL, PLAIN)                                                                          \
    X(STORE_COLLECTIONS, PLAIN)                                                                \
    X(NOTIFIER_TABLE, PLAIN)                                                                   \
    X(HTTP_MONITOR, PLAIN)                                                                     \
    X(DEFERRALS, PLAIN)                                                                        \
    X(ASYNC_MUTEX, PLAIN)                                                                      \
    X(QUOTA, PLAIN)                                                                            \
    X(POOL, PLAIN)                                                                             \
    X(TIMERS, PLAIN)                                                                           \
    X(AUDIT, PLAIN)                                                                            \
    X(AUDIT_WRITER, PLAIN)                                                                     \
    X(WATCHDOG, PLAIN)                                                                         \
    X(RECORDER, PLAIN)                                                                         \
    X(SPARE_CALLS, PLAIN)                                                                      \
    X(UNDOS, PLAIN)                                                                            \
    X(MONGO_QUEUE, PLAIN)                                                                      \
    X(MONGO_RELAY, PLAIN)                                                                      \
    X(MONGO_COLLECTIONS, PLAIN)                                                                \
    X(MONGO_DOWN, PLAIN)                                                                       \
    X(MONGO_PRESENCE, PLAIN)                                                                   \
    X(REDIS_POOL, PLAIN)                                                                       \
    X(REDIS_RESOLVE, PLAIN)                                                                    \
    X(SQLITE_WRITER, PLAIN)                                                                    \
    X(SQLITE_QUEUE, PLAIN)                                                                     \
    X(SQLITE_READERS, PLAIN)                                                                   \
    X(SQLITE_GATE, PLAIN)                                                                      \
    X(SQLITE_COLLECTIONS, PLAIN)                                                               \
    X(SQLITE_COUNTS, PLAIN)                                                                    \
    X(ENTRY_CHECKPOINTS, PLAIN)                                                                \
    X(READ_RECEIPTS_ORDER, PLAIN)                                                              \
    X(READ_RECEIPTS, PLAIN)                                                                    \
    X(CELLS_RUNS, PLAIN)                                                                       \
    X(CELLS_ATTACHED, PLAIN)                                                                   \
    X(CELLS_KERNELS, PLAIN)                                                                    \
    X(CELLS_LEASES, PLAIN)                                                                     \
    X(CELLS_INDEXES, PLAIN)                                                                    \
    X(NOTES_DISCOVERY, PLAIN)                                                                  \
    X(NOTES_INDEXES, PLAIN)                                                                    \
    X(NOTES_INDEX, PLAIN)                                                                      \
    X(NOTES_NAMES, PLAIN)                                                                      \
    X(HTTP_STREAM, PLAIN)                                                                      \
    X(EXCHANGES, PLAIN)                                                                        \
    X(FILES_KEPT, PLAIN)                                                                       \
    X(LOG_QUEUE, PLAIN)

#define LOCK_ORDER_RANK(rank, kind) LOCK_##rank,
enum lock_rank {
    LOCK_ORDER(LOCK_ORDER_RANK) LOCK_RANKS,
};
#undef LOCK_ORDER_RANK

#endif
