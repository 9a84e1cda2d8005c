/* listing.c - see listing.h. The file is a journal while results are made, and a sorted list at the end. */
#include "base/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define HEAD "# results of musacoder, as sha256sum(1) lists them"
#define UNFINISHED "# unfinished"
#define FROM "# of "
#define END "# whole "
#define EDITS "# edits are meant"
#define HASH 64
#define LOCK_WAIT_S 30

struct listing {
    char *dir, *path, *from;
    json_t *was, *made; /* name -> its hashes, one behind the other: a stopped command may have left either */
    bool finished, there, damaged, edits; /* there: it was not begun just now; edits: are taken as they are */
    int lock;                      /* of who makes results now; -1: nobody, or nobody can */
};

/* ---- reading ---- */

/* The last line of a finished listing: a hash of all before it, so that one which was cut is known. Owned. */
static char *listing_end_line(const char *text, size_t n)
{
    char hash[HASH + 1];

    sha256_hex(text, n, hash);
    return xasprintf(END "%s\n", hash);
}

/* Is the text that of a listing: with its head, and either unfinished or with its end? */
static bool listing_is_whole(const char *text, size_t n)
{
    const char *end = memmem(text, n, "\n" END, strlen("\n" END));
    char *line = end ? listing_end_line(text, (size_t)(end + 1 - text)) : NULL;
    bool whole = !strncmp(text, HEAD "\n", strlen(HEAD "\n")) &&
                 (line ? !strcmp(end + 1, line) : strstr(text, "\n" UNFINISHED "\n") != NULL);

    free(line);
    return whole;
}

/* May a result be called so? The name stays below the folder, and is one line. */
static bool listing_can_name(const char *name)
{
    size_t n = strlen(name);
    bool plain = *name && *name != '/' && !strpbrk(name, "\n\\") && utf8_bad_at(name, n) == n;

    for (const char *p = name; plain && *p; p += strcspn(p, "/"), p += *p == '/')
        plain = strncmp(p, "..", 2) || (p[2] && p[2] != '/');
    return plain;
}

/* One line of the file; unknown comments are passed over. */
static void listing_take_line(struct listing *l, const char *line)
{
    const char *name = line + HASH + 2;
    char *both;

    if (!strcmp(line, UNFINISHED))
        l->finished = false;
    if (!strcmp(line, EDITS))
        l->edits = true;
    if (!strncmp(line, FROM, strlen(FROM)))
        free(l->from), l->from = xstrdup(line + strlen(FROM));
    if (*line == '#' || strlen(line) <= HASH + 2 || !listing_can_name(name))
        return;
    both = xasprintf("%s%.*s", json_str(l->was, name, ""), HASH, line);
    json_object_set_new(l->was, name, json_string(both));
    free(both);
}

