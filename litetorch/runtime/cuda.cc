/* cuda.cc - the real device of a candidate's process: torch's memory, and what torch does not tell about the CUDA runtime.
 * The driver is found with dlopen, so this builds without a CUDA toolkit and loads without a GPU. */
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda.h"
#include "process.h"

namespace {

/* ---- the driver, as far as we need it (signatures: CUDA Driver API) ---- */

typedef unsigned long long devptr;

struct Driver {
    int (*malloc)(devptr *, size_t);
    int (*free)(devptr);
    int (*fill8)(devptr, unsigned char, size_t, void *);
    int (*to_host)(void *, devptr, size_t, void *);
    int (*host_malloc)(void **, size_t);
    int (*sync)();
    int (*is_capturing)(void *, int *);
    int (*capture_mode)(int *);
    int (*current)(void **);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*attribute)(void *, int, devptr);
    int (*host_func)(void *, void (*)(void *), void *);
    int (*event_create)(void **, unsigned);
    int (*event_record)(void *, void *);
    int (*event_wait)(void *);
    int (*event_query)(void *);
    int (*param_info)(const void *, size_t, size_t *, size_t *);
};

const Driver *driver()
{
    static Driver d;
    static bool ok = [] {
        void *lib = dlopen("libcuda.so.1", RTLD_NOW);
        struct {
            void *at;
            const char *name;
        } rows[] = {{&d.malloc, "cuMemAlloc_v2"}, {&d.free, "cuMemFree_v2"}, {&d.fill8, "cuMemsetD8Async"},
                    {&d.to_host, "cuMemcpyDtoHAsync_v2"}, {&d.host_malloc, "cuMemAllocHost_v2"},
                    {&d.sync, "cuCtxSynchronize"},
                    {&d.is_capturing, "cuStreamIsCapturing"}, {&d.capture_mode, "cuThreadExchangeStreamCaptureMode"},
                    {&d.current, "cuCtxGetCurrent"}, {&d.retain, "cuDevicePrimaryCtxRetain"},
                    {&d.set_current, "cuCtxSetCurrent"}, {&d.attribute, "cuPointerGetAttribute"},
                    {&d.host_func, "cuLaunchHostFunc"}, {&d.event_create, "cuEventCreate"},
                    {&d.event_record, "cuEventRecord"}, {&d.event_wait, "cuEventSynchronize"},
                    {&d.event_query, "cuEventQuery"}, {&d.param_info, "cuFuncGetParamInfo"}};
        for (auto &r : rows) {
            void *f = lib ? dlsym(lib, r.name) : nullptr;
            if (!f)
                return false;
            memcpy(r.at, &f, sizeof f);
        }
        return true;
    }();

    return ok ? &d : nullptr;
}

/* ---- blocks ---- */

constexpr size_t ZONE = 512, ALIGN = 512, SMALL = 1 << 20, SLAB = 8 << 20, ROUND = 2 << 20, SLOTS = 2048;
constexpr size_t SHOT = ZONE + ZONE + ALIGN; // a zone in front, one behind, and what rounding leaves between
constexpr unsigned char FENCE = 0xA5, POISON = 0xFF;

struct Block {
    devptr base;       // of the zone in front
    size_t size;       // asked for
    size_t capacity;   // of the middle part, a multiple of ALIGN
    void *stream;
    bool live, zoned, dirty; // dirty: used since the zones were last looked at
    bool elsewhere;          // used on another stream too (record_stream): not to be reused before the device is idle
    bool own;          // an allocation of its own, not a piece of a slab
    devptr data() const { return base + ZONE; }
    size_t tail() const { return (capacity - size < ALIGN ? capacity - size : ALIGN) + ZONE; } // from data() + size
};

struct Shot { // zones copied to the host before they were overwritten
    size_t size, tail;
};

std::mutex lock;
std::vector<Block *> blocks;
std::unordered_map<devptr, Block *> live;
std::map<std::pair<void *, size_t>, std::vector<Block *>> spare;
devptr slab;
size_t slab_left, held, in_use, peak, limit;
int64_t allocations, short_of;
bool fill_on = true, zones_on = true;
std::atomic<void (*)()> before_use;
unsigned char *shots_memory;
std::vector<Shot> shots;

size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

bool capturing(void *stream)
{
    int status = 0;

    return driver()->is_capturing(stream, &status) != 0 || status != 0;
}

