/* test_stage_perf.c - the whole performance stage without a GPU: a backend row whose device is the host. The
 * candidate's process is played by the baseline role too; what it runs is a program of the test. What the clock
 * says on a busy machine is not tested, what the stage makes of it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/device.h"
#include "eval/hold.h"
#include "eval/job.h"
#include "eval/record.h"

static const struct backend host = {.name = "host", .device = "sim", .candidate = "baseline", .reference = "reference",
                                    .baseline = "baseline", .clock = "host", .place = "cpu", .timed = true, .slots = 2};

static struct eval ev;
static struct desk_common desk_common;
static struct desk desk; /* the host as the judge's device; opened by on_the_desk */
static char dir[] = "/tmp/test_stage_perf.XXXXXX"; /* what processes note */

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
    if (!mkdtemp(dir))
        return -1;
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
    desk_close(&desk);
    device_close(ev.timer);
    forkserver_stop(ev.servers[0].fs);
    dir_remove(dir, NULL);
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

    must(session_open(&ev, j->server, j->opt, program, false, &j->session, &e), &e);
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

static void lay(struct section *s, struct device_buf *mem, size_t at)
{
    struct err e = ERR_INIT;

    must(device_upload(mem, at, s->bytes, s->n, &e), &e);
    *s = (struct section){s->tree, NULL, s->n, mem, at};
}

/* Draws that came in frames, as where judge and children share a device's memory: they are there once, and nobody can
 * make them again. */
static void lay_on_desk(struct reference *r)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < r->n_draws; i++) {
        struct ref_draw *d = &r->draws[i];

        d->size = d->inputs.n + d->eager.n + d->oracle.n; /* whole multiples of 64: values.py */
        d->mem = xcalloc(1, sizeof *d->mem);
        must(desk_alloc(&desk, d->size, DEVICE_PLAIN, d->mem, &e), &e);
        lay(&d->inputs, d->mem, 0);
        lay(&d->eager, d->mem, d->inputs.n);
        lay(&d->oracle, d->mem, d->inputs.n + d->eager.n);
    }
    r->desk = &desk;
    r->made = r->ended = true;
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
    if (desk.dev && !j.ref->desk)
        lay_on_desk(j.ref);
    open_candidate(&j, program);
    must(stage_perf.run(&j, &e), &e);
    record_settle(j.rec);
    exec_free(&j);
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
    double t0 = now_s(), took = 0;
    json_t *rec = timed(TASK("y = x\n        for _ in range(300): y = y * 1.001\n        return (y @ self.w, y)"),
                        TASK("y = x * 1.001 ** 300\n        return (y @ self.w, y)"), NULL), *ms;
    const json_t *p = json_object_get(rec, "performance");
    char *text = json_text(rec);
    const char *part;

    (void)state;
    if (strcmp(json_str(rec, "status", ""), "passed") || !json_is_object(p))
        fail_msg("%s", text);
    assert_true(json_f64(p, "speedup_eager", 0) > 3);
    assert_int_equal(json_array_size(json_object_get(p, "speedup_eager_ci")), 2);
    assert_true(json_i64(json_object_get(p, "calls"), "checked", 0) >= 4);
    assert_false(has_reason(p, "output_wrong") || has_reason(p, "inputs_repeat"));
    assert_true(json_is_null(json_object_get(p, "speedup_compile")));
    assert_true(json_is_null(json_object_get(p, "compile_error")));
    assert_true(json_f64(p, "eager_ms", 0) > json_f64(p, "candidate_ms", 1e9));
    assert_string_equal(json_str(rec, "stage", ""), "performance");
    json_object_foreach(json_object_get(p, "took_ms"), part, ms)
        took += json_number_value(ms);
    assert_in_range(json_object_size(json_object_get(p, "took_ms")), 6, 6);
    assert_true(took > 0 && took < (now_s() - t0) * 1e3);
    assert_true(json_f64(json_object_get(p, "took_ms"), "calls", 0) > 10 * json_f64(p, "eager_ms", 0)); /* all ten, and more */
    free(text);
    json_decref(rec);
}

