/* build.c - the compile stage: request -> sources -> jailed compiler -> cached shared object. What differs between
 * targets is in build_sim.c and build_cuda.c, what they share in build_parts.c. Reading order: build_run at the end,
 * then build_compile(), then build_explain(). */
#include "eval/build/build.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build_log.h"
#include "eval/build/build_target.h"
#include "eval/build/judge_backend.h"
#include "eval/build/dialect.h"
#include "proc/proc.h"
#include "proc/run_clock.h"
#include "store/limit.h"
#include "store/seal.h"
#include "store/store.h"

#define BUILD_SALT "musacoder.build/6" /* 6: lists of what is linked */
#define DEFAULT_TIMEOUT 60.0


/* ---- what the request says ---- */

static const char *build_text_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

/* *ret borrows req's list of texts at key, or becomes NULL where it is absent or null. ERR_INPUT for anything else.
 * */
static int build_check_list(const json_t *req, const char *key, const json_t **ret, struct err *e)
{
    const json_t *l = json_object_get(req, key), *v;
    size_t i;

    *ret = l;
    if (!l || json_is_null(l))
        return *ret = NULL, 0;
    if (!json_is_array(l))
        return err_set(e, ERR_INPUT, "build request: '%s' is not a list", key);
    json_array_foreach((json_t *)l, i, v)
        if (!json_is_string(v))
            return err_set(e, ERR_INPUT, "build request: '%s' holds something else than text", key);
    return 0;
}

/* Name under which compiler and findings show a source: 'cuda_source', 'cuda_sources[1]', or the file of load(). */
static void build_label(char *out, size_t n, const json_t *req, const char *kind, const json_t *list, size_t i)
{
    char key[32];
    const char *given;

    snprintf(key, sizeof key, "%s_names", kind);
    given = build_text_at(json_object_get(req, key), i);
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

/* Appends the sources of a list to out, each behind a #line with its label. kernels: the target that compiles device
 * code; NULL for host code. -1: the target refused one. */
static int build_add_sources(struct buf *out, const json_t *req, const char *kind, const json_t *list,
                             const struct build_target *kernels, struct err *e)
{
    char name[128];

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = build_text_at(list, i);
        build_label(name, sizeof name, req, kind, list, i);
        if (!strcmp(json_str(req, "dialect", "cuda"), "musa"))
            dialect_preface(s, strlen(s), name, out);
        else if (kernels && kernels->native)
            buf_addf(out, "#line 1 \"%s\"\n#error this device speaks MUSA: write for torch_musa, or translate the "
                          "program with 'musacoder translate'\n", name);
        if (!kernels)
            buf_addf(out, "#line 1 \"%s\"\n%s", name, s);
        else if (kernels->add_kernels(s, strlen(s), name, out, e) < 0)
            return -1;
        buf_addc(out, '\n');
    }
    return 0;
}

/* Appends s as a literal of C. */
static void build_add_c_string(struct buf *out, const char *s)
{
    buf_addc(out, '"');
    for (; *s; s++)
        buf_addf(out, *s == '"' || *s == '\\' || (unsigned char)*s < 32 ? "\\%03o" : "%c", (unsigned char)*s);
    buf_addc(out, '"');
}

/* As torch's load_inline: main.cpp ends with the module that binds each requested function. It is what PYBIND11_MODULE
 * and its m.def come to, written out: each function less is a millisecond less of the compiler's. */
static void build_add_binding(struct buf *out, const json_t *functions)
{
    const char *name;
    const json_t *doc;

    buf_adds(out, "#line 1 \"binding_for_functions\"\nstatic void lt_open_module() {\n");
    json_object_foreach((json_t *)functions, name, doc) {
        buf_addf(out, "::lt::set_doc(::lt::make_entry(\"%s\", %s), ", name, name);
        build_add_c_string(out, json_is_string(doc) ? json_string_value(doc) : name);
        buf_adds(out, ");\n");
    }
    buf_adds(out, "}\nstatic ::lt::init_row lt_init_row(lt_open_module);\n");
}

