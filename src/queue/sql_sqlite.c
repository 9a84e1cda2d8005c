/* sql_sqlite.c - sql.h on a SQLite file. Whoever changed something touches the file, and whoever waits has inotify tell
 * it: SQLite's own writes are dozens for each commit, and each would wake all. What nobody told of is found at the next
 * look. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "queue/sql_driver.h"
#include "store/store.h"

#define PREPARED 64
#define BUSY_S 20.0
#define BUSY_LOOK_US 100 /* another process's write takes about thrice this long; SQLite's own pauses grow to 0.1 s */
#define WAIT_SLICE_S 0.5 /* leases expire without anybody writing: look again this often */

/* A queue that this process has open: another file by its name is not it. */
struct lite_file {
    char *path;
    dev_t dev;
    ino_t ino;
    int users;
    struct lite_file *next;
};

struct lite {
    sqlite3 *db;
    char *path;
    struct lite_file *file;
    int log;   /* pages of the log after the last commit; 0: nothing was written */
    int watch; /* inotify, or -1: it has not waited yet */
    struct {
        const char *text;
        sqlite3_stmt *s;
    } prepared[PREPARED];
};

static int sql_sqlite_broken(struct lite *l, struct err *e)
{
    return err_set(e, ERR_ENV, "job queue: %s", sqlite3_errmsg(l->db));
}

/* Watches the file for writes. -1: it cannot. */
static int sql_sqlite_watch_file(const char *path)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd >= 0 && inotify_add_watch(fd, path, IN_ATTRIB) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A queue is written all the time, and copying the log back into the file waits for the disk: so it is done each 4 MiB,
 * by one thread that holds nobody up, and not at the end of each commit once the log is long. Readers keep a log from
 * beginning anew; at 256 MiB they have to wait. */
#define COPY_PAGES 1024
#define LOG_PAGES 65536

static atomic_int copied; /* pages of the log at this process's last copying */

/* SQLite's notice of a commit: keeps the log's size. */
static int sql_sqlite_on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct lite *l = ctx;

    l->log = pages;
    return SQLITE_OK;
}

/* After a write, without the writers' lock. */
static void sql_sqlite_copy_back(struct lite *l)
{
    int before = atomic_load(&copied), pages = l->log;
    int how = pages > LOG_PAGES ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;

    l->log = 0;
    if (pages && pages < before)
        atomic_store(&copied, before = 0); /* it began anew */
    if (pages >= before + COPY_PAGES && atomic_compare_exchange_strong(&copied, &before, pages))
        sqlite3_wal_checkpoint_v2(l->db, NULL, how, NULL, NULL);
}

/* Threads of this process that write take turns here: they would find the file locked, and sleep. */
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

/* Another process writes. */
static int sql_sqlite_busy(void *ctx, int n)
{
    (void)ctx;
    nanosleep(&(struct timespec){.tv_nsec = 1000 * BUSY_LOOK_US * (n < 100 ? 1 : 10)}, NULL);
    return n < 100 || (n - 100) < (int)(BUSY_S * 1e5 / BUSY_LOOK_US);
}

static int sql_sqlite_gone(const char *path, struct err *e)
{
    return err_set(e, ERR_ENV, "the job queue '%s' was moved or removed while it is in use; bring it back, or start "
                               "anew with another", path);
}

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lite_file *files; /* under the lock */

/* The entry of a path; NULL: this process does not have it open. */
static struct lite_file *sql_sqlite_file_of(const char *path)
{
    struct lite_file *f = files;

    while (f && strcmp(f->path, path))
        f = f->next;
    return f;
}