/* Who builds gives its slot away and waits for another one, and others wait with a slot for what timing holds: nothing
 * is built any more. */
static void test_nothing_is_built_while_calls_are_timed(void **state)
{
    json_t *rec = timed(TASK("return x * self.w"),
                        "import sys, frame, timing\nput, show = timing.Timer.put_inputs, timing.Timer.reveal\n"
                        "def build():\n    sock = sys._getframe(2).f_locals['self'].sock\n"
                        "    frame.send(sock, {'op': 'build', 'request': {'name': 'late'}})\n"
                        "    reply = frame.recv(sock)[0]\n"
                        "    assert not reply['ok'] and 'timed' in reply['error'], reply\n"
                        "def put_inputs(self, req, blob):\n    build()\n    return put(self, req, blob)\n"
                        "def reveal(self, slot):\n    build()\n    return show(self, slot)\n"
                        "timing.Timer.put_inputs, timing.Timer.reveal = put_inputs, reveal\n"
                        TASK("return x * self.w"), NULL);
    const json_t *p = json_object_get(rec, "performance");
    char *text = json_text(rec);

    (void)state;
    if (strcmp(json_str(rec, "status", ""), "passed") || has_reason(p, "not_measured"))
        fail_msg("%s", text);
    assert_true(json_i64(json_object_get(p, "calls"), "checked", 0) >= 4);
    free(text);
    json_decref(rec);
}

/* A candidate whose record of operators, and findings, are what 'trace' says (k: blocks so far), as runner/candidate.py
 * tells it. */
static json_t *traced(const char *trace, const char *findings)
{
    char *program = xasprintf("import frame\nk, send = 0, frame.send\ndef told(sock, head, parts=()):\n    global k\n"
                              "    if head.get('op') == 'timed':\n        k += 1\n"
                              "        head = dict(head, trace=%s, findings=%s)\n"
                              "    return send(sock, head, parts)\nframe.send = told\n" TASK("return x * self.w"),
                              trace, findings);
    json_t *rec = timed(TASK("return x * self.w"), program, NULL);

    free(program);
    return rec;
}

/* Who counts calls could compute by itself while it is judged, and with torch's operators once it is timed. What was
 * counted before, and what legality allows, is no cheating. */
static void test_operators_in_timed_calls(void **state)
{
    json_t *rec = traced("{'aten::mm': 7, 'paused::aten::clone': k, 'aten::fill_.Scalar': 9 * k, 'own::relu': k,"
                         " 'aten::bitwise_xor_.Tensor': k}", /* the loop's own, without its kernels */
                         "[{'kind': 'other'}]");

    (void)state;
    assert_string_equal(json_str(rec, "status", ""), "passed");
    assert_false(has_reason(json_object_get(rec, "performance"), "output_wrong"));
    json_decref(rec);
    rec = traced("{'aten::mm': 7 + (k > 4), 'aten::fill_.Scalar': 9 * k}", "[]");
    assert_string_equal(json_str(rec, "category", ""), "cheating");
    assert_string_equal(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "rule", ""), "forbidden_op");
    assert_false(json_flag(json_object_get(rec, "performance"), "trusted", true));
    json_decref(rec);
    rec = traced("{}", "[{'kind': 'library_call', 'message': 'm'}] if k == 3 else []");
    assert_string_equal(json_str(rec, "category", ""), "cheating");
    assert_string_equal(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "rule", ""), "library_call");
    json_decref(rec);
}

