/* data_sheet.h - what is known of devices that are not here: one table, each figure with its evidence. The emulator
 * and the translator take their limits from it. A verdict under a profile is labelled emulated: nothing ran on
 * that device.
 *
 * Evidence: V measured or compiled by somebody with the card, D the vendor's documents, C press or a third
 * party's word, I inferred from a relative. A figure that nobody published has value DATA_SHEET_UNKNOWN. */
#ifndef MC_DEVICE_DATA_SHEET_H
#define MC_DEVICE_DATA_SHEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATA_SHEET_UNKNOWN INT64_MIN

enum data_sheet_fact {
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
    N_DATA_SHEET_FACTS
};

struct data_sheet_figure {
    int64_t value;
    char evidence;
    const char *source; /* where it is from, a few words; NULL where it is unknown */
};

struct data_sheet {
    const char *name;  /* "s4000" */
    const char *card;  /* "MTT S4000" */
    const char *arch;  /* "mp_22", "sm_90" */
    bool musa;
    struct data_sheet_figure figures[N_DATA_SHEET_FACTS];
};

extern const char *const data_sheet_fact_names[N_DATA_SHEET_FACTS]; /* "warp_host", ... */

const struct data_sheet *data_sheet_at(size_t i);      /* NULL behind the last */
const struct data_sheet *data_sheet_find(const char *name); /* NULL if there is none */
int64_t data_sheet_get(const struct data_sheet *p, enum data_sheet_fact f, int64_t unknown);
char *data_sheet_names(void);                          /* "s70, s80, ..."; caller frees */
/* "card=MTT S4000;arch_number=220;warp_host=128;...": known figures only, for the emulator. Caller frees. */
char *data_sheet_text(const struct data_sheet *p);
/* {"name","card","arch","dialect","figures":{NAME:{"value","evidence","source"}}}; unknown ones are null. New. */
json_t *data_sheet_json(const struct data_sheet *p);

#endif
