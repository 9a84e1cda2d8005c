/* exec_backend_sim.c - the emulator as a device: memory in a file without a name, data movement done here, kernels in
 * a process of their own (kernels.h). Everything is in program order, so streams are numbers and events are time
 * stamps. Functions are the members of struct backend_ops (exec_backend.h) of their name. */
#define EXEC_BACKEND exec_sim
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "exec/exec_backend.h"
#include "exec/kernels.h"
#include "exec/exec_element.h"
#include "exec/data_movement.h"

#define RESERVED ((uint64_t)64 << 30)
#define MEMORY ((uint64_t)8 << 30)

struct exec_sim_share { /* the judge's memory, mapped for copies only: kernels have one of their own at addr */
    uint8_t *p;
    uint64_t addr, bytes;
};

struct exec_sim {
    uint8_t *memory; /* device address WIRE_BASE + i is memory[i] here */
    int memory_fd, line; /* line: the running process for kernels, or -1 */
    struct kernels_source source;
    char *folder; /* images as files */
    int error;
    char why[256];
    uint8_t *written; /* exec_sim_mark() */
    int written_fd;
    char *findings; /* the last words of a process that is gone */
    uint64_t changed; /* elements that casts changed */
    uint8_t poison;   /* of shared memory */
    enum backend_blocks blocks;
    volatile sig_atomic_t runs; /* a kernel */
    uint64_t mapped;  /* bytes behind WIRE_BASE that were ever asked for */
    struct exec_sim_share *shares;
    size_t n_shares;
    struct kernels_ask q;
    struct kernels_answer r;
};

struct stamp { /* an event */
    double ms;
    bool recorded;
};

/* The limits that libsimt holds launches to (simt/runtime/host.c); the rest describes an H100-class part. */
static struct wire_info device = {
    .name = "musacoder sim", .memory = MEMORY, .reserved = RESERVED, .shared_block = 48u << 10,
    .shared_optin = 227u << 10, .shared_multiprocessor = 228u << 10, .constant = 64u << 10, .pitch = 0x7fffffff,
    .regs_block = 65536, .regs_multiprocessor = 65536, .warp = 32, .threads_block = 1024, .dim = {1024, 1024, 64},
    .grid = {0x7fffffff, 65535, 65535}, .clock_khz = 1980000, .major = 9, .minor = 0, .multiprocessors = 132,
    .threads_multiprocessor = 2048, .blocks_multiprocessor = 32, .l2 = 50 << 20, .memory_clock_khz = 2619000,
    .memory_bus = 5120, .cooperative = 1, .backend = 0,
};

/* "NAME=" in a profile's text: its value, or fallback. */
static uint64_t exec_sim_figure(const char *text, const char *name, uint64_t fallback)
{
    size_t n = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += n)
        if (at[n] == '=' && (at == text || at[-1] == ';'))
            return strtoull(at + n + 1, NULL, 10);
    return fallback;
}

/* Of $SIMT_PROFILE ("card=MTT S4000;warp_host=128;..."), which libsimt reads too (simt/runtime/host.c). */
static void exec_sim_profiled(struct wire_info *d)
{
    const char *text = getenv("SIMT_PROFILE");
    uint64_t arch;

    if (!text || sscanf(text, "card=%200[^;]", d->name) != 1)
        return;
    d->shared_block = exec_sim_figure(text, "shared_static_bytes", d->shared_block);
    d->shared_multiprocessor = d->shared_optin = exec_sim_figure(text, "shared_block_bytes", d->shared_optin);
    d->constant = exec_sim_figure(text, "constant_bytes", d->constant);
    d->warp = (int32_t)exec_sim_figure(text, "warp_host", (uint64_t)d->warp);
    d->multiprocessors = (int32_t)exec_sim_figure(text, "multiprocessors", (uint64_t)d->multiprocessors);
    d->threads_multiprocessor = (int32_t)exec_sim_figure(text, "threads_multiprocessor",
                                                         (uint64_t)d->threads_multiprocessor);
    d->regs_multiprocessor = (int32_t)exec_sim_figure(text, "registers_multiprocessor",
                                                      (uint64_t)d->regs_multiprocessor);
    d->regs_block = d->regs_multiprocessor;
    d->l2 = (int32_t)exec_sim_figure(text, "l2_bytes", (uint64_t)d->l2);
    d->grid[1] = d->grid[2] = (int32_t)exec_sim_figure(text, "grid_yz", (uint64_t)d->grid[1]);
    d->cooperative = (int32_t)exec_sim_figure(text, "cooperative", 0);
    arch = exec_sim_figure(text, "arch_number", 900);
    d->major = (int32_t)(arch / 100);
    d->minor = (int32_t)(arch / 10 % 10);
}

