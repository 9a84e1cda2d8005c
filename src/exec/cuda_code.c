/* cuda_code.c - modules, functions and launches on an NVIDIA GPU. */
#include <stdio.h>
#include <string.h>

#include "exec/cuda_device.h"

int drv_more_load(const struct drv_vendor *vendor, struct drv_more *ret, struct err *e)
{
#define FIND(member, symbol, args)                                                                                     \
    if (drv_symbol(vendor, symbol, (void **)&ret->member, e) < 0)                                                     \
        return -1;
    DRV_MORE(FIND)
#undef FIND
    return 0;
}

/* A lookup that fails is an answer, not a fault of the device. */
static int cuda_code_answer(struct exec_driver *b, int code, const char *what)
{
    const char *text = NULL;

    if (code && !b->error && b->c->GetErrorString(code, &text) == 0)
        snprintf(b->why, sizeof b->why, "%s: %s", what, text ? text : "unknown error");
    return code;
}

/* exec_backend's 'module': loads an image. A code of WIRE. */
int cuda_module(struct exec_driver *b, const void *image, size_t n, backend_handle *ret)
{
    drv_module m = NULL;
    int code;

    (void)n;
    if (b->error || b->n_modules == CONTEXT_MODULES)
        return b->error ? b->error : WIRE_REFUSED;
    if ((code = b->c->ModuleLoad(&m, image)))
        return cuda_code_answer(b, code, "an image");
    b->modules[b->n_modules++] = m;
    *ret = m;
    return WIRE_OK;
}

static uint32_t cuda_code_func_attr_of(struct exec_driver *b, drv_function f, int what)
{
    int v = 0;

    return b->m.FuncGet(&v, what, f) == 0 && v > 0 ? (uint32_t)v : 0;
}

/* Fills the offsets and sizes of a function's parameters, where the driver tells them. */
static void cuda_code_parameters(struct exec_driver *b, drv_function f, struct wire_function_info *info)
{
    size_t offset, bytes;

    while (b->m.FuncParam && info->params < WIRE_PARAMS && b->m.FuncParam(f, info->params, &offset, &bytes) == 0) {
        info->param[info->params++] = (struct wire_param){(uint32_t)offset, (uint32_t)bytes};
        info->args_bytes = (uint32_t)(offset + bytes);
    }
}

/* exec_backend's 'function'. The handle goes to *ret, parameters and attributes to *info. */
int cuda_function(struct exec_driver *b, backend_handle module, const char *name, backend_handle *ret,
                  struct wire_function_info *info)
{
    drv_function f = NULL;
    int code = b->error ? b->error : b->c->ModuleFunction(&f, module, name);

    if (code)
        return cuda_code_answer(b, code, name);
    memset(info, 0, sizeof *info);
    cuda_code_parameters(b, f, info);
    info->static_shared = cuda_code_func_attr_of(b, f, DRV_FUNC_STATIC_SHARED);
    info->max_dynamic = cuda_code_func_attr_of(b, f, DRV_FUNC_MAX_DYNAMIC);
    info->max_threads = cuda_code_func_attr_of(b, f, DRV_FUNC_MAX_THREADS);
    info->registers = cuda_code_func_attr_of(b, f, DRV_FUNC_REGISTERS);
    info->local = cuda_code_func_attr_of(b, f, DRV_FUNC_LOCAL);
    info->constant = cuda_code_func_attr_of(b, f, DRV_FUNC_CONSTANT);
    info->binary = cuda_code_func_attr_of(b, f, DRV_FUNC_BINARY);
    info->ptx = cuda_code_func_attr_of(b, f, DRV_FUNC_PTX);
    *ret = f;
    return WIRE_OK;
}

