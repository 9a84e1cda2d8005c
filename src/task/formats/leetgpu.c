/* leetgpu.c - LeetGPU's challenge.py: a class Challenge with a reference that writes into its arguments, the signature
 * of solve, and functions that generate tests. Model takes solve's arguments in order and gives what solve writes. Rows
 * are three of the functional tests and the performance test. Among tests by hand are many that no judge can tell
 * a wrong program by: those are taken whose inputs vary and whose answer is new, first those that are drawn, nearest to
 * a thousand numbers. What is drawn in no test cannot be a row of its own: where there are fewer, rows repeat. */
#include <stdio.h>
#include <string.h>

#include "task/formats/format.h"

#define LEETGPU_TESTS 3 /* functional ones; the performance test is the row behind them */

/* What a challenge builds on: the words of core.challenge_base, as tensors at once. */
static const char leetgpu_head[] =
    "import torch\n\n\nclass ChallengeBase:\n    device = \"cuda\"\n\n\n"
    "def made(shape, dtype):\n    return torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=\"cuda\")\n\n\n"
    "def RandTensor(shape, low=0.0, high=1.0, dtype=\"float32\"):\n"
    "    return made(shape, dtype).uniform_(low, high)\n\n\n"
    "def RandnTensor(shape, mean=0.0, std=1.0, dtype=\"float32\"):\n"
    "    return made(shape, dtype).normal_(mean, std)\n\n\n"
    "def RandIntTensor(shape, low, high, dtype=\"int32\"):\n    return made(shape, dtype).random_(low, high)\n\n\n"
    "def FullTensor(shape, value=0.0, dtype=\"float32\"):\n    return made(shape, dtype).fill_(value)\n\n\n"
    "def OutTensor(shape, dtype=\"float32\"):\n    return made(shape, dtype).zero_()\n\n\n";

static const char leetgpu_tail[] =
    "\n\ncase = 0  # of the functional tests; the last one is the performance test\ntests = 3\n\n\n"
    "class Model(torch.nn.Module):\n    def forward(self, *args):\n        out = answers(args)\n"
    "        return out[0] if len(out) == 1 else tuple(out)\n\n\n"
    "def given(test):\n"
    "    all_of_them = [test[name] for i, name in enumerate(solve_takes) if solve_writes.get(i) != \"out\"]\n"
    "    return [x.reshape(-1) for x in all_of_them if isinstance(x, torch.Tensor)]\n\n\n"
    "def answers(args):\n    args = list(args)\n    for i, how in solve_writes.items():\n"
    "        args[i] = torch.zeros_like(args[i]) if how == \"out\" else args[i].clone()\n"
    "    Challenge().reference_impl(*args)\n    return [args[i] for i in solve_writes]\n\n\n"
    "def varies(x):  # a few whole numbers may stand for themselves\n"
    "    return len(x[:4096].unique()) > (min(3, len(x) - 1) if x.is_floating_point() else 1)\n\n\n"
    "def tells(test):  # small, of inputs that vary, and with another answer than what was there\n"
    "    args = [test[name] for name in solve_takes]\n"
    "    if sum(len(x) for x in given(test)) > 65536 or not all(varies(x) for x in given(test)):\n"
    "        return False\n"
    "    there = [torch.zeros_like(args[i]) if how == 'out' else args[i] for i, how in solve_writes.items()]\n"
    "    return not any(torch.equal(x, y) for x, y in zip(answers(args), there) if len(x.shape))\n\n\n"
    "def drawn(test, again):  # other numbers each time\n"
    "    return any(not torch.equal(x, y) for x, y in zip(given(test), given(again)))\n\n\n"
    "def distance(test):  # of its size from that of a test by hand and from the largest\n"
    "    n = sum(len(x) for x in given(test))\n    return max(n, 1024) / max(min(n, 1024), 1)\n\n\n"
    "def get_inputs():\n    challenge = Challenge()\n    if case == tests:\n"
    "        test = challenge.generate_performance_test()\n    else:\n"
    "        found, again = challenge.generate_functional_test(), challenge.generate_functional_test()\n"
    "        every = [(not drawn(x, y), distance(x), i) for i, (x, y) in enumerate(zip(found, again)) if tells(x)]\n"
    "        every = sorted(every or [(True, distance(x), i) for i, x in enumerate(found)])\n"
    "        every = [x for x in every if x[0] == every[0][0]]\n"
    "        test = found[every[min(case, len(every) - 1)][2]]\n"
    "    return [test[name] for name in solve_takes]\n\n\ndef get_init_inputs():\n    return []\n";