/* Keeps the first error and its words; returns code. */
static int exec_sim_fault(struct exec_sim *b, int code, const char *why)
{
    if (!b->error) {
        b->error = code;
        snprintf(b->why, sizeof b->why, "%s", why);
    }
    return code;
}

/* ---- memory of the judge's ---- */

/* exec_backend's 'share': maps the judge's memory here, not at addr itself. */
static int exec_sim_share(struct exec_sim *b, int fd, uint64_t addr, uint64_t bytes, struct err *e)
{
    struct exec_sim_share m = {mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), addr, bytes};

    if (m.p == MAP_FAILED)
        return err_sys(e, "cannot map memory of the judge's");
    b->shares = xrealloc(b->shares, (b->n_shares + 1) * sizeof *b->shares);
    b->shares[b->n_shares++] = m;
    return 0;
}

/* exec_backend's 'unshare'. */
static void exec_sim_unshare(struct exec_sim *b)
{
    for (size_t i = 0; i < b->n_shares; i++)
        munmap(b->shares[i].p, b->shares[i].bytes);
    free(b->shares);
    b->shares = NULL;
    b->n_shares = 0;
}

/* [addr, + n) as others see it; NULL: it is not shared. */
static uint8_t *exec_sim_shared_at(const struct exec_sim *b, uint64_t addr, uint64_t n)
{
    for (size_t i = 0; i < b->n_shares; i++) {
        const struct exec_sim_share *m = &b->shares[i];

        if (addr >= m->addr && n <= m->bytes && addr - m->addr <= m->bytes - n)
            return m->p + (addr - m->addr);
    }
    return NULL;
}

/* ---- the process for kernels ---- */

/* The text of the last answer; owned. */
static char *exec_sim_answer_text(const struct exec_sim *b)
{
    return xstrndup((const char *)b->r.data, b->r.n);
}

/* Asks the process of kernels what b->q says. Its code; WIRE_LAUNCH_FAILED where it ended. */
static int exec_sim_ask(struct exec_sim *b)
{
    if (b->line < 0 || !kernels_ask(b->line, &b->q, &b->r)) {
        close(b->line);
        b->line = -1;
        return exec_sim_fault(b, WIRE_LAUNCH_FAILED, "the process that ran the kernel ended");
    }
    return b->r.code;
}

/* Begins a question; the caller may add to it before it is asked. */
static struct kernels_ask *exec_sim_question(struct exec_sim *b, enum kernels_op op, uint64_t a, const void *data,
                                             size_t n)
{
    memset(&b->q, 0, offsetof(struct kernels_ask, data));
    b->q.op = op;
    b->q.a = a;
    b->q.n = (uint32_t)(n < KERNELS_DATA ? n : KERNELS_DATA);
    if (n)
        memcpy(b->q.data, data, b->q.n);
    return &b->q;
}

/* ---- which bytes of device memory anything has written: a bit each, which the kernels' process shares ---- */

/* Marks bytes as written, or as not written, for the checker. */
static void exec_sim_mark(const struct exec_sim *b, uint64_t addr, uint64_t n, bool on)
{
    uint64_t i = addr - WIRE_BASE, end = i + n;

    if (!n || i >= RESERVED || n > RESERVED - i)
        return;
    for (; i < end && (i & 7); i++)
        b->written[i / 8] = (uint8_t)(on ? b->written[i / 8] | 1u << (i & 7) : b->written[i / 8] & ~(1u << (i & 7)));
    if (end - i >= 8)
        memset(b->written + i / 8, on ? 0xff : 0, (end - i) / 8);
    for (i += (end - i) / 8 * 8; i < end; i++)
        b->written[i / 8] = (uint8_t)(on ? b->written[i / 8] | 1u << (i & 7) : b->written[i / 8] & ~(1u << (i & 7)));
}

/* A view: from its first byte to its last, gaps included. */
static void exec_sim_mark_view(const struct exec_sim *b, uint64_t addr, uint32_t dtype, uint32_t dims,
                               const int64_t *size, const int64_t *stride)
{
    uint64_t n;

    if (wire_view_span(dtype, dims, size, stride, &n))
        exec_sim_mark(b, addr, n, true);
}

