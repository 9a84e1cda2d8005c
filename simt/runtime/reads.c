/* reads.c - runs of plain reads, and how they become cells (reads.h). */
#include "reads.h"

#include <string.h>
#include <sys/mman.h>

static const struct read_cells *cells;
static uint64_t last_moment; /* ever */

/* Runs of ranges last for a launch, those of shared memory for an interval. */
enum { RANGES, SHARED, LOGS };
#define RUNS_MOST ((size_t)1 << 16) /* of a log: 6 MB, touched as they come */
static struct log {
    struct read_run *v;
    size_t n;
} logs[LOGS];

/* A memory that is read in no order is left to cells: so many runs without so many reads in each. */
enum { SPARSE_RUNS = 256, SPARSE_READS = 4 };
/* After so many runs it is looked up whether all of a memory may be read. */
enum { LOOK_RUNS = 4 };
/* Shared memory whose reads became cells so often in a launch is left to cells as well. */
enum { LOST_MOST = 16 };
static unsigned lost, tried;

static bool log_map(struct log *l)
{
    void *p = l->v ? l->v : mmap(NULL, RUNS_MOST * sizeof *l->v, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p != MAP_FAILED)
        l->v = p;
    return p != MAP_FAILED;
}

/* A run of that memory, at the end of its list. spare: how much room must be left behind it. NULL: there is none. */
static struct read_run *run_new(const struct read_run *as, size_t spare)
{
    struct log *l = &logs[as->range ? RANGES : SHARED];
    struct reads *of = as->of;
    struct read_run *r;

    if (!log_map(l) || l->n + spare >= RUNS_MOST)
        return NULL;
    r = &l->v[l->n++];
    *r = *as;
    r->next = NULL;
    *(of->tail ? &of->tail->next : &of->head) = r;
    of->tail = r;
    of->runs++;
    return r;
}

/* ---- runs ---- */

static uint32_t reads_of(const struct read_site *s)
{
    return s->limit - s->left;
}

/* The last thread of the run read fewer elements than those before it: it gets a run of its own. NULL: no room. */
static struct read_run *split(struct read_run *r, uint32_t n, size_t spare)
{
    struct read_run *own = run_new(r, spare);

    if (!own)
        return NULL;
    r->threads--;
    own->addr = r->addr + (uintptr_t)(r->between * r->threads);
    own->first = (int16_t)(r->first + r->turn * r->threads);
    own->threads = 1;
    own->count = n;
    return own;
}

/* Writes down what the place's run has come to. Each place may need one more run for that: their room is kept. */
static void finish(struct read_site *s)
{
    struct read_run *r = s->run;
    uint32_t n = r ? reads_of(s) : 0;

    s->run = NULL;
    s->left = s->ahead = 0;
    if (!r || !r->of || r->life != r->of->life)
        return;
    r->of->reads += n;
    if (r->threads == 1)
        r->count = n;
    else if (n < r->count)
        split(r, n, 0);
}

/* How many elements from addr on lie inside of the memory, at most 'most'. */
static uint32_t inside(const struct read_space *in, uintptr_t addr, intptr_t stride, size_t bytes, uint32_t most)
{
    uintptr_t room;

    if (addr < in->lo || addr + bytes > in->hi)
        return 0;
    if (!stride)
        return most;
    room = stride > 0 ? (in->hi - bytes - addr) / (uintptr_t)stride : (addr - in->lo) / (uintptr_t)-stride;
    return room + 1 < most ? (uint32_t)room + 1 : most;
}

/* May all of the memory be read without a word? One look is cheaper than one at each element. */
static bool whole(const struct read_space *in)
{
    struct reads *of = in->of;

    if (!of->looked && of->runs >= LOOK_RUNS) {
        of->looked = true;
        of->whole = cells->may_read_all(in);
    }
    return of->whole;
}

/* How many elements addr, addr + stride, ... may be read, at most 'most'. */
static uint32_t room(const struct read_space *in, uintptr_t addr, intptr_t stride, size_t bytes, uint32_t most)
{
    if (stride & (intptr_t)(bytes - 1))
        return 0;
    most = inside(in, addr, stride, bytes, most);
    return whole(in) ? most : cells->may_read(in, addr, stride, bytes, most);
}

enum { AHEAD_MOST = 64 }; /* elements of a first thread that are looked up at once */

/* The read of addr has been taken as the thread's n-th: how far may it go on without a look? */
static void look_ahead(const struct read_space *in, struct read_site *s, uintptr_t addr, uint32_t n)
{
    const struct read_run *r = s->run;
    uint32_t most = r->threads > 1 ? r->count - n : n < AHEAD_MOST ? n : AHEAD_MOST;

    s->stride = r->stride;
    s->next = addr + (uintptr_t)r->stride;
    s->left = most ? room(in, s->next, s->stride, r->bytes, most) : 0;
    s->limit = n + s->left;
    s->key = (uintptr_t)s->pc + read_turn;
}

/* Does the thread's own run go on at addr? */
static bool go_on(const struct read_space *in, struct read_site *s, uintptr_t addr)
{
    uint32_t n = reads_of(s);
    struct read_run *r = s->run;

    if (s->left || (n > 1 && addr != s->next))
        return false;
    s->ahead = 0;
    if (r->threads > 1 && n == r->count && !(r = s->run = split(r, n, READ_SITES)))
        return false;
    if (n == 1 && r->threads == 1)
        r->stride = (intptr_t)(addr - r->addr);
    else if (addr != s->next)
        return false;
    look_ahead(in, s, addr, n + 1);
    return true;
}

