/* test_stage_perf.c - the whole performance stage without a GPU: a backend row whose device is the host. The candidate's
 * process is played by the baseline role too; what it runs is a program of the test. What the clock says on a busy machine is
 * not tested, what the stage makes of it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "device/device.h"
#include "eval/job.h"
#include "eval/record.h"

static const struct backend host = {.name = "host", .device = "sim", .candidate = "baseline", .reference = "reference",
                                    .baseline = "baseline", .clock = "host", .place = "cpu", .timed = true, .slots = 2};

static struct eval ev;

static int start(void **state)
{
    struct server *sv = &ev.servers[0];
    struct forkserver_spec s = {.no_jail = true};
    struct err e = ERR_INIT;
    char *python = path_python(&e);

    (void)state;
    free(python);
    if (!python) {
        print_message("skipped: %s\n", e.msg);
        exit(0);
    }
    ev.config.no_jail = true;
    pthread_mutex_init(&ev.lock, NULL);
    pthread_mutex_init(&ev.server_lock, NULL);
    sem_init(&ev.build_slots, 0, 2);
    sv->backend = &host;
    sv->uuid = strdup("test-host");
    sem_init(&sv->run_slots, 0, 2);
    sem_init(&sv->begin_slots, 0, 2);
    if (forkserver_start(&s, &sv->fs, &e) < 0) {
        print_message("%s\n", e.msg);
        return -1;
    }
    sv->lock = &ev.server_lock;
    sv->info = forkserver_info(sv->fs);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    reference_list_free(&ev);
    baseline_list_free(&ev);
    device_close(ev.timer);
    forkserver_stop(ev.servers[0].fs);
    return 0;
}

#define TASK(forward) \
    "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n" \
    "        self.w = nn.Parameter(torch.randn(33))\n        self.calls = 0\n    def forward(self, x):\n        self.calls += 1\n        " \
    forward "\ndef get_inputs():\n    return [torch.randn(64, 33)]\ndef get_init_inputs():\n    return []\n"

static void must(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

/* The candidate's process as it is when legality is done: constructed, with the reference's parameters. */
static void open_candidate(struct job *j, const char *program)
{
    struct err e = ERR_INIT;
    struct frame f;
    json_t *req = json_pack("{s:s,s:s,s:O,s:i,s:s,s:s,s:b}", "op", "load", "source", program, "init", j->ref->init.tree, "seed", 0,
                            "mode", j->ref->mode, "device", "cpu", "tf32", 0);
    json_t *row = json_array_get(json_object_get(j->ref->state_values.tree, "v"), 0);

    must(session_open(&ev, j->server, j->opt, false, &j->session, &e), &e);
    assert_int_equal(session_call(j->session, req, j->ref->init.bytes, j->ref->init.n, &f, &e), CALL_OK);
    assert_string_equal(json_str(f.head, "op", ""), "ok");
    frame_free(&f);
    json_decref(req);
    req = json_pack("{s:s,s:[{s:s,s:O}]}", "op", "params", "values", "name", "w", "value", row);
    assert_int_equal(session_call(j->session, req, j->ref->state_values.bytes, j->ref->state_values.n, &f, &e), CALL_OK);
    assert_string_equal(json_str(f.head, "op", ""), "ok");
    frame_free(&f);
    json_decref(req);
}

/* The record after the stage. */
static json_t *timed(const char *reference, const char *program, const char *mode)
{
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    struct task t;
    struct err e = ERR_INIT;
    struct job j = {.ev = &ev, .server = &ev.servers[0], .task = &t, .opt = &o, .params = "name", .findings = json_array(),
                    .trace_init = json_object(), .trace_forward = json_object(), .launches = json_object()};

    o.trials = 1;
    o.calls = 10;
    o.compile_baseline = mode != NULL;
    o.compile_mode = mode ? mode : "default";
    must(task_make("t", reference, strlen(reference), &t, &e), &e);
    j.rec = record_new("t", "", "c", "", "host", "strict");
    record_set(j.rec, "correctness", json_pack("{s:i,s:i,s:i}", "trials", 5, "passed", 5, "q", 1));
    must(reference_get(&j, "random", &j.ref, &e), &e);
    open_candidate(&j, program);
    must(stage_perf.run(&j, &e), &e);
    record_settle(j.rec);
    session_close(j.session);
    reference_release(&ev, j.ref);
    task_free(&t);
    json_decref(j.findings);
    json_decref(j.trace_init);
    json_decref(j.trace_forward);
    json_decref(j.launches);
    return j.rec;
}

static bool has_reason(const json_t *perf, const char *name)
{
    const json_t *r;
    size_t i;

    json_array_foreach(json_object_get(perf, "reasons"), i, r)
        if (!strcmp(json_string_value(r), name))
            return true;
    return false;
}

