/* recipe.h - the file that says what 'musacoder run' does: YAML with scalars at the top and one section per stage.
 *
 *   name: quickstart
 *   seed: 1
 *   stages: synth init sft rft rl_single rl_multi
 *   bench-after: sft rft rl_single rl_multi
 *   sft: {steps: 700, lr: 1e-3}
 *
 * 'base: FILE' starts from another recipe in the same folder; what this one says wins, key by key.
 *
 * Keys of a section are the flags of its command; they are checked where the command's rows are known
 * (cli/cmd_run.c). */
#ifndef MC_TRAIN_RECIPE_H
#define MC_TRAIN_RECIPE_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* sections: NULL-terminated names. New object; NULL on error: not YAML, an unknown key or section (the nearest known
 * one is named), a section that is no mapping, a stage in 'stages' or 'bench-after' that is no section or comes
 * twice. */
json_t *recipe_parse(const char *text, size_t n, const char *what, const char *const *sections, struct err *e);
json_t *recipe_read(const char *path, const char *const *sections, struct err *e);

/* "section.key=value" or "key=value": replaces the value. The same checks. */
int recipe_set(json_t *recipe, const char *assignment, const char *const *sections, struct err *e);

/* Calls f for each word of a list such as 'stages'; stops and returns -1 when f does. */
int recipe_each_word(const json_t *recipe, const char *key, int (*f)(const char *word, void *ctx, struct err *e),
                     void *ctx, struct err *e);

#endif
