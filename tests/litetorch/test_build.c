/* test_build.c - the compile stage, on sim and (where nvcc is) for a real GPU. Called as 'test_build build' it reads
 * a request from stdin and prints the reply. */
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build.h"
#include "eval/build/build_audit.h"
#include "eval/build/build_log.h"
#include "eval/build/build_target.h"
#include "proc/jail.h"
#include "../lib/slow.h"

#define RELU                                                                                                   \
    "#include <torch/extension.h>\n"                                                                           \
    "__global__ void k(const float *x, float *y, int n) {\n"                                                   \
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"                                                     \
    "    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;\n"                                                             \
    "}\n"                                                                                                      \
    "torch::Tensor f(torch::Tensor x) {\n"                                                                     \
    "    auto y = torch::empty_like(x);\n"                                                                     \
    "    k<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());\n"                                 \
    "    return y;\n"                                                                                          \
    "}\n"

/* Wall time that builds may take whose limit is not under test: on a busy machine a minute is short. */
#define PATIENT_S 400

#pragma weak jail_probe

static char *cache;
static struct build_opts opts;

static json_t *request(const char *cuda)
{
    return json_pack("{s:s,s:s,s:[s],s:[s],s:[s]}", "kind", "load_inline", "name", "ext", "cpp_sources",
                     "torch::Tensor f(torch::Tensor x);", "cuda_sources", cuda, "functions", "f");
}

static struct build_result build(json_t *req)
{
    struct build_result r;
    struct err e = ERR_INIT;

    if (build_run(req, &opts, &r, &e) < 0)
        fail_msg("%s", e.msg);
    json_decref(req);
    return r;
}

static const json_t *first(const struct build_result *r)
{
    return json_array_get(r->diagnostics, 0);
}

static void builds_once_then_hits_the_cache(void **s)
{
    struct build_result r = build(request(RELU));

    assert_true(r.ok);
    assert_false(r.cached);
    assert_true(file_exists(r.so));
    assert_int_equal(json_array_size(r.diagnostics), 0);
    build_result_free(&r);
    r = build(request(RELU));
    assert_true(r.ok && r.cached);
    build_result_free(&r);
}

static void first_error_has_line_and_source(void **s)
{
    struct build_result r = build(request(RELU "int bad() { return missing_name; }\nint worse() { return 1 }\n"));

    assert_false(r.ok);
    assert_int_equal(json_i64(first(&r), "line", 0), 11);
    assert_string_equal(json_str(first(&r), "file", ""), "cuda_source");
    assert_non_null(strstr(json_str(first(&r), "message", ""), "missing_name"));
    assert_int_equal(json_array_size(json_object_get(first(&r), "source")), 4);
    assert_non_null(strstr(r.error, "missing_name"));
    build_result_free(&r);
    r = build(request(RELU "int bad() { return missing_name; }\nint worse() { return 1 }\n"));
    assert_true(r.cached && !r.ok && strstr(r.error, "missing_name"));
    build_result_free(&r);
}

/* Every header that forward.txt lists is found on sim; MUSA's names are for its dialect. */
static void every_header_that_passes_on_is_found(void **s)
{
    char *list = path_share("litetorch/include/litetorch/forward.txt"), *save = NULL, *word, *line, *end;
    struct err e = ERR_INIT;
    struct buf text, source;
    struct build_result r;
    int n = 0;

    buf_init(&text, 1 << 16);
    buf_init(&source, 1 << 16);
    assert_int_equal(file_read(list, &text, &e), 0);
    for (line = text.p; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (*line == '#' || strstr(line, "mu") || !(word = strstr(line, " = ")))
            continue;
        for (word = strtok_r(word + 3, " ", &save); word; word = strtok_r(NULL, " ", &save), n++)
            buf_addf(&source, "#include <%s>\n", word);
    }
    assert_true(n > 80);
    buf_adds(&source, RELU);
    r = build(request(source.p));
    if (!r.ok)
        fail_msg("%s", r.error);
    build_result_free(&r);
    buf_free(&source);
    buf_free(&text);
    free(list);
}

static void undeclared_function_is_refused_as_torch_does(void **s)
{
    json_t *q = request(RELU);
    struct build_result r;

    json_object_set_new(q, "functions", json_pack("{s:s}", "g", "no such function"));
    r = build(q);
    assert_false(r.ok);
    assert_non_null(strstr(json_str(first(&r), "message", ""), "was not declared"));
    assert_string_equal(json_str(first(&r), "file", ""), "binding_for_functions");
    build_result_free(&r);
}

static void declared_but_undefined_is_a_link_error(void **s)
{
    json_t *q = request("#include <torch/extension.h>\n__global__ void k() {}\n");
    struct build_result r = build(q);

    assert_false(r.ok);
    assert_non_null(strstr(json_str(first(&r), "message", ""), "undefined reference to"));
    build_result_free(&r);
}

