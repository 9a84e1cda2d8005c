/* teach.h - a teacher, behind an OpenAI-compatible server or in a folder, answers tasks; what the judge passes
 * becomes a record.
 *
 * OUT/answers.jsonl keeps every answer under a key of all that was asked (model, messages, sampling, number of the
 * sample), so a stopped run continues, and a whole one is replayed without a server:
 *   {"key","task","sample","model","text","cut","prompt_tokens","completion_tokens"}
 * OUT/data/train-00000.jsonl has the records (training_record.h): a passing answer is "generate", a failing one
 * "review" with the judge's words. Answers that were cut, hold no program or repeat a program are counted and left
 * out. */
#ifndef MC_SYNTH_TEACH_H
#define MC_SYNTH_TEACH_H

#include "synth/training_record.h"
#include "synth/verify.h"

struct teach_options {
    const char *out, *tasks;  /* tasks: a folder of task files, or one */
    const char *teacher;      /* answers.h: a server or a model folder; NULL: replay, ask nobody */
    const char *weights;      /* a hash of the folder's model, "" of a server: answers are of these weights alone */
    const char *model;        /* NULL: the server's first, or the one of the run */
    int samples, parallel, max_new, limit;
    double temperature, top_p, retry_s;
    int64_t budget; /* tokens, asked and answered, over all runs in OUT; 0: no limit */
    struct prompt_format prompt_format;
    struct verify_options verify; /* its log is set here */
    int (*judge)(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e);
};

struct teach_stats {
    int tasks, asked, cached, unasked; /* answers: of this run, of earlier ones, not asked for lack of budget */
    int passed, failed, unjudged;      /* programs; unjudged: 'infra', 'unsupported', 'timeout' */
    int cut, without_program, repeated;
    int64_t tokens;                    /* spent in OUT so far */
};

int teach(struct teach_options *o, struct teach_stats *ret, struct err *e);

#endif
