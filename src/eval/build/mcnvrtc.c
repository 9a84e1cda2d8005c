/* mcnvrtc.c - a program: the device's half of a source through NVRTC, which is nvcc's device compiler without the
 * toolkit's headers in front: a tenth of nvcc's time. Its caller takes nvcc where this says no (build_nvrtc.c).
 *
 *   mcnvrtc LIBNVRTC SOURCE STEM [OPTION...]    writes STEM.ptx and STEM.cubin
 *
 * What kernels use of C's headers is in here. Exit code: 0 written, 1 it does not compile, 2 usage or no library.
 * Runs in the compiler's jail. Uses nothing of ours, so that it starts in a millisecond. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_SOURCE ((size_t)8 << 20)

/* Answers to C's headers; a name that is missing is an error, and nvcc's to decide. Values: C11 on x86-64. */
static const char std_header[] =
    "#ifndef LT_NVRTC_STD\n#define LT_NVRTC_STD\n"
    "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;\n"
    "typedef unsigned long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;\n"
    "#define CHAR_BIT 8\n#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX 4294967295u\n"
    "#define LONG_MAX 9223372036854775807L\n#define LONG_MIN (-LONG_MAX - 1L)\n#define ULONG_MAX (LONG_MAX * 2UL + 1)\n"
    "#define LLONG_MAX 9223372036854775807LL\n#define LLONG_MIN (-LLONG_MAX - 1LL)\n"
    "#define INT32_MAX INT_MAX\n#define INT32_MIN INT_MIN\n#define UINT32_MAX UINT_MAX\n"
    "#define INT64_MAX LONG_MAX\n#define INT64_MIN LONG_MIN\n#define UINT64_MAX ULONG_MAX\n"
    "#define FLT_MAX 3.40282346638528859812e+38F\n#define FLT_MIN 1.17549435082228750797e-38F\n"
    "#define FLT_EPSILON 1.19209289550781250000e-7F\n#define DBL_MAX double(1.79769313486231570815e+308L)\n"
    "#define DBL_MIN double(2.22507385850720138309e-308L)\n#define DBL_EPSILON double(2.22044604925031308085e-16L)\n"
    "#define INFINITY (__int_as_float(0x7f800000))\n#define NAN (__int_as_float(0x7fc00000))\n"
    "#define M_E 2.7182818284590452354\n#define M_LOG2E 1.4426950408889634074\n"
    "#define M_LOG10E 0.43429448190325182765\n#define M_LN2 0.69314718055994530942\n"
    "#define M_LN10 2.30258509299404568402\n#define M_PI 3.14159265358979323846\n"
    "#define M_PI_2 1.57079632679489661923\n#define M_PI_4 0.78539816339744830962\n"
    "#define M_1_PI 0.31830988618379067154\n#define M_2_PI 0.63661977236758134308\n"
    "#define M_2_SQRTPI 1.12837916709551257390\n#define M_SQRT2 1.41421356237309504880\n"
    "#define M_SQRT1_2 0.70710678118654752440\n"
    "#endif\n";
/* Their names; build_nvrtc.c has the same list. */
static const char *const std_names[] = {"cfloat", "climits", "cmath", "cstdint", "cstddef", "float.h", "limits.h",
                                        "math.h", "stdint.h", "stddef.h", "cuda.h", "cuda_runtime.h",
                                        "device_launch_parameters.h"};
enum { N_NAMES = sizeof std_names / sizeof *std_names };

typedef struct nvrtc_program *program; /* nvrtc.h's nvrtcProgram; results: 0 is success */
static int (*nvrtc_create)(program *, const char *text, const char *name, int n, const char *const *headers,
                           const char *const *names);
static int (*nvrtc_compile)(program, int n, const char *const *options);
typedef int size_of(program, size_t *);
typedef int content_of(program, char *);

/* A function of NVRTC; the process ends without it. */
static void *mcnvrtc_symbol(void *lib, const char *name)
{
    void *f = dlsym(lib, name);

    if (!f) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return f;
}

/* The file's text; the process ends where it cannot be read. */
static char *mcnvrtc_read(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = malloc(MAX_SOURCE);
    size_t n = f && text ? fread(text, 1, MAX_SOURCE, f) : MAX_SOURCE;

    if (n >= MAX_SOURCE) {
        fprintf(stderr, "cannot read '%s'\n", path);
        exit(2);
    }
    text[n] = 0;
    fclose(f);
    return text;
}

/* STEM.KIND with what NVRTC has of that kind, less the NUL behind a text; 0, or 1: it has none, the disk is full. */
static int mcnvrtc_write(void *lib, program p, const char *stem, const char *kind, size_t less)
{
    char name[64], path[4096];
    size_of *size;
    content_of *content;
    size_t n = 0;
    char *bytes;
    FILE *f;
    int rc;

    snprintf(name, sizeof name, "nvrtcGet%sSize", kind);
    *(void **)&size = mcnvrtc_symbol(lib, name);
    snprintf(name, sizeof name, "nvrtcGet%s", kind);
    *(void **)&content = mcnvrtc_symbol(lib, name);
    if (size(p, &n) || n <= less || !(bytes = malloc(n)) || content(p, bytes))
        return 1;
    snprintf(path, sizeof path, "%s.%s", stem, less ? "ptx" : "cubin");
    f = fopen(path, "w");
    rc = !f || fwrite(bytes, 1, n - less, f) != n - less;
    return (f && fclose(f)) || rc;
}

/* Prints NVRTC's log to stderr. */
static void mcnvrtc_say(void *lib, program p)
{
    size_of *size;
    content_of *content;
    size_t n = 0;
    char *text;

    *(void **)&size = mcnvrtc_symbol(lib, "nvrtcGetProgramLogSize");
    *(void **)&content = mcnvrtc_symbol(lib, "nvrtcGetProgramLog");
    if (size(p, &n) == 0 && n && (text = malloc(n)) && content(p, text) == 0)
        fprintf(stderr, "%s\n", text);
}

/* mcnvrtc LIBNVRTC SOURCE STEM [OPTION...]: compiles SOURCE to STEM.cubin and the log to stderr. Exit 0, 1 (it does
 * not compile) or 2 (usage). */
int main(int argc, char **argv)
{
    const char *headers[N_NAMES];
    program p = NULL;
    void *lib;

    if (argc < 4 || !(lib = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "%s\n", argc < 4 ? "usage: mcnvrtc LIBNVRTC SOURCE STEM [OPTION...]" : dlerror());
        return 2;
    }
    *(void **)&nvrtc_create = mcnvrtc_symbol(lib, "nvrtcCreateProgram");
    *(void **)&nvrtc_compile = mcnvrtc_symbol(lib, "nvrtcCompileProgram");
    for (int i = 0; i < N_NAMES; i++)
        headers[i] = std_header;
    if (nvrtc_create(&p, mcnvrtc_read(argv[2]), argv[2], N_NAMES, headers, std_names) ||
        nvrtc_compile(p, argc - 4, (const char *const *)argv + 4)) {
        mcnvrtc_say(lib, p);
        return 1;
    }
    return mcnvrtc_write(lib, p, argv[3], "PTX", 1) || mcnvrtc_write(lib, p, argv[3], "CUBIN", 0);
}