/* Before a file is opened, which makes one that is not there. */
static int sql_sqlite_file_check(const char *path, struct err *e)
{
    struct lite_file *f;
    struct stat st;
    bool same;

    pthread_mutex_lock(&files_lock);
    f = sql_sqlite_file_of(path);
    same = !f || (stat(path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino);
    pthread_mutex_unlock(&files_lock);
    return same ? 0 : sql_sqlite_gone(path, e);
}

static struct lite_file *sql_sqlite_file_take(const char *path)
{
    struct lite_file *f;
    struct stat st = {0};

    pthread_mutex_lock(&files_lock);
    if (!(f = sql_sqlite_file_of(path))) {
        stat(path, &st);
        f = xcalloc(1, sizeof *f);
        *f = (struct lite_file){.path = xstrdup(path), .dev = st.st_dev, .ino = st.st_ino, .next = files};
        files = f;
    }
    f->users++;
    pthread_mutex_unlock(&files_lock);
    return f;
}

static void sql_sqlite_file_leave(struct lite_file *f)
{
    struct lite_file **at = &files;

    pthread_mutex_lock(&files_lock);
    if (--f->users == 0) {
        while (*at != f)
            at = &(*at)->next;
        *at = f->next;
        free(f->path), free(f);
    }
    pthread_mutex_unlock(&files_lock);
}

/* Opens the file and makes the schema. */
static int sql_sqlite_lite_open(const char *url, const char *schema, int version, void **ret, struct err *e)
{
    sqlite3 *db;
    struct lite *l;

    if (sql_sqlite_file_check(url, e) < 0 || store_db_open(url, schema, version, &db, e) < 0)
        return -1;
    l = xcalloc(1, sizeof *l);
    l->db = db;
    l->path = xstrdup(url);
    l->file = sql_sqlite_file_take(url);
    l->watch = -1;
    sqlite3_wal_hook(db, sql_sqlite_on_commit, l);
    sqlite3_busy_handler(db, sql_sqlite_busy, NULL);
    *ret = l;
    return 0;
}

static void sql_sqlite_lite_close(void *db)
{
    struct lite *l = db;

    for (int i = 0; i < PREPARED; i++)
        sqlite3_finalize(l->prepared[i].s);
    sqlite3_close(l->db);
    if (l->watch >= 0)
        close(l->watch);
    sql_sqlite_file_leave(l->file);
    free(l->path);
    free(l);
}

/* The statement that was prepared for this text; statements beyond the table's size are made anew. *ret_own:
 * finalise it. */
static sqlite3_stmt *sql_sqlite_prepare(struct lite *l, const char *text, bool *ret_own, struct err *e)
{
    sqlite3_stmt *s = NULL;
    char *spelled;
    int i = 0, rc;

    while (i < PREPARED && l->prepared[i].s && l->prepared[i].text != text)
        i++;
    *ret_own = i == PREPARED;
    if (i < PREPARED && l->prepared[i].s)
        return l->prepared[i].s;
    spelled = sql_spell(&sql_sqlite, text);
    rc = sqlite3_prepare_v2(l->db, spelled, -1, &s, NULL);
    free(spelled);
    if (rc != SQLITE_OK) {
        sql_sqlite_broken(l, e);
        return NULL;
    }
    if (i < PREPARED) {
        l->prepared[i].text = text;
        l->prepared[i].s = s;
    }
    return s;
}

/* Binds a statement's values. */
static void sql_sqlite_bind(sqlite3_stmt *s, const struct sql_value *v, int n)
{
    for (int i = 0; i < n; i++) {
        if (v[i].type == 'i')
            sqlite3_bind_int64(s, i + 1, v[i].i);
        else if (v[i].type == 'd')
            sqlite3_bind_double(s, i + 1, v[i].d);
        else if (v[i].text)
            sqlite3_bind_text(s, i + 1, v[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_null(s, i + 1);
    }
}

/* Appends the current row. */
static void sql_sqlite_add_row(sqlite3_stmt *s, struct sql_rows *r)
{
    r->columns = sqlite3_column_count(s);
    r->cell = xrealloc(r->cell, (size_t)(r->n + 1) * (size_t)r->columns * sizeof *r->cell);
    for (int i = 0; i < r->columns; i++) {
        const char *text = (const char *)sqlite3_column_text(s, i);
        r->cell[r->n * r->columns + i] = xstrndup(text ? text : "", (size_t)sqlite3_column_bytes(s, i));
    }
    r->n++;
}

/* What would be written goes to a file that nobody finds by its name. */
static bool sql_sqlite_is_moved(struct lite *l, sqlite3_stmt *s)
{
    int moved = 0;

    if (!sqlite3_stmt_readonly(s))
        sqlite3_file_control(l->db, NULL, SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved;
}

/* Runs a statement. Rows returned or changed; -1 with e. */
static int64_t sql_sqlite_lite_run(void *db, const char *text, const struct sql_value *v, int n, struct sql_rows *ret,
                                   struct err *e)
{
    struct lite *l = db;
    bool own;
    sqlite3_stmt *s = sql_sqlite_prepare(l, text, &own, e);
    int rc;
    int64_t got;

    if (!s)
        return -1;
    if (sql_sqlite_is_moved(l, s)) {
        if (own)
            sqlite3_finalize(s);
        return sql_sqlite_gone(l->path, e);
    }
    sql_sqlite_bind(s, v, n);
    if (!sqlite3_stmt_readonly(s))
        pthread_mutex_lock(&writers);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) /* an update commits when the statement is done */
        sql_sqlite_add_row(s, ret);
    got = rc != SQLITE_DONE ? sql_sqlite_broken(l, e) : sqlite3_column_count(s) ? ret->n : sqlite3_changes(l->db);
    sqlite3_reset(s);
    if (!sqlite3_stmt_readonly(s))
        pthread_mutex_unlock(&writers);
    sql_sqlite_copy_back(l);
    sqlite3_clear_bindings(s);
    if (own)
        sqlite3_finalize(s);
    return got;
}

/* By name: to close another descriptor of the file would end SQLite's locks on it. */
static int sql_sqlite_lite_notify(void *db, struct err *e)
{
    struct lite *l = db;

    utimensat(AT_FDCWD, l->path, NULL, 0);
    return 0;
}

/* Waits until another process writes the file, or wait_s seconds. */
static void sql_sqlite_lite_wait(void *db, double wait_s)
{
    struct lite *l = db;
    struct pollfd p = {.events = POLLIN};
    char events[4096];

    if (wait_s > WAIT_SLICE_S)
        wait_s = WAIT_SLICE_S;
    if (l->watch < 0) {
        l->watch = sql_sqlite_watch_file(l->path);
        wait_s = l->watch < 0 && wait_s > 0.02 ? 0.02 : 0; /* what came before was not heard: look once more */
    }
    p.fd = l->watch;
    if (poll(&p, l->watch >= 0, (int)(wait_s * 1000) + 1) > 0)
        while (read(l->watch, events, sizeof events) > 0)
            ;
}

const struct sql_driver sql_sqlite = {
    .now = "((julianday('now') - 2440587.5) * 86400.0)",
    .id = "INTEGER PRIMARY KEY AUTOINCREMENT",
    .skip = "",
    .fill = "",
    .most = "max",
    .open = sql_sqlite_lite_open,
    .close = sql_sqlite_lite_close,
    .run = sql_sqlite_lite_run,
    .notify = sql_sqlite_lite_notify,
    .wait = sql_sqlite_lite_wait,
};
