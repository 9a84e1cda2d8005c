/* build_parts.c - what targets share: shell words, hashes of our own files, answers of compilers, prepared folders. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "store/content.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build_target.h"
#include "proc/proc.h"
#include "store/seal.h"
#include "store/store.h"

#define MAX_PREPARE 300.0
#define READY "ready"  /* of a prepared folder: a seal of its files and its name */
#define FORWARD "forward"
#define READY_NAME 130  /* in it: where the name begins */
#define HOLD_S 60.0    /* so long a look at them counts */

const char build_torch_macros[] =
    "-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ "
    "-D__CUDA_NO_HALF2_OPERATORS__";

void build_word(struct buf *out, const char *before, const char *s, const char *after)
{
    buf_adds(out, before);
    buf_addc(out, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    buf_addf(out, "'%s ", after);
}

void build_quote(struct buf *out, const char *s)
{
    build_word(out, "", s, "");
}

void build_hash_file(struct sha256 *h, const char *path)
{
    struct buf b;

    buf_init(&b, BUILD_MAX_SOURCE);
    if (file_read(path, &b, NULL) == 0)
        sha256_add(h, b.p, b.n);
    buf_free(&b);
}

void build_hash_tree(struct sha256 *h, const char *dir)
{
    char **names, *path;
    size_t n;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        path = path_join(dir, names[i]);
        sha256_adds(h, names[i]);
        if (file_is_dir(path))
            build_hash_tree(h, path);
        else
            build_hash_file(h, path);
        free(path);
    }
    names_free(names, n);
}

int build_add_kernels(const char *text, size_t n, const char *name, struct buf *out, struct err *e)
{
    if (memchr(text, 0, n))
        return err_set(e, ERR_INPUT, "'%s' holds a NUL byte", name);
    buf_addf(out, "#line 1 \"%s\"\n", name);
    buf_add(out, text, n);
    return 0;
}

int build_ask(char *const *argv, struct buf *out, struct err *e)
{
    struct proc_spec s = {.argv = argv, .timeout_s = 20};
    struct proc_result r;
    size_t had = out->n;

    if (proc_run(&s, &r, e) < 0)
        return -1;
    if (r.why == PROC_EXITED && r.code == 0) {
        for (char *c = r.out.p; *c; c++)
            if (*c == '\n')
                *c = ' ';
        buf_adds(out, r.out.p);
    }
    proc_result_free(&r);
    return out->n > had ? 0 : err_set(e, ERR_ENV, "'%s' does not answer", argv[0]);
}

int build_shell(const char *script, double timeout_s, const struct jail_spec *jail, struct proc_result *r,
                     struct err *e)
{
    char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
    struct proc_spec s = {.argv = argv, .timeout_s = timeout_s, .jail = jail, .max_out = BUILD_MAX_LOG,
                          .max_err = BUILD_MAX_LOG};

    return proc_run(&s, r, e);
}

/* Each version of our headers leaves 150 MB behind: those of former days go when new ones are made. */
static void build_parts_drop_old_prefixes(const char *root)
{
    char **names, *ready, *dir;
    struct stat st;
    size_t n;

    if (dir_list(root, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(names[i], "prefix-", 7))
            continue;
        dir = path_join(root, names[i]);
        ready = path_join(dir, READY);
        if (stat(ready, &st) == 0 && time(NULL) - st.st_mtime > 3 * 86400)
            dir_remove(dir, NULL);
        free(ready);
        free(dir);
    }
    names_free(names, n);
}

/* What 'ready' holds: a seal of the folder's name and of its other files, their states, and the name. */
static int build_parts_prefix_seal(const char *dir, struct buf *ret, struct err *e)
{
    char digest[65], hex[65], states[65];
    struct sha256 h;

    if (content_digest_without(dir, READY, digest, e) < 0 || content_states(dir, READY, states, e) < 0)
        return -1;
    seal_start(&h, dir);
    sha256_adds(&h, digest);
    sha256_end(&h, hex);
    buf_addf(ret, "%s %s %s\n", hex, states, strrchr(dir, '/') + 1);
    return 0;
}

/* Files whose states are others are compared; where they hold what they held, the states are noted. */
static bool build_parts_prefix_compare(const char *dir, const char *ready, const char *said)
{
    struct buf now;
    bool same;

    buf_init(&now, 512);
    same = build_parts_prefix_seal(dir, &now, NULL) == 0 && !strncmp(said, now.p, 65) &&
           !strcmp(said + READY_NAME, now.p + READY_NAME);
    if (same && strcmp(said, now.p))
        file_write(ready, now.p, now.n, NULL); /* of a folder of others: it is compared each time */
    buf_free(&now);
    return same;
}

