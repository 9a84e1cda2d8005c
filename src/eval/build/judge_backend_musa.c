/* judge_backend_musa.c - the backend 'musa': Moore Threads' cards. mcc for a MUSA source's device half, g++ for the
 * rest. The reference runs on the CPU, since the card's own operators are not known to be right; nothing is timed
 * ('musacoder replay' of a capsule times its kernels).
 *
 * The candidate's process has no driver, so its host half needs no SDK: it is compiled against the emulator's runtime
 * headers under MUSA's names (litetorch/split_musa.h) and linked with a proxy of the runtime. mcc sees kernels alone
 * (translate/cuda_split.h), behind litetorch/musa/litetorch/musa.h, and makes the image that the executor loads.
 * Nobody of the project had a card or mcc: tests run this with a recorded driver and compiler (docs/musa.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/cuda_driver.h"
#include "device/musa_cards.h"
#include "eval/build/build_audit.h"
#include "eval/build/build_target.h"
#include "eval/build/judge_backend.h"
#include "translate/cuda_split.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))

static const char host_flags[] = "-x c++ -std=gnu++17 -O1 -fPIC -w -DLT_MUSA_HOST -fno-strict-aliasing -fmax-errors=20 "
                                 "-ftemplate-depth=200 -ftemplate-backtrace-limit=6 -fdiagnostics-color=never "
                                 "-fno-diagnostics-show-caret ";

static int build_musa_valid_arch(const char *arch, struct err *e)
{
    if (!strncmp(arch, "mp_", 3) && strlen(arch) == 5 && strspn(arch + 3, "0123456789") == 2)
        return 0;
    return err_set(e, ERR_INPUT, "'%s' is not an architecture of MUSA; say mp_22 or the like", arch);
}

/* A folder that holds the compiler and its libraries: two above bin/mcc, else where the compiler lies. */
static char *build_musa_home_of(const char *mcc)
{
    char *home = xstrdup(mcc), *slash = strrchr(home, '/');

    if (slash && slash != home)
        *slash = 0;
    slash = strrchr(home, '/');
    if (slash && !strcmp(slash, "/bin") && slash != home)
        *slash = 0;
    return home;
}

/* Adds all of our own files that a build for MUSA contains. */
static void build_musa_hash_own(struct toolchain *t, struct sha256 *h)
{
    static const char *const trees[] = {"litetorch/musa", "litetorch/sim", "litetorch/proxy", "simt/include"};

    for (size_t i = 0; i < N_OF(trees); i++) {
        char *path = path_share(trees[i]);

        build_hash_tree(h, path);
        free(path);
    }
    sha256_adds(h, host_flags);
    sha256_adds(h, t->nvcc);
    build_audit_hash(h);
}

/* Finds mcc and its home, and adds to h all that decides what it compiles. ERR_ENV: there is none. */
static int build_musa_find(struct toolchain *t, const struct build_opts *o, struct sha256 *h, struct err *e)
{
    char *argv[] = {NULL, "--version", NULL}, *mcc;
    struct buf version;
    int rc;

    (void)o;
    if (build_musa_valid_arch(t->arch, e) < 0 || !(mcc = musa_compiler(e)))
        return -1;
    t->nvcc = realpath(mcc, NULL);
    free(mcc);
    if (!t->nvcc)
        return err_sys(e, "mcc");
    t->home = build_musa_home_of(t->nvcc);
    t->extra = path_share("simt/include");
    t->system = xstrdup("");
    argv[0] = t->nvcc;
    buf_init(&version, 4096);
    rc = build_ask(argv, &version, e);
    snprintf(t->tool, sizeof t->tool, "mcc %.50s %.8s ", version.p, t->arch);
    sha256_adds(h, version.p);
    build_musa_hash_own(t, h);
    buf_free(&version);
    return rc;
}

/* ---- the candidate's flags: what means the same to every compiler, and what mcc is known to take ---- */

