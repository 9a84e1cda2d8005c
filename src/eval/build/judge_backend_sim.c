/* judge_backend_sim.c - the backend 'sim': the emulator. Compiles by g++ the rewritten sources, against litetorch/
 * and simt/. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "eval/build/build_audit.h"
#include "eval/build/build_target.h"
#include "eval/build/judge_backend.h"
#include "proc/proc.h"
#include "translate/simt_rewrite.h"

static const char common_flags[] = "-x c++ -std=gnu++17 -g1 -fPIC -w -fno-strict-aliasing -ffp-contract=fast "
                                   "-fno-optimize-sibling-calls -fno-gnu-unique -ffunction-sections -fdata-sections "
                                   "-fmax-errors=20 -ftemplate-depth=200 -ftemplate-backtrace-limit=6 "
                                   "-fdiagnostics-color=never -fno-diagnostics-show-caret -fvisibility=default";
/* Three ways to compile: the host's half (bindings, rarely more), kernels with and without instrumentation. What g++
 * does before it instruments must leave accesses as they are written: no load leaves a loop (its guard may be inside),
 * and copies of a constant size stay calls. Locals that nothing set hold a pattern, so that a result shows it. */
enum mode { MODE_HOST, MODE_FAST, MODE_CHECK, N_MODES };
static const char *const mode_names[N_MODES] = {"host", "fast", "check"};
static const char *const mode_opts[N_MODES] = {"-O0", "-O2",
                                               "-O1 -fsanitize=thread,alignment "
                                               "-fno-tree-loop-im -fno-builtin-memcpy -fno-builtin-memmove "
                                               "-fno-builtin-memset -ftrivial-auto-var-init=pattern "
                                               "--param tsan-instrument-func-entry-exit=0 "
                                               "--param tsan-distinguish-volatile=1"};

/* A macro whose name our headers may ask for stays a flag, before them. Any other stands in the sources behind them: as
 * on a card, where it (-DN=16) changes no name in a header, and the precompiled prefix serves. */
static void build_sim_keep_macro(struct build_request *r, const char *s)
{
    const char *name = s + 2;
    size_t n = strcspn(name, "=");

    if (*name == '_' || strchr(name, '\n'))
        build_quote(&r->flags, s);
    else if (s[1] == 'U')
        buf_addf(&r->source_macros, "#undef %s\n", name);
    else
        buf_addf(&r->source_macros, "#define %.*s %s\n", (int)n, name, name[n] ? name + n + 1 : "1");
}

/* Macros and the language standard are the candidate's; optimisation, architectures, paths and plugins are ours: the
 * emulator's build has nothing that they could mean, so they are not even called dropped. */
static void build_sim_keep_list(struct build_request *r, const json_t *flags)
{
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        const char *s = json_string_value(v);
        if ((!strncmp(s, "-D", 2) || !strncmp(s, "-U", 2)) && s[2])
            build_sim_keep_macro(r, s);
        else if (!strcmp(s, "-std=c++20") || !strcmp(s, "-std=c++23") || !strcmp(s, "--std=c++20"))
            build_quote(&r->flags, s + (s[1] == '-'));
    }
}

/* The target's keep_flags: macros and standards stay; linker's flags are dropped. */
static void build_sim_keep_flags(struct build_request *r, const json_t *cflags, const json_t *cuda_flags,
                                 const json_t *ldflags)
{
    (void)ldflags;
    build_sim_keep_list(r, cflags);
    build_sim_keep_list(r, cuda_flags);
}

/* The compiler's own include folders without /usr/local: a CUDA toolkit installed there must not mix with simt/. */
static int build_sim_system_includes(const char *cxx, struct buf *out, struct err *e)
{
    char *argv[] = {(char *)cxx, "-E", "-v", "-x", "c++", "/dev/null", NULL}, *at, *line, *save;
    struct proc_spec s = {.argv = argv, .timeout_s = 20};
    struct proc_result r;

    if (proc_run(&s, &r, e) < 0)
        return -1;
    at = strstr(r.err.p, "#include <...>");
    for (line = at ? strtok_r(strchr(at, '\n'), "\n", &save) : NULL; line && *line == ' ';
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, " /usr/local/", 12))
            build_word(out, "-isystem", line + 1, "");
    if (out->n)
        buf_adds(out, "-nostdinc ");
    proc_result_free(&r);
    return 0;
}

/* The folder of libsimt.so; NULL without one. */
static char *build_sim_lib_dir(struct err *e)
{
    char *dir = path_lib_folder();

    if (!dir)
        err_set(e, ERR_ENV, "'libsimt.so' is missing; run 'make'");
    return dir;
}

