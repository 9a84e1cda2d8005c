/* front.c - see front.h. */
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../simt/runtime/names.h"
#include "graph.h"
#include "exec/client.h"

enum { MAX_LIBRARIES = 64, MAX_FUNCTIONS = 4096, MAX_SYMBOLS = 256, MAX_NOTES = 64, MAX_PINNED = 256 };
enum { MAX_REGISTERED = 8192, MAX_RAISED = 1024 };

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
    char kind[24], name[160], message[400], file[200]; /* file: "", or where, with the line */
    int line, forward;
    long count;
} notes[MAX_NOTES];
static int n_notes;

static void note_at(const char *kind, const char *name, const char *message, const char *file, int line)
{
    int here = front_in_forward(), i;

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
        snprintf(n->file, sizeof n->file, "%s", file);
        n->line = line;
        n->forward = here;
        n->count = 1;
    }
    pthread_mutex_unlock(&lock);
}

static int (*line_now)(void); /* of the candidate's program; NULL: nobody can say */

void front_where(int (*line)(void))
{
    line_now = line;
}

/* The line is asked for before the lock is taken: who answers may wait for a thread that notes something. */
void front_note(const char *kind, const char *name, const char *message)
{
    note_at(kind, name, message, "", line_now && front_in_forward() && !strcmp(kind, "operator") ? line_now() : 0);
}

static_assert((int)FRONT_LACK_COUNT == (int)WIRE_LACK_COUNT &&
                  (int)FRONT_LACK_AUTOGRAD == (int)WIRE_LACK_AUTOGRAD,
              "front.h repeats the numbers of wire.h");

int front_lack(int lack)
{
    if (client)
        client_lack(client, (enum wire_lack)lack);
    return front_fail(WIRE_UNSUPPORTED);
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
        if (notes[i].file[0]) {
            fputs(",\"file\":", f);
            put_text(f, notes[i].file);
        }
        if (notes[i].line)
            fprintf(f, ",\"line\":%d", notes[i].line);
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

/* What a graph records is part of the forward that will launch it. */
int front_in_forward(void)
{
    return forward || front_capturing();
}

/* ---- errors ---- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define SIMT_ERROR(code, name, text) {code, #name, text},
#include "simt/errors.h"
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

/* The library that holds an address; under the lock. NULL: none of the candidate's. */
static struct library *library_of(const void *address)
{
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname)
        return NULL;
    for (int i = n_libraries - 1; i >= 0; i--)
        if (!strcmp(libraries[i].path, info.dli_fname)) {
            libraries[i].base = (uintptr_t)info.dli_fbase;
            return &libraries[i];
        }
    return NULL;
}

/* The same, with its symbols. */
static struct library *library_at(const void *address)
{
    struct library *l = library_of(address);

    if (l && !l->opened)
        l->opened = names_open(l->path, &l->names);
    return l && l->opened ? l : NULL;
}

/* What a library says of itself when it is opened. */
static struct registered {
    const void *address;
    size_t bytes;
    char *name;
    struct library *library;
} registered[MAX_REGISTERED];
static int n_registered;

int front_register(const void *address, size_t bytes, const char *name)
{
    struct library *l;

    pthread_mutex_lock(&lock);
    l = n_registered < MAX_REGISTERED ? library_of(address) : NULL;
    if (l)
        registered[n_registered++] = (struct registered){address, bytes, strdup(name), l};
    pthread_mutex_unlock(&lock);
    return l ? 0 : -1;
}

