/* build_audit.c - see build_audit.h: the lists, and a reader of ELF symbol tables that trusts nothing. */
#include "eval/build/build_audit.h"

#include <elf.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/build/build_lack.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))
#define AUDIT_VERSION "audit/12"
#define MAX_LIBRARY ((size_t)128 << 20)

/* ---- the lists ---- */

/* libm: base names, also with the suffixes f and l, and as __NAME_finite. */
static const char *const math_names[] = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "hypot",
    "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "lgamma_r", "llrint", "llround", "log", "log10", "log1p", "log2",
    "logb", "lrint", "lround", "modf", "nan", "nearbyint", "nextafter", "nexttoward", "pow", "remainder", "remquo",
    "rint", "round", "roundeven", "scalb", "scalbln", "scalbn", "sin", "sincos", "sincospi", "sinh", "sqrt", "tan",
    "tanh", "tgamma", "trunc", "y0", "y1", "yn", "__signbit", "__fpclassify", "__isnan", "__isinf", "__finite",
    "isnan", "isinf", "finite", "cabs", "cexp", "csqrt", "clog", "cpow", "csin", "ccos", "ctan", "csinh", "ccosh",
    "ctanh", "carg"};

/* libgcc's arithmetic helpers. */
static const char *const gcc_names[] = {
    "__divti3", "__modti3", "__udivti3", "__umodti3", "__multi3", "__popcountdi2", "__extendhfsf2",
    "__extendhfdf2", "__extendhfxf2", "__truncsfhf2", "__truncdfhf2", "__truncxfhf2", "__eqhf2", "__nehf2",
    "__fixhfti", "__fixunshfti", "__floattihf", "__floatuntihf", "__truncdfbf2", "__extendsfdf2",
    "__floattisf", "__floattidf", "__floatuntidf", "__fixdfti", "__fixunsdfti",
    "__muldc3", "__mulsc3", "__divdc3", "__divsc3", "__cpu_model", "__cpu_indicator_init", "__truncsfbf2",
    "__extendbfsf2", "__powidf2", "__powisf2"};

/* Libraries that do the arithmetic, as symbols begin. */
static const char *const library_prefixes[] = {
    "cublas", "cudnn", "cufft", "cusolver", "cusparse", "curandGenerate", "curandCreate", "curandSet",
    "curandDestroy", "nccl", "nvrtc", "nvJitLink", "cutensor", "cutlass_", "_ZN7cutlass7library", "cblas_", "sgemm_",
    "dgemm_", "mkl_", "openblas_", "dnnl_", "magma_", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch", "_ZN3c10",
    "_ZNK3c10", "aoti_torch_"};
/* The same in the linker's words, which are demangled. */
static const char *const library_scopes[] = {"at::", "torch::", "c10::", "caffe2::", "cutlass::library::", "dnnl::"};
/* Headers of theirs, as includes begin. Names of types alone (library_types.h, curand_kernel.h) are not among them. */
static const char *const library_headers[] = {
    "cublas", "cudnn", "cufft", "cusolver", "cusparse", "curand.h", "mublas", "mudnn", "mufft", "musolver", "musparse",
    "murand.h", "mccl", "nccl", "nvrtc", "nvJitLink", "cutensor", "cutlass/", "cute/", "cblas",
    "mkl", "dnnl", "oneapi/", "magma", "openblas"};
/* The emulator's interface for the judge (simt/api.h): on sim everything else that begins with simt_ is a kernel's. */
static const char *const judge_names[] = {
    "simt_mem_register", "simt_mem_unregister", "simt_set_memory_hooks", "simt_set_allocator", "simt_set_device_arena",
    "simt_call_guarded", "simt_set_fatal_hook", "simt_set_check", "simt_set_ablation", "simt_set_limit",
    "simt_set_poison", "simt_set_schedule", "simt_set_blocks",
    "simt_findings_json", "simt_findings_count", "simt_stats_json", "simt_reset", "simt_busy"};
