/* dtype.h - element types of tensors, named as torch names them (without "torch."). Pure. */
#ifndef MC_DTYPE_H
#define MC_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype { DT_BOOL, DT_U8, DT_I8, DT_I16, DT_I32, DT_I64, DT_F16, DT_BF16, DT_F32, DT_F64, DT_C64, DT_C128,
             DT_F8E4, DT_F8E5, /* float8_e4m3fn and float8_e5m2 */
             DT_COUNT };

int dt_parse(const char *name, enum dtype *ret); /* "float32" and so on; -1 if unknown */
const char *dt_name(enum dtype d);
int dt_components(enum dtype d); /* 2 for complex, else 1 */
bool dt_is_float(enum dtype d);  /* complex included */

/* Bytes of one real component. Inline: it is asked once per element. */
static inline size_t dt_size(enum dtype d)
{
    static const unsigned char sizes[DT_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 4, 8, 1, 1};

    return sizes[d];
}

#endif
