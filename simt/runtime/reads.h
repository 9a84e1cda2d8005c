/* reads.h - plain reads of memory that nothing has changed since the launch began (shared memory: since the last
 * barrier). They race with nothing that has been, so they are kept as runs: a place in the code that reads on by equal
 * steps costs a few comparisons a read. The first access of another kind moves the memory's runs into the cells of
 * check.c, as if each read had been recorded there at its time; from then on cells alone are used. */
#ifndef SIMT_READS_H
#define SIMT_READS_H

#include "runtime.h"

/* A memory that is read: a range, or the running block's shared memory. */
struct read_space {
    struct reads *of;
    struct range *range; /* NULL: shared memory */
    int which;           /* of the two kinds of shared memory */
    uintptr_t lo, hi;
    uint32_t stamp;      /* first interval in which a read may still matter */
    uint32_t interval;   /* of now */
};

/* Reads from one place in the code: thread first + i * turn read the element at addr + i * between + k * stride. */
struct read_run {
    struct reads *of;    /* NULL: they are in cells */
    uint32_t life;       /* of the memory; it is gone if it has another by now */
    struct range *range;
    struct read_run *next; /* of the same memory */
    int which;
    const void *pc;      /* a return address */
    uintptr_t addr;
    intptr_t stride, between;
    uint32_t count;      /* elements of a thread */
    int16_t first, threads, turn;
    uint16_t bytes;
    uint32_t interval, step; /* of time, as in cells; all reads of a run have the same */
};

static inline struct read_site *read_site_of(const void *pc)
{
    return &read_sites[((uintptr_t)pc ^ (uintptr_t)pc >> 7) % READ_SITES];
}

/* Is this the next read of the place's run? Then it is taken. */
static inline __attribute__((always_inline)) bool read_goes_on(const void *p, const void *pc)
{
    struct read_site *s = read_site_of(pc);

    if (s->key != (uintptr_t)pc + read_turn || s->next != (uintptr_t)p || !s->left)
        return false;
    s->left--;
    s->next += (uintptr_t)s->stride;
    read_latest = s;
    return true;
}

/* Is this the one read of the next thread, in a run of such? Then it is taken. */
static inline bool read_in_turn(const void *p, const void *pc, int thread)
{
    struct read_site *s = read_site_of(pc);
    struct read_run *r = s->run;

    if (!s->ahead || s->pc != pc || s->moment != read_moment || !r || thread != s->thread + r->turn ||
        (uintptr_t)p != r->addr + (uintptr_t)(r->between * r->threads))
        return false;
    s->ahead--;
    s->thread = thread;
    s->next = (uintptr_t)p + (uintptr_t)s->stride;
    r->threads++;
    read_latest = s;
    return true;
}

static inline uintptr_t read_latest_addr(void)
{
    return read_latest->next - (uintptr_t)read_latest->stride;
}

/* A plain read of a thread, aligned and inside of the space, at a step of its warp. False: it is for cells, where the
 * memory's earlier reads are too. */
bool reads_take(const struct read_space *in, uintptr_t addr, size_t bytes, const void *pc, int thread, uint32_t step);
/* Something else than a plain read is about to happen: cells from here on. */
void reads_close(struct reads *of, uint32_t stamp);
static inline void reads_closed(struct reads *of, uint32_t stamp)
{
    if (__builtin_expect(of->stamp != stamp || !of->closed, 0))
        reads_close(of, stamp);
}
void reads_close_all(void);
void reads_interval(void); /* what was read of shared memory no longer matters */

/* What the cells' owner answers. */
struct read_cells {
    /* How many elements addr, addr + stride, ... a kernel may read without a word about them, at most n; all lie
     * inside. */
    uint32_t (*may_read)(const struct read_space *in, uintptr_t addr, intptr_t stride, size_t bytes, uint32_t n);
    bool (*may_read_all)(const struct read_space *in);
    void (*record)(const struct read_run *r, uintptr_t addr, int thread); /* one read of a run becomes cells */
};
/* What was read no longer matters; from here on these cells are used. NULL: accesses are not looked at. */
void reads_begin(const struct read_cells *cells);

#endif
