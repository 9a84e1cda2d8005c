/* store.h - what is worth keeping between runs: verdicts by content, and artefacts by content.
 *
 * One SQLite file (WAL) and one folder of files named by their hash, under path_cache(). Any number of processes. */
#ifndef MC_STORE_H
#define MC_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct sqlite3;

#define STORE_DB_UNUSABLE (-2)

/* Opens a database with our settings (WAL, busy timeout, foreign keys) and checks that it is one and of 'version';
 * schema (may hold several statements) is run on a new file. A database without the schema's first table is
 * somebody's: -1, nothing in it is changed. STORE_DB_UNUSABLE: ours, but damaged or another version's. */
int store_db_open(const char *path, const char *schema, int version, struct sqlite3 **ret, struct err *e);

struct store; /* the verdict cache */
/* What is damaged or another version's is moved to PATH.old, with a word: verdicts can be made again. */
int store_open(const char *path, struct store **ret, struct err *e); /* NULL: path_cache("verdicts.db") */
void store_close(struct store *s);

/* The key of a verdict: everything it depends on. options: compact JSON text; toolchain: compiler, torch, our
 * version. */
void store_key(const char *task_sha256, const char *candidate_sha256, const char *options, const char *toolchain,
               char ret_key[65]);
/* Returns 1 and a new record, 0 if there is none, -1 on error. */
int store_get(struct store *s, const char *key, json_t **ret, struct err *e);
/* Returns 1 if stored, 0 if the record must not be kept: category "timeout" or "infra", or status "infra". */
int store_put(struct store *s, const char *key, const json_t *verdict, struct err *e);

/* Once the records take more than max_bytes, those used longest ago go until they take 9/10 of it. *ret_bytes: what the
 * database takes afterwards; free pages are given back to the disk when nobody else is writing. */
int store_trim(struct store *s, uint64_t max_bytes, uint64_t *ret_bytes, struct err *e);

/* Content-addressed artefacts: folder/ab/cdef..., complete or absent. */
char *artefact_path(const char *folder, const char *key, const char *suffix); /* owned; parents are made */
/* Single flight: returns holding the lock of this key (over processes and threads), so that one builds and the others
 * then find the file. Waits at most wait_s. The returned descriptor goes to artefact_unlock. -1 on error. */
int artefact_lock(const char *folder, const char *key, double wait_s, struct err *e);
void artefact_unlock(int lock);
/* The same for any path: an exclusive lock, held until the descriptor is closed. Lock files may be removed by whoever
 * holds them (see limit.h): a lock on a file that is no longer at its path is not returned. wait_s 0 tries once. */
int lock_file(const char *path, double wait_s, struct err *e);

#endif