static const char *const instrumentation[] = {"simt_", "__tsan_", "__ubsan_handle_type_mismatch_v1"};
static const char *const kernel_variables[] = {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"};
/* What kernels call of C and C++: memory, text to the standard streams, the ends of impossible paths. */
static const char *const image_names[] = {
    "malloc", "free", "memcpy", "memmove", "memset", "memcmp", "printf", "vprintf", "puts", "putchar", "fprintf",
    "vfprintf", "fputs", "fputc", "fwrite", "fflush", "stdout", "stderr", "abort", "__assert_fail", "__stack_chk_fail",
    "__tls_get_addr", "_GLOBAL_OFFSET_TABLE_", "__gxx_personality_v0", "_Unwind_Resume", "__cxa_guard_acquire",
    "__cxa_guard_release", "__cxa_guard_abort", "__cxa_begin_catch", "__cxa_end_catch", "__cxa_rethrow",
    "__cxa_throw_bad_array_new_length", "__cxa_pure_virtual", "__cxa_finalize", "_ZSt9terminatev", "_Znwm", "_Znam",
    "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm", "__printf_chk", "__fprintf_chk", "__vprintf_chk", "__memcpy_chk",
    "__memset_chk", "__memmove_chk", "abs", "labs", "llabs", "clock"};
static const char *const image_prefixes[] = {"_ZSt20__throw_", "_ZSt17__throw_", "_ZSt24__throw_", "_ZSt16__throw_",
                                             "_ZSt19__throw_", "_ZSt25__throw_", "_ZTVN10__cxxabiv1", "_ZSt28__throw_"};
/* Sections that g++ makes by itself, as they begin. */
static const char *const image_sections[] = {
    ".text", ".rodata", ".data", ".bss", ".tdata", ".tbss", ".gcc_except_table", ".eh_frame", ".plt", ".got", ".dyn",
    ".gnu", ".rela.", ".hash", ".note", ".comment", ".debug", ".symtab", ".strtab", ".shstrtab"};
/* Functions defined in the library itself that are a library's: the host stubs of device-wide algorithms' kernels. */
static const char *const library_kernels[] = {
    "_ZN3cub", "_ZN6thrust", "_ZN7cutlass", "N3cub", "N6thrust"};

/* True where s begins with one of the list's words. */
static bool build_audit_begins(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(s, list[i], strlen(list[i])))
            return true;
    return false;
}

/* True for a function of libm, also under its names __X_finite, Xf and Xl. */
static bool build_audit_is_math(const char *s)
{
    char base[64];
    size_t n = strlen(s);

    if (n >= sizeof base)
        return false;
    strcpy(base, s);
    if (text_is_among(base, math_names, N_OF(math_names)))
        return true;
    if (n > 9 && !strncmp(base, "__", 2) && !strcmp(base + n - 7, "_finite")) {
        memmove(base, base + 2, n - 8);
        base[n - 9] = 0;
        n -= 9;
        if (text_is_among(base, math_names, N_OF(math_names)))
            return true;
    }
    if (n > 1 && (base[n - 1] == 'f' || base[n - 1] == 'l')) {
        base[n - 1] = 0;
        return text_is_among(base, math_names, N_OF(math_names));
    }
    return false;
}

enum audit_class audit_symbol(const char *s)
{
    return build_audit_begins(s, library_prefixes, N_OF(library_prefixes)) ? AUDIT_LIBRARY : AUDIT_ALLOWED;
}

enum audit_class audit_symbol_image(const char *s)
{
    if (build_audit_begins(s, instrumentation, N_OF(instrumentation)))
        return text_is_among(s, judge_names, N_OF(judge_names)) ? AUDIT_FORBIDDEN : AUDIT_ALLOWED;
    return text_is_among(s, kernel_variables, N_OF(kernel_variables)) ||
           text_is_among(s, image_names, N_OF(image_names)) ||
                   build_audit_begins(s, image_prefixes, N_OF(image_prefixes)) || build_audit_is_math(s) ||
                       text_is_among(s, gcc_names, N_OF(gcc_names))
               ? AUDIT_ALLOWED
               : AUDIT_FORBIDDEN;
}

void build_audit_hash(struct sha256 *h)
{
    sha256_adds(h, AUDIT_VERSION);
}

/* ---- ELF ---- */