/* True for a flag that mcc takes too. */
static bool build_musa_for_mcc(const char *s)
{
    static const char *const known[] = {"-O", "-O1", "-O2", "-O3", "-Od3", "-Ofast", "-ffast-math", "-fno-signed-zeros",
                                        "-fmusa-flush-denormals-to-zero", "-std=c++14", "-std=c++17", "-std=c++20",
                                        "--std=c++17", "--std=c++20"};

    for (size_t i = 0; i < N_OF(known); i++)
        if (!strcmp(s, known[i]))
            return true;
    return false;
}

/* Keeps the macros and the flags that mcc takes; drops the rest, and records that. kernels: the list is of device
 * code. */
static void build_musa_keep_list(struct build_request *r, const json_t *flags, bool kernels)
{
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        const char *s = json_string_value(v);

        if ((!strncmp(s, "-D", 2) || !strncmp(s, "-U", 2)) && s[2])
            build_quote(kernels ? &r->kernel_flags : &r->flags, s);
        else if (kernels && build_musa_for_mcc(s))
            build_quote(&r->kernel_flags, s);
        else if (strncmp(s, "--offload-arch", 14) && strcmp(s, "-fPIC"))
            json_array_append(r->dropped, (json_t *)v);
    }
}

/* The target's keep_flags: sorts the request's flags; linker's flags are dropped. */
static void build_musa_keep_flags(struct build_request *r, const json_t *cflags, const json_t *kernel_flags,
                                  const json_t *ldflags)
{
    (void)ldflags;
    build_musa_keep_list(r, cflags, false);
    build_musa_keep_list(r, kernel_flags, true);
}

/* ---- compiling ---- */

/* Appends the host compiler's command up to its inputs. */
static void build_musa_host_command(struct buf *s, const struct toolchain *t)
{
    build_quote(s, t->compiler);
    buf_adds(s, host_flags);
    buf_adds(s, build_torch_macros);
    build_word(s, " -I", t->lite, "");
    build_word(s, "-I", t->forward, "/lite");
    build_word(s, "-I", t->lite, "/../sim");
    build_word(s, "-I", t->forward, "/sim");
    build_word(s, "-I", t->extra, "");
}

/* Appends the commands that prepare a toolchain's folder: the precompiled header, litetorch's objects and the
 * proxies. */
static void build_musa_precompile(struct buf *s, const struct toolchain *t, int arg)
{
    static const char *const proxies[] = {"/../proxy/sim.cc", "/../proxy/musa.cc"};

    struct buf command;

    (void)arg;
    buf_init(&command, 1 << 14);
    build_musa_host_command(&command, t);
    build_precompile_header(s, t, command.p);
    buf_free(&command);
    build_musa_host_command(s, t);
    build_word(s, "-c ", t->lite, "/litetorch/module.cc");
    buf_adds(s, "-o module.o\n");
    build_musa_host_command(s, t);
    build_word(s, "-c ", t->lite, "/litetorch/tensor.cc");
    buf_adds(s, "-o tensor.o\n");
    for (size_t i = 0; i < N_OF(proxies); i++) {
        build_musa_host_command(s, t);
        build_word(s, "-I", t->lite, "/..");
        build_word(s, "-I", t->lite, "/../../src");
        build_word(s, "-c ", t->lite, proxies[i]);
        buf_addf(s, "-o proxy%zu.o\n", i);
    }
    buf_adds(s, "wait $p\nmv prefix.tmp prefix.h.gch");
}

static bool build_musa_mentions(const char *text, const char *a, const char *b)
{
    return strstr(text, a) || strstr(text, b);
}