/* In a capture cudaMalloc is refused unless this thread says that it knows what it does. */
int raw_malloc(devptr *ret, size_t n)
{
    int mode = 2 /* relaxed */, rc;

    driver()->capture_mode(&mode);
    if (limit && held + n > limit) {
        rc = 2; // out of memory
    } else {
        rc = driver()->malloc(ret, n);
        short_of += rc == 2 && limit;
    }
    driver()->capture_mode(&mode);
    if (rc == 0)
        held += n;
    return rc;
}

/* Spare blocks: all of them, or the one whose data were at 'at'. */
void give_back_spare(devptr at = 0)
{
    driver()->sync();
    for (auto &s : spare) {
        auto &v = s.second;
        for (size_t i = 0; i < v.size();) {
            Block *b = v[i];
            if (!b->own || (at && b->data() != at)) {
                i++;
                continue;
            }
            if (driver()->free(b->base) == 0)
                held -= b->capacity + 2 * ZONE;
            for (auto &x : blocks)
                if (x == b) {
                    x = blocks.back();
                    blocks.pop_back();
                    break;
                }
            v.erase(v.begin() + long(i));
            delete b;
        }
    }
}

int new_block(size_t capacity, Block *b)
{
    size_t whole = capacity + 2 * ZONE;
    int rc;

    b->own = whole > SMALL;
    if (b->own)
        return raw_malloc(&b->base, whole);
    if (slab_left < whole) {
        if ((rc = raw_malloc(&slab, SLAB)) != 0)
            return rc;
        slab_left = SLAB;
    }
    b->base = slab;
    slab += whole;
    slab_left -= whole;
    return 0;
}

void verify(const unsigned char *front, const unsigned char *behind, size_t n, size_t tail)
{
    for (size_t i = 0; i < tail; i++)
        if (behind[i] != FENCE)
            return lt_red_zone_finding(n, long(n + i), nullptr);
    for (size_t i = ZONE; i-- > 0;)
        if (front[i] != FENCE)
            return lt_red_zone_finding(n, long(i) - long(ZONE), nullptr);
}

/* Looks at the copies taken so far. The device must be done with them. */
void verify_shots()
{
    for (size_t i = 0; i < shots.size(); i++)
        verify(shots_memory + i * SHOT, shots_memory + i * SHOT + ZONE, shots[i].size, shots[i].tail);
    shots.clear();
}

/* Queues a copy of b's zones to the host, in stream order. False: cannot. */
bool shoot(const Block *b)
{
    unsigned char *at;

    if (!shots_memory) {
        void *p = nullptr;
        if (driver()->host_malloc(&p, SLOTS * SHOT) != 0)
            return false;
        shots_memory = static_cast<unsigned char *>(p);
    }
    if (shots.size() == SLOTS) {
        if (driver()->sync() != 0)
            return false;
        verify_shots();
    }
    at = shots_memory + shots.size() * SHOT;
    if (driver()->to_host(at, b->base, ZONE, b->stream) != 0 ||
        driver()->to_host(at + ZONE, b->data() + b->size, b->tail(), b->stream) != 0)
        return false;
    shots.push_back({b->size, b->tail()});
    return true;
}

void fence(Block *b)
{
    driver()->fill8(b->base, FENCE, ZONE, b->stream);
    driver()->fill8(b->data() + b->size, FENCE, b->tail(), b->stream);
    b->zoned = true;
    b->dirty = false;
}

/* A block of the right capacity: given back on this stream, or new, or whatever is left when memory is short. */
Block *take(size_t capacity, void *stream)
{
    auto it = spare.find({stream, capacity});
    Block *b;

    if (it != spare.end() && !it->second.empty()) {
        b = it->second.back();
        it->second.pop_back();
        if (b->elsewhere)
            driver()->sync();
        b->elsewhere = false;
        return b;
    }
    b = new Block();
    b->capacity = capacity;
    b->stream = stream;
    int rc = new_block(capacity, b);
    if (rc == 2) {
        give_back_spare();
        rc = new_block(capacity, b);
    }
    if (rc != 0) {
        delete b;
        TORCH_CHECK(rc == 2, "CUDA error ", rc, " while device memory was allocated");
        return nullptr;
    }
    blocks.push_back(b);
    return b;
}

void ensure_context(int device)
{
    void *ctx = nullptr;

    TORCH_CHECK(driver(), "no NVIDIA driver");
    if (driver()->current(&ctx) == 0 && ctx)
        return;
    TORCH_CHECK(driver()->retain(&ctx, device) == 0 && driver()->set_current(ctx) == 0, "no CUDA context");
}

} // namespace

