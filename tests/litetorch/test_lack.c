/* test_lack.c - whose fault is a build that failed? The sentences in which compilers miss a name, and every name of the
 * CUDA toolkit in the emulator's headers and of PyTorch's C++ in litetorch's: a use of each works, or is known to be
 * lacking. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "eval/build/build_lack.h"
#include "proc/proc.h"

#define L "\xe2\x80\x98"
#define R "\xe2\x80\x99"

static void note(const char *name, void *ctx)
{
    buf_addf(ctx, "%s;", name);
}

/* What the log of one error misses; "": nothing of ours. */
static void misses(const char *log, const char *want)
{
    struct buf got;

    buf_init(&got, 1 << 16);
    build_lack_names(log, note, &got);
    assert_string_equal(got.n ? got.p : "", want);
    buf_free(&got);
}

static void test_sentences(void **state)
{
    (void)state;
    misses("cuda_source:3:5: error: " L "__vadd4" R " was not declared in this scope\n", "__vadd4;");
    misses("a:3:5: error: " L "CUDAEvent" R " is not a member of " L "at::cuda" R "; did you mean " L "x" R "?\n",
           "at::cuda::CUDAEvent;");
    misses("a:1:2: error: " L "class at::Tensor" R " has no member named " L "expect_contiguous" R "\n",
           "at::Tensor::expect_contiguous;");
    misses("a:1:2: error: " L "Slice" R " in namespace " L "torch::indexing" R " does not name a type\n",
           "torch::indexing::Slice;");
    misses("a:1:2: error: " L "torch::special" R " has not been declared\n", "torch::special;");
    misses("a:1:2: error: " L "broadcast_to" R " has not been declared in " L "at" R "\n", "at::broadcast_to;");
    misses("a:1:2: error: " L "this_cluster" R " is not a member of " L "cooperative_groups" R "\n",
           "cooperative_groups::this_cluster;");
    misses("a:1:2: error: " L "torch::Tensor" R " {aka " L "class at::Tensor" R "} has no member named " L
           "expect_contiguous" R "\n", "torch::Tensor::expect_contiguous;");
    misses("a:1:2: error: invalid use of incomplete type " L "struct torch::autograd::Function<F>" R "\n",
           "torch::autograd::Function;");
    misses("a(3): error: identifier \"tex2D\" is undefined\n", "tex2D;");
    misses("a(3): error: namespace \"c10\" has no member \"InferenceMode\"\n", "c10::InferenceMode;");
    misses("a:1:2: error: " L "struct cudaDeviceProp" R " has no member named " L "maxSurface1D" R "\n",
           "cudaDeviceProp::maxSurface1D;");
}

static void test_own_mistakes(void **state)
{
    static const char *const own[] = {
        "cuda_source:3:5: error: " L "relu6000" R " was not declared in this scope\n",
        "cuda_source:3:5: error: " L "stream" R " was not declared in this scope\n",
        "cuda_source:3:5: error: " L "num_rows" R " was not declared in this scope\n",
        "source:3:5: error: " L "C10_CUDA_KERNEL_LAUNCH_CHECK" R " was not declared in this scope\n", /* not included */
        "a:1:2: error: " L "class at::Tensor" R " has no member named " L "frobnicate" R "\n",
        "a:1:2: error: " L "frobnicate" R " is not a member of " L "torch" R "\n",
        "a:1:2: error: " L "struct Mine" R " has no member named " L "expect_contiguous" R "\n",
        "a:1:2: error: expected " L ";" R " before " L "CUDAEvent" R "\n",
        "a:1:2: note: " L "__vadd4" R " was not declared in this scope\n",
        "a:1:2: error: cannot convert " L "at::Tensor" R " to " L "float*" R "\n", "error: ", "", "\n\n"};

    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        misses(own[i], "");
}

static void test_headers(void **state)
{
    (void)state;
    assert_true(build_lack_header("ATen/native/Resize.h"));
    assert_true(build_lack_header("cuda_fp4.h"));
    assert_true(build_lack_header("nvtx3/nvToolsExt.h"));
    assert_false(build_lack_header("act.h"));
    assert_false(build_lack_header("cuda_source"));
}

/* ---- all names of the toolkit ---- */

static bool is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false;
    return n > 0;
}

static const char toolkit_headers[] =
    "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n"
    "#include <curand_kernel.h>\n#include <cuda_pipeline.h>\n#include <mma.h>\n";
static const char torch_headers[] = "#include <torch/extension.h>\n#include \"litetorch/cuda.h\"\n";

/* Where names are looked for; "" is the global scope. */
static const char *const toolkit_scopes[] = {"", NULL};
static const char *const torch_scopes[] = {"at::", "torch::", "c10::", "at::cuda::", NULL};

/* A use of each name that is no macro here, each on the line of its place in the list. It is a declaration, which costs
 * g++ no search for names that are alike. */