/* mcc on the device's half, behind what the host's half made of kernel templates. */
static void build_musa_device_half(struct buf *s, const struct build_job *j, const char *templates)
{
    const char *text = j->r->cuda_cu.p;

    if (*templates)
        buf_addf(s, "nm -C part1.o | sed -nE "
                    "'s/^[0-9a-f]* [TW] (void ([A-Za-z_0-9]+::)*(%s)<.*)$/template __global__ \\1;/p' "
                    "| cat half.mu - >device.mu && ", templates);
    build_quote(s, j->t->nvcc);
    buf_addf(s, "-x musa -mtgpu --offload-arch=%s -O2 -std=c++17 --cuda-device-only ", j->t->arch);
    build_word(s, "-I", j->t->lite, "/../musa");
    buf_addf(s, "%s%s", build_musa_mentions(text, "half", "HALF") ? "-DLT_USE_HALF " : "",
             build_musa_mentions(text, "bf16", "bfloat16") ? "-DLT_USE_BFLOAT16 " : "");
    buf_addf(s, "%s-o device.mubin device.mu >device.log 2>&1", j->r->kernel_flags.p);
}

static void build_musa_main_part(struct buf *s, const struct build_job *j, const char *pre)
{
    build_musa_host_command(s, j->t);
    build_word(s, "-include ", pre, "/prefix.h");
    buf_addf(s, "%s -c main.cpp -o part0.o >part0.log 2>&1", j->r->flags.p);
}

/* Appends the command that links module.so. */
static void build_musa_add_link(struct buf *s, const struct build_job *j, const char *pre, const char *lib)
{
    build_quote(s, j->t->compiler);
    build_word(s, "-shared -o module.so part*.o ", pre, "/module.o");
    build_word(s, "", pre, "/tensor.o");
    build_word(s, "", pre, "/proxy0.o");
    build_word(s, "", pre, "/proxy1.o");
    build_word(s, "-L", lib, "");
    buf_adds(s, "-lfront -lsimt -Wl,-z,defs -Wl,-Bsymbolic -Wl,--build-id=none >link.log 2>&1 || failed $?\n");
}

/* host.cpp and the device's half. 1, or 0 with *ret_why where the source cannot be parted, or -1. */
static int build_musa_write_halves(const struct build_job *j, struct cuda_split *h, const char **ret_why, struct err *e)
{
    struct buf text;
    int rc;

    if (!cuda_split(j->r->cuda_cu.p, j->r->cuda_cu.n, "cuda_source", h, ret_why))
        return 0;
    buf_init(&text, 3 * BUILD_MAX_SOURCE);
    buf_adds(&text, "#include \"litetorch/split_musa.h\"\n");
    buf_add(&text, h->host.p, h->host.n);
    if (j->r->joined)
        buf_add(&text, j->r->main_cpp.p, j->r->main_cpp.n);
    rc = build_write(j->dir, "host.cpp", &text, e) < 0 ||
                 build_write(j->dir, h->templates.n ? "half.mu" : "device.mu", &h->device, e) < 0 ? -1 : 1;
    buf_free(&text);
    return rc;
}

/* Splits the device source and appends the commands that compile both halves. 0: it cannot be split; 1: done; -1 with
 * e. */
static int build_musa_add_halves(struct buf *s, const struct build_job *j, const char *pre, struct err *e)
{
    const char *why = "";
    struct cuda_split h;
    int rc;

    buf_init(&h.host, 2 * BUILD_MAX_SOURCE);
    buf_init(&h.device, 2 * BUILD_MAX_SOURCE);
    buf_init(&h.templates, 1 << 14);
    rc = build_musa_write_halves(j, &h, &why, e);
    if (rc > 0) {
        build_musa_host_command(s, j->t);
        build_word(s, "-include ", pre, "/prefix.h");
        buf_addf(s, "%s -c host.cpp -o part1.o >part1.log 2>&1 && ", j->r->kernel_macros.p);
        build_musa_device_half(s, j, h.templates.p);
        buf_adds(s, "; r1=$?; cat device.log >>part1.log 2>/dev/null\n");
    } else if (rc == 0) {
        buf_addf(s, "echo 'host and device code cannot be told apart: %s' | tee parted.log >part1.log; r1=1\n", why);
    }
    buf_free(&h.host);
    buf_free(&h.device);
    buf_free(&h.templates);
    return rc;
}

