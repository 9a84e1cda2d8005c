/* test_claim.c - a reference's process says what its task needs, and the job's claim grows to that or the job yields, before
 * anything is made. On the emulator, streamed as large tasks are on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/process/backend.h"
#include "eval/process/job.h"
#include "eval/schedule/schedule.h"

#define GIB ((uint64_t)1 << 30)
#define INPUT ((size_t)64 * 33 * 4)

static struct eval ev;
static struct server *sv;

static int start(void **state)
{
    struct forkserver_spec s = {.no_jail = true};
    struct err e = ERR_INIT;
    char *python = path_python(&e);
    int at = backend_index(backend_find("sim"));

    (void)state;
    free(python);
    if (!python) {
        print_message("skipped: %s\n", e.msg);
        exit(0);
    }
    sv = &ev.servers[at];
    ev.config.no_jail = true;
    pthread_mutex_init(&ev.lock, NULL);
    pthread_mutex_init(&ev.server_lock, NULL);
    sv->backend = backend_find("sim");
    sem_init(&sv->run_slots, 0, 2);
    schedule_init(&sv->schedule, 4 * GIB, 10);
    desk_set_init(&ev.desks[at]);
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
    desk_set_close(&ev.desks[backend_index(sv->backend)]);
    forkserver_stop(sv->fs);
    return 0;
}

static const char source[] =
    "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.randn(33))\n    def forward(self, x):\n        return torch.stack([x + self.w] * 3)\n"
    "def get_inputs():\n    return [torch.randn(64, 33)]\ndef get_init_inputs():\n    return []\n";

static void enter(const char *task, struct claim *c)
{
    char *text = xasprintf("%s strict", task);
    bool fresh;
    struct err e = ERR_INIT;

    assert_int_equal(claim_enter(&sv->schedule, text, 1, false, c, &fresh, &e), 0);
    free(text);
}

static bool covers(const struct need *have, const struct need *want)
{
    return have->own >= want->own && have->shared >= want->shared;
}

static void test_yields_then_grows(void **state)
{
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    const struct need all = need_estimate(33 * 4, INPUT, 3 * INPUT); /* once outputs are known */
    const struct need most = {4 * GIB - GIB / 2, 1};
    struct forkserver *fs = sv->fs;
    struct claim mine, other;
    struct task t;
    struct err e = ERR_INIT;
    struct job j = {.ev = &ev, .server = sv, .task = &t, .opt = &o, .claim = &mine, .yields = true};
    size_t small;

    (void)state;
    o.trials = 1;
    assert_int_equal(task_make("t", source, strlen(source), &t, &e), 0);
    enter(t.sha256, &mine);
    small = mine.need.own;
    enter("other", &other);
    claim_learn(&other, &most);
    claim_leave(&other);
    claim_leave(&mine);
    enter("other", &other);
    enter(t.sha256, &mine);
    assert_int_equal(reference_get(&j, "random", &j.ref, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    assert_null(j.ref);
    assert_int_equal(mine.need.own, small);
    assert_true(claim_learned(&mine));
    sv->fs = NULL; /* it is known: no process is asked */
    assert_int_equal(reference_get(&j, "random", &j.ref, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    sv->fs = fs;
    claim_leave(&other);
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(covers(&mine.need, &all));
    reference_release(&ev, j.ref);
    claim_leave(&mine);

    enter(t.sha256, &mine); /* who comes to a reference that is there claims as much */
    assert_true(covers(&mine.need, &all));
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    reference_release(&ev, j.ref);
    claim_leave(&mine);

    enter("third", &mine); /* who does not yield goes on with what it has */
    enter("other", &other);
    claim_learn(&mine, &most);
    j.yields = false;
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mine.need.own, small);
    reference_release(&ev, j.ref);
    claim_leave(&mine);
    claim_leave(&other);
    task_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_yields_then_grows)};
    char folder[] = "/tmp/test_claim.XXXXXX";
    int failed;

    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    setenv("MUSACODER_VALUES", "streamed", 1); /* however small the task is */
    failed = cmocka_run_group_tests(tests, start, stop);
    dir_remove(folder, NULL);
    return failed;
}
