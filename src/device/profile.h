/* profile.h - what is known of devices that are not here: one table, each figure with its evidence. The emulator
 * and the translator take their limits from it. A verdict under a profile is labelled emulated: nothing ran on
 * that device.
 *
 * Evidence: V measured or compiled by somebody with the card, D the vendor's documents, C press or a third
 * party's word, I inferred from a relative. A figure that nobody published has value PROFILE_UNKNOWN. */
#ifndef MC_DEVICE_PROFILE_H
#define MC_DEVICE_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_UNKNOWN INT64_MIN

enum profile_fact {
    FACT_ARCH,          /* __MUSA_ARCH__ or __CUDA_ARCH__: 220, 900 */
    FACT_WARP_HOST,     /* lanes: what the device's properties say as warpSize */
    FACT_WARP_SHUFFLE,  /* lanes: the width at which shuffles and votes work */
    FACT_SHARED_STATIC, /* bytes of shared memory that a block may declare */
    FACT_SHARED_BLOCK,  /* bytes that a block may have when it asks for them */
    FACT_CONSTANT,      /* bytes of constant memory */
    FACT_MPS,           /* multiprocessors */
    FACT_THREADS_BLOCK, /* threads a block */
    FACT_THREADS_MP,    /* threads a multiprocessor */
    FACT_REGISTERS_MP,  /* 32-bit registers a multiprocessor */
    FACT_L2,            /* bytes */
    FACT_MEMORY,        /* bytes */
    FACT_GBS,           /* memory bandwidth, 10^9 bytes a second */
    FACT_GRID_YZ,       /* blocks along y and z */
    FACT_COOPERATIVE,   /* 1: a grid can wait for all of its blocks */
    FACT_BF16,          /* 1: bfloat16 arithmetic */
    FACT_FP8,           /* 1: eight-bit floats */
    FACT_DIVISION_ULP,  /* 0: fp32 '/' is correctly rounded; 1: it may be one unit in the last place off */
    N_PROFILE_FACTS
};

struct profile_figure {
    int64_t value;
    char evidence;
    const char *source; /* where it is from, a few words; NULL where it is unknown */
};

struct profile {
    const char *name;  /* "s4000" */
    const char *card;  /* "MTT S4000" */
    const char *arch;  /* "mp_22", "sm_90" */
    bool musa;
    struct profile_figure figures[N_PROFILE_FACTS];
};

extern const char *const profile_fact_names[N_PROFILE_FACTS]; /* "warp_host", ... */

const struct profile *profile_at(size_t i);            /* NULL behind the last */
const struct profile *profile_find(const char *name);  /* NULL if there is none */
int64_t profile_get(const struct profile *p, enum profile_fact f, int64_t unknown);
char *profile_names(void);                             /* "s70, s80, ..."; caller frees */
/* "card=MTT S4000;arch_number=220;warp_host=128;...": known figures only, for the emulator. Caller frees. */
char *profile_text(const struct profile *p);
/* {"name","card","arch","dialect","figures":{NAME:{"value","evidence","source"}}}; unknown ones are null. New. */
json_t *profile_json(const struct profile *p);

#endif
