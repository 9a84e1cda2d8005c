/* build_audit.h - what a built library and its image of device code refer to. A library's names convict where they say
 * that somebody else computes, and prove nothing else: the jail sees to that.
 *
 * Findings are {"kind","name"}: "library_call" where a vendor's or PyTorch's library would compute, "unsupported" for
 * what an executor may not open, "lacking" for what a failed build misses of ours. */
#ifndef MC_EVAL_BUILD_AUDIT_H
#define MC_EVAL_BUILD_AUDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

enum audit_class { AUDIT_ALLOWED, AUDIT_LIBRARY, AUDIT_FORBIDDEN };

/* Class of a symbol that a library does not define, without its version: it computes, or it is the jail's matter. */
enum audit_class audit_symbol(const char *name);
/* The same of an image of device code for an executor on sim: what kernels may call. */
enum audit_class audit_symbol_image(const char *name);

/* Calls f for each undefined symbol of an ELF64 file in memory. Returns 0, or -1 if the file is not what it should be;
 * reads nothing outside the n bytes whatever they hold. */
int audit_undefined(const void *elf, size_t n, void (*f)(const char *name, void *ctx), void *ctx);

/* Adds findings of the library at path: what it refers to and what it brings along of libraries that compute. */
void build_audit_library(const char *path, json_t *findings);
/* Adds what an image of device code (sim) has and an executor must not open: {"kind":"unsupported","name"} for
 * references that are not on the list, code that runs when it is opened, resolvers, sections of its own. */
void build_audit_image(const char *path, json_t *findings);
/* Adds what a failed build lacks and would compute with: vendor's libraries ("undefined reference to `cufftExecC2C'",
 * "fatal error: nccl.h") and torch's layers (torch::nn::functional::layer_norm); "lacking": headers and macros of the
 * toolkit and of torch that this judge has no answer to. */
void build_audit_log(const char *log, json_t *findings);
/* Does a source call an algorithm of thrust or CUB for a whole array? */
bool build_audit_device_wide_calls(const char *text);
/* Headers of such algorithms, among findings, only lack where the source calls none. */
void build_audit_relent(const char *text, json_t *findings);
void build_audit_hash(struct sha256 *h); /* the lists' version */

#endif
