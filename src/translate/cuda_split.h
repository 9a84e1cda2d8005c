/* cuda_split.h - one CUDA source as two: what a host compiler needs to see of it, and what the device compiler needs.
 *
 *   host    every function of the host; a kernel's body is replaced by what nvcc's own stub does (::lt::launch of its
 *           parameters), a launch becomes a call behind ::lt::push, as nvcc writes it; bodies of device functions go
 *   device  kernels, device functions, types, constants and macros; functions of the host go, and with them the headers
 *           that only they need
 * Both keep every line break, so that line numbers stay the source's. A name that only the dropped half declares is an
 * error of the compiler, never another meaning: overloads that device code may call stay in the device half. Templates
 * of kernels are not instantiated in the device half; the caller appends what the host half made of them.
 *
 * Works on tokens, not on a parsed program: what it does not understand it declines, and the caller then gives the
 * whole source to nvcc. Linear in the source. */
#ifndef MC_TRANSLATE_CUDA_SPLIT_H
#define MC_TRANSLATE_CUDA_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct cuda_split {
    struct buf host, device; /* initialised by the caller */
    struct buf templates;    /* names of the kernels that are templates, "a|b"; "" without */
};

/* False with *ret_why (static text) if the source is declined; out then holds nothing of use. filename is what '#line'
 * shows of launches. */
bool cuda_split(const char *src, size_t n, const char *filename, struct cuda_split *out, const char **ret_why);

#endif