/* A kernel is at its stub, an address within a variable belongs to it; under the lock. */
static const struct registered *registered_at(const void *p, bool function)
{
    for (int i = n_registered - 1; i >= 0; i--) {
        const struct registered *r = &registered[i];

        if (function ? !r->bytes && r->address == p : (uintptr_t)p - (uintptr_t)r->address < r->bytes)
            return r;
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

/* The name of the variable that p lies in, and where it begins. */
static const char *variable_at(const void *p, struct library **ret, uint64_t *ret_offset)
{
    const struct registered *r = registered_at(p, false);

    if (r) {
        *ret = r->library;
        *ret_offset = (uintptr_t)p - (uintptr_t)r->address;
        return r->name;
    }
    *ret = library_at(p);
    return *ret && !n_registered ? name_at(*ret, p, false, ret_offset) : NULL;
}

static bool find_symbol(const void *p, uint64_t *ret_at, uint64_t *ret_bytes)
{
    struct library *l;
    uint64_t offset, at, bytes;
    const char *name;
    uint32_t module;

    if (known_symbol(p, ret_at, ret_bytes))
        return true;
    if (!(name = variable_at(p, &l, &offset)) || module_of(l, &module) ||
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
    const struct registered *r = f->thunk ? NULL : registered_at(f->fn, true);
    const char *kernel, *thunk;
    uint64_t offset;
    int bytes;

    if (r)
        return snprintf(name, n, "%s", r->name);

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

/* Without a thunk a kernel is one function, wherever it is launched. */
static int function_of(const struct front_launch *from, struct function **ret)
{
    struct front_launch whole = *from;
    const struct front_launch *l = &whole;
    int code = 0;

    if (!whole.thunk)
        whole.file = "", whole.line = 0;
    pthread_mutex_lock(&lock);
    *ret = slot_of(l);
    if (!*ret)
        code = WIRE_OUT_OF_MEMORY;
    else if (!(*ret)->used)
        code = function_make(*ret, l);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Why no device can run it, in words; the runtime's own text where its shape is possible. */
static void launch_reason(const struct front_launch *l, const struct function *f, int code, char *out, size_t n)
{
    const struct wire_info *d = client_info(client);
    const unsigned *g = l->grid, *b = l->block;
    uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
    unsigned limit = f && l->params ? f->info->max_dynamic : (unsigned)d->shared_block;

    if (!threads || !g[0] || !g[1] || !g[2])
        snprintf(out, n, "grid (%u,%u,%u) of blocks (%u,%u,%u) is empty; skip the launch when there is no work", g[0],
                 g[1], g[2], b[0], b[1], b[2]);
    else if (threads > (uint64_t)d->threads_block || b[2] > (unsigned)d->dim[2])
        snprintf(out, n, "block (%u,%u,%u) has %llu threads; at most %d (and %d in z) are possible", b[0], b[1], b[2],
                 (unsigned long long)threads, d->threads_block, d->dim[2]);
    else if (g[0] > (unsigned)d->grid[0] || g[1] > (unsigned)d->grid[1] || g[2] > (unsigned)d->grid[2])
        snprintf(out, n, "grid (%u,%u,%u) is too large; at most (%d,%d,%d) blocks are possible", g[0], g[1], g[2],
                 d->grid[0], d->grid[1], d->grid[2]);
    else if (l->shared > limit)
        snprintf(out, n, "%zu bytes of dynamic shared memory; at most %u are possible, and up to %llu where "
                 "cudaFuncSetAttribute raises it", l->shared, limit, (unsigned long long)d->shared_optin);
    else
        snprintf(out, n, "%s", front_error_text(code));
}

static void note_refused(const struct front_launch *l, const struct function *f, int code)
{
    char why[240], text[400];

    launch_reason(l, f, code, why, sizeof why);
    snprintf(text, sizeof text, "launch of '%.120s' refused: %s", l->shown, why);
    note_at("launch_error", l->shown, text, l->file ? l->file : "", l->line);
}

/* On sim each site of a launch is a function of its own, and an attribute is the kernel's: it is passed on. */
static struct raised {
    const void *fn;
    int value;
} raised[MAX_RAISED];
static int n_raised;

static void note_raised(const void *fn, int value)
{
    int i = 0;

    pthread_mutex_lock(&lock);
    while (i < n_raised && raised[i].fn != fn)
        i++;
    if (i < MAX_RAISED)
        raised[i] = (struct raised){fn, value};
    if (i == n_raised && i < MAX_RAISED)
        n_raised++;
    pthread_mutex_unlock(&lock);
}

static int pass_on(const struct front_launch *l, struct function *f)
{
    int value = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_raised && l->fn; i++)
        value = raised[i].fn == l->fn ? raised[i].value : value;
    pthread_mutex_unlock(&lock);
    if (!value || (unsigned)value == f->info->max_dynamic)
        return 0;
    f->info->max_dynamic = (uint32_t)value;
    return client_func_attr(client, f->id, 8, value);
}

/* Much shared memory on sim: whether an attribute allows it is the executor's to say, so it is asked. */
static int allowed(const struct front_launch *l)
{
    int code = l->params || l->shared <= client_info(client)->shared_block ? 0 : client_fence(client);

    return code ? code : client_error(client) == WIRE_INVALID ? WIRE_INVALID : 0;
}

int front_launch(const struct front_launch *l)
{
    static const struct wire_attr together = {WIRE_ATTR_COOPERATIVE, {1, 0, 0}};
    struct client_launch c = {.stream = number(l->stream), .shared = (uint32_t)l->shared, .args = l->args,
                              .args_bytes = (uint32_t)l->n_args, .attr = l->attr, .attrs = l->attrs};
    struct function *f = NULL;
    int code = front_last_error(1);

    if (client_error(client))
        return code;
    if (l->cooperative)
        c.attr = &together, c.attrs = 1;
    if ((code = function_of(l, &f)) == 0) {
        c.function = f->id;
        memcpy(c.grid, l->grid, sizeof c.grid);
        memcpy(c.block, l->block, sizeof c.block);
        c.info = l->params ? f->info : NULL;
        if (!l->params)
            code = pass_on(l, f);
        code = code ? code : l->params ? client_launch_args(client, &c, l->params) : client_launch(client, &c);
        code = code ? code : allowed(l);
    }
    if (code)
        note_refused(l, f, code);
    return front_fail(code);
}

int front_function_attribute(const void *fn, int attribute, int value)
{
    struct front_launch l = {.shown = "", .file = "", .fn = fn};
    struct function *f;
    int code = function_of(&l, &f);

    if (!code && attribute == 8 &&
        (value < 0 || (uint64_t)value + f->info->static_shared > client_info(client)->shared_optin))
        code = WIRE_INVALID;
    if (!code && (code = client_func_attr(client, f->id, attribute, value)) == 0 && attribute == 8) {
        f->info->max_dynamic = (uint32_t)value;
        note_raised(fn, value);
    }
    return front_fail(code);
}

int front_function_info(const void *fn, struct front_function *ret)
{
    struct front_launch l = {.shown = "", .file = "", .fn = fn};
    struct function *f;
    int code = function_of(&l, &f);

    if (!code)
        *ret = (struct front_function){.static_shared = f->info->static_shared, .max_dynamic = f->info->max_dynamic,
                                       .local = f->info->local, .constant = f->info->constant,
                                       .max_threads = (int)f->info->max_threads, .registers = (int)f->info->registers,
                                       .binary = (int)f->info->binary, .ptx = (int)f->info->ptx,
                                       .params = (int)f->info->params};
    return front_fail(code);
}

int front_tensor_map(const struct wire_tensor_map *m, void *ret)
{
    return front_fail(client_tensor_map(client, m, ret));
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
