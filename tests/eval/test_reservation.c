/* test_reservation.c - a reference's process says what its task needs, and the job's claim grows to that or the job
 * yields, before anything is made. On the emulator, streamed as large tasks are on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/judge_backend.h"
#include "eval/reference/reference.h"
#include "eval/reference/streamed.h"
#include "eval/schedule/schedule.h"

#define GIB ((uint64_t)1 << 30)
#define INPUT ((size_t)64 * 33 * 4)

static struct judge_servers servers;
static struct judge_server *sv;

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
    servers_init(&servers, &(struct eval_config){0}, 1); /* without a jail nothing would be kept */
    sv = &servers.each[at];
    sv->all = &servers;
    sv->kept = &servers.kept[at];
    sv->backend = backend_find("sim");
    sem_init(&sv->run_slots, 0, 2);
    schedule_init(&sv->schedule, 4 * GIB, 10);
    if (forkserver_start(&s, &sv->fs, &e) < 0) {
        print_message("%s\n", e.msg);
        return -1;
    }
    sv->info = json_deep_copy(forkserver_info(sv->fs));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    reference_list_free(sv->kept);
    device_context_set_close(&sv->kept->contexts);
    forkserver_stop(sv->fs);
    return 0;
}

static const char source[] =
    "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.w = nn.Parameter(torch.randn(33))\n    def forward(self, x):\n"
    "        return torch.stack([x + self.w] * 3)\n"
    "def get_inputs():\n    return [torch.randn(64, 33)]\ndef get_init_inputs():\n    return []\n";

