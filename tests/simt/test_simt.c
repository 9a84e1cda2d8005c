/* test_simt.c - compiles the kernels of this folder through the rewriter, plain and instrumented, and runs them.
 * Correct kernels must compute what the host computes and give no finding; broken ones must give exactly the findings
 * that their comments announce, at those lines. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../simt/include/simt/api.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "translate/simt_rewrite.h"

/* Leaks are not looked for here: LeakSanitizer reads every global, and the emulator closes the page behind the block's
 * shared memory, which is one. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

struct entry { /* struct check and struct fault of the sources */
    const char *name;
    void *run;
};

static struct {
    void *lib;
    const char *(*findings)(void), *(*stats)(void);
    void (*reset)(void), (*set_check)(int), (*set_ablation)(int), (*set_schedule)(uint64_t), (*set_blocks)(int);
    int (*call_guarded)(void (*)(void *), void *);
    int (*mem_register)(const void *, size_t, const char *), (*mem_unregister)(const void *);
    void (*set_hooks)(void (*)(void), void (*)(void));
    void (*set_fatal_hook)(void (*)(void));
    int (*busy)(void), (*count)(void);
} simt;

#define CHECKED "-O1 -fsanitize=thread,alignment --param tsan-distinguish-volatile=1"
static char *lib_dir, *tmp, *forward; /* the last: -I of headers that only pass on to others */

static void *symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);

    if (!p)
        fail_msg("no symbol '%s'", name);
    return p;
}

static char *find_lib_dir(void)
{
    char exe[4096], *up;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    assert_true(n > 0);
    exe[n] = 0;
    for (int i = 0; i < 3; i++) /* build/tests/simt/test_simt */
        if ((up = strrchr(exe, '/')))
            *up = 0;
    return path_join(exe, "lib");
}

static int set_up(void **state)
{
    struct err e = ERR_INIT;
    char *path;

    (void)state;
    lib_dir = find_lib_dir();
    path = path_join(lib_dir, "libsimt.so");
    simt.lib = dlopen(path, RTLD_NOW);
    free(path);
    if (!simt.lib)
        fail_msg("%s", dlerror());
    *(void **)&simt.findings = symbol(simt.lib, "simt_findings_json");
    *(void **)&simt.stats = symbol(simt.lib, "simt_stats_json");
    *(void **)&simt.reset = symbol(simt.lib, "simt_reset");
    *(void **)&simt.set_check = symbol(simt.lib, "simt_set_check");
    *(void **)&simt.set_ablation = symbol(simt.lib, "simt_set_ablation");
    *(void **)&simt.set_schedule = symbol(simt.lib, "simt_set_schedule");
    *(void **)&simt.set_blocks = symbol(simt.lib, "simt_set_blocks");
    *(void **)&simt.call_guarded = symbol(simt.lib, "simt_call_guarded");
    *(void **)&simt.mem_register = symbol(simt.lib, "simt_mem_register");
    *(void **)&simt.mem_unregister = symbol(simt.lib, "simt_mem_unregister");
    *(void **)&simt.set_hooks = symbol(simt.lib, "simt_set_memory_hooks");
    *(void **)&simt.busy = symbol(simt.lib, "simt_busy");
    *(void **)&simt.count = symbol(simt.lib, "simt_findings_count");
    *(void **)&simt.set_fatal_hook = symbol(simt.lib, "simt_set_fatal_hook");
    tmp = dir_temp("test_simt", &e);
    assert_non_null(tmp);
    forward = xasprintf("sh litetorch/include/litetorch/forward.sh %s/forward", tmp);
    assert_int_equal(system(forward), 0);
    free(forward);
    forward = xasprintf("-I%s/forward/sim -I%s/forward/lite", tmp, tmp);
    return 0;
}

static int tear_down(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    dir_remove(tmp, &e);
    free(tmp);
    free(lib_dir);
    free(forward);
    return 0;
}

/* What was compiled before; a test gets a copy, so that its library's state is its own. */
static struct {
    char *name, *flags, *so;
} made[32];
static int n_made;

static bool copy_made(const char *name, const char *flags, const char *so)
{
    for (int i = 0; i < n_made; i++)
        if (!strcmp(made[i].name, name) && !strcmp(made[i].flags, flags)) {
            char *cmd = xasprintf("cp %s %s", made[i].so, so);
            int rc = system(cmd);
            free(cmd);
            return rc == 0;
        }
    return false;
}