static void build_request_free(struct build_request *r)
{
    buf_free(&r->flags);
    buf_free(&r->kernel_flags);
    buf_free(&r->kernel_macros);
    buf_free(&r->source_macros);
    json_decref(r->dropped);
    buf_free(&r->main_cpp);
    buf_free(&r->cuda_cu);
}

/* 'functions' may be a list (as in ARCHITECTURE.md) or a table of docs; new reference or NULL. */
static json_t *build_function_table(const json_t *f)
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
static bool build_only_declares(const json_t *sources)
{
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (strpbrk(build_text_at(sources, i), "{}=#\"'/\\") || strstr(build_text_at(sources, i), "static"))
            return false;
    return json_array_size(sources) > 0;
}

/* Fills r from a request in JSON: sources joined, flags sorted for the target. r must be freed on failure too. */
static int build_request_read(const json_t *req, const struct build_target *target, struct build_request *r,
                              struct err *e)
{
    const json_t *cflags, *cuda_flags, *ldflags;
    json_t *table, *own_flags;
    int rc = 0;

    r->json = req;
    r->dropped = json_array();
    buf_init(&r->flags, BUILD_MAX_SOURCE);
    buf_init(&r->kernel_flags, BUILD_MAX_SOURCE);
    buf_init(&r->kernel_macros, BUILD_MAX_SOURCE);
    buf_init(&r->source_macros, BUILD_MAX_SOURCE);
    buf_init(&r->main_cpp, BUILD_MAX_SOURCE);
    buf_init(&r->cuda_cu, BUILD_MAX_SOURCE);
    if (build_check_list(req, "cpp_sources", &r->cpp, e) < 0 ||
        build_check_list(req, "cuda_sources", &r->cuda, e) < 0 ||
        build_check_list(req, "extra_cflags", &cflags, e) < 0 || build_check_list(req, "extra_cuda_cflags", &cuda_flags,
                                                                                  e) < 0 ||
        build_check_list(req, "extra_ldflags", &ldflags, e) < 0)
        return -1;
    r->name = json_str(req, "name", "candidate");
    r->bare = json_flag(req, "no_implicit_headers", false);
    own_flags = target->native ? NULL : dialect_flags(req, cuda_flags);
    target->keep_flags(r, cflags, own_flags ? own_flags : cuda_flags, ldflags);
    json_decref(own_flags);
    /* not as flags: a macro on the command line makes the precompiled prefix useless */
    for (int i = 0; i < 2; i++) {
        struct buf *to = i ? &r->cuda_cu : &r->main_cpp;
        buf_addf(to, "#define TORCH_EXTENSION_NAME %s\n#define TORCH_API_INCLUDE_EXTENSION_H\n", r->name);
        buf_add(to, r->source_macros.p, r->source_macros.n);
    }
    rc = build_add_sources(&r->main_cpp, req, "cpp", r->cpp, NULL, e);
    if (rc == 0)
        rc = build_add_sources(&r->cuda_cu, req, "cuda", r->cuda, target, e);
    table = build_function_table(json_object_get(req, "functions"));
    if (table)
        build_add_binding(&r->main_cpp, table);
    r->joined = table && json_array_size(r->cuda) && build_only_declares(r->cpp);
    json_decref(table);
    if (rc == 0 && (r->main_cpp.cut || r->cuda_cu.cut))
        return err_set(e, ERR_INPUT, "the sources are larger than %u MiB", BUILD_MAX_SOURCE >> 20);
    return rc;
}

/* ---- the toolchain ---- */

static const char *build_compiler_of(const struct build_opts *o)
{
    const char *env = getenv("MUSACODER_CXX");

    return o->compiler ? o->compiler : env && *env ? env : "g++";
}

static const char *build_arch_of(const struct build_opts *o)
{
    const char *env = getenv("MUSACODER_CUDA_ARCH");

    return o->arch ? o->arch : env && *env ? env : "sm_90";
}

