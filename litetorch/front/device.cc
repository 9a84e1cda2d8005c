/* device.cc - torch's "cuda" in a process without a device, at torch's dispatcher: the same with and without CUDA in
 * torch.
 *
 * A tensor on "cuda" is a real at::Tensor of device cuda:0 whose address is the executor's and is mapped nowhere
 * here. For every operator that has a CPU or CUDA kernel one of three is registered under the CUDA key:
 *   plumbing.cc    the few that the executor carries out (allocate, copy, fill, ...)
 *   as_view        those that look at sizes and strides alone
 *   refused        all others. While a forward runs they end it, by name; before, the CPU's kernel works on copies.
 * Operators that are written with others (composites) are left to that. The library is built against the torch
 * headers of the Python that loads it. */
#include "device.h"
#include "graph.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace front {

namespace {

const c10::Device cpu(c10::DeviceType::CPU);

void give_back(void *p)
{
    front_free(p, FRONT_POOL, front_stream());
}

struct DeviceAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t n) override
    {
        void *p = nullptr;
        int code = n ? front_malloc(&p, n, FRONT_POOL, front_stream()) : 0;

        TORCH_CHECK_WITH(OutOfMemoryError, code != 2, "CUDA out of memory. Tried to allocate ", n, " bytes");
        check(code, "allocation");
        return {p, p, &give_back, cuda0()};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void *to, const void *from, size_t n) const override { front_copy(to, from, n, front_stream()); }
};

DeviceAllocator the_allocator;

c10::Stream stream_of(void *s)
{
    return c10::Stream(c10::Stream::UNSAFE, cuda0(), static_cast<c10::StreamId>(reinterpret_cast<uintptr_t>(s)));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    c10::Device exchangeDevice(c10::Device) const override { return cuda0(); }
    c10::Device getDevice() const override { return cuda0(); }
    void setDevice(c10::Device d) const override
    {
        TORCH_CHECK(d.index() <= 0, "CUDA error: invalid device ordinal");
    }
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device) const noexcept override { return stream_of(front_stream()); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream_of(nullptr); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream_of(nullptr); }
    c10::Stream getNewStream(c10::Device, int) const override { return stream_of(nullptr); }
    c10::Stream exchangeStream(c10::Stream s) const noexcept override
    {
        c10::Stream before = stream_of(front_stream());

        front_set_stream(reinterpret_cast<void *>(static_cast<uintptr_t>(s.id())));
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void **, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {}
    void block(void *, const c10::Stream &) const override {}
    bool queryEvent(void *) const override { return true; }
    void destroyEvent(void *, const c10::DeviceIndex) const noexcept override {}
    bool queryStream(const c10::Stream &) const override { return true; }
    void synchronizeStream(const c10::Stream &) const override { front_sync(); }
    void synchronizeEvent(void *) const override {}
    void synchronizeDevice(const c10::DeviceIndex) const override { front_sync(); }
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
};

/* Pinned memory is this process's own (front.h). */
struct Pinned final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        void *p = nullptr;

        check(front_malloc_host(&p, bytes), "pinned memory");
        return {p, p, raw_deleter(), cpu};
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return [](void *p) { front_free_host(p); };
    }
    void copy_data(void *to, const void *from, size_t n) const override { memcpy(to, from, n); }
} the_pinned;

/* What torch asks a driver of itself for: pinned memory, and a device for the threads of its backward passes. */
struct Hooks final : at::CUDAHooksInterface {
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex current_device() const override { return 0; }
    c10::DeviceIndex deviceCount() const override { return 1; }
    int getNumGPUs() const override { return 1; }
    bool isPinnedPtr(const void *p) const override { return front_pinned(p); }
    c10::Allocator *getPinnedMemoryAllocator() const override { return &the_pinned; }
    c10::Device getDeviceFromPtr(void *) const override { return cuda0(); }
    void deviceSynchronize(c10::DeviceIndex) const override { front_sync(); }
};

/* torch has made its hooks when it was imported, so ours take the place of that object's methods: it has no members. */
void take_hooks()
{
    static Hooks ours;
    auto *theirs = const_cast<at::CUDAHooksInterface *>(&at::detail::getCUDAHooks());

    static_assert(sizeof ours == sizeof(void *), "hooks have methods alone");
    memcpy(static_cast<void *>(theirs), static_cast<void *>(&ours), sizeof ours);
}

