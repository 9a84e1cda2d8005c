/* definition.c - FlashInfer-Bench's and SOL-ExecBench's definitions: axes, inputs, outputs and a reference 'run' in one
 * JSON file; workloads give the free axes and the scalars. Axes become module-level sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/formats/format.h"

/* The workloads of a definition: workload.jsonl beside it, or NAME.jsonl in workloads/ as it is in definitions/. NULL:
 * none. Owned. */
static char *definition_workloads(const char *path)
{
    char *stem = path_stem(path), *beside = format_beside(path, "workload.jsonl"), *found = NULL, *dir, *below;

    if (file_exists(beside))
        found = xstrdup(beside);
    dir = path_folder(path);
    below = strstr(dir, "definitions");
    if (!found && below) {
        found = xasprintf("%.*sworkloads%s/%s.jsonl", (int)(below - dir), dir, below + strlen("definitions"), stem);
        if (!file_exists(found)) {
            free(found);
            found = NULL;
        }
    }
    free(dir);
    free(beside);
    free(stem);
    return found;
}

/* format's 'is': a JSON definition with a reference. */
static bool definition_is(const char *path)
{
    json_t *d;
    bool is;

    if (!path_ends(path, ".json") || (!format_named(path, "definition.json") && !strstr(path, "definitions/")))
        return false;
    d = json_read_foreign(path, NULL);
    is = json_object_get(d, "axes") && json_object_get(d, "inputs") && json_object_get(d, "reference");
    json_decref(d);
    return is;
}

/* ---- rows ---- */

static bool definition_known_expression(const char *s)
{
    return *s && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ +-*/%()") == strlen(s);
}

/* Puts a stored tensor into the row, as values. */
static int definition_take_stored(const char *path, const char *name, const json_t *how, json_t *row, struct err *e)
{
    json_t *tensor;

    if (format_tensor(path, json_str(how, "path", ""), json_str(how, "tensor_key", ""), &tensor, e) < 0)
        return err_prefix(e, "input '%.80s'", name);
    json_object_set_new(row, name, tensor);
    return 0;
}

/* A workload's scalars and stored tensors go into row; inputs that the judge cannot make are refused. */
static int definition_take_inputs(const char *path, const json_t *definition, const json_t *inputs, json_t *row,
                                  struct err *e)
{
    const char *name;
    json_t *how;

    json_object_foreach((json_t *)inputs, name, how) {
        const char *type = json_str(how, "type", "random");
        if (!strcmp(type, "safetensors") && definition_take_stored(path, name, how, row, e) < 0)
            return -1;
        if (!strcmp(type, "scalar"))
            json_object_set(row, name, json_object_get(how, "value"));
        else if (!strcmp(type, "custom") && !json_is_string(json_object_get(definition, "custom_inputs_entrypoint")))
            return err_set(e, ERR_INPUT, "input '%.80s' is made by a function that the definition does not name", name);
    }
    return 0;
}

struct definition_rows {
    const char *path;
    const json_t *definition;
    json_t *rows;
    json_t *tolerances; /* of each row: the workload's own, or null */
};

/* A workload: {"axes","inputs"}, or that under "workload". */
static int definition_take_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct definition_rows *r = ctx;
    const json_t *w = json_object_get(v, "workload") ? json_object_get(v, "workload") : v;
    json_t *row = json_object(), *value;
    const char *name;

    (void)line;
    json_object_foreach(json_object_get(r->definition, "axes"), name, value)
        if (!strcmp(json_str(value, "type", ""), "var"))
            json_object_set(row, name, json_object_get(json_object_get(w, "axes"), name));
    if (definition_take_inputs(r->path, r->definition, json_object_get(w, "inputs"), row, e) < 0) {
        json_decref(row);
        return -1;
    }
    json_array_append_new(r->rows, row);
    value = json_object_get(w, "tolerance");
    json_array_append_new(r->tolerances, json_is_object(value) ? json_incref(value) : json_null());
    return 0;
}

/* A workload's tolerance by the benchmark's own rules: what it names, else the defaults of its judge. SOL-ExecBench:
 * core/data/workload.py, ToleranceSpec. FlashInfer-Bench: bench/config.py, and bench/evaluators/lowbit.py. New. */
