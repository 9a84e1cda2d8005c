/* test_memory.c - what is left of a machine's memory, on machines of the test's own: with cgroups of either kind, in
 * containers and outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "proc/memory.h"

#define MIB ((uint64_t)1 << 20)

static char *root;

static int make_root(void **state)
{
    (void)state;
    return (root = dir_temp("test-memory", NULL)) ? 0 : -1;
}

static int drop_root(void **state)
{
    (void)state;
    dir_remove(root, NULL);
    free(root);
    return 0;
}

static void have(const char *at, const char *text)
{
    char *path = xasprintf("%s/%s", root, at), *slash = strrchr(path, '/');

    *slash = 0;
    assert_int_equal(dir_make(path, NULL), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

#define MEMINFO "MemTotal:       2097152 kB\nMemFree:         100000 kB\nMemAvailable:    1048576 kB\n"

static void what_the_kernel_says(void **state)
{
    (void)state;
    assert_int_equal(memory_left(root), 0); /* no /proc at all */
    have("proc/meminfo", MEMINFO);
    assert_int_equal(memory_left(root), 1024 * MIB);
}

static void groups_of_version_2(void **state)
{
    (void)state;
    have("proc/meminfo", MEMINFO);
    have("proc/self/cgroup", "0::/user/me\n");
    have("sys/fs/cgroup/user/me/memory.max", "max\n");
    have("sys/fs/cgroup/user/me/memory.current", "1048576\n");
    assert_int_equal(memory_left(root), 1024 * MIB);
    have("sys/fs/cgroup/user/memory.max", "629145600\n"); /* 600 MiB, of the group above: */
    have("sys/fs/cgroup/user/memory.current", "314572800\n");
    assert_int_equal(memory_left(root), 300 * MIB);
    have("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file_x 9\ninactive_file 52428800\nactive_file 52428800\n");
    assert_int_equal(memory_left(root), 400 * MIB); /* the cache goes when it must */
    have("sys/fs/cgroup/user/memory.current", "734003200\n"); /* over its limit */
    have("sys/fs/cgroup/user/memory.stat", "anon 5\n");
    assert_int_equal(memory_left(root), 0);
    have("sys/fs/cgroup/user/memory.max", "4294967296\n"); /* more than the machine has */
    assert_int_equal(memory_left(root), 1024 * MIB);
}

/* The path is the host's, and the container sees its own group at the top. */
static void a_container(void **state)
{
    (void)state;
    have("proc/meminfo", MEMINFO);
    have("proc/self/cgroup", "0::/docker/0123\n");
    have("sys/fs/cgroup/memory.max", "209715200\n");
    have("sys/fs/cgroup/memory.current", "104857600\n");
    assert_int_equal(memory_left(root), 100 * MIB);
}

static void groups_of_version_1(void **state)
{
    (void)state;
    have("proc/meminfo", MEMINFO);
    have("proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/0123\n0::/\n");
    have("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    have("sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    assert_int_equal(memory_left(root), 1024 * MIB);
    have("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "209715200\n");
    have("sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes", "104857600\n");
    have("sys/fs/cgroup/memory/docker/0123/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\n");
    assert_int_equal(memory_left(root), 110 * MIB);
}

static void this_machine(void **state)
{
    (void)state;
    assert_true(memory_left("") > 64 * MIB);
}

#define ON_A_MACHINE(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(what_the_kernel_says), ON_A_MACHINE(groups_of_version_2), ON_A_MACHINE(a_container),
        ON_A_MACHINE(groups_of_version_1),  cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
