/* test_admit.c - jobs on a small device (build/lib/libfakecuda.so), from admission to their last try: memory runs out,
 * is claimed, found to suffice, noted, and the next time nothing runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "eval/process/backend.h"
#include "eval/process/desk.h"
#include "eval/schedule/admit.h"
#include "proc/memory.h"

#define MIB ((size_t)1 << 20)
#define JOBS 8

static struct desk desk;
static void (*fake_memory)(size_t n);

struct job {
    struct admit a;
    const char *task;
    size_t need, host; /* bytes of the device; noted of the machine */
    bool kills;        /* its machine has no memory for it beside others */
    bool tells;        /* it knows what it needs before it takes it, as a reference's process does */
    int tries;
    enum retry_step how;
    struct try_seen seen;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside, most, gave_way;

static int enter(int by)
{
    int n;

    pthread_mutex_lock(&lock);
    n = inside += by;
    most = n > most ? n : most;
    pthread_mutex_unlock(&lock);
    return n;
}

static void give_way(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    gave_way++;
    pthread_mutex_unlock(&lock);
}

/* What the pipeline does to memory: takes it for a while; a verdict if it was there. */
static void work(struct job *j, enum retry_step how, struct room *room, struct err *e)
{
    struct device_buf b = {0};
    struct room_need need = {.own = j->need, .shared = 1};
    int n = enter(1);

    if (j->tells) {
        usleep(60000); /* meanwhile others come, who know nothing */
        room_note_estimate(j->task, "strict", &need);
    }
    if (j->tells && !room_grow(room, &need) && how == RETRY_AGAIN) {
        err_set(e, ERR_ENV, "others have it");
        err_lack(e, LACK_DEVICE);
    } else if (j->kills && n > 1) {
        err_set(e, ERR_ENV, "the process died");
        err_lack(e, LACK_HOST);
    } else if (desk_alloc(&desk, j->need, DEVICE_PLAIN, &b, e) == 0) {
        usleep(60000);
        desk_free(&desk, &b);
        room_note(j->task, "strict", &(struct room_need){.own = j->need, .shared = 1, .host_own = j->host, .host_shared = 1});
    }
    enter(-1);
}

static void once(void *ctx, enum retry_step how, struct try_seen *seen)
{
    struct job *j = ctx;
    struct err e = ERR_INIT;
    struct room room = {0};

    j->tries++;
    *seen = (struct try_seen){.shared = true};
    if (admit_enter(&j->a, j->task, "strict", how, &room, &e) == 0)
        work(j, how, &room, &e);
    seen->learned = admit_learned(j->task, "strict", &room);
    admit_leave(&j->a, &room);
    seen->end = e.kind == ERR_NONE ? TRY_VERDICT : TRY_INFRA;
    seen->lack = e.lack;
}

static void *judge(void *arg)
{
    struct job *j = arg;

    j->how = retry_run(once, NULL, j, &j->seen);
    return NULL;
}

static void run(struct job *jobs, int n)
{
    pthread_t t[JOBS];

    most = gave_way = 0;
    for (int i = 0; i < n; i++) {
        jobs[i].tries = 0;
        assert_int_equal(pthread_create(&t[i], NULL, judge, &jobs[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(inside, 0);
}

static struct job job(const char *task, const char *device, size_t need)
{
    return (struct job){.a = {.device = device, .budget = 100 * MIB, .settle_s = 0.01, .give_way = give_way}, .task = task,
                        .need = need};
}

static int tries_of(const struct job *jobs, int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        sum += jobs[i].tries;
    return sum;
}

/* Nobody knows that they are large, and they run into each other; all get a verdict. Then it is known. */
static void large_jobs_find_room(void **state)
{
    struct job jobs[JOBS];

    (void)state;
    fake_memory(110 * MIB);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = job("large", "gpu", 45 * MIB);
    run(jobs, JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].seen.end, TRY_VERDICT);
    assert_true(tries_of(jobs, JOBS) > JOBS); /* else this test is none */
    assert_true(gave_way > 0);
    run(jobs, JOBS);
    assert_int_equal(tries_of(jobs, JOBS), JOBS);
    assert_int_equal(most, 2); /* side by side, as many as there is room for */
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].how, RETRY_AGAIN);
}

/* They say what they need before they take it: those that do not fit wait for as much, nobody for the whole device. */
static void who_knows_its_size(void **state)
{
    struct job jobs[JOBS], other = job("holds", "gpu", MIB);
    struct room room = {0};
    struct err e = ERR_INIT;
    int known = 0;

    (void)state;
    fake_memory(110 * MIB);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = job("tells", "gpu", 45 * MIB);
        jobs[i].tells = true;
    }
    assert_int_equal(admit_enter(&other.a, "holds", "strict", RETRY_AGAIN, &room, &e), 0);
    run(jobs, JOBS); /* beside somebody: nobody could be alone, and this would hang */
    admit_leave(&other.a, &room);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].seen.end, TRY_VERDICT);
        assert_true(jobs[i].how <= RETRY_KNOWN);
        known += jobs[i].how == RETRY_KNOWN;
    }
    assert_true(known > 0); /* else this test is none */
    assert_int_equal(gave_way, 0);
}