/* exec_backend's 'open' for the emulator: device memory is a memfd, and kernels run in a process apart. */
static int exec_sim_open(const struct backend_options *o, struct exec_sim **ret, struct wire_info *info,
                         struct err *e)
{
    struct exec_sim *b = xcalloc(1, sizeof *b);
    char *lib = path_lib("libsimt.so"), name[48];
    int rc = -1;

    snprintf(name, sizeof name, "musacoder-exec-%d", (int)getppid()); /* whose it is */
    b->line = -1;
    b->poison = 0xff;
    b->memory_fd = memfd_create("device", MFD_CLOEXEC);
    b->memory = MAP_FAILED;
    if (b->memory_fd >= 0 && ftruncate(b->memory_fd, (off_t)RESERVED) == 0)
        b->memory = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, b->memory_fd, 0);
    b->written_fd = memfd_create("written", MFD_CLOEXEC);
    b->written = MAP_FAILED;
    if (b->written_fd >= 0 && ftruncate(b->written_fd, (off_t)(RESERVED / 8)) == 0)
        b->written = mmap(NULL, RESERVED / 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, b->written_fd, 0);
    if (!lib)
        err_set(e, ERR_ENV, "'libsimt.so' is missing; run 'make'");
    else if (b->memory == MAP_FAILED || b->written == MAP_FAILED)
        err_sys(e, "cannot reserve memory for the simulated device");
    else if ((b->folder = dir_temp(name, e)))
        rc = kernels_source_start(&(struct kernels_place){lib, b->folder, b->memory_fd, b->written_fd, RESERVED,
                                                          !o->no_check},
                                  &b->source, e);
    free(lib);
    exec_sim_profiled(&device);
    *info = device;
    if (o->memory)
        info->memory = o->memory < RESERVED / 2 ? o->memory : RESERVED / 2;
    *ret = b;
    return rc;
}

/* exec_backend's 'shut_in': from now on only the image's folder can be seen. */
static bool exec_sim_shut_in(struct exec_sim *b)
{
    if (chdir(b->folder) < 0 || chroot(".") < 0 || chdir("/") < 0)
        return false;
    b->folder[0] = 0;
    return true;
}

static void exec_sim_tidy(struct exec_sim *b)
{
    if (b->folder && b->folder[0])
        dir_remove(b->folder, NULL);
}

/* exec_backend's 'close': ends the process of kernels and frees all. */
static void exec_sim_close(struct exec_sim *b)
{
    if (b->line >= 0)
        close(b->line);
    kernels_source_end(&b->source);
    exec_sim_tidy(b);
    exec_sim_unshare(b);
    munmap(b->memory, RESERVED);
    munmap(b->written, RESERVED / 8);
    close(b->memory_fd);
    close(b->written_fd);
    free(b->folder);
    free(b->findings);
    free(b);
}

/* A new process: variables have their first values again, at the same addresses. */
static int exec_sim_fresh(struct exec_sim *b, struct err *e)
{
    if (b->line >= 0)
        close(b->line);
    b->error = WIRE_OK;
    b->why[0] = 0;
    b->changed = b->mapped = 0;
    b->blocks = BACKEND_BLOCKS_IN_ORDER;
    free(b->findings);
    b->findings = NULL;
    fallocate(b->memory_fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, (off_t)RESERVED);
    return (b->line = kernels_start(&b->source, e)) < 0 ? -1 : 0;
}

static int exec_sim_map(struct exec_sim *b, uint64_t bytes)
{
    b->mapped = bytes > b->mapped && bytes <= RESERVED ? bytes : b->mapped;
    return bytes <= RESERVED ? WIRE_OK : WIRE_OUT_OF_MEMORY;
}

static uint64_t exec_sim_mapped(struct exec_sim *b)
{
    return b->mapped;
}

/* Tells the kernels' process which bytes are alive, so that it can check accesses. */
static void exec_sim_block(struct exec_sim *b, uint64_t addr, uint64_t bytes, bool lives)
{
    exec_sim_mark(b, addr, lives ? bytes : 0, false);
    exec_sim_question(b, KERNELS_BLOCK, addr, NULL, 0)->b = lives ? bytes : 0;
    exec_sim_ask(b);
}

/* ---- memory ---- */

/* What lies in the kernels' process goes there and back in pieces: that one says itself how much it has. */
#define FAR_PIECE ((uint64_t)4 << 20)

