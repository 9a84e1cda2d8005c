/* both.h - what cuda.cc and sim.cc answer alike over front.h: errors, the only device, memory, streams, events. Each of
 * the two includes it once, behind its own declarations of the runtime. */
#include "front/front.h"

#define OK(X) static_cast<cudaError_t>(X)

static int attribute(int a)
{
    int v = 0;

    front_attribute(a, &v);
    return v;
}

extern "C" {

cudaError_t cudaGetLastError(void) { return OK(front_last_error(0)); }
cudaError_t cudaPeekAtLastError(void) { return OK(front_last_error(1)); }
const char *cudaGetErrorString(cudaError_t e) { return front_error_text(e); }
const char *cudaGetErrorName(cudaError_t e) { return front_error_name(e); }
cudaError_t cudaDeviceSynchronize(void) { return OK(front_sync()); }
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { return *d = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : OK(front_fail(cudaErrorInvalidDevice)); }
cudaError_t cudaGetDeviceCount(int *n) { return *n = 1, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *f, size_t *t) { return OK(front_mem_info(f, t)); }
cudaError_t cudaRuntimeGetVersion(int *v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaFree(void *p) { return OK(front_free(p, FRONT_RAW, nullptr)); }
cudaError_t cudaFreeHost(void *p) { return OK(front_free_host(p)); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return OK(front_stream_destroy(s)); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return OK(front_event_destroy(e)); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { return OK(front_event_sync(e)); }
cudaError_t cudaEventQuery(cudaEvent_t e) { return OK(front_event_query(e)); }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) { return OK(front_event_elapsed(a, b, ms)); }

} // extern "C"
