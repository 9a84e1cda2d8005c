/* model_dims.c - sizes that follow from a configuration, and memory for them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nn/model_private.h"

size_t memory_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kb = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb ? (size_t)kb << 10 : (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2;
}

/* The length stands in the first 64 bytes, so that slab_free needs only the pointer. */
float *slab_alloc(size_t floats, struct err *e, const char *what)
{
    size_t bytes = floats * sizeof(float) + 64;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        err_set(e, ERR_ENV, "no memory for %s (%.1f MB)", what, (double)bytes / 1e6);
        return NULL;
    }
    madvise(p, bytes, MADV_HUGEPAGE);
    memcpy(p, &bytes, sizeof bytes);
    return (float *)(p + 64);
}

void slab_free(float *p)
{
    size_t bytes;

    if (!p)
        return;
    memcpy(&bytes, (char *)p - 64, sizeof bytes);
    munmap((char *)p - 64, bytes);
}

static int model_dims_max_int(int a, int b) { return a > b ? a : b; }

/* Fills the widths of gated delta layers: where z, b and a begin in the input's projection. */
static void model_dims_delta(const struct model_config *c, struct model_dims *n)
{
    int keys = c->linear_key_heads * c->linear_key_dim, values = c->linear_value_heads * c->linear_value_dim;

    n->taps = c->conv_taps;
    n->conv = n->z_at = 2 * keys + values;
    n->b_at = n->z_at + values;
    n->a_at = n->b_at + c->linear_value_heads;
    n->in[MIX_DELTA] = n->a_at + c->linear_value_heads;
    n->mix[MIX_DELTA] = values;
    n->delta = (struct nn_delta){c->linear_key_heads, c->linear_value_heads, c->linear_key_dim, c->linear_value_dim,
                                 n->in[MIX_DELTA]};
}

/* The widths and offsets that follow from the model's config. */
struct model_dims model_dims(const struct model *m)
{
    const struct model_config *c = &m->config;
    struct model_dims n = {.d = c->hidden_size, .f = c->intermediate_size, .V = c->vocab_size, .heads = c->num_heads,
                           .kv_heads = c->num_kv_heads, .dim = c->head_dim};

    n.rot = c->rotary_dim;
    n.plus = c->centred_norms ? 1 : 0;
    n.head_norms = c->head_norms;
    n.qkv_bias = c->qkv_bias;
    n.q_step = c->output_gate ? 2 * n.dim : n.dim;
    n.q = n.heads * n.dim;
    n.kv = n.kv_heads * n.dim;
    n.k_at = n.heads * n.q_step;
    n.v_at = n.k_at + n.kv;
    n.qkv = n.v_at + n.kv;
    n.in[MIX_ATTENTION] = n.qkv;
    n.mix[MIX_ATTENTION] = n.q;
    model_dims_delta(c, &n);
    for (int i = 0; i < 2; i++)
        n.ld_in[i] = (n.in[i] + 7) / 8 * 8;
    n.widest_in = model_dims_max_int(n.ld_in[0], n.ld_in[1]);
    n.widest_mix = model_dims_max_int(n.mix[0], n.mix[1]);
    n.widest_pre = model_dims_max_int(n.q + n.kv, n.conv);
    return n;
}

struct nn_heads model_q_heads(const struct model_dims *n)
{
    return (struct nn_heads){n->heads, n->dim, n->rot, n->q_step, n->plus};
}

struct nn_heads model_k_heads(const struct model_dims *n)
{
    return (struct nn_heads){n->kv_heads, n->dim, n->rot, n->dim, n->plus};
}

float *model_grad_of(const struct model *m, const float *weight) { return m->grads + (weight - m->weights); }

struct attn_shape model_attn_shape(const struct model_dims *n)
{
    return (struct attn_shape){.heads = n->heads, .kv_heads = n->kv_heads, .dim = n->dim, .ld_q = n->q + n->kv,
                               .ld_k = n->q + n->kv, .ld_v = n->qkv, .ld_o = n->q};
}