/* The address in this process; NULL: outside the device's memory. */
static uint8_t *exec_sim_local(const struct exec_sim *b, uint64_t addr)
{
    return addr - WIRE_BASE < RESERVED ? b->memory + (addr - WIRE_BASE) : NULL;
}

/* exec_backend's 'push': shared bytes into the emulator's memory. */
static int exec_sim_push(struct exec_sim *b, uint64_t addr, uint64_t n)
{
    const uint8_t *p = exec_sim_shared_at(b, addr, n);

    if (!p || !exec_sim_local(b, addr))
        return WIRE_UNKNOWN;
    memcpy(exec_sim_local(b, addr), p, n);
    exec_sim_mark(b, addr, n, true);
    return WIRE_OK;
}

/* exec_backend's 'pull': the emulator's bytes into the shared memory. */
static int exec_sim_pull(struct exec_sim *b, uint64_t addr, uint64_t n)
{
    uint8_t *p = exec_sim_shared_at(b, addr, n);

    if (!p || !exec_sim_local(b, addr))
        return WIRE_UNKNOWN;
    memcpy(p, exec_sim_local(b, addr), n);
    return WIRE_OK;
}

/* Writes memory that only the process of kernels has: its global variables. */
static int exec_sim_far_write(struct exec_sim *b, uint64_t to, const uint8_t *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += KERNELS_DATA) {
        exec_sim_question(b, KERNELS_WRITE, to + i, from + i, n - i < KERNELS_DATA ? n - i : KERNELS_DATA);
        if (exec_sim_ask(b))
            return b->r.code;
    }
    return WIRE_OK;
}

/* Reads memory that only the process of kernels has. */
static int exec_sim_far_read(struct exec_sim *b, uint8_t *to, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += KERNELS_DATA) {
        uint64_t part = n - i < KERNELS_DATA ? n - i : KERNELS_DATA;

        exec_sim_question(b, KERNELS_READ, from + i, NULL, 0)->b = part;
        if (exec_sim_ask(b))
            return b->r.code;
        memcpy(to + i, b->r.data, part < b->r.n ? part : b->r.n);
    }
    return WIRE_OK;
}

/* exec_backend's 'write'; done at once. */
static int exec_sim_write(struct exec_sim *b, uint64_t to, const void *from, uint64_t n, backend_handle s)
{
    (void)s;
    if (b->error)
        return b->error;
    if (!exec_sim_local(b, to))
        return exec_sim_far_write(b, to, from, n);
    memcpy(exec_sim_local(b, to), from, n);
    exec_sim_mark(b, to, n, true);
    return WIRE_OK;
}

/* exec_backend's 'read'; done at once. */
static int exec_sim_read(struct exec_sim *b, void *to, uint64_t from, uint64_t n)
{
    if (b->error)
        return b->error;
    if (!exec_sim_local(b, from))
        return exec_sim_far_read(b, to, from, n);
    memcpy(to, exec_sim_local(b, from), n);
    return WIRE_OK;
}

/* exec_backend's 'copy' in pieces, where one end is not the emulator's own memory. */
static int exec_sim_copy(struct exec_sim *b, uint64_t to, uint64_t from, uint64_t n, backend_handle s)
{
    uint8_t *p;
    int code;

    if (exec_sim_local(b, to) && exec_sim_local(b, from)) {
        memcpy(exec_sim_local(b, to), exec_sim_local(b, from), b->error ? 0 : n);
        exec_sim_mark(b, to, n, true);
        return b->error;
    }
    p = xmalloc(FAR_PIECE);
    code = b->error;
    for (uint64_t at = 0, part; at < n && !code; at += part) {
        part = n - at < FAR_PIECE ? n - at : FAR_PIECE;
        code = exec_sim_read(b, p, from + at, part);
        code = code ? code : exec_sim_write(b, to + at, p, part, s);
    }
    free(p);
    return code;
}