extern "C" {

void *lt_cuda_malloc(size_t size, int device, void *stream)
{
    if (size == 0)
        return nullptr;
    if (void (*told)() = before_use.exchange(nullptr))
        told();
    std::lock_guard<std::mutex> hold(lock);
    ensure_context(device);
    bool recording = capturing(stream);
    // large blocks are shared by sizes within 2 MiB of each other, small ones by sizes within 512 bytes
    size_t capacity = size + 2 * ZONE > SMALL ? round_up(size + 2 * ZONE, ROUND) - 2 * ZONE : round_up(size, ALIGN);
    Block *b = take(capacity, stream);
    if (!b) {
        const double mib = 1 << 20;
        TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", double(size) / mib,
                         " MiB. This process holds ", double(held) / mib, " MiB of the ", double(limit) / mib,
                         " MiB that it may use.");
    }
    if (zones_on && !recording && !(b->zoned && b->size == size)) {
        if (b->zoned && b->dirty)
            shoot(b);
        b->size = size;
        fence(b);
    }
    b->size = size;
    b->dirty = b->live = true;
    if (fill_on)
        driver()->fill8(b->data(), POISON, size, stream);
    live[b->data()] = b;
    lt_watch_table()->memory(reinterpret_cast<void *>(b->data()), size);
    in_use += size;
    peak = in_use > peak ? in_use : peak;
    allocations++;
    return reinterpret_cast<void *>(b->data());
}

void lt_cuda_free(void *p, size_t, int, void *)
{
    std::lock_guard<std::mutex> hold(lock);
    auto it = live.find(reinterpret_cast<devptr>(p));

    if (!p || it == live.end())
        return;
    Block *b = it->second;
    live.erase(it);
    lt_watch_table()->memory(p, 0);
    b->live = false;
    in_use -= b->size;
    spare[{b->stream, b->capacity}].push_back(b);
}

void lt_cuda_record_stream(void *p, void *stream)
{
    std::lock_guard<std::mutex> hold(lock);
    auto it = live.find(reinterpret_cast<devptr>(p));

    if (it != live.end() && it->second->stream != stream)
        it->second->elsewhere = true;
}

void lt_cuda_give_back(void *p)
{
    std::lock_guard<std::mutex> hold(lock);

    if (p && driver())
        give_back_spare(reinterpret_cast<devptr>(p));
}

void lt_cuda_before_use(void (*f)(void))
{
    before_use = f;
}

void lt_cuda_limit(size_t bytes)
{
    limit = bytes;
}

void lt_cuda_poison(int fill, int zones)
{
    std::lock_guard<std::mutex> hold(lock);
    fill_on = fill;
    zones_on = zones;
}

int lt_cuda_check(void)
{
    std::lock_guard<std::mutex> hold(lock);
    int looked = 0;

    if (!driver() || blocks.empty())
        return 0;
    if (driver()->sync() != 0)
        return -1;
    verify_shots();
    auto finish = [&] {
        if (driver()->sync() != 0)
            return false;
        verify_shots();
        return true;
    };
    for (Block *b : blocks) {
        if (!b->zoned || !b->dirty)
            continue;
        if (shots.size() == SLOTS && !finish())
            return -1;
        if (!shoot(b))
            return -1;
        b->dirty = b->live;
        looked++;
    }
    return finish() ? looked : -1;
}

void lt_cuda_memory(struct lt_cuda_memory *r)
{
    std::lock_guard<std::mutex> hold(lock);
    *r = {in_use, peak, held, limit, int64_t(live.size()), allocations, short_of};
}

void lt_cuda_reset_peak(void)
{
    std::lock_guard<std::mutex> hold(lock);
    peak = in_use;
}

/* libcudart as this process has it loaded: torch's, which libraries of candidates are bound to as well. */
static int find_runtime(struct dl_phdr_info *info, size_t, void *ret)
{
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : nullptr;

    if (!base || strncmp(base, "/libcudart.so", 13) != 0)
        return 0;
    *static_cast<std::string *>(ret) = info->dlpi_name;
    return 1;
}

int lt_cuda_last_error(const char **ret_text)
{
    static int (*last)(void);
    static const char *(*text)(int);

    if (!last) {
        std::string path;
        dl_iterate_phdr(find_runtime, &path);
        void *lib = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
        void *f = lib ? dlsym(lib, "cudaGetLastError") : nullptr, *g = lib ? dlsym(lib, "cudaGetErrorString") : nullptr;
        if (!f || !g) {
            *ret_text = "the CUDA runtime is not loaded";
            return -1;
        }
        memcpy(&text, &g, sizeof g);
        memcpy(&last, &f, sizeof f);
    }
    int rc = last();
    *ret_text = text(rc);
    return rc;
}