static void keep_made(const char *name, const char *flags, const char *so)
{
    assert_true(n_made < (int)(sizeof made / sizeof *made));
    made[n_made].name = xstrdup(name);
    made[n_made].flags = xstrdup(flags);
    made[n_made++].so = xstrdup(so);
}

#define FLAGS                                                                                                     \
    "-std=gnu++17 -O2 -g1 -fPIC -fno-optimize-sibling-calls -fno-gnu-unique -ffp-contract=fast -Wall -Wextra "    \
    "-Wno-unknown-pragmas -Wno-unused-variable -Wno-unused-parameter -Isimt/include -Ilitetorch/sim "             \
    "-Ilitetorch/include "

/* Libraries that this run or an earlier one made of the same text, headers and flags lie in the tests' cache, where
 * there is one. Shell; KEPT takes flags, source and library, and what makes it follows; KEEP takes the library. */
#define KEPT                                                                                                      \
    "kept=${MUSACODER_CACHE_DIR:+$MUSACODER_CACHE_DIR/build/simt-$({ echo '" FLAGS "%s'; g++ --version; "          \
    "find simt/include litetorch/sim litetorch/include -type f | LC_ALL=C sort | xargs cat; "                \
    "cat %s; } | sha256sum | cut -c 1-64)}; { test -f \"$kept\" && touch \"$kept\" && cp \"$kept\" %s; } || { "
#define KEEP                                                                                                      \
    "if test -n \"$kept\" && ! test -f \"$kept\"; then mkdir -p \"${kept%%/*}\" && cp %s \"$kept.$$\" && "          \
    "mv \"$kept.$$\" \"$kept\"; fi"

/* Rewrites and compiles tests/simt/NAME.cu. */
static void compile(const char *name, const char *flags, const char *cc, const char *so)
{
    struct buf in, out;
    struct err e = ERR_INIT;
    char *source = xasprintf("tests/simt/%s.cu", name), *cmd;

    buf_init(&in, BUF_MAX_TEXT);
    buf_init(&out, BUF_MAX_TEXT);
    if (!strcmp(name, "plain"))
        buf_adds(&in, "#include <cuda_runtime.h>\n");
    if (!strcmp(name, "plain") && file_read("litetorch/include/litetorch/ptx_plain.h", &in, &e) < 0) /* as in a
        translation */
        fail_msg("%s", e.msg);
    if (file_read(source, &in, &e) < 0 || simt_rewrite(in.p, in.n, source, &out, &e) < 0 ||
        file_write(cc, out.p, out.n, &e) < 0)
        fail_msg("%s", e.msg);
    cmd = xasprintf(KEPT "g++ " FLAGS "%s %s -c %s -o %s.o && g++ -shared %s.o -o %s -L%s -lsimt; } && " KEEP, flags,
                    cc, so, forward, flags, cc, so, so, so, lib_dir, so);
    if (system(cmd) != 0)
        fail_msg("does not compile: %s", cmd);
    buf_free(&in), buf_free(&out);
    free(source), free(cmd);
}

/* A library of its own. */
static void *build(const char *name, const char *flags)
{
    static int serial;
    char *cc = xasprintf("%s/%s%d.cc", tmp, name, serial), *so = xasprintf("%s/%s%d.so", tmp, name, serial++);
    void *lib;

    simt.reset();
    if (!copy_made(name, flags, so)) {
        compile(name, flags, cc, so);
        keep_made(name, flags, so);
    }
    if (!(lib = dlopen(so, RTLD_NOW | RTLD_LOCAL)))
        fail_msg("%s", dlerror());
    free(cc), free(so);
    return lib;
}

static void run_checks(void *lib)
{
    const struct entry *c = symbol(lib, "checks");

    for (; c->name; c++) {
        int wrong = ((int (*)(void))c->run)();

        if (wrong || strcmp(simt.findings(), "[]"))
            fail_msg("%s: %d wrong values, findings %s", c->name, wrong, simt.findings());
        simt.reset();
    }
}

static void test_correct_kernels(void **state)
{
    void *lib = build("kernels", "");

    (void)state;
    run_checks(lib);
    for (uint64_t order = 1; order < 5; order++) { /* reverse and random orders of threads and blocks */
        simt.set_schedule(order);
        run_checks(lib);
    }
    simt.set_schedule(0);
    for (int how = 1; how < 3; how++) { /* blocks last first, or giving way */
        simt.set_blocks(how);
        run_checks(lib);
    }
    simt.set_blocks(0);
    dlclose(lib);
}

