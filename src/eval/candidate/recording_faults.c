/* recording_faults.c - what went wrong on the executor, and which tensor a finding is about. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "base/json.h"
#include "device/element.h"
#include "eval/candidate/job.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"

/* ---- what went wrong ---- */

static bool recording_is_unwritten(const char *kind)
{
    return !strcmp(kind, "uninitialised_global") || !strcmp(kind, "uninitialised_shared");
}

/* The finding, and its line's text, by which the line is found in the user's file. */
static json_t *recording_with_text(const struct job *j, json_t *f)
{
    char text[200];

    if (session_source_line(j->session, json_str(f, "file", ""), json_i64(f, "line", 0), text, sizeof text))
        json_object_set_new(f, "text", json_utf8(text, strlen(text)));
    return json_incref(f);
}

/* Two kinds are no faults: what kernels printed, the program's own words, and reads of memory that nothing wrote, which
 * may be of values that nothing uses. Both stand in the record; a wrong value is explained by the second. */
static void recording_take_notes(struct job *j, json_t *found)
{
    for (size_t i = json_array_size(found); i-- > 0;) {
        json_t *f = json_array_get(found, i), *seen = json_object_get(j->rec, "unwritten");
        const char *kind = json_str(f, "kind", "");

        if (!strcmp(kind, "printed") && !json_object_get(j->rec, "printed"))
            json_object_set(j->rec, "printed", json_object_get(f, "message"));
        else if (recording_is_unwritten(kind) && !seen)
            record_set(j->rec, "unwritten", recording_with_text(j, f));
        if (!strcmp(kind, "printed") || recording_is_unwritten(kind))
            json_array_remove(found, i);
    }
}

/* ---- which tensor a finding is about ---- */

/* {"tensor","role","shape","dtype"} of what the judge has bound there; new, NULL: it is the program's own memory. */
static json_t *recording_tensor_of_row(const json_t *row, const char *name, const char *role)
{
    return json_pack("{s:s,s:s,s:O?,s:O?}", "tensor", name, "role", role, "shape", json_object_get(row, "shape"),
                     "dtype", json_object_get(row, "dtype"));
}

struct recording_nth {
    size_t want, n;
    const json_t *leaf;
};

/* A callback of tree_each: finds the wanted tensor by its number. */
static int recording_nth_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_nth *x = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && x->n++ == x->want)
        x->leaf = leaf;
    return 0;
}

/* Names input i by its argument, shape and dtype. New. */
static json_t *recording_tensor_of_input(const struct job *j, size_t i)
{
    struct recording_nth x = {.want = i};
    char name[80], role[32];

    tree_each(j->held.ref->draws[0].inputs.tree, recording_nth_leaf, &x, NULL);
    snprintf(role, sizeof role, "input %zu", i);
    if (!place_argument(j->code, (int)i, name, sizeof name))
        snprintf(name, sizeof name, "%s", role);
    return x.leaf ? recording_tensor_of_row(x.leaf, name, role) : NULL;
}

/* Names the input, parameter or output that lies at base, as JSON for a finding; NULL: none does. */
static json_t *recording_tensor_at(const struct job *j, uint64_t base, uint64_t bytes)
{
    const struct recording *l = j->recording;
    size_t each = j->held.ref && j->held.ref->streamed ? 1 : 2;

    for (size_t i = 0; j->held.ref && i < l->n_inputs; i++)
        if (l->inputs[i] && l->inputs[i] == base)
            return recording_tensor_of_input(j, i / each);
    for (size_t i = 0; i < l->n_bindings; i++) {
        const struct recording_binding *b = &l->bindings[i];
        const json_t *row = json_array_get(j->held.ref->state, b->row);

        if (b->address == base && b->bytes <= bytes)
            return recording_tensor_of_row(row, json_str(row, "name", "?"), b->buffer ? "buffer" : "parameter");
    }
    return NULL;
}

