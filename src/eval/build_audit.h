/* build_audit.h - what a built library refers to, against a list of what kernels and their host code need.
 * The list is of names: it convicts what is there, it does not prove that nothing else happens (the jail does that).
 *
 * Findings are {"kind","name"}: "library_call" where a vendor's or PyTorch's library would compute,
 * "forbidden_symbol" for any other reference that is not on the list: loading code, mapping memory, starting
 * processes and threads, files, sockets, signals, exporting device memory, resetting the device, profiling. */
#ifndef MC_EVAL_BUILD_AUDIT_H
#define MC_EVAL_BUILD_AUDIT_H

#include <jansson.h>
#include <stddef.h>

#include "base/hash.h"

enum audit_class { AUDIT_ALLOWED, AUDIT_LIBRARY, AUDIT_FORBIDDEN };

/* Class of an undefined symbol, without its version ("memcpy", "cudaIpcGetMemHandle", "_ZNSt6thread..."). */
typedef enum audit_class audit_list(const char *name);
audit_list audit_symbol;     /* for a real GPU */
audit_list audit_symbol_sim; /* the same, and what the emulator offers kernels */
audit_list audit_symbol_front; /* all but libraries that compute: the rest is the jail's matter */
audit_list audit_symbol_image; /* device code for an executor on sim: what kernels may call */

/* Calls f for each undefined symbol of an ELF64 file in memory. Returns 0, or -1 if the file is not what it should be;
 * reads nothing outside the n bytes whatever they hold. */
int audit_undefined(const void *elf, size_t n, void (*f)(const char *name, void *ctx), void *ctx);
/* The same for functions defined in the file, by name of the full symbol table. */
int audit_defined(const void *elf, size_t n, void (*f)(const char *name, void *ctx), void *ctx);

/* Adds findings of the library at path: undefined symbols that are not on the list, names of the runtime that it
 * defines; one that cannot be read is a "forbidden_symbol" called "unreadable". */
void build_audit_library(const char *path, audit_list *list, json_t *findings);
/* Adds what an image of device code (sim) has and an executor must not open: {"kind":"unsupported","name"} for
 * references that are not on the list, code that runs when it is opened, resolvers, sections of its own. */
void build_audit_image(const char *path, json_t *findings);
/* Adds references of an object file, before the link, that go around the wrapped calls of litetorch/device.cc. */
void build_audit_object(const char *path, json_t *findings);
/* Adds what a failed build lacks and would compute with: vendor's libraries ("undefined reference to `cufftExecC2C'",
 * "fatal error: nccl.h") and torch's layers (torch::nn::functional::layer_norm); "lacking": headers and macros of the
 * toolkit and of torch that this judge has no answer to. */
void build_audit_log(const char *log, json_t *findings);
/* Adds system calls in the host's code, as build_add_disassembly left them in the folder dir. */
void build_audit_assembly(const char *dir, json_t *findings);
void build_audit_hash(struct sha256 *h); /* the lists' version */

#endif
