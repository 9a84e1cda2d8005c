/* build_cuda.c - the compile stage's target 'cuda', against litetorch's headers, linked with our runtime in place of
 * libcudart (litetorch/proxy/cuda.cc). Three ways, the first that works:
 *   split  the source is parted (translate/cuda_split.h): g++ and a precompiled header make the host's half and the
 *          bindings, nvcc the device's half from kernels alone; litetorch/split.cc registers what nvcc would have
 *   lean   what cannot be parted: nvcc on the whole text behind the few standard headers that its own names ask for
 *          (LT_LEAN, litetorch/std.h); nvcc reads headers twice and cannot precompile. g++ makes the bindings beside it
 *   full   the same behind all headers: only this decides what is an error
 *
 * Measured, the smallest kernel, CPU seconds of one 2026 core: lean 1.7 (cudafe++ 0.6, cicc 0.5, g++ 0.45,
 * preprocessors 0.1); nvcc on that kernel without any header 0.6; split 0.45, of which cicc on cuda_runtime.h alone
 * 0.2. Rejected: NVRTC in place of nvcc for the device's half. A fresh process takes 340 ms (load 112, first compile
 * 229), more than nvcc does; a warm one 8 ms, but its headers are not nvcc's, and foreign text would share a process
 * with what is compiled after it. lld in place of ld: saves 30 ms, but is no part of a compiler's installation.
 * Reading order: build_cuda_script(), build_cuda_add_split(), then build_cuda_use_flags(), then
 * build_cuda_do_keep_flags() and build_cuda_find(). */
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "eval/build/build_audit.h"
#include "eval/build/build_target.h"
#include "translate/cuda_split.h"

#define LITE_MEMORY ((size_t)4 << 30) /* cub's headers alone make cicc take more than 1 GiB */
#define N_OF(a) (sizeof(a) / sizeof *(a))

static const char host_flags[] = "-std=c++17 -O1 -fPIC -w -DLT_GPU -fmax-errors=20 -ftemplate-depth=200 "
                                 "-ftemplate-backtrace-limit=6 -fdiagnostics-color=never -fno-diagnostics-show-caret ";
/* torch's own, and quiet; NVTX in CUB's headers would bring dlopen into every library. Deep templates end early;
 * ptxas says nothing unless asked. */
static const char nvcc_flags[] = "-x cu -DLT_GPU -DNVTX_DISABLE -DCCCL_DISABLE_NVTX --expt-relaxed-constexpr -cudart "
                                 "shared -w -allow-unsupported-compiler "
                                 "-Xcompiler -fPIC,-w,-fmax-errors=20 -ftemplate-depth 200 "
                                 "-ftemplate-backtrace-limit 6 "
                                 "-Xcudafe --error_limit=20,--no_warnings ";
/* ---- where the toolkit is ---- */

/* The real path of an executable file. Owned; NULL: it is none. */
static char *build_cuda_real_file(const char *path)
{
    return path && *path && access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
}

/* The real path of home/bin/nvcc, owned; NULL: it is not there. */
static char *build_cuda_nvcc_under(const char *home)
{
    char *bin = home && *home ? path_join(home, "bin/nvcc") : NULL, *found = build_cuda_real_file(bin);

    free(bin);
    return found;
}

/* The real path of the first nvcc in PATH. Owned; NULL: none. */
static char *build_cuda_nvcc_in_path(void)
{
    char *copy = xstrdup(getenv("PATH") ? getenv("PATH") : "/usr/bin"), *save = NULL, *found = NULL;

    for (char *d = strtok_r(copy, ":", &save); d && !found; d = strtok_r(NULL, ":", &save)) {
        char *p = path_join(d, "nvcc");
        found = build_cuda_real_file(p);
        free(p);
    }
    free(copy);
    return found;
}

/* The folder of Python packages that runner/ uses, owned; NULL without Python. */
static char *build_cuda_site_packages(void)
{
    char *python = path_python(NULL), *slash, pattern[PATH_MAX], *found = NULL;
    glob_t g;

    if (!python)
        return NULL;
    for (int i = 0; i < 2 && (slash = strrchr(python, '/')); i++)
        *slash = 0;
    snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages", python);
    free(python);
    if (glob(pattern, 0, NULL, &g) == 0) {
        if (g.gl_pathc)
            found = xstrdup(g.gl_pathv[0]);
        globfree(&g);
    }
    return found;
}

/* As the nvidia-cuda-nvcc packages lay it out. */
static char *build_cuda_nvcc_in_packages(void)
{
    char *site = build_cuda_site_packages(), pattern[PATH_MAX], *found = NULL;
    glob_t g;

    if (!site)
        return NULL;
    snprintf(pattern, sizeof pattern, "%s/nvidia/cu*/bin/nvcc", site);
    free(site);
    if (glob(pattern, 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc && !found; i++)
            found = build_cuda_real_file(g.gl_pathv[i]);
        globfree(&g);
    }
    return found;
}