static json_t *definition_tolerance(const json_t *own, const char *origin, const char *name)
{
    bool sol = !strcmp(origin, "sol-execbench"), low = !sol && strstr(name, "moe_fp8_block_scale");
    json_t *t = json_pack("{s:f,s:f}", "abs", json_f64(own, "max_atol", 1e-2), "rel", json_f64(own, "max_rtol", 1e-2));
    double matched = json_f64(own, "required_matched_ratio", sol ? 0.99 : low ? 0.95 : 1);

    json_object_set_new(t, "matched", json_real(matched));

    if (json_is_number(json_object_get(own, "max_error_cap")))
        json_object_set(t, "most", json_object_get(own, "max_error_cap"));
    return t;
}

/* Sets the sidecar's tolerance, and those of workloads that differ. */
static void definition_add_tolerances(struct format_task *t, const json_t *tolerances)
{
    const char *origin = json_str(t->sidecar, "format", "");
    json_t *entry;
    size_t i;
    int row;

    json_object_set_new(t->sidecar, "tolerance", definition_tolerance(json_array_get(tolerances, 0), origin, t->name));
    json_array_foreach(json_object_get(t->sidecar, "workloads"), i, entry)
        if (sscanf(json_str(entry, "name", ""), "row-%d", &row) == 1)
            json_object_set_new(entry, "tolerance",
                                definition_tolerance(json_array_get(tolerances, (size_t)row), origin, t->name));
}

/* ---- the text ---- */

static const char definition_stored[] =
    "import base64\n\n\ndef stored(tensor):\n    data = bytearray(base64.b64decode(tensor[\"data\"]))\n"
    "    kind = getattr(torch, tensor[\"dtype\"])\n"
    "    return torch.frombuffer(data, dtype=kind).reshape(tensor[\"shape\"]).clone() if data \\\n"
    "        else torch.empty(tensor[\"shape\"], dtype=kind)\n\n\n";

/* Is input NAME a tensor that the first row holds? */
static bool definition_is_stored(const json_t *row, const char *name)
{
    return json_is_string(json_object_get(json_object_get(row, name), "data"));
}

/* Appends the axes as Python assignments. ERR_INPUT: one is no name, or of an unknown type. */
static int definition_add_axes(const json_t *d, struct buf *out, struct err *e)
{
    const char *name;
    json_t *a;

    json_object_foreach(json_object_get(d, "axes"), name, a) {
        const char *type = json_str(a, "type", ""), *expression = json_str(a, "expression", "");
        if (!format_is_identifier(name))
            return err_set(e, ERR_INPUT, "axis '%.80s' is no name", name);
        if (!strcmp(type, "const"))
            buf_addf(out, "%s = %lld\n", name, (long long)json_i64(a, "value", 0));
        else if (!strcmp(type, "expr") && definition_known_expression(expression))
            buf_addf(out, "%s = %s\n", name, expression);
        else if (strcmp(type, "var"))
            return err_set(e, ERR_INPUT, "axis '%.80s' is of an unknown kind", name);
    }
    return 0;
}

/* Appends a shape as a Python tuple's inside. */
static void definition_add_shape(const json_t *shape, struct buf *out)
{
    const json_t *x;
    size_t i;

    json_array_foreach(shape, i, x)
        if (json_is_string(x))
            buf_addf(out, "%s, ", json_string_value(x));
        else
            buf_addf(out, "%lld, ", (long long)json_integer_value(x));
}

/* Appends the expression that draws one input of the workload 'row'. */
static int definition_add_input(const char *name, const json_t *in, const json_t *row, struct buf *out, struct err *e)
{
    const char *dtype = json_str(in, "dtype", "float32");
    bool whole = !strncmp(dtype, "int", 3) || !strncmp(dtype, "uint", 4), truth = !strcmp(dtype, "bool");

    if (!format_is_identifier(dtype))
        return err_set(e, ERR_INPUT, "input '%.80s' has no dtype that is known", name);
    if (definition_is_stored(row, name) || !json_is_array(json_object_get(in, "shape"))) {
        buf_addf(out, definition_is_stored(row, name) ? "        stored(%s),\n" : "        %s,\n", name);
        return 0;
    }
    buf_adds(out, whole || truth ? "        torch.randint(0, 2, (" : "        torch.randn((");
    definition_add_shape(json_object_get(in, "shape"), out);
    buf_addf(out, ")).to(torch.%s),\n", dtype);
    return 0;
}