/* A compiler that stands for g++ and runs the lines of 'act' before it compiles a candidate's text. In the same place
 * in each run, where there is one: headers are precompiled for a compiler of this name. */
static char *fake_dir, *fake;

static void fake_compiler(const char *act)
{
    const char *keep = getenv("MUSACODER_PREFIX_DIR");
    struct err e = ERR_INIT;
    char *path, *text;

    if (!fake) {
        fake_dir = keep ? path_join(keep, "fake-compiler") : dir_temp("fake-compiler", &e);
        dir_remove(fake_dir, NULL);
        assert_int_equal(dir_make(fake_dir, &e), 0);
        fake = path_join(fake_dir, "g++");
        text = xasprintf("#!/bin/sh\nd=%s\nfor unit in main.cpp joined.cu cuda.cu; do case \"$*\" in *\" -c $unit \"*) "
                         ". $d/act;; esac; "
                         "done\nexec g++ \"$@\"\n", fake_dir);
        assert_int_equal(file_write(fake, text, strlen(text), &e), 0);
        assert_int_equal(chmod(fake, 0755), 0);
        free(text);
    }
    path = path_join(fake_dir, "act");
    assert_int_equal(file_write(path, act, strlen(act), &e), 0);
    free(path);
}

static int try_build(const char *more, struct build_result *ret, struct err *e)
{
    char *text = xasprintf(RELU "// %s\n", more);
    json_t *req = request(text);
    struct build_opts o = opts;
    int rc;

    *e = (struct err)ERR_INIT;
    o.compiler = fake;
    o.no_jail = true;
    rc = build_run(req, &o, ret, e);
    json_decref(req);
    free(text);
    return rc;
}

