/* front.c - see front.h. */
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../simt/runtime/names.h"
#include "exec/client.h"

enum { MAX_LIBRARIES = 64, MAX_FUNCTIONS = 4096, MAX_SYMBOLS = 256, MAX_NOTES = 64, MAX_PINNED = 256 };

static struct client *client;
static _Thread_local int last_error;
static _Thread_local void *current_stream;
static _Atomic int forward;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int front_attach(int area_fd, int bell_fd)
{
    return client || (client = client_attach(area_fd, bell_fd)) ? 0 : -1;
}

struct client *front_client(void)
{
    return client;
}

bool front_has(const void *p)
{
    return client && client_is_device(client, p);
}

static uint32_t number(const void *handle)
{
    return (uint32_t)(uintptr_t)handle;
}

static void *handle_of(uint32_t n)
{
    return (void *)(uintptr_t)n;
}

/* ---- notes ---- */

static struct note {
    char kind[24], name[160], message[400];
    int forward;
    long count;
} notes[MAX_NOTES];
static int n_notes;

void front_note(const char *kind, const char *name, const char *message)
{
    int here = forward, i;

    if (!strcmp(kind, "unsupported")) /* it may not live to say so in a reply */
        dprintf(2, "musacoder-unsupported: %.70s\n", name);
    pthread_mutex_lock(&lock);
    for (i = 0; i < n_notes; i++)
        if (!strcmp(notes[i].kind, kind) && !strncmp(notes[i].name, name, sizeof notes[i].name - 1) &&
            notes[i].forward == here)
            break;
    if (i < n_notes) {
        notes[i].count++;
    } else if (i < MAX_NOTES) {
        struct note *n = &notes[n_notes++];

        snprintf(n->kind, sizeof n->kind, "%s", kind);
        snprintf(n->name, sizeof n->name, "%s", name);
        snprintf(n->message, sizeof n->message, "%s", message);
        n->forward = here;
        n->count = 1;
    }
    pthread_mutex_unlock(&lock);
}

static void put_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++)
        if (*s == '"' || *s == '\\' || (unsigned char)*s < 32 || (unsigned char)*s > 126)
            fprintf(f, "\\u%04x", (unsigned char)*s);
        else
            fputc(*s, f);
    fputc('"', f);
}

char *front_notes(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (!f)
        return NULL;
    pthread_mutex_lock(&lock);
    fputc('[', f);
    for (int i = 0; i < n_notes; i++) {
        fputs(i ? ",{\"kind\":" : "{\"kind\":", f);
        put_text(f, notes[i].kind);
        fputs(",\"name\":", f);
        put_text(f, notes[i].name);
        fputs(",\"message\":", f);
        put_text(f, notes[i].message);
        fprintf(f, ",\"forward\":%s,\"count\":%ld}", notes[i].forward ? "true" : "false", notes[i].count);
    }
    fputc(']', f);
    n_notes = 0;
    pthread_mutex_unlock(&lock);
    fclose(f);
    return text;
}

void front_forward(int on)
{
    forward = on;
}

int front_in_forward(void)
{
    return forward;
}

/* ---- errors ---- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {999, "cudaErrorUnknown", "unknown error"},
    {WIRE_REFUSED, "cudaErrorNotPermitted", "operation not permitted by the judge"},
    {WIRE_GONE, "cudaErrorDevicesUnavailable", "the device does not answer any more"},
};

int front_fail(int code)
{
    if (code)
        last_error = code;
    return code;
}

int front_last_error(int keep)
{
    int sticky = client ? client_error(client) : 0, code = sticky ? sticky : last_error;

    if (!keep)
        last_error = 0;
    return code;
}

const char *front_error_name(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "cudaErrorUnknown";
}

const char *front_error_text(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unrecognized error code";
}

/* ---- what the device is ---- */

const char *front_device_name(void)
{
    return client_info(client)->name;
}

size_t front_device_memory(void)
{
    return client_info(client)->memory;
}

int front_attribute(int attribute, int *ret)
{
    const struct wire_info *i = client_info(client);
    const struct { int attribute, value; } table[] = {
        {1, i->threads_block}, {2, i->dim[0]}, {3, i->dim[1]}, {4, i->dim[2]}, {5, i->grid[0]}, {6, i->grid[1]},
        {7, i->grid[2]}, {8, (int)i->shared_block}, {9, (int)i->constant}, {10, i->warp}, {11, (int)i->pitch},
        {12, i->regs_block}, {13, i->clock_khz}, {16, i->multiprocessors}, {31, 1}, {36, i->memory_clock_khz},
        {37, i->memory_bus}, {38, i->l2}, {39, i->threads_multiprocessor}, {40, 3}, {41, 1}, {75, i->major},
        {76, i->minor}, {78, 1}, {81, (int)i->shared_multiprocessor}, {82, i->regs_multiprocessor},
        {95, i->cooperative}, {97, (int)i->shared_optin}, {106, i->blocks_multiprocessor}, {108, i->persisting_l2},
        {115, 1}};

    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].attribute == attribute)
            return *ret = table[k].value, 0;
    return *ret = 0; /* what it does not know it does not have */
}