/* Lets the build see the folders that it needs. */
static void build_musa_add_folders(struct build_plan *plan, const struct toolchain *t, const char *pre, const char *lib)
{
    char *shims = path_share("litetorch");
    const char *const folders[] = {shims, t->extra, t->home, pre, lib};

    for (size_t i = 0; i < N_OF(folders); i++)
        build_plan_ro(plan, folders[i]);
    free(shims);
}

/* Writes into plan the script of one build for a MUSA card. */
static int build_musa_script(const struct build_job *j, struct build_plan *plan, struct err *e)
{
    char *lib = path_lib("libfront.so"), *slash = lib ? strrchr(lib, '/') : NULL, *pre = build_prefix(j->t, e);
    bool kernels = json_array_size(j->r->cuda) > 0;
    int rc = pre ? 0 : -1;

    if (rc == 0 && !slash)
        rc = err_set(e, ERR_ENV, "'libfront.so' is missing; run 'make setup', then 'make'");
    if (rc == 0) {
        *slash = 0;
        buf_adds(&plan->script, "r0=0; r1=0\n");
        if (!kernels || !j->r->joined) {
            build_musa_main_part(&plan->script, j, pre);
            buf_adds(&plan->script, " || r0=$?\n");
        }
        rc = kernels ? build_musa_add_halves(&plan->script, j, pre, e) : 0;
        buf_adds(&plan->script, "[ $r0 = 0 ] && [ $r1 = 0 ] || failed $r0 $r1\n");
        build_musa_add_link(&plan->script, j, pre, lib);
        build_musa_add_folders(plan, j->t, pre, lib);
        plan->memory_bytes = (size_t)4 << 30;
    }
    free(pre);
    free(lib);
    return rc < 0 ? -1 : 0;
}

/* The target's inspect: takes findings from logs and library. */
static void build_musa_inspect(const struct build_job *j, const char *log, struct build_result *ret)
{
    char *so = path_join(j->dir, "module.so"), *parted = path_join(j->dir, "parted.log");

    if (file_exists(parted))
        json_array_append_new(ret->findings, json_pack("{s:s,s:s}", "kind", "lacking", "name",
                                                       "a source whose host and device code are parted"));
    ret->split = ret->ok;
    build_audit_log(log, ret->findings);
    if (ret->ok)
        build_audit_library(so, ret->findings);
    free(parted);
    free(so);
}

static const struct build_target build_target_musa = {
    .name = "musa", .native = true, .find = build_musa_find, .keep_flags = build_musa_keep_flags,
    .add_kernels = build_add_kernels,
    .precompile = build_musa_precompile, .script = build_musa_script, .inspect = build_musa_inspect,
};

/* ---- the row ---- */

/* What the executor loads of ours. */
static int judge_musa_check_movement(struct err *e)
{
    const char *own = getenv("MUSACODER_EXEC_MUBIN");
    char *path = own && *own ? xstrdup(own) : path_lib("exec.mubin");
    int rc = path && file_exists(path) ? 0
             : err_set(e, ERR_ENV, "the executor's own kernels are missing ('exec.mubin'); run 'make' where mcc is, "
                                   "or 'make MCC=PATH'");

    free(path);
    return rc;
}

/* Fills *ret with the first card's name, id and architecture. ERR_ENV: no card, no driver, or exec.mubin is
 * missing. */
static int judge_musa_look(struct device_facts *ret, struct err *e)
{
    struct musa_card *cards = NULL;
    int n = 0;

    if (musa_cards(&cards, &n, e) < 0)
        return -1;
    if (!drv_load("musa", e) || judge_musa_check_movement(e) < 0) {
        free(cards);
        return -1;
    }
    ret->name = xstrdup(cards[0].name);
    ret->uuid = xasprintf("musa-%s", cards[0].name);
    ret->arch = xasprintf("mp_%d%d", cards[0].major % 10, cards[0].minor % 10);
    free(cards);
    return 0;
}

const struct judge_backend backend_musa = {
    .name = "musa", .target = &build_target_musa, BACKEND_ON_CPU, .slots = 4, .look = judge_musa_look,
};
