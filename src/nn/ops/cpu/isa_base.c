/* isa_base.c - the operators for any machine: 4 floats a register (SSE2, NEON). */
#define ISA_NAME "base"
#define ISA_TABLE ops_base
#define VL 4
#include "nn/ops/cpu/isa_table.h"
