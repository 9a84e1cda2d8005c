/* test_rewrite.c - the lexer covers every byte; launches and dynamic shared memory are rewritten in every position
 * they are used in; everything else is copied; lines stay where they were; garbage is survived in linear time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "translate/lexer.h"
#include "translate/simt_rewrite.h"

static char *rewrite(const char *src)
{
    struct buf out;
    struct err e = ERR_INIT;

    buf_init(&out, BUF_MAX_TEXT);
    assert_int_equal(0, simt_rewrite(src, strlen(src), "f.cu", &out, &e));
    return buf_detach(&out);
}

/* The result must be the #line directive and then exactly 'want'. */
static void expect(const char *src, const char *want)
{
    static const char head[] = "#line 1 \"f.cu\"\n";
    char *got = rewrite(src);

    assert_memory_equal(got, head, sizeof head - 1);
    assert_string_equal(got + sizeof head - 1, want);
    free(got);
}

#define K "__global__ void k(float *x) {}\n"
#define T "template <typename T, int N> __global__ void t(T *x) {}\n"
#define GEN(name, callee, \
            cfg) "::simt::cfg(SIMT_AT(" name "), " cfg ").gen([=](auto &...simt_a) { " callee "(simt_a...); })"
#define OF(name, callee, cfg) "::simt::cfg(SIMT_AT(" name "), " cfg ").of(" callee ")"

static void test_launches(void **state)
{
    (void)state;
    expect(K "void f() { k<<<1, 2>>>(p); }", K "void f() { " OF("k", "k", "1, 2") "(p); }");
    expect(K "k<<<dim3(1, 2), b, 4 * sizeof(float), s>>>(p, q[1], h(3));",
           K OF("k", "k", "dim3(1, 2), b, 4 * sizeof(float), s") "(p, q[1], h(3));");
    expect(K "k <<< (n + 255) / 256, 256 >>> ();", K OF("k", "k", " (n + 255) / 256, 256 ") "();");
    expect(T "t<float, 4><<<g, b>>>(p);", T GEN("t", "t<float, 4>", "g, b") "(p);");
    expect(T "t<<<g, b>>>(p, NULL);", T GEN("t", "t", "g, b") "(p, nullptr);");
    expect("a::b<X<int>>::t<(1 > 0), Y<2>><<<g, b>>>(p);",
           GEN("t", "a::b<X<int>>::t<(1 > 0), Y<2>>", "g, b") "(p);");
    expect("(*table[i])<<<g, b>>>(p);", OF("kernel", "(*table[i])", "g, b") "(p);");
    expect("pick(n)<<<g, b>>>(p);", OF("pick", "pick(n)", "g, b") "(p);");
    expect("if (x) k<<<1, 1>>>(p); else k<<<2, 2>>>(p);",
           "if (x) " OF("k", "k", "1, 1") "(p); else " OF("k", "k", "2, 2") "(p);");
    expect("D(type, \"n\", ([&] { k<scalar_t><<<g, b>>>(x.data_ptr<scalar_t>(), n); }));",
           "D(type, \"n\", ([&] { " GEN("k", "k<scalar_t>", "g, b") "(x.data_ptr<scalar_t>(), n); }));");
    expect("__global__ void o(int a) {}\n__global__ void o(float a) {}\no<<<1, 1>>>(2);",
           "__global__ void o(int a) {}\n__global__ void o(float a) {}\n" GEN("o", "o", "1, 1") "(2);");
    expect("__global__ void d(int a, int b = 2) {}\nd<<<1, 1>>>(2);",
           "__global__ void d(int a, int b = 2) {}\n" GEN("d", "d", "1, 1") "(2);");
    expect("__global__ void f(int a);\n__global__ void __launch_bounds__(256, 2) f(int a) {}\nf<<<1, 1>>>(2);",
           "__global__ void f(int a);\n__global__ void __launch_bounds__(256, 2) f(int a) { SIMT_BOUNDS((256))}\n"
           OF("f", "f", "1, 1") "(2);");
}

