/* bench_cache.c - what a known verdict costs: from the command line (a process per candidate) and from a worker.
 *
 *   bench_cache MUSACODER [BACKEND]
 *
 * A candidate that nobody judged before is judged once by each, then asked for again; the median of the repeats is
 * printed in milliseconds, beside the first time. Uses the user's cache folder ($MUSACODER_CACHE_DIR). Exit code 1 if
 * a repeat was not answered from the cache. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/perf/perf.h"
#include "verdicts/verdict_service.h"

#define REPEATS 20

static const char task[] =
    "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "    def forward(self, x):\n        return torch.relu(x)\n\ndef get_inputs():\n    return [torch.randn(7, 9)]\n\n"
    "def get_init_inputs():\n    return []\n";

static const char candidate[] =
    "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n"
    "src = r'''\n__global__ void k(const float* x, float* y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = fmaxf(x[i], 0.0f);\n}\n"
    "torch::Tensor run(torch::Tensor x) {\n    auto y = torch::empty_like(x);\n    int n = x.numel();\n"
    "    k<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);\n    return y;\n}\n'''\n"
    "ext = load_inline(name='w', cpp_sources='torch::Tensor run(torch::Tensor x);', cuda_sources=src, "
    "functions=['run'])\n\n"
    "class ModelNew(nn.Module):\n    def forward(self, x):\n        return ext.run(x)\n";

static int wrong(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_cache: %s: %s\n", what, e->msg);
    return -1;
}

static char *fresh(void)
{
    uint64_t id = 0;

    if (getrandom(&id, sizeof id, 0) != sizeof id)
        id = (uint64_t)(now_s() * 1e9);
    return xasprintf("# %" PRIu64 "\n%s", id, candidate);
}

/* Milliseconds of one 'musacoder eval', started by a shell; *ret_cached says where the verdict came from. */
static int ask_cli(const char *exe, const char *backend, const char *task_file, const char *file, double *ret_ms,
                   bool *ret_cached, struct err *e)
{
    char *command = xasprintf("exec '%s' eval --json --backend %s --task '%s' '%s'", exe, backend, task_file, file);
    double t0 = now_s();
    FILE *p = popen(command, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n = p ? getline(&line, &room, p) : -1;
    json_t *v = NULL;
    bool ok;

    if (p)
        pclose(p);
    *ret_ms = (now_s() - t0) * 1e3;
    if (n > 0)
        v = json_parse(line, (size_t)n, "the verdict", e);
    else
        err_set(e, ERR_ENV, "'%s' says nothing", command);
    *ret_cached = json_flag(v, "cached", false);
    ok = v && !strcmp(json_str(v, "status", ""), "passed");
    if (v && !ok)
        err_set(e, ERR_ENV, "%.600s", json_str(v, "feedback", ""));
    json_decref(v);
    free(line);
    free(command);
    return ok ? 0 : -1;
}

static int time_cli(const char *exe, const char *backend, const char *dir, struct err *e)
{
    char *text = fresh(), *task_file = path_join(dir, "relu.py"), *file = path_join(dir, "candidate.py");
    double first, ms[REPEATS];
    bool cached, all = true;
    int rc = file_write(task_file, task, strlen(task), e) < 0 || file_write(file, text, strlen(text), e) < 0 ||
                     ask_cli(exe, backend, task_file, file, &first, &cached, e) < 0
                 ? -1
                 : 0;

    for (int i = 0; i < REPEATS && rc == 0; i++) {
        rc = ask_cli(exe, backend, task_file, file, &ms[i], &cached, e);
        all &= cached;
    }
    if (rc == 0)
        printf("command line: first %.0f ms, known %.1f ms (median of %d)%s\n", first, perf_median(ms, REPEATS),
               REPEATS, all ? "" : ", NOT from the cache");
    free(text);
    free(task_file);
    free(file);
    return rc < 0 ? wrong("command line", e) : all ? 0 : -1;
}

/* A new name for the task makes a new job of the queue; the judge's key does not see it. */
static int ask_worker(struct verdict_service *s, const json_t *options, const char *text, int i, double *ret_ms,
                      bool *ret_cached, struct err *e)
{
    char name[32];
    struct verdict_request r = {.task_code = task, .task_name = name, .candidate = text, .options = options};
    double t0 = now_s();
    json_t *all;

    snprintf(name, sizeof name, "relu-%d", i);
    if (verdict_many(s, &r, 1, &all, e) < 0)
        return -1;
    *ret_ms = (now_s() - t0) * 1e3;
    *ret_cached = json_flag(json_array_get(all, 0), "cached", false);
    json_decref(all);
    return 0;
}

static int time_worker(char *exe, const char *backend, struct err *e)
{
    char *argv[] = {exe, "eval", "--worker", "--backend", (char *)backend, NULL}, *text = fresh();
    struct verdict_config c = {.workers = 1, .jobs = 2, .worker_argv = argv};
    json_t *options = json_pack("{s:s}", "backend", backend);
    struct verdict_service *s = NULL;
    double first, ms[REPEATS];
    bool cached, all = true;
    int rc = verdict_service_start(&c, &s, e) < 0 || ask_worker(s, options, text, -1, &first, &cached, e) < 0 ? -1 : 0;

    for (int i = 0; i < REPEATS && rc == 0; i++) {
        rc = ask_worker(s, options, text, i, &ms[i], &cached, e);
        all &= cached;
    }
    if (rc == 0)
        printf("worker:       first %.0f ms, known %.1f ms (median of %d)%s\n", first, perf_median(ms, REPEATS),
               REPEATS, all ? "" : ", NOT from the cache");
    verdict_service_stop(s);
    json_decref(options);
    free(text);
    return rc < 0 ? wrong("worker", e) : all ? 0 : -1;
}

int main(int argc, char **argv)
{
    const char *backend = argc > 2 ? argv[2] : "sim";
    struct err e = ERR_INIT;
    char *dir;
    int rc;

    if (argc < 2 || !(dir = dir_temp("bench-cache", &e))) {
        fprintf(stderr, "usage: bench_cache MUSACODER [BACKEND]\n");
        return 2;
    }
    rc = time_cli(argv[1], backend, dir, &e) < 0;
    rc |= time_worker(argv[1], backend, &e) < 0;
    dir_remove(dir, NULL);
    free(dir);
    return rc;
}
