/* device.cc - the simulated cuda:0 inside torch: CPU kernels under the CUDA dispatch key.
 *
 * A tensor "on cuda" is a real at::Tensor of device cuda:0 whose storage points into the arena's device mapping.
 * For every operator that has a CPU or CUDA kernel a boxed kernel is registered under the CUDA key: it makes CPU
 * tensors over the same pages (host mapping), redispatches to CPU, and turns the results back: a result that is an
 * argument stays that argument, a view of an argument becomes a view of the argument's storage, and new memory (which
 * the CPU kernel drew from the arena) becomes a new cuda storage. Device mixing is refused with torch's words.
 * The library is built on the user's machine against the torch headers of the Python that loads it. */
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string>

#include "../../simt/include/simt/api.h"
#include "arena.h"
#include "device.h"
#include "process.h"

namespace {

thread_local int inside; // > 0: a CPU kernel runs on behalf of the device, so its memory comes from the arena

const c10::Device cuda0(c10::DeviceType::CUDA, 0);
const c10::Device cpu(c10::DeviceType::CPU);

c10::Stream stream0()
{
    return c10::Stream(c10::Stream::DEFAULT, cuda0);
}

struct Inside {
    int by;
    explicit Inside(int n = 1) : by(n) { inside += by; }
    ~Inside() { inside -= by; }
};

struct Watched { // an operator is something that the device does
    Watched() { lt_watch_table()->enter(); }
    ~Watched() { lt_watch_table()->leave(); }
};

/* ---- memory ---- */

void free_block(void *b)
{
    arena_free(static_cast<arena_block *>(b));
}

arena_block *device_block(size_t n)
{
    arena_block *b = arena_alloc(n);

    TORCH_CHECK_WITH(OutOfMemoryError, b, "CUDA out of memory. Tried to allocate ", n, " bytes (simulated device)");
    return b;
}

c10::Allocator *torch_allocator; // torch's own, for host memory

void free_host(void *p)
{
    if (arena_has_host(p))
        arena_free(arena_find(p));
    else
        torch_allocator->raw_deleter()(p);
}

/* In front of torch's CPU allocator: device memory while inside, else host memory, poisoned either way. */
struct HostAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t n) override
    {
        if (inside > 0 && n > 0 && arena_ready()) {
            void *p = arena_block_host(device_block(n));
            return {p, p, &free_host, cpu}; // the context must be the pointer: oneDNN allocates raw
        }
        c10::DataPtr p = torch_allocator->allocate(n);
        if (n > 0 && arena_ready())
            memset(p.get(), 0xFF, n);
        return p;
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_host; }
    void copy_data(void *to, const void *from, size_t n) const override { memcpy(to, from, n); }
};

struct DeviceAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t n) override
    {
        if (n == 0)
            return {nullptr, cuda0};
        arena_block *b = device_block(n);
        return {arena_to_device(arena_block_host(b)), b, &free_block, cuda0};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void *to, const void *from, size_t n) const override
    {
        memcpy(arena_to_host(to), arena_to_host(from), n);
    }
};

HostAllocator host_allocator;
DeviceAllocator device_allocator;

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    c10::Device exchangeDevice(c10::Device) const override { return cuda0; }
    c10::Device getDevice() const override { return cuda0; }
    void setDevice(c10::Device d) const override
    {
        TORCH_CHECK(d.index() <= 0, "CUDA error: invalid device ordinal");
    }
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device) const noexcept override { return stream0(); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream0(); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream0(); }
    c10::Stream getNewStream(c10::Device, int) const override { return stream0(); }
    c10::Stream exchangeStream(c10::Stream s) const noexcept override { return s; }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void **, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {}
    void block(void *, const c10::Stream &) const override {}
    bool queryEvent(void *) const override { return true; }
    void destroyEvent(void *, const c10::DeviceIndex) const noexcept override {}
    bool queryStream(const c10::Stream &) const override { return true; }
    void synchronizeStream(const c10::Stream &) const override {}
    void synchronizeEvent(void *) const override {}
    void synchronizeDevice(const c10::DeviceIndex) const override {}
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
};

/* ---- tensors ---- */

void release_storage(void *p)
{
    c10::intrusive_ptr<c10::StorageImpl>::reclaim(static_cast<c10::StorageImpl *>(p));
}

