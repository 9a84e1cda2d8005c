/* test_claim.c - a reference's process says what its task needs, and the job's claim grows to that or the job yields, before
 * anything is made. On the emulator, streamed as large tasks are on a GPU, with a ledger of its own. */
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
#include "eval/process/backend.h"
#include "eval/process/job.h"
#include "eval/schedule/room.h"

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

static void enter(uint64_t own, uint64_t group, struct room *r)
{
    const struct room_budget b = {4 * GIB, 0};
    const struct room_need n = {.own = own, .shared = 1};
    struct err e = ERR_INIT;

    assert_int_equal(room_take("gpu", &b, &n, group, NULL, NULL, r, &e), 0);
}

static void test_yields_then_grows(void **state)
{
    struct eval_options o = EVAL_OPTIONS_DEFAULT;
    const struct room_need want = room_estimate(33 * 4, INPUT, INPUT);
    const struct room_need all = room_estimate(33 * 4, INPUT, 3 * INPUT); /* once outputs are known */
    struct forkserver *fs = sv->fs;
    struct room_need known = {0};
    struct room mine = {0}, other = {0};
    struct task t;
    struct err e = ERR_INIT;
    struct job j = {.ev = &ev, .server = sv, .task = &t, .opt = &o, .claim = &mine, .yields = true};

    (void)state;
    o.trials = 1;
    assert_int_equal(task_make("t", source, strlen(source), &t, &e), 0);
    enter(2 * GIB, 1, &other);
    enter(GIB / 2, 2, &mine);
    assert_int_equal(reference_get(&j, "random", &j.ref, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    assert_null(j.ref);
    assert_int_equal(mine.need.own, GIB / 2);
    assert_true(room_recall(t.sha256, o.protocol, &known));
    assert_true(known.own == want.own && known.shared == want.shared);
    sv->fs = NULL; /* it is known: no process is asked */
    assert_int_equal(reference_get(&j, "random", &j.ref, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    sv->fs = fs;
    room_drop(&other);
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(room_covers(&mine.need, &all));
    reference_release(&ev, j.ref);
    room_drop(&mine);

    enter(GIB / 2, 2, &mine); /* who comes to a reference that is there claims as much */
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(room_covers(&mine.need, &all));
    reference_release(&ev, j.ref);
    room_drop(&mine);

    enter(2 * GIB, 1, &other); /* who does not yield goes on with what it has */
    enter(GIB / 2, 2, &mine);
    j.yields = false;
    if (reference_get(&j, "random", &j.ref, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mine.need.own, GIB / 2);
    reference_release(&ev, j.ref);
    room_drop(&mine);
    room_drop(&other);
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