/* Calls f for the symbols of the first section of the given type that are (un)defined. */
static int build_audit_each_symbol(const unsigned char *p, size_t n, unsigned type, bool defined,
                                   void (*f)(const char *, void *), void *ctx)
{
    Elf64_Ehdr eh;
    Elf64_Shdr sh, st;
    Elf64_Sym sym;
    bool found = false;

    if (n < sizeof eh)
        return -1;
    memcpy(&eh, p, sizeof eh);
    if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_shentsize != sizeof sh ||
        eh.e_shoff > n || (n - eh.e_shoff) / sizeof sh < eh.e_shnum)
        return -1;
    for (size_t i = 0; i < eh.e_shnum; i++) {
        memcpy(&sh, p + eh.e_shoff + i * sizeof sh, sizeof sh);
        if (sh.sh_type != type)
            continue;
        if (sh.sh_link >= eh.e_shnum || sh.sh_offset > n || sh.sh_size > n - sh.sh_offset)
            return -1;
        memcpy(&st, p + eh.e_shoff + sh.sh_link * sizeof st, sizeof st);
        if (st.sh_offset > n || st.sh_size > n - st.sh_offset || !st.sh_size || p[st.sh_offset + st.sh_size - 1])
            return -1;
        found = true;
        for (size_t k = 0; k < sh.sh_size / sizeof sym; k++) {
            memcpy(&sym, p + sh.sh_offset + k * sizeof sym, sizeof sym);
            if (sym.st_name && sym.st_name < st.sh_size && (sym.st_shndx != SHN_UNDEF) == defined)
                f((const char *)p + st.sh_offset + sym.st_name, ctx);
        }
    }
    return found ? 0 : -1;
}

int audit_undefined(const void *elf, size_t n, void (*f)(const char *name, void *ctx), void *ctx)
{
    return build_audit_each_symbol(elf, n, SHT_DYNSYM, false, f, ctx);
}

/* The same for functions defined in the file, by name of the full symbol table. */
static int audit_defined(const void *elf, size_t n, void (*f)(const char *name, void *ctx), void *ctx)
{
    return build_audit_each_symbol(elf, n, SHT_SYMTAB, true, f, ctx);
}

/* ---- findings ---- */

/* Appends {"kind", "name"} to findings, once for each name and for 64 names at most. */
static void build_audit_add(json_t *findings, const char *kind, const char *name)
{
    json_t *v, *utf8 = json_utf8(name, strnlen(name, 200));
    size_t i;

    json_array_foreach(findings, i, v)
        if (!strcmp(json_str(v, "name", ""), json_string_value(utf8))) {
            json_decref(utf8);
            return;
        }
    if (json_array_size(findings) < 64)
        json_array_append_new(findings, json_pack("{s:s,s:o}", "kind", kind, "name", utf8));
    else
        json_decref(utf8);
}

/* A callback for each undefined symbol: adds a finding for calls of a library's arithmetic. */
static void build_audit_judge_undefined(const char *name, void *findings)
{
    if (audit_symbol(name) == AUDIT_LIBRARY)
        build_audit_add(findings, "library_call", name);
}

/* "__device_stub__ZN3cub..." are kernels of CUB, Thrust or CUTLASS that the candidate's host code launches. */
static void build_audit_judge_kernel(const char *name, void *findings)
{
    const char *kernel = strstr(name, "__device_stub_");

    if (!kernel || strstr(kernel, "EmptyKernel")) /* CUB asks it for the device's version; it computes nothing */
        return;
    for (size_t i = 0; i < N_OF(library_kernels); i++)
        if (strstr(kernel, library_kernels[i])) {
            build_audit_add(findings, "library_call", kernel + 14);
            return;
        }
}

void build_audit_library(const char *path, json_t *findings)
{
    struct buf b;

    buf_init(&b, MAX_LIBRARY);
    if (file_read(path, &b, NULL) < 0 || audit_undefined(b.p, b.n, build_audit_judge_undefined, findings) < 0)
        build_audit_add(findings, "unsupported", "a library that cannot be read");
    else
        audit_defined(b.p, b.n, build_audit_judge_kernel, findings);
    buf_free(&b);
}

/* A callback for each symbol of a device image: adds a finding for what it may not use. */
static void build_audit_judge_image(const char *name, void *ctx)
{
    if (audit_symbol_image(name) != AUDIT_ALLOWED)
        build_audit_add(ctx, text_is_among(name, judge_names, N_OF(judge_names)) ? "judge_call" : "unsupported",
                        name);
}

/* Adds a finding for a section that is loaded and not usual, or that runs code by itself. */
static void build_audit_judge_section(const Elf64_Shdr *s, const char *name, json_t *findings)
{
    bool runs = s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY || s->sh_type == SHT_PREINIT_ARRAY;

    if (*name && (s->sh_flags & SHF_ALLOC) && (runs || !build_audit_begins(name, image_sections, N_OF(image_sections))))
        build_audit_add(findings, "unsupported", name);
}

