/* test_musa.c - CUDA to MUSA and back: names by table and prefix, guards by meaning,
    Python and the code in its strings, what
 * stays, what is refused with its line; and on every program of the corpus: nothing of CUDA is left,
     the way back gives the
 * same bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "translate/musa.h"
#include "translate/musa_table.h"

static const struct musa_target s5000 = {"MTT S5000", 310, 192 * 1024, 8192, true};
static const struct musa_target s4000 = {"MTT S4000", 220, 72 * 1024, 8192, false};

static void run(const char *src, enum musa_lang lang, enum musa_to to, const struct musa_target *g,
                struct musa_result *r)
{
    struct musa_options o = {.to = to, .lang = lang, .target = g};
    struct err e = ERR_INIT;

    assert_int_equal(0, musa_translate(src, strlen(src), &o, r, &e));
}

static void expect(const char *src, const char *want, enum musa_lang lang, bool lossless)
{
    struct musa_result r, back;

    run(src, lang, TO_MUSA, &s5000, &r);
    assert_false(r.refused);
    assert_string_equal(r.out.p, want);
    assert_int_equal(r.lossy, !lossless);
    if (lossless) {
        run(r.out.p, lang, TO_CUDA, NULL, &back);
        assert_false(back.refused);
        assert_string_equal(back.out.p, src);
        musa_result_free(&back);
    }
    musa_result_free(&r);
}

#define CXX(src, want) expect(src, want, MUSA_CXX, true)
#define CXX_LOSSY(src, want) expect(src, want, MUSA_CXX, false)
#define PY(src, want) expect(src, want, MUSA_PYTHON, true)
#define PY_LOSSY(src, want) expect(src, want, MUSA_PYTHON, false)

static void refused_on(const struct musa_target *g, const char *src, enum musa_lang lang, const char *rule,
                       uint32_t line)
{
    struct musa_result r;
    bool found = false;

    run(src, lang, TO_MUSA, g, &r);
    if (!r.refused)
        fail_msg("not refused: %s", src);
    assert_int_equal(r.out.n, 0);
    for (size_t i = 0; i < r.n_notes; i++)
        found |= r.notes[i].kind == MUSA_REFUSED && !strcmp(r.notes[i].rule, rule) && r.notes[i].line == line;
    if (!found)
        fail_msg("no refusal '%s' at line %u of: %s (first: %s)", rule, line, src, r.notes[0].text);
    musa_result_free(&r);
}

static void refused(const char *src, const char *rule, uint32_t line)
{
    refused_on(&s5000, src, MUSA_CXX, rule, line);
}

static void test_names(void **state)
{
    (void)state;
    CXX("cudaError_t e = cudaMalloc(&p, n);", "musaError_t e = musaMalloc(&p, n);");
    CXX("cudaMemcpyAsync(a, b, n, cudaMemcpyDeviceToHost, s);", "musaMemcpyAsync(a, b, n, musaMemcpyDeviceToHost, s);");
    CXX("CUdevice d; cuDeviceGet(&d, 0); CU_CTX_SCHED_AUTO;", "MUdevice d; muDeviceGet(&d, 0); MU_CTX_SCHED_AUTO;");
    CXX("__nv_bfloat16 a; nv_bfloat162 b; __half h;", "__mt_bfloat16 a; mt_bfloat162 b; __half h;");
    CXX("make_cudaExtent(1, 2, 3)", "make_musaExtent(1, 2, 3)");
    CXX("cublasSgemm(h, CUBLAS_OP_N);", "mublasSgemm(h, MUBLAS_OP_N);");
    CXX("#include <cublasLt.h>\ncublasLtMatmul(h, d); CUBLASLT_EPILOGUE_GELU_BIAS; CUBLAS_COMPUTE_32F;",
        "#include <mublasLt.h>\nmublasLtMatmul(h, d); MUBLASLT_EPILOGUE_GELU_BIAS; MUBLAS_COMPUTE_32F;");
    CXX("using namespace nvcuda; nvcuda::wmma::fragment<int> f;",
        "using namespace mtmusa; mtmusa::wmma::fragment<int> f;");
    CXX_LOSSY("__nv_half x;", "__half x;");
    CXX_LOSSY("float y = __log2f(x);", "float y = log2f(x);");
}

static void test_what_stays(void **state)
{
    (void)state;
    CXX("int cu = 3, cuda = 4; cu += cuda;", "int cu = 3, cuda = 4; cu += cuda;");
    CXX("// cudaMalloc here\n/* and __CUDA_ARCH__ */", "// cudaMalloc here\n/* and __CUDA_ARCH__ */");
    CXX("#define CUDA_CHECK(x) if ((x) != cudaSuccess) abort()\nCUDA_CHECK(cudaFree(p));",
        "#define CUDA_CHECK(x) if ((x) != musaSuccess) abort()\nCUDA_CHECK(musaFree(p));");
    CXX("printf(\"cudaMalloc failed on cuda\\n\");", "printf(\"cudaMalloc failed on cuda\\n\");");
    CXX("auto s = R\"x(cudaMalloc \" __CUDACC__)x\";", "auto s = R\"x(cudaMalloc \" __CUDACC__)x\";");
    CXX("torch::Tensor cudaForward(torch::Tensor x) { return cudaForward(x); }",
        "torch::Tensor cudaForward(torch::Tensor x) { return cudaForward(x); }");
    CXX("float cuSum(int n); int cuMax;", "float cuSum(int n); int cuMax;");
    CXX("asm volatile(\"\" ::: \"memory\");", "asm volatile(\"\" ::: \"memory\");");
    CXX("#include \"my_cuda_helpers.h\"\n#include <cub/cub.cuh>\n",
        "#include \"my_cuda_helpers.h\"\n#include <cub/cub.cuh>\n");
    CXX("#include \"tile.cuh\"\n", "#include \"tile.muh\"\n");
}