char *build_nvcc(struct err *e)
{
    char *p = build_cuda_real_file(getenv("MUSACODER_NVCC"));

    if (!p)
        p = build_cuda_nvcc_under(getenv("CUDA_HOME"));
    if (!p)
        p = build_cuda_nvcc_under("/usr/local/cuda");
    if (!p)
        p = build_cuda_nvcc_in_path();
    if (!p)
        p = build_cuda_nvcc_in_packages();
    if (!p)
        err_set(e, ERR_ENV, "no nvcc: neither $MUSACODER_NVCC, $CUDA_HOME, /usr/local/cuda, PATH nor Python's nvidia "
                            "packages have one; install the CUDA toolkit");
    return p;
}

/* "... release 13.0, V13.0.88 ..." */
static int build_cuda_nvcc_version(struct toolchain *t, struct buf *out, struct err *e)
{
    char *argv[] = {t->nvcc, "--version", NULL}, *v;

    if (build_ask(argv, out, e) < 0)
        return -1;
    v = strstr(out->p, ", V");
    snprintf(t->tool, sizeof t->tool, "nvcc %.*s %s ", v ? (int)strcspn(v + 3, " ,\n") : 1, v ? v + 3 : "?", t->arch);
    return 0;
}

/* 0 for names like sm_90 or sm_90a, else ERR_INPUT. */
static int build_cuda_valid_arch(const char *arch, struct err *e)
{
    size_t n = strlen(arch);

    if (!strncmp(arch, "sm_", 3) && n >= 5 && n <= 8 && strspn(arch + 3, "0123456789") >= 2 &&
        strspn(arch + 3, "0123456789af") == n - 3)
        return 0;
    return err_set(e, ERR_INPUT, "'%s' is not an architecture; say sm_90 or the like", arch);
}

/* What a library is linked with. */
static void build_cuda_hash_proxy(struct sha256 *h)
{
    static const char *const files[] = {"litetorch/front/front.h", "litetorch/proxy/both.h",
                                        "litetorch/proxy/cuda.cc", "litetorch/proxy/cuda_lacking.c", "src/exec/wire.h"};

    for (size_t i = 0; i < N_OF(files); i++) {
        char *path = path_share(files[i]);

        build_hash_file(h, path);
        free(path);
    }
}

/* Finds nvcc and its home, and adds to h all that decides what it compiles. ERR_ENV: there is none. */
static int build_cuda_find(struct toolchain *t, const struct build_opts *o, struct sha256 *h, struct err *e)
{
    struct buf version;
    char *slash;
    int rc;

    (void)o;
    if (build_cuda_valid_arch(t->arch, e) < 0 || !(t->nvcc = build_nvcc(e)))
        return -1;
    t->home = xstrdup(t->nvcc);
    for (int i = 0; i < 2 && (slash = strrchr(t->home, '/')); i++)
        *slash = 0;
    t->system = xstrdup("");
    buf_init(&version, 4096);
    rc = build_cuda_nvcc_version(t, &version, e);
    sha256_adds(h, t->nvcc);
    sha256_adds(h, version.p);
    sha256_adds(h, host_flags);
    sha256_adds(h, nvcc_flags);
    sha256_adds(h, "split/6");
    build_nvrtc_find(t, h);
    build_cuda_hash_proxy(h);
    build_audit_hash(h);
    buf_free(&version);
    return rc;
}

/* ---- the candidate's flags ---- */

static bool build_cuda_is_number(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s) && strlen(s) < 6;
}

static bool build_cuda_is_level(const char *s) /* -O, -O0 .. -O3 */
{
    return s[0] == '-' && s[1] == 'O' && (!s[2] || (s[2] >= '0' && s[2] <= '3' && !s[3]));
}

static bool build_cuda_is_standard(const char *s)
{
    s += text_begins(s, "--std=") ? 6 : text_begins(s, "-std=") ? 5 : 0;
    return (text_begins(s, "c++") && build_cuda_is_number(s + 3)) ||
           (text_begins(s, "gnu++") && build_cuda_is_number(s + 5));
}

static bool build_cuda_is_macro(const char *s)
{
    return (text_begins(s, "-D") || text_begins(s, "-U")) && s[2];
}

