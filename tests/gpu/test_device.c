/* test_device.c - src/device on a real GPU: all that holds on the host backend, and what only a GPU can show: sizes
 * beyond 32 bits, answers that do not depend on chance, faults. For compute-sanitizer:
 * with the argument "quick" it leaves out what is slow or wanted broken, with "race" also what launches thousands of
 * kernels. */
#include "../device/checks.h"

static void test_info(void **state)
{
    const struct device_info *i = device_info(dev);
    struct device_health h;

    (void)state;
    assert_string_equal(i->backend, "cuda");
    assert_true(i->cc >= 80 && i->memory > 1 << 30 && i->l2 > 1 << 20 && i->sm_count > 0 && i->warp_size == 32);
    assert_true(i->memory_gbs > 100 && i->fp32_tflops > 1 && i->fp64_tflops > 0 && i->bf16_tflops > i->fp32_tflops);
    assert_true(device_has_kernels(dev) && i->runtime >= 12000 && i->driver >= i->runtime / 1000 * 1000);
    assert_memory_equal(i->uuid, "GPU-", 4);
    OK(device_health(dev, &h, &err));
    printf("%s, cc %d, driver %s (%d), built with %d, %.0f GB/s, fp32 %.1f tf32 %.1f bf16 %.1f fp64 %.1f TFLOP/s, vmm "
           "%d\n",
           i->name, i->cc, i->driver_version, i->driver, i->runtime, i->memory_gbs, i->fp32_tflops, i->tf32_tflops,
           i->bf16_tflops, i->fp64_tflops, i->vmm_fd);
    printf("nvml %d: sm %.0f of %.0f MHz, memory %.0f MHz, %.0f C, %.0f of %.0f W, busy %.2f, '%s' throttled %d, %d "
           "processes\n",
           h.known, h.sm_mhz, h.sm_max_mhz, h.mem_mhz, h.temperature_c, h.power_w, h.power_limit_w, h.utilization,
           h.reasons_text, h.throttled, h.processes);
    if (h.known)
        assert_true(h.sm_mhz > 0 && h.sm_max_mhz >= h.sm_mhz && h.temperature_c > 0);
}

static struct peer peers[2];

static void test_two_processes(void **state)
{
    (void)state;
    if (device_info(dev)->vmm_fd)
        peer_finish(&peers[0], DEVICE_SHARED, 3 << 20);
    peer_finish(&peers[1], DEVICE_PINNED, 100000);
}

/* Several million elements against the CPU: a third of them wrong, NaN among them; or honest noise of all magnitudes
 * with a few outliers, which is where the short types' filter must keep the largest errors. */
static void test_large_random(void **state)
{
    static const enum dtype types[] = {DT_F32, DT_BF16, DT_F16, DT_I32};
    int64_t shape[] = {1500, 1023};
    struct comparison c;
    struct rng r;
    struct pair p;

    (void)state;
    rng_seed(&r, 21, 0);
    for (int k = 0; k < 4 * 2 * 2 * 2; k++) {
        enum dtype type = types[k % 4];
        bool noisy = k / 8 % 2;

        pair_make(&p, type, k / 4 % 2, 2, shape, &r);
        for (int64_t i = 0; i < p.n; i++) {
            double x = tensor_at(&(struct tensor){.dtype = p.oracle_type, .data = p.oracle}, i);

            if (noisy)
                put(p.got, type, i,
                    x + x * ldexp(rng_normal(&r), -4 - (int)rng_below(&r, 20)) * (rng_below(&r, 50000) ? 1 : 3));
            else if (rng_below(&r, 3) == 0)
                put(p.got, type, i, rng_below(&r, 1000) ? rng_normal(&r) * 5 : NAN);
        }
        pair_check(&p, k / 16 ? &close_tol : &strict_tol, &c, dt_name(type));
        assert_true(c.n_bad > 0 && (noisy ? c.max_rel < 10 : c.n_bad > p.n / 8));
        pair_free(&p);
    }
}

