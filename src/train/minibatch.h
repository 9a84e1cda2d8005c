/* minibatch.h - where a rollout batch is cut into optimiser steps. Pure. */
#ifndef MC_TRAIN_MINIBATCH_H
#define MC_TRAIN_MINIBATCH_H

#include <stddef.h>

/* Sequence i belongs to group[i] (ascending numbers, n of them). Fills cut (parts + 1 entries): part k is sequences
 * [cut[k], cut[k + 1]). No group is split, because its advantages are relative to each other; parts hold equal numbers
 * of groups up to one, and are empty where there are fewer groups than parts. */
void minibatch_cut(const int *group, size_t n, int parts, size_t *cut);

#endif
