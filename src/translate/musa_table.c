/* musa_table.c - the rows of musa_table.h. Evidence: musa.h. A row stands here only where the prefix rules below
 * would give another name, or none. */
#include "translate/musa_table.h"

#include <ctype.h>
#include <string.h>

const struct musa_row musa_rows[] = {
    /* headers: torch_musa's own sources include these */
    {ROW_INCLUDE, "cuda.h", "musa.h", 'V', 0},
    {ROW_INCLUDE, "cuda_runtime.h", "musa_runtime.h", 'V', 0},
    {ROW_INCLUDE, "cuda_runtime_api.h", "musa_runtime_api.h", 'V', 0},
    {ROW_INCLUDE, "cuda_fp16.h", "musa_fp16.h", 'V', 0},
    {ROW_INCLUDE, "cuda_fp16.hpp", "musa_fp16.hpp", 'T', 0},
    {ROW_INCLUDE, "cuda_bf16.h", "musa_bf16.h", 'V', 0},
    {ROW_INCLUDE, "cuda_bf16.hpp", "musa_bf16.hpp", 'T', 0},
    {ROW_INCLUDE, "cuda_fp8.h", "musa_fp8.h", 'V', 0},
    {ROW_INCLUDE, "cuda_profiler_api.h", "musa_profiler_api.h", 'V', 0},
    {ROW_INCLUDE, "cudaProfiler.h", "musaProfiler.h", 'T', 0},
    {ROW_INCLUDE, "cuda_occupancy.h", "musa_occupancy.h", 'T', 0},
    {ROW_INCLUDE, "cuda_device_runtime_api.h", "musa_device_runtime_api.h", 'T', 0},
    {ROW_INCLUDE, "cuda_texture_types.h", "musa_texture_types.h", 'T', 0},
    {ROW_INCLUDE, "cuda_surface_types.h", "musa_surface_types.h", 'T', 0},
    {ROW_INCLUDE, "cuComplex.h", "muComplex.h", 'T', 0},
    {ROW_INCLUDE, "cublas_v2.h", "mublas.h", 'V', 0},
    {ROW_INCLUDE, "cublas.h", "mublas.h", 'T', 1},
    {ROW_INCLUDE, "cublas_api.h", "mublas_api.h", 'T', 0},
    {ROW_INCLUDE, "cublasLt.h", "mublasLt.h", 'V', 0},
    {ROW_INCLUDE, "cublasXt.h", "mublasXt.h", 'T', 0},
    {ROW_INCLUDE, "curand.h", "murand.h", 'T', 0},
    {ROW_INCLUDE, "curand_kernel.h", "murand_kernel.h", 'V', 0},
    {ROW_INCLUDE, "curand_philox4x32_x.h", "murand_philox4x32_10.h", 'T', 0},
    {ROW_INCLUDE, "cufft.h", "mufft.h", 'V', 0},
    {ROW_INCLUDE, "cufftXt.h", "mufftXt.h", 'T', 0},
    {ROW_INCLUDE, "cusparse.h", "musparse.h", 'V', 0},
    {ROW_INCLUDE, "cusolverDn.h", "musolverDn.h", 'T', 0},
    {ROW_INCLUDE, "cupti.h", "mupti.h", 'T', 0},
    {ROW_INCLUDE, "nccl.h", "mccl.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAContext.h", "torch_musa/csrc/aten/musa/MUSAContext.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAContextLight.h", "torch_musa/csrc/aten/musa/MUSAContextLight.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAUtils.h", "torch_musa/csrc/aten/musa/MUSAContext.h", 'I', 1},
    {ROW_INCLUDE, "ATen/cuda/Exceptions.h", "torch_musa/csrc/aten/musa/Exceptions.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDABlas.h", "torch_musa/csrc/aten/musa/MUSABlas.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAEvent.h", "torch_musa/csrc/core/MUSAEvent.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAGraph.h", "torch_musa/csrc/aten/musa/MUSAGraph.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAGraphsUtils.cuh", "torch_musa/csrc/aten/musa/MUSAGraphsUtils.muh", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDAGeneratorImpl.h", "torch_musa/csrc/aten/musa/MUSAGeneratorImpl.h", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/Atomic.cuh", "torch_musa/csrc/aten/musa/MUSAAtomic.muh", 'V', 0},
    {ROW_INCLUDE, "THC/THCAtomics.cuh", "torch_musa/csrc/aten/musa/MUSAAtomic.muh", 'I', 1},
    {ROW_INCLUDE, "THC/THC.h", "torch_musa/csrc/aten/musa/MUSAContext.h", 'I', 1},
    {ROW_INCLUDE, "ATen/cuda/DeviceUtils.cuh", "torch_musa/csrc/aten/musa/MUSADeviceUtils.muh", 'V', 0},
    {ROW_INCLUDE, "ATen/cuda/CUDADevice.h", "torch_musa/csrc/core/Device.h", 'I', 0},
    {ROW_INCLUDE, "c10/cuda/CUDAStream.h", "torch_musa/csrc/core/MUSAStream.h", 'V', 0},
    {ROW_INCLUDE, "c10/cuda/CUDAGuard.h", "torch_musa/csrc/core/MUSAGuard.h", 'V', 0},
    {ROW_INCLUDE, "c10/cuda/CUDAException.h", "torch_musa/csrc/core/MUSAException.h", 'V', 0},
    {ROW_INCLUDE, "c10/cuda/CUDAFunctions.h", "torch_musa/csrc/core/MUSAFunctions.h", 'V', 0},
    {ROW_INCLUDE, "c10/cuda/CUDACachingAllocator.h", "torch_musa/csrc/core/MUSACachingAllocator.h", 'V', 0},
    {ROW_INCLUDE, "c10/cuda/CUDAMathCompat.h", "c10/musa/MUSAMathCompat.h", 'T', 0},
    {ROW_INCLUDE, "torch/csrc/cuda/CUDAPluggableAllocator.h", "torch_musa/csrc/core/MUSAPluggableAllocator.h", 'V', 0},

    /* the language */
    {ROW_NAME, "__CUDACC__", "__MUSACC__", 'V', 0},
    {ROW_NAME, "__NVCC__", "__MUSACC__", 'T', 1},
    {ROW_NAME, "__CUDA_ARCH__", "__MUSA_ARCH__", 'V', 0},
    {ROW_NAME, "__CUDA_ARCH_LIST__", "__MUSA_ARCH_LIST__", 'V', 0},
    {ROW_NAME, "CUDA_VERSION", "MUSA_COMP_VERSION", 'T', 0},
    {ROW_NAME, "CUDART_VERSION", "MUSART_VERSION", 'V', 0},
    {ROW_NAME, "__nv_half", "__half", 'V', 1},
    {ROW_NAME, "__nv_half2", "__half2", 'V', 1},
    {ROW_NAME, "nv_half", "__half", 'V', 1},
    {ROW_NAME, "nv_half2", "__half2", 'V', 1},
    {ROW_NAME, "__nv_bfloat16", "__mt_bfloat16", 'V', 0},
    {ROW_NAME, "__nv_bfloat162", "__mt_bfloat162", 'V', 0},
    {ROW_NAME, "__nv_bfloat16_raw", "__mt_bfloat16_raw", 'T', 0},
    {ROW_NAME, "__nv_bfloat162_raw", "__mt_bfloat162_raw", 'T', 0},
    {ROW_NAME, "nv_bfloat16", "mt_bfloat16", 'V', 0},
    {ROW_NAME, "nv_bfloat162", "mt_bfloat162", 'V', 0},
    {ROW_NAME, "__NV_SATFINITE", "__MT_SATFINITE", 'V', 0},
    {ROW_NAME, "__NV_NOSAT", "__MT_NOSAT", 'I', 0},
    {ROW_NAME, "__NV_E4M3", "__MT_E4M3", 'V', 0},
    {ROW_NAME, "__NV_E5M2", "__MT_E5M2", 'V', 0},
    {ROW_NAME, "__nv_cvt_float_to_fp8", "__musa_cvt_float_to_fp8", 'V', 0},
    {ROW_NAME, "__nv_cvt_float2_to_fp8x2", "__musa_cvt_float2_to_fp8x2", 'V', 0},
    {ROW_NAME, "__nv_cvt_fp8_to_halfraw", "__musa_cvt_fp8_to_halfraw", 'V', 0},
    {ROW_NAME, "__nv_cvt_fp8x2_to_halfraw2", "__musa_cvt_fp8x2_to_halfraw2", 'V', 0},
    {ROW_NAME, "nvcuda", "mtmusa", 'V', 0},
    {ROW_NAME, "__float_to_tf32", "__musa_float_to_tf32", 'V', 0},
    {ROW_NAME, "__log2f", "log2f", 'V', 1},

    /* runtime and driver: what does not follow the prefix */
    {ROW_NAME, "cudaGraphExecUpdateResultInfo", "musaGraphExecUpdateResult", 'V', 1},
    {ROW_NAME, "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
     "MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED", 'V', 0},

    /* libraries: what does not follow the prefix */
    {ROW_NAME, "CUBLAS_TF32_TENSOR_OP_MATH", "MUBLAS_MATH_MODE_DEFAULT", 'V', 1},
    {ROW_NAME, "CUBLAS_GEMM_DEFAULT_TENSOR_OP", "MUBLAS_GEMM_DEFAULT", 'V', 1},
    {ROW_NAME, "CUBLAS_STATUS_NOT_SUPPORTED", "MUBLAS_STATUS_NOT_IMPLEMENTED", 'V', 0},
    {ROW_NAME, "cublasGetStatusString", "mublasStatus_to_string", 'V', 0},
    {ROW_NAME, "curandStatePhilox4_32_10_t", "murandStatePhilox4_32_10_t", 'V', 0},
    {ROW_NAME, "curandState", "murandState", 'T', 0},
    {ROW_NAME, "curandState_t", "murandState_t", 'T', 0},

    /* torch's C++ side */
    {ROW_MEMBER, "is_cuda", "is_privateuseone", 'V', 0},
    {ROW_NAME, "kCUDA", "kPrivateUse1", 'V', 0},
    {ROW_NAME, "C10_CUDA_CHECK", "C10_MUSA_CHECK", 'V', 0},
    {ROW_NAME, "C10_CUDA_CHECK_WARN", "C10_MUSA_CHECK_WARN", 'V', 0},
    {ROW_NAME, "C10_CUDA_ERROR_HANDLED", "C10_MUSA_ERROR_HANDLED", 'V', 0},
    {ROW_NAME, "C10_CUDA_IGNORE_ERROR", "C10_MUSA_IGNORE_ERROR", 'V', 0},
    {ROW_NAME, "C10_CUDA_KERNEL_LAUNCH_CHECK", "C10_MUSA_KERNEL_LAUNCH_CHECK", 'V', 0},
    {ROW_NAME, "AT_CUDA_CHECK", "AT_MUSA_CHECK", 'V', 0},
    {ROW_NAME, "AT_CUDA_DRIVER_CHECK", "AT_MUSA_DRIVER_CHECK", 'V', 0},
    {ROW_NAME, "TORCH_CUDA_CHECK", "TORCH_MUSA_CHECK", 'V', 0},
    {ROW_NAME, "THCudaCheck", "AT_MUSA_CHECK", 'I', 1},
    {ROW_NAME, "TORCH_CUDABLAS_CHECK", "TORCH_MUSABLAS_CHECK", 'V', 0},
    {ROW_NAME, "CUDAStream", "MUSAStream", 'V', 0},
    {ROW_NAME, "CUDAGuard", "MUSAGuard", 'V', 0},
    {ROW_NAME, "OptionalCUDAGuard", "OptionalMUSAGuard", 'V', 0},
    {ROW_NAME, "CUDAStreamGuard", "MUSAStreamGuard", 'V', 0},
    {ROW_NAME, "OptionalCUDAStreamGuard", "OptionalMUSAStreamGuard", 'V', 0},
    {ROW_NAME, "CUDAMultiStreamGuard", "MUSAMultiStreamGuard", 'V', 0},
    {ROW_NAME, "CUDAEvent", "MUSAEvent", 'V', 0},
    {ROW_NAME, "CUDAGraph", "MUSAGraph", 'V', 0},
    {ROW_NAME, "CUDAGeneratorImpl", "MUSAGeneratorImpl", 'V', 0},
    {ROW_NAME, "CUDACachingAllocator", "MUSACachingAllocator", 'V', 0},
    {ROW_NAME, "PhiloxCudaState", "PhiloxMusaState", 'V', 0},
    {ROW_NAME, "philox_cuda_state", "philox_musa_state", 'V', 0},
    {ROW_NAME, "getDefaultCUDAGenerator", "getDefaultMUSAGenerator", 'V', 0},
    {ROW_NAME, "getCurrentCUDAStream", "getCurrentMUSAStream", 'V', 0},
    {ROW_NAME, "getDefaultCUDAStream", "getDefaultMUSAStream", 'V', 0},
    {ROW_NAME, "setCurrentCUDAStream", "setCurrentMUSAStream", 'V', 0},
    {ROW_NAME, "getStreamFromExternalCUDA", "getStreamFromExternalMUSA", 'I', 0},
    {ROW_NAME, "getCurrentCUDABlasHandle", "getCurrentMUSABlasHandle", 'V', 0},
    {ROW_NAME, "getCurrentCUDABlasLtHandle", "getCurrentMUSABlasLtHandle", 'V', 0},
    {ROW_NAME, "getCurrentCUDASparseHandle", "getCurrentMUSASparseHandle", 'I', 0},
    {ROW_NAME, "REGISTER_CUDA_DISPATCH", "REGISTER_MUSA_DISPATCH", 'V', 0},

    /* Python: torch */
    {ROW_PYTHON, "is_cuda", "is_musa", 'V', 0},
    {ROW_PYTHON, "cudnn", "mudnn", 'V', 0},
    {ROW_PYTHON, "CUDAExtension", "MUSAExtension", 'V', 0},
    {ROW_PYTHON, "CUDA_HOME", "MUSA_HOME", 'V', 0},
    {ROW_PYTHON, "CUDAGraph", "MUSAGraph", 'V', 0},
    {ROW_PYTHON, "cudart", "musart", 'I', 0},
    {ROW_PYTHON, "cuda_stream", "musa_stream", 'V', 0},
    {ROW_KEYWORD, "cuda_sources", "musa_sources", 'V', 0},
    {ROW_KEYWORD, "extra_cuda_cflags", "extra_musa_cflags", 'V', 0},
    {ROW_KEYWORD, "with_cuda", "with_musa", 'V', 0},
    {ROW_STRING, "CUDA_HOME", "MUSA_HOME", 'V', 0},
    {ROW_STRING, "CUDA_PATH", "MUSA_PATH", 'V', 0},
    {ROW_STRING, "CUDA_VISIBLE_DEVICES", "MUSA_VISIBLE_DEVICES", 'V', 0},
    {ROW_STRING, "CUDA_LAUNCH_BLOCKING", "MUSA_LAUNCH_BLOCKING", 'V', 0},
    {ROW_STRING, "TORCH_CUDA_ARCH_LIST", "TORCH_MUSA_ARCH_LIST", 'V', 0},
    {ROW_STRING, "PYTORCH_NVCC", "PYTORCH_MCC", 'V', 0},
    {ROW_STRING, "/usr/local/cuda", "/usr/local/musa", 'V', 0},
    {ROW_STRING, "nccl", "mccl", 'V', 0},
    {ROW_STRING, "libcuda.so", "libmusa.so", 'V', 0},
    {ROW_STRING, "libcuda.so.1", "libmusa.so", 'I', 1},
    {ROW_STRING, "libcudart.so", "libmusart.so", 'V', 0},
    {ROW_STRING, "libcublas.so", "libmublas.so", 'V', 0},
    {ROW_STRING, "libcublasLt.so", "libmublasLt.so", 'V', 0},

    /* compiler flags: nvcc's on the left, mcc's on the right; "" leaves out what mcc has no counterpart of */
    {ROW_FLAG, "--use_fast_math", "-ffast-math", 'V', 0},
    {ROW_FLAG, "-use_fast_math", "-ffast-math", 'V', 1},
    {ROW_FLAG, "--fmad=false", "-ffp-contract=off", 'I', 0},
    {ROW_FLAG, "-fmad=false", "-ffp-contract=off", 'I', 1},
    {ROW_FLAG, "--fmad=true", "-ffp-contract=fast", 'I', 0},
    {ROW_FLAG, "-fmad=true", "-ffp-contract=fast", 'I', 1},
    {ROW_FLAG, "--ftz=true", "-fmusa-flush-denormals-to-zero", 'V', 0},
    {ROW_FLAG, "-ftz=true", "-fmusa-flush-denormals-to-zero", 'V', 1},
    {ROW_FLAG, "--resource-usage", "-resource-usage", 'V', 0},
    {ROW_FLAG, "-res-usage", "-resource-usage", 'V', 1},
    {ROW_FLAG, "-lcudart", "-lmusart", 'V', 0},
    {ROW_FLAG, "-lcuda", "-lmusa", 'V', 0},
    {ROW_FLAG, "-lcublas", "-lmublas", 'V', 0},
    {ROW_FLAG, "-lcublasLt", "-lmublasLt", 'V', 0},
    {ROW_FLAG, "-lcurand", "-lmurand", 'V', 0},
    {ROW_FLAG, "-lcufft", "-lmufft", 'T', 0},
    {ROW_FLAG, "-lcusparse", "-lmusparse", 'T', 0},
    {0},
};