/* One operator on host tensors in place of device tensors. */
struct Call {
    struct Store {
        c10::Storage device, host;
        bool written;
    };
    struct Twin {
        at::Tensor device, host;
    };
    const c10::FunctionSchema &schema;
    const bool pretend; // the host's storages have the device's addresses, and nobody may look there
    std::vector<Store> stores;
    std::vector<Twin> twins;
    bool to_cpu = false, mixed = false, writing = false;

    Call(const c10::FunctionSchema &s, bool p) : schema(s), pretend(p) {}
    Store &store_of(const c10::Storage &device);
    at::Tensor lower(const at::Tensor &t);
    c10::IValue lower(const c10::IValue &v);
    c10::Storage raise(const c10::Storage &host);
    at::Tensor raise(const at::Tensor &t);
    c10::IValue raise(const c10::IValue &v);
    void write_back();
};

c10::Storage host_storage(const c10::Storage &device, bool pretend)
{
    const size_t n = device.nbytes();
    auto use = c10::StorageImpl::use_byte_size_t();

    if (pretend)
        return c10::make_intrusive<c10::StorageImpl>(use, n, c10::DataPtr(const_cast<void *>(device.data()), cpu),
                                                     c10::GetCPUAllocator(), false);
    auto s = c10::make_intrusive<c10::StorageImpl>(use, n, c10::GetCPUAllocator(), true);
    if (n)
        check(front_copy(s->mutable_data(), device.data(), n, front_stream()), "copy to the host");
    return s;
}

Call::Store &Call::store_of(const c10::Storage &device)
{
    for (auto &s : stores)
        if (s.device.is_alias_of(device)) {
            s.written |= writing;
            return s;
        }
    stores.push_back({device, host_storage(device, pretend), writing});
    return stores.back();
}

at::Tensor Call::lower(const at::Tensor &t)
{
    if (!t.defined())
        return t;
    if (!t.is_cuda()) {
        mixed |= t.device().is_cpu() && t.dim() > 0;
        return t;
    }
    for (auto &w : twins)
        if (w.device.is_same(t)) {
            store_of(t.storage());
            return w.host;
        }
    auto h = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(store_of(t.storage()).host),
                                                      c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
    h.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
    if (t.is_conj())
        h._set_conj(true);
    if (t.is_neg())
        h._set_neg(true);
    twins.push_back({t, h});
    return h;
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
    if (v.isStorage())
        return v.toStorage().device().is_cuda() ? c10::IValue(store_of(v.toStorage()).host) : v;
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

/* The device's side of a host storage: an argument's, or new if the operator made it. */
c10::Storage Call::raise(const c10::Storage &host)
{
    for (auto &s : stores)
        if (s.host.is_alias_of(host))
            return s.device;
    TORCH_CHECK(!pretend, "front: ", schema.name(), " made new memory");
    stores.push_back({new_storage(host.nbytes()), host, true});
    return stores.back().device;
}

at::Tensor Call::raise(const at::Tensor &t)
{
    if (!t.defined() || !t.device().is_cpu() || to_cpu)
        return t;
    for (auto &w : twins)
        if (w.host.is_same(t))
            return w.device;
    return tensor_over(raise(t.storage()), t.scalar_type(), t.sizes(), t.strides(), t.storage_offset());
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

/* What the operator wrote, and arguments that it gave another size or other memory. */
void Call::write_back()
{
    for (auto &w : twins) {
        const c10::Storage &h = w.host.storage();
        bool known = false;

        for (auto &s : stores)
            known |= s.host.is_alias_of(h) && s.device.is_alias_of(w.device.storage());
        if (!known)
            w.device.unsafeGetTensorImpl()->set_storage_keep_dtype(raise(h));
        if (w.device.sizes() != w.host.sizes() || w.device.strides() != w.host.strides() ||
            w.device.storage_offset() != w.host.storage_offset())
            w.device.unsafeGetTensorImpl()->set_sizes_and_strides(w.host.sizes(), w.host.strides(),
                                                                  w.host.storage_offset());
    }
    for (auto &s : stores) {
        if (s.written && !pretend && s.host.nbytes() > s.device.nbytes()) /* an output that was resized */
            grow(s.device, s.host.nbytes());
        if (s.written && !pretend && s.host.nbytes())
            check(front_copy(s.device.mutable_data(), s.host.data(), s.host.nbytes(), front_stream()), "copy");
    }
}

bool may_mix(const std::string &name)
{
    static const std::set<std::string> ok = {"aten::index", "aten::index_put_", "aten::_index_put_impl_",
                                             "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::set_",
                                             "aten::is_set_to"};
    return ok.count(name) > 0;
}

void lowered(const c10::OperatorHandle &op, torch::jit::Stack *stack, bool pretend)
{
    const auto &schema = op.schema();
    const size_t n = schema.arguments().size(), base = stack->size() - n;
    Call call(schema, pretend);

    for (size_t i = 0; i < n; i++) {
        const auto *alias = schema.arguments()[i].alias_info();

        call.writing = alias && alias->isWrite();
        (*stack)[base + i] = call.lower((*stack)[base + i]);
    }
    TORCH_CHECK(!call.mixed || call.twins.empty() || may_mix(schema.name()),
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when "
                "checking arguments in method wrapper_CUDA_", schema.name().substr(6), ")");
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); i++)
        (*stack)[i] = call.raise((*stack)[i]);
    call.write_back();
}

