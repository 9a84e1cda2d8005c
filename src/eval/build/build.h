/* build.h - the compile stage: one build request of a candidate becomes one shared object.
 *
 * A request is what load_inline/load was called with (ARCHITECTURE.md, "Build request"). Targets (build_target.h);
 * what the host calls of the runtime becomes requests (litetorch/proxy), and device code an image for an executor
 * (docs/internals/executor.md):
 *   sim   the sources are rewritten for the emulator (translate/simt_rewrite) and compiled against litetorch/ and simt/
 *         headers by g++
 *   cuda  g++ compiles the host's half of the kernels' text and the bindings, nvcc the device's
 *         half; what cannot be parted (translate/cuda_split.h), or does not build so, nvcc compiles
 *         whole. Against litetorch/ and the toolkit's headers
 *   musa  mcc compiles the device's half, g++ the rest; a source that cannot be parted is unsupported
 * Compilers run in a jail; results are kept in a content-addressed folder: path_cache("build")/KEY/{module.so,
 * result.json}. KEY covers the sources, the table of functions, flags, header sets and the compiler. Two callers that
 * want the same key at once compile it once (file lock). A failed compile is cached too; one that ran out of time,
 * or was killed from outside, is not.
 *
 * Thread-safe; keeps no state. Every call may take opts.timeout_s of wall time. */
#ifndef MC_EVAL_BUILD_H
#define MC_EVAL_BUILD_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct build_opts {
    const char *target;    /* "sim" (NULL means it), "cuda" or "musa" */
    const char *arch;      /* what the device is, "sm_90", "mp_22"; NULL: $MUSACODER_CUDA_ARCH, else "sm_90" */
    const char *compiler;  /* the host's; NULL: $MUSACODER_CXX, else "g++". nvcc: $MUSACODER_NVCC, $CUDA_HOME, ... */
    const char *cache_dir; /* NULL: path_cache("build"); precompiled headers are always kept there */
    double timeout_s;      /* 0: 60 s of wall time for all compiler processes of the request together */
    bool no_jail;          /* run the compiler unjailed (eval --jail none); default is jailed */
    bool no_cache;         /* compile even if the result is known */
    bool no_check;         /* sim: leave out the instrumentation that finds out-of-bounds, races, uninitialised reads */
    bool whole;            /* cuda: never part a source into host's and device's half; $MUSACODER_CUDA_WHOLE too */
};

struct build_result {
    bool ok;
    bool cached;          /* taken from the cache: ms is then the time of the compile that filled it */
    bool timed_out;       /* not ok because the compiler exceeded timeout_s */
    bool split;           /* cuda: g++ compiled the host's half and nvcc the device's alone (translate/cuda_split.h) */
    double ms;            /* wall time of rewriting, compiling and linking */
    char key[65];         /* content address */
    char *so;             /* path of the shared object; NULL unless ok */
    char *image;          /* path of the device code; NULL unless ok and there is some */
    char image_sha256[65];
    char *error;          /* text for the exception that the candidate's load_inline raises; NULL if ok */
    char *log;            /* trimmed compiler output with the candidate's own file names; never NULL */
    json_t *diagnostics;  /* array of {"file","line","column","message","source":[{"line","text"}..]}, first root error
                             first; empty if ok. "file" is "cuda_sources[0]", "cpp_sources[0]" or the path of load() */
    json_t *findings;     /* array of {"kind","name"}: what the library refers to and must not (build_audit.h).
                             "library_call": cuBLAS, cuDNN, ..., also where a failed build lacks just these;
                             "judge_call": the emulator's functions for the judge, which a kernel may not call;
                             "unsupported": what the image refers to and an executor lacks */
    json_t *dropped;      /* array of text: flags of the candidate that were not passed on */
};

/* Returns 0 with *ret filled, whether or not the candidate's code compiles (ret->ok says). Returns -1 only for what
 * is not the candidate's fault (no compiler, disk full, a malformed request of our own shim): category infra. */
int build_run(const json_t *request, const struct build_opts *o, struct build_result *ret, struct err *e);
void build_result_free(struct build_result *r);
/* Does the dynamic linker find all that a library needs, in its versions? It runs nothing of it. false also where it
 * cannot be asked. */
bool build_loads(const char *so);

/* The reply for the candidate's process: {"ok":true,"so":path,"image":sha256 or null} or {"ok":false,"error":text}. New
 * reference. */
json_t *build_reply(const struct build_result *r);

/* Makes the precompiled headers (some seconds, once per installation and version), so that no candidate's build pays
 * for them. Quick when they are there. 0, or -1: no compiler, or our own headers do not compile. */
int build_prepare(const struct build_opts *o, struct err *e);

/* The nvcc that target "cuda" compiles with: of $MUSACODER_NVCC, $CUDA_HOME, /usr/local/cuda, PATH or
 * Python's packages. Caller frees; NULL: there is none, ERR_ENV names where it was looked for. */
char *build_nvcc(struct err *e);

/* A line that names compiler, header sets and flags: part of the verdict cache's key. Caller frees; NULL on error. */
char *build_toolchain_id(const struct build_opts *o, struct err *e);

/* Who builds for this process, if it does not itself (build_remote.h). */
struct build_place {
    void *ctx;
    int (*run)(void *ctx, const json_t *request, const struct build_opts *o, struct build_result *ret, struct err *e);
    char *(*toolchain_id)(void *ctx, const struct build_opts *o, struct err *e);
};
/* build_run and build_toolchain_id ask p from now on, and build_prepare does nothing. NULL: here again. Called while
 * nothing is built; p outlives its use. */
void build_elsewhere(const struct build_place *p);
bool build_is_elsewhere(void);

#endif