static void test_bounds(void **state)
{
    (void)state;
    expect("template <int N> __global__ void\n__launch_bounds__(N * (2 + 1), 4) t(int a)\n{ b; }\n"
           "__global__ void u() {}",
           "template <int N> __global__ void\n__launch_bounds__(N * (2 + 1), 4) t(int a)\n"
           "{ SIMT_BOUNDS((N * (2 + 1))) b; }\n__global__ void u() {}");
    expect("__global__ void __launch_bounds__(64) t(int a);", "__global__ void __launch_bounds__(64) t(int a);");
    expect("__launch_bounds__(64", "__launch_bounds__(64");
}

static void test_macros(void **state)
{
    (void)state;
    expect("#define L(K, N) \\\n  K<N><<<g, \\\n    b>>>(a, \\\n  c)\nint x;",
           "#define L(K, N) \\\n  " GEN("K", "K<N>", "g, \\\n    b") "(a, \\\n  c)\nint x;");
    expect("#define HALF k<<<g\n, b>>>(x);", "#define HALF k<<<g\n, b>>>(x);");
    expect("#define P(op, n) a::op##_f##n##_kernel<<<g, b>>>(x);",
           "#define P(op, n) " GEN("op##_f##n##_kernel", "a::op##_f##n##_kernel", "g, b") "(x);");
    expect("#define P(op) op##_##2d_kernel<<<g, b>>>(x);",
           "#define P(op) " GEN("op##_##2d_kernel", "op##_##2d_kernel", "g, b") "(x);");
    expect("#define P(op) op##_kernel<float, 4><<<g, b>>>(x);",
           "#define P(op) " GEN("op##_kernel", "op##_kernel<float, 4>", "g, b") "(x);");
}

#define NO(what) "do { ::simt::ptx::unsupported(\"inline PTX '" what "'\"); } while (0);"

static void test_asm(void **state)
{
    (void)state;
    expect("asm volatile(\"mov.b32 %0, %1;\\n\" : \"=r\"(a[i]) : \"r\"(b));",
           "do { auto && simt_0 = (a[i]); const auto simt_1 = (b); (void)simt_0; (void)simt_1; "
           "{ ::simt::ptx::mov<::simt::ptx::b32>(simt_0, simt_1); } } while (0);");
    expect("asm(\"{ .reg .pred p;\" \" setp.ne.s32 p, %[x], 0;\"\n\"@p cp.async.cg.shared.global [%1+16], [%2], 16; }\""
           " :: [x]\"r\"(x), \"r\"(s), \"l\"(g + 4));",
           "do { const auto simt_0 = (x); const auto simt_1 = (s); const auto simt_2 = (g + 4); (void)simt_0; "
           "(void)simt_1; (void)simt_2; bool simt_r_p = 0; "
           "{ ::simt::ptx::setp<::simt::ptx::s32>(\"ne\", simt_r_p, simt_0, (0)); } "
           "if (simt_r_p) { ::simt::ptx::async_copy((::simt::ptx::shared(simt_1) + (long)(16)), "
           "(::simt::ptx::global(simt_2)), (16)); } } while (0)\n;");
    expect("asm volatile(\"wgmma.fence.sync.aligned;\");", NO("wgmma.fence.sync.aligned"));
    expect("asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(r));", NO("%cluster_ctarank"));
    expect("asm(\"fma.rn.f32.strange %0, %1, %1, %1;\" : \"=f\"(r) : \"f\"(r));", NO("fma.rn.f32.strange"));
    expect("asm(\"nonsense [ { ( ; } %0 , \" :: \"r\"(r));", NO("nonsense"));
    expect("asm volatile(NAME(x) :: \"r\"(r));", "::simt::ptx::unsupported(\"inline PTX whose text macros make\");");
    expect("asm volatile(\"\" ::: \"memory\");", "asm volatile(\"\" ::: \"memory\");");
    expect("int f() __asm__(\"name\");", "int f() __asm__(\"name\");");
    expect("cudaLaunchCooperativeKernel((const void *)k<3>, g, b, a);", "cudaLaunchCooperativeKernel(k<3>, g, b, a);");
    expect("cudaLaunchKernel(reinterpret_cast<void*>(&k), g, b, a);", "cudaLaunchKernel((&k), g, b, a);");
    expect("cudaLaunchKernel(f(k), g, b, a);", "cudaLaunchKernel(f(k), g, b, a);");
}