/* A storage over the pages of 'of' as seen from the other side; keeps 'of' alive. */
c10::Storage other_side(const c10::Storage &of, void *data, c10::Device device, c10::Allocator *allocator)
{
    auto *owner = c10::intrusive_ptr<c10::StorageImpl>(
                      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(of.unsafeGetStorageImpl())).release();
    c10::DataPtr p(data, owner, &release_storage, device);

    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), of.nbytes(), std::move(p),
                                                 allocator, true);
}

at::Tensor tensor_over(c10::Storage s, const at::Tensor &like, c10::DispatchKey key)
{
    auto t = at::detail::make_tensor<c10::TensorImpl>(std::move(s), c10::DispatchKeySet(key), like.dtype());

    t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    if (like.is_conj())
        t._set_conj(true);
    if (like.is_neg())
        t._set_neg(true);
    return t;
}

struct Pair {
    at::Tensor device, host;   // the argument, and the CPU tensor over its memory
    c10::StorageImpl *storage; // of host, as created
    void *data;
};

struct Call {
    const c10::OperatorHandle &op;
    std::vector<Pair> pairs;
    std::vector<std::pair<c10::StorageImpl *, c10::Storage>> fresh; // new CPU storages and their cuda side
    bool to_cpu = false;   // the operator was asked for a CPU result
    const char *mixed = nullptr;

    explicit Call(const c10::OperatorHandle &o) : op(o) {}
    at::Tensor lower(const at::Tensor &t);
    c10::IValue lower(const c10::IValue &v);
    at::Tensor raise(const at::Tensor &t);
    c10::IValue raise(const c10::IValue &v);
    void write_back();
};

at::Tensor Call::lower(const at::Tensor &t)
{
    if (!t.defined())
        return t;
    if (!t.is_cuda()) {
        if (t.device().is_cpu() && t.dim() > 0)
            mixed = "cpu";
        return t;
    }
    for (auto &p : pairs)
        if (p.device.is_same(t))
            return p.host;
    const auto &s = t.storage();
    c10::Storage h;
    for (auto &p : pairs) // arguments that share memory share it below too
        if (p.device.storage().is_alias_of(s))
            h = p.host.storage();
    void *host = arena_to_host(const_cast<void *>(s.data()));
    if (!h)
        h = other_side(s, host, cpu, &host_allocator);
    at::Tensor r = tensor_over(h, t, c10::DispatchKey::CPU);
    pairs.push_back({t, r, h.unsafeGetStorageImpl(), host});
    return r;
}

c10::IValue Call::lower(const c10::IValue &v)
{
    if (v.isTensor())
        return lower(v.toTensor());
    if (v.isDevice()) {
        if (v.toDevice().is_cuda())
            return cpu;
        to_cpu = v.toDevice().is_cpu();
        return v;
    }
    if (v.isGenerator() && v.toGenerator().defined() && v.toGenerator().device().is_cuda())
        return c10::IValue();
    if (v.isTensorList()) {
        c10::List<at::Tensor> out;
        for (const at::Tensor &t : v.toTensorVector())
            out.push_back(lower(t));
        return out;
    }
    if (v.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> out;
        for (const std::optional<at::Tensor> &t : v.toOptionalTensorList())
            out.push_back(t ? std::optional<at::Tensor>(lower(*t)) : std::nullopt);
        return out;
    }
    return v;
}

at::Tensor Call::raise(const at::Tensor &t)
{
    if (!t.defined() || !t.device().is_cpu() || to_cpu)
        return t;
    c10::StorageImpl *s = t.storage().unsafeGetStorageImpl();
    for (auto &p : pairs)
        if (p.host.is_same(t))
            return p.device;
    for (auto &p : pairs)
        if (p.storage == s)
            return tensor_over(p.device.storage(), t, c10::DispatchKey::CUDA);
    for (auto &f : fresh)
        if (f.first == s)
            return tensor_over(f.second, t, c10::DispatchKey::CUDA);
    if (s->nbytes() && !arena_has_host(s->data())) { // made outside of our allocator: copy it in
        Inside in;
        return raise(t.clone());
    }
    c10::Storage up = other_side(t.storage(), arena_to_device(s->mutable_data()), cuda0, &device_allocator);
    fresh.push_back({s, up});
    return tensor_over(up, t, c10::DispatchKey::CUDA);
}

