/* test_recording.c - which executor a life gets, over a driver without a GPU (build/lib/libfakecuda.so), and what it
 * keeps of its front's report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "eval/server/executors.h"
#include "eval/candidate/job.h"
#include "eval/candidate/recording.h"

#define GIB ((uint64_t)1 << 30)

static struct executor *take(struct executors *all, uint64_t own, uint64_t plan)
{
    const struct executor_options o = {.backend = "cuda", .memory = own, .timeout_s = 60};
    struct executor *x = NULL;
    struct err e = ERR_INIT;
    int fds[2];

    if (executors_take(all, &o, plan, &x, fds, &e) < 0)
        fail_msg("%s", e.msg);
    close(fds[0]), close(fds[1]);
    return x;
}

/* One that was started while others held the device's memory offers less than a later plan says. */
static void test_an_idle_executor_is_large_enough(void **state)
{
    struct executors all;
    struct executor *x;

    (void)state;
    char *kernels = path_lib("exec.fatbin");

    free(kernels);
    if (!kernels)
        skip(); /* made by nvcc; there is none here */
    executors_init(&all, true);
    executors_give(&all, take(&all, GIB, 0), true);
    assert_int_equal(all.n, 1);
    x = take(&all, 0, 4 * GIB);
    assert_int_equal(executor_info(x)->memory, 4 * GIB);
    executors_give(&all, x, true);
    assert_ptr_equal(take(&all, 0, 2 * GIB), x);
    executor_stop(x);
}

static void test_a_refused_launch_behind_many_notes(void **state)
{
    struct recording l = {.notes = json_array()};
    struct job j = {.recording = &l, .findings = json_array()};
    json_t *notes = json_array(), *head = json_pack("{s:o}", "notes", notes);

    (void)state;
    for (int i = 0; i < 256; i++)
        json_array_append_new(notes, json_pack("{s:s,s:s,s:b}", "kind", "operator", "name", "view", "forward", 1));
    json_array_append_new(notes, json_pack("{s:s,s:s,s:s,s:b}", "kind", "launch_error", "name", "k", "message",
                                           "a block has at most 1024 threads", "forward", 1));
    recording_take_report(&j, head);
    assert_int_equal(json_array_size(l.notes), 256);
    assert_true(recording_blame_launch(&j));
    assert_int_equal(json_array_size(j.findings), 1);
    json_decref(l.refused_launch), json_decref(l.notes), json_decref(j.findings), json_decref(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_executor_is_large_enough),
        cmocka_unit_test(test_a_refused_launch_behind_many_notes),
    };

    char *driver = path_lib("libfakecuda.so");

    setenv("MUSACODER_LIBCUDA", driver, 1);
    free(driver);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
