/* build_target.h - inside of the compile stage: what build.c and the files of the backends share. A target belongs to
 * a backend's row (judge_backend.h): what to compile with, which text, in which shell script, and what to look at
 * afterwards. build.c owns the request, the caches, the jail and the explaining. */
#ifndef MC_EVAL_BUILD_TARGET_H
#define MC_EVAL_BUILD_TARGET_H

#include "base/buf.h"
#include "base/hash.h"
#include "eval/build/build.h"

#define BUILD_MAX_SOURCE (4u << 20)
#define BUILD_MAX_LOG (256u << 10)
#define BUILD_MAX_IMAGE ((size_t)128 << 20)

struct build_target;

/* What torch passes to nvcc by itself: half operators are absent unless the candidate undoes it. */
extern const char build_torch_macros[];

/* Compilers, header sets and flags; made once per process, target, compiler and architecture, never freed. */
struct toolchain {
    const struct build_target *target;
    char *compiler, *arch;  /* the host's; "" on sim */
    char *lite, *extra;     /* litetorch/include, and the target's own folder of headers beside it (simt, ...) */
    char *forward;          /* lite/ and sim/: headers that only pass on to those (litetorch/forward.txt) */
    char *libdir;           /* sim: where libsimt.so is; NULL on cuda */
    char *system;           /* -isystem flags; may be "" */
    char *nvrtc;            /* cuda: the path of libnvrtc.so; NULL: not asked for, or none */
    char *nvcc, *home;      /* cuda: the driver and the toolkit's folder; musa: mcc and the SDK's; NULL on sim */
    bool gold;              /* this linker is there */
    char tool[80];          /* begins id: "nvcc 13.0.88 sm_90 "; "" on sim */
    char id[256];           /* readable */
    char hash[65];
};

#define BUILD_LOCK_WAIT_S 900.0 /* for another process that compiles the same */

struct jail_spec;
struct proc_result;

struct build_request {
    const json_t *json, *cpp, *cuda, *functions;
    const char *name;
    struct buf flags;        /* the candidate's flags that every compiler gets, shell-quoted */
    struct buf kernel_flags; /* the candidate's flags for the kernels' compiler alone, shell-quoted */
    struct buf kernel_macros; /* cuda: the macros among them, as '#define' lines for g++ */
    struct buf source_macros; /* sim: macros that both sources begin with, as '#define' lines */
    bool kernel_std;          /* cuda: they name another standard than C++17 */
    struct buf main_cpp, cuda_cu;
    json_t *dropped;
    char arch_letter; /* cuda: 'a' if the flags ask for "sm_90a", 'f' for "sm_100f"; else 0 */
    bool bare;   /* no_implicit_headers */
    bool joined; /* the cpp sources only declare: both halves may be one translation unit */
};

struct build_job {
    const struct build_request *r;
    const struct toolchain *t;
    const struct build_opts *o;
    const char *dir;        /* the build's folder: write main.cpp, cuda.cu here; module.so and *.log come there */
};

/* Filled by the target's script(). ro entries are owned. */
struct build_plan {
    struct buf script;      /* for /bin/sh, with the folder as working directory; exit 0: module.so is there */
    char *ro[12];           /* folders outside /usr that the compilers read */
    int n_ro;
    size_t memory_bytes;    /* 0: the jail's default for compilers */
    double timeout_s;       /* 0: the caller's */
};

struct build_target {
    const char *name;
    bool native; /* compiles MUSA itself: flags pass in its own spelling, sources of CUDA's are refused */
    /* Fills t (target and compiler are set) and adds all that changes results to h. */
    int (*find)(struct toolchain *t, const struct build_opts *o, struct sha256 *h, struct err *e);
    /* Which of the candidate's flags pass, and in which form: fills r->flags, r->kernel_flags, r->arch_letter and
     * r->dropped. cflags, cuda_flags, ldflags: lists of text or NULL. */
    void (*keep_flags)(struct build_request *r, const json_t *cflags, const json_t *cuda_flags, const json_t *ldflags);
    /* Appends a source of kernels as the compiler will see it, '#line 1 "name"' first. */
    int (*add_kernels)(const char *text, size_t n, const char *name, struct buf *out, struct err *e);
    /* Appends what makes our own precompiled header and objects, for build_prefix_dir(). */
    void (*precompile)(struct buf *script, const struct toolchain *t, int arg);
    /* Has them made, once; NULL: build_prefix() does. */
    int (*prepare)(const struct toolchain *t, const struct build_opts *o, struct err *e);
    int (*script)(const struct build_job *j, struct build_plan *plan, struct err *e);
    /* After the script, whether or not it worked; may add findings, may not fail the build. NULL: there is nothing. */
    void (*inspect)(const struct build_job *j, const char *log, struct build_result *ret);
};