c10::IValue Call::raise(const c10::IValue &v)
{
    if (v.isTensor())
        return raise(v.toTensor());
    if (v.isTensorList()) {
        c10::List<at::Tensor> out;
        for (const at::Tensor &t : v.toTensorVector())
            out.push_back(raise(t));
        return out;
    }
    return v;
}

/* Operators with out= or resize_ may give an argument another size or other memory. */
void Call::write_back()
{
    for (auto &p : pairs) {
        c10::TensorImpl *d = p.device.unsafeGetTensorImpl();
        c10::StorageImpl *s = p.host.storage().unsafeGetStorageImpl();
        if (s != p.storage) {
            d->set_storage_keep_dtype(raise(p.host).storage());
        } else if (s->data() != p.data) {
            p.device.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
                c10::DataPtr(arena_to_device(s->mutable_data()),
                             c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(s).release(), &release_storage, cuda0));
            p.device.storage().unsafeGetStorageImpl()->set_nbytes(s->nbytes());
        }
        if (p.device.sizes() != p.host.sizes() || p.device.strides() != p.host.strides())
            d->set_sizes_and_strides(p.host.sizes(), p.host.strides(), p.host.storage_offset());
    }
}

/* Operators whose arguments may live on different devices. */
bool may_mix(const std::string &name)
{
    static const char *const ok[] = {"aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize", "aten::index",
                                     "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index", "aten::set_",
                                     "aten::_unsafe_index_put", "aten::is_set_to", "aten::record_stream"};
    for (const char *o : ok)
        if (name == o)
            return true;
    return false;
}

void on_device(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    const auto &schema = op.schema();
    const size_t n = schema.arguments().size(), base = stack->size() - n;
    Call call(op);

    if (schema.name() == "aten::record_stream") {
        stack->resize(base);
        return;
    }
    for (size_t i = 0; i < n; i++)
        (*stack)[base + i] = call.lower((*stack)[base + i]);
    if (call.mixed && !call.pairs.empty() && !may_mix(schema.name()))
        TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
                           "and cpu! (when checking arguments in method wrapper_CUDA_", schema.name().substr(6), ")");
    {
        Inside in(call.to_cpu ? 0 : 1);
        Watched watched;
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    }
    const size_t first = stack->size() - schema.returns().size();
    for (size_t i = first; i < stack->size(); i++)
        (*stack)[i] = call.raise((*stack)[i]);
    call.write_back();
}

/* Composite operators that pick a CUDA-only path below; the CPU decides instead. */
const char *const composites[] = {
    "convolution", "_convolution", "convolution_overrideable", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell",
    "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "scaled_dot_product_attention", "batch_norm", "instance_norm",
    "_batch_norm_impl_index", "ctc_loss", "_fused_rms_norm", "rms_norm", "grid_sampler", "dropout", "alpha_dropout",
    "feature_dropout", "pin_memory", "is_pinned", "_pin_memory", "record_stream", "embedding_bag", "_embedding_bag",
    "miopen_batch_norm"};

bool wanted(const c10::OperatorHandle &op, const std::string &base)
{
    for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA, c10::DispatchKey::CompositeExplicitAutograd,
                     c10::DispatchKey::CompositeExplicitAutogradNonFunctional})
        if (op.hasKernelForDispatchKey(key))
            return true;
    for (const char *c : composites)
        if (base == c)
            return true;
    return false;
}

struct Quiet : c10::WarningHandler {
    void process(const c10::Warning &) override {}
};

torch::Library *library;

void register_kernels()
{
    Quiet quiet;
    c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    auto &d = c10::Dispatcher::singleton();

    library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
    for (const auto &name : d.getAllOpNames()) {
        if (name.name.compare(0, 6, "aten::") != 0)
            continue;
        auto op = d.findOp(name);
        if (!op || !op->hasSchema() || !wanted(*op, name.name.substr(6)))
            continue;
        std::string full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_device>());
    }
}

} // namespace