static void test_correct_kernels_checked(void **state)
{
    void *lib = build("kernels", CHECKED);

    (void)state;
    run_checks(lib);
    simt.set_check(0);
    run_checks(lib);
    simt.set_check(1);
    dlclose(lib);
}

/* Kernels that wait without barriers, in all orders of threads and blocks. */
static void test_waits(void **state)
{
    static const char *const builds[] = {"", CHECKED " -DVOLATILE_WAITS"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        void *lib = build("waits", builds[i]);

        for (uint64_t order = 0; order < 5; order++) {
            simt.set_schedule(order);
            run_checks(lib);
        }
        simt.set_schedule(0);
        for (int how = 1; how < 3; how++) {
            simt.set_blocks(how);
            run_checks(lib);
        }
        simt.set_blocks(0);
        dlclose(lib);
    }
}

/* Inline PTX, and what stands in for the toolkit's headers. */
static void test_ptx(void **state)
{
    static const char *const builds[] = {"", CHECKED};
    static const char *const names[] = {"ptx", "headers", "plain"};

    (void)state;
    for (int i = 0; i < 6; i++) {
        void *lib = build(names[i / 2], builds[i % 2]);

        run_checks(lib);
        simt.set_schedule(1);
        run_checks(lib);
        simt.set_schedule(0);
        dlclose(lib);
    }
}

/* torch's load_inline passes these; code that needs the operators must then not compile. */
static void test_torch_macros(void **state)
{
    (void)state;
    dlclose(build("kernels", "-O0 -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ "
                             "-D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__"));
    assert_int_not_equal(0, system("echo '#include <cuda_fp16.h>\n__half f(__half a) { return a + a; }' | g++ -x c++ "
                                   "-fsyntax-only -Isimt/include -D__CUDA_NO_HALF_OPERATORS__ "
                                   "-D__CUDA_NO_HALF_CONVERSIONS__ - 2>/dev/null"));
}

/* ---- faults ---- */

struct mark {
    char kind[32];
    int line;
};

/* The marks of the fault 'name': from the end of the fault before it to the end of its run_ function. */
static int marks_of(const char *source, const char *name, struct mark *marks)
{
    int n = 0, line = 1;
    bool mine = false, in_run = false;
    char start[80];

    snprintf(start, sizeof start, "static void run_%s()", name);
    for (const char *p = source, *end; *p; p = end + (*end == '\n'), line++) {
        size_t len;

        end = strchr(p, '\n') ? strchr(p, '\n') : p + strlen(p);
        len = (size_t)(end - p);
        for (const char *m = p; (m = memmem(m, (size_t)(end - m), "expect: ", 8)); m += 8) {
            if (sscanf(m + 8, "%31s", marks[n].kind) == 1)
                marks[n++].line = line;
        }
        if (!strncmp(p, "static void run_", 16)) {
            in_run = true;
            mine = !strncmp(p, start, strlen(start));
        }
        if (in_run && len && end[-1] == '}' && (len == 1 || !strncmp(p, "static", 6))) {
            if (mine)
                return n;
            in_run = false;
            n = 0;
        }
    }
    fail_msg("no fault '%s'", name);
    return 0;
}

static bool has_mark(const struct mark *marks, int n, const char *kind, int line)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(marks[i].kind, kind) && marks[i].line == line)
            return true;
    return false;
}

static bool has_finding(const json_t *list, const struct mark *m)
{
    size_t i;
    json_t *f;

    json_array_foreach(list, i, f)
        if (!strcmp(json_str(f, "kind", ""), m->kind) && json_i64(f, "line", 0) == m->line)
            return true;
    return false;
}

static void compare(const struct entry *f, const char *source)
{
    struct mark marks[16];
    struct err e = ERR_INIT;
    const char *text = simt.findings();
    json_t *list = json_parse(text, strlen(text), f->name, &e), *item;
    int n = marks_of(source, f->name, marks);
    size_t i;

    if (!list)
        fail_msg("%s: %s: %s", f->name, e.msg, text);
    json_array_foreach(list, i, item)
        if (!has_mark(marks, n, json_str(item, "kind", ""), (int)json_i64(item, "line", 0)) ||
            strcmp(json_str(item, "file", ""), "tests/simt/faults.cu"))
            fail_msg("%s: not announced: %s", f->name, text);
    for (int k = 0; k < n; k++)
        if (!has_finding(list, &marks[k]))
            fail_msg("%s: no %s at line %d: %s", f->name, marks[k].kind, marks[k].line, text);
    json_decref(list);
}

