/* fuzz_recipe.c - recipes are foreign bytes: no text may crash the reader or pass without being a mapping. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "train/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const sections[] = {"synth", "init", "sft", "rft", "rl_single", "rl_multi", "bench", NULL};
    struct err e = ERR_INIT;
    json_t *r = recipe_parse((const char *)data, size, "recipe", sections, &e);

    if (!r)
        return 0;
    if (!json_is_object(r))
        abort();
    char *text = strndup((const char *)data, size < 64 ? size : 64);
    recipe_set(r, text, sections, &e);
    free(text);
    json_decref(r);
    return 0;
}