/* full: the files themselves, not their states. What is damaged is not ready any more. */
static bool build_parts_prefix_is_ready(const char *dir, const char *ready, bool full)
{
    char states[65] = "";
    struct buf said;
    bool is, ours;

    buf_init(&said, 512);
    ours = file_exists(ready) && file_read(ready, &said, NULL) == 0 && said.n > READY_NAME;
    is = ours && !full && content_states(dir, READY, states, NULL) == 0 && !strncmp(said.p + 65, states, 64) &&
         !strncmp(said.p + READY_NAME, strrchr(dir, '/') + 1, said.n - READY_NAME - 1);
    if (ours && !is && !(is = build_parts_prefix_compare(dir, ready, said.p)) && unlink(ready) == 0)
        log_warn("our headers in '%s' are damaged and are made again", dir);
    buf_free(&said);
    return is;
}

/* Our own code, compiled unjailed. What is 'ready' lies on the disk as a whole. */
static int build_parts_prefix_make(const struct toolchain *t, const char *dir, const char *ready,
                                   const struct buf *script, struct err *e)
{
    struct proc_result r;
    struct buf seal;
    int rc = build_shell(script->p, MAX_PREPARE, NULL, &r, e);

    if (rc < 0)
        return -1;
    if (r.why != PROC_EXITED || r.code != 0)
        rc = err_set(e, ERR_ENV, "our own headers do not compile for %s with '%s': %.600s", t->target->name,
                     t->nvcc ? t->nvcc : t->compiler, r.err.p);
    proc_result_free(&r);
    buf_init(&seal, 512);
    if (rc == 0 && (rc = build_parts_prefix_seal(dir, &seal, e)) == 0 && (rc = folder_flush(dir, e)) == 0)
        rc = file_write(ready, seal.p, seal.n, e);
    buf_free(&seal);
    return rc;
}

static char *build_parts_prefix_root(void)
{
    const char *given = getenv("MUSACODER_PREFIX_DIR"); /* of tests, whose caches are many */

    return given && *given ? xstrdup(given) : path_cache("build");
}

/* The prepared folders that this process compiled with: others may be half made, by whoever was killed at it. */
static struct {
    pthread_mutex_t lock;
    char **dirs;
    size_t n;
} prefixes_used = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Notes that this process uses the prepared folder. */
static void build_parts_prefix_use(const char *dir)
{
    bool known = false;

    pthread_mutex_lock(&prefixes_used.lock);
    for (size_t i = 0; i < prefixes_used.n; i++)
        known |= !strcmp(prefixes_used.dirs[i], dir);
    if (!known) {
        prefixes_used.dirs = xrealloc(prefixes_used.dirs, (prefixes_used.n + 1) * sizeof *prefixes_used.dirs);
        prefixes_used.dirs[prefixes_used.n++] = xstrdup(dir);
    }
    pthread_mutex_unlock(&prefixes_used.lock);
}

/* The folder of a toolchain's prepared part, whether it is there or not. Owned. */
static char *build_parts_prefix_path(const struct toolchain *t, const char *name)
{
    char folder[64], *root = build_parts_prefix_root(), *dir;

    snprintf(folder, sizeof folder, "prefix-%.24s-%s", t->hash, name);
    dir = path_join(root, folder);
    free(root);
    return dir;
}

/* What is compiled here includes the headers that forward to others, so those are there first. */
static int build_parts_prepare_forward(const struct toolchain *t, const char *name, struct err *e)
{
    char *forward;

    if (!strcmp(name, FORWARD))
        return 0;
    forward = build_forward_dir(t, e);
    free(forward);
    return forward ? 0 : -1;
}

char *build_prefix_dir(const struct toolchain *t, const char *name, void (*make)(struct buf *script,
                       const struct toolchain *t, int arg), int arg, struct err *e)
{
    char *root = build_parts_prefix_root(), *dir = build_parts_prefix_path(t, name), *ready = path_join(dir, READY);
    char *lock = path_join(dir, "lock");
    struct buf script;
    int fd, rc = 0;

    if (!build_parts_prefix_is_ready(dir, ready, false)) {
        build_parts_drop_old_prefixes(root);
        buf_init(&script, 1 << 16);
        buf_adds(&script, "set -e; cd ");
        build_quote(&script, dir);
        buf_adds(&script, "\n");
        make(&script, t, arg);
        buf_addc(&script, '\n');
        rc = build_parts_prepare_forward(t, name, e) < 0 ? -1 : dir_make(dir, e);
        fd = rc < 0 ? -1 : lock_file(lock, BUILD_LOCK_WAIT_S, e);
        rc = fd < 0 ? -1 : 0;
        if (rc == 0 && !build_parts_prefix_is_ready(dir, ready, false))
            rc = build_parts_prefix_make(t, dir, ready, &script, e);
        if (fd >= 0)
            close(fd);
        buf_free(&script);
    } else {
        utime(ready, NULL); /* in use */
    }
    free(root);
    free(ready);
    free(lock);
    if (rc < 0) {
        free(dir);
        return NULL;
    }
    build_parts_prefix_use(dir);
    return dir;
}