/* Adds findings about sections and defined symbols of an ELF file of n bytes at p. False: the file is broken. */
static bool build_audit_judge_sections(const unsigned char *p, size_t n, json_t *findings)
{
    Elf64_Ehdr eh;
    Elf64_Shdr sh, names;
    Elf64_Sym sym;

    memcpy(&eh, p, sizeof eh); /* build_audit_each_symbol has looked at it */
    if (eh.e_shstrndx >= eh.e_shnum)
        return false;
    memcpy(&names, p + eh.e_shoff + eh.e_shstrndx * sizeof names, sizeof names);
    if (names.sh_offset > n || !names.sh_size || names.sh_size > n - names.sh_offset ||
        p[names.sh_offset + names.sh_size - 1])
        return false;
    for (size_t i = 0; i < eh.e_shnum; i++) {
        memcpy(&sh, p + eh.e_shoff + i * sizeof sh, sizeof sh);
        if (sh.sh_name < names.sh_size)
            build_audit_judge_section(&sh, (const char *)p + names.sh_offset + sh.sh_name, findings);
        if (sh.sh_type != SHT_SYMTAB || sh.sh_offset > n || sh.sh_size > n - sh.sh_offset)
            continue;
        for (size_t k = 0; k < sh.sh_size / sizeof sym; k++) {
            memcpy(&sym, p + sh.sh_offset + k * sizeof sym, sizeof sym);
            if (ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC)
                build_audit_add(findings, "unsupported", "ifunc");
        }
    }
    return true;
}

void build_audit_image(const char *path, json_t *findings)
{
    struct buf b;

    buf_init(&b, MAX_LIBRARY);
    if (file_read(path, &b, NULL) < 0 || audit_undefined(b.p, b.n, build_audit_judge_image, findings) < 0 ||
        !build_audit_judge_sections((const unsigned char *)b.p, b.n, findings))
        build_audit_add(findings, "unsupported", "an image that cannot be read");
    buf_free(&b);
}

/* The words behind every "says" of the log, up to one of the characters of stop. */
static void build_audit_each_said(const char *log, const char *says, const char *stop,
                                  void (*f)(const char *name, json_t *), json_t *v)
{
    char name[128];

    for (const char *s = log; (s = strstr(s, says)); ) {
        size_t n = strcspn(s += strlen(says), stop);
        snprintf(name, sizeof name, "%.*s", (int)n, s);
        f(name, v);
    }
}

/* Algorithms of CUDA's template libraries that work on a whole array; types and collectives of a block are none. */
static bool build_audit_device_wide(const char *name)
{
    static const char *const begins[] = {
        "cub::Device", "cub/device/", "thrust/sort", "thrust/reduce", "thrust/transform", "thrust/scan",
        "thrust/inner_product", "thrust/extrema", "thrust/unique", "thrust/count", "thrust/gather", "thrust/scatter",
        "thrust/merge", "thrust/partition", "thrust/adjacent_difference", "thrust::sort", "thrust::reduce",
        "thrust::transform", "thrust::inclusive_scan", "thrust::exclusive_scan", "thrust::inner_product"};

    return build_audit_begins(name, begins, N_OF(begins));
}