static void test_faults(void **state)
{
    void *lib = build("faults", CHECKED);
    const struct entry *f = symbol(lib, "faults");
    struct buf source;
    struct err e = ERR_INIT;

    (void)state;
    buf_init(&source, BUF_MAX_TEXT);
    assert_int_equal(0, file_read("tests/simt/faults.cu", &source, &e));
    for (; f->name; f++) {
        ((void (*)(void))f->run)();
        compare(f, source.p);
        if (simt.busy())
            fail_msg("%s leaves device memory open", f->name);
        simt.reset();
    }
    buf_free(&source);
    dlclose(lib);
}

/* ---- mutants: the kill table ---- */

struct mutant {
    const char *name, *fault;
    int (*run)(void);
};

/* Runs it in both orders of threads and blocks. */
static void run_mutant(const struct mutant *m, bool *ret_found, bool *ret_wrong)
{
    *ret_found = *ret_wrong = false;
    for (uint64_t order = 0; order < 2; order++) {
        int wrong;

        simt.set_schedule(order);
        wrong = m->run();
        if (!*m->fault && (wrong || strcmp(simt.findings(), "[]")))
            fail_msg("%s: %d wrong values, findings %s", m->name, wrong, simt.findings());
        *ret_wrong |= wrong != 0;
        *ret_found |= strcmp(simt.findings(), "[]") != 0;
        simt.reset();
    }
    simt.set_schedule(0);
}

/* Right kernels have no finding and no wrong value; a kernel with a fault has one or the other in one of two orders.
 * Of the faults that are known to survive the table says so, and they must. */
static void test_mutants(void **state)
{
    void *lib = build("mutants", CHECKED);
    int by_finding = 0, by_value = 0, known = 0;

    (void)state;
    for (const struct mutant *m = symbol(lib, "mutants"); m->name; m++) {
        bool found, wrong, hidden = !strncmp(m->fault, "(known", 6);

        run_mutant(m, &found, &wrong);
        if (!*m->fault)
            continue;
        if (hidden != (!found && !wrong))
            fail_msg("%s: %s: %s", m->name, m->fault, hidden ? "is killed" : "survives");
        by_finding += found;
        by_value += !found && wrong;
        known += hidden;
    }
    printf("%d faults: %d with a finding, %d by their values alone, %d known to survive\n",
        by_finding + by_value + known,
           by_finding, by_value, known);
    dlclose(lib);
}

/* Without instrumentation, crashes, divergence and bad launches are still findings, and the process survives them. */
static void test_faults_unchecked(void **state)
{
    static const char *const names[] = {"null_pointer", "two_barriers", "lanes_missing", "not_in_mask",
        "too_many_threads",
                                        "empty_grid", "too_much_shared", "fat", "copy_overrun", "divide", "recurse",
                                        "traps", "atomic_null", "copy_inside", "negative_copy", "many_attributes"};
    void *lib = build("faults", "");
    struct buf source;
    struct err e = ERR_INIT;

    (void)state;
    buf_init(&source, BUF_MAX_TEXT);
    assert_int_equal(0, file_read("tests/simt/faults.cu", &source, &e));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (const struct entry *f = symbol(lib, "faults"); f->name; f++)
            if (!strcmp(f->name, names[i])) {
                ((void (*)(void))f->run)();
                compare(f, source.p);
                assert_int_equal(simt.busy(), 0);
                simt.reset();
            }
    buf_free(&source);
    dlclose(lib);
}

/* ---- other threads ---- */

static atomic_bool stop_churning;

/* Makes and drops ranges below everybody else's, as a thread does that makes and drops tensors. */
static void *churn(void *ret_n)
{
    enum { MANY = 1500, STEP = 4096 };
    char *low = (char *)(uintptr_t)(1 << 20); /* never touched */
    long n = 0;

    while (!stop_churning) {
        int failed = 0;

        for (int i = 0; i < MANY; i++)
            failed |= simt.mem_register(low + i * STEP, 100, "other");
        for (int i = 0; i < MANY; i++)
            failed |= simt.mem_unregister(low + i * STEP);
        if (failed)
            break;
        n += 2 * MANY;
    }
    *(long *)ret_n = stop_churning ? n : -1;
    return NULL;
}

