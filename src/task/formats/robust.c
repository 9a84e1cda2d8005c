/* robust.c - robust-kbench's func_forward.py with config_forward.json: a Model whose forward calls fn, and several
 * settings of inputs and constructor. The first row is the single setting, then the product of the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "task/formats/format.h"

static bool robust_is(const char *path)
{
    return (format_named(path, "func_forward.py") && format_has_beside(path, "config_forward.json")) ||
           (format_named(path, "func_backward.py") && format_has_beside(path, "config_backward.json"));
}

static json_t *robust_list(const json_t *config, const char *kind, const char *which)
{
    char key[64];
    json_t *list;

    snprintf(key, sizeof key, "%s_%s_configs", kind, which);
    list = json_object_get(config, key);
    return json_array_size(list) ? json_incref(list) : json_pack("[{}]");
}

/* The shared settings are those of both. */
static void robust_add_product(json_t *rows, const json_t *config, const char *kind)
{
    json_t *inits = robust_list(config, kind, "init"), *inputs = robust_list(config, kind, "input");
    json_t *shared = robust_list(config, kind, "shared"), *a, *b, *c;
    size_t i, j, k;

    json_array_foreach(inits, i, a)
        json_array_foreach(inputs, j, b)
            json_array_foreach(shared, k, c) {
                json_t *init = json_copy(a), *in = json_copy(b), *row;
                json_object_update(init, c);
                json_object_update(in, c);
                row = json_pack("{s:o,s:o}", "init_setting", init, "input_setting", in);
                if (!json_equal(row, json_array_get(rows, 0)))
                    json_array_append(rows, row);
                json_decref(row);
            }
    json_decref(inits);
    json_decref(inputs);
    json_decref(shared);
}

static int robust_build(const char *text, const json_t *config, int most, struct format_task *t, struct err *e)
{
    json_t *rows = json_array();
    int rc;

    robust_add_product(rows, config, "single");
    robust_add_product(rows, config, "multi");
    buf_adds(&t->code, text);
    buf_adds(&t->code, "\n\n");
    rc = format_rows(t, rows, most, e);
    buf_adds(&t->code, "own_inputs = get_inputs\n\n\ndef get_inputs():\n    return own_inputs(**input_setting)\n\n\n"
                       "def get_init_inputs():\n    return [[], init_setting]\n");
    json_decref(rows);
    return rc;
}

static int robust_read(const char *path, int most, struct format_task *t, struct err *e)
{
    bool backward = format_named(path, "func_backward.py");
    char *at = format_beside(path, "config_forward.json"), *folder = format_beside(path, "x"), *slash;
    json_t *config = NULL;
    struct buf text;
    int rc = -1;

    if (backward)
        err_set(e, ERR_INPUT, "it asks for gradients by autograd in the candidate, which has no device to run it on");
    else if ((config = json_read_foreign(at, e)) && format_text(path, &text, e) == 0) {
        rc = robust_build(text.p, config, most, t, e);
        buf_free(&text);
    }
    if ((slash = strrchr(folder, '/')))
        *slash = 0;
    snprintf(t->name, sizeof t->name, "%.100s", strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder);
    json_decref(config);
    free(folder);
    free(at);
    return rc;
}

const struct format format_robust = {"robust-kbench", "func_forward.py with config_forward.json: several settings",
                                     robust_is, robust_read};