/* What ptxas may be told: -v, -O3, -dlcm=ca, --warn-on-spills ... */
static bool build_cuda_ptxas_flag(const char *s)
{
    static const char *const known[] = {"-v", "--verbose", "-warn-spills", "--warn-on-spills", "-warn-lmem-usage",
                                        "--warn-on-local-memory-usage", "-warn-double-usage"};
    static const char *const with_value[] = {"-dlcm=", "--def-load-cache=", "-dscm=", "--def-store-cache=",
                                             "-allow-expensive-optimizations=", "--allow-expensive-optimizations=",
                                             "--maxrregcount=", "-maxrregcount=", "--register-usage-level=",
                                             "--opt-level="};

    if (strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=_") != strlen(s))
        return false;
    if (build_cuda_is_level(s) || text_is_among(s, known, N_OF(known)))
        return true;
    for (size_t i = 0; i < N_OF(with_value); i++)
        if (text_begins(s, with_value[i]))
            return true;
    return false;
}

/* Notes an option that is not passed on, for the record. */
static void build_cuda_drop(struct build_request *r, const char *option, const char *value)
{
    struct buf b;

    buf_init(&b, 300);
    buf_addf(&b, "%s%s%s", option, *option && *value ? " " : "", value);
    json_array_append_new(r->dropped, json_utf8(b.p, b.n));
    buf_free(&b);
}

/* A macro for nvcc, and the same as a line for g++, whose precompiled header a flag would make useless. */
static void build_cuda_keep_macro(struct build_request *r, char kind, const char *text)
{
    size_t n = strcspn(text, "=");

    buf_addf(&r->kernel_flags, "-%c", kind);
    build_quote(&r->kernel_flags, text);
    if (kind == 'U')
        buf_addf(&r->kernel_macros, "#undef %s\n", text);
    else
        buf_addf(&r->kernel_macros, "#define %.*s %s\n", (int)n, text, text[n] ? text + n + 1 : "1");
}

/* A value list for ptxas or for g++ behind nvcc: each part passes alone. */
static void build_cuda_keep_parts(struct build_request *r, const char *option, const char *value)
{
    char *copy = xstrdup(value), *save = NULL;
    bool ptxas = !strcmp(option, "-Xptxas");

    for (char *s = strtok_r(copy, ",", &save); s; s = strtok_r(NULL, ",", &save))
        if (ptxas ? build_cuda_ptxas_flag(s) : build_cuda_is_level(s) || build_cuda_is_macro(s)) {
            buf_addf(&r->kernel_flags, "%s ", option);
            build_quote(&r->kernel_flags, s);
        } else if (strcmp(s, "-fPIC")) {
            build_cuda_drop(r, option, s);
        }
    free(copy);
}

/* Architectures are the harness's, but "sm_90a" on an sm_90 device says that its special instructions are wanted. */
static void build_cuda_note_arch(struct build_request *r, const char *s)
{
    for (; (s = strpbrk(s, "_")); s++) {
        size_t n = strspn(s + 1, "0123456789");
        if (n && (s[1 + n] == 'a' || s[1 + n] == 'f'))
            r->arch_letter = s[1 + n];
    }
}

/* Options of nvcc whose value may follow as the next word. */
static const char *build_cuda_takes_value(const char *s)
{
    static const struct { const char *spelling, *option; } rows[] = {
        {"-Xptxas", "-Xptxas"}, {"--ptxas-options", "-Xptxas"}, {"-Xcompiler", "-Xcompiler"},
        {"--compiler-options", "-Xcompiler"}, {"-gencode", "-gencode"}, {"--generate-code", "-gencode"},
        {"-arch", "-gencode"}, {"--gpu-architecture", "-gencode"}, {"-code", "-gencode"}, {"--gpu-code", "-gencode"},
        {"-maxrregcount", "-maxrregcount"}, {"--maxrregcount", "-maxrregcount"}, {"-std", "-std"}, {"--std", "-std"},
        {"-Xcudafe", "-Xcudafe"}, {"-diag-suppress", "quiet"}, {"--diag-suppress", "quiet"}, {"-t", "quiet"},
        {"--threads", "quiet"}, {"-I", "-I"}, {"-L", "-L"}, {"-l", "-l"}, {"-ccbin", "-ccbin"},
        {"-include", "-include"},
        {"-D", "-D"}, {"-U", "-U"}};

    for (size_t i = 0; i < N_OF(rows); i++) {
        size_t n = strlen(rows[i].spelling);
        if (!strncmp(s, rows[i].spelling, n) && (!s[n] || s[n] == '='))
            return rows[i].option;
    }
    return NULL;
}

/* Keeps an nvcc option with a value where it is harmless; drops it, and records that, otherwise. */
static void build_cuda_keep_value(struct build_request *r, const char *option, const char *value)
{
    if (!strcmp(option, "-Xptxas") || !strcmp(option, "-Xcompiler")) {
        build_cuda_keep_parts(r, option, value);
    } else if (!strcmp(option, "-gencode")) {
        build_cuda_note_arch(r, value);
    } else if (!strcmp(option, "-maxrregcount") && build_cuda_is_number(value)) {
        buf_addf(&r->kernel_flags, "-maxrregcount=%s ", value);
    } else if (!strcmp(option, "-std") && build_cuda_is_standard(value)) {
        buf_addf(&r->kernel_flags, "-std=%s ", value);
        r->kernel_std |= !!strcmp(value, "c++17");
    } else if ((!strcmp(option, "-D") || !strcmp(option, "-U")) && *value) {
        build_cuda_keep_macro(r, option[1], value);
    } else if (strcmp(option, "quiet")) {
        build_cuda_drop(r, option, value);
    }
}

/* Keeps an nvcc option without a value where it is harmless; drops it, and records that, otherwise. */
static void build_cuda_keep_word(struct build_request *r, const char *s)
{
    static const char *const plain[] = {
        "--use_fast_math", "-use_fast_math", "-lineinfo", "--generate-line-info", "--expt-relaxed-constexpr",
        "-expt-relaxed-constexpr", "--expt-extended-lambda", "-expt-extended-lambda", "--extended-lambda",
        "-extended-lambda", "-restrict", "--restrict"};
    static const char *const math[] = {"-ftz=", "--ftz=", "-prec-div=", "--prec-div=", "-prec-sqrt=", "--prec-sqrt=",
                                       "-fmad=", "--fmad="};
    static const char *const harmless[] = {"-w", "-v", "--verbose", "-res-usage", "--resource-usage", "-g", "-m64",
                                           "-Wno-deprecated-gpu-targets", "--disable-warnings", "-shared", "-fPIC"};

    if (build_cuda_is_macro(s)) {
        build_cuda_keep_macro(r, s[1], s + 2);
        return;
    }
    if (build_cuda_is_level(s) || text_is_among(s, plain, N_OF(plain))) {
        build_quote(&r->kernel_flags, s);
        return;
    }
    for (size_t i = 0; i < N_OF(math); i++)
        if (text_begins(s, math[i]) &&
            (!strcmp(s + strlen(math[i]), "true") || !strcmp(s + strlen(math[i]), "false"))) {
            build_quote(&r->kernel_flags, s);
            return;
        }
    if (!text_is_among(s, harmless, N_OF(harmless)))
        build_cuda_drop(r, "", s);
}

/* torch writes flags into a ninja file, so one string may hold several words, and an option's value may be the next
 * string; a macro keeps its spaces. */
static void build_cuda_keep_flags(struct build_request *r, const json_t *flags)
{
    const char *pending = NULL, *option, *equals;
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        char *copy = xstrdup(json_string_value(v)), *save = NULL;
        char *s = build_cuda_is_macro(copy) ? copy : strtok_r(copy, " \t\n", &save);
        for (; s; s = s == copy && build_cuda_is_macro(copy) ? NULL : strtok_r(NULL, " \t\n", &save)) {
            if (pending) {
                build_cuda_keep_value(r, pending, s);
                pending = NULL;
            } else if ((option = build_cuda_takes_value(s))) {
                equals = strchr(s, '=');
                if (equals)
                    build_cuda_keep_value(r, option, equals + 1);
                else
                    pending = option;
            } else {
                build_cuda_keep_word(r, s);
            }
        }
        free(copy);
    }
    if (pending)
        build_cuda_drop(r, pending, "");
}