/* Appends a call of the definition's own function for inputs. */
static void definition_add_custom(const json_t *d, const char *function, const json_t *row, struct buf *out)
{
    const char *name;
    json_t *x;

    buf_addf(out, "    made = %s({", function);
    json_object_foreach(json_object_get(d, "axes"), name, x)
        buf_addf(out, "\"%s\": %s, ", name, name);
    json_object_foreach(json_object_get(d, "inputs"), name, x)
        if (!json_is_array(json_object_get(x, "shape")))
            buf_addf(out, "\"%s\": %s, ", name, name);
    buf_adds(out, "}, torch.device(\"cpu\"))\n    return [");
    json_object_foreach(json_object_get(d, "inputs"), name, x)
        if (definition_is_stored(row, name))
            buf_addf(out, "stored(%s), ", name);
        else if (json_is_array(json_object_get(x, "shape")))
            buf_addf(out, "made[\"%s\"], ", name);
        else
            buf_addf(out, "%s, ", name);
    buf_adds(out, "]\n");
}

/* Appends get_inputs(). */
static int definition_add_inputs(const json_t *d, const json_t *row, struct buf *out, struct err *e)
{
    const char *name, *custom = json_str(d, "custom_inputs_entrypoint", NULL);
    json_t *x;

    buf_adds(out, "\n\ndef get_inputs():\n");
    if (custom) {
        if (!format_is_identifier(custom))
            return err_set(e, ERR_INPUT, "'%.80s' is no name of a function", custom);
        definition_add_custom(d, custom, row, out);
    } else {
        buf_adds(out, "    return [\n");
        json_object_foreach(json_object_get(d, "inputs"), name, x)
            if (definition_add_input(name, x, row, out, e) < 0)
                return -1;
        buf_adds(out, "    ]\n");
    }
    buf_adds(out, "\n\ndef get_init_inputs():\n    return []\n");
    return 0;
}

/* Appends class Model, whose forward calls the definition's run(). */
static int definition_add_model(const json_t *d, struct buf *out, struct err *e)
{
    const char *name, *sep = "";
    struct buf names;
    json_t *x;

    buf_init(&names, 1 << 16);
    json_object_foreach(json_object_get(d, "inputs"), name, x) {
        if (!format_is_identifier(name)) {
            buf_free(&names);
            return err_set(e, ERR_INPUT, "input '%.80s' is no name", name);
        }
        buf_addf(&names, "%s%s", sep, name);
        sep = ", ";
    }
    buf_addf(out, "\n\nclass Model(torch.nn.Module):\n    def forward(self, %s):\n        return run(%s)\n", names.p,
             names.p);
    buf_free(&names);
    return 0;
}

/* Makes the task's code and workloads of a definition and the rows of its workloads. */
static int definition_build(const json_t *d, const json_t *rows, int most, struct format_task *t, struct err *e)
{
    const char *reference = json_str(d, "reference", ""), *name;
    const json_t *row = json_array_get(rows, 0), *value;
    bool stored = false;

    if (!strstr(reference, "def run("))
        return err_set(e, ERR_INPUT, "its reference defines no 'run'");
    json_object_foreach((json_t *)row, name, value)
        stored = stored || definition_is_stored(row, name);
    buf_addf(&t->code, "import torch\n%s\n%s\n\n", stored ? definition_stored : "", reference);
    if (json_object_size(row) && format_rows(t, rows, most, e) < 0)
        return -1;
    if (definition_add_axes(d, &t->code, e) < 0 || definition_add_model(d, &t->code, e) < 0)
        return -1;
    return definition_add_inputs(d, row, &t->code, e);
}

/* format's 'read': a definition in JSON and its workloads beside it. */
static int definition_read(const char *path, int most, struct format_task *t, struct err *e)
{
    json_t *d = json_read_foreign(path, e);
    char *workloads = definition_workloads(path);
    struct definition_rows r = {path, d, json_array(), json_array()};
    int rc = !d ? -1 : !workloads ? err_set(e, ERR_INPUT, "it has no workloads beside it")
        : jsonl_each(workloads, definition_take_line, &r, e);

    if (rc == 0) {
        snprintf(t->name, sizeof t->name, "%.100s", json_str(d, "name", "task"));
        json_object_set_new(t->sidecar, "format", json_string(format_named(path, "definition.json") ? "sol-execbench"
                                                              : "flashinfer-bench"));
        rc = definition_build(d, r.rows, most, t, e);
    }
    if (rc == 0 && t->published)
        definition_add_tolerances(t, r.tolerances);
    json_decref(r.tolerances);
    json_decref(r.rows);
    json_decref(d);
    free(workloads);
    return rc;
}

const struct format format_definition = {"definition", "FlashInfer-Bench's and SOL-ExecBench's, with workloads",
                                         definition_is, definition_read};
