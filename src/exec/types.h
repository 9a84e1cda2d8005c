/* types.h - which type the values in device memory have: as the judge bound them, as a cast made them, or as the first
 * cast read them. Copies carry it along. A cast that reads them as another type computes: the sign bit, the exponent.
 * Pure. What a kernel writes has no type of its own, so the first cast from there names it. */
#ifndef MC_EXEC_TYPES_H
#define MC_EXEC_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct typed_range {
    uint64_t addr, n; /* bytes */
    uint32_t dtype;   /* base/dtype.h, or TYPES_MIXED */
};
#define TYPES_MIXED 0xffffu

struct types { /* ranges do not overlap; not sorted */
    struct typed_range *v;
    size_t n, cap;
};

void types_free(struct types *t);
void types_clear(struct types *t);
/* All of [addr, addr + n) has this type from here on. */
void types_set(struct types *t, uint64_t addr, uint64_t n, uint32_t dtype);
/* That memory is given back. */
void types_drop(struct types *t, uint64_t addr, uint64_t n);
/* A copy of n bytes, byte by byte. */
void types_copy(struct types *t, uint64_t to, uint64_t from, uint64_t n);
/* A strided copy, whose bytes land in another order: what the source has is what the whole destination has. */
void types_spread(struct types *t, uint64_t to, uint64_t to_bytes, uint64_t from, uint64_t from_bytes);
/* Is all that lies there of this type? Where nothing is known of it yet, it is from here on. */
bool types_read(struct types *t, uint64_t addr, uint64_t n, uint32_t dtype);

#endif