static void test_ranges_change_while_kernels_run(void **state)
{
    void *lib = build("kernels", CHECKED);
    double t = now_s();
    pthread_t other;
    long n = 0, rounds = 0;

    (void)state;
    stop_churning = false;
    assert_int_equal(0, pthread_create(&other, NULL, churn, &n));
    for (; now_s() - t < 2; rounds++)
        run_checks(lib);
    stop_churning = true;
    assert_int_equal(0, pthread_join(other, NULL));
    print_message("%ld rounds of all kernels, %ld changes\n", rounds, n);
    assert_true(n > 1000);
    dlclose(lib);
}

static atomic_int depth;
static atomic_long entered;

static void on_enter(void)
{
    depth++;
    entered++;
}

static void on_leave(void)
{
    depth--;
}

static void *copy_often(void *arg)
{
    int (*copy)(void *, const void *, size_t, int);
    int from = 7, to = 0;
    (void)arg;

    *(void **)&copy = symbol(simt.lib, "cudaMemcpy");
    for (int i = 0; i < 20000; i++)
        copy(&to, &from, sizeof to, 3);
    return NULL;
}

/* Device memory stays open as long as any thread needs it, and no longer. */
static void test_two_threads_copy(void **state)
{
    pthread_t other;

    (void)state;
    simt.set_hooks(on_enter, on_leave);
    assert_int_equal(0, pthread_create(&other, NULL, copy_often, NULL));
    copy_often(NULL);
    assert_int_equal(0, pthread_join(other, NULL));
    simt.set_hooks(NULL, NULL);
    assert_int_equal(entered, 40000);
    assert_int_equal(depth, 0);
    assert_int_equal(simt.busy(), 0);
    simt.reset();
}

static void *scale_often(void *check)
{
    long wrong = 0;

    for (int i = 0; i < 300; i++)
        wrong += ((int (*)(void))check)();
    return (void *)wrong;
}

/* Kernels take turns; a launch beside a kernel is not one from inside of it, and host code beside it is not its code.
 * */
static void test_two_threads_launch(void **state)
{
    void *lib = build("kernels", CHECKED), *wrong;
    const struct entry *c = symbol(lib, "checks");
    pthread_t other;

    (void)state;
    assert_int_equal(0, pthread_create(&other, NULL, scale_often, c->run));
    assert_null(scale_often(c->run));
    assert_int_equal(0, pthread_join(other, &wrong));
    assert_null(wrong);
    assert_string_equal(simt.findings(), "[]");
    assert_int_equal(simt.busy(), 0);
    simt.reset();
    dlclose(lib);
}

/* The same findings, reported by two threads at the same instant: each is recorded once. */
enum { PLACES = 8, ROUNDS = 20000 };
static atomic_int round_now, round_done;

static __attribute__((noinline)) void report_all(void)
{
    static int (*set)(void *, int, size_t);

    if (!set)
        *(void **)&set = symbol(simt.lib, "cudaMemset");
    set((void *)(uintptr_t)64, 0, 1); /* not device memory; a finding for each of these calls */
    set((void *)(uintptr_t)64, 0, 2);
    set((void *)(uintptr_t)64, 0, 3);
    set((void *)(uintptr_t)64, 0, 4);
    set((void *)(uintptr_t)64, 0, 5);
    set((void *)(uintptr_t)64, 0, 6);
    set((void *)(uintptr_t)64, 0, 7);
    set((void *)(uintptr_t)64, 0, 8);
    __asm__ volatile("" ::: "memory");
}

static void *report_in_rounds(void *arg)
{
    (void)arg;
    for (int i = 1; i <= ROUNDS; i++) {
        while (round_now < i)
            sched_yield();
        report_all();
        round_done = i;
    }
    return NULL;
}

static void test_two_threads_report(void **state)
{
    pthread_t other;
    int wrong = 0;

    (void)state;
    report_all();
    simt.reset();
    round_now = round_done = 0;
    assert_int_equal(0, pthread_create(&other, NULL, report_in_rounds, NULL));
    for (int i = 1; i <= ROUNDS; i++) {
        round_now = i;
        report_all();
        while (round_done < i)
            sched_yield();
        wrong += simt.count() != PLACES;
        simt.reset();
    }
    assert_int_equal(0, pthread_join(other, NULL));
    assert_int_equal(0, wrong);
}