/* exec_backend's 'symbol': a global variable's address and bytes. */
int cuda_symbol(struct exec_driver *b, backend_handle module, const char *name, uint64_t *ret_addr,
                uint64_t *ret_bytes)
{
    size_t n = 0;
    int code = b->error ? b->error : b->c->ModuleGlobal(ret_addr, &n, module, name);

    *ret_bytes = n;
    return cuda_code_answer(b, code, name);
}

int cuda_func_attr(struct exec_driver *b, backend_handle f, int what, int value)
{
    return cuda_code_answer(b, b->error ? b->error : b->m.FuncSet(f, what, value), "an attribute of a kernel");
}

int cuda_occupancy(struct exec_driver *b, backend_handle f, uint32_t threads, uint64_t shared, int *ret)
{
    return cuda_code_answer(b, b->error ? b->error : b->m.Occupancy(ret, f, (int)threads, shared), "occupancy");
}

/* exec_backend's 'tensor_map'; WIRE_UNSUPPORTED where the driver has none. */
int cuda_tensor_map(struct exec_driver *b, const struct wire_tensor_map *m, uint8_t ret[128])
{
    _Alignas(64) uint8_t map[128] = {0};
    int code = WIRE_UNSUPPORTED;

    if (b->m.TensorMap)
        code = b->m.TensorMap(map, (int)m->type, m->rank, (void *)(uintptr_t)m->addr, m->size, m->stride, m->box,
                              m->element_stride, (int)m->interleave, (int)m->swizzle, (int)m->l2, (int)m->fill);
    memcpy(ret, map, sizeof map);
    return cuda_code_answer(b, code, "a tensor map");
}

/* ---- launches ---- */

/* The launch's attributes as the driver's; returns how many. */
static unsigned cuda_code_attrs_of(const struct wire_launch *w, struct drv_launch_attr *to)
{
    memset(to, 0, WIRE_ATTRS * sizeof *to);
    for (uint32_t i = 0; i < w->attrs; i++) {
        to[i].id = (int)w->attr[i].kind;
        memcpy(to[i].value, w->attr[i].v, sizeof w->attr[i].v);
    }
    return w->attrs;
}

/* Launches with attributes. 0 or the driver's code. */
static int cuda_code_launch_with_attrs(struct exec_driver *b, const struct backend_launch *l, void **extra)
{
    const struct wire_launch *w = l->w;
    struct drv_launch_attr attrs[WIRE_ATTRS];
    struct drv_launch c = {.grid = {w->grid[0], w->grid[1], w->grid[2]},
                           .block = {w->block[0], w->block[1], w->block[2]},
                           .shared = w->shared, .stream = l->stream, .attrs = attrs,
                           .n_attrs = cuda_code_attrs_of(w, attrs)};

    return b->m.LaunchEx(&c, l->function, NULL, extra);
}

/* exec_backend's 'launch'. Arguments go as one buffer; a code of WIRE. */
int cuda_launch(struct exec_driver *b, const struct backend_launch *l)
{
    const struct wire_launch *w = l->w;
    size_t n = l->args_bytes;
    void *extra[] = {(void *)1, (void *)l->args, (void *)2, &n, NULL}; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE */

    if (b->error)
        return b->error;
    if (w->attrs && !b->m.LaunchEx)
        return cuda_fault(b, WIRE_UNSUPPORTED, "a launch with attributes");
    if (w->attrs)
        return cuda_fault(b, cuda_code_launch_with_attrs(b, l, extra), "launch");
    return cuda_fault(b, b->c->Launch(l->function, w->grid[0], w->grid[1], w->grid[2], w->block[0], w->block[1],
                                      w->block[2], w->shared, l->stream, NULL, extra), "launch");
}

int cuda_fault(struct exec_driver *b, int code, const char *what)
{
    const char *text = NULL;

    if (code == 0 || b->error)
        return b->error;
    if (b->c->GetErrorString(code, &text) != 0 || !text)
        text = "unknown error";
    snprintf(b->why, sizeof b->why, "%s: %s", what, text);
    return b->error = code;
}
