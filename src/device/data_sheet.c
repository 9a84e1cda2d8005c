/* data_sheet.c - the table of data_sheet.h. */
#include "device/data_sheet.h"

#include <string.h>

#include "base/buf.h"

#define KB 1024
#define MB (1024LL * 1024)
#define GB (1024LL * 1024 * 1024)
#define NO {DATA_SHEET_UNKNOWN, '-', NULL}

#define PROBE22 "musaInfo on an S4000, SDK 3.1 (b1tg/tinygrad, extra/musa/musa_probe.md)"
#define PORT31 "figures of the vendor's S5000 port (sppark-musa)"
#define QUERY21 "device query on an S70 (musa_practice)"
#define LLAMA "llama.cpp, ggml-musa"
#define TORCH "torch_musa, MUSADtype.muh and utils.muh"
#define CARDS "the card's data sheet, as the press quotes it"
#define GUIDE "programming guide, 5.1"
#define CUDA_GUIDE "CUDA C++ programming guide, compute capabilities"
#define NV_SHEET "NVIDIA data sheet"

const char *const data_sheet_fact_names[N_DATA_SHEET_FACTS] = {
    [FACT_ARCH] = "arch_number", [FACT_WARP_HOST] = "warp_host", [FACT_WARP_SHUFFLE] = "warp_shuffle",
    [FACT_SHARED_STATIC] = "shared_static_bytes", [FACT_SHARED_BLOCK] = "shared_block_bytes",
    [FACT_CONSTANT] = "constant_bytes", [FACT_MPS] = "multiprocessors", [FACT_THREADS_BLOCK] = "threads_block",
    [FACT_THREADS_MP] = "threads_multiprocessor", [FACT_REGISTERS_MP] = "registers_multiprocessor",
        [FACT_L2] = "l2_bytes",
    [FACT_MEMORY] = "memory_bytes", [FACT_GBS] = "bandwidth_gbs", [FACT_GRID_YZ] = "grid_yz",
    [FACT_COOPERATIVE] = "cooperative", [FACT_BF16] = "bf16", [FACT_FP8] = "fp8", [FACT_DIVISION_ULP] = "division_ulp",
};

/* mp_21: the three cards differ in memory only. */
#define MP_21(memory_gb, gbs)                                                                                          \
    {                                                                                                                  \
        [FACT_ARCH] = {210, 'V', LLAMA}, [FACT_WARP_HOST] = {128, 'V', TORCH}, [FACT_WARP_SHUFFLE] = {32, 'I',         \
        "as measured on mp_22; the vendor's ports shuffle 32 lanes"}, [FACT_SHARED_STATIC] = {28 * KB, 'V', QUERY21},  \
        [FACT_SHARED_BLOCK] = {28 * KB, 'V', QUERY21}, [FACT_CONSTANT] = NO, [FACT_MPS] = NO,                          \
        [FACT_THREADS_BLOCK] = {1024, 'I', "as its successors"}, [FACT_THREADS_MP] = NO,                               \
        [FACT_REGISTERS_MP] = {262144, 'V', QUERY21}, [FACT_L2] = NO, [FACT_MEMORY] = {(memory_gb) * GB, 'C', CARDS},  \
        [FACT_GBS] = {gbs, 'C', CARDS}, [FACT_GRID_YZ] = NO, [FACT_COOPERATIVE] = NO, [FACT_BF16] = {0, 'V', TORCH},   \
        [FACT_FP8] = {0, 'V', "tilelang_musa: from mp_31 on"},                                                         \
        [FACT_DIVISION_ULP] = {1, 'I', "as measured on mp_22"},                                                        \
    }