/* Finds the emulator's libraries and headers, and adds to h all that decides what a build contains. */
static int build_sim_find(struct toolchain *t, const struct build_opts *o, struct sha256 *h, struct err *e)
{
    struct buf system;
    char *shims, *client, *proxy, *both;

    (void)o;
    if (!(t->libdir = build_sim_lib_dir(e)))
        return -1;
    buf_init(&system, 1 << 16);
    if (build_sim_system_includes(t->compiler, &system, e) < 0)
        return buf_free(&system), -1;
    t->system = buf_detach(&system);
    t->extra = path_share("simt/include");
    shims = path_share("litetorch/sim");
    sha256_adds(h, common_flags);
    for (int i = 0; i < N_MODES; i++)
        sha256_adds(h, mode_opts[i]);
    sha256_adds(h, t->system);
    sha256_adds(h, t->libdir);
    build_audit_hash(h);
    build_hash_tree(h, t->extra);
    build_hash_tree(h, shims);
    client = path_share("litetorch/front/front.h");
    proxy = path_share("litetorch/proxy/sim.cc");
    both = path_share("litetorch/proxy/both.h");
    build_hash_file(h, client);
    build_hash_file(h, proxy);
    build_hash_file(h, both);
    free(client);
    free(proxy);
    free(both);
    free(shims);
    return 0;
}

/* Appends the compiler's flags of a mode: host, checked or unchecked kernels. */
static void build_sim_mode_flags(struct buf *out, const struct toolchain *t, enum mode m)
{
    buf_addf(out, "%s %s %s ", common_flags, mode_opts[m], build_torch_macros);
    build_word(out, "-I", t->lite, "");
    build_word(out, "-I", t->forward, "/lite");
    build_word(out, "-I", t->lite, "/../sim");
    build_word(out, "-I", t->forward, "/sim");
    build_word(out, "-I", t->extra, "");
    buf_addf(out, "%s ", t->system);
}

static void build_sim_compiler_command(struct buf *s, const struct toolchain *t, enum mode m)
{
    build_quote(s, t->compiler);
    build_sim_mode_flags(s, t, m);
}

/* Has gold say what g++ would have it read, and writes that into two lists: what comes before a library's objects and
 * what comes behind. With them gold is called by itself: it looks into no folder and starts no other process, which are
 * half of a link. */
static void build_sim_list_inputs(struct buf *s, const struct toolchain *t)
{
    build_word(s, "{ ", t->compiler, " -fuse-ld=gold -shared -o listed.so module.o tensor.o proxy.o ");
    build_word(s, "-L", t->libdir, "");
    buf_adds(s, "-lfront -lsimt -Wl,-t 2>/dev/null || true; } | while read -r f; do case $f in\n"
                "module.o|*/module.o|tensor.o|*/tensor.o|proxy.o|*/proxy.o|*'('*) ;;\n"
                "*/crtend*|*/crtn.o) echo \"\\\"$f\\\"\" >>ends ;;\n"
                "*/crt*) echo \"\\\"$f\\\"\" >>first ;;\n"
                "*) echo \"\\\"$f\\\"\" >>rest ;;\nesac; done\n"
                "[ ! -f ends ] || cat ends >>rest\n"
                "[ ! -f rest ] || grep -e libsimt.so -e libm.so -e libc.so -e ld-linux rest >libraries\n"
                "rm -f listed.so ends\necho \"\\\"$(");
    build_word(s, "", t->compiler, " -print-libgcc-file-name)\\\"\" >>libraries\n");
}

/* The prefix header; the host's mode has module.o, tensor.o and proxy.o too, for the links of all. */
static void build_sim_precompile(struct buf *s, const struct toolchain *t, int m)
{
    struct buf command;

    buf_init(&command, 1 << 16);
    build_sim_compiler_command(&command, t, (enum mode)m);
    build_precompile_header(s, t, command.p);
    buf_adds(&command, "-O1 -g0 ");
    if (m == MODE_HOST) {
        build_word(s, command.p, t->lite, "/litetorch/module.cc -c -o module.o\n");
        build_word(s, command.p, t->lite, "/litetorch/tensor.cc -c -o tensor.o\n");
        build_word(&command, "-I", t->lite, "/..");
        build_word(s, command.p, t->lite, "/../proxy/sim.cc -c -o proxy.o\n");
        if (t->gold)
            build_sim_list_inputs(s, t);
    }
    buf_adds(s, "wait $p\nmv prefix.tmp prefix.h.gch");
    buf_free(&command);
}