/* The listing of a folder; one without a file is empty. */
static int listing_open(const char *dir, struct listing **ret, struct err *e)
{
    struct listing *l = xcalloc(1, sizeof *l);
    char *save = NULL;
    struct buf b;
    int rc = 0;

    *l = (struct listing){.dir = xstrdup(dir), .path = path_join(dir, LISTING_NAME), .was = json_object(),
                          .made = json_object(), .finished = true, .lock = -1};
    buf_init(&b, (size_t)1 << 30);
    l->there = file_exists(l->path);
    if (l->there && (rc = file_read(l->path, &b, e)) == 0) {
        l->damaged = !listing_is_whole(b.p, b.n) && (!strncmp(b.p, HEAD, strlen(HEAD)) || folder_lies_in_ours(l->path));
        for (char *line = strtok_r(b.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            listing_take_line(l, line);
    }
    buf_free(&b);
    if (rc < 0)
        listing_free(l), l = NULL;
    *ret = l;
    return rc;
}

void listing_free(struct listing *l)
{
    if (!l)
        return;
    json_decref(l->was), json_decref(l->made);
    if (l->lock >= 0)
        close(l->lock);
    free(l->dir), free(l->path), free(l->from);
    free(l);
}

/* ---- writing ---- */

static void listing_put_names(struct buf *b, const json_t *names)
{
    const char *name, *all;
    json_t *v;

    json_object_foreach((json_t *)names, name, v)
        for (all = json_string_value(v); *all; all += HASH)
            buf_addf(b, "%.*s  %s\n", HASH, all, name);
}

/* Writes the file anew, of these names. */
static int listing_save(const struct listing *l, const char *mark, const json_t *names, struct err *e)
{
    struct buf b;
    char *end;
    int rc;

    buf_init(&b, (size_t)1 << 30);
    buf_addf(&b, HEAD "\n%s", mark);
    if (l->edits)
        buf_adds(&b, EDITS "\n");
    if (l->from)
        buf_addf(&b, FROM "%s\n", l->from);
    listing_put_names(&b, names);
    if (!*mark) {
        end = listing_end_line(b.p, b.n);
        buf_adds(&b, end);
        free(end);
    }
    rc = file_write(l->path, b.p ? b.p : "", b.n, e);
    buf_free(&b);
    return rc;
}

/* The text as one line of UTF-8. Owned. */
static char *listing_line_of(const char *text)
{
    json_t *v = json_utf8(text, strlen(text));
    char *line = xstrdup(json_string_value(v));

    for (char *p = line; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    json_decref(v);
    return line;
}

/* Waits until no other process makes results in the folder, so long as commands of one 'make -j' take; one that stands
 * still is an error. *ret -1: the folder has no stamp, or its file system knows no locks. */
static int listing_lock(const char *dir, int *ret, struct err *e)
{
    char *stamp = path_join(dir, STAMP_NAME);
    int tries = 0;

    *ret = stamp_is_in(dir) ? open(stamp, O_RDONLY | O_CLOEXEC) : -1;
    free(stamp);
    while (*ret >= 0 && flock(*ret, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        if (tries == 0)
            log_info("another command writes into '%s'; waiting for it", dir);
        if (tries++ == LOCK_WAIT_S * 10) {
            close(*ret), *ret = -1;
            return err_set(e, ERR_INPUT, "another command writes into '%s'; wait for it, or name another --out", dir);
        }
        usleep(100000);
    }
    return 0;
}

int listing_begin(const char *dir, const char *from, struct listing **ret, struct err *e)
{
    char *source = from ? listing_line_of(from) : NULL;
    int lock, rc = listing_lock(dir, &lock, e);
    struct listing *l = NULL;

    if (rc == 0 && (rc = listing_open(dir, &l, e)) == 0)
        l->lock = lock;
    else if (lock >= 0)
        close(lock);

    if (rc == 0 && source && l->from && strcmp(l->from, source))
        rc = err_set(e, ERR_INPUT, "'%s' holds what was made of '%s', not of '%s'; name another --out, or remove it",
                     dir, l->from, source);
    if (rc == 0 && source)
        free(l->from), l->from = xstrdup(source);
    if (rc == 0)
        rc = listing_save(l, UNFINISHED "\n", l->was, e);
    if (rc < 0)
        listing_free(l), l = NULL;
    free(source);
    *ret = l;
    return rc;
}

/* Notes a result before it is there. */
static int listing_note(struct listing *l, const char *name, const char hash[HASH + 1], struct err *e)
{
    char *line;
    int rc;

    if (!listing_can_name(name))
        return 0;
    line = xasprintf("%s  %s\n", hash, name);
    rc = file_append(l->path, line, strlen(line), e);
    free(line);
    json_object_set_new(l->made, name, json_string(hash));
    return rc;
}

int listing_write_json(struct listing *l, const char *name, const json_t *v, struct err *e)
{
    char *text = json_file_text(name, v, e);
    int rc = text ? listing_write(l, name, text, strlen(text), e) : -1;

    free(text);
    return rc;
}

int listing_write_copy(struct listing *l, const char *name, const char *from, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, (size_t)1 << 40);
    rc = file_read(from, &b, e) < 0 ? -1 : listing_write(l, name, b.p, b.n, e);
    buf_free(&b);
    return rc;
}

int listing_add(struct listing *l, const char *name, struct err *e)
{
    char hash[HASH + 1], *path = path_join(l->dir, name);
    int rc = sha256_file(path, hash) < 0 ? err_sys(e, "cannot read '%s'", path) : listing_note(l, name, hash, e);

    free(path);
    return rc;
}

/* Is the file one of those that were noted under its name? */
static bool listing_is_as_noted(const char *path, const char *hashes)
{
    char hash[HASH + 1];

    return sha256_file(path, hash) == 0 && strstr(hashes, hash) != NULL;
}

/* What is there under the result's name, and is none of ours, goes on as NAME.edited. */
static int listing_keep_edited(const struct listing *l, const char *name, const char *path, struct err *e)
{
    const char *noted = json_str(l->was, name, "");
    char *kept;
    int rc;

    if (!l->there || !file_exists(path) || listing_is_as_noted(path, noted))
        return 0;
    if ((rc = file_keep_aside(path, &kept, e)) == 0) {
        log_warn("'%s' is not what its command left there; it is kept as '%s'", path, kept);
        free(kept);
    }
    return rc;
}

int listing_write(struct listing *l, const char *name, const void *data, size_t n, struct err *e)
{
    char hash[HASH + 1], *path = path_join(l->dir, name);
    int rc;

    sha256_hex(data ? data : "", n, hash);
    rc = stamp_check_links(path, e) < 0 ? -1 : listing_note(l, name, hash, e);
    if (rc == 0 && !listing_is_as_noted(path, hash))
        rc = listing_keep_edited(l, name, path, e) < 0 ? -1 : file_write(path, data, n, e);
    free(path);
    return rc;
}

/* A callback of dir_each: a file of the work folder gets its place. */
static int listing_move_file(void *listing, const char *from, const char *name, struct err *e)
{
    struct listing *l = listing;
    char hash[HASH + 1], *to = path_join(l->dir, name);
    int rc = sha256_file(from, hash) < 0 ? err_sys(e, "cannot read '%s'", from) : 0;

    if (rc == 0)
        rc = stamp_check_links(to, e) < 0 || listing_note(l, name, hash, e) < 0 ||
             (!listing_is_as_noted(to, hash) && listing_keep_edited(l, name, to, e) < 0) ? -1 : 0;
    if (rc == 0 && rename(from, to) < 0)
        rc = err_sys(e, "cannot replace '%s'", to);
    free(to);
    return rc;
}

int listing_move(struct listing *l, const char *work, struct err *e)
{
    return dir_each(work, listing_move_file, l, e) < 0 ? -1 : dir_remove(work, e);
}

void listing_allow_edits(struct listing *l)
{
    l->edits = true;
}

int listing_put_aside(struct listing *l, const char *name, struct err *e)
{
    char *path = path_join(l->dir, name), *kept;
    bool ours = json_object_get(l->made, name) || listing_is_as_noted(path, json_str(l->was, name, ""));
    int rc = ours || !file_exists(path) ? 0 : file_keep_aside(path, &kept, e);

    if (rc == 0 && !ours && file_exists(path)) {
        log_warn("'%s' is not of it and would be read with it; it is called '%s' now", path, kept);
        free(kept);
        rc = unlink(path) < 0 ? err_sys(e, "cannot remove '%s'", path) : 0;
    }
    free(path);
    return rc;
}

/* Removes a former result as it was left; a changed one stays, and is told. */
static int listing_remove(const char *path, const char *hashes, struct err *e)
{
    if (listing_is_as_noted(path, hashes))
        return unlink(path) < 0 ? err_sys(e, "cannot remove '%s'", path) : 0;
    log_warn("'%s' is a former result that somebody has changed; it is left there", path);
    return 0;
}

int listing_drop(struct listing *l, const char *name, struct err *e)
{
    const char *hashes = json_str(l->was, name, "");
    char *path = path_join(l->dir, name);
    int rc = file_exists(path) ? listing_remove(path, hashes, e) : 0;

    free(path);
    return rc;
}

int listing_end(struct listing *l, bool keep, size_t *ret_former, struct err *e)
{
    size_t former = 0;
    const char *name;
    json_t *hashes;
    int rc = 0;

    json_object_foreach(l->was, name, hashes) {
        char *path = path_join(l->dir, name);

        if (rc == 0 && !json_object_get(l->made, name) && file_exists(path)) {
            former++;
            rc = keep ? json_object_set(l->made, name, hashes)
                      : listing_remove(path, json_string_value(hashes), e);
        }
        free(path);
    }
    if (ret_former)
        *ret_former = former;
    return rc < 0 ? -1 : listing_save(l, "", l->made, e);
}

int listing_put(const char *dir, const json_t *hashes, struct err *e)
{
    struct listing *l;
    int rc = listing_open(dir, &l, e);

    if (rc == 0)
        rc = listing_save(l, hashes ? "" : UNFINISHED "\n", hashes ? hashes : l->was, e);
    listing_free(l);
    return rc;
}

int listing_replace(const char *dir, const char *name, const void *data, size_t n, struct err *e)
{
    char hash[HASH + 1], *path = path_join(dir, name);
    struct listing *l = NULL;
    int rc = stamp_check_links(path, e);

    sha256_hex(data ? data : "", n, hash);
    if (rc == 0 && !listing_is_as_noted(path, hash)) {
        if (file_exists(path))
            rc = listing_open(dir, &l, e) < 0 ? -1 : listing_keep_edited(l, name, path, e);
        rc = rc < 0 ? -1 : file_write(path, data, n, e);
    }
    listing_free(l);
    free(path);
    return rc;
}

/* ---- checking ---- */

/* Is the name that of the part of the folder, or below it? The empty part is all of it. */
static bool listing_is_below(const char *name, const char *part)
{
    size_t n = strlen(part);

    return !n || (!strncmp(name, part, n) && (!name[n] || name[n] == '/'));
}

static int listing_check_file(const struct listing *l, const char *name, const char *hashes, struct err *e)
{
    char *path = path_join(l->dir, name);
    int rc = 0;

    if (!file_exists(path))
        rc = err_set(e, ERR_INPUT, "'%s' is gone, which '%s' lists; give the command that made it again", path,
                     l->path);
    else if (!listing_is_as_noted(path, hashes))
        rc = err_set(e, ERR_INPUT, "'%s' has changed since it was made ('%s' says); give its command again, or, if the "
                                   "change is meant, copy it to a folder of your own", path, l->path);
    free(path);
    return rc;
}

/* The part of a folder that has a listing. */
static int listing_check_part(const char *dir, const char *part, struct err *e)
{
    struct listing *l;
    const char *name;
    json_t *hashes;
    int rc = listing_open(dir, &l, e);

    if (rc < 0)
        return -1;
    if (l->damaged)
        rc = err_set(e, ERR_INPUT, "'%s' is damaged, which says what '%s' holds; give the command that made it again",
                     l->path, dir);
    else if (!l->finished)
        rc = err_set(e, ERR_INPUT, "'%s' is unfinished: its command was stopped; give it again", dir);
    json_object_foreach(l->was, name, hashes)
        if (rc == 0 && !l->edits && listing_is_below(name, part))
            rc = listing_check_file(l, name, json_string_value(hashes), e);
    listing_free(l);
    return rc;
}

bool listing_is_there(const char *dir)
{
    char *path = path_join(dir, LISTING_NAME);
    bool there = file_exists(path);

    free(path);
    return there;
}

/* The nearest folder at or above path that has a listing, and what path is called there ("" for itself). NULL: none.
 * Both are owned. */
static char *listing_find(const char *path, char **ret_part)
{
    char *dir = realpath(path, NULL), *part = xstrdup("");

    while (dir && strlen(dir) > 1) {
        char *slash = strrchr(dir, '/'), *longer;

        if (file_is_dir(dir) && listing_is_there(dir)) {
            *ret_part = part;
            return dir;
        }
        longer = path_join(slash + 1, part);
        free(part), part = longer;
        slash[slash == dir] = 0;
    }
    free(dir), free(part);
    return NULL;
}

int listing_check(const char *path, struct err *e)
{
    char *part, *dir = listing_find(path, &part);
    int rc = dir ? listing_check_part(dir, part, e) : 0;

    if (dir)
        free(dir), free(part);
    return rc;
}

int listing_check_own(const char *dir, struct err *e)
{
    return listing_is_there(dir) ? listing_check_part(dir, "", e) : 0;
}

bool listing_names(const char *path)
{
    char *part, *dir = listing_find(path, &part);
    struct listing *l = NULL;
    bool named;

    if (!dir || listing_open(dir, &l, NULL) < 0)
        l = NULL;
    named = l && json_object_get(l->was, part);
    if (dir)
        free(dir), free(part);
    listing_free(l);
    return named;
}

bool listing_holds(const char *dir)
{
    struct err e = ERR_INIT;
    bool holds = !listing_is_there(dir) || listing_check_part(dir, "", &e) == 0;

    if (!holds)
        log_warn("%s", e.msg);
    return holds;
}

/* ---- what is none of it ---- */

struct listing_walk { /* below a folder that has a listing; 'below': "" or "tasks/", from there */
    const struct listing *l;
    const char *below;
    bool (*known)(const char *name);
    char *found;
};

static char *listing_find_below(const struct listing_walk *up, const char *dir, const char *below);

/* A callback of dir_each: 1 where the file is a user's, or one in the folder is. A link is a file. */
static int listing_look(void *walk, const char *path, const char *name, struct err *e)
{
    struct listing_walk *w = walk;
    char *from = xasprintf("%s%s", w->below, name), *deeper = xasprintf("%s/", from);
    const char *noted = json_str(w->l->was, from, NULL);
    bool folder = file_is_dir(path) && stamp_check_plain(path, NULL) == 0;

    (void)e;
    if (folder)
        w->found = listing_find_below(w, path, deeper);
    else if (!file_is_temporary(name) && (noted ? !listing_is_as_noted(path, noted) : !w->known(from)))
        w->found = xstrdup(path);
    free(from), free(deeper);
    return w->found != NULL;
}

/* In a folder with a listing of its own names begin there. */
static char *listing_find_below(const struct listing_walk *up, const char *dir, const char *below)
{
    bool own = !up->l || listing_is_there(dir);
    struct listing *l = NULL;
    struct listing_walk w = {.l = up->l, .below = below, .known = up->known};

    if (own && listing_open(dir, &l, NULL) == 0)
        w.l = l, w.below = "";
    if (w.l)
        dir_each(dir, listing_look, &w, NULL);
    listing_free(l);
    return w.found;
}

char *listing_find_foreign(const char *dir, bool (*known)(const char *name))
{
    return listing_find_below(&(struct listing_walk){.known = known}, dir, "");
}
