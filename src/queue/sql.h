/* sql.h - one SQL statement at a time, on a SQLite file or a PostgreSQL server.
 *
 * Statements are written once for both. Placeholders are $1, $2, ... in the order of their first appearance.
 * Words in braces differ: {now} the database's clock in seconds, {id} a key that counts up, {skip} 'FOR
 * UPDATE SKIP LOCKED', {fill} room for updates in place, {most} the larger of two. A statement's text must live as
 * long as the connection (a string literal): it is prepared once. Each thread opens its own connection. */
#ifndef MC_SQL_H
#define MC_SQL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct sql;

struct sql_rows { /* text as the database prints it; cells of NULL are empty strings */
    int n, columns;
    char **cell; /* n * columns strings, owned: sql_rows_free */
};

/* url: "postgres://..." or "postgresql://...", else a path of a SQLite file, made when missing. schema:
 * statements in sqlite's or PostgreSQL's words, run once on an empty database; version: what it was made by.
 */
int sql_open(const char *url, const char *schema, int version, struct sql **ret, struct err *e);
void sql_close(struct sql *s); /* NULL is fine */

/* types: a letter for each placeholder: t const char * (NULL allowed), i int64_t, d double. Returns the rows
 * that were returned (ret not NULL) or changed. A server that went away is asked for until it is back, 30 s
 * at most; so a statement may run twice, the second time after a first that was not heard of. */
int64_t sql_run(struct sql *s, struct sql_rows *ret, struct err *e, const char *text, const char *types, ...);
const char *sql_cell(const struct sql_rows *r, int row, int column);
int64_t sql_int(const struct sql_rows *r, int row, int column);
void sql_rows_free(struct sql_rows *r); /* zeroed rows are fine */

/* Tells everybody who waits that something has changed (SQLite needs no words: its file changed). */
int sql_notify(struct sql *s, struct err *e);
/* Waits until somebody may have changed something, at most wait_s. */
void sql_wait(struct sql *s, double wait_s);

#endif
