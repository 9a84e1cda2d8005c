/* test_streamed.c - values that are made, compared and dropped (streamed.h), on tasks of every kind that the way
 * through tiles distinguishes: rows that stand alone or not, what is written in place, masks, labels, layouts,
 * several outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "seam.h"

static struct seam seam;

struct kind {
    const char *name, *init, *forward, *inputs, *truth;

};

static const struct kind kinds[] = {
    {"rows", "", "torch.softmax(x, 1)", "torch.rand(96, 300)", "rows"},
    {"whole", "", "x / torch.norm(x)", "torch.rand(96, 300)", "double"},
    {"batchnorm", "self.n = nn.BatchNorm1d(300)", "self.n(x)", "torch.rand(96, 300)", "double"},
    {"linear", "self.n = nn.Linear(300, 70)", "self.n(x)", "torch.randn(96, 300)", "rows"},
    {"product", "", "x @ y", "torch.rand(96, 96), torch.rand(96, 96)", "rows"},
    {"first_axis", "", "x.sum(0)", "torch.rand(96, 300)", "double"},
    {"in_place", "", "x.relu_()", "torch.randn(96, 300)", "rows"},
    {"argmax", "", "x.argmax(1)", "torch.rand(400, 300)", "own"},
    {"loss", "", "nn.functional.cross_entropy(x, y)", "torch.rand(900, 30), torch.randint(0, 30, (900,))", "double"},
    {"masked", "", "(x * y).cumsum(1)", "torch.rand(96, 300), torch.randint(0, 2, (96, 300)).bool()", "rows"},
    {"triangle", "", "torch.triu(x @ y)", "torch.triu(torch.rand(90, 90)), torch.triu(torch.rand(90, 90))", "rows"},
    {"where_a_row_is", "", "torch.triu(x @ y)", "torch.rand(90, 90), torch.rand(90, 90)", "double"},
    {"rows_before", "", "x.cumsum(0)", "torch.rand(96, 300)", "double"},
    {"transposed", "", "x.exp().T", "torch.rand(96, 300)", "double"},
    {"several", "", "(x.tanh(), x.sum(1), 3)", "torch.rand(96, 300)", "rows"},
    {"half", "", "(x * 3 + 1)", "torch.rand(96, 300).half()", "rows"},
    {"double", "", "x.sigmoid()", "torch.rand(96, 300, dtype=torch.float64)", "rows"},
    {"dropout", "self.n = nn.Dropout(0.5)", "self.n(x)", "torch.rand(96, 300)", "rows"},
    {"makes_zeros", "self.n = nn.Linear(300, 70)", "self.n(x) @ torch.ones(70, 70)", "torch.rand(96, 300)", "rows"},
    /* What a function of its own has captured stays as it is in a copy of the model: the task itself is drawn, no
     * other. */
    {"not_in_double", "n = self.n = nn.Linear(300, 70); self.f = lambda v: n(v)", "self.f(x)", "torch.rand(96, 300)",
     "own"},
};

static int64_t strict_draws(const char *name)
{
    /* Two of each distribution, and two of the task itself. */
    return !strcmp(name, "transposed") ? 10 : !strcmp(name, "not_in_double") ? 2 : 12;
}

static void run(const struct kind *k, const char *protocol, int64_t small)
{
    char *code = xasprintf("import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def __init__(self):\n"
                           "        super().__init__()\n        %s\n    def forward(self, x, y=None):\n"
                           "        return %s\n"
                           "def get_inputs():\n    return [%s]\ndef get_init_inputs():\n    return []\n",
                           *k->init ? k->init : "pass", k->forward, k->inputs);
    struct err e = ERR_INIT;
    struct task t;
    json_t *row;
    char *text;

    assert_int_equal(task_make(k->name, code, strlen(code), &t, &e), 0);
    seam.o.protocol = protocol;
    seam.small = small;
    if (seam_task(&seam, &t, &row) != 1)
        fail_msg("%s, %s: %s", k->name, protocol, text = json_text(row));
    /* kernelbench: the two published trials and one draw whose seed is a secret. */
    if (json_i64(row, "draws", 0) != (strcmp(protocol, "strict") ? 3 : strict_draws(k->name)))
        fail_msg("%s, %s: %s", k->name, protocol, text = json_text(row));
    if (!strcmp(protocol, "strict") && small)
        if (strcmp(json_str(row, "truth", ""), k->truth))
            fail_msg("%s: truth is %s, not %s", k->name, json_str(row, "truth", ""), k->truth);
    json_decref(row);
    task_free(&t);
    free(code);
}

static void test_large(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        run(&kinds[i], "strict", 4096);
}

static void test_small(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        run(&kinds[i], "strict", 0);
}

static void test_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i += 4)
        run(&kinds[i], "kernelbench", 4096);
}

#define TASK_WITH(INIT)                                                                                                \
    "import torch, threading, time\nclass Model(torch.nn.Module):\n    def __init__(self):\n"                          \
    "        super().__init__()\n        " INIT "\n    def forward(self, x):\n        return x * 2\n"                  \
    "def get_inputs():\n    return [torch.rand(96, 300)]\ndef get_init_inputs():\n    return []\n"

static struct reference_want want_of(struct task *t, const char *code)
{
    struct err e = ERR_INIT;

