/* build.c - the compile stage on sim: request -> sources -> jailed compiler -> cached shared object.
 * Reading order: build_run at the end, then compile(), then explain(). */
#include "eval/build.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build_log.h"
#include "proc/proc.h"
#include "store/limit.h"
#include "store/store.h"
#include "translate/simt_rewrite.h"

#define BUILD_SALT "musacoder.build/1"
#define MAX_SOURCE (4u << 20)
#define MAX_LOG (256u << 10)
#define DEFAULT_TIMEOUT 60.0
#define LOCK_WAIT_S 900.0 /* for another process that compiles the same */

/* What torch passes to nvcc by itself: half operators are absent unless the candidate undoes it. */
static const char torch_macros[] =
    "-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ "
    "-D__CUDA_NO_HALF2_OPERATORS__";
static const char common_flags[] = "-x c++ -std=gnu++17 -g1 -fPIC -w -fno-strict-aliasing -ffp-contract=fast "
                                   "-fno-optimize-sibling-calls -fno-gnu-unique "
                                   "-fmax-errors=20 -ftemplate-depth=200 -ftemplate-backtrace-limit=6 "
                                   "-fdiagnostics-color=never -fno-diagnostics-show-caret -fvisibility=default";
/* Three ways to compile: the host's half (bindings, rarely more), kernels with and without instrumentation. */
enum mode { MODE_HOST, MODE_FAST, MODE_CHECK, N_MODES };
static const char *const mode_names[N_MODES] = {"host", "fast", "check"};
static const char *const mode_opts[N_MODES] = {"-O0", "-O2", "-O1 -fsanitize=thread --param tsan-instrument-func-entry-exit=0"};

/* ---- what the request says ---- */

struct request {
    const json_t *cpp, *cuda, *functions;
    const char *name;
    struct buf flags; /* the candidate's -D and -U, shell-quoted */
    struct buf main_cpp, cuda_cu;
    bool bare;        /* no_implicit_headers */
    bool joined;      /* the cpp sources only declare: both halves may be one translation unit, in half the time */
};

static const char *text_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

static int check_list(const json_t *req, const char *key, const json_t **ret, struct err *e)
{
    const json_t *l = json_object_get(req, key), *v;
    size_t i;

    *ret = l;
    if (!l || json_is_null(l))
        return *ret = NULL, 0;
    if (!json_is_array(l))
        return err_set(e, ERR_BUG, "build request: '%s' is not a list", key);
    json_array_foreach((json_t *)l, i, v)
        if (!json_is_string(v))
            return err_set(e, ERR_BUG, "build request: '%s' holds something else than text", key);
    return 0;
}

static void quote(struct buf *out, const char *s)
{
    buf_addc(out, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    buf_adds(out, "' ");
}

/* Macros and the language standard are the candidate's; optimisation, architectures, paths and plugins are ours. */
static void keep_flags(struct buf *out, const json_t *flags)
{
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        const char *s = json_string_value(v);
        if ((!strncmp(s, "-D", 2) || !strncmp(s, "-U", 2)) && s[2])
            quote(out, s);
        else if (!strcmp(s, "-std=c++20") || !strcmp(s, "-std=c++23") || !strcmp(s, "--std=c++20"))
            quote(out, s + (s[1] == '-'));
    }
}

/* Name under which compiler and findings show a source: 'cuda_source', 'cuda_sources[1]', or the file of load(). */
static void label(char *out, size_t n, const json_t *req, const char *kind, const json_t *list, size_t i)
{
    char key[32];
    const char *given;

    snprintf(key, sizeof key, "%s_names", kind);
    given = text_at(json_object_get(req, key), i);
    if (given && *given)
        snprintf(out, n, "%s", given);
    else if (json_array_size(list) == 1)
        snprintf(out, n, "%s_source", kind);
    else
        snprintf(out, n, "%s_sources[%zu]", kind, i);
    for (char *c = out; *c; c++)
        if (*c == '"' || *c == '\\' || *c == '\n' || *c == ':')
            *c = '_';
}

static int add_sources(struct buf *out, const json_t *req, const char *kind, const json_t *list, bool rewrite,
                       struct err *e)
{
    char name[128];

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = text_at(list, i);
        label(name, sizeof name, req, kind, list, i);
        if (!rewrite)
            buf_addf(out, "#line 1 \"%s\"\n%s", name, s);
        else if (simt_rewrite(s, strlen(s), name, out, e) < 0)
            return -1;
        buf_addc(out, '\n');
    }
    return 0;
}

