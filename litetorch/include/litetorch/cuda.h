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

inline void check(cudaError_t err, const char *what)
{
    if (err != cudaSuccess)
        throw Error(std::string("CUDA error: ") + cudaGetErrorString(err) + (what ? what : ""));
}
} // namespace cuda
struct DeviceGuard {
    explicit DeviceGuard(Device) {}
};
struct OptionalDeviceGuard {
    OptionalDeviceGuard() {}
    explicit OptionalDeviceGuard(std::optional<Device>) {}
};
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
inline bool is_available() { return true; }
} // namespace cuda
} // namespace at

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
