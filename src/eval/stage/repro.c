/* repro.c - see repro.h. */
#include "eval/stage/repro.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

/* Bytes beside draw.json; the tree that names their offsets goes into it. */
static int repro_put(const char *folder, json_t *draw, const char *name, const json_t *tree, const void *bytes,
                     size_t n, struct err *e)
{
    char file[40], *path;
    int rc;

    if (!tree || !bytes)
        return 0;
    snprintf(file, sizeof file, "%s.bin", name);
    path = path_join(folder, file);
    rc = file_write(path, bytes, n, e);
    free(path);
    if (rc == 0)
        json_object_set(draw, name, (json_t *)tree);
    return rc;
}

/* Writes the tensors of a section as files of the folder, and names them in the draw's object. */
static int repro_put_section(const char *folder, json_t *draw, const char *name, const struct section *s,
                             struct err *e)
{
    return repro_put(folder, draw, name, s->tree, s->bytes, s->n, e);
}

/* draw.json's facts about the draw. New. */
static json_t *repro_head(const struct job *j, const struct ref_draw *d)
{
    struct tolerance t = ref_tolerance(d, 0, j->protocol, task_setting(j->task, j->variant, "tolerance"));

    return json_pack("{s:s,s:s,s:i,s:s,s:s?,s:O?,s:{s:f,s:f},s:b}", "schema", "musacoder.repro/1", "regime", d->regime,
                     "trial", d->trial, "mode", j->held.ref->mode, "dtype", j->held.ref->dtype, "rows",
                     j->held.ref->state,
                     "tolerance", "abs", t.abs, "rel", t.rel, "streamed", j->held.ref->streamed != NULL);
}

/* Writes a failed draw's inputs, parameters, expected and got values into the folder, and draw.json that names them.
 * */
static int repro_files(const struct job *j, const struct ref_draw *d, const struct frame *got, json_t *draw,
                       struct err *e)
{
    const char *folder = j->opt->repro;
    const struct reference *r = j->held.ref;
    const struct section *state = d->parameters ? &r->other_states[d->parameters - 1] : &r->state_values;
    char *path = path_join(folder, "draw.json");
    int rc = 0;

    if (repro_put_section(folder, draw, "inputs", &d->inputs, e) < 0 ||
        repro_put_section(folder, draw, "init", &j->held.ref->init, e) < 0 ||
        repro_put_section(folder, draw, "state", state, e) < 0 ||
        repro_put_section(folder, draw, "expected", &d->eager, e) < 0 ||
        (got && repro_put(folder, draw, "got", json_object_get(got->head, "output"), got->blob, got->n_blob, e) < 0))
        rc = -1;
    if (rc == 0)
        rc = json_write(path, draw, e);
    free(path);
    return rc;
}

void repro_write(struct job *j, const struct ref_draw *d, const struct frame *got)
{
    struct err e = ERR_INIT;
    json_t *draw;

    if (!j->opt->repro || j->reproduced)
        return;
    j->reproduced = true;
    draw = repro_head(j, d);
    if (dir_make(j->opt->repro, &e) < 0 || repro_files(j, d, got, draw, &e) < 0)
        log_warn("--repro: %s", e.msg);
    json_decref(draw);
}
