/* build_nvrtc.c - the target 'cuda': which device halves NVRTC may compile first, and how; see build_target.h. Its
 * front end is nvcc's, its headers are not: what could mean something else without them is nvcc's from the start. A
 * fifth of all kernels get other machine code than by nvcc (addresses of shared memory in 64 bits);
 * $MUSACODER_CUDA_NVRTC=0 leaves all of them to nvcc. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "eval/build/build_target.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))

/* Of mcnvrtc.c, and headers of the toolkit that NVRTC reads as nvcc does. torch's are cleared from this half. */
static const char *const known_headers[] = {
    "cfloat", "climits", "cmath", "cstdint", "cstddef", "float.h", "limits.h", "math.h", "stdint.h", "stddef.h",
    "cuda.h", "cuda_runtime.h", "device_launch_parameters.h", "cuda_fp16.h", "cuda_bf16.h", "mma.h"};
/* Names whose overloads for mixed arguments are the host library's, and what is declared there alone. Compared for 63
 * functions and all pairs of seven types: the rest gives the same PTX, or does not compile. */
static const char *const other_names[] = {
    "std", "thrust", "cub", "assert", "printf", "malloc", "free", "new", "delete", "typeid", "pow", "fmod", "fmin",
    "fmax", "fdim", "hypot", "atan2", "remainder", "nextafter", "copysign", "isnan", "isinf", "isfinite", "signbit",
    "numeric_limits", "cooperative_groups", "__GNUC__", "__linux__"};

static bool build_nvrtc_among(const char *s, size_t n, const char *const *list, size_t n_list)
{
    for (size_t i = 0; i < n_list; i++)
        if (strlen(list[i]) == n && !memcmp(list[i], s, n))
            return true;
    return false;
}

/* True where the source names nothing that NVRTC lacks. */
static bool build_nvrtc_knows_words(const char *s)
{
    while (*s) {
        size_t n = 0;

        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
        if (n && build_nvrtc_among(s, n, other_names, N_OF(other_names)))
            return false;
        s += n ? n : 1;
    }
    return true;
}

/* True where NVRTC itself answers every #include of the source s. */
static bool build_nvrtc_knows_headers(const char *s)
{
    for (; (s = strchr(s, '#')); s++) {
        const char *word = s + 1 + strspn(s + 1, " \t"), *name;
        size_t n;

        if (strncmp(word, "include", 7))
            continue;
        name = word + 7 + strspn(word + 7, " \t<\"");
        n = strcspn(name, ">\"\n");
        if (!build_nvrtc_among(name, n, known_headers, N_OF(known_headers)))
            return false;
    }
    return true;
}

/* The candidate's flags as NVRTC has them: macros and fast math; levels are the host's. False: another one is there. */
static bool build_nvrtc_flags(const char *flags, struct buf *out)
{
    char *copy = xstrdup(flags), *save = NULL;
    bool known = true;

    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (!strncmp(w, "-D", 2) || !strncmp(w, "-U", 2))
            buf_addf(out, "%s ", w);
        else if (!strcmp(w, "'--use_fast_math'") || !strcmp(w, "'-use_fast_math'"))
            buf_adds(out, "--use_fast_math ");
        else
            known &= !strncmp(w, "'-O", 3) || !strcmp(w, "'--expt-relaxed-constexpr'");
    }
    free(copy);
    return known;
}

void build_nvrtc_find(struct toolchain *t, struct sha256 *h)
{
    static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
    const char *wanted = getenv("MUSACODER_CUDA_NVRTC");
    bool off = wanted && !strcmp(wanted, "0");

    for (size_t i = 0; i < N_OF(folders) && !t->nvrtc && !off; i++) {
        char *dir = path_join(t->home, folders[i]), **names = NULL;
        size_t n = 0;

        if (dir_list(dir, &names, &n, NULL) == 0)
            for (size_t k = 0; k < n && !t->nvrtc; k++)
                if (!strncmp(names[k], "libnvrtc.so", 11))
                    t->nvrtc = path_join(dir, names[k]);
        names_free(names, n);
        free(dir);
    }
    sha256_adds(h, t->nvrtc ? "nvrtc/1" : "no nvrtc");
    sha256_adds(h, t->nvrtc ? t->nvrtc : "");
}

bool build_nvrtc_add(struct buf *script, const struct build_job *j, const char *device, const char *uses)
{
    char *tool = path_lib("mcnvrtc"), *arch = j->t->arch;
    struct buf flags;
    bool fits;

    buf_init(&flags, 1 << 16);
    fits = tool && j->t->nvrtc && !j->r->arch_letter && isdigit((unsigned char)arch[strlen(arch) - 1]) &&
           build_nvrtc_knows_words(device) && build_nvrtc_knows_headers(device) &&
           build_nvrtc_flags(j->r->kernel_flags.p, &flags);
    if (fits) {
        build_quote(script, tool);
        build_quote(script, j->t->nvrtc);
        buf_addf(script, "device.cu device -arch=%s -std=c++17 -w -DLT_GPU -DLT_LEAN %s%s %s", arch, uses,
                 build_torch_macros, flags.p);
        build_word(script, "-I", j->t->lite, "");
        build_word(script, "-I", j->t->home, "/include");
        buf_adds(script, "--pre-include=litetorch/split_device.h >nvrtc.txt 2>&1 && ");
        build_word(script, "", j->t->home, "/bin/fatbinary");
        buf_addf(script, "--create=device.fatbin -64 --image3=kind=elf,sm=%s,file=device.cubin >nvrtc.txt 2>&1 || ",
                 arch + 3);
    }
    buf_free(&flags);
    free(tool);
    return fits;
}