static void test_lines(void **state)
{
    (void)state;
    expect(K "k<<<g,\n    b>>>\n\n(p,\n q);\nnext", K OF("k", "k", "g,\n    b") "\n\n(p,\n q);\nnext");
    expect("extern\n__shared__ float\ns[];\nnext", 
           "__attribute__((unused))   float *const s = (  float *)simt_dynamic_shared\n\n;\nnext");
}

static void test_dynamic_shared(void **state)
{
    (void)state;
    expect("extern __shared__ float s[];",
           "__attribute__((unused))   float *const s = (  float *)simt_dynamic_shared;");
    expect("extern __shared__ __align__(16) unsigned char raw[];",
           "__attribute__((unused))    unsigned char *const raw = (   unsigned char *)simt_dynamic_shared;");
    expect("extern __shared__ float t[][33];",
           "__attribute__((unused))   float (*const t)[33] = (  float (*)[33])simt_dynamic_shared;");
    expect("static __shared__ int a[4];", " __shared__ int a[4];");
    expect("__shared__ alignas(16) float a[4];", "alignas(16) __shared__ float a[4];");
    expect("static __shared__\nalignas(T) alignas(4) int a;", " \nalignas(T) alignas(4) __shared__ int a;");
    expect("__shared__ alignas", "__shared__ alignas");
    expect("__noinline__ void f();", "SIMT_NOINLINE void f();");
}

static void test_untouched(void **state)
{
    static const char *const same[] = {
        "const char *s = \"k<<<1, 2>>>(x)\";", "// k<<<1, 2>>>(x)\nint a;", "/* k<<<1, 2>>>(x) */", "'\\'' k<<<",
        "a <<< b;", "R\"x(k<<<1,2>>>(p);)\" )x\"", "k<<<>>>(p);", "k<<<1, 2>>> p;", "k<<<1, 2>>>", "<<<1, 2>>>(x)",
        "k<<<1, (2>>>(x)", "extern __shared__ float s;", "extern \"C\" { int x; }", "extern int y[];",
        "x = a << b >> c; v<v<v<int>>> w;",
        "\\\n\\", "\"open\nint b;", "/* open", "R\"(open", "#define", "__global__", "__global__ void", "template <"};

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        expect(same[i], same[i]);
}

static void test_names_and_bytes(void **state)
{
    struct buf out;
    struct err e = ERR_INIT;

    (void)state;
    buf_init(&out, BUF_MAX_TEXT);
    assert_int_equal(0, simt_rewrite("x", 1, "a\\\"b.cu", &out, &e));
    assert_string_equal(out.p, "#line 1 \"a\\\\\\\"b.cu\"\nx");
    assert_int_equal(-1, simt_rewrite("a\0b", 3, "nul.cu", &out, &e));
    assert_string_equal(e.msg, "'nul.cu' holds a NUL byte; sources are text");
    buf_free(&out);
    buf_init(&out, 8);
    assert_int_equal(-1, simt_rewrite("long enough", 11, "f.cu", &out, &e));
    buf_free(&out);
}

static void test_lexer(void **state)
{
    static const char src[] = "#if A \\\n B\nu8R\"d(\")d\" 0x1p-3 1'000 a->b ::c L'x' // z\n";
    struct toks t;
    size_t at = 0;

    (void)state;
    lex(src, strlen(src), &t);
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(at, t.v[i].at);
        at += t.v[i].n;
        if (tok_is(&t, i, "B"))
            assert_true(t.v[i].directive && t.v[i].line == 2);
        if (tok_is(&t, i, "u8R\"d(\")d\""))
            assert_true(t.v[i].kind == TOK_STRING && !t.v[i].directive && t.v[i].line == 3);
        if (tok_is(&t, i, "0x1p-3") || tok_is(&t, i, "1'000"))
            assert_int_equal(TOK_NUMBER, t.v[i].kind);
        if (tok_is(&t, i, "L'x'"))
            assert_int_equal(TOK_CHAR, t.v[i].kind);
    }
    assert_int_equal(strlen(src), at);
    toks_free(&t);
}