static void test_torch(void **state)
{
    (void)state;
    CXX("#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAGuard.h>\n",
        "#include <torch_musa/csrc/aten/musa/MUSAContext.h>\n#include <torch_musa/csrc/core/MUSAGuard.h>\n");
    CXX("auto s = at::cuda::getCurrentCUDAStream(); c10::cuda::CUDAGuard g(x.device());",
        "auto s = at::musa::getCurrentMUSAStream(); c10::musa::MUSAGuard g(x.device());");
    CXX("TORCH_CHECK(x.is_cuda(), \"x must be on cuda\");",
        "TORCH_CHECK(x.is_privateuseone(), \"x must be on cuda\");");
    CXX("C10_CUDA_KERNEL_LAUNCH_CHECK(); torch::device(torch::kCUDA); at::DeviceType::CUDA;",
        "C10_MUSA_KERNEL_LAUNCH_CHECK(); torch::device(torch::kPrivateUse1); at::DeviceType::PrivateUse1;");
    CXX("TORCH_LIBRARY_IMPL(ops, CUDA, m) { m.impl(\"f\", f); }",
        "TORCH_LIBRARY_IMPL(ops, PrivateUse1, m) { m.impl(\"f\", f); }");
    CXX("torch::Device d(\"cuda:1\");", "torch::Device d(\"musa:1\");");
    CXX_LOSSY("auto y = x.cuda();", "auto y = x.to(torch::kPrivateUse1);");
}

static void test_guards(void **state)
{
    (void)state;
    CXX("#if __CUDA_ARCH__ >= 800\n#endif", "#if __MUSA_ARCH__ >= 220\n#endif");
    CXX("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n#endif",
        "#if defined(__MUSA_ARCH__) && __MUSA_ARCH__ < 310\n#endif");
    CXX("#if __CUDA_ARCH__ >= 1000\n#endif", "#if __MUSA_ARCH__ >= 1000\n#endif");
    CXX_LOSSY("#if __CUDA_ARCH__ >= 530\n#endif", "#if __MUSA_ARCH__ >= 210\n#endif");
    CXX_LOSSY("#if __CUDA_ARCH__ > 750\n#endif", "#if __MUSA_ARCH__ >= 220\n#endif");
    CXX_LOSSY("#if __CUDA_ARCH__ <= 750\n#endif", "#if __MUSA_ARCH__ < 220\n#endif");
    CXX_LOSSY("#if __CUDA_ARCH__ >= 890\n#endif", "#if __MUSA_ARCH__ >= 310\n#endif");
    refused("\n#if __CUDA_ARCH__ / 100 == 8\n#endif", "guard", 2);
}