/* ---- libraries and their symbols ---- */

static struct library {
    char path[512];
    uint8_t sha256[32];
    uint32_t module;
    bool known, opened; /* a module of the executor; its symbol table is mapped */
    struct names names;
    uintptr_t base;
} libraries[MAX_LIBRARIES];
static int n_libraries;

static struct symbol {
    const void *twin;
    uint64_t at, bytes;
} symbols[MAX_SYMBOLS];
static int n_symbols;

int front_library(const char *path, const char *hex)
{
    struct library *l = &libraries[n_libraries];
    unsigned byte;

    if (n_libraries == MAX_LIBRARIES || strlen(path) >= sizeof l->path || strlen(hex) != 64)
        return -1;
    for (int i = 0; i < 32; i++) {
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return -1;
        l->sha256[i] = (uint8_t)byte;
    }
    strcpy(l->path, path);
    n_libraries++;
    return 0;
}

/* The library that holds an address, with its symbols; under the lock. NULL: none of the candidate's. */
static struct library *library_at(const void *address)
{
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname)
        return NULL;
    for (int i = n_libraries - 1; i >= 0; i--) {
        struct library *l = &libraries[i];

        if (strcmp(l->path, info.dli_fname))
            continue;
        l->base = (uintptr_t)info.dli_fbase;
        if (!l->opened && !(l->opened = names_open(l->path, &l->names)))
            return NULL;
        return l;
    }
    return NULL;
}

static int module_of(struct library *l, uint32_t *ret)
{
    int code = l->known ? 0 : client_module(client, l->sha256, &l->module);

    l->known = l->known || !code;
    *ret = l->module;
    return code;
}

static const char *name_at(struct library *l, const void *address, bool function, uint64_t *ret_offset)
{
    uint64_t start, at = (uintptr_t)address - l->base;
    const char *name = names_at(&l->names, at, function, &start, NULL);

    *ret_offset = name ? at - start : 0;
    return name;
}

/* Known twins first: an address within one of them is an address within the other. */
static bool known_symbol(const void *p, uint64_t *ret_at, uint64_t *ret_bytes)
{
    for (int i = 0; i < n_symbols; i++) {
        uint64_t offset = (uintptr_t)p - (uintptr_t)symbols[i].twin;

        if ((uintptr_t)p < (uintptr_t)symbols[i].twin || offset >= symbols[i].bytes)
            continue;
        *ret_at = symbols[i].at + offset;
        *ret_bytes = symbols[i].bytes - offset;
        return true;
    }
    return false;
}

static bool find_symbol(const void *p, uint64_t *ret_at, uint64_t *ret_bytes)
{
    struct library *l;
    uint64_t offset, at, bytes;
    const char *name;
    uint32_t module;

    if (known_symbol(p, ret_at, ret_bytes))
        return true;
    if (!(l = library_at(p)) || !(name = name_at(l, p, false, &offset)) || module_of(l, &module) ||
        client_symbol(client, module, name, &at, &bytes) || n_symbols == MAX_SYMBOLS)
        return false;
    symbols[n_symbols++] = (struct symbol){(const char *)p - offset, at, bytes};
    return known_symbol(p, ret_at, ret_bytes);
}

int front_symbol(const void *twin, void **ret, size_t *ret_bytes)
{
    uint64_t at, bytes;
    bool found;

    pthread_mutex_lock(&lock);
    found = find_symbol(twin, &at, &bytes);
    pthread_mutex_unlock(&lock);
    if (!found)
        return front_fail(13);
    *ret = (void *)(uintptr_t)at;
    if (ret_bytes)
        *ret_bytes = bytes;
    return 0;
}

/* Is p the device's? A symbol's address counts, whichever side's it is; *ret is the device's. */
static bool on_device(const void *p, uint64_t *ret)
{
    uint64_t bytes;
    bool found = front_has(p);

    *ret = (uintptr_t)p;
    if (found || !n_libraries)
        return found;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_symbols && !found; i++)
        found = (uintptr_t)p - symbols[i].at < symbols[i].bytes;
    if (!found && library_at(p))
        found = find_symbol(p, ret, &bytes);
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- memory ---- */

