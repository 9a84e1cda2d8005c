/* ranks.h - which of several processes this one is: data parallel training under 'musacoder launch'.
 *
 * Read from the environment: RANK, LOCAL_RANK, WORLD_SIZE (torchrun's names), and MUSACODER_COMM_FD, a pipe from which
 * each rank reads the 128 bytes that identify the group. Without them there is one rank. */
#ifndef MC_TRAIN_RANKS_H
#define MC_TRAIN_RANKS_H

#include "base/err.h"
#include "nn/model.h"

#define RANKS_MAX 64

struct ranks {
    int rank, local, world;
};

/* ERR_INPUT where the variables do not fit together. */
int ranks_read(struct ranks *ret, struct err *e);
/* Moves m to its device ("cuda" becomes "cuda:LOCAL" with several ranks) and joins the group. */
int ranks_place(const struct ranks *r, struct model *m, const char *device, const char *dtype, struct err *e);

/* Runs 'musacoder ARGS...' n times as ranks 0..n-1 and waits. One that fails ends the others; returns the first exit
 * code that is not 0. device: "cuda", for the group's identity. Ctrl-C goes to all of them. */
int ranks_launch(int n, const char *device, char **args, int n_args, int *ret_code, struct err *e);

#endif
