/* clocks.c - events on the judge's stream, what measuring itself costs, and caches between measurements. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "device/backend.h"

#define MAX_RUNS 1000

int device_event_make(struct device *d, struct device_event **ret, struct err *e)
{
    struct device_event *ev = xcalloc(1, sizeof *ev);

    ev->dev = d;
    if (d->be->event_make(ev, e) < 0) {
        free(ev);
        return -1;
    }
    *ret = ev;
    return 0;
}

void device_event_free(struct device_event *ev)
{
    if (ev)
        ev->dev->be->event_free(ev);
    free(ev);
}

int device_event_record(struct device_event *ev, struct err *e)
{
    return ev->dev->be->event_record(ev, e);
}

int device_event_ms(struct device_event *from, struct device_event *to, double *ret_ms, struct err *e)
{
    return from->dev->be->event_ms(from, to, ret_ms, e);
}

int device_flush_l2(struct device *d, struct err *e)
{
    size_t n = 2 * d->info.l2;

    if (!d->flush.dev && n && device_alloc(d, n, DEVICE_PLAIN, &d->flush, e) < 0)
        return -1;
    return n ? device_memset(&d->flush, 0, d->flush_byte++, n, e) : 0;
}

int device_reset_persisting_l2(struct device *d, struct err *e)
{
    return d->be->reset_persisting(d, e);
}

static int launch_misc(struct device *d, enum kernel_id k, const void *args, struct err *e)
{
    return device_need_kernels(d, e) < 0 ? -1 : d->be->launch(d, k, 1, args, e);
}

int device_empty(struct device *d, struct err *e)
{
    return launch_misc(d, K_EMPTY, NULL, e);
}

int device_spin(struct device *d, double us, struct err *e)
{
    struct k_spin a = {us > 0 ? (uint64_t)(us * 1e3) : 0};

    return launch_misc(d, K_SPIN, &a, e);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* One repetition: fills the four times in microseconds. */
static int calibrate_once(struct device *d, struct device_event *from, struct device_event *to, double us[4],
                          struct err *e)
{
    double ms, start;

    if (device_event_record(from, e) < 0 || device_event_record(to, e) < 0 || device_event_ms(from, to, &ms, e) < 0)
        return -1;
    us[0] = ms * 1e3;
    if (device_event_record(from, e) < 0 || device_empty(d, e) < 0 || device_event_record(to, e) < 0 ||
        device_event_ms(from, to, &ms, e) < 0 || device_sync(d, e) < 0)
        return -1;
    us[1] = ms * 1e3;
    start = now_s();
    if (device_empty(d, e) < 0)
        return -1;
    us[2] = (now_s() - start) * 1e6;
    if (device_sync(d, e) < 0)
        return -1;
    us[3] = (now_s() - start) * 1e6;
    return 0;
}

static int calibrate(struct device *d, int runs, struct device_event *from, struct device_event *to,
                     struct device_overhead *ret, struct err *e)
{
    double *v = xcalloc(4 * MAX_RUNS, sizeof *v), us[4];
    int rc = calibrate_once(d, from, to, us, e); /* the first launch loads code */

    for (int i = 0; i < runs && rc == 0; i++) {
        rc = calibrate_once(d, from, to, us, e);
        for (int k = 0; k < 4; k++)
            v[k * MAX_RUNS + i] = us[k];
    }
    if (rc == 0)
        *ret = (struct device_overhead){median(v, runs), median(v + MAX_RUNS, runs), median(v + 2 * MAX_RUNS, runs),
                                        median(v + 3 * MAX_RUNS, runs)};
    free(v);
    return rc;
}

int device_calibrate(struct device *d, int runs, struct device_overhead *ret, struct err *e)
{
    struct device_event *from, *to;
    int rc;

    if (runs < 1 || runs > MAX_RUNS)
        return err_set(e, ERR_BUG, "device_calibrate with %d runs", runs);
    if (device_event_make(d, &from, e) < 0)
        return -1;
    if (device_event_make(d, &to, e) < 0) {
        device_event_free(from);
        return -1;
    }
    rc = calibrate(d, runs, from, to, ret, e);
    device_event_free(to);
    device_event_free(from);
    return rc;
}
