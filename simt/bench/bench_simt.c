/* bench_simt.c - 'make bench-simt': compile time, and nanoseconds per thread of typical kernels in the three ways to
 * run them: plain build, check build with checks off, check build with checks on. Times are CPU time, best of five. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "translate/simt_rewrite.h"

#define SOURCE "simt/bench/kernels.cu"
#define FLAGS "-std=gnu++17 -O2 -g1 -fPIC -fno-optimize-sibling-calls -fno-gnu-unique -ffp-contract=fast -Isimt/include"
#define CHECK "-fsanitize=thread --param tsan-instrument-func-entry-exit=0"

struct bench_case {
    const char *name;
    void (*run)(void);
    int threads;
};

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int rewrite(const char *to, struct err *e)
{
    struct buf in, out;
    int rc;

    buf_init(&in, BUF_MAX_TEXT);
    buf_init(&out, BUF_MAX_TEXT);
    rc = file_read(SOURCE, &in, e) < 0 || simt_rewrite(in.p, in.n, SOURCE, &out, e) < 0 ||
         file_write(to, out.p, out.n, e) < 0;
    buf_free(&in);
    buf_free(&out);
    return rc ? -1 : 0;
}

/* Compiles and loads; prints the wall time of the compiler, best of three. */
static void *build(const char *dir, const char *lib_dir, const char *name, const char *flags)
{
    char *so = xasprintf("%s/%s.so", dir, name);
    /* Linked apart: -fsanitize=thread at the link would bring in the real libtsan. */
    char *cmd = xasprintf("g++ " FLAGS " %s -c %s/k.cc -o %s.o && g++ -shared %s.o -o %s -L%s -lsimt", flags, dir,
                          so, so, so, lib_dir);
    double best = 1e9;
    void *lib;

    for (int i = 0; i < 3; i++) {
        double t = now_s();

        if (system(cmd) != 0)
            return NULL;
        t = now_s() - t;
        best = t < best ? t : best;
    }
    printf("compile and link, %-6s %.2f s\n", name, best);
    if (!(lib = dlopen(so, RTLD_NOW | RTLD_LOCAL)))
        fprintf(stderr, "bench-simt: %s\n", dlerror());
    free(so);
    free(cmd);
    return lib;
}

static double ns_per_thread(const struct bench_case *c)
{
    double best = 1e9;

    for (int i = 0; i < 5; i++) {
        double t = cpu_s();

        c->run();
        t = cpu_s() - t;
        best = t < best ? t : best;
    }
    return best * 1e9 / c->threads;
}

static void compare(void *fast, void *check, void (*set_check)(int))
{
    const struct bench_case *f = dlsym(fast, "cases"), *c = dlsym(check, "cases");

    ((void (*)(void))dlsym(fast, "setup"))();
    ((void (*)(void))dlsym(check, "setup"))();
    printf("\n%-18s %10s %10s %10s %8s %8s\n", "ns per thread", "plain", "check off", "check on", "off/plain",
           "on/plain");
    for (; f->name; f++, c++) {
        double plain = ns_per_thread(f), off, on;

        set_check(0);
        off = ns_per_thread(c);
        set_check(1);
        on = ns_per_thread(c);
        printf("%-18s %10.1f %10.1f %10.1f %8.1f %8.1f\n", f->name, plain, off, on, off / plain, on / plain);
    }
}

int main(int argc, char **argv)
{
    const char *lib_dir = argc > 1 ? argv[1] : "build/lib";
    struct err e = ERR_INIT;
    char *dir = dir_temp("bench_simt", &e), *cc, *so = path_join(lib_dir, "libsimt.so");
    void *fast, *check, *simt = dlopen(so, RTLD_NOW);
    int rc = 1;

    if (!dir || !simt) {
        fprintf(stderr, "bench-simt: %s\n", dir ? dlerror() : e.msg);
        return 1;
    }
    cc = path_join(dir, "k.cc");
    if (rewrite(cc, &e) < 0) {
        fprintf(stderr, "bench-simt: %s\n", e.msg);
    } else if ((fast = build(dir, lib_dir, "plain", "")) && (check = build(dir, lib_dir, "check", CHECK))) {
        compare(fast, check, (void (*)(int))dlsym(simt, "simt_set_check"));
        rc = 0;
    }
    dir_remove(dir, &e);
    free(dir), free(cc), free(so);
    return rc;
}
