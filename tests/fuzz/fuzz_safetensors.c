/* fuzz_safetensors.c - any bytes as a safetensors file: refused with one line, or every tensor readable in full. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nn/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_all(const struct safetensors *s)
{
    for (size_t i = 0; i < st_count(s); i++) {
        const struct st_tensor *t = st_at(s, i);
        float *out = malloc((t->n + 1) * sizeof *out);
        st_to_f32(t, out);
        free(out);
        if (st_find(s, t->name) != t)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = ERR_INIT;
    char path[64];
    int fd = memfd_create("fuzz", 0);
    struct safetensors *s;

    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    s = st_open(path, &e);
    if (s)
        read_all(s);
    else if (!e.msg[0] || strchr(e.msg, '\n'))
        abort();
    st_close(s);
    close(fd);
    return 0;
}