static enum mode build_sim_kernels_mode(const struct build_opts *o)
{
    return o->no_check ? MODE_FAST : MODE_CHECK;
}

/* The prepared folders of host and kernel sources, owned. */
static int build_sim_prefixes(const struct toolchain *t, const struct build_opts *o, char *ret[2], struct err *e)
{
    const enum mode modes[2] = {MODE_HOST, build_sim_kernels_mode(o)};

    for (int i = 0; i < 2; i++)
        if (!(ret[i] = build_prefix_dir(t, mode_names[modes[i]], build_sim_precompile, modes[i], e))) {
            if (i)
                free(ret[0]);
            return -1;
        }
    return 0;
}

/* The target's prepare: makes the folders that builds of these options need. */
static int build_sim_prepare(const struct toolchain *t, const struct build_opts *o, struct err *e)
{
    char *dirs[2];

    if (build_sim_prefixes(t, o, dirs, e) < 0)
        return -1;
    free(dirs[0]);
    free(dirs[1]);
    return 0;
}

/* Appends the command that compiles one source to partN.o. */
static void build_sim_add_compile(struct buf *s, const struct toolchain *t, const struct build_request *r,
                                  const char *prefix, enum mode m, const char *source, int part)
{
    build_sim_compiler_command(s, t, m);
    build_word(s, "-include ", prefix, "/prefix.h");
    buf_addf(s, "%s -c %s -o part%d.o >part%d.log 2>&1", r->flags.p, source, part, part);
}

/* Both halves at once, each with its own log, then the link: one jail for all of it. Where they can be one unit, that
 * is tried first; torch compiles them apart, so only that decides what is an error. */
static void build_sim_write_compiles(struct buf *s, const struct toolchain *t, const struct build_request *r,
                                     char *const prefix[2], enum mode kernels)
{
    if (r->joined) {
        buf_adds(s, "if ! ");
        build_sim_add_compile(s, t, r, prefix[1], kernels, "joined.cu", 1);
        buf_adds(s, "; then rm -f part1.o\n");
    }
    for (int i = 0; i < 2; i++) {
        if (i == 1 && !json_array_size(r->cuda))
            break;
        build_sim_add_compile(s, t, r, prefix[i], i ? kernels : MODE_HOST, i ? "cuda.cu" : "main.cpp", i);
        buf_addf(s, " & p%d=$!\n", i);
    }
    buf_addf(s, "wait $p0; r0=$?; r1=0; [ -z \"$p1\" ] || { wait $p1; r1=$?; }\n"
                "[ $r0 = 0 ] && [ $r1 = 0 ] || failed $r0 $r1\n%s", r->joined ? "fi\n" : "");
}

#define SIM_LINK " -nostdlib -shared --as-needed --hash-style=gnu -z defs -Bsymbolic --build-id=none "

/* The library: what the host calls of the runtime is linked into it; kernels stay in it unused. */
static void build_sim_write_link(struct buf *s, const struct toolchain *t, const char *prefix)
{
    struct buf command;

    if (t->gold) {
        build_word(s, "ld.gold" SIM_LINK "--eh-frame-hdr -o module.so @", prefix, "/first part*.o ");
        build_word(s, "", prefix, "/module.o ");
        build_word(s, "", prefix, "/tensor.o ");
        build_word(s, "", prefix, "/proxy.o ");
        build_word(s, "@", prefix, "/rest >link.log 2>&1 || ");
    }

    buf_init(&command, 1 << 14);
    build_word(&command, "-shared -o module.so part*.o ", prefix, "/module.o");
    build_word(&command, "", prefix, "/tensor.o");
    build_word(&command, "", prefix, "/proxy.o");
    build_word(&command, "-L", t->libdir, "");
    buf_adds(&command, "-lfront -lsimt -Wl,-z,defs -Wl,-Bsymbolic -Wl,--build-id=none >link.log 2>&1");
    build_add_link(s, t, command.p);
    buf_adds(s, " || failed $?\n");
    buf_free(&command);
}

/* The image: kernels and what they reach, from the same objects without what runs when a library is opened. Hardly a
 * kernel needs the C++ library, whose 6,000 symbols are most of what a link costs: it is linked where one does. */