/* Right while it is judged, stale once it is timed: the seeds of timed calls are nobody's to know. */
static void a_stale_output_is_wrong(void)
{
    json_t *rec = timed(TASK("return x * self.w"),
                        TASK("self.y = x * self.w if self.calls < 3 else self.y\n        return self.y.clone()"), NULL);

    assert_string_equal(json_str(rec, "status", ""), "failed");
    assert_string_equal(json_str(rec, "category", ""), "correctness_error");
    assert_string_equal(json_str(rec, "stage", ""), "performance");
    assert_true(has_reason(json_object_get(rec, "performance"), "output_wrong"));
    assert_false(json_flag(json_object_get(rec, "performance"), "trusted", true));
    assert_true(json_is_object(json_object_get(json_object_get(rec, "correctness"), "worst")));
    json_decref(rec);
}

static void a_late_output_is_cheating(void)
{
    json_t *rec = timed(TASK("return x * self.w"),
                        "import timing\nshow = timing.Timer.reveal\n"
                        "def late(self, slot):\n    self.area[slot].add_(1)\n    return show(self, slot)\n"
                        "timing.Timer.reveal = late\n" TASK("return x * self.w"), NULL);

    assert_string_equal(json_str(rec, "category", ""), "cheating");
    assert_string_equal(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "rule", ""), "late_output");
    json_decref(rec);
}

static void test_a_stale_output_is_wrong(void **state)
{
    (void)state;
    a_stale_output_is_wrong();
}

static void test_a_late_output_is_cheating(void **state)
{
    (void)state;
    a_late_output_is_cheating();
}

/* A candidate that raises when it is to let its kept outputs go after some were looked at. */
static json_t *clings(void)
{
    return timed(TASK("return x * self.w"),
                 "import timing\narm, show, seen = timing.Timer.arm, timing.Timer.reveal, []\n"
                 "def reveal(self, slot):\n    seen.append(slot)\n    return show(self, slot)\n"
                 "def armed(self, slots, kept):\n    assert slots or not seen, 'clings'\n    return arm(self, slots, kept)\n"
                 "timing.Timer.reveal, timing.Timer.arm = reveal, armed\n" TASK("return x * self.w"), NULL);
}

/* What would take much memory is looked at before others come, and then let go. */
static void test_large_outputs_are_looked_at_at_once(void **state)
{
    size_t much = perf_keeps_much;
    json_t *rec;

    (void)state;
    rec = clings();
    assert_string_equal(json_str(rec, "status", ""), "passed"); /* nobody asked it to */
    json_decref(rec);
    perf_keeps_much = 0;
    a_stale_output_is_wrong();
    a_late_output_is_cheating();
    rec = clings();
    assert_string_equal(json_str(rec, "category", ""), "runtime_error");
    json_decref(rec);
    rec = timed(TASK("return x * self.w"), TASK("return x * self.w"), NULL);
    assert_string_equal(json_str(rec, "status", ""), "passed");
    assert_true(json_i64(json_object_get(json_object_get(rec, "performance"), "calls"), "checked", 0) >= 4);
    json_decref(rec);
    perf_keeps_much = much;
}

/* What runner/candidate.py does with shared memory, for a candidate that the baseline role plays. */
#define AREAS \
    "import area, frame, timing\nroom, receive, show = {}, frame.recv_fds, timing.Timer.reveal\n" \
    "def recv_fds(sock):\n    req, blob, fds = receive(sock)\n" \
    "    if req['op'] == 'areas':\n" \
    "        room.update((k, area.open_area(fd, req[k], None)) for k, fd in zip(('inputs', 'outputs'), fds))\n" \
    "        frame.send(sock, {'op': 'ok'})\n        return recv_fds(sock)\n" \
    "    return req, room['inputs'].blob if req['op'] == 'put' and req.pop('area') else blob, fds\n" \
    "def reveal(self, slot):\n    spoil(self, slot)\n    return show(self, slot, room['outputs'])\n" \
    "spoil = lambda self, slot: None\nframe.recv_fds, timing.Timer.reveal = recv_fds, reveal\n"

