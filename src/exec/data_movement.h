/* data_movement.h - data movement requests carried out in host memory: the sim backend, and the reference for the GPU's
 * kernels. Pointers stand for the addresses in the request. */
#ifndef MC_EXEC_DATA_MOVEMENT_H
#define MC_EXEC_DATA_MOVEMENT_H

#include "exec/wire.h"

void movement_host_set(void *to, const struct wire_memset *m);
void movement_host_fill(void *to, const struct wire_fill *m);
uint64_t movement_host_strided(void *to, const void *from, const struct wire_strided *m); /* changed elements */
void movement_host_arange(void *to, const struct wire_arange *m);
void movement_host_random(void *to, const struct wire_random *m);
bool movement_host_equal(const void *a, const void *b, const struct wire_equal *m);

#endif