static void build_sim_write_image(struct buf *s, const struct toolchain *t, const char *prefix)
{
    static const char *const sections[] = {".preinit_array", ".init_array", ".fini_array", ".ctors", ".dtors", ".init",
                                           ".fini"};

    /* Kernels have a heap of their own (simt/runtime/heap.c). */
    static const char *const heap[][2] = {
        {"malloc", "malloc"}, {"free", "free"}, {"_Znwm", "new"}, {"_Znam", "new_array"}, {"_ZdlPv", "delete"},
        {"_ZdaPv", "delete_array"}, {"_ZdlPvm", "delete_sized"}, {"_ZdaPvm", "delete_array_sized"}};

    buf_adds(s, "mkdir image; for o in part*.o; do objcopy");
    for (size_t i = 0; i < sizeof heap / sizeof *heap; i++)
        buf_addf(s, " --redefine-sym %s=simt_heap_%s", heap[i][0], heap[i][1]);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        buf_addf(s, " -w -R '%s' -R '%s.*' -R '.rela%s' -R '.rela%s.*'", sections[i], sections[i], sections[i],
                 sections[i]);
    buf_adds(s, " $o image/$o || exit 12; done\nprintf '{ local: *; };' >image/map\n");
    /* Not by gold: what it leaves out of the image is still named there as undefined, which the audit reads. */
    if (t->gold)
        build_word(s, "ld.bfd" SIM_LINK "--gc-sections --version-script=image/map -soname device.so -o device.so "
                      "image/*.o @", prefix, "/libraries >image.log 2>&1 || {\n");
    buf_adds(s, "image() { ");
    build_quote(s, t->compiler);
    build_word(s, "-shared -nostartfiles -o device.so image/*.o -L", t->libdir, "");
    buf_adds(s, "-lsimt -lm \"$@\" -Wl,--gc-sections -Wl,--version-script=image/map -Wl,-Bsymbolic "
                "-Wl,--build-id=none -Wl,-soname,device.so >image.log 2>&1; }\n"
                "image -nodefaultlibs -lc -lgcc -Wl,-z,defs || image || failed $?\n");
    if (t->gold)
        buf_adds(s, "}\n");
}

/* Writes host and kernel sources as one file, where they must be compiled together. */
static int build_sim_write_joined(const struct build_job *j, struct err *e)
{
    struct buf joined;
    int rc;

    if (!j->r->joined)
        return 0;
    buf_init(&joined, 2 * BUILD_MAX_SOURCE);
    buf_add(&joined, j->r->cuda_cu.p, j->r->cuda_cu.n);
    buf_add(&joined, j->r->main_cpp.p, j->r->main_cpp.n);
    rc = build_write(j->dir, "joined.cu", &joined, e);
    buf_free(&joined);
    return rc;
}

/* Writes into plan the script of one build for the emulator. */
static int build_sim_script(const struct build_job *j, struct build_plan *plan, struct err *e)
{
    char *prefix[2], *shims;

    if (build_sim_write_joined(j, e) < 0 || build_sim_prefixes(j->t, j->o, prefix, e) < 0)
        return -1;
    build_sim_write_compiles(&plan->script, j->t, j->r, prefix, build_sim_kernels_mode(j->o));
    build_sim_write_link(&plan->script, j->t, prefix[0]);
    build_sim_write_image(&plan->script, j->t, prefix[0]);
    shims = path_share("litetorch");
    build_plan_ro(plan, shims); /* include/ and sim/ */
    build_plan_ro(plan, j->t->extra);
    build_plan_ro(plan, j->t->libdir);
    build_plan_ro(plan, prefix[0]);
    build_plan_ro(plan, prefix[1]);
    free(shims);
    free(prefix[0]);
    free(prefix[1]);
    return 0;
}

/* The target's inspect: takes findings from log, sources and library. */
static void build_sim_inspect(const struct build_job *j, const char *log, struct build_result *ret)
{
    char *so = path_join(j->dir, "module.so"), *image = path_join(j->dir, "device.so");

    build_audit_log(log, ret->findings);
    if (!build_audit_device_wide_calls(j->r->main_cpp.p))
        build_audit_relent(j->r->cuda_cu.p, ret->findings);
    if (ret->ok) {
        build_audit_library(so, ret->findings);
        build_audit_image(image, ret->findings);
    }
    free(image);
    free(so);
}

static const struct build_target build_target_sim = {
    .name = "sim", .find = build_sim_find, .keep_flags = build_sim_keep_flags, .add_kernels = simt_rewrite,
    .prepare = build_sim_prepare,
    .script = build_sim_script, .inspect = build_sim_inspect,
};

#define SIM_ROW .name = "sim", .target = &build_target_sim, .max_elements = 1 << 22, BACKEND_ON_CPU

/* For tests of timing without a GPU. */
static const struct judge_backend backend_sim_timed = {SIM_ROW, BACKEND_TIMED_BY_HOST};

const struct judge_backend backend_sim = {SIM_ROW, .test_variable = "MUSACODER_TEST_TIMED",
                                          .for_tests = &backend_sim_timed};