/* Composites that pick a CUDA-only path below: they are refused, or decided on the CPU, as a whole. */
const char *const composites[] = {
    "convolution", "_convolution", "convolution_overrideable", "lstm.input", "lstm.data", "gru.input", "gru.data",
    "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "scaled_dot_product_attention", "batch_norm", "instance_norm", "_batch_norm_impl_index",
    "ctc_loss.IntList", "ctc_loss.Tensor", "_fused_rms_norm", "rms_norm", "grid_sampler", "dropout", "alpha_dropout",
    "feature_dropout", "embedding_bag", "_embedding_bag", "miopen_batch_norm", "embedding_bag.padding_idx"};

bool wanted(const c10::OperatorHandle &op, const std::string &name)
{
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CPU) || op.hasKernelForDispatchKey(c10::DispatchKey::CUDA))
        return true;
    for (const char *c : composites)
        if (name == std::string("aten::") + c)
            return true;
    return false;
}

struct Quiet : c10::WarningHandler {
    void process(const c10::Warning &) override {}
};

/* A library object for each namespace, kept for the life of the process. */
torch::Library *library(const std::string &space)
{
    static std::map<std::string, torch::Library *> all;
    torch::Library *&l = all[space];

    if (!l)
        l = new torch::Library(torch::Library::IMPL, space, c10::DispatchKey::CUDA, __FILE__, __LINE__);
    return l;
}

/* First refusals for all, then what the executor carries out replaces some of them. */
void register_all()
{
    static const char *const views[] = {"as_strided", "view", "_reshape_alias", "unfold", "view_as_real",
                                        "view_as_complex", "set_.source_Storage", "set_.source_Tensor", "set_",
                                        "set_.source_Storage_storage_offset", "is_set_to", "is_pinned"};
    Quiet quiet;
    c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    auto &d = c10::Dispatcher::singleton();

    for (const auto &name : d.getAllOpNames()) {
        auto op = d.findOp(name);
        std::string full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
        size_t colon = full.find("::");

        if (op && op->hasSchema() && colon != std::string::npos && wanted(*op, full))
            library(full.substr(0, colon))->impl(full.c_str() + colon + 2,
                                                 torch::CppFunction::makeFromBoxedFunction<&refused>());
    }
    for (const char *v : views)
        library("aten")->impl(v, torch::CppFunction::makeFromBoxedFunction<&as_view>());
    register_plumbing(library("aten"));
}

} // namespace

static void note_operator(const char *op, const char *why)
{
    front_note("operator", op, why ? why : "the arithmetic must be done by kernels of the program's own");
}

/* A program that asks torch for arithmetic is convicted by the first operator. The next ones are told too, so that all
 * can be mended at once: small ones are done on copies for a moment, as before a forward, and then refused. */
constexpr int LISTED = 8;
constexpr int64_t LISTED_ELEMENTS = 1 << 20;
constexpr std::chrono::milliseconds LISTED_TIME(500);
static bool operators_listed;

static int64_t elements(const torch::jit::Stack *stack, size_t n)
{
    int64_t all = 0;

    for (size_t i = stack->size() - n; i < stack->size(); i++) {
        const c10::IValue &v = (*stack)[i];

        all += v.isTensor() && v.toTensor().defined() ? v.toTensor().numel() : 0;
        all += v.isTensorList() ? LISTED_ELEMENTS + 1 : 0; /* how large they are together is not looked at */
    }
    return all;
}