/* More than the device has: found out alone, and said. Those beside it are not harmed. */
static void a_job_that_never_fits(void **state)
{
    struct job jobs[3] = {job("huge", "gpu", 200 * MIB), job("small", "gpu", 2 * MIB), job("small", "gpu", 2 * MIB)};

    (void)state;
    fake_memory(110 * MIB);
    run(jobs, 3);
    assert_int_equal(jobs[0].seen.end, TRY_INFRA);
    assert_int_equal(jobs[0].seen.lack, LACK_DEVICE);
    assert_int_equal(jobs[0].tries, RETRY_TRIES);
    assert_true(retry_is_final(jobs[0].how, &jobs[0].seen));
    assert_int_equal(jobs[1].seen.end, TRY_VERDICT);
    assert_int_equal(jobs[2].seen.end, TRY_VERDICT);
}

/* The machine's memory ran out: the next try has it all, whatever devices the others are on. */
static void a_machine_for_one(void **state)
{
    struct job jobs[JOBS];
    int healed = 0;

    (void)state;
    fake_memory((size_t)1 << 40);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = job("killed", i % 2 ? "gpu" : "other", MIB);
        jobs[i].kills = i < 4;
    }
    run(jobs, JOBS);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].seen.end, TRY_VERDICT);
        healed += jobs[i].how == RETRY_ALL;
    }
    assert_true(healed > 0); /* else this test is none */
}

/* Known to take most of the machine: one at a time, on two devices that have room for both. */
static void large_on_the_machine(void **state)
{
    struct job jobs[2] = {job("wide", "gpu", MIB), job("wide", "other", MIB)};

    (void)state;
    for (int i = 0; i < 2; i++)
        jobs[i].host = (size_t)(room_host_budget(memory_left("")) / 5 * 4);
    run(jobs, 1);
    run(jobs, 2);
    assert_int_equal(most, 1);
    jobs[0].task = jobs[1].task = "narrow";
    jobs[0].host = jobs[1].host = MIB;
    run(jobs, 1);
    run(jobs, 2);
    assert_int_equal(most, 2);
}

/* The cuda backend looks for its kernels in lib/ beside the program; the fake driver takes any text for them. */
static bool fake_gpu(void)
{
    char exe[PATH_MAX], *lib, *path, *driver = path_lib("libfakecuda.so");
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    void *so = driver ? dlopen(driver, RTLD_NOW) : NULL;
    struct err e = ERR_INIT;

    exe[n < 0 ? 0 : n] = 0;
    *strrchr(exe, '/') = 0;
    lib = path_join(exe, "lib");
    path = path_join(lib, "judge.fatbin");
    if (!so || dir_make(lib, &e) < 0 || file_write(path, "fake", 5, &e) < 0)
        return false;
    *(void **)&fake_memory = dlsym(so, "fake_memory");
    setenv("MUSACODER_LIBCUDA", driver, 1);
    setenv("MUSACODER_LIBNVML", "libno-nvml.so.1", 1);
    free(path);
    free(lib);
    free(driver);
    return fake_memory != NULL;
}

/* Others have the device's memory when a task's desk is opened: the next try may find it. */
static void a_desk_for_which_there_is_no_room(void **state)
{
    static struct desk_set set;
    struct err e = ERR_INIT;

    (void)state;
    desk_set_init(&set);
    assert_int_equal(desk_open(&set.each[0], &backend_cuda, &e), 0);
    fake_memory(0);
    assert_int_equal(desk_open(&set.each[1], &backend_cuda, &e), -1);
    assert_int_equal(e.lack, LACK_DEVICE);
    assert_int_equal(desk_open(&set.each[0], &backend_cuda, &e), 0);
    fake_memory((size_t)1 << 40);
    assert_int_equal(desk_open(&set.each[1], &backend_cuda, &e), 0);
    desk_set_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_desk_for_which_there_is_no_room),
        cmocka_unit_test(large_jobs_find_room),
        cmocka_unit_test(who_knows_its_size),
        cmocka_unit_test(a_job_that_never_fits),
        cmocka_unit_test(a_machine_for_one),
        cmocka_unit_test(large_on_the_machine),
    };
    char folder[] = "/tmp/test_admit.XXXXXX";
    int failed;

    if (!mkdtemp(folder) || !fake_gpu())
        return 1;
    setenv("MUSACODER_CACHE_DIR", folder, 1);
    desk_init(&desk);
    if (desk_open(&desk, &backend_cuda, NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    desk_close(&desk);
    dir_remove(folder, NULL);
    return failed;
}
