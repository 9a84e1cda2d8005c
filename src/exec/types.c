/* types.c - see types.h. A recording has tens of ranges: a plain list. */
#include "exec/types.h"

#include <stdlib.h>

#include "base/dtype.h"
#include "base/mem.h"

void types_free(struct types *t)
{
    free(t->v);
    *t = (struct types){0};
}

void types_clear(struct types *t)
{
    t->n = 0;
}

/* Appends a range of a dtype; the caller keeps order. */
static void types_add(struct types *t, uint64_t addr, uint64_t n, uint32_t dtype)
{
    if (!n)
        return;
    if (t->n == t->cap)
        t->v = xrealloc(t->v, (t->cap = t->cap ? t->cap * 2 : 64) * sizeof *t->v);
    t->v[t->n++] = (struct typed_range){addr, n, dtype};
}

static bool types_meets(const struct typed_range *r, uint64_t addr, uint64_t n)
{
    return r->addr < addr + n && addr < r->addr + r->n;
}

/* What of a range lies outside stays. */
void types_drop(struct types *t, uint64_t addr, uint64_t n)
{
    for (size_t i = t->n; i-- > 0;) {
        struct typed_range r = t->v[i];

        if (!n || !types_meets(&r, addr, n))
            continue;
        t->v[i] = t->v[--t->n];
        if (r.addr < addr)
            types_add(t, r.addr, addr - r.addr, r.dtype);
        if (r.addr + r.n > addr + n)
            types_add(t, addr + n, r.addr + r.n - (addr + n), r.dtype);
    }
}

void types_set(struct types *t, uint64_t addr, uint64_t n, uint32_t dtype)
{
    types_drop(t, addr, n);
    types_add(t, addr, n, dtype);
}

void types_copy(struct types *t, uint64_t to, uint64_t from, uint64_t n)
{
    size_t have = t->n;
    struct typed_range *was;

    if (!n || to == from)
        return;
    was = xmalloc((have + 1) * sizeof *was);
    for (size_t i = 0; i < have; i++)
        was[i] = t->v[i];
    types_drop(t, to, n);
    for (size_t i = 0; i < have; i++) {
        uint64_t lo = was[i].addr > from ? was[i].addr : from;
        uint64_t hi = was[i].addr + was[i].n < from + n ? was[i].addr + was[i].n : from + n;

        if (lo < hi)
            types_add(t, to + (lo - from), hi - lo, was[i].dtype);
    }
    free(was);
}

/* The one type of all ranges there; TYPES_MIXED for several, -1 where nothing is known. */
static int64_t types_type_of(const struct types *t, uint64_t addr, uint64_t n)
{
    int64_t found = -1;

    for (size_t i = 0; i < t->n; i++)
        if (types_meets(&t->v[i], addr, n))
            found = found < 0 || found == t->v[i].dtype ? (int64_t)t->v[i].dtype : (int64_t)TYPES_MIXED;
    return found;
}

void types_spread(struct types *t, uint64_t to, uint64_t to_bytes, uint64_t from, uint64_t from_bytes)
{
    int64_t type = types_type_of(t, from, from_bytes);

    types_drop(t, to, to_bytes);
    if (type >= 0)
        types_add(t, to, to_bytes, (uint32_t)type);
}

/* Parts of a complex number are numbers, and a truth value is the byte 0 or 1. */
static bool types_reads_as(uint32_t is, uint32_t as)
{
    return is == as || (is == DT_C64 && as == DT_F32) || (is == DT_C128 && as == DT_F64) ||
           (is == DT_BOOL && as == DT_U8);
}

bool types_read(struct types *t, uint64_t addr, uint64_t n, uint32_t dtype)
{
    bool ok = true, known = false;

    for (size_t i = 0; i < t->n; i++)
        if (types_meets(&t->v[i], addr, n)) {
            known = true;
            ok = ok && types_reads_as(t->v[i].dtype, dtype);
        }
    if (!known)
        types_add(t, addr, n, dtype);
    return ok;
}