const struct musa_prefix musa_prefixes[] = {
    {"cuda", "musa", 'A', 'V'},           {"make_cuda", "make_musa", 'A', 'V'},  {"CUDA_", "MUSA_", '*', 'V'},
    {"CUDART_", "MUSART_", '*', 'V'},     {"__CUDA_", "__MUSA_", '*', 'V'},      {"cu", "mu", 'D', 'V'},
    {"CU_", "MU_", '*', 'V'},             {"CU", "MU", 'a', 'V'},                {"cublas", "mublas", 'A', 'V'},
    {"CUBLAS_", "MUBLAS_", '*', 'V'},     {"CUBLASLT_", "MUBLASLT_", '*', 'V'},  {"cufft", "mufft", 'A', 'V'},
    {"CUFFT_", "MUFFT_", '*', 'V'},       {"curand", "murand", 'A', 'T'},        {"curand_", "murand_", '*', 'V'},
    {"CURAND_", "MURAND_", '*', 'T'},     {"cusparse", "musparse", 'A', 'V'},    {"CUSPARSE_", "MUSPARSE_", '*', 'V'},
    {"cusolver", "musolver", 'A', 'T'},   {"CUSOLVER_", "MUSOLVER_", '*', 'T'},  {"nccl", "mccl", 'A', 'V'},
    {"__nv_fp8", "__mt_fp8", '*', 'V'},   {"cuComplex", "muComplex", '*', 'T'},  {"cuDoubleComplex",
        "muDoubleComplex", '*', 'T'},
    {"cuFloatComplex", "muFloatComplex", '*', 'T'},
    {0},
};