static bool may_list(const c10::OperatorHandle &op, const torch::jit::Stack *stack)
{
    static std::chrono::steady_clock::time_point first;
    static int n;

    if (!operators_listed || !front_in_forward() || front_capturing() || n == LISTED || /* a capture runs nothing */
        elements(stack, op.schema().arguments().size()) > LISTED_ELEMENTS)
        return false;
    if (n++ == 0)
        first = std::chrono::steady_clock::now();
    return std::chrono::steady_clock::now() - first < LISTED_TIME;
}

void refused(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    if (may_list(op, stack))
        note_operator(op.schema().name().c_str(), nullptr);
    else
        refuse(op.schema().name().c_str());
    lowered(op, stack, false);
}

c10::Allocator *const allocator = &the_allocator;

void check(int code, const char *what)
{
    TORCH_CHECK(!code, "CUDA error: ", front_error_text(code), " (", what, ")");
}

static bool operators_allowed; // the published protocol: said, and done by the CPU's kernels on copies

void refuse(const char *op, const char *why)
{
    if (!front_in_forward())
        return;
    note_operator(op, why);
    if (operators_allowed && !front_capturing())
        return;
    TORCH_CHECK(false, op, " on a tensor of the device: ", why ? why : "the arithmetic must be done by kernels of the "
                "program's own");
}

bool operators_may_run()
{
    return operators_allowed || !front_in_forward();
}

void allow_operators(int how)
{
    operators_allowed = how == 1;
    operators_listed = how == 2;
}

void grow(const c10::Storage &s, size_t bytes)
{
    c10::Storage larger = new_storage(bytes);
    c10::StorageImpl *mine = s.unsafeGetStorageImpl();

    mine->set_data_ptr_noswap(larger.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, cuda0())));
    mine->set_nbytes(bytes);
}

c10::Storage new_storage(size_t bytes)
{
    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                 the_allocator.allocate(bytes), &the_allocator, true);
}

at::Tensor tensor_over(c10::Storage s, at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                       int64_t offset)
{
    auto t = at::detail::make_tensor<c10::TensorImpl>(std::move(s), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                                      c10::scalarTypeToTypeMeta(dtype));

    t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
    return t;
}

void on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    lowered(op, stack, false);
}

void as_view(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    lowered(op, stack, true);
}

} // namespace front

extern "C" {

/* Fork server's parent, once: registers everything; no tensor is made. */
int front_torch_preload(void)
{
    static bool done;
    static front::Guard guard;

    if (done)
        return 0;
    done = true;
    c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::DeviceType::CUDA)].store(&guard);
    c10::SetAllocator(c10::DeviceType::CUDA, front::allocator, 255);
    front::take_hooks();
    front::register_all();
    return 0;
}

/* Torch's arithmetic within a forward is noted and refused (0), not refused (1), or refused after the first few (2). */
void front_torch_allow(int how)
{
    front::allow_operators(how);
}

/* A tensor over memory that the judge has laid: owned is false where it is the judge's to free. Returns a counted
 * handle. */
void *front_torch_tensor(uint64_t address, uint64_t bytes, int dtype, int dims, const int64_t *sizes,
                         const int64_t *strides)
{
    auto *p = reinterpret_cast<void *>(address);
    c10::Storage s(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                         c10::DataPtr(p, front::cuda0()), front::allocator, false));

    return front::tensor_over(std::move(s), static_cast<at::ScalarType>(dtype), {sizes, size_t(dims)},
                              {strides, size_t(dims)}, 0).unsafeReleaseTensorImpl();
}

/* The address of a tensor's first element on the device; 0: it is no plain tensor there. */
uint64_t front_torch_address(void *tensor, int64_t *ret_sizes, int64_t *ret_strides, int max_dims)
{
    const c10::TensorImpl &t = *static_cast<c10::TensorImpl *>(tensor);

    if (!t.is_cuda() || t.is_sparse() || t.is_conj() || t.is_neg() || !t.has_storage() || t.dim() > max_dims)
        return 0;
    for (int64_t i = 0; i < t.dim(); i++)
        ret_sizes[i] = t.sizes()[size_t(i)], ret_strides[i] = t.strides()[size_t(i)];
    return t.numel() ? reinterpret_cast<uint64_t>(t.data()) : 1;
}

} // extern "C"
