/* image.h - kernels of a candidate in a process of the judge's: the device's half of a build ('device.so'), by path.
 *
 * The compile stage links every build twice from the same objects. The library that the candidate's process loads sends
 * launches away as data. The image holds kernels, what they call, and their variables, and nothing of the host:
 * constructors are stripped, and what it may refer to is a short list (src/eval/build/build_audit.h). The caller has
 * compared its hash. Launches run on the calling thread and return when they are done; what they do wrong is a
 * finding of api.h. */
#ifndef SIMT_IMAGE_H
#define SIMT_IMAGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_IMAGE_MAX_ARGS ((size_t)64 << 10) /* bytes of one launch's arguments */

struct simt_image;
struct simt_function;

/* NULL with the reason in why. The file is mapped here, lines of source included: it need not be readable later. */
struct simt_image *simt_image_open(const char *path, char *why, size_t n_why);
void simt_image_close(struct simt_image *image); /* NULL is fine; its functions go with it */

/* A launch site. name: "THUNK\nKERNEL\nSHOWN\nFILE\nLINE": the symbol that runs one thread, the kernel's symbol (empty:
 * the thunk knows it), and what findings call it. An empty THUNK names a kernel for its attributes alone. NULL: there
 * is no such symbol. Equal names give the same function. */
const struct simt_function *simt_image_function(struct simt_image *image, const char *name);
/* A __device__ or __constant__ variable by its symbol; NULL if there is none. ret_bytes may be NULL. */
void *simt_image_symbol(struct simt_image *image, const char *name, size_t *ret_bytes);
/* cudaFuncSetAttribute of the function's kernel. Returns a cudaError. */
int simt_image_attribute(const struct simt_function *f, int attribute, int value);
/* cooperative: its blocks may wait for each other. args: the launch's argument block, n bytes, which is copied.
 * Returns a cudaError; it stays until simt_reset after a fault, as cudaGetLastError does. */
int simt_image_launch(const struct simt_function *f, const unsigned grid[3], const unsigned block[3], size_t shared,
                      int cooperative, const void *args, size_t n);

#ifdef __cplusplus
}
#endif
#endif