extern const struct build_target build_target_cuda; /* of backend_cuda and its test's */

/* build_parts.c: what targets are made of. */
void build_quote(struct buf *out, const char *s); /* one shell word and a space */
/* One shell word with a path or another foreign text in it, and a space: "-I", path, "/lite". 'before' and 'after'
 * are shell text of ours. No path enters a script in another way. */
void build_word(struct buf *out, const char *before, const char *s, const char *after);
void build_hash_tree(struct sha256 *h, const char *dir); /* names and contents of all files under dir */
void build_hash_file(struct sha256 *h, const char *path);
/* One line of what argv prints, spaces for line breaks; -1 if it cannot be run or says no. */
int build_ask(char *const *argv, struct buf *out, struct err *e);
/* A row's add_kernels where the compiler takes the source as it is. */
int build_add_kernels(const char *text, size_t n, const char *name, struct buf *out, struct err *e);
/* The folder path_cache("build")/prefix-HASH-NAME; made by make() once (file lock) if it is not there. Caller frees.
 * make's script runs unjailed with at most 300 s: it compiles our own code only. NULL on error. */
char *build_prefix_dir(const struct toolchain *t, const char *name, void (*make)(struct buf *script,
                       const struct toolchain *t, int arg), int arg, struct err *e);
char *build_prefix(const struct toolchain *t, struct err *e); /* of a target that has one */
/* Are the folders that this process compiled with what was made? One that was damaged is said in the log, and is made
 * again by the next build_prefix_dir(). For after a failed compiler: about 0.2 s, at most once a minute. */
bool build_prefixes_hold(const struct toolchain *t);
/* The folder of t->forward, made again if it has gone. Caller frees; NULL on error. */
char *build_forward_dir(const struct toolchain *t, struct err *e);
char *build_forward_path(const struct toolchain *t); /* where it is; a known verdict asks no more. Caller frees */
/* Runs a script by /bin/sh, jailed unless jail is NULL; at most BUILD_MAX_LOG bytes of each output are kept. */
int build_shell(const char *script, double timeout_s, const struct jail_spec *jail, struct proc_result *r,
                struct err *e);
int build_write(const char *dir, const char *name, const struct buf *text, struct err *e);
void build_plan_ro(struct build_plan *p, const char *path); /* copies; NULL and paths under /usr are left out */

/* Starts the making of prefix.h.gch in the folder as $p, for 'wait $p'. command: the host's compiler with its flags.
 * Templates that the headers ask for are made there once (litetorch/early_templates.c), where the compiler can. */
void build_precompile_header(struct buf *script, const struct toolchain *t, const char *command);
/* Sets t->gold, if the linker 'gold' is in the PATH of compilers, and adds its path, size and time to h. */
void build_find_linker(struct toolchain *t, struct sha256 *h);
/* A link by the host's compiler. gold reads the C++ library's symbols in a quarter of the time; where it refuses, the
 * compiler's own linker decides, in its words. words: all but the compiler, in the shell's words. */
void build_add_link(struct buf *script, const struct toolchain *t, const char *words);
/* build_nvrtc.c. Sets t->nvrtc from t->home, unless $MUSACODER_CUDA_NVRTC is 0, and adds it to h. */
void build_nvrtc_find(struct toolchain *t, struct sha256 *h);
/* Appends "NVRTC makes device.fatbin, .cubin and .ptx of device.cu ||", for nvcc's command behind it, if device, the
 * text of that half, means the same to both. uses: flags for split_device.h. False: nothing was appended. */
bool build_nvrtc_add(struct buf *script, const struct build_job *j, const char *device, const char *uses);
/* What is kept of a build, and travels: all but its files. */
json_t *build_result_json(const struct build_result *r);
/* The other way round; its files are in dir. ret->findings is there already. */
void build_result_read(struct build_result *ret, const json_t *j, const char *dir);
/* Seals the folder of a build that is complete and gives it its name in the cache: whole on the disk or not there. */
int build_publish(const char *work, const char *dir, struct err *e);
/* Fills ret from a folder of the cache, if that is one and nothing in it has changed since it was sealed. */
bool build_cache_get(const char *dir, struct build_result *ret);

#endif