#define TWO "return {'a': (x * self.w)[:, :31], 'n': 7, 'b': x > 0}" /* leaves of no whole words */

/* Outputs that lie on the device are summed up there; who is accused, of what, is the same. Last: there is a desk from
 * now on. */
static void test_on_the_desk(void **state)
{
    const struct backend row = {.name = "test", .values = "host"};
    json_t *rec;
    char *text;

    (void)state;
    desk_init(&desk, &desk_common);
    assert_int_equal(desk_open(&desk, &row, NULL), 1);
    rec = timed(TASK(TWO), AREAS TASK(TWO), NULL);
    text = json_text(rec);
    if (strcmp(json_str(rec, "status", ""), "passed"))
        fail_msg("%s", text);
    assert_true(json_i64(json_object_get(json_object_get(rec, "performance"), "calls"), "checked", 0) >= 4);
    free(text);
    json_decref(rec);
    rec = timed(TASK(TWO), AREAS "def spoil(self, slot):\n" /* one bit of the first leaf's last byte */
                "    self.area[slot].view(timing.torch.uint8)[64 * 31 * 4 - 1] ^= 1\n" TASK(TWO), NULL);
    assert_string_equal(json_str(rec, "category", ""), "cheating");
    assert_string_equal(json_str(json_array_get(json_object_get(rec, "reasons"), 0), "rule", ""), "late_output");
    json_decref(rec);
    rec = timed(TASK(TWO), AREAS TASK("self.y = x * self.w if self.calls < 3 else self.y\n"
                                      "        return {'a': self.y[:, :31], 'n': 7, 'b': x > 0}"), NULL);
    assert_string_equal(json_str(rec, "category", ""), "correctness_error");
    json_decref(rec);
    rec = timed(TASK(TWO), AREAS TASK("n = 7 if self.calls < 9 else 8\n"
                                      "        return {'a': (x * self.w)[:, :31], 'n': n, 'b': x > 0}"), NULL);
    assert_string_equal(json_str(rec, "category", ""), "correctness_error");
    json_decref(rec);
    rec = timed(TASK(TWO), AREAS "real = show\n"
                "def show(self, slot, place):\n    head, parts = real(self, slot, place)\n"
                "    leaf = dict(head['output']['v'][0][1], shape=[1], strides=[1], nbytes=4)\n"
                "    head['output']['v'] = [[str(i), dict(leaf, offset=4 * i)] for i in range(1000)]\n"
                "    return head, parts\n" TASK(TWO), NULL);
    assert_string_equal(json_str(rec, "category", ""), "correctness_error"); /* not summed up, leaf by leaf */
    json_decref(rec);
    rec = timed(TASK(TWO), AREAS "def spoil(self, slot):\n    self.kept[slot].tree['n'] = 8\n" TASK(TWO), NULL);
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

/* One that is killed while it is timed, but not the next time. */
static void test_a_baseline_that_is_killed_once(void **state)
{
    char *forward = xasprintf("import os\n        if self.calls == 4 and not os.path.exists('%s/killed'):\n"
                              "            os.mkdir('%s/killed')\n            os.kill(os.getpid(), 9)\n"
                              "        return x + 1", dir, dir);
    char *reference = xasprintf(TASK("%s"), forward);
    json_t *rec = timed(reference, TASK("return x + 1"), NULL);

    (void)state;
    assert_string_equal(json_str(rec, "status", ""), "passed");
    assert_false(has_reason(json_object_get(rec, "performance"), "not_measured"));
    assert_true(json_i64(json_object_get(json_object_get(rec, "performance"), "calls"), "checked", 0) >= 4);
    json_decref(rec);
    free(reference);
    free(forward);
}

/* ---- torch.compile, without the device ---- */

/* A task whose torch.compile does what 'asking' says (runner/compiling.py), with notes in files. */
static char *compiling(const char *asking)
{
    static int n;

    return xasprintf("import contextlib, os, sys, threading, time, torch\nimport compiling, frame\nD = '%s/%d.'\n"
                     "def note(s):\n    with open(D + s, 'a') as f: f.write('.')\n"
                     "@contextlib.contextmanager\ndef asking(turn, model, mode):\n    note('began')\n    %s\n"
                     "    yield\ncompiling.asking = asking\ntorch.compile = lambda m, **k: m\n"
                     TASK("return x * self.w"), dir, ++n, asking);
}

static size_t notes(const char *program, const char *what)
{
    const char *at = strstr(program, "D = '") + 5;
    char *path = xasprintf("%.*s%s", (int)strcspn(at, "'"), at, what);
    struct buf b;
    size_t n;

    buf_init(&b, 1 << 10);
    n = file_exists(path) && file_read(path, &b, NULL) == 0 ? b.n : 0;
    buf_free(&b);
    free(path);
    return n;
}

static void await_note(const char *program, const char *what)
{
    double until = now_s() + 120;

    while (!notes(program, what)) {
        if (now_s() > until)
            fail_msg("no '%s'", what);
        usleep(2000);
    }
}

struct judged {
    pthread_t thread;
    const char *program;
    json_t *rec;
};

static void *judge(void *ctx)
{
    struct judged *x = ctx;

    x->rec = timed(x->program, TASK("return x * self.w"), "default");
    return NULL;
}

static void expect_compiled(json_t *rec)
{
    const json_t *p = json_object_get(rec, "performance");
    char *text = json_text(rec);

    if (!json_is_number(json_object_get(p, "speedup_compile")) || !json_is_null(json_object_get(p, "compile_error")))
        fail_msg("%s", text);
    free(text);
    json_decref(rec);
}

static void expect_not_compiled(json_t *rec, const char *why)
{
    const json_t *p = json_object_get(rec, "performance");
    char *text = json_text(rec);

    if (!json_is_number(json_object_get(p, "speedup_eager")) || !strstr(json_str(p, "compile_error", ""), why))
        fail_msg("not '%s': %s", why, text);
    free(text);
    json_decref(rec);
}

/* Two jobs of a task: while the host compiles, the device is anybody's; nobody of them has it; and it is lent when
 * nobody else has it. How long others have it does not count as time of compiling. */
static void test_the_device_is_others_while_a_task_compiles(void **state)
{
    char *program = compiling("while not os.path.exists(D + 'go on'): time.sleep(0.01)\n    note('asks')\n"
                              "    turn.take()\n    note('has')\n    turn.rest()\n    turn.take()");
    struct judged jobs[2] = {{.program = program}, {.program = program}};
    const char *at = strstr(program, "D = '") + 5;
    char *go_on = xasprintf("%.*sgo on", (int)strcspn(at, "'"), at);
    struct hold h = {0};
    struct err e = ERR_INIT;
    double start;

    (void)state;
    baseline_compile_s = 4;
    pthread_create(&jobs[0].thread, NULL, judge, &jobs[0]);
    await_note(program, "began");
    pthread_create(&jobs[1].thread, NULL, judge, &jobs[1]);
    usleep(700000); /* the second one comes to wait for the first, or is on its way */
    start = now_s();
    must(hold_take("test-host", true, &h, &e), &e);
    assert_true(now_s() - start < 3);
    must(file_write(go_on, "", 0, &e), &e);
    await_note(program, "asks");
    while (now_s() - start < 5)
        usleep(10000);
    assert_int_equal(notes(program, "has"), 0);
    hold_drop(&h);
    for (int i = 0; i < 2; i++) {
        pthread_join(jobs[i].thread, NULL);
        expect_compiled(jobs[i].rec);
    }
    assert_int_equal(notes(program, "began"), 1);
    baseline_compile_s = 180;
    free(go_on);
    free(program);
}

static void compile_fails(const char *asking, double limit_s, const char *why)
{
    char *program = compiling(asking);

    baseline_compile_s = limit_s;
    expect_not_compiled(timed(program, TASK("return x * self.w"), "default"), why);
    assert_int_equal(notes(program, "began"), 1);
    baseline_compile_s = 180;
    free(program);
}

/* The candidate is timed all the same, by another process. */
static void test_a_compiler_that_dies_or_hangs(void **state)
{
    (void)state;
    compile_fails("turn.take()\n    os._exit(3)", 180, "Crash");
    compile_fails("os._exit(3)", 180, "Crash");
    compile_fails("frame.send(turn.sock, {'op': 'device'})\n    os._exit(3)", 180, "Crash");
    compile_fails("turn.take()\n    time.sleep(100)", 0.5, "Timeout");
    compile_fails("turn.take()\n    turn.sock.sendall(b'x' * 100)", 180, "Crash");
    compile_fails("turn.take()\n    raise ValueError('no such thing')", 180, "ValueError: no such thing");
}

/* What fails on our side says nothing about the task, and leaves a baseline that the next one can use. */
static void test_a_device_that_is_not_to_be_had(void **state)
{
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    struct baseline_place place = {.role = "baseline", .device = "cpu", .machine = "m"};
    struct err e = ERR_INIT;
    struct task t;
    struct job j = {.ev = &ev, .server = &ev.servers[0], .task = &t, .opt = &o};
    struct hold h = {0};
    struct baseline *b;
    char *program = compiling("turn.take()");

    (void)state;
    o.trials = 1;
    must(task_make("t", program, strlen(program), &t, &e), &e);
    must(reference_get(&j, "random", &j.ref, &e), &e);
    must(reference_all(&j, &e), &e);
    b = baseline_get(&j, &place);
    for (int i = 0; i < 2; i++) {
        baseline_lock(b);
        must(baseline_start(b, &j, &place, &e), &e);
        baseline_library(b);
        assert_true(baseline_begin_compile(b, "default"));
        assert_false(baseline_begin_compile(b, "default"));
        baseline_unlock(b);
        assert_false(baseline_ready(b, false));
        baseline_list_stop(&ev); /* as server_revive: who talks to it keeps it */
        assert_non_null(b->child);
        if (i == 0)
            must(hold_take("another device", false, &h, &e), &e); /* so that a share of this one is refused */
        assert_int_equal(baseline_compile(b, "default", "test-host", &e), i == 0 ? -1 : 0);
        assert_int_equal(b->child != NULL, i);
        assert_false(b->compiling || b->compile_known);
        assert_int_equal(b->compile_made, i);
        assert_int_equal(baseline_ready(b, true), i);
        must(baseline_wait(b, &e), &e);
        hold_drop(&h);
        e = (struct err)ERR_INIT;
    }
    baseline_release(&ev, b);
    reference_release(&ev, j.ref);
    task_free(&t);
    free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_candidate_is_timed), cmocka_unit_test(test_a_stale_output_is_wrong),
        cmocka_unit_test(test_nothing_is_built_while_calls_are_timed), cmocka_unit_test(test_operators_in_timed_calls),
        cmocka_unit_test(test_a_late_output_is_cheating), cmocka_unit_test(test_large_outputs_are_looked_at_at_once),
        cmocka_unit_test(test_forged_events_are_not_trusted),
        cmocka_unit_test(test_a_call_that_fails_is_blamed),
        cmocka_unit_test(test_a_compiled_baseline_that_fails_is_named_and_kept),
        cmocka_unit_test(test_no_baseline_is_nobodys_fault),
        cmocka_unit_test(test_a_baseline_that_is_killed_once),
        cmocka_unit_test(test_the_device_is_others_while_a_task_compiles),
        cmocka_unit_test(test_a_compiler_that_dies_or_hangs),
        cmocka_unit_test(test_a_device_that_is_not_to_be_had),
        cmocka_unit_test(test_on_the_desk),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
