/* bench_synth.c - graphs a second and core where no text is made; then programs a second: task, kernels, tree and text.
 *
 * usage: bench_synth [SECONDS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "synth/dag_draw.h"
#include "synth/program.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct dag_limits limits = {
    .l = {.max_numel = 65536, .max_work = 1 << 24, .dtypes = DT_FLOATS}, .min_ops = 1, .max_ops = 10, .anchors = 2};

static void bench_graphs(const struct dag_table *t, double seconds)
{
    long graphs = 0, nodes = 0, inputs = 0, diamonds = 0;
    uint64_t sum = 0;
    double begin = now(), took;
    struct rng r;
    static struct dag g;

    rng_seed(&r, 1, 1);
    do {
        for (int i = 0; i < 1000; i++) {
            dag_draw(t, &r, &limits, &g);
            graphs++, nodes += g.n_nodes;
            for (int v = 0; v < g.n_values; v++)
                inputs += g.value[v].kind == VALUE_INPUT, diamonds += g.value[v].uses > 1;
            sum += (uint64_t)g.n_nodes;
        }
        took = now() - begin;
    } while (took < seconds);
    printf("graphs: %.0f a second and core, %.2f operators, %.2f inputs, %.2f shared values each\n",
        (double)graphs / took,
           (double)nodes / (double)graphs, (double)inputs / (double)graphs, (double)diamonds / (double)graphs);
}

static void bench_programs(const struct dag_table *t, double seconds)
{
    long programs = 0, kernels = 0, bytes = 0, unscheduled = 0;
    double begin = now(), took;
    struct dag_limits l = limits;
    struct rng r;
    static struct dag g;

    l.max_ops = 5;
    rng_seed(&r, 1, 2);
    do {
        struct arena a = {0};
        struct kernels *k = arena_alloc(&a, sizeof *k);
        struct program_style s = {.sizes = (enum size_style)rng_below(&r, 3)};
        struct err e = ERR_INIT;
        struct buf b;
        buf_init(&b, BUF_MAX_TEXT);
        dag_draw(t, &r, &l, &g);
        fuse(&g, (enum fusion)rng_below(&r, N_FUSIONS), &a, k);
        ast_style_draw(&r, &s.c);
        if (fuse_schedule(k, &r) < 0) {
            unscheduled++;
        } else {
            struct afun *f = program_cuda(&g, k, &s, &a, &e);
            if (!f) {
                fprintf(stderr, "%s\n", e.msg);
                exit(1);
            }
            program_task(&g, &s, &b);
            program_file(&g, k, f, &s, &b);
            programs++, kernels += k->n, bytes += (long)b.n;
        }
        buf_free(&b);
        arena_free(&a);
        took = now() - begin;
    } while (took < seconds);
    printf("programs: %.0f a second and core, %.2f kernels, %.0f bytes each, %ld without a schedule\n",
        (double)programs / took,
           (double)kernels / (double)programs, (double)bytes / (double)programs, unscheduled);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    struct dag_table *t = dag_table_new(NULL);

    bench_graphs(t, seconds);
    bench_programs(t, seconds);
    dag_table_free(t);
    return 0;
}