/* Does the next thread read as the one before it did, at an equal distance? */
static bool next_thread(const struct read_space *in, struct read_site *s, uintptr_t addr, int thread)
{
    struct read_run *r = s->run;
    uint32_t n = reads_of(s);
    int turn = thread - s->thread;

    if (r->threads == 1) {
        if (turn != 1 && turn != -1)
            return false;
        r->count = n;
        r->turn = (int16_t)turn;
        r->between = (intptr_t)(addr - r->addr);
    } else if (turn != r->turn || n != r->count || addr != r->addr + (uintptr_t)(r->between * r->threads)) {
        return false;
    }
    r->of->reads += n;
    r->threads++;
    s->thread = thread;
    look_ahead(in, s, addr, 1);
    if (r->count == 1)
        s->ahead = room(in, addr + (uintptr_t)r->between, r->between, r->bytes, AHEAD_MOST);
    r->of->reads += s->ahead;
    return true;
}

static bool begin(const struct read_space *in, struct read_site *s, uintptr_t addr, size_t bytes, int thread,
                  uint32_t step)
{
    struct read_run one = {.of = in->of, .life = in->of->life, .range = in->range, .which = in->which, .pc = s->pc,
                           .addr = addr, .count = 1, .first = (int16_t)thread, .threads = 1, .bytes = (uint16_t)bytes,
                           .interval = in->interval, .step = step};
    struct read_run *r = run_new(&one, READ_SITES);

    if (!r)
        return false;
    s->moment = read_moment;
    s->thread = thread;
    s->run = r;
    s->ahead = 0;
    s->stride = 0;
    s->next = addr;
    s->left = 0;
    s->limit = 1;
    return true;
}

static bool belongs(const struct read_site *s, const struct read_space *in, const void *pc, size_t bytes)
{
    return s->run && s->pc == pc && s->moment == read_moment && s->run->of == in->of &&
           s->run->life == in->of->life && s->run->bytes == bytes;
}

static bool take(const struct read_space *in, uintptr_t addr, size_t bytes, const void *pc, int thread, uint32_t step)
{
    struct read_site *s = read_site_of(pc);

    if (belongs(s, in, pc, bytes) &&
        (s->thread == thread ? go_on(in, s, addr) : next_thread(in, s, addr, thread)))
        return true;
    finish(s);
    s->pc = pc;
    return begin(in, s, addr, bytes, thread, step);
}

/* The memory's reads as of this launch or interval. */
static void renew(struct reads *of, uint32_t stamp)
{
    if (of->stamp != stamp)
        *of = (struct reads){.stamp = stamp, .life = of->life};
}

static bool sparse(const struct reads *of)
{
    return of->runs > SPARSE_RUNS && of->reads / SPARSE_READS < of->runs;
}

bool reads_take(const struct read_space *in, uintptr_t addr, size_t bytes, const void *pc, int thread, uint32_t step)
{
    struct reads *of = in->of;

    renew(of, in->stamp);
    if (of->closed)
        return false;
    if ((!in->range && lost > LOST_MOST && 2 * lost > tried) || sparse(of) || addr + bytes > in->hi ||
        !(whole(in) || cells->may_read(in, addr, 0, bytes, 1)) ||
        !take(in, addr, bytes, pc, thread, step)) {
        reads_close(of, in->stamp);
        return false;
    }
    read_latest = read_site_of(pc);
    return true;
}

/* ---- to cells ---- */

static void record(const struct read_run *r)
{
    for (int t = 0; t < r->threads; t++)
        for (uint32_t k = 0; k < r->count; k++)
            cells->record(r, r->addr + (uintptr_t)(t * r->between) + (uintptr_t)k * (uintptr_t)r->stride,
                              r->first + t * r->turn);
}

/* Its runs become cells. */
static void move(struct reads *of)
{
    for (int i = 0; i < READ_SITES; i++)
        if (read_sites[i].run && read_sites[i].run->of == of)
            finish(&read_sites[i]);
    for (struct read_run *r = of->head; r; r = r->next) {
        record(r);
        r->of = NULL;
    }
    of->head = of->tail = NULL;
    read_moment_next();
}

void reads_close(struct reads *of, uint32_t stamp)
{
    renew(of, stamp);
    if (of->closed)
        return;
    of->closed = true;
    if (!of->head)
        return;
    lost += !of->head->range;
    move(of);
}

void reads_close_all(void)
{
    for (int i = 0; i < LOGS; i++)
        for (size_t k = 0; k < logs[i].n; k++)
            if (logs[i].v[k].of && logs[i].v[k].life == logs[i].v[k].of->life)
                reads_close(logs[i].v[k].of, logs[i].v[k].of->stamp);
}

/* ---- time ---- */

void reads_begin(const struct read_cells *of)
{
    cells = of;
    for (int i = 0; i < READ_SITES; i++)
        read_sites[i].run = NULL, read_sites[i].left = read_sites[i].ahead = 0;
    logs[RANGES].n = logs[SHARED].n = 0;
    lost = tried = 0;
    last_moment = (read_moment > last_moment ? read_moment : last_moment) + 1;
    read_moment = of ? last_moment : 0;
    read_turn_next();
}

void reads_interval(void)
{
    read_moment_next();
    if (!logs[SHARED].n)
        return;
    for (int i = 0; i < READ_SITES; i++)
        if (read_sites[i].run && !read_sites[i].run->range)
            read_sites[i].run = NULL, read_sites[i].left = read_sites[i].ahead = 0;
    logs[SHARED].n = 0;
    tried++;
}