/* exec_backend's 'set' in pieces, where the memory is not the emulator's own. */
static int exec_sim_set(struct exec_sim *b, const struct wire_memset *m, backend_handle s)
{
    uint64_t n = m->count * m->width;
    struct wire_memset piece = *m;
    uint8_t *p = exec_sim_local(b, m->addr);
    int code = b->error;

    if (p && !code) {
        movement_host_set(p, m);
        exec_sim_mark(b, m->addr, n, true);
    }
    if (p || code)
        return code;
    piece.count = m->count < FAR_PIECE / m->width ? m->count : FAR_PIECE / m->width;
    p = xmalloc(FAR_PIECE);
    movement_host_set(p, &piece);
    for (uint64_t at = 0, part; at < n && !code; at += part) {
        part = n - at < piece.count * m->width ? n - at : piece.count * m->width;
        code = exec_sim_write(b, m->addr + at, p, part, s);
    }
    free(p);
    return code;
}

/* ---- data movement: within device memory only ---- */

/* exec_backend's 'fill'; done at once. */
static int exec_sim_fill(struct exec_sim *b, const struct wire_fill *m, backend_handle s)
{
    (void)s;
    if (!exec_sim_local(b, m->addr) || b->error)
        return b->error ? b->error : WIRE_UNSUPPORTED;
    movement_host_fill(exec_sim_local(b, m->addr), m);
    exec_sim_mark_view(b, m->addr, m->dtype, m->dims, m->size, m->stride);
    return WIRE_OK;
}

/* exec_backend's 'strided'; done at once. */
static int exec_sim_strided(struct exec_sim *b, const struct wire_strided *m, backend_handle s)
{
    (void)s;
    if (!exec_sim_local(b, m->to) || !exec_sim_local(b, m->from) || b->error)
        return b->error ? b->error : WIRE_UNSUPPORTED;
    b->changed += movement_host_strided(exec_sim_local(b, m->to), exec_sim_local(b, m->from), m);
    exec_sim_mark_view(b, m->to, m->to_dtype, m->dims, m->size, m->to_stride);
    return WIRE_OK;
}

/* exec_backend's 'arange'; done at once. */
static int exec_sim_arange(struct exec_sim *b, const struct wire_arange *m, backend_handle s)
{
    (void)s;
    if (!exec_sim_local(b, m->addr) || b->error)
        return b->error ? b->error : WIRE_UNSUPPORTED;
    movement_host_arange(exec_sim_local(b, m->addr), m);
    exec_sim_mark(b, m->addr, m->count * (uint64_t)px_bytes(m->dtype), true);
    return WIRE_OK;
}

/* exec_backend's 'random'; done at once. */
static int exec_sim_random(struct exec_sim *b, const struct wire_random *m, backend_handle s)
{
    (void)s;
    if (!exec_sim_local(b, m->addr) || b->error)
        return b->error ? b->error : WIRE_UNSUPPORTED;
    movement_host_random(exec_sim_local(b, m->addr), m);
    exec_sim_mark(b, m->addr, m->count * (uint64_t)px_bytes(m->dtype), true);
    return WIRE_OK;
}

/* exec_backend's 'equal'. */
static int exec_sim_equal(struct exec_sim *b, const struct wire_equal *m, bool *ret)
{
    if (!exec_sim_local(b, m->a) || !exec_sim_local(b, m->b) || b->error)
        return b->error ? b->error : WIRE_UNSUPPORTED;
    *ret = movement_host_equal(exec_sim_local(b, m->a), exec_sim_local(b, m->b), m);
    return WIRE_OK;
}

static uint64_t exec_sim_changed(struct exec_sim *b)
{
    return b->changed;
}

/* ---- code. Handles are the kernel process's numbers plus one ---- */

static backend_handle exec_sim_handle_of(uint64_t n)
{
    return (backend_handle)(uintptr_t)(n + 1);
}

static uint64_t exec_sim_number_of(backend_handle h)
{
    return (uint64_t)(uintptr_t)h - 1;
}

/* exec_backend's 'module': writes the image to a file named by its hash and has it loaded. */
static int exec_sim_module(struct exec_sim *b, const void *image, size_t n, backend_handle *ret)
{
    char hash[65], name[80], *path;
    struct err e = ERR_INIT;
    int code = WIRE_UNKNOWN;

    sha256_hex(image, n, hash);
    snprintf(name, sizeof name, "/%s.so", hash);
    path = xasprintf("%s%s", b->folder, name);
    if (file_exists(path) || file_write(path, image, n, &e) == 0) {
        exec_sim_question(b, KERNELS_MODULE, 0, name, strlen(name));
        code = exec_sim_ask(b);
        *ret = exec_sim_handle_of(b->r.v[0]);
        if (code && !b->error)
            snprintf(b->why, sizeof b->why, "%.*s", (int)(b->r.n < 255 ? b->r.n : 255), (const char *)b->r.data);
    } else {
        exec_sim_fault(b, WIRE_UNKNOWN, e.msg);
    }
    free(path);
    return code;
}