/* Keeps macros and the language standard of the host compiler's flags; drops the rest, and records that. */
static void build_cuda_keep_host_flags(struct build_request *r, const json_t *flags)
{
    static const char *const harmless[] = {"-fPIC", "-w", "-Wall", "-Wextra", "-g"};
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        const char *s = json_string_value(v);
        if (build_cuda_is_level(s)) /* bindings are compiled with our own level, that of the precompiled header */
            continue;
        if (build_cuda_is_macro(s) ||
            ((text_begins(s, "-std=") || text_begins(s, "--std=")) && build_cuda_is_standard(s)))
            build_quote(&r->flags, s);
        else if (*s && !text_is_among(s, harmless, N_OF(harmless)))
            build_cuda_drop(r, "", s);
    }
}

/* The target's keep_flags: sorts the request's flags; linker's flags are all dropped. */
static void build_cuda_do_keep_flags(struct build_request *r, const json_t *cflags, const json_t *cuda_flags,
                                     const json_t *ldflags)
{
    const json_t *v;
    size_t i;

    build_cuda_keep_host_flags(r, cflags);
    build_cuda_keep_flags(r, cuda_flags);
    json_array_foreach((json_t *)ldflags, i, v)
        if (*json_string_value(v))
            build_cuda_drop(r, "", json_string_value(v));
}

/* ---- which standard headers the text asks for ---- */

/* Names behind std:: that the base set of litetorch/std.h declares. */
static const char *const base_names[] = {
    "vector", "string", "optional", "nullopt", "tuple", "make_tuple", "get", "tie", "array", "pair", "make_pair",
    "move", "forward", "swap", "min", "max", "numeric_limits", "initializer_list", "runtime_error", "invalid_argument",
    "logic_error", "out_of_range", "exception", "to_string", "size_t", "ptrdiff_t", "int8_t", "int16_t", "int32_t",
    "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "sqrt", "exp", "log", "log2", "log1p", "expm1", "pow",
    "abs", "fabs", "floor", "ceil", "round", "tanh", "sin", "cos", "tan", "erf", "fmod", "isnan", "isinf", "isfinite",
    "fmax", "fmin", "is_same", "is_same_v", "is_floating_point", "is_integral", "enable_if", "enable_if_t",
    "conditional", "conditional_t", "decay_t", "remove_const_t", "true_type", "false_type", "integral_constant",
    "is_floating_point_v", "is_integral_v", "string_view", "memcpy", "memset", "printf", "fprintf", "snprintf", "stoi",
    "getenv", "equal", "copy", "fill", "fill_n", "swap", "declval", "index_sequence", "make_index_sequence",
    "bad_alloc", "nullptr_t", "byte", "begin", "end", "distance", "next", "advance", "cbrt", "rsqrt", "hypot",
    "llround", "lround", "trunc", "abort", "exit", "is_unsigned", "is_signed", "make_unsigned_t", "underlying_type_t",
    "void_t", "integer_sequence", "get_if", "strlen", "strcmp", "INFINITY", "infinity", "signbit", "log10", "exp2",
    "atan", "atan2", "asin", "acos", "sinh", "cosh", "lgamma",
    "tgamma", "erfc", "nan", "isnormal", "remainder", "fma", "malloc", "free", "rand", "srand", "in_place"};