/* True where the prepared folder's files are as its seal says. */
static bool build_parts_prefix_holds(const char *dir)
{
    char *ready = path_join(dir, READY);
    bool holds = build_parts_prefix_is_ready(dir, ready, true);

    free(ready);
    return holds;
}

/* True where all prepared folders of this toolchain that are in use hold. */
static bool build_parts_all_hold(const struct toolchain *t)
{
    char folder[48];
    bool hold = true;

    snprintf(folder, sizeof folder, "/prefix-%.24s-", t->hash);
    pthread_mutex_lock(&prefixes_used.lock);
    for (size_t i = 0; i < prefixes_used.n; i++)
        if (strstr(prefixes_used.dirs[i], folder))
            hold &= build_parts_prefix_holds(prefixes_used.dirs[i]);
    pthread_mutex_unlock(&prefixes_used.lock);
    return hold;
}

bool build_prefixes_hold(const struct toolchain *t)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char held[65]; /* these held at 'when' */
    static double when;
    bool hold;

    pthread_mutex_lock(&lock);
    hold = !strcmp(held, t->hash) && now_s() < when + HOLD_S;
    if (!hold && (hold = build_parts_all_hold(t))) {
        when = now_s();
        memcpy(held, t->hash, sizeof held);
    }
    pthread_mutex_unlock(&lock);
    return hold;
}

/* Appends the command that makes the headers that only forward to others. */
static void build_parts_forward(struct buf *s, const struct toolchain *t, int arg)
{
    (void)arg;
    build_word(s, "sh ", t->lite, "/litetorch/forward.sh");
    buf_adds(s, ".");
}

char *build_forward_dir(const struct toolchain *t, struct err *e)
{
    return build_prefix_dir(t, FORWARD, build_parts_forward, 0, e);
}

char *build_forward_path(const struct toolchain *t)
{
    return build_parts_prefix_path(t, FORWARD);
}

char *build_prefix(const struct toolchain *t, struct err *e)
{
    return build_prefix_dir(t, t->target->name, t->target->precompile, 0, e);
}

void build_precompile_header(struct buf *script, const struct toolchain *t, const char *command)
{
    buf_adds(script, "printf '#include \"litetorch/prefix.h\"\\n#pragma litetorch instantiate\\n' >prefix.h\n{ ");
    build_quote(script, t->compiler);
    build_word(script, "-x c -w -O1 -fPIC -shared -o early.so ", t->lite, "/litetorch/early_templates.c");
    buf_addf(script, "&& %s-fplugin=./early.so -c -x c++-header prefix.h -o prefix.tmp 2>early.log || "
                     "%s-c -x c++-header prefix.h -o prefix.tmp; } & p=$!\n", command, command);
}

/* The file says which linker it is: to ask it would start three processes for each verdict that is known. */
void build_find_linker(struct toolchain *t, struct sha256 *h)
{
    char *path = proc_find("ld.gold");
    struct stat st;

    t->gold = path && stat(path, &st) == 0;
    if (t->gold) {
        const int64_t id[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};

        sha256_adds(h, path);
        sha256_add(h, id, sizeof id);
    }
    free(path);
}

void build_add_link(struct buf *script, const struct toolchain *t, const char *words)
{
    if (t->gold) {
        build_quote(script, t->compiler);
        buf_addf(script, "-fuse-ld=gold %s || ", words);
    }
    build_quote(script, t->compiler);
    buf_adds(script, words);
}

int build_write(const char *dir, const char *name, const struct buf *text, struct err *e)
{
    char *path = path_join(dir, name);
    int rc = file_write(path, text->p, text->n, e);

    free(path);
    return rc;
}

void build_plan_ro(struct build_plan *p, const char *path)
{
    if (path && strncmp(path, "/usr/", 5) && p->n_ro + 1 < (int)(sizeof p->ro / sizeof *p->ro))
        p->ro[p->n_ro++] = xstrdup(path);
}
