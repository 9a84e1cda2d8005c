/* image.c - see image.h. */
#include "simt/image.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "runtime.h"

struct simt_function {
    struct simt_function *next;
    void (*thunk)(void *ctx);
    const void *kernel; /* NULL: the thunk knows it */
    char *name, *shown, *file;
    int line;
};

struct simt_image {
    void *handle;
    uintptr_t bias;
    struct names names;
    struct simt_function *functions;
};

int cudaGetLastError(void), simt_func_set_attribute(const void *fn, int attr, int value);

struct simt_image *simt_image_open(const char *path, char *why, size_t n_why)
{
    struct simt_image *m = calloc(1, sizeof *m);
    struct link_map *map;

    if (!m)
        return snprintf(why, n_why, "out of memory"), NULL;
    if (!names_open(path, &m->names)) {
        snprintf(why, n_why, "'%s' cannot be read, or has no symbols", path);
    } else if (!(m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) || dlinfo(m->handle, RTLD_DI_LINKMAP, &map) != 0) {
        snprintf(why, n_why, "%s", dlerror());
    } else {
        m->bias = map->l_addr;
        line_of((const void *)m->bias); /* maps the file, for findings */
        check_build |= names_refers(&m->names, "__tsan_"); /* else its constructor says so, which is stripped */
        return m;
    }
    simt_image_close(m);
    return NULL;
}

static void function_free(struct simt_function *f)
{
    free(f->name);
    free(f->shown);
    free(f);
}

void simt_image_close(struct simt_image *m)
{
    if (!m)
        return;
    while (m->functions) {
        struct simt_function *f = m->functions;

        m->functions = f->next;
        function_free(f);
    }
    if (m->handle)
        dlclose(m->handle);
    names_close(&m->names);
    free(m);
}

static void *address(const struct simt_image *m, const char *name, bool function, size_t *ret_bytes)
{
    uint64_t at, bytes;

    if (!names_find(&m->names, name, function, &at, &bytes))
        return NULL;
    if (ret_bytes)
        *ret_bytes = bytes;
    return (void *)(m->bias + at);
}

void *simt_image_symbol(struct simt_image *m, const char *name, size_t *ret_bytes)
{
    return address(m, name, false, ret_bytes);
}

/* Cuts text into five parts at its line breaks, in place. */
static bool cut(char *text, char *part[5])
{
    for (int i = 0; i < 5; i++) {
        part[i] = text;
        if (i == 4)
            return !strchr(text, '\n');
        if (!(text = strchr(text, '\n')))
            return false;
        *text++ = 0;
    }
    return true;
}

static struct simt_function *function_make(struct simt_image *m, const char *name)
{
    struct simt_function *f = calloc(1, sizeof *f);
    char *part[5];

    if (!f || !(f->name = strdup(name)) || !(f->shown = strdup(name)) || !cut(f->shown, part)) {
        if (f)
            function_free(f);
        return NULL;
    }
    f->thunk = *part[0] ? (void (*)(void *))address(m, part[0], true, NULL) : NULL;
    f->kernel = *part[1] ? address(m, part[1], true, NULL) : NULL;
    if ((*part[0] && !f->thunk) || (*part[1] && !f->kernel)) {
        function_free(f);
        return NULL;
    }
    memmove(f->shown, part[2], strlen(part[2]) + 1 + strlen(part[3]) + 1);
    f->file = f->shown + strlen(f->shown) + 1;
    f->line = atoi(part[4]);
    return f;
}

const struct simt_function *simt_image_function(struct simt_image *m, const char *name)
{
    struct simt_function *f;

    for (f = m->functions; f; f = f->next)
        if (!strcmp(f->name, name))
            return f;
    if (!(f = function_make(m, name)))
        return NULL;
    f->next = m->functions;
    m->functions = f;
    return f;
}

int simt_image_attribute(const struct simt_function *f, int attribute, int value)
{
    return f->kernel ? simt_func_set_attribute(f->kernel, attribute, value) : 98; /* cudaErrorInvalidDeviceFunction */
}

/* The block of arguments begins with the kernel's address, where the thunk does not know it. */
int simt_image_launch(const struct simt_function *f, const unsigned grid[3], const unsigned block[3], size_t shared,
                      int cooperative, const void *args, size_t n)
{
    static _Alignas(64) unsigned char copy[SIMT_IMAGE_MAX_ARGS];
    struct simt_launch l = {.kernel = f->shown, .file = f->file, .line = f->line, .grid = {grid[0], grid[1], grid[2]},
                            .block = {block[0], block[1], block[2]}, .shared = shared, .body = f->thunk, .ctx = copy,
                            .ctx_bytes = n, .fn = f->kernel, .cooperative = cooperative};

    if (!f->thunk)
        return 98; /* cudaErrorInvalidDeviceFunction */
    if (n > sizeof copy || (f->kernel && n < sizeof f->kernel))
        return CUDA_INVALID_VALUE;
    memcpy(copy, args, n);
    if (f->kernel)
        memcpy(copy, &f->kernel, sizeof f->kernel);
    simt_run(&l);
    return cudaGetLastError();
}