struct use {
    const char *name, *needs; /* needs: what follows LT_USE_ */
};
static const struct use std_uses[] = {
    {"cout", "STREAM"}, {"cerr", "STREAM"}, {"endl", "STREAM"}, {"ostream", "STREAM"}, {"stringstream", "STREAM"},
    {"ostringstream", "STREAM"}, {"setprecision", "STREAM"}, {"sort", "ALGORITHM"}, {"accumulate", "ALGORITHM"},
    {"clamp", "ALGORITHM"}, {"iota", "ALGORITHM"}, {"max_element", "ALGORITHM"}, {"min_element", "ALGORITHM"},
    {"transform", "ALGORITHM"}, {"reverse", "ALGORITHM"}, {"find", "ALGORITHM"}, {"any_of", "ALGORITHM"},
    {"all_of", "ALGORITHM"}, {"multiplies", "FUNCTIONAL"}, {"plus", "FUNCTIONAL"}, {"function", "FUNCTIONAL"},
    {"bind", "FUNCTIONAL"}, {"hash", "FUNCTIONAL"}, {"map", "CONTAINERS"}, {"unordered_map", "CONTAINERS"},
    {"set", "CONTAINERS"}, {"unordered_set", "CONTAINERS"}, {"deque", "CONTAINERS"}, {"list", "CONTAINERS"},
    {"mutex", "MUTEX"}, {"lock_guard", "MUTEX"}, {"unique_lock", "MUTEX"}, {"atomic", "MUTEX"}, {"once_flag", "MUTEX"},
    {"call_once", "MUTEX"}, {"chrono", "MUTEX"}, {"shared_ptr", "MEMORY"}, {"unique_ptr", "MEMORY"},
    {"make_shared", "MEMORY"}, {"make_unique", "MEMORY"}, {"complex", "COMPLEX"}};
/* Names anywhere in the text. */
static const struct use text_uses[] = {
    {"half", "HALF"}, {"Half", "HALF"}, {"HALF", "HALF"}, {"kFloat16", "HALF"}, {"bfloat16", "BFLOAT16"},
    {"BFloat16", "BFLOAT16"}, {"BFLOAT16", "BFLOAT16"}, {"bf16", "BFLOAT16"}, {"complex", "COMPLEX"},
    {"Complex", "COMPLEX"}, {"COMPLEX", "COMPLEX"}, {"from_blob", "FUNCTIONAL"}, {"PYBIND11", "MODULE"},
    {"pybind", "MODULE"}, {"py::", "MODULE"}};

/* Defines LT_USE_WHAT once, so that the header includes that part. */
static void build_cuda_use(struct buf *out, const char *what)
{
    char flag[48];

    snprintf(flag, sizeof flag, "-DLT_USE_%s ", what);
    if (!strstr(out->p, flag))
        buf_adds(out, flag);
}

/* Adds what std::NAME needs; false if we do not know. */
static bool build_cuda_use_std(struct buf *out, const char *name, size_t n)
{
    for (size_t i = 0; i < N_OF(base_names); i++)
        if (strlen(base_names[i]) == n && !memcmp(base_names[i], name, n))
            return true;
    for (size_t i = 0; i < N_OF(std_uses); i++)
        if (strlen(std_uses[i].name) == n && !memcmp(std_uses[i].name, name, n))
            return build_cuda_use(out, std_uses[i].needs), true;
    return false;
}