static void add_c_string(struct buf *out, const char *s)
{
    buf_addc(out, '"');
    for (; *s; s++)
        buf_addf(out, *s == '"' || *s == '\\' || (unsigned char)*s < 32 ? "\\%03o" : "%c", (unsigned char)*s);
    buf_addc(out, '"');
}

/* As torch's load_inline: main.cpp ends with the module that binds each requested function. */
static void add_binding(struct buf *out, const json_t *functions)
{
    const char *name;
    const json_t *doc;

    buf_adds(out, "#line 1 \"functions\"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
    json_object_foreach((json_t *)functions, name, doc) {
        buf_addf(out, "m.def(\"%s\", torch::wrap_pybind_function(%s), ", name, name);
        add_c_string(out, json_is_string(doc) ? json_string_value(doc) : name);
        buf_adds(out, ");\n");
    }
    buf_adds(out, "}\n");
}

static void request_free(struct request *r)
{
    buf_free(&r->flags);
    buf_free(&r->main_cpp);
    buf_free(&r->cuda_cu);
}

/* 'functions' may be a list (as in ARCHITECTURE.md) or a table of docs; new reference or NULL. */
static json_t *function_table(const json_t *f)
{
    json_t *t;
    const json_t *v;
    size_t i;

    if (json_is_object(f))
        return json_incref((json_t *)f);
    if (!json_is_array(f))
        return NULL;
    t = json_object();
    json_array_foreach((json_t *)f, i, v)
        if (json_is_string(v))
            json_object_set_new(t, json_string_value(v), json_string(json_string_value(v)));
    return t;
}

/* Prototypes and nothing else. Whatever could mean something different behind the kernels' text says no. */
static bool only_declares(const json_t *sources)
{
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (strpbrk(text_at(sources, i), "{}=#\"'/\\") || strstr(text_at(sources, i), "static"))
            return false;
    return json_array_size(sources) > 0;
}

static int request_read(const json_t *req, struct request *r, struct err *e)
{
    const json_t *cflags, *cuda_flags;
    json_t *table;
    int rc = 0;

    buf_init(&r->flags, MAX_SOURCE);
    buf_init(&r->main_cpp, MAX_SOURCE);
    buf_init(&r->cuda_cu, MAX_SOURCE);
    if (check_list(req, "cpp_sources", &r->cpp, e) < 0 || check_list(req, "cuda_sources", &r->cuda, e) < 0 ||
        check_list(req, "extra_cflags", &cflags, e) < 0 || check_list(req, "extra_cuda_cflags", &cuda_flags, e) < 0)
        return -1;
    r->name = json_str(req, "name", "candidate");
    r->bare = json_flag(req, "no_implicit_headers", false);
    keep_flags(&r->flags, cflags);
    keep_flags(&r->flags, cuda_flags);
    // not as flags: a macro on the command line makes the precompiled prefix useless
    buf_addf(&r->main_cpp, "#define TORCH_EXTENSION_NAME %s\n#define TORCH_API_INCLUDE_EXTENSION_H\n", r->name);
    buf_addf(&r->cuda_cu, "#define TORCH_EXTENSION_NAME %s\n#define TORCH_API_INCLUDE_EXTENSION_H\n", r->name);
    rc = add_sources(&r->main_cpp, req, "cpp", r->cpp, false, e);
    if (rc == 0)
        rc = add_sources(&r->cuda_cu, req, "cuda", r->cuda, true, e);
    table = function_table(json_object_get(req, "functions"));
    if (table)
        add_binding(&r->main_cpp, table);
    r->joined = table && json_array_size(r->cuda) && only_declares(r->cpp);
    json_decref(table);
    if (rc == 0 && (r->main_cpp.cut || r->cuda_cu.cut))
        return err_set(e, ERR_INPUT, "the sources are larger than %u MiB", MAX_SOURCE >> 20);
    return rc;
}

/* ---- the toolchain: compiler, headers, precompiled prefix ---- */

struct toolchain {
    char *compiler, *simt, *lite, *libdir, *system;
    char id[256];
    char hash[65];
};

static const char *compiler_of(const struct build_opts *o)
{
    const char *env = getenv("MUSACODER_CXX");

    return o->compiler ? o->compiler : env && *env ? env : "g++";
}

/* Names and contents of every header under dir, in sorted order. */
static void hash_tree(struct sha256 *h, const char *dir)
{
    char **names, *path;
    size_t n;
    struct buf b;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        path = path_join(dir, names[i]);
        sha256_adds(h, names[i]);
        buf_init(&b, MAX_SOURCE);
        if (file_is_dir(path))
            hash_tree(h, path);
        else if (file_read(path, &b, NULL) == 0)
            sha256_add(h, b.p, b.n);
        buf_free(&b);
        free(path);
    }
    names_free(names, n);
}