/* What the frequent instructions become stands behind the text that is put in front; lines stay where they were. */
static void test_plain_ptx(void **state)
{
    static const struct { const char *src, *want; enum musa_lang lang; } rows[] = {
        {"void f(unsigned *p, unsigned a) {\n asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\\n\" ::\n"
         " \"r\"(a), "
         "\"l\"((nv_bfloat16 *)p));\n}",
         "void f(unsigned *p, unsigned a) {\n do { const auto simt_0 = (\na); const auto simt_1 = ((mt_bfloat16 *)p); "
         "(void)simt_0; "
         "(void)simt_1; { ::musacoder::ptx::async_copy((::musacoder::ptx::shared(simt_0)), "
         "(::musacoder::ptx::global(simt_1)), "
         "(16)); } } while (0);\n}", MUSA_CXX},
        {"#include <cuda_pipeline.h>\nvoid f(){__pipeline_memcpy_async(a, b, 16); __nanosleep(20);}",
         "#include <musa_runtime.h>\nvoid f(){::musacoder::ptx::pipeline_copy(a, b, 16); "
         "::musacoder::ptx::nanosleep(20);}", MUSA_CXX},
        {"#define C() \\\n asm(\"cp.async.commit_group;\" \\\n ::)\n",
         "#define C() \\\n do { { ::musacoder::ptx::async_commit(); } } while (0)\\\n\n", MUSA_CXX},
        {"s = r'''\nint g(){asm(\"bar.sync 0;\"); return __cvta_generic_to_shared(0);} // __global__\n'''\n",
         "\nint g(){do { { ::musacoder::ptx::bar_sync((0)); } } while (0); return ::musacoder::ptx::to_shared(0);} // "
         "__global__\n'''\n", MUSA_PYTHON},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct musa_result r;
        const char *body;

        run(rows[i].src, rows[i].lang, TO_MUSA, &s5000, &r);
        assert_false(r.refused);
        assert_true(r.lossy);
        assert_non_null(strstr(r.out.p, "#include <musa_runtime.h>\n#ifndef MUSACODER_PTX\n"));
        assert_null(strstr(r.out.p, "/*"));
        assert_non_null(body = strstr(r.out.p, "#line 1\n"));
        assert_string_equal(body + 8, rows[i].want);
        musa_result_free(&r);
    }
    refused_on(&s5000, "s = 'int g(){asm(\"bar.sync 0;\");} // __global__'\n", MUSA_PYTHON, "ptx", 1); /* one line
    has no room */
}

static void test_refusals(void **state)
{
    (void)state;
    refused("__device__ void f() {\n asm volatile(\"wgmma.fence.sync.aligned;\");\n}", "ptx", 2);
    refused("__device__ void f(int a) {\n asm volatile(\"mbarrier.inval.shared.b64 [%0];\" :: \"r\"(a));\n}", "ptx", 2);
    refused("__device__ void f(int &a) {\n asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(a));\n}", "ptx", 2);
    refused("#define A(x) asm(\"mov %0, 1;\" : \"=r\"(x))", "ptx", 1);
    refused("__cluster_dims__(2, 1, 1) __global__ void k() {}", "cluster", 1);
    refused("auto c = cooperative_groups::this_cluster();", "cluster", 1);
    refused("\n\nCUtensorMap m;", "tensor-map", 3);
    refused("#include <cuda/pipeline>\n", "async-copy", 1);
    refused("void f() { __pipeline_arrive_on(0); }\n", "async-copy", 1);
    refused("#include <cudnn.h>\n", "cudnn", 1);
    refused("#include <ATen/cuda/CUDAApplyUtils.cuh>\n", "header", 1);
    refused("atomicAdd((unsigned long long *)p, 1ull);", "atomic-64", 1);
    refused("atomicMax(reinterpret_cast<int64_t *>(p), v);", "atomic-64", 1);
    refused("#define N 256\n__global__ void k() {\n __shared__ float s[N][N];\n}", "shared-memory", 3);
    refused("void f() { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024); }",
            "shared-memory", 1);
    refused("__constant__ float t[4096];", "constant-memory", 1);
    refused("#define F(x) cuda##x()", "pasted", 1);
    refused_on(&s4000, "void k() { auto g = cg::this_grid(); }", MUSA_CXX, "cooperative", 1);
    refused_on(&s4000, "__nv_fp8_e4m3 x;", MUSA_CXX, "fp8", 1);
    refused_on(&s4000, "__global__ void k() { __shared__ float4 s[80 * 64]; }", MUSA_CXX, "shared-memory", 1);
}

static void test_near_refusals(void **state)
{
    (void)state;
    CXX("atomicAdd((float *)p, 1.0f); atomicCAS((unsigned long long *)p, a, b);",
        "atomicAdd((float *)p, 1.0f); atomicCAS((unsigned long long *)p, a, b);");
    CXX("__global__ void a() { __shared__ float s[8192]; }\n__global__ void b() { __shared__ float s[40000]; }",
        "__global__ void a() { __shared__ float s[8192]; }\n__global__ void b() { __shared__ float s[40000]; }");
    CXX("__global__ void k() { __shared__ T s[N]; }", "__global__ void k() { __shared__ T s[N]; }");
    CXX("cooperative_groups::this_grid().sync();", "cooperative_groups::this_grid().sync();");
}

