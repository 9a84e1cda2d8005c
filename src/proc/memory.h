/* memory.h - how much of the machine's memory this process and its children may still take. */
#ifndef MC_PROC_MEMORY_H
#define MC_PROC_MEMORY_H

#include <stdint.h>

/* Bytes: what the kernel calls available, or what the narrowest memory cgroup above this process (v1 or v2) has left if
 * that is less; files that it only caches count as left. 0: nobody knows. root: "" for this machine; tests have a tree
 * of their own with proc/ and sys/ in it. */
uint64_t memory_left(const char *root);

#endif