    assert_int_equal(task_make("once", code, strlen(code), t, &e), 0);
    seam.o.protocol = "strict";
    return (struct reference_want){.sv = seam.sv, .t = t, .o = &seam.o, .params = "random", .title = "once"};
}

/* The process id that served a task, which is over. */
static pid_t served_by(const char *code)
{
    struct err e = ERR_INIT;
    struct ref_draw d;
    struct streamed *s;
    struct task t;
    struct reference_want w = want_of(&t, code);
    json_t *head;
    pid_t pid;

    assert_int_equal(streamed_open(&w, seam.device_context, &s, &e), 0);
    if (streamed_next(s, &d, &head, &e) == 1)
        json_decref(head);
    pid = s->child->pid;
    streamed_close(s);
    task_free(&t);
    return pid;
}

static void test_a_process_serves_the_next_task(void **state)
{
    pid_t first;

    (void)state;
    spares_fit(seam.sv->kept, 0);
    first = served_by(TASK_WITH("self.n = torch.nn.Linear(3, 3)"));
    assert_int_equal(spares_count(seam.sv->kept), 1);
    assert_int_equal(served_by(TASK_WITH("pass")), first);
    assert_int_equal(spares_count(seam.sv->kept), 1);
    spares_fit(seam.sv->kept, 0);
    assert_int_not_equal(served_by(TASK_WITH("pass")), first);
}

/* What a second task could meet ends the process. */
static void test_what_a_task_leaves(void **state)
{
    static const char *const tasks[] = {
        TASK_WITH("torch.set_default_dtype(torch.float64)"),
        TASK_WITH("torch.nn.Linear.forward = lambda self, x: x"),
        TASK_WITH("torch.relu = torch.tanh"),
        TASK_WITH("torch.nn.functional.softmax.__defaults__ = (None, 4, None)"),
        TASK_WITH("torch.Tensor.sum = lambda self, *a: self"),
        TASK_WITH("torch.backends.cudnn.benchmark = True"),
        TASK_WITH("torch.set_float32_matmul_precision('medium')"),
        TASK_WITH("torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o)"),
        TASK_WITH("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
        TASK_WITH("torch.set_grad_enabled(False)"),
        TASK_WITH("import reference; reference.derive = lambda *a: 4"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        spares_fit(seam.sv->kept, 0);
        served_by(tasks[i]);
        if (spares_count(seam.sv->kept))
            fail_msg("task %zu leaves something, and its process is used again", i);
    }
}

/* A failure that another task's traces could have caused is no failure: it is asked again. */
static void test_a_used_process_fails_nobody(void **state)
{
    static const char met[] = TASK_WITH("assert torch.version.debug != 'met'");
    struct err e = ERR_INIT;
    struct task t;
    struct reference_held h = {.want = want_of(&t, met)};

    (void)state;
    spares_fit(seam.sv->kept, 0);
    served_by(TASK_WITH("torch.version.debug = 'met'"));
    assert_int_equal(spares_count(seam.sv->kept), 1);
    setenv("MUSACODER_VALUES", "streamed", 1);
    if (reference_get(&h, &e) < 0)
        fail_msg("%s", e.msg);
    reference_release(&h);
    unsetenv("MUSACODER_VALUES");
    task_free(&t);
}

static atomic_bool stopped;

static void *stop_soon(void *ctx)
{
    (void)ctx;
    usleep(300000);
    stopped = true;
    return NULL;
}

/* Who is stopped while an answer is on its way leaves nothing that the next one would take for its own. */
static void test_a_stop_within_an_answer(void **state)
{
    static const char code[] = "import time\nimport torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                               "        time.sleep(1)\n        return x * 2\ndef get_inputs():\n"
                               "    return [torch.rand(96, 300)]\ndef get_init_inputs():\n    return []\n";
    struct reference_want w = {.sv = seam.sv, .o = &seam.o, .params = "random", .small = 1 << 20, .title = "slow"};
    struct err e = ERR_INIT;
    struct streamed *s;
    struct ref_draw d;
    struct task t;
    json_t *head;
    pthread_t who;

    (void)state;
    seam.o.protocol = "kernelbench";
    assert_int_equal(task_make("slow", code, sizeof code - 1, &t, &e), 0);
    w.t = &t;
    assert_int_equal(streamed_open(&w, seam.device_context, &s, &e), 0);
    assert_int_equal(streamed_next(s, &d, &head, &e), 1);
    stop_also(&stopped);
    pthread_create(&who, NULL, stop_soon, NULL);
    assert_int_equal(streamed_expect(s, false, &e), -1);
    pthread_join(who, NULL);
    stop_also(NULL);
    e = (struct err)ERR_INIT;
    assert_int_equal(streamed_bind(s, &d, false, &e), -1);
    assert_true(s->broken);
    streamed_close(s);
    json_decref(head);
    task_free(&t);
}

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    seam.o = EVAL_OPTIONS_DEFAULT;
    seam.o.trials = 2;
    if (seam_open(&seam, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    seam_close(&seam);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_a_stop_within_an_answer),
        cmocka_unit_test(test_a_process_serves_the_next_task),
        cmocka_unit_test(test_what_a_task_leaves),
        cmocka_unit_test(test_a_used_process_fails_nobody),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
