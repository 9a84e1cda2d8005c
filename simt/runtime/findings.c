/* findings.c - the list of what went wrong, the launch statistics, and both as JSON.
 *
 * Recording happens in signal handlers too, and in several threads: it allocates nothing and leaves code addresses
 * unresolved. Lines are looked up when somebody asks. A process that dies asks from its handler, so JSON keeps out of
 * malloc as well; of stdio only vsnprintf is used, which allocates nothing for the plain formats below. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    uintptr_t base; /* of the memory that the message is about; 0: none */
    size_t bytes;
    intptr_t at;    /* the access, from base on */
    int pointer, pointers; /* which of the launch's device pointers leads there (from 1; 0: not known); how many */
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

/* Taken in handlers, so no mutex. A thread that faults while it records must not wait for itself. */
static int busy;
THREAD_LOCAL bool recording;

static bool take(void)
{
    if (recording)
        return false;
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    return recording = true;
}

static void give(bool taken)
{
    if (!taken)
        return;
    recording = false;
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void findings_abandon(void)
{
    give(recording);
}

static bool known(const char *kind, const void *pc, const char *message)
{
    for (int i = 0; i < n_records; i++)
        if (!strcmp(records[i].kind, kind) && records[i].pc == pc && (pc || !strcmp(records[i].message, message)))
            return true;
    return false;
}

struct where { /* in the grid */
    bool in_kernel;
    struct simt_dim3u block, thread;
};

static struct where here(void)
{
    struct where w = {.in_kernel = in_my_kernel() && run.current && run.current->thread >= 0};

    if (w.in_kernel) {
        w.block = blockIdx;
        w.thread = thread_index[run.current->thread];
    }
    return w;
}

/* The only argument of a launch that points into the record's memory. Arguments lie at their natural alignment, and no
 * number looks like a device address. */
static void fill_pointer(struct record *r, const struct simt_launch *l)
{
    int found = 0;

    for (size_t i = 0; i + sizeof(uintptr_t) <= l->ctx_bytes; i += sizeof(uintptr_t)) {
        uintptr_t p;

        memcpy(&p, (const char *)l->ctx + i, sizeof p);
        if (!memory_is_device(p))
            continue;
        r->pointers++;
        if (p - r->base <= r->bytes) {
            found++;
            r->pointer = r->pointers;
        }
    }
    if (found != 1)
        r->pointer = 0;
}

static void fill(struct record *r, const char *kind, const void *pc, const char *message, const struct where *w)
{
    bool mine = run.owner == this_host_thread();
    const struct simt_launch *l = mine ? run.launch : NULL; /* another thread's is not to blame, and may go away */

    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->pc = pc;
    snprintf(r->message, sizeof r->message, "%s", message);
    if (l) {
        snprintf(r->kernel, sizeof r->kernel, "%s", l->kernel ? l->kernel : "");
        snprintf(r->file, sizeof r->file, "%s", l->file ? l->file : "");
        r->line = l->line;
    }
    r->in_kernel = w->in_kernel;
    r->block = w->block;
    r->thread = w->thread;
    if (described.base && strstr(message, described.words)) {
        r->base = described.base;
        r->bytes = described.bytes;
        r->at = described.at;
        if (l && !l->args)
            fill_pointer(r, l);
    }
}

/* A record is whole before it is counted: readers take no lock. */
static void record(const char *kind, const void *pc, const char *message, struct where w)
{
    bool taken = take();

    if (known(kind, pc, message)) {
        give(taken);
        return;
    }
    if (n_records >= max_records) {
        n_dropped++;
    } else {
        n_ever++;
        fill(&records[n_records], kind, pc, message, &w);
        __atomic_store_n(&n_records, n_records + 1, __ATOMIC_RELEASE);
    }
    give(taken);
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
    record(kind, pc, message, here());
}

void finding_by(struct simt_dim3u block, int thread, const char *kind, const void *pc, const char *message)
{
    record(kind, (const char *)pc - 1, message, (struct where){true, block, thread_index[thread]});
}

static struct kernel_count *count_of(const char *kernel)
{
    int i;

    for (i = 0; i < n_kernels && strncmp(kernels[i].name, kernel, sizeof kernels[i].name - 1); i++)
        ;
    if (i == MAX_KERNELS)
        return NULL;
    if (i == n_kernels) {
        memset(&kernels[i], 0, sizeof kernels[i]);
        snprintf(kernels[i].name, sizeof kernels[i].name, "%s", kernel);
        n_kernels++;
    }
    return &kernels[i];
}

void count_launch(const char *kernel, uint64_t threads, bool failed)
{
    bool taken = take();
    struct kernel_count *k = count_of(kernel);

    n_launches++;
    n_threads += threads;
    n_failed += failed;
    if (k) {
        k->launches++;
        k->threads += threads;
    }
    give(taken);
}

/* ---- JSON ---- */

struct text { /* in pages of its own */
    char *p;
    size_t n, cap;
};

static bool text_grow(struct text *t, size_t by)
{
    size_t cap = (t->cap * 2 + by + 8191) & ~(size_t)4095;
    void *p = t->p ? mremap(t->p, t->cap, cap, MREMAP_MAYMOVE)
                   : mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return false;
    t->p = p;
    t->cap = cap;
    return true;
}

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
    for (;;) {
        size_t room = t->cap - t->n;
        va_list ap;
        int k;

        va_start(ap, fmt);
        k = t->p ? vsnprintf(t->p + t->n, room, fmt, ap) : (int)room;
        va_end(ap);
        if (k < 0)
            return;
        if (t->p && (size_t)k < room) {
            t->n += (size_t)k;
            return;
        }
        if (!text_grow(t, (size_t)k))
            abort();
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

/* 'alike': how many records this one stands for; a line has many addresses. */
static void add_record(struct text *t, const struct record *r, int alike)
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
    add(t, ",\"alike\":%d", alike);
    if (r->base)
        add(t, ",\"memory\":{\"base\":%lu,\"bytes\":%lu,\"at\":%ld,\"pointer\":%d,\"pointers\":%d}",
            (unsigned long)r->base, (unsigned long)r->bytes, (long)r->at, r->pointer, r->pointers);
    if (r->in_kernel)
        add(t, ",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]}", r->block.x, r->block.y, r->block.z, r->thread.x,
            r->thread.y, r->thread.z);
    else
        add(t, ",\"block\":null,\"thread\":null}");
}

const char *simt_findings_json(void)
{
    static struct text t;
    int n = __atomic_load_n(&n_records, __ATOMIC_ACQUIRE);
    bool first = true;

    t.n = 0;
    add(&t, "[");
    for (int i = 0; i < n; i++) {
        bool seen = false;
        int alike = 1;

        for (int k = 0; k < i && !seen; k++)
            seen = same_place(&records[k], &records[i]);
        if (seen)
            continue;
        for (int k = i + 1; k < n; k++)
            alike += same_place(&records[i], &records[k]);
        add(&t, first ? "" : ",");
        add_record(&t, &records[i], alike);
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
    bool taken;

    if (bytes <= 64)
        return;
    taken = take();
    n_to_host += from_device && !to_device;
    n_to_device += to_device && !from_device;
    give(taken);
}

const char *simt_stats_json(void)
{
    static struct text t;

    t.n = 0;
    add(&t, "{\"launches\":%llu,\"threads\":%llu,\"failed\":%llu,\"to_host\":%llu,\"to_device\":%llu,"
            "\"found\":%llu,\"check_build\":%s,\"kernels\":{",
        (unsigned long long)n_launches, (unsigned long long)n_threads, (unsigned long long)n_failed,
        (unsigned long long)n_to_host, (unsigned long long)n_to_device, (unsigned long long)n_ever,
        check_build ? "true" : "false");
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
    bool taken = take();

    n_records = n_dropped = n_kernels = 0;
    n_launches = n_threads = n_failed = n_to_host = n_to_device = 0;
    give(taken);
    error_reset();
}
