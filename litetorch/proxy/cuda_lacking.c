/* cuda_lacking.c - functions of the CUDA runtime and driver that a process without a device cannot have: each asks
 * the executor in vain (front_lack) and fails. No header of the toolkit: only names count. */
#include "front/front.h"

#define LACKING(name, what)                                                                                            \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return front_lack(FRONT_LACK_##what);                                                                          \
    }

LACKING(cudaStreamBeginCaptureToGraph, GRAPHS)
LACKING(cudaStreamGetCaptureInfo, GRAPHS)
LACKING(cudaStreamUpdateCaptureDependencies, GRAPHS)
LACKING(cudaGraphExecUpdate, GRAPHS)
LACKING(cudaGraphGetNodes, GRAPHS)
LACKING(cudaGraphAddMemcpyNode, GRAPHS)
LACKING(cudaGraphAddMemsetNode, GRAPHS)
LACKING(cudaGraphKernelNodeSetParams, GRAPHS)

LACKING(cudaLaunchHostFunc, HOST_FUNCTION)
LACKING(cudaStreamAddCallback, HOST_FUNCTION)

LACKING(cudaDeviceEnablePeerAccess, PEERS)
LACKING(cudaDeviceDisablePeerAccess, PEERS)
LACKING(cudaMemcpyPeer, PEERS)
LACKING(cudaMemcpyPeerAsync, PEERS)
LACKING(cudaIpcGetMemHandle, PEERS)
LACKING(cudaIpcOpenMemHandle, PEERS)
LACKING(cudaIpcCloseMemHandle, PEERS)

LACKING(cudaMemPrefetchAsync, HOST_MEMORY)
LACKING(cudaMemAdvise, HOST_MEMORY)
LACKING(cudaStreamAttachMemAsync, HOST_MEMORY)
LACKING(cudaHostGetFlags, HOST_MEMORY)

LACKING(cudaMalloc3D, TEXTURES)
LACKING(cudaMemcpy3D, TEXTURES)
LACKING(cudaMemcpy3DAsync, TEXTURES)
LACKING(cudaMallocArray, TEXTURES)
LACKING(cudaFreeArray, TEXTURES)
LACKING(cudaMemcpyToArray, TEXTURES)
LACKING(cudaMemcpy2DToArray, TEXTURES)
LACKING(cudaCreateTextureObject, TEXTURES)
LACKING(cudaDestroyTextureObject, TEXTURES)
LACKING(cudaCreateSurfaceObject, TEXTURES)
LACKING(cudaDestroySurfaceObject, TEXTURES)

LACKING(cudaMemPoolCreate, OTHER)
LACKING(cudaMemPoolDestroy, OTHER)
LACKING(cudaDeviceSetMemPool, OTHER)

LACKING(cudaLibraryLoadData, IMAGES)
LACKING(cudaLibraryGetKernel, IMAGES)
LACKING(cuModuleLoadData, IMAGES)
LACKING(cuModuleLoadDataEx, IMAGES)
LACKING(cuModuleLoad, IMAGES)
LACKING(cuModuleLoadFatBinary, IMAGES)
LACKING(cuModuleGetFunction, IMAGES)
LACKING(cuLibraryLoadData, IMAGES)
LACKING(cuLinkCreate_v2, IMAGES)

LACKING(cuLaunchKernel, DRIVER)
LACKING(cuLaunchKernel_ptsz, DRIVER)
LACKING(cuLaunchKernelEx, DRIVER)
LACKING(cuLaunchKernelEx_ptsz, DRIVER)
LACKING(cuLaunchCooperativeKernel, DRIVER)
LACKING(cuMemAlloc_v2, DRIVER)
LACKING(cuMemFree_v2, DRIVER)
LACKING(cuMemcpyHtoD_v2, DRIVER)
LACKING(cuMemcpyDtoH_v2, DRIVER)
LACKING(cuInit, DRIVER)
LACKING(cuDeviceGet, DRIVER)
LACKING(cuCtxGetCurrent, DRIVER)
LACKING(cuCtxSynchronize, DRIVER)
LACKING(cudaGetFuncBySymbol, DRIVER)
LACKING(cudaGetKernel, DRIVER)
LACKING(cudaFuncGetName, DRIVER)
LACKING(cudaOccupancyMaxActiveClusters, CLUSTERS)
LACKING(cudaOccupancyMaxPotentialClusterSize, CLUSTERS)
LACKING(cudaOccupancyAvailableDynamicSMemPerBlock, OTHER)
LACKING(cudaMemRangeGetAttribute, HOST_MEMORY)