/* The driver API's families: cuMemAlloc is one, int cuSum is not. */
static const char *const families[] = {
    "Init", "Driver", "Device", "Ctx", "Module", "Library", "Kernel", "Func", "Launch", "Mem", "Stream",
        "Event", "Graph",
    "Occupancy", "GetError", "GetProc", "Link", "Pointer", "Array", "Mipmapped", "TexObject", "SurfObject",
        "Ipc", "Profiler",
    "Cmul", "Cadd", "Csub", "Cdiv", "Cabs", "Cfma", "Conj", "Creal", "Cimag", "External", "UserObject",
        "Multicast", NULL,
};

#define NO_PTX "no MUSA compiler reads PTX"
#define NO_CLUSTER "no MUSA device has thread block clusters"
#define NO_TMA "tensor maps have no counterpart that is documented"
#define NO_ASYNC "asynchronous copies to shared memory have another interface (__musa_memcpy_g2s, no commit groups)"
#define NO_DNN "muDNN is a C++ library with another interface"
#define NO_RTC "run-time compilation (MTRTC) has no documented interface"
#define NO_TEX "nothing shows that texture and surface objects work"
#define NO_FP4 "nothing shows that types of four or six bits work"

const struct musa_lack musa_lacks[] = {
    {"__cluster_dims__", 0, "cluster", NO_CLUSTER},
    {"cluster_group", 0, "cluster", NO_CLUSTER},
    {"this_cluster", 0, "cluster", NO_CLUSTER},
    {"cudaLaunchAttributeCluster*", 0, "cluster", NO_CLUSTER},
    {"cudaFuncAttributeNonPortableClusterSizeAllowed", 0, "cluster", NO_CLUSTER},
    {"CUtensorMap*", 0, "tensor-map", NO_TMA},
    {"cuTensorMap*", 0, "tensor-map", NO_TMA},
    {"CU_TENSOR_MAP_*", 0, "tensor-map", NO_TMA},
    {"__pipeline_*", 0, "async-copy", NO_ASYNC},
    {"memcpy_async", 0, "async-copy", NO_ASYNC},
    {"thread_scope_block", 0, "async-copy", NO_ASYNC},
    {"cudnn*", 0, "cudnn", NO_DNN},
    {"CUDNN_*", 0, "cudnn", NO_DNN},
    {"nvrtc*", 0, "run-time-compilation", NO_RTC},
    {"NVRTC_*", 0, "run-time-compilation", NO_RTC},
    {"cuLink*", 0, "run-time-compilation", NO_RTC},
    {"CU_JIT_*", 0, "run-time-compilation", NO_RTC},
    {"nvmlInit*", 0, "nvml", "MTML has another interface"},
    {"cudaTextureObject_t", 0, "texture", NO_TEX},
    {"cudaSurfaceObject_t", 0, "texture", NO_TEX},
    {"tex1Dfetch", 0, "texture", NO_TEX},
    {"tex2D", 0, "texture", NO_TEX},
    {"tex3D", 0, "texture", NO_TEX},
    {"__nv_fp4*", 0, "fp4", NO_FP4},
    {"__nv_fp6*", 0, "fp4", NO_FP4},
    {"__viaddmax*", 0, "dpx", "the DPX functions are NVIDIA's"},
    {"__vimax*", 0, "dpx", "the DPX functions are NVIDIA's"},
    {"cutlass", 0, "cutlass", "MUTLASS is another version with other templates"},
    {"cute", 0, "cutlass", "MUTLASS is another version with other templates"},
    {"cudaGridDependencySynchronize", 0, "dependent-launch", "programmatic dependent launch does not exist"},
    {"cudaTriggerProgrammaticLaunchCompletion", 0, "dependent-launch", "programmatic dependent launch does not exist"},
    {"cudaLaunchAttributeProgrammatic*", 0, "dependent-launch", "programmatic dependent launch does not exist"},
    {"THCState", 0, "thc", "THC left PyTorch before MUSA came"},
    {"__nv_fp8*", 310, "fp8", "eight-bit floats begin with mp_31"},
    {"__NV_E*", 310, "fp8", "eight-bit floats begin with mp_31"},
    {"nvcuda", 310, "wmma", "matrix fragments are only known to work on mp_31"},
    {"wmma", 310, "wmma", "matrix fragments are only known to work on mp_31"},
    {"hexp2", 310, "intrinsic", "hexp2 is missing on mp_22 and older"},
    {"h2exp2", 310, "intrinsic", "h2exp2 is missing on mp_22 and older"},
    {"hsin", 310, "intrinsic", "hsin is missing on mp_22 and older"},
    {"h2sin", 310, "intrinsic", "h2sin is missing on mp_22 and older"},
    {"htrunc", 310, "intrinsic", "htrunc is declared and not defined on mp_22"},
    {"__dp4a", 310, "intrinsic", "__dp4a takes char4 on mp_22 and older"},
    {"__nv_bfloat16*", 220, "bf16", "bfloat16 begins with mp_22"},
    {"nv_bfloat16*", 220, "bf16", "bfloat16 begins with mp_22"},
    {0},
};

