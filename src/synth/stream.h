/* stream.h - records of the row-based core in any number, in constant memory, by any number of processes.
 *
 * A shard is a fixed range of indices; each record follows from (seed, index) alone, so shards have the same bytes
 * whoever makes them, and in whatever order. OUT/data/SPLIT-00012.jsonl and OUT/stats/00012.json appear complete, by
 * renaming; a shard whose statistics exist is not made again. A share of the programs (by hash) is verified through
 * the queue; those that fail are left out, and listed in OUT/data/failed-00012.jsonl.
 *
 * A record: {"id","kind","messages","task":{"code","ops","families","graph_hash","inputs"},"kernel":{"lang","code",
 * "strategy","fusion"},"verdict","provenance","difficulty","split"}. Kinds: "generate" (task, program), "reason"
 * (tensor
 * metadata in the prompt; six steps, then the program), "shape" (a question that the shape rules answer), and
 * from mutants that the judge convicts "repair" (its feedback, then the program) and "review" (why the mutant is
 * wrong). */
#ifndef MC_SYNTH_STREAM_H
#define MC_SYNTH_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"
#include "task/prompt.h"

struct stream_options {
    const char *out;
    long records;
    int shard_size;
    int process, processes; /* this process makes shards s with s % processes == process */
    uint64_t seed;
    int max_numel, max_ops;
    unsigned dtypes;
    double verify;          /* share of programs that are verified, 0 to 1 */
    double mutants;         /* share of the verified training programs that get a bug too */
    int jobs, trials;
    const char *backend;
    enum prompt_style style;
    bool public;            /* tasks as people write them (surface/surface.h), not operator graphs */
    bool musa;              /* programs in MUSA */
    const json_t *weights;  /* of families (dag_draw.h); NULL: all 1 */
    int wordings;           /* of struct prompt_format (training_record.h) */
    bool formulas;
    int max_program;        /* bytes of a program at most; 0: no limit */
    const uint8_t *ops;     /* one byte for each row of op_rows(): what may occur; NULL: all */
    const char *ops_text;   /* the same as it was asked for */
};

struct stream_stats {
    long records, shards, kept_before, refused, verified, failed;
};

/* ERR_STOP after Ctrl-C: whole shards are kept, the one in hand is not; the same options continue. */
int stream_make(const struct stream_options *o, struct stream_stats *ret, struct err *e);

#endif
