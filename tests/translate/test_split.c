/* test_split.c - a CUDA source in two halves: what stays in which, the stubs of kernels, lines that stay where they
 * were, what is declined, and garbage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "translate/cuda_split.h"

static struct cuda_split halves;

static const char *split_n(const char *src, size_t n)
{
    const char *why = NULL;

    buf_free(&halves.host);
    buf_free(&halves.device);
    buf_free(&halves.templates);
    buf_init(&halves.host, 1 << 22);
    buf_init(&halves.device, 1 << 22);
    buf_init(&halves.templates, 1 << 12);
    return cuda_split(src, n, "f.cu", &halves, &why) ? NULL : why;
}

static const char *split(const char *src)
{
    return split_n(src, strlen(src));
}

static size_t lines(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += *s == '\n';
    return n;
}

static void host_has(const char *text)
{
    if (!strstr(halves.host.p, text))
        fail_msg("host's half lacks '%s':\n%s", text, halves.host.p);
}

static void device_has(const char *text)
{
    if (!strstr(halves.device.p, text))
        fail_msg("device's half lacks '%s':\n%s", text, halves.device.p);
}

static void lacks(const struct buf *half, const char *text)
{
    if (strstr(half->p, text))
        fail_msg("half still has '%s':\n%s", text, half->p);
}

static void each_half_keeps_its_functions_and_its_lines(void **s)
{
    const char *src = "#include <torch/extension.h>\n#include <cuda_fp16.h>\n#define N 4\nconst int M = 3;\n"
                      "__device__ float g(float a) {\n    return __expf(a);\n}\n"
                      "__global__ void k(const float *__restrict__ x, float *y, int n) {\n    y[0] = g(x[n]);\n}\n"
                      "torch::Tensor f(torch::Tensor x) {\n    k<<<1, N>>>(p(x), p(x), 3);\n    return x;\n}\n"
                      "float pick(float a) { return a; }\n";

    assert_null(split(src));
    host_has("LT_LAUNCH(((const void *)&k), (x, y, n))");
    host_has("(::lt::push(1, N) ? (void)0 : k(p(x), p(x), 3));");
    host_has("float g(float a) ;");
    host_has("#include <torch/extension.h>");
    host_has("const int M = 3;");
    lacks(&halves.host, "__expf");
    lacks(&halves.host, "y[0]");
    device_has("return __expf(a);");
    device_has("y[0] = g(x[n]);");
    device_has("#include <cuda_fp16.h>");
    device_has("#define N 4");
    device_has("const int M = 3;");
    lacks(&halves.device, "torch");
    lacks(&halves.device, "pick");
    assert_int_equal(lines(halves.device.p), lines(src));
    assert_int_equal(lines(halves.host.p), lines(src) + 1); // its #line
    assert_string_equal(halves.templates.p, "");
}

static void templates_are_named(void **s)
{
    assert_null(
        split("template <typename T, int N = 2, class... A>\nstatic __global__ void __launch_bounds__(256, (1))\n"
                      "t(std::array<T, 4> a, const T *x = nullptr, A... rest) { }\n"
                      "namespace m { template <class T> __global__ void u(T x) {} }\n"));
    host_has("LT_LAUNCH(((const void *)&t<T, N, A...>), (a, x, rest...))");
    host_has("LT_LAUNCH(((const void *)&u<T>), (x))");
    assert_string_equal(halves.templates.p, "t|u");
    lacks(&halves.host, "static");
    lacks(&halves.device, "static");
}

static void classes_lose_device_bodies_only(void **s)
{
    assert_null(split("struct Op {\npublic:\n    float a;\n    __host__ __device__ Op(float b) : a{b} { }\n"
                      "    __device__ Op(int b) : a(b), c{1} { __syncthreads(); }\n"
                      "    __device__ float operator()(float x) const { return __sinf(x); }\n"
                      "    float h() const { return 1; }\n};\n"));
    host_has("Op(float b) : a{b} { }");
    host_has("Op(int b) ;");
    host_has("operator()(float x) const ;");
    host_has("float h() const { return 1; }");
    lacks(&halves.host, "__sinf");
    lacks(&halves.host, "__syncthreads");
    device_has("return __sinf(x);");
}

static void constants_and_shared_functions_stay_in_both(void **s)
{
    assert_null(
        split("constexpr int twice(int a) { return 2 * a; }\n__host__ __device__ int both(int a) { return a; }\n"
                      "__constant__ float table[4];\nenum Kind { A, B };\nusing acc = float;\n"
                      "std::vector<int> v;\ntorch::Tensor later(torch::Tensor);\nstruct P { int n; };\n"));
    device_has("return 2 * a;");
    device_has("int both(int a) { return a; }");
    device_has("__constant__ float table[4];");
    device_has("enum Kind { A, B };");
    device_has("struct P { int n; };");
    lacks(&halves.device, "std::vector");
    lacks(&halves.device, "later");
    host_has("return 2 * a;");
    host_has("int both(int a) { return a; }");
    host_has("std::vector<int> v;");
}

static void what_nvcc_alone_can_answer_is_declined(void **s)
{
    static const char *const rows[] = {
        "#ifdef __CUDACC__\nint a;\n#endif\n",
        "__device__ int n; void f() { int h; cudaMemcpyFromSymbol(&h, n, 4); }\n",
        "__managed__ int n;\n",
        "#define KERNEL __global__ void\nKERNEL k() {}\n",
        "void f() { auto g = [] __device__ (int a) { return a; }; }\n",
        "void f() { struct L { __device__ int operator()() { return 1; } }; }\n",
        "#ifdef A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n",
        "void f() {\n#define N 3\n}\n__global__ void k() { int a[N]; }\n",
        "__global__ void k(int) {}\n",
        "__global__ void k(float *x, int k) { x[0] = k; }\n", // the stub's &k would be the parameter's address
        "template <typename, int N> __global__ void k(float *x) {}\n",
        "template <class T> __global__ void k(T *x) {}\ntemplate __global__ void k<float>(float *);\n",
        "namespace { __global__ void k() {} }\n",
        "template <> __global__ void k<int>(int *x) {}\n",
        "__global__ void k(float *x) { x[0] = 1;\n"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!split(rows[i]))
            fail_msg("not declined: %s", rows[i]);
    assert_non_null(split_n("a\0b", 3));
}

static void deep_nesting_is_declined(void **s)
{
    enum { DEEP = 50000 };
    char *src = calloc(DEEP, 16);

    for (int i = 0; i < DEEP; i++)
        memcpy(src + 12 * i, "namespace a{", 12);
    memset(src + 12 * DEEP, '}', DEEP);
    assert_non_null(split(src));
    free(src);
}

static void garbage_is_survived(void **s)
{
    static const char *const words[] = {"template", "<", ">", "(", ")", "{", "}", "[", "]", ";", ":", "=", "operator",
                                        "__global__", "__device__", "void", "k", ",", "struct", "namespace", "extern",
                                        "\"C\"", "#define", "\n",
                                        "#if", "#include", "<<<", ">>>", "::", "class", "...", "~", "a"};
    uint32_t seed = 1;
    char src[400];

    for (int round = 0; round < 20000; round++) {
        src[0] = 0;
        for (int i = 0; i < 24; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(src, words[(seed >> 8) % (sizeof words / sizeof *words)]);
            strcat(src, " ");
        }
        split(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_half_keeps_its_functions_and_its_lines),
        cmocka_unit_test(templates_are_named),
        cmocka_unit_test(classes_lose_device_bodies_only),
        cmocka_unit_test(constants_and_shared_functions_stay_in_both),
        cmocka_unit_test(what_nvcc_alone_can_answer_is_declined),
        cmocka_unit_test(deep_nesting_is_declined),
        cmocka_unit_test(garbage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