static int compiler_version(const char *cxx, struct buf *out, struct err *e)
{
    char *argv[] = {(char *)cxx, "-dumpfullversion", "-dumpmachine", NULL};
    struct proc_spec s = {.argv = argv, .timeout_s = 20};
    struct proc_result r;

    if (proc_run(&s, &r, e) < 0)
        return err_set(e, ERR_ENV, "the compiler '%s' cannot be run; run 'make setup' or set MUSACODER_CXX", cxx);
    if (r.why == PROC_EXITED && r.code == 0) {
        for (char *c = r.out.p; *c; c++)
            if (*c == '\n')
                *c = ' ';
        buf_adds(out, r.out.p);
    }
    proc_result_free(&r);
    return out->n ? 0 : err_set(e, ERR_ENV, "'%s' does not answer as a compiler; set MUSACODER_CXX", cxx);
}

/* The compiler's own include folders without /usr/local: a CUDA toolkit installed there must not mix with simt/. */
static int system_includes(const char *cxx, struct buf *out, struct err *e)
{
    char *argv[] = {(char *)cxx, "-E", "-v", "-x", "c++", "/dev/null", NULL}, *at, *line, *save;
    struct proc_spec s = {.argv = argv, .timeout_s = 20};
    struct proc_result r;

    if (proc_run(&s, &r, e) < 0)
        return -1;
    at = strstr(r.err.p, "#include <...>");
    for (line = at ? strtok_r(strchr(at, '\n'), "\n", &save) : NULL; line && *line == ' ';
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, " /usr/local/", 12))
            buf_addf(out, "-isystem%s ", line);
    if (out->n)
        buf_adds(out, "-nostdinc ");
    proc_result_free(&r);
    return 0;
}

/* build/lib of the checkout, $MUSACODER_LIB_DIR for other build folders; NULL without libsimt.so. */
static char *lib_dir(struct err *e)
{
    const char *env = getenv("MUSACODER_LIB_DIR");
    char *dir = env && *env ? xstrdup(env) : path_share("build/lib"), *so = path_join(dir, "libsimt.so");

    if (!file_exists(so)) {
        err_set(e, ERR_ENV, "'%s' is missing; run 'make'", so);
        free(dir);
        dir = NULL;
    }
    free(so);
    return dir;
}

static int toolchain_make(struct toolchain *t, const char *cxx, struct err *e)
{
    struct sha256 h;
    struct buf version, system;

    if (!(t->libdir = lib_dir(e)))
        return -1;
    buf_init(&version, 1024);
    if (compiler_version(cxx, &version, e) < 0)
        return buf_free(&version), -1;
    buf_init(&system, 1 << 16);
    if (system_includes(cxx, &system, e) < 0)
        return buf_free(&version), -1;
    t->system = buf_detach(&system);
    t->compiler = xstrdup(cxx);
    t->simt = path_share("simt/include");
    t->lite = path_share("litetorch/include");
    sha256_start(&h);
    sha256_adds(&h, BUILD_SALT);
    sha256_adds(&h, cxx);
    sha256_adds(&h, version.p);
    sha256_adds(&h, common_flags);
    for (int i = 0; i < N_MODES; i++)
        sha256_adds(&h, mode_opts[i]);
    sha256_adds(&h, t->system);
    sha256_adds(&h, t->libdir);
    sha256_adds(&h, t->lite);
    hash_tree(&h, t->simt);
    hash_tree(&h, t->lite);
    sha256_end(&h, t->hash);
    snprintf(t->id, sizeof t->id, "%.80s %.80sheaders %.16s", cxx, version.p, t->hash);
    buf_free(&version);
    return 0;
}

static pthread_mutex_t toolchain_lock = PTHREAD_MUTEX_INITIALIZER;