static void test_an_honest_candidate_is_timed(void **state)
{
    json_t *rec = timed(TASK("y = x\n        for _ in range(300): y = y * 1.001\n        return (y @ self.w, y)"),
                        TASK("y = x * 1.001 ** 300\n        return (y @ self.w, y)"), NULL);
    const json_t *p = json_object_get(rec, "performance");
    char *text = json_text(rec);

    (void)state;
    if (strcmp(json_str(rec, "status", ""), "passed") || !json_is_object(p))
        fail_msg("%s", text);
    assert_true(json_f64(p, "speedup_eager", 0) > 3);
    assert_int_equal(json_array_size(json_object_get(p, "speedup_eager_ci")), 2);
    assert_true(json_i64(json_object_get(p, "calls"), "checked", 0) >= 4);
    assert_false(has_reason(p, "output_wrong") || has_reason(p, "inputs_repeat"));
    assert_true(json_is_null(json_object_get(p, "speedup_compile")) && json_is_null(json_object_get(p, "compile_error")));
    assert_true(json_f64(p, "eager_ms", 0) > json_f64(p, "candidate_ms", 1e9));
    assert_string_equal(json_str(rec, "stage", ""), "performance");
    free(text);
    json_decref(rec);
}

/* Right while it is judged, stale once it is timed: the seeds of timed calls are nobody's to know. */
static void test_a_stale_output_is_wrong(void **state)
{
    json_t *rec = timed(TASK("return x * self.w"),
                        TASK("self.y = x * self.w if self.calls < 3 else self.y\n        return self.y.clone()"), NULL);

    (void)state;
    assert_string_equal(json_str(rec, "status", ""), "failed");
    assert_string_equal(json_str(rec, "category", ""), "correctness_error");
    assert_string_equal(json_str(rec, "stage", ""), "performance");
    assert_true(has_reason(json_object_get(rec, "performance"), "output_wrong"));
    assert_false(json_flag(json_object_get(rec, "performance"), "trusted", true));
    assert_true(json_is_object(json_object_get(json_object_get(rec, "correctness"), "worst")));
    json_decref(rec);
}

static void test_a_late_output_is_cheating(void **state)
{
    json_t *rec = timed(TASK("return x * self.w"),
                        "import timing\nshow = timing.Timer.reveal\n"
                        "def late(self, slot):\n    self.area[slot].add_(1)\n    return show(self, slot)\n"
                        "timing.Timer.reveal = late\n" TASK("return x * self.w"), NULL);

    (void)state;
    assert_string_equal(json_str(rec, "category", ""), "cheating");
    assert_string_equal(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "rule", ""), "late_output");
    json_decref(rec);
}

/* Events may claim what they like: the judge's clock saw the call. */
static void test_forged_events_are_not_trusted(void **state)
{
    json_t *rec = timed(TASK("y = x\n        for _ in range(3000): y = y * 1.001\n        return y"),
                        "import timing\ntiming.HostDevice.elapsed_ms = lambda self, a, b: 0.001\n"
                        TASK("y = x\n        for _ in range(3000): y = y * 1.001\n        return y"), NULL);
    const json_t *p = json_object_get(rec, "performance");

    (void)state;
    assert_string_equal(json_str(rec, "status", ""), "passed");
    assert_true(has_reason(p, "clock_disagree"));
    assert_false(json_flag(p, "trusted", true));
    json_decref(rec);
}

static void test_a_call_that_fails_is_blamed(void **state)
{
    json_t *rec = timed(TASK("return x + self.w"),
                        TASK("assert self.calls < 8, 'tired'\n        return x + self.w"), NULL);

    (void)state;
    assert_string_equal(json_str(rec, "category", ""), "runtime_error");
    assert_non_null(strstr(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "message", ""), "tired"));
    json_decref(rec);
    rec = timed(TASK("return x + self.w"), TASK("import os\n        return x + self.w if self.calls < 8 else os._exit(9)"), NULL);
    assert_string_equal(json_str(rec, "category", ""), "runtime_error");
    json_decref(rec);
}

/* What torch.compile says is kept: another judge need not ask again. */
static void test_a_compiled_baseline_that_fails_is_named_and_kept(void **state)
{
    for (int i = 0; i < 2; i++) {
        json_t *rec = timed(TASK("return x - self.w"), TASK("return x - self.w"), "no such mode");
        const json_t *p = json_object_get(rec, "performance");

        assert_string_equal(json_str(rec, "status", ""), "passed");
        assert_true(json_is_null(json_object_get(p, "speedup_compile")));
        assert_non_null(strstr(json_str(p, "compile_error", ""), "Error"));
        json_decref(rec);
        baseline_list_free(&ev); /* as another process would */
    }
    (void)state;
}

/* A reference that cannot be timed leaves a verdict without times, not a failed candidate. */
static void test_no_baseline_is_nobodys_fault(void **state)
{
    json_t *rec = timed(TASK("import os\n        return x + 1 if self.calls < 4 else os._exit(9)"), TASK("return x + 1"), NULL);
    const json_t *p = json_object_get(rec, "performance");

    (void)state;
    assert_string_equal(json_str(rec, "status", ""), "passed");
    assert_true(has_reason(p, "not_measured"));
    assert_false(json_flag(p, "trusted", true));
    json_decref(rec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_candidate_is_timed), cmocka_unit_test(test_a_stale_output_is_wrong),
        cmocka_unit_test(test_a_late_output_is_cheating), cmocka_unit_test(test_forged_events_are_not_trusted),
        cmocka_unit_test(test_a_call_that_fails_is_blamed),
        cmocka_unit_test(test_a_compiled_baseline_that_fails_is_named_and_kept),
        cmocka_unit_test(test_no_baseline_is_nobodys_fault),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