/* Looks at tokens that rewriting n bytes takes: middle repeated, between n / 8 bytes of head and of tail repeated. */
static uint64_t looks(const char *const part[3], size_t n)
{
    struct err e = ERR_INIT;
    uint64_t count = 0;
    struct buf text, out;

    buf_init(&text, n + 64);
    for (int i = 0; i < 3; i++)
        for (size_t end = text.n + (i == 1 ? n - n / 4 : n / 8); *part[i] && text.n < end;)
            buf_adds(&text, part[i]);
    buf_init(&out, BUF_MAX_TEXT);
    assert_int_equal(0, simt_rewrite_counted(text.p, text.n, "f.cu", &out, &count, &e));
    buf_free(&text);
    buf_free(&out);
    return count;
}

/* Hostile text costs no more a byte than other text does, and no more a byte when there is more of it. */
static void test_hostile(void **state)
{
    static const char *const bits[][3] = {
        {"", "(", ""}, {"", "<", ""}, {"", ">", ""}, {"", "k<<<(", ""}, {"", "k<<<", ""}, {"", "__global__ ", ""},
        {"", "template<", ""}, {"", "extern __shared__ ", ""}, {"", "a<b>", ""}, {"", "k<<<1,1>>>(", ""},
        {"", "#define ", ""}, {"", "{[(", ""}, {"", "R\"(", ""}, {"", "\n", "<<<"}, {"", "> > > > <<<", ""},
        {"", "a::b::", "k<<<"}, {"", ") > <<<", ""}, {"__global__ f(", "a b ", ")"}, {"k<<<(", "x ", ") x"},
        {"extern __shared__ float x[(", "\"s\" ", ")];"}, {"( ", "( __global__ ) ", ")"},
        {"extern ( ", "x ", ") ; "}, {"__global__ void f(int a = ", "1 ", ") {} "}, {"", "/**/ \n", ""},
        {"", "static ", ""}, {"template <class T ", ", class U", "> __global__ void f() "}};
    enum { SMALL = 1 << 14, LARGE = 1 << 18 };

    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        double small = (double)looks(bits[i], SMALL) / SMALL, large = (double)looks(bits[i], LARGE) / LARGE;

        if (large > 64 || large > 1.05 * small + 0.01)
            fail_msg("'%s' '%s' '%s' repeated: %.2f looks a byte at %d bytes, %.2f at %d", bits[i][0], bits[i][1],
                     bits[i][2], small, SMALL, large, LARGE);
    }
}

/* Many kernels, each with a name of its own, each launched. */
static uint64_t looks_of_kernels(int n)
{
    struct err e = ERR_INIT;
    uint64_t count = 0;
    struct buf text, out;

    buf_init(&text, BUF_MAX_TEXT);
    for (int i = 0; i < n; i++)
        buf_addf(&text, "template <int N> __global__ void k%d(int *p);\n__global__ void k%d(int *p, int n = 1) {}\n",
                 i, i);
    for (int i = 0; i < n; i++)
        buf_addf(&text, "k%d<<<1, 1>>>(p);\n", i);
    buf_init(&out, BUF_MAX_TEXT);
    assert_int_equal(0, simt_rewrite_counted(text.p, text.n, "f.cu", &out, &count, &e));
    assert_non_null(strstr(out.p, ".gen(["));
    buf_free(&text);
    buf_free(&out);
    return count;
}

static void test_many_kernels(void **state)
{
    uint64_t few = looks_of_kernels(250), many = looks_of_kernels(4000);

    (void)state;
    if (many > 18 * few)
        fail_msg("16 times the kernels: %.1f times the work", (double)many / (double)few);
}

/* A macro that opens a bracket opens nothing around it. */
static void test_unbalanced_macro(void **state)
{
    (void)state;
    expect("#define BEGIN { (\n" K "void g() { k<<<1, 2>>>(a); }",
           "#define BEGIN { (\n" K "void g() { " OF("k", "k", "1, 2") "(a); }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),       cmocka_unit_test(test_bounds),          cmocka_unit_test(test_macros),
        cmocka_unit_test(test_asm),            cmocka_unit_test(test_lines),
        cmocka_unit_test(test_dynamic_shared), cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_names_and_bytes), cmocka_unit_test(test_lexer),          cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_many_kernels),   cmocka_unit_test(test_unbalanced_macro),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
