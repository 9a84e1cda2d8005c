/* cuda.h - streams, guards and error checks under at::cuda and c10::cuda. */
#ifndef LITETORCH_CUDA_H
#define LITETORCH_CUDA_H

#include <cuda_runtime.h>

#include "litetorch/tensor.h"

namespace c10 {
struct Stream {
    Device device() const { return Device(kCUDA, 0); }
};
namespace cuda {
class CUDAStream {
public:
    explicit CUDAStream(cudaStream_t s = nullptr) : handle(s) {}
    operator cudaStream_t() const { return handle; }
    cudaStream_t stream() const { return handle; }
    DeviceIndex device_index() const { return 0; }
    Device device() const { return Device(kCUDA, 0); }
    void synchronize() const { cudaStreamSynchronize(handle); }
    bool query() const { return cudaStreamQuery(handle) == cudaSuccess; }
    int64_t id() const { return 0; }
    Stream unwrap() const { return {}; }
    friend bool operator==(CUDAStream a, CUDAStream b) { return a.handle == b.handle; }
    friend bool operator!=(CUDAStream a, CUDAStream b) { return a.handle != b.handle; }

private:
    cudaStream_t handle;
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1)
{
    return CUDAStream(lt::api->stream ? static_cast<cudaStream_t>(lt::api->stream()) : nullptr);
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return CUDAStream(); }
/* One stream of its own per library, where the device has streams. */
inline CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1)
{
    static cudaStream_t s;
    if (!s && lt::api->stream)
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    return CUDAStream(s);
}
inline CUDAStream getStreamFromExternal(cudaStream_t s, DeviceIndex) { return CUDAStream(s); }
inline void setCurrentCUDAStream(CUDAStream) {}
inline DeviceIndex device_count() { return 1; }
inline DeviceIndex current_device() { return 0; }
inline void set_device(DeviceIndex) {}
inline void device_synchronize() { cudaDeviceSynchronize(); }

struct CUDAGuard {
    explicit CUDAGuard(DeviceIndex) {}
    explicit CUDAGuard(Device d)
    {
        if (!d.is_cuda())
            throw Error("Expected a CUDA device, but got " + d.str());
    }
    void set_device(Device) {}
    void set_index(DeviceIndex) {}
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() {}
    explicit OptionalCUDAGuard(std::optional<Device>) {}
    explicit OptionalCUDAGuard(DeviceIndex) {}
    void set_device(Device) {}
};
struct CUDAStreamGuard {
    explicit CUDAStreamGuard(CUDAStream) {}
};
namespace CUDACachingAllocator {
inline void emptyCache() {}
inline void *raw_alloc(size_t n)
{
    void *p = nullptr;

    if (n && cudaMalloc(&p, n) != cudaSuccess)
        LT_FAIL(Error, "", "CUDA out of memory. Tried to allocate ", n, " bytes");
    return p;
}
inline void *raw_alloc_with_stream(size_t n, cudaStream_t) { return raw_alloc(n); }
inline void raw_delete(void *p) { (void)cudaFree(p); }

/* Scratch memory: given back where its owner goes. */
class DataPtr {
public:
    explicit DataPtr(void *p) : p_(p) {}
    DataPtr(DataPtr &&o) noexcept : p_(o.p_) { o.p_ = nullptr; }
    DataPtr &operator=(DataPtr &&o) noexcept
    {
        std::swap(p_, o.p_);
        return *this;
    }
    ~DataPtr() { clear(); }
    void *get() const { return p_; }
    void *mutable_get() const { return p_; }
    void clear()
    {
        if (p_)
            raw_delete(p_);
        p_ = nullptr;
    }
    explicit operator bool() const { return p_ != nullptr; }

private:
    void *p_;
};
struct Allocator {
    DataPtr allocate(size_t n) { return DataPtr(raw_alloc(n)); }
    void *raw_allocate(size_t n) { return raw_alloc(n); }
    void raw_deallocate(void *p) { raw_delete(p); }
};
inline Allocator *get()
{
    static Allocator all;
    return &all;
}
}

inline void check(cudaError_t err, const char *what)
{
    if (err != cudaSuccess)
        LT_FAIL(Error, "", "CUDA error: ", cudaGetErrorString(err), what ? what : "");
}
} // namespace cuda
}

