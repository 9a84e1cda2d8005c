/* sql_driver.h - what a database has to do for sql.h: a row for each, sql_sqlite.c and sql_postgres.c. */
#ifndef MC_SQL_DRIVER_H
#define MC_SQL_DRIVER_H

#include "queue/sql.h"

#define SQL_PARAMS 16

struct sql_value { /* of a placeholder */
    char type;     /* t i d */
    const char *text;
    int64_t i;
    double d;
};

struct sql_driver {
    const char *now, *id, *skip, *fill, *most; /* what the words in braces stand for */
    int (*open)(const char *url, const char *schema, int version, void **ret, struct err *e);
    void (*close)(void *db);
    /* A statement is known by its text's own address: it is spelled (sql_spell) and prepared once. */
    int64_t (*run)(void *db, const char *text, const struct sql_value *v, int n, struct sql_rows *ret, struct err *e);
    int (*notify)(void *db, struct err *e);
    void (*wait)(void *db, double wait_s);
};

extern const struct sql_driver sql_sqlite, sql_postgres;

char *sql_spell(const struct sql_driver *d, const char *text); /* the braces replaced; caller frees */

#endif
