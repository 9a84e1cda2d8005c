/* machine.c - names the machine's processors, from sched_getaffinity and /proc/cpuinfo. */
#include "base/machine.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

int machine_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The first "model name", which ARM's kernels do not tell; NULL. The caller frees. */
static char *machine_cpu_model(void)
{
    char *model = NULL, *at;
    struct buf b;

    buf_init(&b, 4u << 20);
    if (file_read("/proc/cpuinfo", &b, NULL) == 0 && (at = strstr(b.p, "model name")) && (at = strchr(at, ':')))
        model = xstrndup(at + 2, strcspn(at + 2, "\n"));
    buf_free(&b);
    return model;
}

char *machine_text(void)
{
    int n = machine_processors();
    char *model = machine_cpu_model(),
         *text = model ? xasprintf("%d CPU%s (%s)", n, buf_plural(n), model) : xasprintf("%d CPU%s", n, buf_plural(n));

    free(model);
    return text;
}

double machine_sharers(double load, long processors)
{
    return processors > 0 && load > (double)processors ? load / (double)processors : 1;
}

double machine_busy(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? machine_sharers(load, machine_processors()) : 1;
}
