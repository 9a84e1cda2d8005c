/* test_lack.c - whose fault is a build that failed? The sentences in which compilers miss a name, and every name of the
 * CUDA toolkit in the emulator's headers: a use of each works, or is known to be lacking. */
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

/* A use of each name that is no macro here, each on the line of its place in the list. It is a declaration, which costs
 * g++ no search for names that are alike. */
static void write_uses(const char *path, const struct buf *list)
{
    FILE *f = fopen(path, "w");
    int line = 1;

    assert_non_null(f);
    fputs("#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n"
          "#include <curand_kernel.h>\n#include <cuda_pipeline.h>\n#include <mma.h>\n", f);
    for (const char *s = list->p; *s; line++) {
        size_t n = strcspn(s, "\n");

        if (is_word(s, n))
            fprintf(f, "#ifndef %.*s\n#line %d \"names\"\nusing ::%.*s;\n#endif\n", (int)n, s, line, (int)n, s);
        s += n + (s[n] == '\n');
    }
    fclose(f);
}

static void compile_uses(const char *path, struct buf *log)
{
    char *include = path_share("simt/include"), *lite = path_share("litetorch/sim"), command[4096];
    char *argv[] = {"sh", "-c", command, NULL};
    struct proc_spec s = {.argv = argv, .timeout_s = 300};
    struct proc_result r;

    snprintf(command, sizeof command, "g++ -x c++ -std=gnu++17 -w -fsyntax-only "
             "-fmax-errors=0 -fdiagnostics-color=never -fno-diagnostics-show-caret "
             "-I%s -I%s %s", include, lite, path);
    assert_int_equal(proc_run(&s, &r, NULL), 0);
    buf_add(log, r.err.p, r.err.n);
    proc_result_free(&r);
    free(include);
    free(lite);
}

/* Every error that says a name is not there must be told as a lack; others are of words that 'using' does not take. */
static void test_toolkit(void **state)
{
    char path[] = "/tmp/lack-XXXXXX", *names = path_share("litetorch/names/cuda.txt");
    struct buf list, log;
    int fd = mkstemp(path), missing = 0;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    buf_init(&list, 4 << 20);
    buf_init(&log, 16 << 20);
    assert_int_equal(file_read(names, &list, NULL), 0);
    write_uses(path, &list);
    compile_uses(path, &log);
    for (char *s = log.p, *end; *s; s = end + (*end == '\n')) {
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
    assert_true(missing > 100); /* else nothing was compiled */
    assert_null(strstr(log.p, L "__shfl_sync" R " has not been declared"));
    unlink(path);
    free(names);
    buf_free(&list);
    buf_free(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_own_mistakes),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_toolkit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