const struct musa_lack musa_include_lacks[] = {
    {"cuda_pipeline*", 0, "async-copy", NO_ASYNC},
    {"cuda_awbarrier*", 0, "async-copy", NO_ASYNC},
    {"cuda/pipeline*", 0, "async-copy", NO_ASYNC},
    {"cuda/barrier*", 0, "async-copy", NO_ASYNC},
    {"cuda/ptx*", 0, "ptx", NO_PTX},
    {"cuda/atomic*", 0, "libcu++", "musa/std is only known from tables, its device extensions not at all"},
    {"cuda/functional*", 0, "libcu++", "musa/std is only known from tables, its device extensions not at all"},
    {"cooperative_groups/memcpy_async.h", 0, "async-copy", NO_ASYNC},
    {"cudaTypedefs.h", 0, "tensor-map", NO_TMA},
    {"cudnn*", 0, "cudnn", NO_DNN},
    {"ATen/cudnn/*", 0, "cudnn", NO_DNN},
    {"nvrtc*", 0, "run-time-compilation", NO_RTC},
    {"nvml*", 0, "nvml", "MTML has another interface"},
    {"nvToolsExt*", 0, "nvtx", "no package has mttx"},
    {"nvtx3/*", 0, "nvtx", "no package has mttx"},
    {"cuda_fp4.h", 0, "fp4", NO_FP4},
    {"cuda_fp6.h", 0, "fp4", NO_FP4},
    {"cutlass/*", 0, "cutlass", "MUTLASS is another version with other templates"},
    {"cute/*", 0, "cutlass", "MUTLASS is another version with other templates"},
    {"flashinfer/*", 0, "library", "this header exists for CUDA only"},
    {"cuda_fp8.h", 310, "fp8", "eight-bit floats begin with mp_31"},
    {"mma.h", 310, "wmma", "matrix fragments are only known to work on mp_31"},
    {"cuda_bf16.h", 220, "bf16", "bfloat16 begins with mp_22"},
    {"c10/cuda/*", 0, "header", "torch_musa has no such header"},
    {"ATen/cuda/*", 0, "header", "torch_musa has no such header"},
    {"ATen/native/cuda/*", 0, "header", "torch_musa has no such header"},
    {"torch/csrc/cuda/*", 0, "header", "torch_musa has no such header"},
    {"THC/*", 0, "header", "THC left PyTorch before MUSA came"},
    {"cuda*", 0, "header", "no MUSA header of that name is known"},
    {0},
};