/* The target that the options name ('sim' without one). NULL with ERR_INPUT: unknown. */
static const struct build_target *build_target_of(const struct build_opts *o, struct err *e)
{
    const char *name = o->target ? o->target : "sim";
    const struct judge_backend *b = backend_find(name);

    if (b)
        return b->target;
    err_set(e, ERR_INPUT, "unknown target '%s'; the compile stage knows " BACKEND_WORDS, name);
    return NULL;
}

/* Finds the target's tools and makes t->hash, which changes with any of them. ERR_ENV names a tool that is missing.
 * */
static int build_toolchain_make(struct toolchain *t, const struct build_opts *o, struct err *e)
{
    char *argv[] = {t->compiler, "-dumpfullversion", "-dumpmachine", NULL};
    struct sha256 h;
    struct buf version, id;
    int rc;

    buf_init(&version, 1024);
    if (build_ask(argv, &version, NULL) < 0) {
        buf_free(&version);
        return err_set(e, ERR_ENV, "the compiler '%s' cannot be run; run 'musacoder setup' or set MUSACODER_CXX",
                       t->compiler);
    }
    t->lite = path_share("litetorch/include");
    sha256_start(&h);
    sha256_adds(&h, BUILD_SALT);
    sha256_adds(&h, t->target->name);
    sha256_adds(&h, t->compiler);
    sha256_adds(&h, t->arch);
    sha256_adds(&h, version.p);
    sha256_adds(&h, build_torch_macros);
    sha256_adds(&h, t->lite);
    build_hash_tree(&h, t->lite);
    build_find_linker(t, &h);
    rc = t->target->find(t, o, &h, e);
    sha256_end(&h, t->hash);
    if (rc == 0)
        t->forward = build_forward_path(t);
    buf_init(&id, sizeof t->id - 1);
    buf_addf(&id, "%s%.60s %.80sheaders %.16s", t->tool, t->compiler, version.p, t->hash);
    memcpy(t->id, id.p, id.n + 1);
    buf_free(&id);
    buf_free(&version);
    return rc;
}

static void build_toolchain_free(struct toolchain *t)
{
    char *owned[] = {t->compiler, t->arch, t->lite, t->extra, t->forward, t->libdir, t->system, t->nvcc, t->nvrtc,
                             t->home};

    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    memset(t, 0, sizeof *t);
}

static const struct build_place *elsewhere;

void build_elsewhere(const struct build_place *p)
{
    elsewhere = p;
}

bool build_is_elsewhere(void)
{
    return elsewhere != NULL;
}

static pthread_mutex_t toolchain_lock = PTHREAD_MUTEX_INITIALIZER;

/* Read once per process, target, compiler and architecture; headers do not change under a running process. */
static const struct toolchain *build_toolchain_get(const struct build_opts *o, struct err *e)
{
    enum { MAX = 8 };
    static struct toolchain known[MAX];
    static int n;
    const struct build_target *target = build_target_of(o, e);
    const struct toolchain *t = NULL;
    const char *cxx = build_compiler_of(o), *arch;

    if (!target)
        return NULL;
    arch = target == backend_sim.target ? "" : build_arch_of(o);
    pthread_mutex_lock(&toolchain_lock);
    for (int i = 0; i < n && !t; i++)
        if (known[i].target == target && !strcmp(known[i].compiler, cxx) && !strcmp(known[i].arch, arch))
            t = &known[i];
    if (!t && n == MAX) {
        err_set(e, ERR_BUG, "more than %d toolchains in one process", MAX);
    } else if (!t) {
        known[n] = (struct toolchain){.target = target, .compiler = xstrdup(cxx), .arch = xstrdup(arch)};
        if (build_toolchain_make(&known[n], o, e) == 0)
            t = &known[n++];
        else
            build_toolchain_free(&known[n]);
    }
    pthread_mutex_unlock(&toolchain_lock);
    return t;
}

char *build_toolchain_id(const struct build_opts *o, struct err *e)
{
    struct build_opts none = {0};
    const struct toolchain *t;

    if (elsewhere)
        return elsewhere->toolchain_id(elsewhere->ctx, o ? o : &none, e);
    t = build_toolchain_get(o ? o : &none, e);
    return t ? xstrdup(t->id) : NULL;
}