extern "C" {

/* Fork server's parent: registers everything; no tensor is made. */
int sim_device_preload(void)
{
    static bool done;

    if (done)
        return 0;
    done = true;
    static Guard guard;
    c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::DeviceType::CUDA)].store(&guard);
    torch_allocator = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&host_allocator, 255);
    c10::SetAllocator(c10::DeviceType::CUDA, &device_allocator, 255);
    register_kernels();
    return 0;
}

int sim_device_open(size_t bytes)
{
    if (arena_ready())
        return 0;
    lt_trace_open();
    return arena_init(bytes);
}

static void *device_malloc(size_t n)
{
    arena_block *b = arena_alloc(n ? n : 1);

    return b ? arena_to_device(arena_block_host(b)) : nullptr;
}

static int device_release(void *p)
{
    arena_block *b = arena_has_device(p) ? arena_find(arena_to_host(p)) : nullptr;

    if (!b || arena_block_host(b) != arena_to_host(p))
        return -1;
    arena_free(b);
    return 0;
}

static void report_red_zone(void *, size_t n, long at, void *)
{
    lt_red_zone_finding(n, at, nullptr);
}

static void enter(void)
{
    lt_watch_table()->enter();
    arena_open();
}

static void leave(void)
{
    arena_close();
    arena_check(report_red_zone, nullptr);
    lt_watch_table()->leave();
}

/* ---- a watched call (watch.cc): device memory, host memory that kernels can read, variables of candidates'
 * libraries ---- */

static int (*simt_add)(const void *, size_t, const char *);
static int (*simt_drop)(const void *);

static int add_block(const void *device, size_t n, const char *name)
{
    lt_watch_table()->memory(device, n);
    lt_watch_region(arena_to_host(device), device, n, nullptr, 0xFF);
    return simt_add(device, n, name);
}

static int drop_block(const void *device)
{
    lt_watch_forget(arena_to_host(device));
    lt_watch_table()->memory(device, 0);
    return simt_drop(device);
}

static void watch_launch(const char *kernel, const uint64_t *shape, int n, const void *const *args, const size_t *sizes)
{
    const lt_watch *w = lt_watch_table();
    char label[16];

    if (!w->mode)
        return;
    w->begin("launch", kernel);
    w->words("grid", shape, 3 * sizeof *shape);
    w->words("block", shape + 3, 3 * sizeof *shape);
    w->words("shared", shape + 6, sizeof *shape);
    for (int i = 0; i < n; i++) {
        snprintf(label, sizeof label, "a%d", i);
        w->words(label, args[i], sizes[i]);
    }
    w->end();
}

static void watch_copy(void *to, const void *from, size_t n, int from_device, int to_device)
{
    const lt_watch *w = lt_watch_table();

    if (!w->mode)
        return;
    if (from_device && !to_device)
        w->read(n);
    w->begin("copy", "cudaMemcpy");
    if (to_device)
        w->words("to", &to, sizeof to);
    if (from_device)
        w->words("from", &from, sizeof from);
    w->words("bytes", &n, sizeof n);
    if (to_device && !from_device)
        w->content("content", from, n);
    w->end();
}

static void watch_set(void *p, int value, size_t n)
{
    const lt_watch *w = lt_watch_table();

    if (!w->mode)
        return;
    w->begin("set", "cudaMemset");
    w->words("to", &p, sizeof p);
    w->words("value", &value, sizeof value);
    w->words("bytes", &n, sizeof n);
    w->end();
}

static void watch_host_memory(const void *p, size_t n)
{
    lt_watch_table()->memory(p, n);
    if (n)
        lt_watch_region(const_cast<void *>(p), p, n, "memory of the host", 0xFF);
    else
        lt_watch_forget(p);
}

/* The writable parts of a library that dlopen gave: on the simulated device its __device__ variables are among them. */
void sim_watch_library(void *handle)
{
    struct link_map *map = nullptr;
    struct Part {
        uintptr_t base;
        const char *name;
    };

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map)
        return;
    Part part = {map->l_addr, map->l_name};
    dl_iterate_phdr([](struct dl_phdr_info *info, size_t, void *ctx) {
        auto *p = static_cast<Part *>(ctx);
        if (info->dlpi_addr != p->base || strcmp(info->dlpi_name, p->name))
            return 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const auto &h = info->dlpi_phdr[i];
            if (h.p_type == PT_LOAD && h.p_flags & PF_W)
                lt_watch_region(reinterpret_cast<char *>(p->base + h.p_vaddr), nullptr, h.p_memsz,
                                "variables of the extension", 0);
        }
        return 1;
    }, &part);
}

