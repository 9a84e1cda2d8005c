/* musa_cards.c - see musa_cards.h. */
#include "device/musa_cards.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define REMEDY "install Moore Threads' driver and MUSA SDK, or use '--backend sim --profile s4000'"

/* The driver's interface follows CUDA's, name by name, with CUDA's numbers for attributes (musa_cards.h of the SDK). */
struct driver {
    int (*Init)(unsigned flags);
    int (*DeviceGetCount)(int *n);
    int (*DeviceGet)(int *device, int index);
    int (*DeviceGetName)(char *name, int n, int device);
    int (*DeviceGetAttribute)(int *value, int attribute, int device);
    int (*DeviceTotalMem)(size_t *bytes, int device);
};

static const struct { enum data_sheet_fact fact; int attribute; } attributes[] = {
    {FACT_WARP_HOST, 10},        {FACT_SHARED_STATIC, 8}, {FACT_SHARED_BLOCK, 97}, {FACT_CONSTANT, 9}, {FACT_MPS, 16},
    {FACT_THREADS_BLOCK, 1},     {FACT_THREADS_MP, 39},   {FACT_REGISTERS_MP, 82}, {FACT_L2, 38},
        {FACT_GRID_YZ, 6},
    {FACT_COOPERATIVE, 95},
};

/* Loads MUSA's driver and finds the functions that list cards. ERR_ENV: it is missing. */
static int musa_cards_load(struct driver *d, struct err *e)
{
    static const char *const symbols[] = {"muInit", "muDeviceGetCount", "muDeviceGet", "muDeviceGetName",
                                          "muDeviceGetAttribute", "muDeviceTotalMem"};
    void **slots[] = {(void **)&d->Init, (void **)&d->DeviceGetCount, (void **)&d->DeviceGet,
                      (void **)&d->DeviceGetName,
                      (void **)&d->DeviceGetAttribute, (void **)&d->DeviceTotalMem};
    const char *name = getenv("MUSACODER_LIBMUSA");
    void *lib = dlopen(name = name && *name ? name : "libmusa.so", RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return err_set(e, ERR_ENV, "no MUSA driver: '%s' is not found; " REMEDY, name);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        char versioned[64];
        snprintf(versioned, sizeof versioned, "%s_v2", symbols[i]);
        if (!(*slots[i] = dlsym(lib, symbols[i])) && !(*slots[i] = dlsym(lib, versioned)))
            return err_set(e, ERR_ENV, "the MUSA driver '%s' has no %s; " REMEDY, name, symbols[i]);
    }
    return 0;
}

/* Fills *c with what the driver says of a card; figures that it does not tell stay unknown. */
static int musa_cards_read_card(const struct driver *d, int index, struct musa_card *c, struct err *e)
{
    int device, code, v;
    size_t bytes;

    memset(c, 0, sizeof *c);
    for (int f = 0; f < N_DATA_SHEET_FACTS; f++)
        c->figures[f] = DATA_SHEET_UNKNOWN;
    if ((code = d->DeviceGet(&device, index)) != 0 || (code = d->DeviceGetName(c->name, sizeof c->name, device)) != 0 ||
        (code = d->DeviceGetAttribute(&c->major, 75, device)) != 0 ||
        (code = d->DeviceGetAttribute(&c->minor, 76, device)) != 0)
        return err_set(e, ERR_ENV, "the MUSA driver does not describe card %d (error %d)", index, code);
    c->figures[FACT_ARCH] = c->major * 100 + c->minor * 10;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (d->DeviceGetAttribute(&v, attributes[i].attribute, device) == 0)
            c->figures[attributes[i].fact] = v;
    if (d->DeviceTotalMem(&bytes, device) == 0)
        c->figures[FACT_MEMORY] = (int64_t)bytes;
    return 0;
}

int musa_cards(struct musa_card **ret, int *ret_n, struct err *e)
{
    struct musa_card *cards;
    struct driver d;
    int n = 0, code;

    if (musa_cards_load(&d, e) < 0)
        return -1;
    if ((code = d.Init(0)) != 0 || (code = d.DeviceGetCount(&n)) != 0)
        return err_set(e, ERR_ENV, "the MUSA driver does not start (error %d); " REMEDY, code);
    if (n < 1)
        return err_set(e, ERR_ENV, "the MUSA driver finds no card; is MUSA_VISIBLE_DEVICES empty?");
    cards = xcalloc((size_t)n, sizeof *cards);
    for (int i = 0; i < n; i++)
        if (musa_cards_read_card(&d, i, &cards[i], e) < 0) {
            free(cards);
            return -1;
        }
    *ret = cards;
    *ret_n = n;
    return 0;
}

const struct data_sheet *musa_card_profile(const struct musa_card *c)
{
    const struct data_sheet *p, *same = NULL;

    for (size_t i = 0; (p = data_sheet_at(i)); i++) {
        if (!p->musa || data_sheet_get(p, FACT_ARCH, 0) != c->figures[FACT_ARCH])
            continue;
        if (strstr(c->name, p->card + strlen("MTT ")))
            return p;
        same = same ? same : p;
    }
    return same;
}

void musa_card_differences(const struct musa_card *c, const struct data_sheet *p, struct buf *out)
{
    for (int f = 0; f < N_DATA_SHEET_FACTS; f++) {
        int64_t known = data_sheet_get(p, (enum data_sheet_fact)f, DATA_SHEET_UNKNOWN);
        bool near = f == FACT_MEMORY &&
            llabs((long long)(known - c->figures[f])) < known / 8; /* some is the driver's own */
        if (c->figures[f] != DATA_SHEET_UNKNOWN && known != DATA_SHEET_UNKNOWN && known != c->figures[f] && !near)
            buf_addf(out, "%s: %" PRId64 " here, %" PRId64 " in the profile\n", data_sheet_fact_names[f],
                     c->figures[f], known);
        else if (c->figures[f] != DATA_SHEET_UNKNOWN && known == DATA_SHEET_UNKNOWN)
            buf_addf(out, "%s: %" PRId64 " here, not published\n", data_sheet_fact_names[f], c->figures[f]);
    }
}

/* The path, if it can be executed; else NULL, and the path is freed. */
static char *musa_cards_usable(char *path)
{
    if (path && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *musa_compiler(struct err *e)
{
    const char *own = getenv("MUSACODER_MCC"), *home = getenv("MUSA_HOME"), *list = getenv("PATH");
    char *found = own && *own ? musa_cards_usable(xstrdup(own)) : NULL, *copy, *save = NULL;

    if (!found && home && *home)
        found = musa_cards_usable(xasprintf("%s/bin/mcc", home));
    if (!found)
        found = musa_cards_usable(xstrdup("/usr/local/musa/bin/mcc"));
    copy = xstrdup(list ? list : "");
    for (char *d = strtok_r(copy, ":", &save); d && !found; d = strtok_r(NULL, ":", &save))
        found = musa_cards_usable(xasprintf("%s/mcc", d));
    free(copy);
    if (!found)
        err_set(e, ERR_ENV, "no mcc; install the MUSA SDK, or set MUSACODER_MCC");
    return found;
}
