/* simt_rewrite.h - turns a CUDA source into C++ that g++ or clang++ compiles against simt/include.
 *
 * Only what macros cannot express is rewritten:
 *   callee<targs><<<grid, block, shared, stream>>>(args)  ->  a call of the emulator that names kernel and line
 *   extern __shared__ T name[];                           ->  a pointer to the block's dynamic shared memory
 * Everything else is copied byte for byte, line breaks included, and the text starts with '#line 1 "filename"', so
 * compiler errors and findings carry the candidate's lines. Launches inside #define bodies are rewritten too.
 * A construct that does not look complete is copied as it is: the compiler then explains it.
 * The work is linear in the source, whatever it holds: candidates are foreign text. */
#ifndef MC_TRANSLATE_SIMT_REWRITE_H
#define MC_TRANSLATE_SIMT_REWRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the rewritten source to out. filename is what compilers and findings will show; it must not be NULL.
 * Fails (ERR_INPUT) only if out's maximum is too small or the source holds a NUL byte. */
int simt_rewrite(const char *src, size_t n, const char *filename, struct buf *out, struct err *e);
/* The same, and adds to *looks how often a token was looked at; for tests of the promise above. */
int simt_rewrite_counted(const char *src, size_t n, const char *filename, struct buf *out, uint64_t *looks,
                         struct err *e);
/* Launches alone, for a real device (translate/cuda_split.h): '(::lt::push(CFG) ? (void)0 : CALLEE(ARGS))'. */
int simt_rewrite_launches(const char *src, size_t n, const char *filename, struct buf *out, struct err *e);

#endif