/* Flags of the lean build, or false: build with all headers at once. */
static bool build_cuda_use_flags(const char *text, struct buf *out)
{
    buf_adds(out, "-DLT_LEAN ");
    if (strstr(text, "using namespace std") || strstr(text, "std ::"))
        return false;
    for (const char *s = text; (s = strstr(s, "std::")); s += 5) {
        size_t n = strspn(s + 5, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        if (!build_cuda_use_std(out, s + 5, n))
            return false;
    }
    for (size_t i = 0; i < N_OF(text_uses); i++)
        if (strstr(text, text_uses[i].name))
            build_cuda_use(out, text_uses[i].needs);
    return true;
}

/* ---- compiling ---- */

/* Appends the host compiler's command up to its inputs. */
static void build_cuda_host_command(struct buf *s, const struct toolchain *t)
{
    build_quote(s, t->compiler);
    buf_addf(s, "-x c++ %s", host_flags);
    build_word(s, "-I", t->lite, "");
    build_word(s, "-I", t->forward, "/lite");
    build_word(s, "-I", t->home, "/include");
}

/* Appends the commands that prepare a toolchain's folder: the precompiled header and litetorch's objects. */
static void build_cuda_precompile(struct buf *s, const struct toolchain *t, int arg)
{
    struct buf command;

    (void)arg;
    buf_init(&command, 1 << 14);
    build_cuda_host_command(&command, t);
    buf_adds(s, "printf '{ global: lt_module_open; local: *; };\\n' >exports.map\n");
    build_precompile_header(s, t, command.p);
    buf_free(&command);
    build_cuda_host_command(s, t);
    build_word(s, "-O2 -c ", t->lite, "/litetorch/module.cc");
    buf_adds(s, "-o module.o\n");
    build_cuda_host_command(s, t);
    build_word(s, "-O2 -c ", t->lite, "/litetorch/tensor.cc");
    buf_adds(s, "-o tensor.o\n");
    /* the proxies are weak: a candidate may define one of these names */
    build_cuda_host_command(s, t);
    build_word(s, "-O2 -c ", t->lite, "/litetorch/split.cc");
    buf_adds(s, "-o split.o\n");
    build_cuda_host_command(s, t);
    build_word(s, "-O2 -I", t->lite, "/..");
    build_word(s, "-I", t->lite, "/../../src");
    build_word(s, "-c ", t->lite, "/../proxy/cuda.cc");
    buf_adds(s, "-o proxy.o\n");
    build_quote(s, t->compiler);
    build_word(s, "-x c -std=c11 -O2 -fPIC -I", t->lite, "/..");
    build_word(s, "-c ", t->lite, "/../proxy/cuda_lacking.c");
    buf_adds(s, "-o lacking.o\nobjcopy --weaken proxy.o; objcopy --weaken lacking.o\nwait $p\n"
                "mv prefix.tmp prefix.h.gch");
}

/* cuLaunchKernel, CUdeviceptr, ...: names of cuda.h, which torch includes and hardly anyone uses. */
static bool build_cuda_names_driver(const char *text)
{
    for (const char *s = text; (s = strpbrk(s, "cC")); s++)
        if ((s[0] == 'c' && s[1] == 'u' && isupper((unsigned char)s[2])) ||
            (s[0] == 'C' && s[1] == 'U' && islower((unsigned char)s[2])))
            return true;
    return strstr(text, "CUDA_SUCCESS") || strstr(text, "CUDA_VERSION");
}

/* Appends nvcc's command up to its inputs. */
static void build_cuda_nvcc_command(struct buf *s, const struct build_job *j)
{
    const char *arch = j->t->arch + 3; /* behind "sm_" */
    char letter[2] = {isdigit((unsigned char)arch[strlen(arch) - 1]) ? j->r->arch_letter : 0, 0};

    build_quote(s, j->t->nvcc);
    build_word(s, "-ccbin ", j->t->compiler, "");
    buf_addf(s, "%s %s ", nvcc_flags, build_torch_macros);
    buf_addf(s, "-gencode=arch=compute_%s%s,code=sm_%s%s ", arch, letter, arch, letter);
    build_word(s, "-I", j->t->lite, "");
    build_word(s, "-I", j->t->forward, "/lite");
    if (!strstr(j->r->kernel_flags.p, "-std="))
        buf_adds(s, "-std=c++17 ");
}

/* True for sources of load_inline, which torch itself gives its headers. */
static bool build_cuda_implicit_headers(const struct build_job *j)
{
    return !j->r->bare && !strcmp(json_str(j->r->json, "kind", ""), "load_inline");
}

/* An executor wants the device's code by itself: nvcc leaves what it makes of it in the folder kept. */
static void build_cuda_whole_command(struct buf *s, const struct build_job *j, bool driver)
{
    build_cuda_nvcc_command(s, j);
    buf_adds(s, "-keep -keep-dir kept ");
    if (build_cuda_implicit_headers(j))
        buf_addf(s, "-include torch/types.h %s", driver ? "-include cuda.h " : "");
}

/* The whole source by nvcc. A source that did not build in halves is most likely wrong: then at once behind all
 * headers. */
static void build_cuda_add_kernel_part(struct buf *s, const struct build_job *j, bool was_split)
{
    struct buf lean;

    buf_init(&lean, 4096);
    if (!was_split && build_cuda_use_flags(j->r->cuda_cu.p, &lean)) {
        build_cuda_whole_command(s, j, build_cuda_names_driver(j->r->cuda_cu.p));
        buf_addf(s, "%s%s-c cuda.cu -o part1.o >part1.log 2>&1 || ", lean.p, j->r->kernel_flags.p);
    }
    build_cuda_whole_command(s, j, true);
    buf_addf(s, "%s-c cuda.cu -o part1.o >part1.log 2>&1", j->r->kernel_flags.p);
    buf_free(&lean);
}

/* What the host calls of the runtime is linked into the library. log: where the linker's words go. */
static void build_cuda_add_link(struct buf *s, const struct build_job *j, const char *prefix, const char *objects,
                                const char *log)
{
    char *lib = path_lib("libfront.so"), *slash = lib ? strrchr(lib, '/') : NULL;
    struct buf words;

    if (slash)
        *slash = 0;
    buf_init(&words, 1 << 14);
    buf_addf(&words, "-shared -o module.so %s ", objects);
    build_word(&words, "", prefix, "/module.o");
    build_word(&words, "", prefix, "/tensor.o");
    build_word(&words, "", prefix, "/proxy.o");
    build_word(&words, "", prefix, "/lacking.o");
    build_word(&words, "-L", lib ? lib : ".", "");
    build_word(&words, "-lfront -Wl,-z,defs,-Bsymbolic,--build-id=none -Xlinker --version-script=", prefix,
               "/exports.map");
    buf_addf(&words, ">%s 2>&1", log);
    build_add_link(s, j->t, words.p);
    buf_free(&words);
    free(lib);
}

/* ---- host and device apart ---- */

/* Kernels by the names that the device compiler gave them, and their code: what litetorch/split.cc registers. A kernel
 * that the host's half does not spell alike is an undefined symbol, and nvcc does all. CUB's own are nobody's here. */
static const char make_rows[] =
    "{ printf '.section .nv_fatbin,\"a\"\\n.balign 8\\n.globl lt_split_fatbin\\nlt_split_fatbin: .incbin "
    "\"device.fatbin\"\\n"
    ".section .data.rel.ro,\"aw\"\\n.balign 8\\n.globl lt_split_rows\\nlt_split_rows:\\n'\n"
    "sed -nE '/_ZN(3cub|6thrust)/d;s/^(\\.(visible|weak) )?\\.entry ([A-Za-z0-9_$]+).*/.pushsection .rodata\\n1: "
    ".asciz \"\\3\"\\n"
    ".popsection\\n.quad \\3, 1b/p' device.ptx\n"
    "printf '.quad 0, 0\\n.section .note.GNU-stack\\n'; } >rows.s";

/* Appends the command that compiles the host's half of the kernels' source. */
static void build_cuda_host_half(struct buf *s, const struct build_job *j, const char *prefix)
{
    build_cuda_host_command(s, j->t);
    build_word(s, "-include ", prefix, "/prefix.h");
    buf_adds(s, "-c host.cpp -o part1.o >split0.log 2>&1");
}

/* What the host's half made of kernel templates is what the device's must instantiate. */
static void build_cuda_device_half(struct buf *s, const struct build_job *j, const struct cuda_split *h)
{
    const char *text = j->r->cuda_cu.p, *templates = h->templates.p;
    char uses[64];

    if (*templates)
        buf_addf(s, "nm -C part1.o | sed -nE 's/^[0-9a-f]* [TW] (void ([A-Za-z_0-9]+::)*(%s)<.*)$/template __global__ "
                    "\\1;/p' "
                    "| cat half.cu - >device.cu && ", templates);
    snprintf(uses, sizeof uses, "%s%s", strstr(text, "half") || strstr(text, "HALF") ? "-DLT_USE_HALF " : "",
             strstr(text, "bf16") || strstr(text, "bfloat16") ? "-DLT_USE_BFLOAT16 " : "");
    buf_adds(s, "{ ");
    build_nvrtc_add(s, j, h->device.p, uses);
    build_cuda_nvcc_command(s, j);
    buf_addf(s, "-DLT_LEAN %s%s%s-include litetorch/split_device.h -fatbin -keep -keep-dir . device.cu -o "
                "device.fatbin >split1.log 2>&1; }",
             uses, build_cuda_names_driver(text) ? "-include cuda.h " : "", j->r->kernel_flags.p);
}

/* Writes host.cpp and device.cu; half.cu if the templates are still to come behind it. 1 if they are there, 0 if the
 * source cannot be parted, -1. */
static int build_cuda_write_halves(const struct build_job *j, struct cuda_split *h, struct err *e)
{
    struct buf text;
    const char *why;
    int rc;

    if (j->o->whole || j->r->kernel_std || !build_cuda_implicit_headers(j) ||
        !cuda_split(j->r->cuda_cu.p, j->r->cuda_cu.n, "cuda_source", h, &why))
        return 0;
    buf_init(&text, 3 * BUILD_MAX_SOURCE);
    buf_addf(&text, "#include \"litetorch/split.h\"\n%s%s",
             build_cuda_names_driver(j->r->cuda_cu.p) ? "#include <cuda.h>\n" : "", j->r->kernel_macros.p);
    buf_add(&text, h->host.p, h->host.n);
    if (j->r->joined)
        buf_add(&text, j->r->main_cpp.p, j->r->main_cpp.n);
    rc = text.cut ? 0 : build_write(j->dir, "host.cpp", &text, e) < 0 ||
        build_write(j->dir, h->templates.n ? "half.cu" : "device.cu", &h->device, e) < 0 ? -1 : 1;
    buf_free(&text);
    return rc;
}

/* Appends the command that compiles the C++ source. */
static void build_cuda_main_part(struct buf *s, const struct build_job *j, const char *prefix)
{
    build_cuda_host_command(s, j->t);
    build_word(s, "-include ", prefix, "/prefix.h");
    buf_addf(s, "%s -c main.cpp -o part0.o >part0.log 2>&1", j->r->flags.p);
}

/* Templates wait for the host's half; otherwise both halves, and the bindings, are made at once. 1 if the script now
 * tries this, 0 if the source cannot be parted, -1. */
static int build_cuda_add_split(struct buf *s, const struct build_job *j, const char *prefix, struct err *e)
{
    struct cuda_split h;
    struct buf objects;
    int rc;

    buf_init(&h.host, 2 * BUILD_MAX_SOURCE);
    buf_init(&h.device, 2 * BUILD_MAX_SOURCE);
    buf_init(&h.templates, 1 << 14);
    rc = build_cuda_write_halves(j, &h, e);
    if (rc > 0) {
        buf_init(&objects, 8192);
        buf_adds(&objects, j->r->joined ? "part1.o rows.s " : "part0.o part1.o rows.s ");
        build_word(&objects, "", prefix, "/split.o");
        if (!j->r->joined) {
            build_cuda_main_part(s, j, prefix);
            buf_adds(s, " & p0=$!\n");
        }
        build_cuda_host_half(s, j, prefix);
        buf_adds(s, h.templates.n ? "; r1=$?; [ $r1 = 0 ] && { " : " & p1=$!\n{ ");
        build_cuda_device_half(s, j, &h);
        buf_adds(s, "; }; r2=$?\n[ -z \"$p1\" ] || { wait $p1; r1=$?; }\n[ -z \"$p0\" ] || { wait $p0; r0=$?; }\n");
        buf_addf(s, "if [ \"$r0$r1$r2\" = %s ]; then\n%s\n", j->r->joined ? "00" : "000", make_rows);
        build_cuda_add_link(s, j, prefix, objects.p, "split2.log");
        buf_adds(s, " && : >split.ok && exit 0\nfi\n");
        buf_free(&objects);
    }
    buf_free(&h.host);
    buf_free(&h.device);
    buf_free(&h.templates);
    return rc;
}

/* Lets the link see the folder of libfront.so. */
static void build_cuda_add_libraries(struct build_plan *plan)
{
    char *lib = path_lib("libfront.so"), *slash = lib ? strrchr(lib, '/') : NULL;

    if (slash) {
        *slash = 0;
        build_plan_ro(plan, lib);
    }
    free(lib);
}

/* Writes into plan the script of one build: split, both halves compiled side by side, then linked. */
static int build_cuda_script(const struct build_job *j, struct build_plan *plan, struct err *e)
{
    struct buf *s = &plan->script;
    char *pre;
    int split = 0;

    if (!(pre = build_prefix(j->t, e)))
        return -1;
    if (json_array_size(j->r->cuda) && (split = build_cuda_add_split(s, j, pre, e)) < 0)
        return free(pre), -1;
    build_cuda_main_part(s, j, pre);
    buf_adds(s, " & p0=$!\nr1=0\nmkdir -p kept\n");
    if (json_array_size(j->r->cuda)) {
        build_cuda_add_kernel_part(s, j, split > 0);
        buf_adds(s, " || r1=$?\n");
        buf_adds(s, "rm -f device.cubin; mv kept/cuda.cubin device.cubin 2>/dev/null\n");
    }
    buf_adds(s, "wait $p0; r0=$?\n[ $r0 = 0 ] && [ $r1 = 0 ] || failed $r0 $r1\n");
    build_cuda_add_link(s, j, pre, "part*.o", "link.log");
    buf_adds(s, " || failed $?\n");
    plan->memory_bytes = LITE_MEMORY;
    build_plan_ro(plan, j->t->lite);
    build_plan_ro(plan, j->t->home);
    build_plan_ro(plan, pre);
    build_cuda_add_libraries(plan);
    free(pre);
    return 0;
}

/* The target's inspect: takes findings from the log and the library. */
static void build_cuda_inspect(const struct build_job *j, const char *log, struct build_result *ret)
{
    char *so = path_join(j->dir, "module.so"), *split = path_join(j->dir, "split.ok");

    ret->split = ret->ok && file_exists(split);
    build_audit_log(log, ret->findings);
    if (ret->ok)
        build_audit_library(so, ret->findings);
    free(split);
    free(so);
}

const struct build_target build_target_cuda = {
    .name = "cuda", .find = build_cuda_find, .keep_flags = build_cuda_do_keep_flags, .add_kernels = build_add_kernels,
    .precompile = build_cuda_precompile,
    .script = build_cuda_script, .inspect = build_cuda_inspect,
};
