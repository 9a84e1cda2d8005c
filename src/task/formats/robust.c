/* robust.c - robust-kbench's func_forward.py with config_forward.json, and the same of backward: a Model whose forward
 * calls fn, and several settings of inputs and constructor. The first row is the single setting, then the product of
 * the others. */
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

/* The list of settings of that kind; a list of one empty setting where there is none. New. */
static json_t *robust_list(const json_t *config, const char *kind, const char *which)
{
    char key[64];
    json_t *list;

    snprintf(key, sizeof key, "%s_%s_configs", kind, which);
    list = json_object_get(config, key);
    return json_array_size(list) ? json_incref(list) : json_pack("[{}]");
}

/* A row of names: the constructor's, and the inputs'; "input_NAME" where both have it with other values. New. */
static json_t *robust_row(const json_t *init, const json_t *input)
{
    json_t *row = json_copy((json_t *)init), *value;
    const char *key;
    char other[120];

    json_object_foreach((json_t *)input, key, value) {
        const json_t *own = json_object_get(init, key);
        snprintf(other, sizeof other, "%s%s", own && !json_equal(own, value) ? "input_" : "", key);
        json_object_set(row, other, value);
    }
    return row;
}

/* "NAME_setting = {..}": what a function is called with, by the names of the row. */
static void robust_put_setting(struct buf *out, const char *name, const json_t *setting, const json_t *row)
{
    const char *key, *sep = "";
    json_t *value;
    char other[120];

    buf_addf(out, "%s_setting = {", name);
    json_object_foreach((json_t *)setting, key, value) {
        snprintf(other, sizeof other, "input_%s", key);
        buf_addf(out, "%s\"%s\": %s", sep, key, !strcmp(name, "input") && json_object_get(row, other) ? other : key);
        sep = ", ";
    }
    buf_adds(out, "}\n");
}

/* All rows have the names of the first: then integers are sizes of their own. */
static bool robust_is_even(const json_t *flat)
{
    const json_t *first = json_array_get(flat, 0), *one;
    const char *key;
    json_t *value;
    size_t i;

    json_array_foreach(flat, i, one) {
        if (json_object_size(one) != json_object_size(first))
            return false;
        json_object_foreach((json_t *)first, key, value)
            if (!json_object_get(one, key))
                return false;
    }
    return json_object_size(first) > 0;
}

/* Writes the rows as workloads; equal settings become literals. */
static int robust_put_rows(struct format_task *t, const json_t *rows, int most, struct err *e)
{
    json_t *flat = json_array(), *one;
    const json_t *init, *input;
    size_t i;
    int rc;

    json_array_foreach(rows, i, one)
        json_array_append_new(flat, robust_row(json_object_get(one, "init_setting"),
                                               json_object_get(one, "input_setting")));
    if (robust_is_even(flat)) {
        init = json_object_get(json_array_get(rows, 0), "init_setting");
        input = json_object_get(json_array_get(rows, 0), "input_setting");
        rc = format_rows(t, flat, most, e);
        robust_put_setting(&t->code, "init", init, json_array_get(flat, 0));
        robust_put_setting(&t->code, "input", input, json_array_get(flat, 0));
    } else {
        rc = format_rows(t, rows, most, e);
    }
    json_decref(flat);
    return rc;
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

/* Of a backward task forward gives the gradients: of its inputs, then of the parameters that it uses. The last input is
 * the gradient of what the forward task gives. */
static const char robust_backward[] =
    "forward_of_model = Model.forward\n\n\ndef backward_of_model(self, *args):\n"
    "    *given, grad = args\n    with torch.enable_grad():\n"
    "        given = [x.detach().requires_grad_(x.is_floating_point()) for x in given]\n"
    "        wanted = [x for x in given if x.requires_grad] + list(self.parameters())\n"
    "        found = torch.autograd.grad(forward_of_model(self, *given), wanted, grad, allow_unused=True)\n"
    "    return tuple(x for x in found if x is not None)\n\n\n"
    "Model.forward = backward_of_model\n"
    "own_inputs = get_inputs\n\n\ndef get_inputs():\n"
    "    given = [x.detach() for x in own_inputs(**taken(own_inputs, input_setting))]\n"
    "    with torch.no_grad():\n"
    "        out = forward_of_model(Model(**taken(Model, init_setting)), *given)\n"
    "    return given + [torch.randn_like(out)]\n";
static const char robust_forward[] =
    "own_inputs = get_inputs\n\n\ndef get_inputs():\n"
    "    return own_inputs(**taken(own_inputs, input_setting))\n";
/* Settings that are shared go to whoever takes them. */
static const char robust_taken[] =
    "\n\ndef taken(function, setting):\n    names = inspect.signature(function).parameters\n"
    "    return {name: value for name, value in setting.items() if name in names}\n\n\n";

/* Makes the task's code and workloads of a program and its table of settings. */
static int robust_build(const char *text, const json_t *config, bool backward, int most, struct format_task *t,
                        struct err *e)
{
    json_t *rows = json_array();
    int rc;

    robust_add_product(rows, config, "single");
    robust_add_product(rows, config, "multi");
    buf_addf(&t->code, "import inspect\n%s\n\n", text);
    rc = robust_put_rows(t, rows, most, e);
    buf_adds(&t->code, robust_taken);
    buf_adds(&t->code, backward ? robust_backward : robust_forward);
    buf_adds(&t->code, "\n\ndef get_init_inputs():\n    return [[], taken(Model, init_setting)]\n");
    json_decref(rows);
    return rc;
}

/* Names the task after its folder. */
static void robust_name(const char *path, bool backward, struct format_task *t)
{
    char *folder = format_beside(path, "x"), *slash = strrchr(folder, '/');

    if (slash)
        *slash = 0;
    snprintf(t->name, sizeof t->name, "%.90s%s", path_name(folder), backward ? "_backward" : "");
    free(folder);
}

/* format's 'read': a program with config_forward.json or config_backward.json beside it. */
static int robust_read(const char *path, int most, struct format_task *t, struct err *e)
{
    bool backward = format_named(path, "func_backward.py");
    char *at = format_beside(path, backward ? "config_backward.json" : "config_forward.json");
    json_t *config = json_read_foreign(at, e);
    struct buf text;
    int rc = config ? format_text(path, &text, e) : -1;

    robust_name(path, backward, t);
    if (rc == 0) {
        rc = robust_build(text.p, config, backward, most, t, e);
        buf_free(&text);
    }
    json_decref(config);
    free(at);
    return rc;
}

const struct format format_robust = {"robust-kbench", "func_forward.py, func_backward.py with their settings",
                                     robust_is, robust_read};