const struct musa_lack musa_py_lacks[] = {
    {"cupy", 0, "cupy", "CuPy has no MUSA port"},
    {"numba", 0, "numba", "Numba has no MUSA port"},
    {"pycuda", 0, "pycuda", "PyCUDA has no MUSA port"},
    {"cuda", 0, "cuda-python", "the package cuda-python has no MUSA port"},
    {"cutlass", 0, "cutlass", "MUTLASS has no Python package of that interface"},
    {"nvmath", 0, "nvmath", "nvmath has no MUSA port"},
    {"pynvml", 0, "nvml", "MTML has another interface"},
    {"transformer_engine", 0, "library", "this package exists for CUDA only"},
    {0},
};

static bool musa_table_same(const char *s, const char *word, size_t n)
{
    return strlen(s) == n && !memcmp(s, word, n);
}

size_t musa_row_count(void)
{
    return sizeof musa_rows / sizeof *musa_rows - 1;
}

const struct musa_row *musa_row_find(enum musa_row_kind kind, const char *word, size_t n, bool to_cuda)
{
    for (const struct musa_row *r = musa_rows; r->cuda; r++)
        if (r->kind == kind && !(to_cuda && r->one_way) && musa_table_same(to_cuda ? r->musa : r->cuda, word, n))
            return r;
    return NULL;
}

