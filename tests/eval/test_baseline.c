/* test_baseline.c - a candidate is stopped while its task's baseline answers: the process is given up, for nobody may
 * read that answer, and nothing is known of the task that was not known before. One that dies by itself is the task's
 * matter. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/perf/baseline.h"

static struct forkserver *fs;
static struct schedule schedule;
static const struct measure_plan plan = {.calls = 1};

static int start(void **state)
{
    struct forkserver_spec s = {.no_jail = true};
    struct err e = ERR_INIT;
    char *python = path_python(&e);

    (void)state;
    free(python);
    if (!python) {
        print_message("skipped: %s\n", e.msg);
        exit(0);
    }
    schedule_init(&schedule, 0, 4);
    return forkserver_start(&s, &fs, &e);
}

static int stop(void **state)
{
    (void)state;
    forkserver_stop(fs);
    schedule_free(&schedule);
    return 0;
}

/* With a child of another role: it takes requests, and its answers come too late. */
static void make(struct baseline *b)
{
    struct child_spec spec = {.role = "streamed"};
    struct err e = ERR_INIT;

    *b = (struct baseline){.key = "k", .users = 1};
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->shown.lock, NULL);
    pthread_cond_init(&b->shown.change, NULL);
    if (forkserver_spawn(fs, &spec, &b->child, &e) < 0)
        fail_msg("%s", e.msg);
}

static void library(struct baseline *b)
{
    baseline_library(b);
}

static void time_library(struct baseline *b)
{
    b->library_made = true;
    baseline_time_library(b, &plan);
}

static void time_compiled(struct baseline *b)
{
    b->compile_made = true;
    baseline_time_compiled(b, "default", &plan);
}

static void compile(struct baseline *b)
{
    struct err e = ERR_INIT;

    b->compiling = true;
    assert_int_equal(baseline_compile(b, "default", &schedule, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    assert_false(b->compiling);
}

static void rest(struct baseline *b)
{
    baseline_rest(b);
}

static void test_stopped(void **state)
{
    static void (*const steps[])(struct baseline *b) = {library, time_library, time_compiled, compile, rest};
    static const atomic_bool stopped = true;
    struct baseline b;

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        make(&b);
        assert_int_equal(kill(b.child->pid, SIGSTOP), 0); /* it answers nothing, however fast it is */
        stop_also(&stopped);
        steps[i](&b);
        stop_also(NULL);
        if (b.child || b.library_known || b.compile_known || b.library_made || b.compile_made || b.compile_error)
            fail_msg("step %zu: child %p, library %d %d, compile %d %d '%s'", i, (void *)b.child, b.library_known,
                     b.library_made, b.compile_known, b.compile_made, b.compile_error ? b.compile_error : "");
    }
}

static void test_died(void **state)
{
    struct child_end end;
    struct baseline b;
    struct err e = ERR_INIT;

    (void)state;
    make(&b);
    child_kill(b.child);
    assert_int_equal(child_wait(b.child, now_s() + 10, &end, &e), 0);
    buf_free(&end.output);
    b.compiling = true;
    assert_int_equal(baseline_compile(&b, "default", &schedule, &e), 0);
    assert_null(b.child);
    assert_true(b.compile_known);
    assert_string_equal(b.compile_error, "Crash: torch.compile ended its process");
    free(b.compile_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped), cmocka_unit_test(test_died)};
    char folder[] = "/tmp/test_baseline.XXXXXX";
    int failed;

    if (!mkdtemp(folder))
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    failed = cmocka_run_group_tests(tests, start, stop);
    dir_remove(folder, NULL);
    return failed;
}