namespace {
struct Invocation {
    int (*invoke)(void *, const void *, void *, char *, size_t);
    void *self;
    const void *args;
    void *ret;
    char *message;
    size_t max;
    int code;
};
void run_invocation(void *p)
{
    auto *i = static_cast<Invocation *>(p);

    i->code = i->invoke(i->self, i->args, i->ret, i->message, i->max);
}
int (*call_guarded)(void (*)(void *), void *);
} // namespace

/* A crash of the candidate's host code comes back as -1; the finding is with the emulator. */
int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max)
{
    Invocation i = {reinterpret_cast<int (*)(void *, const void *, void *, char *, size_t)>(f), self, args, ret,
                    message, max, -1};

    // one launch at a time: the emulator keeps one set of fibers, and a candidate may call from several threads
    static std::recursive_mutex one;
    std::lock_guard<std::recursive_mutex> hold(one);

    message[0] = 0;
    if (!call_guarded)
        run_invocation(&i);
    else if (call_guarded(run_invocation, &i) != 0)
        return -1;
    return i.code;
}

static const char *(*findings_json)(void);

/* Host code outside of lt_invoke crashed (ctypes, a destructor), or the heap is broken: the process ends, its findings
 * must not. In a signal handler, with locks of malloc held. */
static void last_words(void)
{
    static const char mark[] = "musacoder-findings: ";
    const char *text = findings_json ? findings_json() : "[]";

    if (write(2, mark, sizeof mark - 1) < 0 || write(2, text, strlen(text)) < 0 || write(2, "\n", 1) < 0)
        return;
}

int sim_bind_simt(void)
{
    static const struct simt_watch hooked = {watch_launch, watch_copy, watch_set, watch_host_memory};
    simt_add = reinterpret_cast<decltype(simt_add)>(dlsym(RTLD_DEFAULT, "simt_mem_register"));
    simt_drop = reinterpret_cast<decltype(simt_drop)>(dlsym(RTLD_DEFAULT, "simt_mem_unregister"));
    auto watch = reinterpret_cast<void (*)(const struct simt_watch *)>(dlsym(RTLD_DEFAULT, "simt_set_watch"));
    auto hooks = reinterpret_cast<void (*)(void (*)(), void (*)())>(dlsym(RTLD_DEFAULT, "simt_set_memory_hooks"));
    auto allocator = reinterpret_cast<void (*)(void *(*)(size_t), int (*)(void *))>(
        dlsym(RTLD_DEFAULT, "simt_set_allocator"));
    auto whole = reinterpret_cast<void (*)(const void *, size_t)>(dlsym(RTLD_DEFAULT, "simt_set_device_arena"));

    call_guarded = reinterpret_cast<decltype(call_guarded)>(dlsym(RTLD_DEFAULT, "simt_call_guarded"));
    if (!simt_add || !simt_drop || !hooks || !allocator || !whole || !watch)
        return -1;
    findings_json = reinterpret_cast<decltype(findings_json)>(dlsym(RTLD_DEFAULT, "simt_findings_json"));
    arena_set_registry(add_block, drop_block);
    hooks(enter, leave);
    watch(&hooked);
    allocator(device_malloc, device_release);
    auto fatal = reinterpret_cast<void (*)(void (*)())>(dlsym(RTLD_DEFAULT, "simt_set_fatal_hook"));
    if (fatal)
        fatal(last_words);
    whole(arena_device_base(), arena_bytes());
    return 0;
}

/* The judge's copies go around the dispatcher: nothing of them can be hooked, and nothing has to be hidden from the
 * trace. Copies in from a host tensor: a new handle on cuda:0 of the same layout, or NULL when it cannot be. */
