/* SPDX-License-Identifier: MIT */
/* schema_sql.c - the tables: creates them, upgrades them step by step, and refuses foreign
 * files. README.md explains the layout. */
#include "db.h"

#include <stdio.h>

/* Step i upgrades a file from version i to i + 1. A released step never changes. */
static const char *const steps[] = {
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE collections(collection INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " search TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE fields(field INTEGER PRIMARY KEY, collection INTEGER NOT NULL,"
    " name TEXT NOT NULL, use INTEGER NOT NULL, UNIQUE(collection,name,use));"
    "CREATE TABLE shelves(shelf INTEGER PRIMARY KEY, collection TEXT NOT NULL,"
    " space TEXT NOT NULL, live INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE(collection,space));"
    "CREATE TABLE docs(doc INTEGER PRIMARY KEY, shelf INTEGER NOT NULL, id BLOB NOT NULL,"
    " revision INTEGER NOT NULL, deleted INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " created_seq INTEGER NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
    " json_size INTEGER NOT NULL, text_size INTEGER NOT NULL, chain_count INTEGER NOT NULL,"
    " chain_bytes INTEGER NOT NULL, author TEXT NOT NULL, action TEXT NOT NULL,"
    " hash BLOB NOT NULL, fields BLOB NOT NULL, json BLOB NOT NULL, text BLOB NOT NULL);"
    "CREATE UNIQUE INDEX docs_key ON docs(shelf,id);"
    "CREATE INDEX docs_created ON docs(shelf,deleted,created_seq);"
    "CREATE INDEX docs_updated ON docs(shelf,deleted,updated_ms,created_seq);"
    "CREATE INDEX docs_seq ON docs(shelf,deleted,seq);"
    "CREATE TABLE log(seq INTEGER PRIMARY KEY, doc INTEGER NOT NULL, revision INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, flags INTEGER NOT NULL, time_ms INTEGER NOT NULL,"
    " created_seq INTEGER NOT NULL, created_ms INTEGER NOT NULL, agent TEXT NOT NULL,"
    " tool TEXT NOT NULL, action TEXT NOT NULL, data BLOB, hash BLOB NOT NULL,"
    " json_at INTEGER, json_removed INTEGER, text_at INTEGER, text_removed INTEGER,"
    " text_size INTEGER NOT NULL, json BLOB, text BLOB);"
    "CREATE UNIQUE INDEX log_doc ON log(doc,revision,kind);"
    "CREATE TABLE field_values(field INTEGER, shelf INTEGER, value, created_seq INTEGER,"
    " doc INTEGER, PRIMARY KEY(field,shelf,value,created_seq,doc)) WITHOUT ROWID;"
    "CREATE TABLE dirty(collection INTEGER NOT NULL, doc INTEGER NOT NULL,"
    " PRIMARY KEY(collection,doc)) WITHOUT ROWID;"
    "CREATE TABLE answers(answer INTEGER PRIMARY KEY, scope BLOB NOT NULL UNIQUE,"
    " body_hash BLOB NOT NULL, reply BLOB NOT NULL, time_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL);"
    "CREATE INDEX answers_expire ON answers(expires_ms);",
    /* 2: lists by author and by creation time */
    "CREATE INDEX docs_author ON docs(shelf,deleted,author,created_seq);"
    "CREATE INDEX docs_created_ms ON docs(shelf,deleted,created_ms,created_seq);",
    /* 3: full-text tables may have tokens that gateways of version 2 do not know (fts.c
     * rebuilds them): this version makes those gateways refuse the file */
    "",
    /* 4: the origin of each change. Of older ones only the agent is known. */
    "CREATE TABLE IF NOT EXISTS origins(origin INTEGER PRIMARY KEY, shelf INTEGER NOT NULL,"
    " agent TEXT NOT NULL, key TEXT NOT NULL, run TEXT NOT NULL, gateway TEXT NOT NULL,"
    " first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, changes INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS origins_key ON origins(run,agent,shelf,key,gateway);"
    "CREATE INDEX IF NOT EXISTS origins_agent ON origins(agent);"
    "CREATE TABLE IF NOT EXISTS trail(seq INTEGER PRIMARY KEY, doc INTEGER NOT NULL,"
    " origin INTEGER NOT NULL, added INTEGER, removed INTEGER, request TEXT);"
    "INSERT OR IGNORE INTO origins(shelf,agent,key,run,gateway,first_seq,last_seq,changes)"
    " SELECT d.shelf,l.agent,'','','',min(l.seq),max(l.seq),count(*) FROM log l"
    " JOIN docs d ON d.doc=l.doc GROUP BY d.shelf,l.agent;"
    "INSERT OR IGNORE INTO trail(seq,doc,origin) SELECT l.seq,l.doc,o.origin FROM log l"
    " JOIN docs d ON d.doc=l.doc JOIN origins o ON o.run='' AND o.agent=l.agent AND"
    " o.shelf=d.shelf AND o.key='' AND o.gateway='' ORDER BY l.seq;",
};

#define SCHEMA_VERSION ((int)NG_COUNT(steps))

static int take_int(void *user, sqlite3_stmt *stmt)
{
    int64_t *number = user;
    *number = sqlite3_column_int64(stmt, 0);
    return 1;
}

/* The number in the first row; without a row *ret stays as it is. */
static int number_of(struct conn *conn, const char *sql, int64_t *ret)
{
    return sql_each(conn, sql, take_int, ret);
}

static int upgrade(struct conn *conn, int version)
{
    char pragma[96];
    int rc = sqlite3_exec(conn->sql, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (int i = version; rc == SQLITE_OK && i < SCHEMA_VERSION; i++) {
        rc = sqlite3_exec(conn->sql, steps[i], NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        (void)snprintf(pragma, sizeof(pragma),
                       "PRAGMA application_id=%d; PRAGMA user_version=%d;", DB_APPLICATION_ID,
                       SCHEMA_VERSION);
        rc = sqlite3_exec(conn->sql, pragma, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(conn->sql, "COMMIT", NULL, NULL, NULL);
    }
    return rc;
}

/* Checks the application and the version of the file. */
static int check(struct db *db, int64_t *ret_version, char *error, size_t error_max)
{
    int64_t application = 0;
    int64_t tables = 0;
    int rc = number_of(db->writer, "SELECT count(*) FROM sqlite_schema", &tables);
    if (rc == NG_OK) {
        rc = number_of(db->writer, "PRAGMA application_id", &application);
    }
    if (rc == NG_OK) {
        rc = number_of(db->writer, "PRAGMA user_version", ret_version);
    }
    if (rc != NG_OK) {
        return conn_error(db->writer, "opening the store", error, error_max);
    }
    if (application != DB_APPLICATION_ID && (application != 0 || tables > 0)) {
        (void)snprintf(
            error, error_max,
            "%s is a database of another program (application id %lld): move it away "
            "or choose another data_dir",
            db->path, (long long)application);
        return NG_EUNAVAILABLE;
    }
    if (*ret_version > SCHEMA_VERSION || *ret_version < 0) {
        (void)snprintf(error, error_max,
                       "%s has the layout version %lld, this gateway knows up to %d: use the "
                       "newer notegate that wrote it, or restore a backup made for this one",
                       db->path, (long long)*ret_version, SCHEMA_VERSION);
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

int schema_open(struct db *db, char *error, size_t error_max)
{
    int64_t version = 0;
    int rc = check(db, &version, error, error_max);
    if (rc != NG_OK) {
        return rc;
    }
    if (version < SCHEMA_VERSION && upgrade(db->writer, (int)version) != SQLITE_OK) {
        rc = conn_error(db->writer, "creating the tables", error, error_max);
        (void)sqlite3_exec(db->writer->sql, "ROLLBACK", NULL, NULL, NULL);
        return rc;
    }
    int64_t seq = 0;
    int64_t doc = 0;
    int64_t origin = 0;
    int64_t newest = INT64_MIN;
    int64_t dirty = 0;
    if (number_of(db->writer, "SELECT value FROM meta WHERE name='seq'", &seq) != NG_OK ||
        number_of(db->writer, "SELECT max(doc) FROM docs", &doc) != NG_OK ||
        number_of(db->writer, "SELECT max(origin) FROM origins", &origin) != NG_OK ||
        number_of(db->writer, "SELECT time_ms FROM log ORDER BY seq DESC LIMIT 1", &newest) !=
            NG_OK ||
        number_of(db->writer, "SELECT 1 FROM dirty LIMIT 1", &dirty) != NG_OK) {
        return conn_error(db->writer, "opening the store", error, error_max);
    }
    db->next_doc = doc + 1;
    db->next_origin = origin + 1;
    db->last_ms = newest;
    atomic_store(&db->last_seq, (uint64_t)seq);
    atomic_store(&db->dirty, dirty != 0);
    return NG_OK;
}
