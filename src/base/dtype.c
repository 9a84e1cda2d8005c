/* dtype.c - see dtype.h. */
#include "base/dtype.h"

#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t components;
    bool is_float;
} dtypes[DT_COUNT] = {
    [DT_BOOL] = {"bool", 1, false},      [DT_U8] = {"uint8", 1, false},   [DT_I8] = {"int8", 1, false},
    [DT_I16] = {"int16", 1, false},      [DT_I32] = {"int32", 1, false},  [DT_I64] = {"int64", 1, false},
    [DT_F16] = {"float16", 1, true},     [DT_BF16] = {"bfloat16", 1, true}, [DT_F32] = {"float32", 1, true},
    [DT_F64] = {"float64", 1, true},     [DT_C64] = {"complex64", 2, true}, [DT_C128] = {"complex128", 2, true},
    [DT_F8E4] = {"float8_e4m3fn", 1, true}, [DT_F8E5] = {"float8_e5m2", 1, true},
};

int dt_parse(const char *name, enum dtype *ret)
{
    for (int d = 0; name && d < DT_COUNT; d++)
        if (!strcmp(dtypes[d].name, name)) {
            *ret = (enum dtype)d;
            return 0;
        }
    return -1;
}

const char *dt_name(enum dtype d)
{
    return dtypes[d].name;
}

int dt_components(enum dtype d)
{
    return dtypes[d].components;
}

bool dt_is_float(enum dtype d)
{
    return dtypes[d].is_float;
}
