/* recording_parts.h - what the files of a recording share; recording.h is the door. Inside src/eval/candidate only. */
#ifndef MC_EVAL_CANDIDATE_RECORDING_PARTS_H
#define MC_EVAL_CANDIDATE_RECORDING_PARTS_H

#include "eval/candidate/recording.h"
#include "eval/candidate/recording_place.h"

#define MAX_OUTPUT ((uint64_t)1 << 30)

struct recording_binding {
    uint64_t address, bytes;
    enum dtype dtype;
    uint8_t *real[REF_SETS]; /* owned; of each set of parameters, in the candidate's layout and type; or NULL */
    uint8_t *made_up;        /* owned; as real */
    bool buffer, changed;    /* a call left other values there: it is bound again before the next one */
    char name[64];           /* of a parameter; "": it is none */
    size_t row;              /* of the reference's state */
    bool packed;             /* its elements lie one after the other */
};

struct recording_inputs {
    struct job *j;
    const struct ref_draw *d;
    size_t i;
};

struct recording_replaying {
    struct job *j;
    const struct ref_draw *const *draws; /* of the last n calls; those before get other values, and are not judged */
    int n, done;
    recording_judge judge;
    void *ctx;
    uint32_t ended; /* calls of this replay that have ended */
    uint32_t bound; /* streamed: the call whose inputs lie in the area */
    bool recorded, goes_on;
    const struct recording_turn *turn; /* of a timed call that no other one is like; NULL: the draw's own values */
};

/* Values that no other call had: a draw's, from another place on, and float32 and float64 ones smaller. What ascends
 * (the starts of rows) stays. A kernel that keeps a book of answers finds none in it. */
struct recording_turn {
    uint64_t by;  /* elements */
    double scale; /* in [0.75, 1) */
};

/* recording.c */
/* What recording_params made. */
void recording_bindings_free(struct recording *l);

/* recording_params.c */
/* Packed values as p lays them out: new, p->span bytes. packed stays the caller's. */
uint8_t *recording_laid_out(const struct recording_place *p, uint8_t *packed);
/* Do t's first n values never fall? Such are the starts of rows. */
bool recording_ascends(const struct tensor *t, int64_t n);

/* recording_inputs.c */
/* The bytes of one input as they lie in memory; NULL with *e. */
uint8_t *recording_input_bytes(const struct ref_draw *d, const json_t *leaf, struct recording_place *p,
                               struct err *e);
/* Where input i lies in a call, from 1. A streamed task's area is one place. */
uint64_t recording_input_at(const struct job *j, size_t i, uint32_t call);
/* An address in place of an offset. */
json_t *recording_placed_leaf(const json_t *leaf, void *ctx);
/* Writes one input where the next direct call finds it. ctx: struct recording_inputs. */
int recording_bind_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e);
/* Two places for each input, by turns: what keeps an address from its last call finds other values there. */
int recording_allocate_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e);

/* recording_outputs.c */
/* What a call left: a result as a candidate's process would send it. */
int recording_fetch(struct job *j, const struct ref_draw *d, uint32_t call, const json_t *output,
                    struct frame *ret, struct err *e);
/* What a replay elsewhere may differ by: the order of atomic sums. The values themselves were judged here. */
double recording_slack(enum dtype d);

/* recording_faults.c */
/* A fault of the device that no finding explains becomes one. */
void recording_device_fault(struct job *j, int code, const char *why);
/* The executor's findings since the last call go to j->findings. */
void recording_take_findings(struct job *j);

/* recording_direct.c */
/* An executor that does not answer for as long as a candidate may take runs a kernel that does not end. */
enum call_fault recording_late_or_lost(struct job *j, struct err *e);
/* Parameters whose memory is gone are the program's error: CALL_OK with *ret, as if forward had raised it. */
enum call_fault recording_unprepared(struct job *j, struct frame *ret, struct err *e);
/* Memory for inputs, and parameters: once in a recording. From here on the client is heard within calls only. */
int recording_prepare(struct job *j, const struct ref_draw *d, struct err *e);
/* Is the call, from 1, another instance's? */
bool recording_is_others(const struct recording *l, uint32_t call);
/* The place of a call's outputs, from 1. */
json_t **recording_output_at(struct recording *l, uint32_t call);
/* Is the reply a result, and no error? */
bool recording_is_result(const struct frame *f);
/* A reply as if forward had raised that exception. */
void recording_raised(struct frame *ret, const char *type, const char *message);
/* The next call of forward. CALL_OK with an error's frame where forward raises. */
enum call_fault recording_live_call(struct job *j, const struct ref_draw *d, struct frame *ret, struct err *e);

/* recording_replay.c */
/* The real parameters, of the set that the replay's draws have in common; the draw's inputs. */
int recording_bind_again(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n,
                         struct err *e);

#endif
