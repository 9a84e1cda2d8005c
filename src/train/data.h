/* data.h - records (synth/training_record.h) and RL prompts as token ids.
 *
 * An example is a dialogue whose last message is the assistant's: the loss covers that response only, from its first
 * token through <|im_end|>; everything before is context. Examples longer than the limit are left out and counted. */
#ifndef MC_TRAIN_DATA_H
#define MC_TRAIN_DATA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "nn/tokenizer.h"

#define DATA_MAX_KINDS 16
#define DIFFICULTY_UNKNOWN (-1)

struct example {
    int32_t *ids;  /* (n), owned */
    int n;
    int from, to;  /* the response: ids[from, to) */
    uint8_t *changed; /* (to - from) 1: not in the response before (changed.h); NULL when there is none. Owned */
    int kind;      /* index into dataset.kinds */
    int difficulty; /* the record's, or DIFFICULTY_UNKNOWN */
    uint64_t group; /* hash of the operator graph (or of the id): what the validation split goes by */
};

struct dataset {
    struct example *ex;
    size_t n, too_long;
    char *kinds[DATA_MAX_KINDS]; /* "generate", "repair", ... in order of first appearance */
    int n_kinds;
};

/* Adds the records of a JSON Lines file. A record needs "messages" ending with the assistant; ERR_INPUT names the line
 * otherwise. max_len in tokens, the whole dialogue. tok: (n_tok) the same tokenizer, one for each thread that reads;
 * how many does not change what is added. */
int dataset_add(struct dataset *d, const char *path, struct tokenizer *const *tok, int n_tok, int max_len,
                struct err *e);
void dataset_free(struct dataset *d);

/* RL prompts: verl/TRL columns. */
struct prompt_item {
    char *id;         /* unique: extra_info.name */
    char *task_code;
    json_t *messages; /* owned reference: [{"role","content"},..] */
    json_t *info;     /* owned reference: extra_info */
};

struct prompt_set {
    struct prompt_item *items;
    size_t n;
};

int prompt_set_load(struct prompt_set *p, const char *path, struct err *e);
void prompt_set_free(struct prompt_set *p);
const struct prompt_item *prompt_set_find(const struct prompt_set *p, const char *id); /* NULL when absent */

#endif
