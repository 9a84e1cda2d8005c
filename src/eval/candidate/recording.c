/* recording.c - see recording.h. Reading order: recording_direct, then recording_replay, then recording_do_replay(). */
#include "eval/candidate/recording.h"

#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/element.h"
#include "eval/candidate/recording_parts.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/candidate/job.h"
#include "eval/verdict/record.h"

#define MAX_IMAGE ((size_t)128 << 20)
#define MOST_NOTES 256 /* of a recording */
#define NOTE_TEXT 400  /* bytes of each text */

/* Of a built library: the executor may open its device code. */
static int recording_image(struct recording *l, const char *path, struct err *e)
{
    char sha[65];
    struct buf b;
    int rc;

    buf_init(&b, MAX_IMAGE);
    rc = file_read(path, &b, e) < 0 ? -1 : executor_image(l->x, b.p, b.n, sha, e);
    l->harmed |= rc < 0 || !executors_harmless(b.p, b.n);
    if (rc == 0 && l->capsule)
        capsule_add_image(l->capsule, b.p, b.n);
    buf_free(&b);
    return rc;
}

static int recording_image_of_build(void *recording, const char *path, struct err *e)
{
    return recording_image(recording, path, e);
}

/* Gives the executor's descriptors to the candidate's process. ERR_ENV: it has ended or has no executor. */
static int recording_attach(struct job *j, const int fds[2], struct err *e)
{
    json_t *req = json_pack("{s:s}", "op", "attach");
    struct frame f;
    enum call_fault fault = session_give(j->session, req, fds, 2, &f, e);
    int rc = 0;

    json_decref(req);
    if (fault != CALL_OK)
        return e->kind == ERR_NONE ? err_set(e, ERR_ENV, "the candidate's process ended before it began") : -1;
    if (strcmp(json_str(f.head, "op", ""), "ok"))
        rc = err_set(e, ERR_ENV, "the candidate's process has no executor: %.200s", json_str(f.head, "message", ""));
    frame_free(&f);
    return rc;
}

/* A program that goes on rightly until it thinks that nobody looks any more does not know when that is. */
static uint32_t recording_number_of_calls(const struct job *j)
{
    struct rng r;

    rng_seed(&r, (uint64_t)j->seed, 78);
    return RECORDING_CALLS_LEAST + (uint32_t)rng_below(&r, RECORDING_CALLS - RECORDING_CALLS_LEAST + 1);
}

int recording_open(struct job *j, struct err *e)
{
    struct executor_options o = {.backend = j->server->backend->name, .timeout_s = j->opt->timeout_s};
    struct recording *l = xcalloc(1, sizeof *l);
    uint64_t memory;
    int fds[2], rc;

    recording_close(j->recording);
    j->recording = l;
    l->notes = json_array();
    l->n_calls = recording_number_of_calls(j);
    record_set(j->rec, "schema", json_string(RECORD_SCHEMA_REPLAY));
    l->home = &j->server->executors;
    l->harmed = j->held.ref->streamed != NULL; /* what its client held would stay mapped, and the area too */
    if (recording_streamed_memory(j, &memory, e) < 0 || executors_take(l->home, &o, memory, &l->x, fds, e) < 0)
        return -1;
    if (j->opt->capsule)
        capsule_init(l->capsule = xcalloc(1, sizeof *l->capsule), o.backend, j->task->name, executor_info(l->x)->name,
                     executor_info(l->x)->memory);
    rc = recording_attach(j, fds, e);
    close(fds[0]);
    close(fds[1]);
    j->session->on_image = recording_image_of_build;
    j->session->image_ctx = l;
    j->session->device_pid = executor_pid(l->x);
    return rc;
}

void recording_bindings_free(struct recording *l)
{
    for (size_t i = 0; i < l->n_bindings; i++) {
        for (int k = 0; k < REF_SETS; k++)
            free(l->bindings[i].real[k]);
        free(l->bindings[i].made_up);
    }
    free(l->bindings);
    l->bindings = NULL;
    l->n_bindings = 0;
}

void recording_close(struct recording *l)
{
    if (!l)
        return;
    executors_give(l->home, l->x, !l->harmed);
    if (l->capsule)
        capsule_free(l->capsule);
    free(l->capsule);
    json_decref(l->notes);
    json_decref(l->refused_launch);
    for (int i = 0; i < RECORDING_CALLS + RECORDING_EARLIER; i++)
        json_decref(l->outputs[i]);
    recording_bindings_free(l);
    free(l->inputs);
    free(l);
}

/* A refused launch as a finding. New. */
static json_t *recording_launch_finding(const json_t *note)
{
    json_t *f = json_pack("{s:s,s:s,s:s}", "kind", "launch_error", "kernel", json_str(note, "name", "?"), "message",
                          json_str(note, "message", "a launch was refused"));

    if (json_i64(note, "line", 0) > 0) {
        json_object_set_new(f, "file", json_string(json_str(note, "file", "")));
        json_object_set_new(f, "line", json_integer(json_i64(note, "line", 0)));
    }
    return f;
}

/* A note as litetorch/front/front.h writes it: what else its sender put there stays out of the record. */
static json_t *recording_note_of(const json_t *said)
{
    static const char *const texts[] = {"kind", "name", "message", "file", "handling"};
    json_t *note = json_object();

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *s = json_str(said, texts[i], "");

        if (i < 3 || *s)
            json_object_set_new(note, texts[i], json_utf8(s, strnlen(s, NOTE_TEXT)));
    }
    if (json_i64(said, "line", 0) > 0)
        json_object_set_new(note, "line", json_integer(json_i64(said, "line", 0)));
    json_object_set_new(note, "forward", json_boolean(json_flag(said, "forward", false)));
    json_object_set_new(note, "count", json_integer(json_i64(said, "count", 1)));
    return note;
}

static bool recording_refused_in_forward(const json_t *note)
{
    return !strcmp(json_str(note, "kind", ""), "launch_error") && json_flag(note, "forward", false);
}

void recording_take_report(struct job *j, const json_t *head)
{
    const json_t *notes = json_object_get(head, "notes"), *n;
    struct recording *l = j->recording;
    size_t i;

    json_array_foreach((json_t *)notes, i, n) {
        json_t *note = recording_note_of(n);

        if (!l->refused_launch && recording_refused_in_forward(note)) /* also where so many others came before it */
            l->refused_launch = recording_launch_finding(note);
        if (json_array_size(l->notes) < MOST_NOTES)
            json_array_append(l->notes, note);
        json_decref(note);
    }
}

bool recording_blame_launch(struct job *j)
{
    if (!j->recording->refused_launch)
        return false;
    json_array_append(j->findings, j->recording->refused_launch);
    return true;
}
