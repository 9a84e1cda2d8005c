/* sql.c - see sql.h: chooses the driver, spells statements for it, and holds the rows that came back. */
#include "queue/sql.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "queue/sql_driver.h"

struct sql {
    const struct sql_driver *driver;
    void *db;
};

/* True for the address of a server; a file has none. */
static bool sql_is_url(const char *url)
{
    return !strncmp(url, "postgres://", 11) || !strncmp(url, "postgresql://", 13);
}

int sql_open(const char *url, const char *schema, int version, struct sql **ret, struct err *e)
{
    const struct sql_driver *d = sql_is_url(url) ? &sql_postgres : &sql_sqlite;
    char *spelled;
    void *db;
    int rc;

    if (!sql_is_url(url) && strstr(url, "://"))
        return err_set(e, ERR_INPUT, "'%s' is no queue; a queue is a file, or postgres://USER@HOST/DATABASE", url);
    spelled = sql_spell(d, schema);
    rc = d->open(url, spelled, version, &db, e);
    free(spelled);
    if (rc < 0)
        return -1;
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct sql){.driver = d, .db = db};
    return 0;
}

void sql_close(struct sql *s)
{
    if (s)
        s->driver->close(s->db);
    free(s);
}

int64_t sql_run(struct sql *s, struct sql_rows *ret, struct err *e, const char *text, const char *types, ...)
{
    struct sql_value v[SQL_PARAMS] = {{0}};
    struct sql_rows rows = {0};
    int n = 0;
    int64_t got;
    va_list ap;

    va_start(ap, types);
    for (; types[n] && n < SQL_PARAMS; n++) {
        v[n].type = types[n];
        if (types[n] == 't')
            v[n].text = va_arg(ap, const char *);
        else if (types[n] == 'i')
            v[n].i = va_arg(ap, int64_t);
        else
            v[n].d = va_arg(ap, double);
    }
    va_end(ap);
    got = s->driver->run(s->db, text, v, n, &rows, e);
    if (got < 0 || !ret)
        sql_rows_free(&rows);
    else
        *ret = rows;
    return got;
}

const char *sql_cell(const struct sql_rows *r, int row, int column)
{
    return r->cell[row * r->columns + column];
}

int64_t sql_int(const struct sql_rows *r, int row, int column)
{
    return strtoll(sql_cell(r, row, column), NULL, 10);
}

void sql_rows_free(struct sql_rows *r)
{
    for (int i = 0; i < r->n * r->columns; i++)
        free(r->cell[i]);
    free(r->cell);
    memset(r, 0, sizeof *r);
}

int sql_notify(struct sql *s, struct err *e)
{
    return s->driver->notify(s->db, e);
}

void sql_wait(struct sql *s, double wait_s)
{
    s->driver->wait(s->db, wait_s);
}