int front_malloc(void **p, size_t bytes, enum front_memory kind, void *stream)
{
    uint64_t at = 0;
    int code;

    if (!p)
        return front_fail(WIRE_INVALID);
    *p = NULL;
    if (!bytes)
        return 0;
    code = client_alloc(client, bytes, kind, number(stream), &at);
    *p = code ? NULL : (void *)(uintptr_t)at;
    return front_fail(code);
}

int front_free(void *p, enum front_memory kind, void *stream)
{
    return p ? front_fail(client_free(client, (uintptr_t)p, kind, number(stream))) : 0;
}

static void *pinned[MAX_PINNED];
static size_t pinned_bytes[MAX_PINNED];

int front_malloc_host(void **p, size_t bytes)
{
    int i;

    if (!p || posix_memalign(p, 4096, bytes ? bytes : 1) != 0)
        return front_fail(WIRE_OUT_OF_MEMORY);
    memset(*p, 0xff, bytes);
    pthread_mutex_lock(&lock);
    for (i = 0; i < MAX_PINNED && pinned[i]; i++)
        ;
    if (i < MAX_PINNED)
        pinned[i] = *p, pinned_bytes[i] = bytes;
    pthread_mutex_unlock(&lock);
    return 0;
}

int front_free_host(void *p)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_PINNED; i++)
        if (pinned[i] == p)
            pinned[i] = NULL;
    pthread_mutex_unlock(&lock);
    free(p);
    return 0;
}

bool front_pinned(const void *p)
{
    for (int i = 0; i < MAX_PINNED; i++)
        if (pinned[i] && (uintptr_t)p - (uintptr_t)pinned[i] < pinned_bytes[i])
            return true;
    return false;
}

int front_copy(void *to, const void *from, size_t bytes, void *stream)
{
    uint64_t there, source;
    bool up, down;

    if (!bytes)
        return front_last_error(1);
    if (!to || !from)
        return front_fail(WIRE_INVALID);
    up = on_device(to, &there);
    down = on_device(from, &source);
    if (up && down)
        return front_fail(client_copy(client, there, source, bytes, number(stream)));
    if (up)
        return front_fail(client_up(client, there, from, bytes, number(stream)));
    if (down)
        return front_fail(client_down(client, to, source, bytes, number(stream)));
    memmove(to, from, bytes);
    return 0;
}

int front_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  void *stream)
{
    int code = 0;

    if (width > to_pitch || width > from_pitch)
        return front_fail(12);
    for (size_t i = 0; i < height && !code; i++)
        code = front_copy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width, stream);
    return code;
}

int front_set(void *p, const void *value, unsigned width, size_t count, void *stream)
{
    uint64_t at;

    if (!count)
        return 0;
    if (!p || !on_device(p, &at))
        return front_fail(WIRE_INVALID);
    return front_fail(client_memset(client, at, value, width, count, number(stream)));
}

int front_mem_info(size_t *ret_free, size_t *ret_total)
{
    uint64_t f, t;
    int code = client_mem_info(client, &f, &t);

    if (!code)
        *ret_free = f, *ret_total = t;
    return front_fail(code);
}

/* ---- launches ---- */

static struct function {
    const void *fn, *thunk;
    const char *file;
    int line;
    uint32_t id;
    bool used;
    struct wire_function_info *info;
} functions[MAX_FUNCTIONS];

static struct function *slot_of(const struct front_launch *l)
{
    size_t at = (uintptr_t)l->fn * 31 + (uintptr_t)l->thunk * 7 + (uintptr_t)l->file + (size_t)l->line;

    at %= MAX_FUNCTIONS;
    for (int i = 0; i < MAX_FUNCTIONS; i++, at = (at + 1) % MAX_FUNCTIONS) {
        struct function *f = &functions[at];

        if (!f->used || (f->fn == l->fn && f->thunk == l->thunk && f->file == l->file && f->line == l->line))
            return f;
    }
    return NULL;
}

/* On sim a function is a launch's site (simt/image.h), elsewhere a kernel's symbol. */
static int name_of(struct library *l, const struct front_launch *f, char *name, size_t n)
{
    const char *kernel, *thunk;
    uint64_t offset;
    int bytes;

    kernel = f->fn ? name_at(l, f->fn, true, &offset) : "";
    if (!kernel || (f->fn && offset))
        return -1;
    if (!f->thunk) /* for attributes, or not on sim */
        return snprintf(name, n, client_info(client)->backend ? "%s" : "\n%s\n\n\n0", kernel);
    if (!(thunk = name_at(l, f->thunk, true, &offset)) || offset)
        return -1;
    bytes = snprintf(name, n, "%s\n%s\n%.200s\n%.200s\n%d", thunk, kernel, f->shown, f->file, f->line);
    return bytes < (int)n ? bytes : -1;
}