/* exec_backend's 'function', asked of the process of kernels. */
static int sim_function(struct exec_sim *b, backend_handle module, const char *name, backend_handle *ret,
                        struct wire_function_info *info)
{
    int code;

    exec_sim_question(b, KERNELS_FUNCTION, exec_sim_number_of(module), name, strlen(name));
    if ((code = exec_sim_ask(b)))
        return code;
    *ret = exec_sim_handle_of(b->r.v[0]);
    memset(info, 0, sizeof *info);
    info->max_threads = (uint32_t)device.threads_block;
    info->max_dynamic = (uint32_t)device.shared_optin; /* libsimt holds each kernel to what its attribute allows */
    info->registers = 32;
    info->binary = info->ptx = 90;
    return WIRE_OK;
}

/* exec_backend's 'symbol', asked of the process of kernels. */
static int exec_sim_symbol(struct exec_sim *b, backend_handle module, const char *name, uint64_t *ret_addr,
                           uint64_t *ret_bytes)
{
    int code;

    exec_sim_question(b, KERNELS_SYMBOL, exec_sim_number_of(module), name, strlen(name));
    if ((code = exec_sim_ask(b)))
        return code;
    if (b->r.v[1] > RESERVED || b->r.v[0] > UINT64_MAX - RESERVED || /* what foreign code says is no address of ours */
        (b->r.v[0] < WIRE_BASE + RESERVED && b->r.v[0] + b->r.v[1] > WIRE_BASE))
        return exec_sim_fault(b, WIRE_LAUNCH_FAILED, "the process for kernels says nonsense");
    *ret_addr = b->r.v[0], *ret_bytes = b->r.v[1];
    return WIRE_OK;
}

/* exec_backend's 'func_attr'. */
static int sim_func_attr(struct exec_sim *b, backend_handle f, int attr, int value)
{
    exec_sim_question(b, KERNELS_ATTR, exec_sim_number_of(f), NULL, 0);
    b->q.b = (uint64_t)attr;
    b->q.c = (uint64_t)(int64_t)value;
    return exec_sim_ask(b);
}

/* exec_backend's 'occupancy', by the emulated device's limits. */
static int sim_occupancy(struct exec_sim *b, backend_handle f, uint32_t threads, uint64_t shared, int *ret)
{
    int by_threads = device.threads_multiprocessor / (int)threads;
    int by_shared = shared ? (int)(device.shared_multiprocessor / shared) : device.blocks_multiprocessor;

    (void)b, (void)f;
    *ret = by_threads < by_shared ? by_threads : by_shared;
    *ret = *ret < device.blocks_multiprocessor ? *ret : device.blocks_multiprocessor;
    return WIRE_OK;
}

static int sim_tensor_map(struct exec_sim *b, const struct wire_tensor_map *m, uint8_t ret[128])
{
    (void)b, (void)m, (void)ret;
    return WIRE_UNSUPPORTED;
}

/* exec_backend's 'launch': the process of kernels runs it and reports its findings. */
static int exec_sim_launch(struct exec_sim *b, const struct backend_launch *l)
{
    struct kernels_ask *q = exec_sim_question(b, KERNELS_LAUNCH, exec_sim_number_of(l->function), l->args,
                                              l->args_bytes);
    int code;

    memcpy(q->grid, l->w->grid, sizeof q->grid);
    memcpy(q->block, l->w->block, sizeof q->block);
    q->shared = l->w->shared;
    q->poison = b->poison;
    q->c = b->blocks;
    for (uint32_t i = 0; i < l->w->attrs; i++)
        q->b |= l->w->attr[i].kind == WIRE_ATTR_COOPERATIVE && l->w->attr[i].v[0];
    if (b->error)
        return b->error;
    b->runs = 1;
    code = exec_sim_ask(b);
    b->runs = 0;
    if (code && b->r.n && !b->findings)
        b->findings = exec_sim_answer_text(b);
    return code ? exec_sim_fault(b, code, "the kernel failed") : WIRE_OK;
}

static void exec_sim_stop(struct exec_sim *b)
{
    if (b->runs)
        kernels_stop(b->line);
}

static void exec_sim_poison(struct exec_sim *b, uint8_t byte)
{
    b->poison = byte;
}