/* Read once per process and compiler; headers do not change under a running process. */
static const struct toolchain *toolchain_get(const struct build_opts *o, struct err *e)
{
    static struct toolchain known[4];
    static int n;
    const struct toolchain *t = NULL;
    const char *cxx = compiler_of(o);

    pthread_mutex_lock(&toolchain_lock);
    for (int i = 0; i < n && !t; i++)
        if (!strcmp(known[i].compiler, cxx))
            t = &known[i];
    if (!t && n == 4)
        err_set(e, ERR_BUG, "more than 4 compilers in one process");
    else if (!t && toolchain_make(&known[n], cxx, e) == 0)
        t = &known[n++];
    pthread_mutex_unlock(&toolchain_lock);
    return t;
}

char *build_toolchain_id(const struct build_opts *o, struct err *e)
{
    struct build_opts none = {0};
    const struct toolchain *t = toolchain_get(o ? o : &none, e);

    return t ? xstrdup(t->id) : NULL;
}

static char *cache_root(const struct build_opts *o)
{
    return o->cache_dir ? xstrdup(o->cache_dir) : path_cache("build");
}

static void mode_flags(struct buf *out, const struct toolchain *t, enum mode m)
{
    buf_addf(out, "%s %s %s ", common_flags, mode_opts[m], torch_macros);
    buf_addf(out, "-I%s -I%s %s ", t->lite, t->simt, t->system);
}

static int run_shell(const char *script, double timeout_s, const struct jail_spec *jail, struct proc_result *r,
                     struct err *e)
{
    char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
    struct proc_spec s = {.argv = argv, .timeout_s = timeout_s, .jail = jail, .max_out = MAX_LOG, .max_err = MAX_LOG};

    return proc_run(&s, r, e);
}

/* Our own code, compiled unjailed once per toolchain and mode: the prefix header, and module.o. */
static int precompile(const struct toolchain *t, const char *dir, enum mode m, struct err *e)
{
    struct buf s;
    struct proc_result r;
    int rc;

    buf_init(&s, 1 << 16);
    buf_addf(&s, "set -e; cd '%s'; printf '#include \"litetorch/prefix.h\"\\n' >prefix.h; %s ", dir, t->compiler);
    mode_flags(&s, t, m);
    buf_addf(&s, "-c -x c++-header prefix.h -o prefix.tmp & %s ", t->compiler);
    mode_flags(&s, t, m);
    buf_addf(&s, "-fno-sanitize=all -O1 -g0 -c %s/litetorch/module.cc -o module.o; wait; mv prefix.tmp prefix.h.gch; touch ready",
             t->lite);
    rc = run_shell(s.p, 300, NULL, &r, e);
    if (rc == 0) {
        if (r.why != PROC_EXITED || r.code != 0)
            rc = err_set(e, ERR_ENV, "the headers of litetorch and simt do not compile with '%s': %.600s", t->compiler,
                         r.err.p);
        proc_result_free(&r);
    }
    buf_free(&s);
    return rc;
}

/* Each version of our headers leaves 150 MB behind: those of former days go when new ones are made. */
static void drop_old_prefixes(const char *root)
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
        ready = path_join(dir, "ready");
        if (stat(ready, &st) == 0 && time(NULL) - st.st_mtime > 3 * 86400)
            dir_remove(dir, NULL);
        free(ready);
        free(dir);
    }
    names_free(names, n);
}

/* The folder with prefix.h, prefix.h.gch and module.o; caller frees. NULL on error. */
static char *prefix_dir(const struct toolchain *t, enum mode m, struct err *e)
{
    char name[64], *root = path_cache("build"), *dir, *ready, *lock;
    int fd, rc = 0;

    snprintf(name, sizeof name, "prefix-%.24s-%s", t->hash, mode_names[m]);
    dir = path_join(root, name);
    ready = path_join(dir, "ready");
    lock = path_join(dir, "lock");
    if (!file_exists(ready)) {
        drop_old_prefixes(root);
        rc = dir_make(dir, e);
        fd = rc < 0 ? -1 : lock_file(lock, LOCK_WAIT_S, e);
        rc = fd < 0 ? -1 : file_exists(ready) ? 0 : precompile(t, dir, m, e);
        if (fd >= 0)
            close(fd);
    } else {
        utime(ready, NULL); // in use
    }
    free(root);
    free(ready);
    free(lock);
    if (rc < 0) {
        free(dir);
        return NULL;
    }
    return dir;
}