/* ---- the judge's side ---- */

static int opened, closed;
static void on_open(void) { opened++; }
static void on_close(void) { closed++; }

static void test_ablation_and_stats(void **state)
{
    void *lib = build("kernels", "");
    const struct entry *c = symbol(lib, "checks");
    struct err e = ERR_INIT;
    json_t *stats;

    (void)state;
    simt.set_hooks(on_open, on_close);
    simt.set_ablation(1);
    assert_true(((int (*)(void))c->run)() > 0); /* without its launches, 'scale' computes nothing */
    simt.set_ablation(0);
    assert_true(opened > 0 && opened == closed); /* its copies still open device memory */
    stats = json_parse(simt.stats(), strlen(simt.stats()), "stats", &e);
    assert_non_null(stats);
    assert_int_equal(json_i64(stats, "launches", 0), 3);
    assert_int_equal(json_i64(json_object_get(json_object_get(stats, "kernels"), "scale"), "launches", 0), 2);
    assert_int_equal(json_i64(json_object_get(json_object_get(stats, "kernels"), "pointer"), "threads", 0), 1024);
    json_decref(stats);
    simt.reset();
    simt.set_hooks(NULL, NULL);
    dlclose(lib);
}

/* The two faults below are the point: sanitizers must let them through to the emulator's own handlers. */
#define FAULTS __attribute__((no_sanitize("address", "undefined")))

FAULTS static void touch(void *p)
{
    *(volatile int *)p = 1;
}

FAULTS static void divide_by(void *p)
{
    volatile int zero = *(int *)p;

    zero = 1000 / zero;
}

enum { COPY_LINE = __LINE__ + 6 };

static void copy_from(void *p)
{
    char host[64];

    memcpy(host, p, sizeof host); /* faults in libc; this line must be named */
    __asm__ volatile("" ::"r"(host) : "memory");
}

/* Closed device memory, touched by host code. */
static void test_host_access(void)
{
    void *device = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char want[64];

    assert_true(device != MAP_FAILED);
    assert_int_equal(0, simt.mem_register(device, 4096, "weights"));
    assert_int_equal(-1, simt.call_guarded(copy_from, (char *)device + 8));
    assert_non_null(strstr(simt.findings(), "\"kind\":\"host_access\""));
    assert_non_null(strstr(simt.findings(), "at byte 8 of 'weights'"));
    snprintf(want, sizeof want, "test_simt.c\",\"line\":%d", COPY_LINE);
    if (!strstr(simt.findings(), want))
        fail_msg("%s does not name %s", simt.findings(), want);
    assert_int_equal(0, simt.mem_unregister(device));
    munmap(device, 4096);
    simt.reset();
}

static void test_guarded_calls(void **state)
{
    static char page[4096];
    int zero = 0, ok = 7;

    (void)state;
    assert_int_equal(0, simt.call_guarded(touch, &ok));
    assert_int_equal(1, ok);
    assert_int_equal(-1, simt.call_guarded(touch, NULL));
    assert_non_null(strstr(simt.findings(), "\"kind\":\"illegal_access\""));
    simt.reset();
    assert_int_equal(-1, simt.call_guarded(divide_by, &zero));
    assert_non_null(strstr(simt.findings(), "division by zero"));
    simt.reset();
    test_host_access();
    assert_int_equal(0, simt.mem_register(page, 100, "weird \"name\"\n"));
    assert_int_equal(-1, simt.mem_register(page + 50, 100, NULL)); /* overlaps */
    assert_int_equal(-1, simt.mem_unregister(page + 1));
    assert_int_equal(0, simt.mem_unregister(page));
}

/* ---- ends of the process: in a child ---- */

static void say_and_exit(void) /* in a signal handler, with locks of malloc held */
{
    const char *text = simt.findings();

    _exit(write(1, text, strlen(text)) < 0 ? 2 : 7);
}

