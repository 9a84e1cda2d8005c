/* test_worker.c - verdicts through the queue: real workers, duplicates, a broken task, unknown options. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "verdicts/verdict_service.h"

static const char task[] =
    "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "    def forward(self, x):\n        return torch.relu(x)\n\ndef get_inputs():\n    return [torch.randn(7, 9)]\n\n"
    "def get_init_inputs():\n    return []\n";

static const char good[] =
    "```python\nimport torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n"
    "src = r'''\n__global__ void k(const float* x, float* y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = fmaxf(x[i], 0.0f);\n}\n"
    "torch::Tensor run(torch::Tensor x) {\n    auto y = torch::empty_like(x);\n    int n = x.numel();\n"
    "    k<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);\n    return y;\n}\n'''\n"
    "ext = load_inline(name='w', cpp_sources='torch::Tensor run(torch::Tensor x);', cuda_sources=src, "
    "functions=['run'])\n\n"
    "class ModelNew(nn.Module):\n    def forward(self, x):\n        return ext.run(x)\n```\n";

static char exe[PATH_MAX];

static const json_t *item(const json_t *all, size_t i, const char *status, const char *category)
{
    const json_t *v = json_array_get(all, i);

    assert_non_null(v);
    if (strcmp(json_str(v, "status", ""), status) || strcmp(json_str(v, "category", "none"), category))
        fail_msg("item %zu: %s, %s: %s", i, json_str(v, "status", ""), json_str(v, "category", "none"),
                 json_str(v, "feedback", ""));
    return v;
}

static void test_service(void **state)
{
    char *argv[] = {exe, "eval", "--worker", NULL};
    struct verdict_config c = {.workers = 1, .jobs = 2, .worker_argv = argv};
    json_t *options = json_pack("{s:i,s:f}", "trials", 1, "timeout", 20.0), *all;
    json_t *wrong = json_pack("{s:i,s:s,s:s}", "trails", 1, "backend", "cuda", "protocol", "kernelbench");
    struct verdict_request r[] = {
        {task, "relu", good, true, options, NULL},
        {task, "relu", "no code here", true, options, NULL},
        {task, "relu", good, true, options, NULL}, /* the same again */
        {"import torch\n", "broken", good, true, options, NULL},
        {task, "relu", good, true, wrong, NULL},
        {task, "relu", "class ModelNew:\n    pass\n", false, options, NULL},
    };
    struct verdict_service *s;
    struct err e = ERR_INIT;

    (void)state;
    if (verdict_service_start(&c, &s, &e) < 0)
        fail_msg("%s", e.msg);
    if (verdict_many(s, r, 6, &all, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(json_array_size(all), 6);
    item(all, 0, "passed", "none");
    item(all, 1, "failed", "extraction_error");
    item(all, 2, "passed", "none");
    assert_non_null(strstr(json_str(item(all, 3, "infra", "infra"), "feedback", ""), "class Model"));
    assert_string_equal(json_str(item(all, 3, "infra", "infra"), "at_fault", ""), "request"); /* again would not help */
    assert_non_null(strstr(json_str(item(all, 4, "infra", "infra"), "feedback", ""), "trials"));
    assert_string_equal(json_str(item(all, 4, "infra", "infra"), "backend", ""), "cuda"); /* what was asked for */
    assert_string_equal(json_str(item(all, 4, "infra", "infra"), "protocol", ""), "kernelbench");
    item(all, 5, "failed", "extraction_error");
    json_decref(all);
    json_decref(options);
    json_decref(wrong);
    verdict_service_stop(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_service)};
    char *slash;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 32);

    (void)argc, (void)argv;
    exe[n > 0 ? n : 0] = 0;
    for (int i = 0; i < 3 && (slash = strrchr(exe, '/')); i++)
        *slash = 0;
    strcat(exe, "/musacoder");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