static const struct data_sheet rows[] = {
    {"s70", "MTT S70", "mp_21", true, MP_21(7, 392)},
    {"s80", "MTT S80", "mp_21", true, MP_21(16, 448)},
    {"s3000", "MTT S3000", "mp_21", true, MP_21(32, 448)},
    {"s4000", "MTT S4000", "mp_22", true,
     {[FACT_ARCH] = {220, 'V', TORCH}, [FACT_WARP_HOST] = {128, 'V', PROBE22},
      [FACT_WARP_SHUFFLE] = {32, 'V',
                             "shuffles tried on an S4000: 0 errors at 32 lanes, 256 at 64; documents say 128"},
                                 [FACT_SHARED_STATIC] = {72 * KB, 'V', PROBE22},
          [FACT_SHARED_BLOCK] = {72 * KB, 'V', PROBE22},
      [FACT_CONSTANT] = {8192, 'V', PROBE22}, [FACT_MPS] = {56, 'V', PROBE22}, [FACT_THREADS_BLOCK] = {1024,
          'V', PROBE22},
      [FACT_THREADS_MP] = {6144, 'V', PROBE22}, [FACT_REGISTERS_MP] = {262144, 'V', PROBE22},
          [FACT_L2] = {24 * MB, 'V', PROBE22},
      [FACT_MEMORY] = {48 * GB, 'C', CARDS}, [FACT_GBS] = {768, 'C', CARDS}, [FACT_GRID_YZ] = {INT32_MAX, 'V', PROBE22},
          [FACT_COOPERATIVE] = NO,
      [FACT_BF16] = {1, 'V', TORCH}, [FACT_FP8] = {0, 'V', "tilelang_musa: from mp_31 on"},
      [FACT_DIVISION_ULP] = {1, 'V', "tried on an S4000, SDK 3.1 (b1tg/tinygrad)"}}},
    {"s5000", "MTT S5000", "mp_31", true,
     {[FACT_ARCH] = {310, 'V', TORCH}, [FACT_WARP_HOST] = {32, 'D', GUIDE}, [FACT_WARP_SHUFFLE] = {32, 'D', GUIDE},
      [FACT_SHARED_STATIC] = {48 * KB, 'D', GUIDE ": its advice for a block"}, [FACT_SHARED_BLOCK] = {192 * KB,
          'V', PORT31},
      [FACT_CONSTANT] = {8192, 'V', PORT31}, [FACT_MPS] = {56, 'V', PORT31 "; another card says 60"},
      [FACT_THREADS_BLOCK] = {1024, 'V', PORT31}, [FACT_THREADS_MP] = {3072, 'V', PORT31},
      [FACT_REGISTERS_MP] = {131072, 'V', PORT31}, [FACT_L2] = {60 * MB, 'V', PORT31}, [FACT_MEMORY] = {80 * GB,
          'C', CARDS},
      [FACT_GBS] = {1600, 'C', CARDS}, [FACT_GRID_YZ] = {INT32_MAX, 'V', PORT31}, [FACT_COOPERATIVE] = {1, 'V', PORT31},
      [FACT_BF16] = {1, 'V', TORCH}, [FACT_FP8] = {1, 'V', "tilelang_musa: have_fp8"}, [FACT_DIVISION_ULP] = NO}},
    {"m1000", "MTT M1000", "mp_22", true,
     {[FACT_ARCH] = {220, 'I', "warp size 128 excludes mp_31"}, [FACT_WARP_HOST] = {128, 'D', GUIDE},
      [FACT_WARP_SHUFFLE] = {32, 'I', "as measured on mp_22"}, [FACT_SHARED_STATIC] = {28 * KB, 'I',
          "the smallest known"},
      [FACT_SHARED_BLOCK] = {72 * KB, 'I', "as the S4000"}, [FACT_CONSTANT] = {8192, 'I', "as the S4000"},
          [FACT_MPS] = NO,
      [FACT_THREADS_BLOCK] = {1024, 'I', "as the S4000"}, [FACT_THREADS_MP] = NO, [FACT_REGISTERS_MP] = NO,
          [FACT_L2] = NO,
      [FACT_MEMORY] = NO, [FACT_GBS] = {102, 'C', CARDS ": 102 to 136"}, [FACT_GRID_YZ] = NO, [FACT_COOPERATIVE] = NO,
      [FACT_BF16] = {1, 'I', "as the S4000"}, [FACT_FP8] = {0, 'I', "from mp_31 on"},
      [FACT_DIVISION_ULP] = {1, 'I', "as measured on mp_22"}}},
#define NVIDIA(number, shared, mps, threads, l2, memory_gb, gbs, fp8)                                                  \
    {[FACT_ARCH] = {number, 'D', CUDA_GUIDE}, [FACT_WARP_HOST] = {32, 'D', CUDA_GUIDE},                                \
     [FACT_WARP_SHUFFLE] = {32, 'D', CUDA_GUIDE}, [FACT_SHARED_STATIC] = {48 * KB, 'D', CUDA_GUIDE},                   \
     [FACT_SHARED_BLOCK] = {(shared) * KB, 'D', CUDA_GUIDE}, [FACT_CONSTANT] = {64 * KB, 'D', CUDA_GUIDE},             \
     [FACT_MPS] = {mps, 'D', NV_SHEET}, [FACT_THREADS_BLOCK] = {1024, 'D', CUDA_GUIDE},                                \
     [FACT_THREADS_MP] = {threads, 'D', CUDA_GUIDE}, [FACT_REGISTERS_MP] = {65536, 'D', CUDA_GUIDE},                   \
     [FACT_L2] = {(l2) * MB, 'D', NV_SHEET}, [FACT_MEMORY] = {(memory_gb) * GB, 'D', NV_SHEET},                        \
     [FACT_GBS] = {gbs, 'D', NV_SHEET}, [FACT_GRID_YZ] = {65535, 'D', CUDA_GUIDE},                                     \
     [FACT_COOPERATIVE] = {1, 'D', CUDA_GUIDE}, [FACT_BF16] = {1, 'D', CUDA_GUIDE},                            \
     [FACT_FP8] = {fp8, 'D', CUDA_GUIDE},                                                                              \
     [FACT_DIVISION_ULP] = {0, 'D', CUDA_GUIDE}}
    {"a100", "NVIDIA A100 80GB", "sm_80", false, NVIDIA(800, 163, 108, 2048, 40, 80, 2039, 0)},
    {"l40s", "NVIDIA L40S", "sm_89", false, NVIDIA(890, 99, 142, 1536, 96, 48, 864, 1)},
    {"h100", "NVIDIA H100 SXM", "sm_90", false, NVIDIA(900, 227, 132, 2048, 50, 80, 3350, 1)},
    {"h200", "NVIDIA H200", "sm_90", false, NVIDIA(900, 227, 132, 2048, 50, 141, 4800, 1)},
};