int build_prepare(const struct build_opts *o, struct err *e)
{
    const enum mode modes[2] = {MODE_HOST, o && o->no_check ? MODE_FAST : MODE_CHECK};
    struct build_opts none = {0};
    const struct toolchain *t = toolchain_get(o ? o : &none, e);
    char *dir;

    for (int i = 0; i < 2; i++) {
        if (!t || !(dir = prefix_dir(t, modes[i], e)))
            return -1;
        free(dir);
    }
    return 0;
}

/* ---- compiling ---- */

static void add_compile(struct buf *s, const struct toolchain *t, const struct request *r, const char *prefix, enum mode m,
                        const char *source, int part)
{
    buf_addf(s, "%s ", t->compiler);
    mode_flags(s, t, m);
    buf_addf(s, "-include %s/prefix.h %s -c %s -o part%d.o >part%d.log 2>&1", prefix, r->flags.p, source, part, part);
}

/* Both halves at once, each with its own log, then the link: one jail for all of it. Where they can be one unit, that
 * is tried first; torch compiles them apart, so only that decides what is an error. */
static void write_script(struct buf *s, const struct toolchain *t, const struct request *r, const char *dir,
                         char *const prefix[2], enum mode kernels)
{
    buf_addf(s, "cd '%s'\n", dir);
    if (r->joined) {
        buf_adds(s, "if ! ");
        add_compile(s, t, r, prefix[1], kernels, "joined.cu", 1);
        buf_adds(s, "; then rm -f part1.o\n");
    }
    for (int i = 0; i < 2; i++) {
        if (i == 1 && !json_array_size(r->cuda))
            break;
        add_compile(s, t, r, prefix[i], i ? kernels : MODE_HOST, i ? "cuda.cu" : "main.cpp", i);
        buf_addf(s, " & p%d=$!\n", i);
    }
    buf_addf(s, "wait $p0; r0=$?; r1=0; [ -z \"$p1\" ] || { wait $p1; r1=$?; }\n"
                "[ $r0 = 0 ] && [ $r1 = 0 ] || exit 10\n%s", r->joined ? "fi\n" : "");
    buf_addf(s, "%s -shared -o module.so part*.o %s/module.o -L%s -lsimt -Wl,-z,defs -Wl,-Bsymbolic "
                "-Wl,--build-id=none >link.log 2>&1 || exit 11\n", t->compiler, prefix[0], t->libdir);
}

static int write_source(const char *dir, const char *name, const struct buf *text, struct err *e)
{
    char *path = path_join(dir, name);
    int rc = file_write(path, text->p, text->n, e);

    free(path);
    return rc;
}

static int write_sources(const struct request *r, const char *dir, struct err *e)
{
    struct buf joined;
    int rc = write_source(dir, "main.cpp", &r->main_cpp, e);

    if (rc == 0)
        rc = write_source(dir, "cuda.cu", &r->cuda_cu, e);
    if (rc == 0 && r->joined) {
        buf_init(&joined, 2 * MAX_SOURCE);
        buf_add(&joined, r->cuda_cu.p, r->cuda_cu.n);
        buf_add(&joined, r->main_cpp.p, r->main_cpp.n);
        rc = write_source(dir, "joined.cu", &joined, e);
        buf_free(&joined);
    }
    return rc;
}