static void test_python(void **state)
{
    (void)state;
    PY("from torch.utils.cpp_extension import load_inline\n",
       "from torch_musa.utils.musa_extension import load_inline\n");
    PY("m = load_inline(name='cuda', cpp_sources=c, cuda_sources=[s], extra_cuda_cflags=['-O3', '--use_fast_math'])\n",
       "m = load_inline(name='cuda', cpp_sources=c, musa_sources=[s], extra_musa_cflags=['-O3', '-ffast-math'])\n");
    PY("def f(cuda_sources=None):\n    x = cuda_sources\n", "def f(cuda_sources=None):\n    x = cuda_sources\n");
    PY("x = x.cuda(); y = x.to('cuda:1'); assert x.is_cuda and x.device.type == \"cuda\"\n",
       "x = x.musa(); y = x.to('musa:1'); assert x.is_musa and x.device.type == \"musa\"\n");
    PY("torch.cuda.synchronize(); self.cuda_ext.f(x); cuda = 1\n",
       "torch.musa.synchronize(); self.cuda_ext.f(x); cuda = 1\n");
    PY("with torch.cuda.device(f'cuda:{i}'): pass\n", "with torch.musa.device(f'musa:{i}'): pass\n");
    PY("\"\"\"A cuda kernel: cudaMalloc.\"\"\"\nx = 1  # torch.cuda\n",
       "\"\"\"A cuda kernel: cudaMalloc.\"\"\"\nx = 1  # torch.cuda\n");
    PY("s = '''\n#include <cuda_runtime.h>\n__global__ void k() {} // cuda\n'''\n",
       "s = '''\n#include <musa_runtime.h>\n__global__ void k() {} // cuda\n'''\n");
    PY("s = \"#include <cuda_fp16.h>\\ncudaFree(p);\"\n", "s = \"#include <musa_fp16.h>\\nmusaFree(p);\"\n");
    PY("s = 'torch::Tensor cudaGo(torch::Tensor x);'\nm = load(functions=['cudaGo'])\nm.cudaGo(x)\n",
       "s = 'torch::Tensor cudaGo(torch::Tensor x);'\nm = load(functions=['cudaGo'])\nm.cudaGo(x)\n");
    PY("os.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'\n", "os.environ['TORCH_MUSA_ARCH_LIST'] = '31'\n");
    PY("torch.backends.cudnn.allow_tf32 = True\n", "torch.backends.mudnn.allow_tf32 = True\n");
    PY_LOSSY("a = ['-O3', '--ptxas-options=-v', '-lineinfo']\n", "a = ['-O3', ]\n");
    PY_LOSSY("from torch.utils import cpp_extension\n",
             "from torch_musa.utils import musa_extension as cpp_extension\n");
    refused_on(&s5000, "import torch\nimport cupy as cp\n", MUSA_PYTHON, "cupy", 2);
    refused_on(&s5000, "s = '''\n__global__ void k() { asm(\"x;\" ::); }\n'''\n", MUSA_PYTHON, "ptx", 2);
    refused_on(&s5000, "s = '''\n", MUSA_PYTHON, "python", 1);
}

/* Each row of the table, both ways. */
static void test_rows(void **state)
{
    struct musa_result r, back;
    char src[300];

    (void)state;
    assert_true(musa_row_count() >= 150);
    for (const struct musa_row *row = musa_rows; row->cuda; row++) {
        if (row->kind != ROW_NAME || row->one_way)
            continue;
        snprintf(src, sizeof src, "%s;", row->cuda);
        run(src, MUSA_CXX, TO_MUSA, &s5000, &r);
        snprintf(src, sizeof src, "%s;", row->musa);
        assert_string_equal(r.out.p, src);
        run(r.out.p, MUSA_CXX, TO_CUDA, NULL, &back);
        snprintf(src, sizeof src, "%s;", row->cuda);
        assert_string_equal(back.out.p, src);
        musa_result_free(&r);
        musa_result_free(&back);
    }
}