/* format's 'is': a challenge.py with a reference. */
static bool leetgpu_is(const char *path)
{
    struct buf text;
    bool is = format_named(path, "challenge.py") && format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "def reference_impl(") && strstr(text.p, "def get_solve_signature(");
        buf_free(&text);
    }
    return is;
}

/* solve's parameters, from the lines '"NAME": (TYPE, "in"|"out"|"inout"),' of its signature. How many are written. */
static int leetgpu_put_signature(struct buf *out, const char *text)
{
    struct buf writes;
    char name[100];
    int n = 0, written = 0;

    buf_init(&writes, 1 << 16);
    buf_adds(out, "\n\nsolve_takes = [");
    for (const char *p = strchr(text, '\n'); p && strncmp(p, "\n    def ", 9); p = strchr(p + 1, '\n')) {
        const char *line = p + 1 + strspn(p + 1, " "), *end = line + strcspn(line, "\n");
        const char *how = memmem(line, (size_t)(end - line), "\"out\"", 5) ? "out"
            : memmem(line, (size_t)(end - line), "\"inout\"", 7) ? "inout" : NULL;

        if (sscanf(line, "\"%99[A-Za-z0-9_]\": (", name) != 1)
            continue;
        buf_addf(out, "%s\"%s\"", n ? ", " : "", name);
        if (how)
            buf_addf(&writes, "%s%d: \"%s\"", written++ ? ", " : "", n, how);
        n++;
    }
    buf_addf(out, "]\nsolve_writes = {%s}  # places of solve_takes\n", writes.n ? writes.p : "");
    buf_free(&writes);
    return written;
}

/* Makes the task's code of a challenge in Python. ERR_INPUT: no argument of solve is written. */
static int leetgpu_build(const char *text, int most, struct format_task *t, struct err *e)
{
    static const char *const inlined[] = {"core.challenge_base", NULL};
    json_t *workloads = json_array();

    buf_adds(&t->code, leetgpu_head);
    format_inline(&t->code, text, inlined);
    if (leetgpu_put_signature(&t->code, strstr(text, "def get_solve_signature(")) == 0) {
        json_decref(workloads);
        return err_set(e, ERR_INPUT, "its signature of solve names no argument that is written");
    }
    buf_adds(&t->code, leetgpu_tail);
    for (int i = 1; i <= LEETGPU_TESTS && i < most; i++) {
        char name[32];
        snprintf(name, sizeof name, i == LEETGPU_TESTS ? "performance" : "test-%d", i);
        json_array_append_new(workloads, json_pack("{s:s,s:{s:i}}", "name", name, "sizes", "case", i));
    }
    if (json_array_size(workloads))
        json_object_set(t->sidecar, "workloads", workloads);
    json_decref(workloads);
    return 0;
}

/* Named as its folder is: 1_vector_add. */
static int leetgpu_read(const char *path, int most, struct format_task *t, struct err *e)
{
    struct buf text;
    int rc;

    snprintf(t->name, sizeof t->name, "challenge");
    format_folder_name(path, t->name, sizeof t->name);
    if (format_text(path, &text, e) < 0)
        return -1;
    rc = strstr(text.p, "num_gpus = 1") || !strstr(text.p, "num_gpus = ")
        ? leetgpu_build(text.p, most, t, e) : err_set(e, ERR_INPUT, "it needs several GPUs");
    buf_free(&text);
    return rc;
}

const struct format format_leetgpu = {"leetgpu", "LeetGPU's challenge.py; a .cu with 'void solve(..)' is an answer",
                                      leetgpu_is, leetgpu_read};