static void expect_fresh(const char *more)
{
    struct build_result r;
    struct err e;

    if (try_build(more, &r, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(r.ok && !r.cached);
    build_result_free(&r);
}

/* Killed once: nobody notices. Killed each time: it is not the source's fault, and nothing of it is kept. */
static void killed_from_outside(void **s)
{
    struct build_result r;
    struct err e;

    slow();
    fake_compiler("[ -e $d/$unit ] || { : >$d/$unit; kill -9 $$; }\n");
    expect_fresh("once"); /* joined, and both units apart: each of the three */
    fake_compiler("kill -9 $$\n");
    assert_int_equal(try_build("always", &r, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "killed from outside"));
    fake_compiler("");
    expect_fresh("always");
}

/* A source can print what a driver says of a part that was killed: it fails then, but that is not kept. */
static void a_part_was_killed(void **s)
{
    struct build_result r;
    struct err e;

    fake_compiler("echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_build("part", &r, &e), 0);
        assert_false(r.ok || r.cached);
        build_result_free(&r);
    }
    fake_compiler("");
    expect_fresh("part");
}

static void *interrupt(void *arg)
{
    usleep(500000);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

static void an_interrupted_build_is_not_kept(void **s)
{
    static atomic_bool stopped;
    struct build_result r;
    pthread_t thread;
    struct err e;

    fake_compiler("sleep 30\n");
    stop_also(&stopped);
    assert_int_equal(pthread_create(&thread, NULL, interrupt, &stopped), 0);
    assert_int_equal(try_build("stopped", &r, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    pthread_join(thread, NULL);
    atomic_store(&stopped, false);
    fake_compiler("");
    expect_fresh("stopped");
    dir_remove(fake_dir, NULL);
    free(fake_dir);
    free(fake);
}

static void templates_that_never_end(void **s)
{
    struct build_result r = build(request(RELU "template <int N> struct T { static const int v = T<N + 1>::v; };\n"
                                               "int deep() { return T<0>::v; }\n"));

    assert_false(r.ok);
    assert_true(strlen(r.log) < 8192);
    assert_non_null(strstr(json_str(first(&r), "message", ""), "template"));
    build_result_free(&r);
}

/* 2^30 instantiations: no compiler ends in time. */
static void a_slow_compile_is_ended(void **s)
{
    struct build_result r;

    opts.timeout_s = 3;
    r = build(request(RELU "template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * "
                           "M + 1>::v; };\n"
                           "template <int M> struct F<0, M> { static const int v = M; };\n"
                           "int slow() { return F<26, 0>::v; }\n"));
    opts.timeout_s = PATIENT_S;
    assert_false(r.ok);
    assert_true(r.timed_out);
    assert_string_equal(r.error, "compiler exceeded 3 s");
    build_result_free(&r);
}

static void only_macros_pass_from_the_flags(void **s)
{
    json_t *q = request(RELU "static_assert(FOO == 3 && N + T + A + B + C + D == 21, \"\");\n"), *flags;
    struct build_result r;

    /* short names are those of parameters in any header */
    flags = json_pack("[s,s,s,s,s,s,s,s,s,s,s,s]", "-DN=1", "-DT=2", "-DA=3", "-DB=4", "-DC=5", "-DD=6", "-O3",
                      "--use_fast_math", "-DFOO=3", "-fplugin=/nowhere.so", "@/nowhere",
                      "-include/nowhere.h");
    json_object_set_new(q, "extra_cuda_cflags", flags);
    r = build(q);
    assert_true(r.ok);
    build_result_free(&r);
}

static void no_shell_in_flags_or_names(void **s)
{
    json_t *q = request(RELU);
    struct build_result r;
    struct err e = ERR_INIT;

    json_object_set_new(q, "extra_cflags", json_pack("[s]", "-DX='$(touch /tmp/mc_pwned)'; touch /tmp/mc_pwned"));
    r = build(q);
    assert_false(file_exists("/tmp/mc_pwned"));
    build_result_free(&r);
    q = request(RELU);
    json_object_set_new(q, "name", json_string("a; touch /tmp/mc_pwned"));
    assert_int_equal(build_run(q, &opts, &r, &e), -1);
    json_decref(q);
}

static void files_outside_do_not_leak(void **s)
{
    struct build_result r;

    if (opts.no_jail)
        skip();
    r = build(request(RELU "#include \"/etc/shadow\"\n"));
    assert_false(r.ok);
    assert_null(strstr(r.log, "root"));
    build_result_free(&r);
    r = build(request(RELU "__asm__(\".incbin \\\"/etc/shadow\\\"\");\n"));
    assert_false(r.ok);
    build_result_free(&r);
}

static void malformed_requests_are_ours(void **s)
{
    struct build_result r;
    struct err e = ERR_INIT;
    json_t *q = json_pack("{s:s,s:s}", "name", "x", "cuda_sources", "not a list");

    assert_int_equal(build_run(q, &opts, &r, &e), -1);
    json_decref(q);
    q = json_array();
    assert_int_equal(build_run(q, &opts, &r, &e), -1);
    json_decref(q);
}

static void *build_in_thread(void *p)
{
    *(struct build_result *)p = build(request(RELU "// two at once\n"));
    return NULL;
}

static void two_at_once_compile_once(void **s)
{
    struct build_result r[2];
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, build_in_thread, &r[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert_true(r[0].ok && r[1].ok);
    assert_int_equal(r[0].cached + r[1].cached, 1);
    assert_string_equal(r[0].so, r[1].so);
    build_result_free(&r[0]);
    build_result_free(&r[1]);
}

static void log_errors_in_headers_point_to_the_candidate(void **s)
{
    const char *log = "In file included from /x/litetorch/tensor.h:3,\n"
                      "/x/litetorch/tensor.h: In instantiation of 'T g() [with T = int]':\n"
                      "cuda_source:2:7:   required from here\n"
                      "/x/litetorch/tensor.h:40:9: error: static assertion failed\n"
                      "/x/litetorch/tensor.h:40:9: note: blah\n"
                      "cuda_source:3:1: error: expected ';'\n";
    json_t *q = request("one\ntwo\nthree\n"), *d = build_log_parse(log, q);
    char *trim = build_log_trim(log, 4000);

    assert_int_equal(json_array_size(d), 2);
    assert_int_equal(json_i64(json_array_get(d, 0), "line", 0), 2);
    assert_string_equal(json_str(json_array_get(d, 0), "message", ""), "static assertion failed");
    assert_int_equal(json_i64(json_array_get(d, 1), "line", 0), 3);
    assert_null(strstr(trim, "note:"));
    assert_null(strstr(trim, "/x/"));
    free(trim);
    json_decref(d);
    json_decref(q);
}

static void log_errors_in_macros_point_to_their_use(void **s)
{
    const char *log = "/x/dispatch.h:21:58: error: no matching function\n"
                      "/x/dispatch.h:30:1: note: in expansion of macro 'AT_DISPATCH_SWITCH'\n"
                      "cuda_source:2:5: note: in expansion of macro 'AT_DISPATCH_FLOATING_TYPES'\n"
                      "cuda_source:3:5: error: 'n' was not declared in this scope; did you mean '__pstl::n'?\n"
                      "cuda_source:3:9: error: 'k' was not declared in this scope; did you mean '__syncthreads'?\n";
    json_t *q = request("one\ntwo\nthree\n"), *d = build_log_parse(log, q), *first = json_array_get(d, 0);

    assert_int_equal(json_array_size(d), 3);
    assert_non_null(strstr(json_str(json_array_get(d, 2), "message", ""), "did you mean '__syncthreads'?"));
    assert_int_equal(json_i64(first, "line", 0), 2);
    assert_string_equal(json_str(first, "file", ""), "cuda_source");
    assert_string_equal(json_str(first, "message", ""), "no matching function");
    assert_int_equal(json_i64(json_array_get(d, 1), "line", 0), 3);
    // a guess that names what the compiler's own headers hide helps nobody
    assert_string_equal(json_str(json_array_get(d, 1), "message", ""), "'n' was not declared in this scope");
    json_decref(d);
    json_decref(q);
}

static void nvcc_errors_have_line_and_source(void **s)
{
    const char *log = "cuda_source(2): error: identifier \"foo\" is undefined\n      foo();\n      ^\n\n"
                      "/x/litetorch/types.h(58): error: more than one operator matches\n"
                      "          detected during instantiation of \"f\" at line 3 of cuda_source\n\n"
                      "2 errors detected in the compilation of \"cuda.cu\".\n"
                      "ptxas error   : Entry function 'k' uses too much shared data (0x20000 bytes, 0xc000 max)\n";
    json_t *q = request("one\ntwo\nthree\n"), *d = build_log_parse(log, q);

    assert_int_equal(json_array_size(d), 3);
    assert_int_equal(json_i64(json_array_get(d, 0), "line", 0), 2);
    assert_string_equal(json_str(json_array_get(d, 0), "message", ""), "identifier \"foo\" is undefined");
    assert_int_equal(json_array_size(json_object_get(json_array_get(d, 0), "source")), 3);
    assert_int_equal(json_i64(json_array_get(d, 1), "line", 0), 3);
    assert_non_null(strstr(json_str(json_array_get(d, 2), "message", ""), "too much shared data"));
    json_decref(d);
    json_decref(q);
}

/* Of a library's host code only who computes counts, of an image all that kernels may not call. */
static void symbols_are_classed(void **s)
{
    static const char *const computes[] = {"cublasSgemm_v2", "cudnnConvolutionForward", "cufftExecC2C", "cblas_sgemm",
                                           "cusolverDnSgetrf", "_ZN2at6matmulERKNS_6TensorES2_"};
    static const char *const kernels_may[] = {"memcpy", "__expf_finite", "sqrtf", "printf", "simt_shfl_xor_f32",
                                              "__tsan_read4", "threadIdx"};
    static const char *const kernels_may_not[] = {"dlopen", "mmap", "mprotect", "fork", "socket", "open", "syscall",
                                                  "pthread_create", "simt_set_ablation", "simt_findings_json",
                                                  "cblas_sgemm", "PyRun_SimpleString"};

    for (size_t i = 0; i < sizeof computes / sizeof *computes; i++)
        assert_int_equal(audit_symbol(computes[i]), AUDIT_LIBRARY);
    assert_int_equal(audit_symbol("dlopen"), AUDIT_ALLOWED); /* the jail's matter */
    assert_int_equal(audit_symbol("cudaMalloc"), AUDIT_ALLOWED);
    for (size_t i = 0; i < sizeof kernels_may / sizeof *kernels_may; i++)
        assert_int_equal(audit_symbol_image(kernels_may[i]), AUDIT_ALLOWED);
    for (size_t i = 0; i < sizeof kernels_may_not / sizeof *kernels_may_not; i++)
        assert_int_not_equal(audit_symbol_image(kernels_may_not[i]), AUDIT_ALLOWED);
}

static void expect_finding(const struct build_result *r, const char *kind, const char *name)
{
    const json_t *f;
    size_t i;

    json_array_foreach(r->findings, i, f)
        if (!strcmp(json_str(f, "kind", ""), kind) && !strcmp(json_str(f, "name", ""), name))
            return;
    fail_msg("no %s '%s' among the findings; log: %s", kind, name, r->log);
}

/* One source that refers to all of them: builds are slow. What the host alone calls is not in the image. */
static void sim_names_what_an_image_refers_to(void **s)
{
    struct build_result r = build(request(
        RELU "#include <dlfcn.h>\n#include <sys/mman.h>\n"
             "extern \"C\" void simt_set_ablation(int);\n"
             "__global__ void out(void *p) { mprotect(p, 1, 7); simt_set_ablation(0); }\n"
             "void go(torch::Tensor x) { out<<<1, 1>>>(x.data_ptr()); }\n"
             "void *host() { return dlopen(\"libm.so\", 2); }\n"));

    assert_true(r.ok);
    assert_non_null(r.image);
    expect_finding(&r, "unsupported", "mprotect");
    expect_finding(&r, "judge_call", "simt_set_ablation");
    assert_int_equal(json_array_size(r.findings), 2);
    build_result_free(&r);
    r = build(request(RELU));
    assert_int_equal(json_array_size(r.findings), 0);
    build_result_free(&r);
}

static void logs_name_missing_libraries(void **s)
{
    const char *want[] = {"cufftExecC2C", "at::conv2d", "cusparse.h", "torch::nn::functional::LayerNormFuncOptions",
                          "torch::nn::Linear", "torch::nn::", "torch::indexing::Slice"};
    int n = 0;
    static const char log[] =
        "part1.o: in function `f':\ncuda_source:3: undefined reference to `cufftExecC2C'\n"
        "cuda_source:4: undefined reference to `at::conv2d(at::Tensor const&)'\n"
        "cuda_source:5: undefined reference to `relu(at::Tensor)'\n"
        "cuda_source:5: undefined reference to `sgemm_sliced_f32x4(at::Tensor, at::Tensor)'\n" /* anybody's own */
        "cuda_source:5: undefined reference to `cuda_backward(int, float*)'\n"
        "cuda_source:6:10: fatal error: cusparse.h: No such file or directory\n"
        "cuda_source:7:10: fatal error: mine.h: No such file or directory\n"
        "cuda_source(119): error: namespace \"torch::nn::functional\" has no member \"LayerNormFuncOptions\"\n"
        "cuda_source(120): error: namespace \"torch::indexing\" has no member \"Slice\"\n"
        "cuda_source:9: error: 'Linear' is not a member of 'torch::nn'\n' is not a member of 'torch::nn\n"
        "cuda_source:1:10: fatal error: cuda_source: No such file or directory\n" /* #include __FILE__ */
        "namespace \"torch::nn\nfatal error: cut off";
    json_t *f = json_array();

    build_audit_log(log, f);
    for (size_t i = 0; i < json_array_size(f); i++)
        for (size_t k = 0; k < 7; k++)
            if (want[k] && !strcmp(json_str(json_array_get(f, i), "name", ""), want[k]))
                want[k] = NULL, n++;
    assert_int_equal(n, 7);
    assert_int_equal(json_array_size(f), 7);
    json_decref(f);
}

/* A header of thrust alone, or a thread's own algorithm, is no algorithm for a whole array. */
static void headers_alone_convict_nobody(void **s)
{
    static const struct {
        const char *text, *kind;
    } cases[] = {
        {"#include <thrust/sort.h>\n__global__ void k() {}", "lacking"},
        {"thrust::sort(thrust::seq, p, p + 4);", "lacking"},
        {"thrust::transform_iterator<F, float *> it;", "lacking"},
        {"thrust::sort(thrust::device, p, q);", "library_call"},
        {"thrust::reduce (p, q);", "library_call"},
        {"thrust::sort(thrust::seq, p, q); cub::DeviceScan::InclusiveSum(t, n, p, q, m);", "library_call"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *f = json_array();

        build_audit_log("cuda_source:6:10: fatal error: thrust/sort.h: No such file or directory\n", f);
        build_audit_relent(cases[i].text, f);
        assert_string_equal(json_str(json_array_get(f, 0), "kind", ""), cases[i].kind);
        json_decref(f);
    }
}

/* Another library in the place of libm has not its versions: then a machine is unfit; else a program that says so lies.
 */
static void the_linker_says_what_loads(void **s)
{
    char *lib = path_lib("libsimt.so"), *stale = dir_temp("stale", NULL), *libm = path_join(stale, "libm.so.6");
    Dl_info other;
    struct buf b;

    buf_init(&b, 64u << 20);
    assert_true(build_loads(lib));
    assert_false(build_loads("/no/such/library.so"));
    assert_true(dladdr((void *)json_object, &other) && file_read(other.dli_fname, &b, NULL) == 0);
    assert_int_equal(file_write(libm, b.p, b.n, NULL), 0);
    setenv("LD_LIBRARY_PATH", stale, 1);
    assert_false(build_loads(lib));
    unsetenv("LD_LIBRARY_PATH");
    assert_true(build_loads(lib));
    dir_remove(stale, NULL);
    buf_free(&b);
    free(libm);
    free(stale);
    free(lib);
}

static void no_name(const char *name, void *ctx)
{
    (void)name;
    (*(int *)ctx)++;
}

/* Every prefix of a real library, and one with each header byte damaged: no read outside (run under sanitizers too). */
static void audit_of_damaged_files(void **s)
{
    char *path = path_share("build/lib/libsimt.so");
    struct buf b;
    int n = 0;

    buf_init(&b, 64u << 20);
    if (file_read(path, &b, NULL) < 0) {
        free(path);
        skip();
    }
    assert_int_equal(audit_undefined(b.p, b.n, no_name, &n), 0);
    assert_true(n > 10);
    for (size_t k = 0; k < b.n; k += 977)
        audit_undefined(b.p, k, no_name, &n);
    for (size_t k = 0; k < sizeof(Elf64_Ehdr); k++) {
        b.p[k] ^= 0x7f;
        audit_undefined(b.p, b.n, no_name, &n);
        b.p[k] ^= 0x7f;
    }
    buf_free(&b);
    free(path);
}

/* ---- the target cuda: where nvcc is ---- */

/* afresh: what is looked at is how it is built, and not what of. */
static struct build_result cuda_of(json_t *req, bool afresh)
{
    struct build_opts o = opts;
    struct build_result r;
    struct err e = ERR_INIT;

    o.target = "cuda";
    o.cache_dir = afresh ? cache : NULL;
    if (build_run(req, &o, &r, &e) < 0)
        fail_msg("%s", e.msg);
    json_decref(req);
    return r;
}

static struct build_result build_cuda(json_t *req)
{
    return cuda_of(req, false);
}

static bool no_nvcc(void)
{
    struct build_opts o = {.target = "cuda"};
    char *id = build_toolchain_id(&o, NULL);

    free(id);
    return !id;
}

static void cuda_builds_and_names_dropped_flags(void **s)
{
    json_t *q = request(RELU);
    struct build_result r;

    if (no_nvcc())
        skip();
    json_object_set_new(q, "extra_cuda_cflags",
                        json_pack("[s,s,s,s,s,s]", "-O3", "--use_fast_math", "-gencode", "arch=compute_80,code=sm_80",
                                  "-Xptxas -v,-O3", "-ccbin=/nowhere"));
    json_object_set_new(q, "extra_ldflags", json_pack("[s]", "-lcublas"));
    r = build_cuda(q);
    assert_true(r.ok);
    assert_int_equal(json_array_size(r.findings), 0);
    assert_int_equal(json_array_size(r.dropped), 2);
    assert_string_equal(json_string_value(json_array_get(r.dropped, 0)), "-ccbin /nowhere");
    build_result_free(&r);
}

static void cuda_errors_have_a_line(void **s)
{
    struct build_result r;

    if (no_nvcc())
        skip();
    r = build_cuda(request(RELU "int bad() { return missing_name; }\n"));
    assert_false(r.ok);
    assert_int_equal(json_i64(first(&r), "line", 0), 11);
    assert_string_equal(json_str(first(&r), "file", ""), "cuda_source");
    assert_non_null(strstr(json_str(first(&r), "message", ""), "missing_name"));
    build_result_free(&r);
}

static void cuda_names_what_a_library_refers_to(void **s)
{
    struct build_result r;

    slow();
    if (no_nvcc())
        skip();
    r = build_cuda(request(RELU "extern \"C\" int cufftExecC2C(int, void *, void *, int);\n"
                                "int other() { return cufftExecC2C(0, 0, 0, 0); }\n"));
    assert_int_equal(json_array_size(r.findings), 1);
    assert_string_equal(json_str(json_array_get(r.findings, 0), "kind", ""), "library_call");
    build_result_free(&r);
}

/* Templates of kernels, device functions, a class with device code and macros from the flags: the device's half is
 * nvcc's alone. What the host's half cannot be without, nvcc's own front end, brings the whole source back to it. */
#define PARTED                                                                                                 \
    "#include <torch/extension.h>\n#include <cuda_fp16.h>\n"                                                   \
    "struct Op { __device__ float operator()(float a) const { return __expf(a) * FACTOR; } };\n"               \
    "__device__ __forceinline__ float near(float a) { return __shfl_xor_sync(~0u, a, 1); }\n"                  \
    "template <typename T, int N>\nstatic __global__ void __launch_bounds__(256) k(const T *x, T *y, int n) {\n" \
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = N > 2 ? Op()(x[i]) : near(x[i]);\n}\n" \
    "torch::Tensor f(torch::Tensor x) {\n    auto y = torch::empty_like(x);\n" \
    "    int blocks = min(1024, int(x.numel() + 255) / 256);\n" \
    "    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), \"f\", ([&] {\n"                                            \
    "        k<scalar_t, 3><<<blocks, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());\n    }));\n" \
    "    return y;\n}\n"

static void cuda_parts_host_from_device(void **s)
{
    json_t *q = request(PARTED);
    struct build_result r;

    slow();
    if (no_nvcc())
        skip();
    json_object_set_new(q, "extra_cuda_cflags", json_pack("[s,s]", "-O3", "-DFACTOR=2.0f"));
    r = build_cuda(q);
    assert_true(r.ok);
    assert_true(r.split);
    assert_int_equal(json_array_size(r.findings), 0);
    build_result_free(&r);
    r = build_cuda(request(RELU "#ifdef __CUDACC__\nint nvcc_reads_this;\n#endif\n"));
    assert_true(r.ok);
    assert_false(r.split);
    build_result_free(&r);
}

/* Nothing of a candidate runs while it is built. */
static void cuda_constructors_run_at_load_only(void **s)
{
    struct build_result r;

    if (no_nvcc())
        skip();
    unlink("/tmp/mc_built_and_run");
    r = cuda_of(request(RELU "#include <fcntl.h>\nextern \"C\" int creat(const char *, unsigned);\n"
                           "__attribute__((constructor)) void early() { creat(\"/tmp/mc_built_and_run\", 0644); }\n"),
                true);
    assert_false(file_exists("/tmp/mc_built_and_run"));
    build_result_free(&r);
}

static void cuda_hostile_sources_end_soon(void **s)
{
    static const char *const sources[] = {
        RELU "#include \"/dev/zero\"\n",
        RELU "#include \"/etc/shadow\"\n",
        RELU "__asm__(\".incbin \\\"/etc/shadow\\\"\");\n",
        "__device__ int x;\n__global__ void g() { asm volatile(\".incbin \\\"/etc/shadow\\\"\"); }\n" RELU,
        RELU "template <int N> struct T { static const int v = T<N + 1>::v; };\nint deep() { return T<0>::v; }\n",
        // words that double: what comes out of the preprocessor has no end
        RELU "#define A0 1 + 1\n#define A1 A0 + A0 + A0 + A0 + A0 + A0 + A0 + A0\n"
             "#define A2 A1 + A1 + A1 + A1 + A1 + A1 + A1 + A1\n"
        "#define A3 A2 + A2 + A2 + A2 + A2 + A2 + A2 + A2\n#define A4 A3 + A3 + A3 + A3 + A3 + A3 + A3 + A3\n"
        "#define A5 A4 + A4 + A4 + A4 + A4 + A4 + A4 + A4\n#define A6 A5 + A5 + A5 + A5 + A5 + A5 + A5 + A5\n"
        "#define A7 A6 + A6 + A6 + A6 + A6 + A6 + A6 + A6\n#define A8 A7 + A7 + A7 + A7 + A7 + A7 + A7 + A7\n"
        "int words[A8 + A8 + A8 + A8];\n"};
    struct build_result r;

    slow();
    if (no_nvcc() || opts.no_jail)
        skip();
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        opts.timeout_s = i < 4 ? 12 : 5; // the bombs run into it
        r = cuda_of(request(sources[i]), true);
        opts.timeout_s = PATIENT_S;
        if (r.ok || strstr(r.log, "root:") || strlen(r.log) > 8192 || r.ms > 30000)
            fail_msg("source %zu: ok %d, %.0f ms, log %s", i, r.ok, r.ms, r.log);
        build_result_free(&r);
    }
}

static void logs_of_garbage(void **s)
{
    static const char *const logs[] = {"", "\n\n", ":", ":::", "a:", "a:1", "a:1:", "a:99999999999999:1: error: x",
                                       "a(1", "a(1)", "a(99999999999999): error: x", "at line 3 of",
                                       "error: error: error:", ": error: ", "undefined reference to"};
    json_t *q = request("x");

    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        json_decref(build_log_parse(logs[i], q));
        free(build_log_trim(logs[i], 10));
    }
    json_decref(q);
}

static int serve(void)
{
    json_t *q = json_loadf(stdin, 0, NULL), *reply;
    struct build_result r;
    struct err e = ERR_INIT;

    if (!q || build_run(q, &opts, &r, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        return 3;
    }
    reply = build_reply(&r);
    json_object_set_new(reply, "ms", json_real(r.ms));
    json_object_set_new(reply, "cached", json_boolean(r.cached));
    json_object_set_new(reply, "split", json_boolean(r.split));
    json_object_set(reply, "findings", r.findings);
    json_object_set(reply, "dropped", r.dropped);
    json_object_set(reply, "diagnostics", r.diagnostics);
    json_dumpf(reply, stdout, 0);
    json_decref(reply);
    json_decref(q);
    build_result_free(&r);
    return 0;
}

/* A precompiled header holds what its templates become: an error in one shows when the header is made, where a g++ left
 * to itself finds it in each unit behind it. Only g++ takes the plugin. */
static void headers_make_their_templates_once(void **s)
{
    char *plugin = path_share("litetorch/include/litetorch/early_templates.c");
    struct buf line;

    buf_init(&line, 1 << 14);
    buf_addf(&line, "cd '%s' && g++ -x c -fPIC -shared -o early.so '%s' && printf '%%s\\n' "
                    "'template <class T> T f(T x) { static_assert(sizeof(T) == 0, \"\"); return x; }' "
                    "'inline int g() { return f(1); }' '#pragma litetorch instantiate' >early.h", cache, plugin);
    assert_int_equal(system(line.p), 0);
    line.n = 0;
    buf_addf(&line, "cd '%s' && g++ -x c++-header early.h -o early.gch && "
                    "! g++ -fplugin=./early.so -x c++-header early.h -o early.gch 2>early.txt && "
                    "grep -q 'static assertion failed' early.txt", cache);
    assert_int_equal(system(line.p), 0);
    buf_free(&line);
    free(plugin);
}

/* mcnvrtc writes code of what compiles, and says no to the rest. */
static void nvrtc_compiles_or_says_no(void **s)
{
    char *tool = path_lib("mcnvrtc"), *lib = "/usr/local/cuda/lib64/libnvrtc.so";
    struct buf line;

    if (no_nvcc() || !file_exists(lib))
        skip();
    assert_non_null(tool);
    buf_init(&line, 1 << 14);
    buf_addf(&line, "cd '%s' && printf '%%s\\n' '#include <cmath>' "
                    "'__global__ void k(float *x) { *x = -INFINITY * M_PI; }' >good.cu && "
                    "echo '#include <vector>' >bad.cu && "
                    "'%s' %s good.cu good -arch=sm_90 -std=c++17 && grep -q '[.]entry _Z1kPf' good.ptx && "
                    "head -c 4 good.cubin | grep -q ELF && ! '%s' %s bad.cu bad -arch=sm_90 2>/dev/null && "
                    "! [ -e bad.ptx ]", cache, tool, lib, tool, lib);
    assert_int_equal(system(line.p), 0);
    buf_free(&line);
    free(tool);
}

/* NVRTC goes first wherever the toolkit has it, unless a variable says no. */
static void nvrtc_is_on_unless_it_is_off(void **s)
{
    struct toolchain with = {.home = "/usr/local/cuda"}, without = with;
    struct sha256 h;
    char name[65];

    if (no_nvcc() || !file_exists("/usr/local/cuda/lib64/libnvrtc.so"))
        skip();
    sha256_start(&h);
    unsetenv("MUSACODER_CUDA_NVRTC");
    build_nvrtc_find(&with, &h);
    setenv("MUSACODER_CUDA_NVRTC", "0", 1);
    build_nvrtc_find(&without, &h);
    unsetenv("MUSACODER_CUDA_NVRTC");
    sha256_end(&h, name);
    assert_true(with.nvrtc && !without.nvrtc);
    free(with.nvrtc);
}

static int make_cache(void **s)
{
    cache = dir_temp("musacoder-build", NULL);
    opts.cache_dir = cache;
    return cache ? 0 : -1;
}

static int drop_cache(void **s)
{
    int rc = dir_remove(cache, NULL);

    free(cache);
    return rc;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_make_their_templates_once),
        cmocka_unit_test(nvrtc_compiles_or_says_no),
        cmocka_unit_test(nvrtc_is_on_unless_it_is_off),
        cmocka_unit_test(builds_once_then_hits_the_cache),
        cmocka_unit_test(first_error_has_line_and_source),
        cmocka_unit_test(every_header_that_passes_on_is_found),
        cmocka_unit_test(undeclared_function_is_refused_as_torch_does),
        cmocka_unit_test(declared_but_undefined_is_a_link_error),
        cmocka_unit_test(killed_from_outside),
        cmocka_unit_test(a_part_was_killed),
        cmocka_unit_test(an_interrupted_build_is_not_kept),
        cmocka_unit_test(templates_that_never_end),
        cmocka_unit_test(a_slow_compile_is_ended),
        cmocka_unit_test(only_macros_pass_from_the_flags),
        cmocka_unit_test(no_shell_in_flags_or_names),
        cmocka_unit_test(files_outside_do_not_leak),
        cmocka_unit_test(malformed_requests_are_ours),
        cmocka_unit_test(two_at_once_compile_once),
        cmocka_unit_test(log_errors_in_headers_point_to_the_candidate),
        cmocka_unit_test(log_errors_in_macros_point_to_their_use),
        cmocka_unit_test(logs_of_garbage),
        cmocka_unit_test(nvcc_errors_have_line_and_source),
        cmocka_unit_test(symbols_are_classed),
        cmocka_unit_test(sim_names_what_an_image_refers_to),
        cmocka_unit_test(logs_name_missing_libraries),
        cmocka_unit_test(headers_alone_convict_nobody),
        cmocka_unit_test(the_linker_says_what_loads),
        cmocka_unit_test(audit_of_damaged_files),
        cmocka_unit_test(cuda_builds_and_names_dropped_flags),
        cmocka_unit_test(cuda_errors_have_a_line),
        cmocka_unit_test(cuda_names_what_a_library_refers_to),
        cmocka_unit_test(cuda_parts_host_from_device),
        cmocka_unit_test(cuda_constructors_run_at_load_only),
        cmocka_unit_test(cuda_hostile_sources_end_soon),
    };

    opts.timeout_s = PATIENT_S;
    opts.no_jail = !jail_probe || !jail_probe()->enough;
    // "build [--no-cache|--cache] [TARGET [--whole]]": a request on stdin
    opts.no_cache = argc > 2 && !strcmp(argv[2], "--no-cache");
    if (argc > 1 && !strcmp(argv[1], "build")) {
        opts.target = argc > 3 ? argv[3] : NULL;
        opts.whole = argc > 4 && !strcmp(argv[4], "--whole");
        return serve();
    }
    return cmocka_run_group_tests(tests, make_cache, drop_cache);
}
