/* window.c - see window.h. No rows here. */
#include "synth/ops/window.h"

#include <string.h>

const struct opdef window_ops[] = {{0}};

const char *const window_out[3] = {"od", "oh", "ow"}, *const window_tap[3] = {"kd", "kh", "kw"};

bool window_key(const struct op_call *c, const char *key, struct buf *out)
{
    int at = !strcmp(key, "k") ? W_K : !strcmp(key, "s") ? W_S : !strcmp(key, "p") ? W_P : !strcmp(key, "d") ? W_D : -1;

    if (at < 0)
        return false;
    text_tuple(c->i + at, c->i[W_ND], out);
    return true;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

void window_draw(struct rng *r, struct op_call *c, int max_kernel, bool half, bool dilate)
{
    static const int kernels[] = {1, 2, 3, 3, 3, 4, 5, 7};
    int nd = c->in[0].rank - 2;
    bool square = draw_below(r, 4) != 0, strided = draw_below(r, 2), dilated = dilate && draw_below(r, 4) == 0;

    c->i[W_ND] = nd;
    for (int i = 0; i < nd; i++) {
        int in = c->in[0].d[2 + i], k = draw_pick(r, kernels, 8), d = dilated ? 2 + (int)draw_below(r, 2) : 1, p;
        if (square && i)
            k = c->i[W_K], d = c->i[W_D];
        k = min_int(k, max_kernel);
        p = (int)draw_below(r, (uint64_t)(half ? k / 2 : k) + 1);
        if (square && i)
            p = c->i[W_P];
        if (d * (k - 1) + 1 > in + 2 * p)
            d = 1;
        if (k > in + 2 * p)
            k = min_int(in, k);
        c->i[W_K + i] = k;
        c->i[W_D + i] = d;
        c->i[W_P + i] = min_int(p, half ? k / 2 : p);
        c->i[W_S + i] = square && i ? c->i[W_S] : strided ? 1 + (int)draw_below(r, 3) : 1;
    }
}

int window_out_size(const struct op_call *c, int i)
{
    return (c->in[0].d[2 + i] + 2 * c->i[W_P + i] - c->i[W_D + i] * (c->i[W_K + i] - 1) - 1) / c->i[W_S + i] + 1;
}