/* Foreign text must not cost more than a constant times its size, nor crash. */
static void test_garbage(void **state)
{
    static const char *const pieces[] = {"\"", "'''", "(", "[", "__shared__ float a[", "#define A A\n", "A",
                                         "asm(", "\\", "#include <",
                                         "__CUDA_ARCH__ >=", "x.", "f'{", "\n", "/*", "R\"(", "cuda", "::", "}",
                                             "atomicAdd("};
    struct musa_result r;
    struct buf b;
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 400; round++) {
        buf_init(&b, 1 << 20);
        for (int i = 0; i < 60; i++) {
            seed = seed * 1664525u + 1013904223u;
            buf_adds(&b, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        run(b.p, round & 1 ? MUSA_PYTHON : MUSA_CXX, round & 2 ? TO_CUDA : TO_MUSA, &s5000, &r);
        musa_result_free(&r);
        buf_free(&b);
    }
}

static void read_share(const char *name, struct buf *out)
{
    char *path = path_share(name);
    struct err e = ERR_INIT;

    assert_int_equal(0, file_read(path, out, &e));
    free(path);
}

/* A committed header is what the table says now: each line of what the list gives stands in it. */
static void one_header(const char *list, const char *header, const char *example)
{
    struct buf names, made, have;

    buf_init(&names, BUF_MAX_TEXT);
    buf_init(&made, BUF_MAX_TEXT);
    buf_init(&have, BUF_MAX_TEXT);
    read_share(list, &names);
    read_share(header, &have);
    musa_aliases(names.p, names.n, &made);
    assert_non_null(strstr(made.p, example));
    for (char *line = strtok(made.p, "\n"); line; line = strtok(NULL, "\n"))
        if (!strstr(have.p, line))
            fail_msg("'%s' is missing in %s; run 'make musa-names'", line, header);
    buf_free(&names);
    buf_free(&made);
    buf_free(&have);
}

#define NAMES "litetorch/include/litetorch/"

static void test_aliases(void **state)
{
    (void)state;
    one_header("litetorch/musa_names.txt", NAMES "musa_names.h", "#define musaMallocPitch cudaMallocPitch\n");
    one_header("litetorch/include/cublas_v2.h", NAMES "mublas_names.h", "#define MUBLAS_OP_N CUBLAS_OP_N\n");
    one_header("litetorch/include/cublasLt.h", NAMES "mublaslt_names.h",
               "#define mublasLtMatmul(...) LT_LIBRARY_CALL(cublasStatus_t, \"mublasLtMatmul\")\n");
}

/* ---- the corpus ---- */

static int seen, exact, lossy, turned_down;

/* Words that stand in comments and messages only are no residue,
    so the second pass decides: it must find nothing to do. */
static void one_program(const char *path)
{
    struct musa_options o = {.to = TO_MUSA, .lang = musa_lang_of(path), .target = &s5000};
    struct musa_result r, again, back;
    struct err e = ERR_INIT;
    struct buf src;

    buf_init(&src, BUF_MAX_TEXT);
    assert_int_equal(0, file_read(path, &src, &e));
    assert_int_equal(0, musa_translate(src.p, src.n, &o, &r, &e));
    seen++;
    if (r.refused) {
        turned_down++;
    } else {
        assert_int_equal(0, musa_translate(r.out.p, r.out.n, &o, &again, &e));
        if (again.edits)
            fail_msg("%s: %zu names were left", path, again.edits);
        musa_result_free(&again);
        o.to = TO_CUDA;
        assert_int_equal(0, musa_translate(r.out.p, r.out.n, &o, &back, &e));
        lossy += r.lossy;
        exact += !r.lossy;
        if (!r.lossy && (back.out.n != src.n || memcmp(back.out.p, src.p, src.n)))
            fail_msg("%s does not come back", path);
        musa_result_free(&back);
    }
    musa_result_free(&r);
    buf_free(&src);
}

static void each_program(const char *folder)
{
    char **names;
    size_t n;

    if (dir_list(folder, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char *path = path_join(folder, names[i]);
        size_t k = strlen(path);
        if (file_is_dir(path))
            each_program(path);
        else if (!strcmp(path + k - 3, ".py") || !strcmp(path + k - 3, ".cu"))
            one_program(path);
        free(path);
    }
    names_free(names, n);
}

static void test_corpus(void **state)
{
    static const char *const folders[] = {"tests/corpus/passed", "tests/corpus/correctness_error",
                                          "tests/corpus/runtime_error",
                                          "tests/corpus/compile_error", "tests/corpus/cheating", "docs/example",
                                              "simt/bench"};

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *path = path_share(folders[i]);
        each_program(path);
        free(path);
    }
    print_message("%d programs: %d come back exactly, %d are lossy, %d refused\n", seen, exact, lossy, turned_down);
    assert_true(seen > 50);
    assert_true(exact * 10 >= seen * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_what_stays), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_guards),        cmocka_unit_test(test_plain_ptx), cmocka_unit_test(test_refusals),  
            cmocka_unit_test(test_near_refusals),
        cmocka_unit_test(test_python),        cmocka_unit_test(test_rows),       cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_corpus),        cmocka_unit_test(test_aliases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