/* n bytes of normal draws: a block of them, repeated. */
static void draw(struct device_buf *b, enum dtype type, size_t n, uint64_t seed)
{
    size_t have = (size_t)1 << 20;
    uint8_t *block = xcalloc(have, 1);
    struct rng r;

    rng_seed(&r, seed, 0);
    for (size_t i = 0; i < have / dt_size(type); i++)
        put(block, type, (int64_t)i, rng_normal(&r));
    OK(device_upload(b, 0, block, have < n ? have : n, &err));
    for (; have < n; have *= 2)
        OK(device_copy(b, have, b, 0, have < n - have ? have : n - have, &err));
    free(block);
}

static void test_same_every_time(void **state)
{
    int64_t n = 50000000;
    struct device_tolerance tol = {1e-3, 1e-3, false};
    struct device_buf a, b;
    struct device_view va, vb;
    struct device_diff first, again;

    (void)state;
    OK(device_alloc(dev, (size_t)n * 8, DEVICE_PLAIN, &a, &err));
    OK(device_alloc(dev, (size_t)n * 4, DEVICE_PLAIN, &b, &err));
    draw(&a, DT_F64, (size_t)n * 8, 1);
    draw(&b, DT_F32, (size_t)n * 4, 2);
    OK(device_view_make(&a, 0, DT_F64, 1, &n, NULL, &va, &err));
    OK(device_view_make(&b, 0, DT_F32, 1, &n, NULL, &vb, &err));
    OK(device_diff(dev, &vb, &va, &vb, &tol, &first, &err));
    assert_true(first.n_bad > n / 2);
    for (int k = 0; k < 20; k++) {
        memset(&again, 0, sizeof again);
        OK(device_diff(dev, &vb, &va, &vb, &tol, &again, &err));
        assert_memory_equal(&first, &again, sizeof first);
    }
    device_free(&a);
    device_free(&b);
}

/* Pieces of 1 GiB and of what is left, each with the number of its first word. */
static uint64_t checksum_in_pieces(const struct device_buf *b, size_t n)
{
    uint64_t sum = 0;

    for (size_t at = 0; at < n; at += (size_t)1 << 30)
        sum += checksum(b, at, n - at < (size_t)1 << 30 ? n - at : (size_t)1 << 30, 1 + at / 8);
    return sum;
}

/* More elements than 32 bits count: the wrong ones are at both ends and around 2^31 and 2^32. */
static void check_huge(enum dtype type, int64_t n)
{
    const size_t size = dt_size(type), bytes = (size_t)n * size;
    int64_t spots[] = {3, ((int64_t)1 << 31) - 1, (int64_t)1 << 31, ((int64_t)1 << 32) - 1, (int64_t)1 << 32, n - 1};
    struct tolerance tol = {.abs = 1e-4, .rel = 1e-4, .usable = true};
    uint8_t other[8] = {0x11, 0x52, 0, 0, 0, 0, 0, 0}, was[8];
    uint64_t sum;
    struct device_buf a, b;
    struct device_view va, vb;
    int64_t wrong = 0;
    struct comparison c;

    OK(device_alloc(dev, bytes, DEVICE_PLAIN, &a, &err));
    OK(device_alloc(dev, bytes, DEVICE_PLAIN, &b, &err));
    draw(&a, DT_F16, bytes, 3);
    OK(device_copy(&b, 0, &a, 0, bytes, &err));
    OK(device_view_make(&a, 0, type, 1, &n, NULL, &va, &err));
    OK(device_view_make(&b, 0, type, 1, &n, NULL, &vb, &err));
    OK(device_compare(dev, &va, &va, &vb, &tol, &c, &err));
    assert_true(c.kind == CMP_SAME && c.n == n);
    sum = checksum(&a, 0, bytes, 1);
    assert_true(sum == checksum(&b, 0, bytes, 1) && sum == checksum_in_pieces(&b, bytes));
    for (int k = 0; k < 6; k++) {
        OK(device_download(&b, (size_t)spots[k] * size, was, size, &err));
        if (memcmp(was, other, size)) {
            OK(device_upload(&b, (size_t)spots[k] * size, other, size, &err));
            wrong++;
        }
    }
    assert_true(wrong >= 5);
    assert_true(sum != checksum(&b, 0, bytes, 1));
    OK(device_compare(dev, &va, &va, &vb, &tol, &c, &err));
    assert_true(c.kind == CMP_VALUES && c.n_bad == wrong && c.first == 3);
    OK(device_memset(&b, (size_t)1 << 31, 0x3c, bytes - ((size_t)1 << 31), &err)); /* the tail is missing */
    OK(device_compare(dev, &va, &va, &vb, &tol, &c, &err));
    printf("%s, %lld elements: %lld wrong, '%s'\n", dt_name(type), (long long)n, (long long)c.n_bad, c.pattern);
    device_free(&a);
    device_free(&b);
}

