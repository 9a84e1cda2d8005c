/* prompt.h - the words a model is asked with: one place for synthesis, training, benchmark and generation.
 *
 * Two styles of the same request (model card format: reference code, input shapes and dtypes, backend, ModelNew,
 * no fallback):
 *   plain  one line and the code; for small models and short contexts
 *   full   every constraint spelled out; for models that read English
 * A model is asked in the style that it was trained with: recipes carry the style as a key.
 * Strings returned are owned by the caller; nothing here fails except on an unknown name. */
#ifndef MC_PROMPT_H
#define MC_PROMPT_H

#include <jansson.h>

#include "base/err.h"

enum prompt_style { PROMPT_PLAIN, PROMPT_FULL };

int prompt_style_parse(const char *name, enum prompt_style *ret, struct err *e); /* "plain" or "full" */
const char *prompt_style_name(enum prompt_style style);

/* The request of turn 1. code is the task file; backend "cuda" or "musa" (NULL: cuda; "sim" is asked as cuda).
 * inputs is text such as prompt_inputs makes, or NULL when shapes are only known from the code; plain ignores it. */
char *prompt_task(enum prompt_style style, const char *code, const char *backend, const char *inputs);
/* The same request in other words, of PROMPT_WORDINGS; 0 is prompt_task's. A corpus may be asked in all of them. */
#define PROMPT_WORDINGS 8
char *prompt_task_worded(enum prompt_style style, int wording, const char *code, const char *backend,
                         const char *inputs);

/* inputs: [{"shape":[6,37],"dtype":"float32","stride":[37,1]},..] -> "- input 0: float32, shape (6, 37), ..." lines. */
char *prompt_inputs(const json_t *inputs);

/* The request of turn 2 and later: the verdict's feedback, verbatim, and what to do. plain keeps the first
 * PROMPT_PLAIN_FEEDBACK bytes (cut at a line or word end, never inside a UTF-8 sequence). shown: the response that is
 * talked of, whose lines follow with their numbers, as repair_text.h has them, so that an answer may be the
 * lines that change; NULL, or a response without a kernel: the answer is a whole program. */
#define PROMPT_PLAIN_FEEDBACK 400
char *prompt_feedback(enum prompt_style style, const char *feedback, const char *shown);

/* Conversations: [{"role":"user","content":..}, {"role":"assistant",..}, {"role":"user",..}..].
 * prompt_start makes turn 1 (new array); prompt_turn appends a response and what the judge said about it. shown: as
 * in prompt_feedback; the response itself unless it is edits. */
json_t *prompt_start(const char *task_prompt);
void prompt_turn(json_t *messages, enum prompt_style style, const char *response, const char *feedback,
                 const char *shown);
void prompt_say(json_t *messages, const char *role, const char *content);

#endif
