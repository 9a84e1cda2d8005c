/* fake_musa.c - a MUSA driver without a card: an S4000's answers, as musaInfo printed them and others wrote them
 * down (SDK 3.1), but for one processor too few, so that a difference shows. All else of the driver is fake_cuda.c
 * under MUSA's names, without what nobody has seen in the real one (Makefile). */
#include <stddef.h>
#include <stdio.h>

int muInit(unsigned flags);
int muDeviceGetCount(int *n);
int muDeviceGet(int *device, int index);
int muDeviceGetName(char *name, int n, int device);
int muDeviceGetAttribute(int *value, int attribute, int device);
int muDeviceTotalMem_v2(size_t *bytes, int device);

int muInit(unsigned flags)
{
    return flags ? 1 : 0;
}

int muDeviceGetCount(int *n)
{
    *n = 1;
    return 0;
}

int muDeviceGet(int *device, int index)
{
    *device = index;
    return index == 0 ? 0 : 101;
}

int muDeviceGetName(char *name, int n, int device)
{
    snprintf(name, (size_t)n, "MTT S4000");
    return device == 0 ? 0 : 101;
}

int muDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int answers[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 1024}, {5, 2147483647}, {6, 2147483647},
                                     {7, 2147483647}, {8, 73728}, {9, 8192}, {10, 128}, {16, 55},
                                     {38, 24 << 20}, {39, 6144},
                                     {75, 2}, {76, 2}, {82, 262144}, {97, 73728}};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i][0] == attribute && device == 0)
            return *value = answers[i][1], 0;
    return 1;
}

int muDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)47 << 30;
    return device == 0 ? 0 : 101;
}