/* The length of the identifier that s begins with. */
static size_t build_audit_word(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

/* Is this, behind "thrust::", the call of an algorithm for a whole array? A thread's own has the policy thrust::seq. */
static bool build_audit_thrust_call(const char *s)
{
    static const char *const algorithms[] = {
        "sort", "sort_by_key", "stable_sort", "stable_sort_by_key", "reduce", "reduce_by_key", "transform",
        "transform_reduce", "inclusive_scan", "exclusive_scan", "inclusive_scan_by_key", "exclusive_scan_by_key",
        "transform_inclusive_scan", "transform_exclusive_scan", "inner_product", "copy_if", "unique", "unique_by_key",
        "count", "count_if", "gather", "scatter", "merge", "partition", "stable_partition", "min_element",
        "max_element", "minmax_element", "adjacent_difference", "for_each", "for_each_n"};
    size_t n = build_audit_word(s);
    bool known = false;

    for (size_t i = 0; !known && i < N_OF(algorithms); i++)
        known = strlen(algorithms[i]) == n && !strncmp(s, algorithms[i], n);
    s += n + strspn(s + n, " \n");
    return known && *s == '(' && strncmp(s + 1 + strspn(s + 1, " \n"), "thrust::seq", 11);
}

bool build_audit_device_wide_calls(const char *text)
{
    for (const char *s = text; (s = strstr(s, "thrust::")); )
        if (build_audit_thrust_call(s += 8))
            return true;
    return strstr(text, "cub::Device") != NULL;
}

void build_audit_relent(const char *text, json_t *findings)
{
    static const char *const headers[] = {"thrust/", "cub/device/"};
    json_t *f;
    size_t i;

    if (build_audit_device_wide_calls(text))
        return;
    json_array_foreach(findings, i, f)
        if (build_audit_begins(json_str(f, "name", ""), headers, N_OF(headers)))
            json_object_set_new(f, "kind", json_string("lacking"));
}

/* Adds a finding for a symbol that the program wants from a library. said: in the linker's words, where a function of
 * C++ has arguments. Of those only a library's scope tells; what begins like a function of BLAS may be anybody's. */
static void build_audit_judge_missing(const char *said, json_t *findings)
{
    char name[128];
    size_t n = strcspn(said, "(<");
    bool is_c = !said[n];

    snprintf(name, sizeof name, "%.*s", (int)n, said);
    if ((is_c && build_audit_begins(name, library_prefixes, N_OF(library_prefixes))) ||
        build_audit_begins(name, library_scopes, N_OF(library_scopes)))
        build_audit_add(findings, "library_call", name);
    else if ((!strncmp(name, "cuda", 4) && isupper((unsigned char)name[4])) ||
             (!strncmp(name, "cu", 2) && isupper((unsigned char)name[2])))
        /* of the runtime or the driver, and not among ../litetorch/proxy/'s names; cuda_forward is anybody's */
        build_audit_add(findings, "lacking", name);
}

/* Headers of the toolkit and of torch that ours do not answer to yet: nobody's mistake. */
static void build_audit_judge_header(const char *name, json_t *findings)
{
    bool header = strpbrk(name, "./"); /* a program's own text is called cuda_source */

    if ((strchr(name, '.') && build_audit_begins(name, library_headers, N_OF(library_headers))) ||
        build_audit_device_wide(name))
        build_audit_add(findings, "library_call", name);
    else if (header && build_lack_header(name))
        build_audit_add(findings, "lacking", name);
}

/* A callback for each symbol that cannot be resolved: adds what it means as a finding. */
static void build_audit_note_lacking(const char *name, void *findings)
{
    build_audit_add(findings, build_audit_device_wide(name) ? "library_call" : "lacking", name);
}

/* Adds "library_call torch::nn..." for a layer of PyTorch. */
static void build_audit_add_layer(const char *scope, size_t n_scope, const char *member, size_t n_member,
                                  json_t *findings)
{
    char name[160];

    snprintf(name, sizeof name, "torch::nn%.*s::%.*s", (int)(n_scope < 60 ? n_scope : 60), scope,
             (int)(n_member < 60 ? n_member : 60), member);
    build_audit_add(findings, "library_call", name);
}

/* Layers of torch in C++, which litetorch does not have, as nvcc's front end says it:
 *   namespace "torch::nn::functional" has no member "LayerNormFuncOptions"
 * and as g++ does:
 *   'LayerNormFuncOptions' is not a member of 'torch::nn::functional' */
static void build_audit_judge_layers(const char *log, json_t *findings)
{
    static const char nvcc[] = "namespace \"torch::nn", has[] = "\" has no member \"";
    static const char gcc[] = "' is not a member of 'torch::nn";
    const char *s, *at;

    for (s = log; (s = strstr(s, nvcc)); ) {
        s += strlen(nvcc);
        at = s + strcspn(s, "\"\n");
        if (!strncmp(at, has, strlen(has)))
            build_audit_add_layer(s, (size_t)(at - s), at + strlen(has), strcspn(at + strlen(has), "\"\n"), findings);
    }
    for (s = log; (s = strstr(s, gcc)); s++) {
        for (at = s; at > log && at[-1] != '\'' && at[-1] != '\n'; at--)
            ;
        build_audit_add_layer(s + strlen(gcc), strcspn(s + strlen(gcc), "'\n"), at, (size_t)(s - at), findings);
    }
}

void build_audit_log(const char *log, json_t *findings)
{
    build_audit_judge_layers(log, findings);
    if (strstr(log, "torch::Library"))
        build_audit_add(findings, "lacking", "TORCH_LIBRARY");
    if (strstr(log, " is not a member of \xe2\x80\x98pybind11\xe2\x80\x99"))
        build_audit_add(findings, "lacking", "pybind11");
    build_lack_names(log, build_audit_note_lacking, findings);
    build_audit_each_said(log, "undefined reference to `", "'\n", build_audit_judge_missing, findings);
    build_audit_each_said(log, "fatal error: ", ":\n", build_audit_judge_header, findings);
}
