/* rates.c - peak arithmetic rates by compute capability: fused multiply-adds per clock and multiprocessor, dense.
 * CUDA cores: CUDA C++ Programming Guide, table "Throughput of native arithmetic instructions". Tensor cores: NVIDIA's
 * architecture papers (A100, GA102, Ada, H100, Blackwell), from rate / (multiprocessors * clock * 2). Data-centre parts
 * where a capability has one; consumer parts of 8.6, 8.9 and 12.0 run bf16 with fp32 accumulation at half of theirs, so
 * these are upper bounds, as a roofline floor wants them. */
#include "device/device_backend.h"

void device_rates(struct device_info *i)
{
    static const struct {
        int cc;
        double fp32, tf32, bf16, fp64;
    } rows[] = {
        {70, 64, 0, 0, 32},      {75, 64, 0, 0, 2},          {80, 64, 512, 1024, 64},    {86, 128, 256, 512, 2},
        {87, 128, 256, 512, 2},  {89, 128, 256, 512, 2},     {90, 128, 1024, 2048, 128}, {100, 128, 2048, 4096, 64},
        {103, 128, 2048, 4096, 2}, {110, 128, 2048, 4096, 2}, {120, 128, 256, 512, 2},   {121, 128, 256, 512, 2},
    };
    double scale = i->sm_count * i->clock_mhz * 1e6 * 2 / 1e12;

    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].cc == i->cc) {
            i->fp32_tflops = rows[k].fp32 * scale;
            i->tf32_tflops = rows[k].tf32 * scale;
            i->bf16_tflops = rows[k].bf16 * scale;
            i->fp64_tflops = rows[k].fp64 * scale;
        }
}