static void enter(const char *task, struct reservation *c)
{
    char *text = xasprintf("%s strict", task);
    bool fresh;
    struct err e = ERR_INIT;

    assert_int_equal(reservation_enter(&sv->schedule, text, 1, false, c, &fresh, &e), 0);
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
    struct reservation mine, other;
    struct task t;
    struct err e = ERR_INIT;
    struct reference_held j = {.want = {.sv = sv, .t = &t, .o = &o, .params = "random", .reservation = &mine,
                                        .yields = true}};
    size_t small;

    (void)state;
    o.trials = 1;
    assert_int_equal(task_make("t", source, strlen(source), &t, &e), 0);
    enter(t.sha256, &mine);
    small = mine.need.own;
    enter("other", &other);
    reservation_learn(&other, &most);
    reservation_leave(&other);
    reservation_leave(&mine);
    enter("other", &other);
    enter(t.sha256, &mine);
    assert_int_equal(reference_get(&j, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    assert_null(j.ref);
    assert_int_equal(mine.need.own, small);
    assert_true(reservation_learned(&mine));
    sv->fs = NULL; /* it is known: no process is asked */
    assert_int_equal(reference_get(&j, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    sv->fs = fs;
    reservation_leave(&other);
    if (reference_get(&j, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(covers(&mine.need, &all));
    reference_release(&j);
    reservation_leave(&mine);

    enter(t.sha256, &mine); /* who comes to a reference that is there claims as much */
    assert_true(covers(&mine.need, &all));
    if (reference_get(&j, &e) < 0)
        fail_msg("%s", e.msg);
    reference_release(&j);
    reservation_leave(&mine);

    enter("third", &mine); /* who does not yield goes on with what it has */
    enter("other", &other);
    reservation_learn(&mine, &most);
    j.want.yields = false;
    if (reference_get(&j, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mine.need.own, small);
    reference_release(&j);
    reservation_leave(&mine);
    reservation_leave(&other);
    task_free(&t);
}

/* ---- several at once ---- */

/* Its inputs are there when those of 'other' begin to be made, too. */
static const char waiting[] =
    "import os, time, torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def forward(self, x):\n"
    "        return x * 3\n"
    "def get_inputs():\n    open('%s/%s', 'w').close()\n    for _ in range(300):\n"
    "        if os.path.exists('%s/%s'):\n            return [torch.randn(64, 33)]\n        time.sleep(0.1)\n"
    "    raise RuntimeError('alone')\n"
    "def get_init_inputs():\n    return []\n# %d\n";

struct maker {
    struct task t;
    struct reference_held j;
    struct reservation reservation;
    struct err e;
    int rc;
};

static struct eval_options options; /* the defaults, from main on */

static void maker_init(struct maker *m, const char *name, const char *other, int number)
{
    const char *folder = getenv("MUSACODER_CACHE_DIR");
    char *text = xasprintf(waiting, folder, name, folder, other, number);

    *m = (struct maker){.e = ERR_INIT};
    options.trials = 1;
    assert_int_equal(task_make(name, text, strlen(text), &m->t, &m->e), 0);
    m->j = (struct reference_held){.want = {.sv = sv, .t = &m->t, .o = &options, .params = "random",
                                            .reservation = &m->reservation}};
    free(text);
}

static struct device_context *context_of_maker(const struct maker *m)
{
    return device_context_of(&sv->kept->contexts, m->t.sha256);
}

static void *make(void *ctx)
{
    struct maker *m = ctx;

    m->rc = reference_get(&m->j, &m->e);
    return NULL;
}

static void leave(struct maker *m)
{
    reference_release(&m->j);
    reservation_leave(&m->reservation);
    task_free(&m->t);
}

static void test_made_beside_each_other(void **state)
{
    struct maker m[2];
    pthread_t thread[2];

    (void)state;
    maker_init(&m[0], "a", "b", 0);
    maker_init(&m[1], "b", "a", 0);
    for (int i = 1; context_of_maker(&m[0]) == context_of_maker(&m[1]); i++) {
        task_free(&m[1].t);
        maker_init(&m[1], "b", "a", i);
    }
    for (int i = 0; i < 2; i++)
        enter(m[i].t.sha256, &m[i].reservation);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make, &m[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        if (m[i].rc < 0)
            fail_msg("%s", m[i].e.msg);
    for (int i = 0; i < 2; i++)
        leave(&m[i]);
}

static bool is_kept(const char *sha)
{
    for (int i = 0; i < REFERENCE_LIST && sv->kept->refs.items[i]; i++)
        if (!strcmp(sv->kept->refs.items[i]->streamed->task.sha256, sha))
            return true;
    return false;
}

/* Two candidates of a task: the second has the facts at once, the areas after the first. A broken one is made anew. */
static void test_areas_in_turn(void **state)
{
    struct maker m, other;
    struct reference *before;

    (void)state;
    maker_init(&m, "c", "c", 0);
    maker_init(&other, "c", "c", 0);
    enter(m.t.sha256, &m.reservation);
    enter(other.t.sha256, &other.reservation);
    make(&m);
    if (m.rc < 0 || reference_own(&m.j, &m.e) < 0)
        fail_msg("%s", m.e.msg);
    make(&other);
    assert_int_equal(other.rc, 0);
    assert_ptr_equal(other.j.ref, m.j.ref);
    assert_false(other.j.owns);
    assert_int_equal(pthread_mutex_trylock(&m.j.ref->streamed->lock), EBUSY);
    before = m.j.ref;
    before->streamed->broken = true;
    reference_release(&m.j);
    assert_int_equal(reference_own(&other.j, &other.e), 0);
    assert_true(other.j.owns && !other.j.ref->streamed->broken);
    leave(&m);
    leave(&other);
}

/* What nobody uses stays while claims leave it room, and makes way for what they need. */
static void test_kept_while_there_is_room(void **state)
{
    struct maker m;
    struct reservation other;
    char sha[65];

    (void)state;
    maker_init(&m, "d", "d", 0);
    enter(m.t.sha256, &m.reservation);
    make(&m);
    assert_int_equal(m.rc, 0);
    memcpy(sha, m.t.sha256, sizeof sha);
    leave(&m);
    assert_true(reference_list_fit(sv->kept, SIZE_MAX) && is_kept(sha));
    enter("small", &other);
    assert_true(schedule_room(&sv->schedule) < 4 * GIB);
    reference_list_fit(sv->kept, schedule_room(&sv->schedule));
    assert_true(is_kept(sha));
    reservation_leave(&other);
    assert_false(reference_list_fit(sv->kept, SCHEDULE_CONTEXT));
    assert_false(is_kept(sha));
}

int main(void)
{
    options = EVAL_OPTIONS_DEFAULT;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yields_then_grows), cmocka_unit_test(test_made_beside_each_other),
        cmocka_unit_test(test_areas_in_turn), cmocka_unit_test(test_kept_while_there_is_room)};
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