/* Memory of the program's own, by the kernel's parameter that leads there; new, NULL: that is not known. */
static json_t *recording_tensor_of_parameter(const struct job *j, const json_t *finding, const json_t *m)
{
    const char *kernel = json_str(finding, "kernel", "");
    const char *source = json_string_value(json_object_get(j->session->sources, json_str(finding, "file", "")));
    struct place_parameter p = {.bytes = 0};
    int64_t bytes = json_i64(m, "bytes", 0);
    char role[160];
    json_t *t;

    if (!place_pointer(source, kernel, (int)json_i64(m, "pointer", 0), (int)json_i64(m, "pointers", 0), &p))
        return NULL;
    snprintf(role, sizeof role, "argument %d of %.96s", p.index, kernel);
    t = json_pack("{s:s,s:s}", "tensor", p.name, "role", role);
    if (p.bytes && bytes % p.bytes == 0)
        json_object_update_new(t, json_pack("{s:[I],s:s}", "shape", (json_int_t)(bytes / p.bytes), "dtype", p.dtype));
    return t;
}

/* A finding about memory: its tensor's name, shape and element in place of an address. */
static void recording_name_memory(const struct job *j, json_t *finding)
{
    json_t *m = json_object_get(finding, "memory");
    json_t *t = m ? recording_tensor_at(j, (uint64_t)json_i64(m, "base", 0), (uint64_t)json_i64(m, "bytes", 0)) : NULL;
    struct buf words;

    t = t || !m ? t : recording_tensor_of_parameter(j, finding, m);
    json_object_del(m, "base");
    json_object_del(m, "pointer");
    json_object_del(m, "pointers");
    if (!t)
        return;
    json_object_update(m, t);
    buf_init(&words, 1000);
    memory_words(json_str(finding, "message", ""), m, &words);
    json_object_set_new(finding, "message", json_utf8(words.p, words.n));
    buf_free(&words);
    json_decref(t);
}

/* The same kind at the same place: a kernel that runs again finds it again. */
static bool recording_knows(const json_t *list, const json_t *finding)
{
    const json_t *f;
    size_t i;

    json_array_foreach(list, i, f)
        if (!strcmp(json_str(f, "kind", ""), json_str(finding, "kind", "")) &&
            json_equal(json_object_get(f, "line"), json_object_get(finding, "line")) &&
            json_equal(json_object_get(f, "file"), json_object_get(finding, "file")) &&
            json_i64(f, "line", 0) > 0)
            return true;
    return false;
}

void recording_take_findings(struct job *j)
{
    json_t *one;
    size_t i;
    struct err e = ERR_INIT;
    char *text = NULL;
    json_t *found;

    if (executor_findings(j->recording->x, &text, &e) < 0)
        return;
    found = json_parse(text, strlen(text), "findings", &e);
    json_array_foreach(found, i, one)
        recording_name_memory(j, one);
    recording_take_notes(j, found);
    json_array_foreach(found, i, one)
        if (json_array_size(j->findings) < 64 && !recording_knows(j->findings, one))
            json_array_append(j->findings, one);
    json_decref(found);
    free(text);
}

json_t *recording_stand(struct job *j)
{
    char *text = j->recording ? executor_stand(j->recording->x) : NULL;
    json_t *found = text ? json_parse(text, strlen(text), "findings", NULL) : NULL, *one, *stand = NULL;
    size_t i;

    json_array_foreach(found, i, one)
        if (!strcmp(json_str(one, "kind", ""), "still_running"))
            stand = one;
    json_incref(stand);
    json_decref(found);
    free(text);
    return stand;
}

void recording_device_fault(struct job *j, int code, const char *why)
{
    static const struct {
        int code;
        const char *kind;
    } kinds[] = {{WIRE_ILLEGAL_ADDRESS, "illegal_access"}, {WIRE_LAUNCH_FAILED, "crash"},
                 {WIRE_BAD_CONFIG, "launch_error"},
                 {WIRE_OUT_OF_MEMORY, "out_of_memory"}}; /* within the client's limit: retry.h asks whose fault it is */
    const char *kind = "device_error";
    char text[400];

    j->recording->harmed |= code != 0;
    recording_take_findings(j);
    if (!code || json_array_size(j->findings))
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            kind = kinds[i].kind;
    snprintf(text, sizeof text, "%s", *why ? why : "the device reports an error");
    json_array_append_new(j->findings, json_pack("{s:s,s:s}", "kind", kind, "message", text));
}