int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max)
{
    auto invoke = reinterpret_cast<int (*)(void *, const void *, void *, char *, size_t)>(f);

    message[0] = 0;
    return invoke(self, args, ret, message, max);
}

bool process_has_device(const void *p)
{
    return at::detail::getCUDAHooks().getDeviceFromPtr(const_cast<void *>(p)).is_cuda(); // throws for host memory
}

bool process_is_inside(void)
{
    return false;
}

bool process_may_pause(void)
{
    return true;
}

/* Counts with torch's pool: 'held' is what this process has of the device, however it came by it. */
int process_take(const void *p, size_t n, const char *call)
{
    static std::unordered_map<const void *, size_t> taken; // under lock
    std::unique_lock<std::mutex> hold(lock);

    if (!call && n == 0) {
        auto it = taken.find(p);
        if (it != taken.end()) {
            held -= it->second;
            taken.erase(it);
        }
        return 0;
    }
    if (!call) {
        if (p)
            taken[p] = n;
        else
            held -= n;
        return 0;
    }
    if (!limit || (n <= limit && held <= limit - n)) {
        held += n;
        return 0;
    }
    char text[256];
    snprintf(text, sizeof text, "out of device memory: %s of %.1f MiB was refused; the process holds %.1f MiB of the "
             "%.1f MiB that a candidate may hold", call, double(n) / (1 << 20), double(held) / (1 << 20), double(limit) / (1 << 20));
    hold.unlock();
    lt_add_finding("memory_limit", call, text);
    return -1;
}

void *process_stream(void)
{
    const auto *impl = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);

    return impl->getStream(impl->getDevice()).native_handle();
}

/* ---- a watched call (watch.cc) ---- */

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE, IS_MANAGED, RANGE_START_ADDR, RANGE_SIZE; CU_MEMORYTYPE_HOST */
enum { MEMORY_TYPE = 2, IS_MANAGED = 8, RANGE_START = 11, RANGE_SIZE = 12, TYPE_HOST = 1 };

bool process_host_range(const void *p, void **ret_start, size_t *ret_n)
{
    devptr at = reinterpret_cast<devptr>(p);
    unsigned type = 0, managed = 0;

    if (!driver() || driver()->attribute(&type, MEMORY_TYPE, at) != 0)
        return false;
    if (type != TYPE_HOST && (driver()->attribute(&managed, IS_MANAGED, at) != 0 || !(managed & 1)))
        return false;
    return driver()->attribute(ret_start, RANGE_START, at) == 0 && driver()->attribute(ret_n, RANGE_SIZE, at) == 0;
}

bool process_capturing(void *stream)
{
    return driver() && capturing(stream);
}

int process_sync(void)
{
    return driver() && driver()->sync() == 0 ? 0 : -1;
}

int process_param_size(const void *function, size_t i, size_t *ret)
{
    size_t offset;

    return driver() && driver()->param_info(function, i, &offset, ret) == 0 ? 0 : -1;
}

static std::mutex gate_lock;
static std::condition_variable gate_moved;
static bool gate_is_open = true;
static double gate_left; // seconds that may still be waited in this call
static void *marks[PROCESS_MARKS];

/* On the driver's thread, which may not call CUDA. */
static void wait_at_gate(void *)
{
    std::unique_lock<std::mutex> hold(gate_lock);
    auto start = std::chrono::steady_clock::now();

    if (gate_left <= 0)
        return;
    gate_moved.wait_for(hold, std::chrono::milliseconds(100), [] { return gate_is_open; });
    gate_left -= std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void process_hold(void *stream)
{
    if (driver())
        driver()->host_func(stream, wait_at_gate, nullptr);
}

void process_open_gate(bool open)
{
    std::lock_guard<std::mutex> hold(gate_lock);

    gate_is_open = open;
    gate_left = 2;
    gate_moved.notify_all();
}

void process_mark(int slot, void *stream)
{
    if (driver() && (marks[slot] || driver()->event_create(&marks[slot], 2 /* without time */) == 0))
        driver()->event_record(marks[slot], stream);
}

void process_wait(int slot)
{
    if (driver() && marks[slot])
        driver()->event_wait(marks[slot]);
}

bool process_reached(int slot)
{
    return !driver() || !marks[slot] || driver()->event_query(marks[slot]) != 600; // CUDA_ERROR_NOT_READY
}

} // extern "C"