namespace at {
inline std::optional<c10::Device> device_of(const Tensor &t)
{
    return t.defined() ? std::optional<c10::Device>(t.device()) : std::nullopt;
}
namespace cuda {
using namespace c10::cuda;
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::OptionalCUDAGuard;
inline cudaDeviceProp *getCurrentDeviceProperties()
{
    static cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    return &p;
}
inline cudaDeviceProp *getDeviceProperties(int) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
template <class T> constexpr T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
/* As at::cuda::CUDAEvent: made where it is first recorded, moved and not copied. */
class CUDAEvent {
public:
    CUDAEvent() = default;
    explicit CUDAEvent(unsigned f) : flags(f) {}
    CUDAEvent(CUDAEvent &&o) noexcept : handle(o.handle), flags(o.flags) { o.handle = nullptr; }
    CUDAEvent &operator=(CUDAEvent &&o) noexcept
    {
        std::swap(handle, o.handle);
        std::swap(flags, o.flags);
        return *this;
    }
    CUDAEvent(const CUDAEvent &) = delete;
    CUDAEvent &operator=(const CUDAEvent &) = delete;
    ~CUDAEvent()
    {
        if (handle)
            cudaEventDestroy(handle);
    }
    operator cudaEvent_t() const { return handle; }
    cudaEvent_t event() const { return handle; }
    bool isCreated() const { return handle != nullptr; }
    void record() { record(getCurrentCUDAStream()); }
    void record(const CUDAStream &s)
    {
        if (!handle)
            c10::cuda::check(cudaEventCreateWithFlags(&handle, flags), "");
        c10::cuda::check(cudaEventRecord(handle, s.stream()), "");
    }
    void recordOnce(const CUDAStream &s)
    {
        if (!handle)
            record(s);
    }
    void block(const CUDAStream &s)
    {
        if (handle)
            c10::cuda::check(cudaStreamWaitEvent(s.stream(), handle, 0), "");
    }
    bool query() const { return !handle || cudaEventQuery(handle) == cudaSuccess; }
    void synchronize() const
    {
        if (handle)
            c10::cuda::check(cudaEventSynchronize(handle), "");
    }
    float elapsed_time(const CUDAEvent &end) const
    {
        float ms = 0;
        c10::cuda::check(cudaEventElapsedTime(&ms, handle, end.handle), "");
        return ms;
    }

private:
    cudaEvent_t handle = nullptr;
    unsigned flags = cudaEventDisableTiming;
};
namespace detail {
#ifndef CUDA_NUM_THREADS // a program that includes another header of ATen may define its own
constexpr int CUDA_NUM_THREADS = 1024;
#endif
inline int GET_BLOCKS(int64_t n, int64_t threads = CUDA_NUM_THREADS)
{
    int64_t blocks = (n + threads - 1) / threads;
    return int(blocks < 2147483647 ? blocks : 2147483647);
}
} // namespace detail
inline bool is_available() { return true; }
} // namespace cuda
} // namespace at

namespace torch {
namespace cuda {
using namespace at::cuda;
}
} // namespace torch

#define C10_CUDA_CHECK(EXPR) ::c10::cuda::check((EXPR), "")
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#define TORCH_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#define C10_CUDA_CHECK_WARN(EXPR) (void)(EXPR)
#define C10_CUDA_IGNORE_ERROR(EXPR) (void)(EXPR)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define CUDA_KERNEL_LOOP_TYPE(i, n, T)                                                                         \
    for (T i = T(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += T(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

#endif
