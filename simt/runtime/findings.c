/* findings.c - the list of what went wrong, the launch statistics, and both as JSON.
 *
 * Recording happens in signal handlers too: it allocates nothing and leaves code addresses unresolved. Lines are
 * looked up when somebody asks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define MAX_FINDINGS 256
#define MAX_KERNELS 512

struct record {
    const char *kind;
    char message[400], kernel[96], file[256];
    int line;       /* of the launch; used when pc is unknown */
    const void *pc;
    bool in_kernel;
    struct simt_dim3u block, thread;
};

struct kernel_count {
    char name[96];
    uint64_t launches, threads;
};

static struct record records[MAX_FINDINGS];
static int n_records, max_records = 64, n_dropped;
static struct kernel_count kernels[MAX_KERNELS];
static int n_kernels;
static uint64_t n_ever; /* findings since the process began: simt_reset does not take them back */
static uint64_t n_launches, n_threads, n_failed, n_to_host, n_to_device;

static bool known(const char *kind, const void *pc, const char *message)
{
    for (int i = 0; i < n_records; i++)
        if (!strcmp(records[i].kind, kind) && records[i].pc == pc && (pc || !strcmp(records[i].message, message)))
            return true;
    return false;
}

static void fill(struct record *r, const char *kind, const void *pc, const char *message)
{
    const struct simt_launch *l = run.launch;

    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->pc = pc;
    snprintf(r->message, sizeof r->message, "%s", message);
    if (l) {
        snprintf(r->kernel, sizeof r->kernel, "%s", l->kernel ? l->kernel : "");
        snprintf(r->file, sizeof r->file, "%s", l->file ? l->file : "");
        r->line = l->line;
    }
    r->in_kernel = run.in_kernel && run.current && run.current->thread >= 0;
    r->block = blockIdx;
    if (r->in_kernel)
        r->thread = thread_index[run.current->thread];
}

void finding(const char *kind, const void *pc, bool after_call, const char *fmt, ...)
{
    char message[400];
    va_list ap;

    if (pc && after_call)
        pc = (const char *)pc - 1;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (known(kind, pc, message))
        return;
    if (n_records >= max_records) {
        n_dropped++;
        return;
    }
    n_ever++;
    fill(&records[n_records++], kind, pc, message);
}

void finding_by(struct simt_dim3u block, int thread, const char *kind, const void *pc, const char *message)
{
    int n = n_records;

    finding(kind, pc, true, "%s", message);
    if (n_records == n)
        return;
    records[n].in_kernel = true;
    records[n].block = block;
    records[n].thread = thread_index[thread];
}

void count_launch(const char *kernel, uint64_t threads, bool failed)
{
    int i;

    n_launches++;
    n_threads += threads;
    n_failed += failed;
    for (i = 0; i < n_kernels && strncmp(kernels[i].name, kernel, sizeof kernels[i].name - 1); i++)
        ;
    if (i == n_kernels) {
        if (n_kernels == MAX_KERNELS)
            return;
        memset(&kernels[n_kernels++], 0, sizeof kernels[0]);
        snprintf(kernels[i].name, sizeof kernels[i].name, "%s", kernel);
    }
    kernels[i].launches++;
    kernels[i].threads += threads;
}

/* ---- JSON ---- */

struct text {
    char *p;
    size_t n, cap;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
    for (;;) {
        size_t room = t->cap - t->n;
        va_list ap;
        int k;
        char *p;

        va_start(ap, fmt);
        k = t->p ? vsnprintf(t->p + t->n, room, fmt, ap) : (int)room;
        va_end(ap);
        if (k < 0)
            return;
        if (t->p && (size_t)k < room) {
            t->n += (size_t)k;
            return;
        }
        t->cap = t->cap * 2 + (size_t)k + 4096;
        if (!(p = realloc(t->p, t->cap)))
            abort();
        t->p = p;
    }
}

/* Strings come from source text; anything that is not printable ASCII becomes '?'. */
static void add_string(struct text *t, const char *s)
{
    add(t, "\"");
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            add(t, "\\%c", *s);
        else
            add(t, "%c", *s < 0x20 || *s == 0x7f || (signed char)*s < 0 ? '?' : *s);
    add(t, "\"");
}

static struct source_line place(const struct record *r)
{
    struct source_line l = {NULL, 0, false};

    if (r->pc)
        l = line_of(r->pc);
    if (!l.line && r->file[0])
        l = (struct source_line){r->file, r->line, true};
    return l;
}

static bool same_place(const struct record *a, const struct record *b)
{
    struct source_line la = place(a), lb = place(b);

    return !strcmp(a->kind, b->kind) && la.line && la.line == lb.line && !strcmp(la.file, lb.file) &&
           !strcmp(a->kernel, b->kernel);
}

static void add_record(struct text *t, const struct record *r)
{
    struct source_line l = place(r);

    add(t, "{\"kind\":");
    add_string(t, r->kind);
    add(t, ",\"message\":");
    add_string(t, r->message);
    add(t, ",\"kernel\":");
    if (r->kernel[0])
        add_string(t, r->kernel);
    else
        add(t, "null");
    add(t, ",\"file\":");
    if (l.line)
        add_string(t, l.file);
    else
        add(t, "null");
    if (l.line)
        add(t, ",\"line\":%d", l.line);
    else
        add(t, ",\"line\":null");
    if (r->in_kernel)
        add(t, ",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]}", r->block.x, r->block.y, r->block.z, r->thread.x,
            r->thread.y, r->thread.z);
    else
        add(t, ",\"block\":null,\"thread\":null}");
}

const char *simt_findings_json(void)
{
    static struct text t;
    bool first = true;

    t.n = 0;
    add(&t, "[");
    for (int i = 0; i < n_records; i++) {
        bool seen = false;

        for (int k = 0; k < i && !seen; k++)
            seen = same_place(&records[k], &records[i]);
        if (seen)
            continue;
        add(&t, first ? "" : ",");
        add_record(&t, &records[i]);
        first = false;
    }
    add(&t, "]");
    return t.p;
}

int simt_findings_count(void)
{
    return n_records + n_dropped;
}

void count_copy(bool from_device, bool to_device, size_t bytes)
{
    if (bytes <= 64)
        return;
    n_to_host += from_device && !to_device;
    n_to_device += to_device && !from_device;
}

const char *simt_stats_json(void)
{
    static struct text t;

    t.n = 0;
    add(&t, "{\"launches\":%llu,\"threads\":%llu,\"failed\":%llu,\"to_host\":%llu,\"to_device\":%llu,"
            "\"found\":%llu,\"check_build\":%s,\"kernels\":{",
        (unsigned long long)n_launches, (unsigned long long)n_threads, (unsigned long long)n_failed,
        (unsigned long long)n_to_host, (unsigned long long)n_to_device, (unsigned long long)n_ever, check_build ? "true" : "false");
    for (int i = 0; i < n_kernels; i++) {
        add(&t, i ? "," : "");
        add_string(&t, kernels[i].name);
        add(&t, ":{\"launches\":%llu,\"threads\":%llu}", (unsigned long long)kernels[i].launches,
            (unsigned long long)kernels[i].threads);
    }
    add(&t, "}}");
    return t.p;
}

void simt_set_limit(int max_findings)
{
    max_records = max_findings < 1 ? 1 : max_findings > MAX_FINDINGS ? MAX_FINDINGS : max_findings;
}

void simt_reset(void)
{
    n_records = n_dropped = n_kernels = 0;
    n_launches = n_threads = n_failed = n_to_host = n_to_device = 0;
    host_reset();
}
