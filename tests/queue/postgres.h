/* postgres.h - a PostgreSQL server of the test's own: a new cluster in a folder, on a Unix socket alone. */
#ifndef MC_TEST_POSTGRES_H
#define MC_TEST_POSTGRES_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

struct postgres {
    char *bin, *dir; /* NULL: there is none on this machine */
};

static inline char *postgres_bin(void)
{
    glob_t g;
    char *dir = NULL;

    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &g) == 0 && g.gl_pathc > 0) {
        dir = xstrdup(g.gl_pathv[g.gl_pathc - 1]);
        *strrchr(dir, '/') = 0;
    }
    globfree(&g);
    return dir;
}

/* The server refuses to run as root. */
static inline int postgres_run(const struct postgres *p, const char *what)
{
    char *cmd = geteuid() == 0 ? xasprintf("cd %s && runuser -u postgres -- %s/%s >>%s/log 2>&1", p->dir,
                                           p->bin, what, p->dir)
                               : xasprintf("cd %s && %s/%s >>%s/log 2>&1", p->dir, p->bin, what, p->dir);
    int rc = system(cmd);

    free(cmd);
    return rc;
}

static inline int postgres_ctl(const struct postgres *p, const char *verb)
{
    char *what =
        xasprintf("pg_ctl -D %s/db -w -t 60 -l %s/server.log -o '-c listen_addresses= -c fsync=off -k %s' %s",
                  p->dir, p->dir, p->dir, verb);
    int rc = postgres_run(p, what);

    free(what);
    return rc;
}

/* 0 with a running server, or with p->bin NULL where PostgreSQL is not installed; -1. */
static inline int postgres_start(struct postgres *p)
{
    char *what;
    int rc;

    *p = (struct postgres){.bin = postgres_bin()};
    if (!p->bin)
        return 0;
    p->dir = xstrdup("/tmp/musacoder-pg-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    what = xasprintf("chmod 777 %s", p->dir);
    rc = system(what);
    free(what);
    what = xasprintf("initdb -D %s/db -U postgres -A trust -E UTF8 --no-sync", p->dir);
    if (rc != 0 || postgres_run(p, what) != 0 || postgres_ctl(p, "start") != 0)
        rc = -1;
    free(what);
    return rc;
}

static inline void postgres_stop(struct postgres *p)
{
    if (p->bin) {
        postgres_ctl(p, "stop -m immediate");
        dir_remove(p->dir, NULL);
    }
    free(p->bin);
    free(p->dir);
}

/* A new database; its URL, owned. */
static inline char *postgres_database(const struct postgres *p, const char *name)
{
    char *what = xasprintf("createdb -h %s -U postgres %s", p->dir, name);

    postgres_run(p, what);
    free(what);
    return xasprintf("postgres://postgres@/%s?host=%s", name, p->dir);
}

#endif