const struct data_sheet *data_sheet_at(size_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const struct data_sheet *data_sheet_find(const char *name)
{
    const struct data_sheet *p;

    for (size_t i = 0; name && (p = data_sheet_at(i)); i++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

int64_t data_sheet_get(const struct data_sheet *p, enum data_sheet_fact f, int64_t unknown)
{
    return p->figures[f].value == DATA_SHEET_UNKNOWN ? unknown : p->figures[f].value;
}

char *data_sheet_names(void)
{
    const struct data_sheet *p;
    struct buf b;

    buf_init(&b, 4096);
    for (size_t i = 0; (p = data_sheet_at(i)); i++)
        buf_addf(&b, "%s%s", i ? ", " : "", p->name);
    return buf_detach(&b);
}

char *data_sheet_text(const struct data_sheet *p)
{
    struct buf b;

    buf_init(&b, 4096);
    buf_addf(&b, "card=%s", p->card);
    for (int f = 0; f < N_DATA_SHEET_FACTS; f++)
        if (p->figures[f].value != DATA_SHEET_UNKNOWN)
            buf_addf(&b, ";%s=%lld", data_sheet_fact_names[f], (long long)p->figures[f].value);
    return buf_detach(&b);
}

json_t *data_sheet_json(const struct data_sheet *p)
{
    json_t *figures = json_object(), *one;

    for (int f = 0; f < N_DATA_SHEET_FACTS; f++) {
        const struct data_sheet_figure *v = &p->figures[f];
        one = json_null();
        if (v->value != DATA_SHEET_UNKNOWN)
            one = json_pack("{s:I,s:s%,s:s}", "value", (json_int_t)v->value, "evidence", &v->evidence,
                            (size_t)1, "source", v->source);
        json_object_set_new(figures, data_sheet_fact_names[f], one);
    }
    return json_pack("{s:s,s:s,s:s,s:s,s:o}", "name", p->name, "card", p->card, "arch", p->arch, "dialect",
                     p->musa ? "musa" : "cuda", "figures", figures);
}