void *sim_upload(void *host)
{
    const c10::TensorImpl &h = *static_cast<c10::TensorImpl *>(host);
    int64_t last = h.numel() ? 1 : 0;

    if (!h.is_cpu() || h.is_sparse() || h.is_conj() || h.is_neg())
        return nullptr;
    for (int64_t i = 0; last && i < h.dim(); i++)
        last += (h.sizes()[size_t(i)] - 1) * h.strides()[size_t(i)];
    const size_t bytes = size_t(last) * h.itemsize();
    try {
        auto p = device_allocator.allocate(bytes);
        if (bytes)
            memcpy(arena_to_host(p.get()), h.data(), bytes);
        c10::Storage s(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(p),
                                                             &device_allocator, true));
        auto t = at::detail::make_tensor<c10::TensorImpl>(std::move(s), c10::DispatchKeySet(c10::DispatchKey::CUDA), h.dtype());
        t.unsafeGetTensorImpl()->set_sizes_and_strides(h.sizes(), h.strides());
        return t.unsafeReleaseTensorImpl();
    } catch (const std::exception &) {
        return nullptr;
    }
}

/* The elements of a tensor of either side in C order. n: room in out. Returns the bytes written, or -1. */
long sim_download(void *tensor, char *out, size_t n)
{
    const c10::TensorImpl &t = *static_cast<c10::TensorImpl *>(tensor);
    const size_t item = t.itemsize(), dim = size_t(t.dim());
    std::vector<int64_t> at(dim);
    const char *base;

    if (t.is_sparse() || t.is_conj() || t.is_neg() || !t.has_storage() || size_t(t.numel()) * item > n)
        return -1;
    if (t.numel() == 0)
        return 0;
    base = static_cast<const char *>(t.data());
    if (t.is_cuda() && !arena_has_device(base))
        return -1;
    base = t.is_cuda() ? static_cast<const char *>(arena_to_host(const_cast<char *>(base))) : base;
    if (t.is_contiguous()) {
        memcpy(out, base, size_t(t.numel()) * item);
        return long(size_t(t.numel()) * item);
    }
    for (int64_t i = 0, offset = 0; i < t.numel(); i++) {
        memcpy(out + size_t(i) * item, base + offset * int64_t(item), item);
        for (size_t d = dim; d-- > 0;) {
            offset += t.strides()[d];
            if (++at[d] < t.sizes()[d])
                break;
            offset -= t.strides()[d] * t.sizes()[d];
            at[d] = 0;
        }
    }
    return long(size_t(t.numel()) * item);
}

/* New contents in place, without dispatch and so without a new version: from is a host tensor of the same layout. */
int sim_refill(void *device, void *host)
{
    const c10::TensorImpl &t = *static_cast<c10::TensorImpl *>(device), &h = *static_cast<c10::TensorImpl *>(host);
    int64_t last = t.numel() ? 1 : 0;

    if (!t.is_cuda() || !h.is_cpu() || t.dtype() != h.dtype() || t.sizes() != h.sizes() || t.strides() != h.strides())
        return -1;
    for (int64_t i = 0; last && i < t.dim(); i++)
        last += (t.sizes()[size_t(i)] - 1) * t.strides()[size_t(i)];
    if (last && (!arena_has_device(t.data()) || size_t(t.storage_offset() + last) * t.itemsize() > t.storage().nbytes()))
        return -1;
    if (last)
        memcpy(arena_to_host(const_cast<void *>(t.data())), h.data(), size_t(last) * t.itemsize());
    return 0;
}

size_t sim_arena_in_use(void)
{
    return arena_in_use();
}

/* For tests: overwrites a byte of device memory behind everybody's back. */
void sim_arena_scribble(void *device)
{
    *static_cast<char *>(arena_to_host(device)) = 0;
}

bool process_has_device(const void *p)
{
    return arena_has_device(p);
}

bool process_is_inside(void)
{
    return inside > 0;
}

bool process_may_pause(void)
{
    return false;
}

void *process_stream(void)
{
    return nullptr;
}

int process_take(const void *, size_t, const char *)
{
    return 0; // the arena has its own limit
}

/* One stream, in program order: nothing to wait for. Host memory that kernels can read is announced by the emulator. */
bool process_host_range(const void *, void **, size_t *)
{
    return false;
}

bool process_capturing(void *)
{
    return false;
}

int process_sync(void)
{
    return 0;
}

int process_param_size(const void *, size_t, size_t *)
{
    return -1;
}

void process_hold(void *) {}
void process_open_gate(bool) {}
void process_mark(int, void *) {}
void process_wait(int) {}

bool process_reached(int)
{
    return true;
}

} // extern "C"
