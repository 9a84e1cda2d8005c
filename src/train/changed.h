/* changed.h - which tokens of a repair are new: what its broken predecessor does not hold. Pure. */
#ifndef MC_TRAIN_CHANGED_H
#define MC_TRAIN_CHANGED_H

#include <stddef.h>
#include <stdint.h>

/* mask[i] = 1 where after[i] is not in a longest common subsequence of before (n ids) and after (m ids), else 0. All
 * of the differing middle counts as new where it is longer than CHANGED_MAX ids in both (geometric mean). */
#define CHANGED_MAX 2048
void changed_tokens(const int32_t *before, size_t n, const int32_t *after, size_t m, uint8_t *mask);

#endif