/* Appends at most MAX_LOG bytes of dir/name, foreign bytes sanitised. */
static void add_log(struct buf *out, const char *dir, const char *name)
{
    char *path = path_join(dir, name), chunk[8192];
    FILE *f = fopen(path, "re");
    struct buf raw;
    size_t n;

    free(path);
    if (!f)
        return;
    buf_init(&raw, MAX_LOG);
    while (!raw.cut && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_add(&raw, chunk, n);
    fclose(f);
    utf8_sanitize(out, raw.p, raw.n);
    buf_free(&raw);
}

static void read_logs(struct buf *log, const char *dir)
{
    add_log(log, dir, "part1.log"); // the kernels' half first: that is where the root usually is
    add_log(log, dir, "part0.log");
    add_log(log, dir, "link.log");
}

static void fail_text(struct build_result *ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail_text(struct build_result *ret, const char *fmt, ...)
{
    struct buf b;
    va_list ap;

    buf_init(&b, 1 << 16);
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    free(ret->error);
    ret->error = buf_detach(&b);
    ret->ok = false;
}

/* From the compiler's end and its logs to the result. */
static void explain(const struct proc_result *p, const json_t *req, const char *dir, double limit,
                    struct build_result *ret)
{
    struct buf log;
    json_t *d;

    buf_init(&log, 4 * MAX_LOG);
    read_logs(&log, dir);
    ret->diagnostics = build_log_parse(log.p, req);
    ret->log = build_log_trim(log.p, 6000);
    buf_free(&log);
    ret->ok = p->why == PROC_EXITED && p->code == 0;
    if (ret->ok)
        return;
    if (p->why == PROC_TIMEOUT) {
        ret->timed_out = true;
        fail_text(ret, "compiler exceeded %.0f s", limit);
    } else if (p->why == PROC_MEMORY) {
        fail_text(ret, "compiler ran out of memory");
    } else if (json_array_size(ret->diagnostics) || *ret->log) {
        fail_text(ret, "%s", ret->log);
    } else {
        fail_text(ret, "compiler stopped: %s", proc_result_text(p));
    }
    if (!json_array_size(ret->diagnostics)) {
        d = json_pack("{s:n,s:n,s:n,s:o,s:[]}", "file", "line", "column", "message",
                      json_utf8(ret->error, strnlen(ret->error, 400)), "source");
        json_array_append_new(ret->diagnostics, d);
    }
}

static int compile(const json_t *req, const struct request *r, const struct build_opts *o, const struct toolchain *t,
                   const char *dir, struct build_result *ret, struct err *e)
{
    double limit = o->timeout_s > 0 ? o->timeout_s : DEFAULT_TIMEOUT, start = now_s();
    enum mode kernels = o->no_check ? MODE_FAST : MODE_CHECK;
    char *prefix[2] = {prefix_dir(t, MODE_HOST, e), prefix_dir(t, kernels, e)};
    const char *ro[] = {t->simt, t->lite, t->libdir, prefix[0], prefix[1], NULL}, *rw[] = {dir, NULL};
    struct jail_spec jail;
    struct proc_result p;
    struct buf script;
    int rc = -1;

    buf_init(&script, 1 << 20);
    if (prefix[0] && prefix[1])
        write_script(&script, t, r, dir, prefix, kernels);
    if (script.n && dir_make(dir, e) == 0 && write_sources(r, dir, e) == 0) {
        jail = proc_jail_compiler(ro, rw);
        start = now_s();
        rc = run_shell(script.p, limit, o->no_jail ? NULL : &jail, &p, e);
    }
    if (rc == 0) {
        explain(&p, req, dir, limit, ret);
        proc_result_free(&p);
    }
    ret->ms = (now_s() - start) * 1e3;
    buf_free(&script);
    free(prefix[0]);
    free(prefix[1]);
    return rc;
}

/* ---- the cache ---- */

static void result_read(struct build_result *ret, const json_t *j, const char *dir)
{
    ret->ok = json_flag(j, "ok", false);
    ret->ms = json_f64(j, "ms", 0);
    ret->cached = true;
    ret->log = xstrdup(json_str(j, "log", ""));
    ret->error = ret->ok ? NULL : xstrdup(json_str(j, "error", ""));
    ret->diagnostics = json_deep_copy(json_object_get(j, "diagnostics"));
    if (!ret->diagnostics)
        ret->diagnostics = json_array();
    ret->so = ret->ok ? path_join(dir, "module.so") : NULL;
}

static bool cache_get(const char *dir, struct build_result *ret)
{
    char *path = path_join(dir, "result.json"), *so = path_join(dir, "module.so");
    json_t *j = file_exists(path) ? json_read(path, NULL) : NULL;
    bool hit = j && (!json_flag(j, "ok", false) || file_exists(so));

    if (hit) {
        cache_touch(dir);
        result_read(ret, j, dir);
    }
    json_decref(j);
    free(path);
    free(so);
    return hit;
}

static int cache_put(const char *dir, const struct build_result *r, struct err *e)
{
    char *path = path_join(dir, "result.json");
    json_t *j = json_pack("{s:b,s:f,s:o,s:o,s:O}", "ok", r->ok, "ms", r->ms, "log", json_utf8(r->log, strlen(r->log)),
                          "error", r->error ? json_utf8(r->error, strlen(r->error)) : json_null(), "diagnostics",
                          r->diagnostics);
    int rc = json_write(path, j, e);

    json_decref(j);
    free(path);
    return rc;
}

/* Intermediate files go; the sources stay beside the .so for people who look. */
static void tidy(const char *dir)
{
    static const char *const names[] = {"part0.o", "part1.o", "part0.log", "part1.log", "link.log"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *p = path_join(dir, names[i]);
        unlink(p);
        free(p);
    }
}

static void key_of(const struct request *r, const struct toolchain *t, const struct build_opts *o, char key[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, t->hash);
    sha256_adds(&h, o->no_check ? "fast" : "check");
    sha256_adds(&h, r->flags.p);
    sha256_add(&h, r->main_cpp.p, r->main_cpp.n + 1);
    sha256_add(&h, r->cuda_cu.p, r->cuda_cu.n + 1);
    sha256_end(&h, key);
}

/* The .so must be readable by the candidate's dropped uid, and the folder ours again. */
static int publish(const char *work, const char *dir, struct build_result *ret, struct err *e)
{
    char *so;

    tidy(work);
    if (cache_put(work, ret, e) < 0)
        return -1;
    dir_remove(dir, NULL);
    if (rename(work, dir) < 0)
        return err_sys(e, "cannot rename '%s'", work);
    if (chown(dir, geteuid(), getegid()) < 0 || chmod(dir, 0755) < 0)
        return err_sys(e, "cannot own '%s'", dir);
    if (ret->ok) {
        so = path_join(dir, "module.so");
        if (chown(so, geteuid(), getegid()) < 0 || chmod(so, 0755) < 0) {
            free(so);
            return err_sys(e, "cannot own the built module in '%s'", dir);
        }
        ret->so = so;
    }
    return 0;
}

static int build_locked(const json_t *req, const struct request *r, const struct build_opts *o,
                        const struct toolchain *t, const char *dir, struct build_result *ret, struct err *e)
{
    struct buf work;
    int rc;

    if (!o->no_cache && cache_get(dir, ret))
        return 0;
    buf_init(&work, 8192);
    buf_addf(&work, "%s.%d", dir, (int)getpid());
    dir_remove(work.p, NULL);
    rc = compile(req, r, o, t, work.p, ret, e);
    if (rc == 0 && !ret->timed_out)
        rc = publish(work.p, dir, ret, e);
    else
        dir_remove(work.p, NULL);
    buf_free(&work);
    return rc;
}

static bool valid_name(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 200 && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n &&
           !(s[0] >= '0' && s[0] <= '9');
}

int build_run(const json_t *request, const struct build_opts *o, struct build_result *ret, struct err *e)
{
    struct build_opts none = {0};
    struct request r = {0};
    struct build_result out = {0};
    const struct toolchain *t;
    char *root, *dir = NULL, *lock = NULL;
    int fd = -1, rc = -1;

    o = o ? o : &none;
    if (o->target && strcmp(o->target, "sim"))
        return err_set(e, ERR_ENV, "target '%s' is not known to the compile stage", o->target);
    out.route = "litetorch";
    out.findings = json_array();
    out.dropped = json_array();
    if (!json_is_object(request) || !valid_name(json_str(request, "name", "candidate")))
        return build_result_free(&out), err_set(e, ERR_BUG, "build request: not an object, or without a usable name");
    root = cache_root(o);
    if (request_read(request, &r, e) == 0 && (t = toolchain_get(o, e)) && dir_make(root, e) == 0) {
        key_of(&r, t, o, out.key);
        dir = path_join(root, out.key);
        lock = xmalloc(strlen(dir) + 6);
        sprintf(lock, "%s.lock", dir);
        if ((fd = lock_file(lock, LOCK_WAIT_S, e)) >= 0)
            rc = build_locked(request, &r, o, t, dir, &out, e);
    }
    if (fd >= 0)
        close(fd);
    request_free(&r);
    free(root);
    free(dir);
    free(lock);
    if (rc < 0) {
        build_result_free(&out);
        return -1;
    }
    *ret = out;
    return 0;
}

void build_result_free(struct build_result *r)
{
    free(r->so);
    free(r->error);
    free(r->log);
    json_decref(r->diagnostics);
    json_decref(r->findings);
    json_decref(r->dropped);
    memset(r, 0, sizeof *r);
}

json_t *build_reply(const struct build_result *r)
{
    if (r->ok)
        return json_pack("{s:b,s:s}", "ok", 1, "so", r->so);
    return json_pack("{s:b,s:o}", "ok", 0, "error", json_utf8(r->error, strlen(r->error)));
}