static void write_uses(const char *path, const struct buf *list, const char *headers, const char *const *scopes)
{
    FILE *f = fopen(path, "w");
    int line = 1;

    assert_non_null(f);
    fputs(headers, f);
    for (const char *s = list->p; *s; line++) {
        size_t n = strcspn(s, "\n");

        if (is_word(s, n))
            fprintf(f, "#ifndef %.*s\n#line %d \"names\"\n", (int)n, s, line);
        for (size_t i = 0; is_word(s, n) && scopes[i]; i++)
            fprintf(f, "using ::%s%.*s;", scopes[i], (int)n, s);
        if (is_word(s, n))
            fputs("\n#endif\n", f);
        s += n + (s[n] == '\n');
    }
    fclose(f);
}

/* A use of each qualified name of a list of 'name count'. */
static void write_qualified(const char *path, const struct buf *list)
{
    FILE *f = fopen(path, "w");
    int line = 1;

    assert_non_null(f);
    fputs(torch_headers, f);
    for (const char *s = list->p; *s; line++) {
        size_t n = strcspn(s, "\n"), name = strcspn(s, " \n");

        fprintf(f, "#line %d \"names\"\nnamespace used%d { using ::%.*s; }\n", line, line, (int)name, s);
        s += n + (s[n] == '\n');
    }
    fclose(f);
}

static void compile_uses(const char *path, struct buf *log)
{
    char *include = path_share("simt/include"), *lite = path_share("litetorch/sim"), command[4096];
    char *torch = path_share("litetorch/include"), *argv[] = {"sh", "-c", command, NULL};
    struct proc_spec s = {.argv = argv, .timeout_s = 300, .max_err = (size_t)64 << 20};
    struct proc_result r;

    snprintf(command, sizeof command, "g++ -x c++ -std=gnu++20 -w -fsyntax-only "
             "-fmax-errors=0 -fdiagnostics-color=never -fno-diagnostics-show-caret "
             "-I%s -I%s -I%s %s", include, lite, torch, path);
    assert_int_equal(proc_run(&s, &r, NULL), 0);
    buf_add(log, r.err.p, r.err.n);
    proc_result_free(&r);
    free(include);
    free(torch);
    free(lite);
}

/* Every error that says a name is not there must be told as a lack; others are of words that 'using' does not take. How
 * many there are. */
static int all_told(const struct buf *log)
{
    int missing = 0;

    for (char *s = log->p, *end; *s; s = end + (*end == '\n')) {
        struct buf got;
        char *line;

        end = s + strcspn(s, "\n");
        line = strndup(s, (size_t)(end - s));
        buf_init(&got, 1 << 16);
        build_lack_names(line, note, &got);
        if (strstr(line, "error: ") && (strstr(line, "not declared") || strstr(line, "not been declared"))) {
            missing++;
            if (!got.n)
                fail_msg("not told as a lack: %s", line);
        }
        buf_free(&got);
        free(line);
    }
    return missing;
}

struct uses {
    char path[32];
    struct buf list, log;
};

static void uses_open(struct uses *u, const char *names)
{
    char *at = path_share(names);
    int fd;

    strcpy(u->path, "/tmp/lack-XXXXXX");
    fd = mkstemp(u->path);
    assert_true(fd >= 0);
    close(fd);
    buf_init(&u->list, 4 << 20);
    buf_init(&u->log, 64 << 20);
    assert_int_equal(file_read(at, &u->list, NULL), 0);
    free(at);
}

static void uses_close(struct uses *u)
{
    unlink(u->path);
    buf_free(&u->list);
    buf_free(&u->log);
}

static void test_toolkit(void **state)
{
    struct uses u;

    (void)state;
    uses_open(&u, "litetorch/names/cuda.txt");
    write_uses(u.path, &u.list, toolkit_headers, toolkit_scopes);
    compile_uses(u.path, &u.log);
    assert_true(all_told(&u.log) > 100); /* else nothing was compiled */
    assert_null(strstr(u.log.p, L "__shfl_sync" R " has not been declared"));
    uses_close(&u);
}

static void test_torch(void **state)
{
    struct uses u;

    (void)state;
    uses_open(&u, "litetorch/names/torch.txt");
    write_uses(u.path, &u.list, torch_headers, torch_scopes);
    compile_uses(u.path, &u.log);
    assert_false(u.log.cut);
    assert_true(all_told(&u.log) > 40000);
    assert_null(strstr(u.log.p, L "empty_like" R " has not been declared in " L "at" R));
    uses_close(&u);
}

enum { LACKING_MOST = 40 }; /* of the 200 names that public extensions use most */

static void test_torch_used(void **state)
{
    struct uses u;
    int missing;

    (void)state;
    uses_open(&u, "litetorch/names/torch_used.txt");
    write_qualified(u.path, &u.list);
    compile_uses(u.path, &u.log);
    missing = all_told(&u.log);
    print_message("%d of the names that public extensions use most are lacking\n", missing);
    assert_true(missing > 0 && missing <= LACKING_MOST);
    uses_close(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_own_mistakes),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_toolkit),
        cmocka_unit_test(test_torch), cmocka_unit_test(test_torch_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
