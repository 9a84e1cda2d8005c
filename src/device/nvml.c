/* nvml.c - clocks, power and throttle reasons from libnvidia-ml, found with dlopen. It is a witness, never a condition:
 * without it every field says unknown. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device_backend.h"

typedef struct nvml_device_st *nvml_device;

struct utilization {
    unsigned gpu, memory;
};

static struct {
    int (*init)(void);
    int (*by_uuid)(const char *, nvml_device *);
    int (*driver_version)(char *, unsigned);
    int (*clock)(nvml_device, int, unsigned *);
    int (*max_clock)(nvml_device, int, unsigned *);
    int (*temperature)(nvml_device, int, unsigned *);
    int (*power)(nvml_device, unsigned *);
    int (*power_limit)(nvml_device, unsigned *);
    int (*reasons)(nvml_device, unsigned long long *);
    int (*utilization)(nvml_device, struct utilization *);
    int (*processes)(nvml_device, unsigned *, void *);
} nvml;
static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum { CLOCK_SM = 1, CLOCK_MEM = 2, TOO_SMALL = 7 };

/* Loads NVML; without it nothing is known of clocks, and that is no error. */
static void nvml_load(void)
{
    const char *env = getenv("MUSACODER_LIBNVML");
    void *lib = dlopen(env && *env ? env : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return;
    *(void **)&nvml.init = dlsym(lib, "nvmlInit_v2");
    *(void **)&nvml.by_uuid = dlsym(lib, "nvmlDeviceGetHandleByUUID");
    *(void **)&nvml.driver_version = dlsym(lib, "nvmlSystemGetDriverVersion");
    *(void **)&nvml.clock = dlsym(lib, "nvmlDeviceGetClockInfo");
    *(void **)&nvml.max_clock = dlsym(lib, "nvmlDeviceGetMaxClockInfo");
    *(void **)&nvml.temperature = dlsym(lib, "nvmlDeviceGetTemperature");
    *(void **)&nvml.power = dlsym(lib, "nvmlDeviceGetPowerUsage");
    *(void **)&nvml.power_limit = dlsym(lib, "nvmlDeviceGetEnforcedPowerLimit");
    *(void **)&nvml.reasons = dlsym(lib, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&nvml.utilization = dlsym(lib, "nvmlDeviceGetUtilizationRates");
    *(void **)&nvml.processes = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
    ready = nvml.init && nvml.by_uuid && nvml.driver_version && nvml.init() == 0;
}

void nvml_driver_version(char *out, size_t n)
{
    pthread_once(&once, nvml_load);
    if (!ready || nvml.driver_version(out, (unsigned)n) != 0)
        *out = 0;
}

/* A clock in MHz; -1: unknown. */
static double nvml_clock_of(int (*f)(nvml_device, int, unsigned *), nvml_device d, int which)
{
    unsigned v;

    return f && f(d, which, &v) == 0 ? (double)v : -1;
}

/* A value of thousandths in whole units; -1: unknown. */
static double nvml_milli(int (*f)(nvml_device, unsigned *), nvml_device d)
{
    unsigned v;

    return f && f(d, &v) == 0 ? v / 1e3 : -1;
}

/* The bits' names of why clocks are throttled, joined by commas. */
static void nvml_reasons_text(uint64_t bits, char *out, size_t n)
{
    static const char *const names[] = {"idle",        "application_clocks", "sw_power_cap",
                                        "hw_slowdown", "sync_boost",         "sw_thermal",
                                        "hw_thermal",  "hw_power_brake",     "display_clock"};
    size_t k = 0;

    *out = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && k < n; i++)
        if (bits >> i & 1)
            k += (size_t)snprintf(out + k, n - k, "%s%s", k ? ", " : "", names[i]);
}

void nvml_health(const char *uuid, struct device_health *ret)
{
    const uint64_t slow = 4 | 8 | 0x20 | 0x40 | 0x80;
    struct device_health h = {false, -1, -1, -1, -1, -1, -1, -1, 0, false, "", -1};
    unsigned long long bits = 0;
    struct utilization u;
    unsigned n = 0;
    nvml_device d;

    pthread_once(&once, nvml_load);
    if (ready && nvml.by_uuid(uuid, &d) == 0) {
        int code = nvml.processes ? nvml.processes(d, &n, NULL) : -1;

        h.known = true;
        h.sm_mhz = nvml_clock_of(nvml.clock, d, CLOCK_SM);
        h.mem_mhz = nvml_clock_of(nvml.clock, d, CLOCK_MEM);
        h.sm_max_mhz = nvml_clock_of(nvml.max_clock, d, CLOCK_SM);
        h.temperature_c = nvml_clock_of(nvml.temperature, d, 0);
        h.power_w = nvml_milli(nvml.power, d);
        h.power_limit_w = nvml_milli(nvml.power_limit, d);
        h.utilization = nvml.utilization && nvml.utilization(d, &u) == 0 ? u.gpu / 100.0 : -1;
        if (nvml.reasons && nvml.reasons(d, &bits) == 0)
            h.reasons = bits;
        h.throttled = h.reasons & slow;
        nvml_reasons_text(h.reasons, h.reasons_text, sizeof h.reasons_text);
        h.processes = code == 0 || code == TOO_SMALL ? (int)n : -1;
    }
    *ret = h;
}