static char *build_cache_root(const struct build_opts *o)
{
    return o->cache_dir ? xstrdup(o->cache_dir) : path_cache("build");
}

int build_prepare(const struct build_opts *o, struct err *e)
{
    struct build_opts none = {0};
    const struct toolchain *t;
    char *dir;

    if (elsewhere)
        return 0;
    if (!(t = build_toolchain_get(o ? o : &none, e)))
        return -1;
    if (t->target->prepare)
        return t->target->prepare(t, o ? o : &none, e);
    dir = build_prefix(t, e);
    free(dir);
    return dir ? 0 : -1;
}

/* ---- compiling ---- */

static void build_plan_free(struct build_plan *p)
{
    buf_free(&p->script);
    for (int i = 0; i < p->n_ro; i++)
        free(p->ro[i]);
}

/* Appends at most BUILD_MAX_LOG bytes of dir/name, foreign bytes sanitised. */
static void build_add_log(struct buf *out, const char *dir, const char *name)
{
    char *path = path_join(dir, name), chunk[8192];
    FILE *f = fopen(path, "re");
    struct buf raw;
    size_t n;

    free(path);
    if (!f)
        return;
    buf_init(&raw, BUILD_MAX_LOG);
    while (!raw.cut && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_add(&raw, chunk, n);
    fclose(f);
    utf8_sanitize(out, raw.p, raw.n);
    buf_free(&raw);
}

static void build_read_logs(struct buf *log, const char *dir)
{
    build_add_log(log, dir, "part1.log"); /* the kernels' half first: that is where the root usually is */
    build_add_log(log, dir, "part0.log");
    build_add_log(log, dir, "link.log");
}

static void build_fail_text(struct build_result *ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes the result a failure with these words. */
static void build_fail_text(struct build_result *ret, const char *fmt, ...)
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

/* Fills ok, log, diagnostics, findings and error of ret from the compiler's end and the logs in j->dir. limit: seconds,
 * for the message. */
static void build_explain(const struct build_job *j, const struct proc_result *p, double limit,
                          struct build_result *ret)
{
    struct buf log;
    json_t *d;

    buf_init(&log, 4 * BUILD_MAX_LOG);
    build_read_logs(&log, j->dir);
    ret->diagnostics = build_log_parse(log.p, j->r->json);
    ret->log = build_log_trim(log.p, 6000);
    ret->ok = p->why == PROC_EXITED && p->code == 0;
    if (j->t->target->inspect)
        j->t->target->inspect(j, log.p, ret);
    buf_free(&log);
    if (ret->ok)
        return;
    if (p->why == PROC_TIMEOUT) {
        ret->timed_out = true;
        build_fail_text(ret, "compiler exceeded %.0f s", limit);
    } else if (p->why == PROC_MEMORY) {
        build_fail_text(ret, "compiler ran out of memory");
    } else if (json_array_size(ret->diagnostics) || *ret->log) {
        build_fail_text(ret, "%s", ret->log);
    } else {
        build_fail_text(ret, "compiler stopped: %s", proc_result_text(p));
    }
    if (!json_array_size(ret->diagnostics)) {
        d = json_pack("{s:n,s:n,s:n,s:o,s:[]}", "file", "line", "column", "message",
                      json_utf8(ret->error, strnlen(ret->error, 400)), "source");
        json_array_append_new(ret->diagnostics, d);
    }
}

/* ---- a compiler that something else ended ---- */

enum ending {
    ENDED,       /* by itself, or by a limit of ours */
    PART_KILLED, /* its driver says that a part was killed or lacked something; the candidate can write the same */
    KILLED       /* the driver or the shell was killed: nothing of the candidate's does that */
};

/* True for signals by which somebody ends a compiler; it has not failed by itself. */
static bool build_from_outside(int signal)
{
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

/* True where one of the build's logs in dir holds one of the words. */
static bool build_logs_hold(const char *dir, const char *const *words, size_t n)
{
    struct buf log;
    bool found = false;

    buf_init(&log, 4 * BUILD_MAX_LOG);
    build_read_logs(&log, dir);
    for (size_t i = 0; i < n && !found; i++)
        found = strstr(log.p, words[i]) != NULL;
    buf_free(&log);
    return found;
}

/* True where a compiler's log says that it was killed from outside. */
static bool build_says_killed(const char *dir)
{
    static const char *const words[] = {"Killed signal terminated program", "Terminated signal terminated program",
                                        "terminated with signal 9 [", "terminated with signal 15 [",
                                        "died due to signal 9", "died due to signal 15"};

    return build_logs_hold(dir, words, sizeof words / sizeof *words);
}

/* ---- a disk that gave out ---- */

#define DISK_MIN ((uint64_t)8 << 20) /* free bytes below which a failed compiler may have lacked them */

/* Writes as a compiler would, to see what quotas and broken disks say. */
static bool build_disk_refuses(const char *dir)
{
    char *path = path_join(dir, "probe"), *zeros = xcalloc(1, 1 << 20);
    struct err e = ERR_INIT;
    bool refused = file_write(path, zeros, 1 << 20, &e) < 0;

    unlink(path);
    free(zeros);
    free(path);
    return refused;
}

/* True where the disk that holds dir has less than DISK_MIN bytes or no inodes left. */
static bool build_disk_is_full(const char *dir)
{
    struct statvfs v;

    if (statvfs(dir, &v) < 0)
        return false;
    return (uint64_t)v.f_bavail * v.f_frsize < DISK_MIN || (v.f_files > 0 && v.f_favail == 0);
}

/* Do the logs speak of the machine? Text of a candidate can read the same, so that alone convicts nobody. */
static bool build_says_lack(const char *dir)
{
    static const char *const words[] = {"No space left on device", "Disk quota exceeded", "Input/output error",
                                        "Read-only file system", "Cannot allocate memory"};

    return build_logs_hold(dir, words, sizeof words / sizeof *words);
}

/* What a second run on a good machine would not repeat. 'failed': the compiler said no; else its library must be
 * there. */
static int build_check_machine(const char *dir, bool failed, struct err *e)
{
    char *so = path_join(dir, "module.so");
    bool gone = !failed && !file_exists(so);

    free(so);
    if (!failed && !gone)
        return 0;
    if (build_disk_is_full(dir) || ((gone || build_says_lack(dir)) && build_disk_refuses(dir)))
        return err_set(e, ERR_ENV, "the disk that holds '%s' is full or refuses to be written; free some of it, or set "
                       "MUSACODER_CACHE_DIR", dir);
    return gone ? err_set(e, ERR_ENV, "the compiler ended well and left no library in '%s'", dir) : 0;
}

/* Whether the script ended by itself, or somebody outside killed it, which proves nothing about the source. */
static enum ending build_ending_of(const struct proc_result *p, const char *dir)
{
    if (p->why == PROC_SIGNALED)
        return build_from_outside(p->signal) ? KILLED : ENDED;
    if (p->why != PROC_EXITED || p->code == 0)
        return ENDED;
    if (p->code > 128 && build_from_outside(p->code - 128))
        return KILLED;
    return build_says_killed(dir) || build_says_lack(dir) ? PART_KILLED : ENDED;
}

/* Writes the sources into j->dir and runs the target's script in a jail. *ret_end tells how it ended; a failed
 * compile is no error (0). */
static int build_compile(const struct build_job *j, struct build_result *ret, enum ending *ret_end, struct err *e)
{
    double limit = j->o->timeout_s > 0 ? j->o->timeout_s : DEFAULT_TIMEOUT, start = now_s();
    const char *rw[] = {j->dir, NULL};
    struct build_plan plan = {0};
    struct jail_spec jail;
    struct proc_result p;
    char *forward = build_forward_dir(j->t, e);
    int rc = -1;

    if (!forward)
        return -1;
    build_plan_ro(&plan, forward);
    free(forward);
    buf_init(&plan.script, 1 << 20);
    buf_adds(&plan.script, "cd ");
    build_quote(&plan.script, j->dir);
    /* 'failed STATUS..' ends the script: as killed if one of them was, else as the candidate's own failure */
    buf_adds(&plan.script, "\nfailed() { for s; do [ $s -le 128 ] || exit $s; done; exit 10; }\n");
    if (dir_make(j->dir, e) == 0 && build_write(j->dir, "main.cpp", &j->r->main_cpp, e) == 0 &&
        build_write(j->dir, "cuda.cu", &j->r->cuda_cu, e) == 0 && j->t->target->script(j, &plan, e) == 0) {
        jail = proc_jail_compiler((const char *const *)plan.ro, rw);
        if (plan.memory_bytes)
            jail.memory_bytes = plan.memory_bytes;
        if (plan.timeout_s > 0)
            limit = plan.timeout_s;
        start = now_s();
        rc = build_shell(plan.script.p, limit, j->o->no_jail ? NULL : &jail, &p, e);
    }
    if (rc == 0) {
        *ret_end = build_ending_of(&p, j->dir);
        if (p.why == PROC_STOPPED)
            rc = err_set(e, stop_requested() ? ERR_STOP : ERR_ENV, "interrupted while a compiler ran");
        else if (p.why == PROC_TIMEOUT && p.wall_s >= RUN_CLOCK_MOST * limit)
            rc = err_set(e, ERR_ENV, RUN_CLOCK_STARVED, "the compiler", p.cpu_s, p.wall_s);
        else if (p.why != PROC_EXITED || (rc = build_check_machine(j->dir, p.code != 0, e)) == 0)
            build_explain(j, &p, limit, ret);
        proc_result_free(&p);
    }
    ret->ms += (now_s() - start) * 1e3;
    build_plan_free(&plan);
    return rc;
}

/* Empties the result but for its key and time. */
static void build_result_clear(struct build_result *r)
{
    struct build_result fresh = {.ms = r->ms, .findings = json_array()};

    memcpy(fresh.key, r->key, sizeof fresh.key);
    build_result_free(r);
    *r = fresh;
}

/* Clears the first try and compiles once more. */
static int build_compile_again(const struct build_job *j, struct build_result *ret, enum ending *ret_end, struct err *e)
{
    build_result_clear(ret);
    dir_remove(j->dir, NULL);
    return build_compile(j, ret, ret_end, e);
}

/* A compiler that was killed from outside gets a second try, and so does one whose headers were damaged.
 * *ret_keep: the result says something about the source. */
static int build_compile_twice(const struct build_job *j, struct build_result *ret, bool *ret_keep, struct err *e)
{
    enum ending end = ENDED;
    int rc = build_compile(j, ret, &end, e);

    if (rc == 0 && end != ENDED) {
        log_warn("a compiler was killed from outside; it runs once more");
        rc = build_compile_again(j, ret, &end, e);
    }
    if (rc == 0 && end == ENDED && !ret->ok && !ret->timed_out && !build_prefixes_hold(j->t))
        rc = build_compile_again(j, ret, &end, e);
    if (rc == 0 && end == KILLED)
        rc = err_set(e, ERR_ENV, "the compiler was killed from outside, twice; was the machine's memory used up?");
    *ret_keep = !ret->timed_out && end == ENDED;
    return rc;
}

/* ---- the cache ---- */

/* What the targets call device code. */
static const char *const images[] = {"device.so", "device.cubin", "device.mubin"};

/* The device code beside the library, by its content. */
static void build_take_image(struct build_result *ret, const char *dir)
{
    char *path = NULL;
    struct buf b;

    for (size_t i = 0; i < sizeof images / sizeof *images && (!path || !file_exists(path)); i++) {
        free(path);
        path = path_join(dir, images[i]);
    }
    buf_init(&b, BUILD_MAX_IMAGE);
    if (ret->ok && file_exists(path) && file_read(path, &b, NULL) == 0) {
        sha256_hex(b.p, b.n, ret->image_sha256);
        ret->image = path;
        path = NULL;
    }
    buf_free(&b);
    free(path);
}

void build_result_read(struct build_result *ret, const json_t *j, const char *dir)
{
    ret->ok = json_flag(j, "ok", false);
    ret->ms = json_f64(j, "ms", 0);
    ret->cached = true;
    ret->log = xstrdup(json_str(j, "log", ""));
    ret->error = ret->ok ? NULL : xstrdup(json_str(j, "error", ""));
    ret->diagnostics = json_deep_copy(json_object_get(j, "diagnostics"));
    if (!ret->diagnostics)
        ret->diagnostics = json_array();
    ret->split = json_flag(j, "split", false);
    ret->timed_out = json_flag(j, "timed_out", false);
    ret->dropped = json_deep_copy(json_object_get(j, "dropped"));
    json_array_extend(ret->findings, json_object_get(j, "findings"));
    ret->so = ret->ok ? path_join(dir, "module.so") : NULL;
    build_take_image(ret, dir);
}

bool build_cache_get(const char *dir, struct build_result *ret)
{
    char *path = path_join(dir, "result.json"), *so = path_join(dir, "module.so");
    json_t *j = file_exists(path) ? json_read(path, NULL) : NULL;
    bool hit = j && seal_folder_holds(dir) && (!json_flag(j, "ok", false) || file_exists(so));

    if (hit) {
        cache_touch(dir);
        build_result_read(ret, j, dir);
    }
    json_decref(j);
    free(path);
    free(so);
    return hit;
}

json_t *build_result_json(const struct build_result *r)
{
    return json_pack("{s:b,s:f,s:b,s:o,s:o,s:O,s:O,s:O?,s:b,s:b}", "ok", r->ok, "ms", r->ms, "split", r->split, "log",
                     json_utf8(r->log, strlen(r->log)), "error",
                     r->error ? json_utf8(r->error, strlen(r->error)) : json_null(), "diagnostics", r->diagnostics,
                     "findings", r->findings, "dropped", r->dropped, "timed_out", r->timed_out, "cached", r->cached);
}

/* Writes the result as the entry's result.json. */
static int build_cache_put(const char *dir, const struct build_result *r, struct err *e)
{
    char *path = path_join(dir, "result.json");
    json_t *j = build_result_json(r);
    int rc = json_write(path, j, e);

    json_decref(j);
    free(path);
    return rc;
}

/* Intermediate files go; the sources stay beside the .so for people who look. */
static void build_tidy(const char *dir)
{
    char **names, *path, *dot;
    size_t n;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        path = path_join(dir, names[i]);
        dot = strrchr(names[i], '.');
        if (file_is_dir(path))
            dir_remove(path, NULL);
        else if (!dot || (strcmp(dot, ".so") && strcmp(dot, ".cpp") && strcmp(dot, ".cu") &&
                          strcmp(dot, ".mu") && strcmp(dot, ".cubin") && strcmp(dot, ".mubin")))
            unlink(path);
        free(path);
    }
    names_free(names, n);
}

/* The cache key of a build: hex SHA-256 of toolchain, options, flags and sources. */
static void build_key_of(const struct build_request *r, const struct toolchain *t, const struct build_opts *o,
                         char key[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, t->hash);
    sha256_adds(&h, o->no_check ? "fast" : "check");
    sha256_adds(&h, o->whole ? "whole" : "");
    sha256_adds(&h, o->no_jail ? "unjailed" : "");
    sha256_adds(&h, r->flags.p);
    sha256_adds(&h, r->kernel_flags.p);
    sha256_add(&h, r->main_cpp.p, r->main_cpp.n + 1);
    sha256_add(&h, r->cuda_cu.p, r->cuda_cu.n + 1);
    sha256_end(&h, key);
}

/* What was compiled belongs to whoever compiled: candidates may read it, and nobody else may change it. */
static int build_own(const char *path, struct err *e)
{
    return chown(path, geteuid(), getegid()) < 0 || chmod(path, 0755) < 0 ? err_sys(e, "cannot own '%s'", path) : 0;
}

int build_publish(const char *work, const char *dir, struct err *e)
{
    static const char *const sealed[] = {"result.json", "module.so", "device.so", "device.cubin", "device.mubin", NULL};
    char *so = path_join(work, "module.so");
    int rc = build_own(work, e);

    if (rc == 0 && file_exists(so))
        rc = build_own(so, e);
    if (rc == 0)
        rc = seal_folder(work, dir, sealed, e);
    if (rc == 0)
        rc = folder_commit(work, dir, e);
    free(so);
    return rc;
}

/* Moves the finished work folder to dir and points the result at its files. */
static int build_do_publish(const char *work, const char *dir, struct build_result *ret, struct err *e)
{
    build_tidy(work);
    if (build_cache_put(work, ret, e) < 0 || build_publish(work, dir, e) < 0)
        return -1;
    if (ret->ok)
        ret->so = path_join(dir, "module.so");
    build_take_image(ret, dir);
    return 0;
}

/* Builds into dir, or takes the cached build that lies there. The caller holds dir's lock. */
static int build_locked(const struct build_request *r, const struct build_opts *o, const struct toolchain *t,
                        const char *dir, struct build_result *ret, struct err *e)
{
    struct build_job job = {.r = r, .t = t, .o = o};
    bool keep = false;
    struct buf work;
    int rc;

    if (!o->no_cache && build_cache_get(dir, ret))
        return 0;
    buf_init(&work, 8192);
    /* ours while we hold the lock: what is there was left by a builder that was killed */
    buf_addf(&work, "%s.work", dir);
    dir_remove(work.p, NULL);
    job.dir = work.p;
    rc = build_compile_twice(&job, ret, &keep, e);
    if (rc == 0 && keep)
        rc = build_do_publish(work.p, dir, ret, e);
    else
        dir_remove(work.p, NULL);
    buf_free(&work);
    return rc;
}

/* True for an identifier of less than 200 letters. */
static bool build_valid_name(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 200 && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n &&
           !(s[0] >= '0' && s[0] <= '9');
}

int build_run(const json_t *request, const struct build_opts *o, struct build_result *ret, struct err *e)
{
    struct build_opts none = {0};
    struct build_request r = {0};
    struct build_result out = {0};
    const struct build_target *target;
    const struct toolchain *t;
    char *root, *dir = NULL, *lock = NULL;
    int fd = -1, rc = -1;

    o = o ? o : &none;
    if (elsewhere)
        return elsewhere->run(elsewhere->ctx, request, o, ret, e);
    if (getenv("MUSACODER_CUDA_WHOLE")) {
        none = *o;
        none.whole = true;
        o = &none;
    }
    if (!(target = build_target_of(o, e)))
        return -1;
    if (!json_is_object(request) || !build_valid_name(json_str(request, "name", "candidate")))
        return err_set(e, ERR_INPUT, "build request: not an object, or without a usable name");
    root = build_cache_root(o);
    out.findings = json_array();
    if (build_request_read(request, target, &r, e) == 0 && (t = build_toolchain_get(o, e)) && dir_make(root, e) == 0) {
        build_key_of(&r, t, o, out.key);
        dir = path_join(root, out.key);
        lock = xmalloc(strlen(dir) + 6);
        sprintf(lock, "%s.lock", dir);
        if ((fd = lock_file(lock, BUILD_LOCK_WAIT_S, e)) >= 0)
            rc = build_locked(&r, o, t, dir, &out, e);
    }
    if (fd >= 0)
        close(fd);
    json_decref(out.dropped);
    out.dropped = json_incref(r.dropped);
    build_request_free(&r);
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
    free(r->image);
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
        return json_pack("{s:b,s:s,s:s?}", "ok", 1, "so", r->so, "image", r->image ? r->image_sha256 : NULL);
    return json_pack("{s:b,s:o}", "ok", 0, "error", json_utf8(r->error, strlen(r->error)));
}