static void exec_sim_blocks(struct exec_sim *b, enum backend_blocks how)
{
    b->blocks = how;
}

/* ---- order ---- */

static int exec_sim_stream(struct exec_sim *b, uint32_t flags, int32_t priority, backend_handle *ret)
{
    (void)b, (void)flags, (void)priority;
    *ret = exec_sim_handle_of(2);
    return WIRE_OK;
}

static void sim_stream_end(struct exec_sim *b, backend_handle s)
{
    (void)b, (void)s;
}

static int exec_sim_event(struct exec_sim *b, uint32_t flags, backend_handle *ret)
{
    (void)b, (void)flags;
    *ret = xcalloc(1, sizeof(struct stamp));
    return WIRE_OK;
}

static void sim_event_end(struct exec_sim *b, backend_handle v)
{
    (void)b;
    free(v);
}

/* exec_backend's 'record': the time of now, as all work is done. */
static int exec_sim_record(struct exec_sim *b, backend_handle v, backend_handle s)
{
    struct stamp *x = v;
    struct timespec t;

    (void)s;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (x)
        *x = (struct stamp){(double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6, true};
    return b->error;
}

static int exec_sim_wait(struct exec_sim *b, backend_handle s, backend_handle v)
{
    (void)s, (void)v;
    return b->error;
}

static int exec_sim_query(struct exec_sim *b, backend_handle h)
{
    (void)h;
    return b->error;
}

/* exec_backend's 'elapsed', in ms. */
static int exec_sim_elapsed(struct exec_sim *b, backend_handle from, backend_handle to, float *ret_ms)
{
    const struct stamp *x = from, *y = to;

    if (!x || !y || !x->recorded || !y->recorded)
        return WIRE_BAD_HANDLE;
    *ret_ms = (float)(y->ms - x->ms);
    return b->error;
}

static int exec_sim_sync(struct exec_sim *b)
{
    return b->error;
}

static const char *exec_sim_why(struct exec_sim *b)
{
    return b->why;
}

/* exec_backend's 'findings': JSON text, owned; NULL: none. */
static char *sim_findings(struct exec_sim *b)
{
    if (b->findings)
        return xstrdup(b->findings);
    if (b->line < 0)
        return NULL;
    exec_sim_question(b, KERNELS_FINDINGS, 0, NULL, 0);
    return exec_sim_ask(b) ? NULL : exec_sim_answer_text(b);
}

/* ---- timing: an emulator's times mean nothing; tests of the way that a GPU goes need them ---- */

static int exec_sim_cold(struct exec_sim *b)
{
    return b->error;
}

/* exec_backend's 'pad': sleeps. */
static int exec_sim_pad(struct exec_sim *b, uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    nanosleep(&t, NULL);
    return b->error;
}

const struct backend_ops exec_on_sim = {
    .open = exec_sim_open, .close = exec_sim_close, .tidy = exec_sim_tidy, .shut_in = exec_sim_shut_in,
    .fresh = exec_sim_fresh,
    .map = exec_sim_map, .mapped = exec_sim_mapped, .block = exec_sim_block, .cold = exec_sim_cold, .pad = exec_sim_pad,
    .share = exec_sim_share, .unshare = exec_sim_unshare, .push = exec_sim_push, .pull = exec_sim_pull,
    .set = exec_sim_set, .write = exec_sim_write, .read = exec_sim_read, .copy = exec_sim_copy, .fill = exec_sim_fill,
    .strided = exec_sim_strided,
    .arange = exec_sim_arange, .random = exec_sim_random, .equal = exec_sim_equal, .changed = exec_sim_changed,
    .module = exec_sim_module,
    .function = sim_function, .symbol = exec_sim_symbol, .func_attr = sim_func_attr, .occupancy = sim_occupancy,
    .tensor_map = sim_tensor_map, .launch = exec_sim_launch, .poison = exec_sim_poison,
    .blocks = exec_sim_blocks,
    .stream = exec_sim_stream, .stream_end = sim_stream_end,
    .event = exec_sim_event, .event_end = sim_event_end, .record = exec_sim_record, .wait = exec_sim_wait,
    .query_stream = exec_sim_query, .query_event = exec_sim_query, .elapsed = exec_sim_elapsed,
    .sync_stream = exec_sim_query,
    .stop = exec_sim_stop,
    .sync_event = exec_sim_query, .sync = exec_sim_sync, .why = exec_sim_why, .findings = sim_findings,
};