static void test_beyond_32_bits(void **state)
{
    (void)state;
    check_huge(DT_U8, ((int64_t)1 << 32) + 12345);
    check_huge(DT_F16, ((int64_t)1 << 32) + 7);
}

/* A view with strides beyond 32 bits: the columns of a matrix that is stored transposed. */
static void test_huge_strides(void **state)
{
    int64_t shape[] = {1 << 16, (1 << 16) + 3}, strides[] = {1, 1 << 16}, n = shape[0] * shape[1];
    struct tolerance tol = {.abs = 0, .rel = 0, .usable = true};
    struct device_buf a, b;
    struct device_view va, vb;
    struct comparison c;
    uint8_t seven = 7;

    (void)state;
    OK(device_alloc(dev, (size_t)n, DEVICE_PLAIN, &a, &err));
    OK(device_alloc(dev, (size_t)n, DEVICE_PLAIN, &b, &err));
    OK(device_memset(&a, 0, 1, (size_t)n, &err));
    OK(device_memset(&b, 0, 1, (size_t)n, &err));
    OK(device_view_make(&a, 0, DT_U8, 2, shape, NULL, &va, &err));
    OK(device_view_make(&b, 0, DT_U8, 2, shape, strides, &vb, &err));
    OK(device_upload(&b, (size_t)(5 + 65537LL * 65536), &seven, 1, &err)); /* [5, 65537] */
    OK(device_compare(dev, &va, &va, &vb, &tol, &c, &err));
    assert_true(c.n_bad == 1 && c.worst_got == 7);
    assert_string_equal(c.first_at, "[5, 65537]");
    device_free(&a);
    device_free(&b);
}

/* A fault in the judge's own context is said, once and for all; it stays in its process. */
static int faulting(void)
{
    struct device_buf b;
    struct device *d;
    uint64_t sum;

    if (device_open("cuda", 0, &d, &err) < 0 || device_alloc(d, 4096, DEVICE_PLAIN, &b, &err) < 0)
        return 1;
    b.ptr = 0x10;
    if (device_checksum(&b, 0, 4096, 1, &sum, &err) == 0 || !device_lost(d))
        return 2;
    if (!strstr(err.msg, "CUDA_ERROR_ILLEGAL_ADDRESS"))
        return 3;
    return device_alloc(d, 4096, DEVICE_PLAIN, &b, &err) == 0 ? 4 : 0;
}

static pid_t fault_pid;

static void test_fault(void **state)
{
    int status;

    (void)state;
    assert_int_equal(waitpid(fault_pid, &status, 0), fault_pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_memory(NULL); /* this process's device is well */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        SHARED_CHECKS,
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_large_random),
        cmocka_unit_test(test_same_every_time),
        cmocka_unit_test(test_beyond_32_bits),
        cmocka_unit_test(test_huge_strides),
        cmocka_unit_test(test_fault),
    };
    const struct CMUnitTest quick[] = {cmocka_unit_test(test_info), SHARED_CHECKS};
    const struct CMUnitTest race[] = {cmocka_unit_test(check_compare_worst), cmocka_unit_test(check_compare_kinds),
                                      cmocka_unit_test(check_patterns), cmocka_unit_test(check_checksum)};
    const char *what = argc > 1 ? argv[1] : "all";
    bool all = !strcmp(what, "all");
    int failed;

    if (all) {
        peers[0] = peer_start("cuda", DEVICE_SHARED, 3 << 20);
        peers[1] = peer_start("cuda", DEVICE_PINNED, 100000);
        fault_pid = fork();
        if (fault_pid == 0)
            _exit(faulting());
    }
    if (device_open("cuda", 0, &dev, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (all)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    else
        failed = !strcmp(what, "race") ? cmocka_run_group_tests(race, NULL, NULL)
                                       : cmocka_run_group_tests(quick, NULL, NULL);
    device_close(dev);
    return failed;
}
