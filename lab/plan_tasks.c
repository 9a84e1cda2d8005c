/* plan_tasks.c - the memory plan of many tasks: lines of lab/task_sizes.py from standard input, a table to standard
 * output.
 *
 *   plan_tasks [GIB] <sizes.jsonl    GIB: the device's memory; 79.6 is an H100 with 80 GB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "exec/memory_plan.h"

#define GIB 1073741824.0

static uint64_t total(const json_t *list)
{
    const json_t *v;
    uint64_t n = 0;
    size_t i;

    json_array_foreach((json_t *)list, i, v)
        n += (uint64_t)json_integer_value(v);
    return n;
}

static void print_row(const json_t *row, const struct plan_sizes *s, const struct memory_plan *p)
{
    struct buf text;

    buf_init(&text, 1000);
    plan_text(p, &text);
    printf("%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%s\n", json_str(row, "task", "?"), p->fits ? "yes" : "no",
           (double)s->inputs / GIB, (double)s->state / GIB, (double)s->outputs / GIB, (double)s->eager_peak / GIB,
           text.p);
    buf_free(&text);
}

int main(int argc, char **argv)
{
    uint64_t device = (uint64_t)((argc > 1 ? atof(argv[1]) : 79.6) * GIB);
    char line[1 << 16];
    int n = 0, fit = 0;

    printf("task\tfits\tinputs_gib\tstate_gib\toutputs_gib\teager_peak_gib\tplan\n");
    while (fgets(line, sizeof line, stdin)) {
        struct err e = ERR_INIT;
        json_t *row = json_parse(line, strlen(line), "a line of task_sizes.py", &e);
        struct plan_sizes s;
        struct memory_plan p;

        if (!row || json_object_get(row, "error")) {
            fprintf(stderr, "%s: %s\n", row ? json_str(row, "task", "?") : "?",
                    row ? json_str(row, "error", "") : e.msg);
            json_decref(row);
            continue;
        }
        s = (struct plan_sizes){.inputs = total(json_object_get(row, "inputs")),
                                .state = (uint64_t)json_i64(row, "state", 0),
                                .outputs = total(json_object_get(row, "outputs")),
                                .eager_peak = (uint64_t)json_i64(row, "eager_peak", 0)};
        memory_plan_make(&s, device, &p);
        print_row(row, &s, &p);
        n++;
        fit += p.fits;
        json_decref(row);
    }
    fprintf(stderr, "%d of %d tasks fit into %.1f GiB\n", fit, n, (double)device / GIB);
    return 0;
}