/* What a child that runs f(arg) writes before it ends with code 7; it has ten seconds. */
static void expect_last_words(void (*f)(void *), void *arg, const char *word)
{
    char text[4096];
    size_t n = 0;
    ssize_t got;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(0, pipe(ends));
    assert_true((pid = fork()) >= 0);
    if (pid == 0) {
        dup2(ends[1], 1), close(ends[0]), close(ends[1]);
        close(2); /* glibc's own words */
        alarm(10);
        simt.set_fatal_hook(say_and_exit);
        f(arg);
        _exit(3);
    }
    close(ends[1]);
    while (n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    assert_int_equal(pid, waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7 || !strstr(text, word))
        fail_msg("status %d instead of exit code 7, findings '%s' instead of '%s'", status, text, word);
}

static void *nothing(void *arg)
{
    return arg;
}

/* glibc finds the second one out while it holds the arena's lock. */
static void *free_twice(void *arg)
{
    void *volatile p = malloc(5000), *volatile behind = malloc(64);

    free(p);
    free(p);
    free(behind);
    return arg;
}

static void free_twice_guarded(void *arg)
{
    pthread_t t;

    (void)arg;
    pthread_create(&t, NULL, nothing, NULL); /* with one thread only, malloc takes no locks */
    pthread_join(t, NULL);
    simt.call_guarded((void (*)(void *))(void *)free_twice, NULL);
}

/* A thread that nobody has told libsimt of. */
static void free_twice_elsewhere(void *arg)
{
    pthread_t t;

    (void)arg;
    pthread_create(&t, NULL, free_twice, NULL);
    pthread_join(t, NULL);
}

static void free_wild(void *arg)
{
    void *volatile p = (void *)(uintptr_t)0x5a5a5a5a5a50;

    free(p);
    (void)arg;
}

static void test_corrupted_heap(void **state)
{
    void (*in_kernel)(void *), *lib;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* not glibc's malloc */
#endif
    expect_last_words(free_twice_guarded, NULL, "\"message\":\"the heap is corrupted");
    expect_last_words(free_twice_guarded, NULL, "double free");
    expect_last_words(free_twice_elsewhere, NULL, "double free");
    expect_last_words(free_wild, NULL, "a fault inside malloc or free");
    lib = build("faults", "");
    *(void **)&in_kernel = symbol(lib, "run_frees_twice");
    expect_last_words(in_kernel, NULL, "\"kernel\":\"frees_twice\"");
    expect_last_words(in_kernel, NULL, "the heap is corrupted: the kernel");
    dlclose(lib);
}

/* abort() as all that there is on a stack: who looks for the candidate's code there comes to the end of it. */
static void abort_on_a_short_stack(void *arg)
{
    char *stack = mmap(NULL, 2 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ucontext_t c;

    (void)arg;
    if (stack == MAP_FAILED || mprotect(stack + (1 << 16), 1 << 16, PROT_NONE) < 0 || getcontext(&c) < 0)
        return;
    c.uc_stack.ss_sp = stack;
    c.uc_stack.ss_size = 1 << 16;
    c.uc_link = NULL;
    makecontext(&c, (void (*)(void))abort, 0);
    setcontext(&c);
}

static void test_short_stack(void **state)
{
    (void)state;
    expect_last_words(abort_on_a_short_stack, NULL, "\"kind\":\"assertion\"");
}

/* test_programs.c is this file too: two programs, so that they run side by side. */
int main(int argc, char **argv)
{
    const struct CMUnitTest runtime[] = {
        cmocka_unit_test(test_correct_kernels),   cmocka_unit_test(test_correct_kernels_checked),
        cmocka_unit_test(test_torch_macros),      cmocka_unit_test(test_faults),
        cmocka_unit_test(test_faults_unchecked),  cmocka_unit_test(test_ablation_and_stats),
        cmocka_unit_test(test_guarded_calls),     cmocka_unit_test(test_ranges_change_while_kernels_run),
        cmocka_unit_test(test_two_threads_copy),  cmocka_unit_test(test_two_threads_report),
        cmocka_unit_test(test_two_threads_launch),
        cmocka_unit_test(test_corrupted_heap),    cmocka_unit_test(test_short_stack),
    };
    const struct CMUnitTest programs[] = {
        cmocka_unit_test(test_waits), cmocka_unit_test(test_ptx), cmocka_unit_test(test_mutants),
    };

    if (argc > 0 && strstr(argv[0], "test_programs"))
        return cmocka_run_group_tests(programs, set_up, tear_down);
    return cmocka_run_group_tests(runtime, set_up, tear_down);
}