static int function_make(struct function *f, const struct front_launch *l)
{
    static char name[WIRE_NAME];
    struct library *lib = library_at(l->thunk ? l->thunk : l->fn);
    uint32_t module;
    int n = lib ? name_of(lib, l, name, sizeof name) : -1, code;

    if (n < 0)
        return 98;
    if ((code = module_of(lib, &module)) || !(f->info = f->info ? f->info : malloc(sizeof *f->info)))
        return code ? code : WIRE_OUT_OF_MEMORY;
    if ((code = client_function(client, module, name, (uint32_t)n, &f->id, f->info)))
        return code;
    f->fn = l->fn, f->thunk = l->thunk, f->file = l->file, f->line = l->line;
    f->used = true;
    return 0;
}

static int function_of(const struct front_launch *l, struct function **ret)
{
    int code = 0;

    pthread_mutex_lock(&lock);
    *ret = slot_of(l);
    if (!*ret)
        code = WIRE_OUT_OF_MEMORY;
    else if (!(*ret)->used)
        code = function_make(*ret, l);
    pthread_mutex_unlock(&lock);
    return code;
}

int front_launch(const struct front_launch *l)
{
    struct client_launch c = {.stream = number(l->stream), .shared = (uint32_t)l->shared, .args = l->args,
                              .args_bytes = (uint32_t)l->n_args};
    char text[300];
    struct function *f;
    int code = front_last_error(1);

    if (client_error(client))
        return code;
    if ((code = function_of(l, &f)) == 0) {
        c.function = f->id;
        memcpy(c.grid, l->grid, sizeof c.grid);
        memcpy(c.block, l->block, sizeof c.block);
        code = client_launch(client, &c);
    }
    if (code) {
        snprintf(text, sizeof text, "launch of '%s' refused: %s", l->shown, front_error_text(code));
        front_note("launch_error", l->shown, text);
    }
    return front_fail(code);
}

int front_function_attribute(const void *fn, int attribute, int value)
{
    struct front_launch l = {.shown = "", .file = "", .fn = fn};
    struct function *f;
    int code = function_of(&l, &f);

    return front_fail(code ? code : client_func_attr(client, f->id, attribute, value));
}

int front_occupancy(const void *fn, int threads, size_t shared, int *ret_blocks)
{
    struct front_launch l = {.shown = "", .file = "", .fn = fn};
    struct function *f;
    int code = function_of(&l, &f);

    return front_fail(code ? code : client_occupancy(client, f->id, (uint32_t)threads, shared, ret_blocks));
}

/* ---- order ---- */

void *front_stream(void)
{
    return current_stream;
}

void front_set_stream(void *stream)
{
    current_stream = stream;
}

int front_stream_create(unsigned flags, int priority, void **ret)
{
    uint32_t id = 0;
    int code = client_stream_create(client, flags, priority, &id);

    *ret = handle_of(id);
    return front_fail(code);
}

int front_stream_destroy(void *s)
{
    return number(s) > WIRE_STREAM_PER_THREAD ? front_fail(client_stream_destroy(client, number(s))) : 0;
}

int front_stream_sync(void *s)
{
    int code = client_stream_sync(client, number(s));

    return code ? front_fail(code) : front_last_error(1);
}

int front_stream_query(void *s)
{
    return client_stream_query(client, number(s));
}

int front_stream_wait(void *s, void *event)
{
    return front_fail(client_event_wait(client, number(s), number(event)));
}

int front_event_create(unsigned flags, void **ret)
{
    uint32_t id = 0;
    int code = client_event_create(client, flags, &id);

    *ret = handle_of(id);
    return front_fail(code);
}

int front_event_destroy(void *e)
{
    return front_fail(client_event_destroy(client, number(e)));
}

int front_event_record(void *e, void *stream)
{
    return front_fail(client_event_record(client, number(e), number(stream)));
}

int front_event_sync(void *e)
{
    return front_fail(client_event_sync(client, number(e)));
}

int front_event_query(void *e)
{
    return client_event_query(client, number(e));
}

int front_event_elapsed(void *from, void *to, float *ret_ms)
{
    return front_fail(client_event_elapsed(client, number(from), number(to), ret_ms));
}

int front_sync(void)
{
    int code = client_device_sync(client);

    return code ? front_fail(code) : front_last_error(1);
}