/* True if the word begins with a family's prefix. */
static bool musa_table_in_family(const char *word, size_t n)
{
    for (int i = 0; families[i]; i++) {
        size_t k = strlen(families[i]);
        if (n >= k && !memcmp(word, families[i], k) && (n == k || !islower((unsigned char)word[k])))
            return true;
    }
    return false;
}

/* True where the rest of a word goes on as the prefix's kind wants. */
static bool musa_table_follows(char next, const char *rest, size_t n)
{
    switch (next) {
    case 'A': return n > 0 && isupper((unsigned char)rest[0]);
    case 'a': return n > 1 && islower((unsigned char)rest[0]);
    case 'D': return musa_table_in_family(rest, n);
    default: return n > 0;
    }
}

const struct musa_prefix *musa_prefix_find(const char *word, size_t n, bool to_cuda, size_t *ret_skip)
{
    for (const struct musa_prefix *p = musa_prefixes; p->cuda; p++) {
        const char *from = to_cuda ? p->musa : p->cuda;
        size_t k = strlen(from);

        if (n > k && !memcmp(word, from, k) && musa_table_follows(p->next, word + k, n - k)) {
            *ret_skip = k;
            return p;
        }
    }
    return NULL;
}

const struct musa_lack *musa_lack_find(const struct musa_lack *rows, const char *word, size_t n)
{
    for (; rows->name; rows++) {
        size_t k = strlen(rows->name);
        bool prefix = rows->name[k - 1] == '*';

        if (prefix ? n >= k - 1 && !memcmp(rows->name, word, k - 1) : musa_table_same(rows->name, word, n))
            return rows;
    }
    return NULL;
}
