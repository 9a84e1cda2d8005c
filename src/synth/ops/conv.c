/* conv.c - convolutions in one to three dimensions, and transposed ones: contractions over input channels and taps.
 * Padding is a guard on the input's index; a transposed convolution is one more guard: what lies between two strides
 * is no input. Attributes as in window.h. Operands: x (N, C, ..), weight, bias where W_BIAS is set. draw_, shape_,
 * ref_, lower_ and key_ are the members of struct opdef (synth/op.h). */
#include <stdio.h>
#include <string.h>

#include "synth/ops/window.h"

static bool transposed(const struct op_call *c)
{
    return strstr(c->op->name, "transpose") != NULL;
}

/* One of n's divisors, drawn. */
static int divisor_of(struct rng *r, int n)
{
    int v[32], k = 0;

    for (int i = 1; i <= n && k < 32; i++)
        if (n % i == 0)
            v[k++] = i;
    return v[draw_below(r, (uint64_t)k)];
}

/* Gives the call its weight operand, of out_channels. */
static void set_weight(struct op_call *c, int out_channels)
{
    struct tdesc *w = &c->in[1];
    int in_channels = c->in[0].d[1], g = c->i[W_GROUPS];

    w->dtype = c->in[0].dtype;
    w->rank = c->in[0].rank;
    w->d[0] = transposed(c) ? in_channels : out_channels;
    w->d[1] = (transposed(c) ? out_channels : in_channels) / g;
    for (int i = 0; i < c->i[W_ND]; i++)
        w->d[2 + i] = c->i[W_K + i];
    c->in[2] = (struct tdesc){.rank = 1, .dtype = w->dtype, .d = {out_channels}};
    c->n_in = c->i[W_BIAS] ? 3 : 2;
}

/* Elements of the kernel's window. */
static int taps(const struct op_call *c)
{
    int n = 1;

    for (int i = 0; i < c->i[W_ND]; i++)
        n *= c->i[W_K + i];
    return n;
}

/* Draws window, groups, channels and bias. False: the result does not fit the limits. */
static bool draw_conv(struct rng *r, const struct op_limits *l, struct op_call *c)
{
    int channels = c->in[0].d[1], out;
    int64_t work = tdesc_numel(&c->in[0]);

    window_draw(r, c, 7, false, true);
    c->i[W_GROUPS] = draw_below(r, 3) ? 1 : draw_below(r, 2) ? channels : divisor_of(r, channels);
    c->i[W_BIAS] = draw_below(r, 4) != 0;
    for (int i = 0; transposed(c) && i < c->i[W_ND]; i++) {
        int most = c->i[W_S + i] > c->i[W_D + i] ? c->i[W_S + i] : c->i[W_D + i];
        c->i[W_OPAD + i] = draw_below(r, 2) ? 0 : (int)draw_below(r, (uint64_t)most);
    }
    out = c->i[W_GROUPS] * draw_dim(r, 1 + 64 / c->i[W_GROUPS]);
    set_weight(c, out);
    return c->op->shape(c) && work * taps(c) <= l->max_work &&
           tdesc_numel(&c->out) * c->in[1].d[transposed(c) ? 0 : 1] * taps(c) <= l->max_work;
}

static bool shape_conv(struct op_call *c)
{
    c->out = c->in[0];
    c->out.d[1] = transposed(c) ? c->in[1].d[1] * c->i[W_GROUPS] : c->in[1].d[0];
    for (int i = 0; i < c->i[W_ND]; i++) {
        c->out.d[2 + i] = transposed(c) ? (c->in[0].d[2 + i] - 1) * c->i[W_S + i] - 2 * c->i[W_P + i] +
                                              c->i[W_D + i] * (c->i[W_K + i] - 1) + c->i[W_OPAD + i] + 1
                                        : window_out_size(c, i);
        if (c->out.d[2 + i] < 1 || (c->in[0].d[2 + i] + 2 * c->i[W_P + i] < c->i[W_D + i] * (c->i[W_K + i] - 1) + 1 &&
            !transposed(c)))
            return false;
    }
    return c->in[0].d[1] % c->i[W_GROUPS] == 0 && c->out.d[1] % c->i[W_GROUPS] == 0;
}

/* ---- meaning: for every input element and tap (transposed), or output element and tap ---- */

struct conv_walk {
    int n_in[3], n_out[3], k[3], s[3], p[3], d[3]; /* padded in front with 1s to three dimensions */
};

static void walk_open(const struct op_call *c, struct conv_walk *w)
{
    int nd = c->i[W_ND];

    for (int i = 0; i < 3; i++) {
        int at = i - (3 - nd);
        w->n_in[i] = at < 0 ? 1 : c->in[0].d[2 + at];
        w->n_out[i] = at < 0 ? 1 : c->out.d[2 + at];
        w->k[i] = at < 0 ? 1 : c->i[W_K + at];
        w->s[i] = at < 0 ? 1 : c->i[W_S + at];
        w->p[i] = at < 0 ? 0 : c->i[W_P + at];
        w->d[i] = at < 0 ? 1 : c->i[W_D + at];
    }
}

/* Index along one dimension of the wide side (what padding surrounds) from the narrow side's and the tap. */
static int wide(const struct conv_walk *w, int i, int narrow, int tap)
{
    return narrow * w->s[i] + tap * w->d[i] - w->p[i];
}

struct planes {
    const double *x, *w; /* one input plane, one kernel */
    double *y;           /* one output plane */
};

/* Adds one (input channel, output channel) pair. The narrow side is the output, of a transposed convolution the
 * input. */
static void add_plane(const struct conv_walk *w, const struct planes *p, bool back)
{
    const int *narrow = back ? w->n_in : w->n_out, *broad = back ? w->n_out : w->n_in;

    for (int a = 0; a < narrow[0] * narrow[1] * narrow[2]; a++)
        for (int t = 0; t < w->k[0] * w->k[1] * w->k[2]; t++) {
            int z = wide(w, 0, a / narrow[2] / narrow[1], t / w->k[2] / w->k[1]);
            int y = wide(w, 1, a / narrow[2] % narrow[1], t / w->k[2] % w->k[1]);
            int x = wide(w, 2, a % narrow[2], t % w->k[2]), b = (z * broad[1] + y) * broad[2] + x;
            if (z < 0 || y < 0 || x < 0 || z >= broad[0] || y >= broad[1] || x >= broad[2])
                continue;
            p->y[back ? b : a] += p->x[back ? a : b] * p->w[t];
        }
}

/* The convolution, or the transposed one, in doubles: out (N, co, ..). */
static void ref_conv(const struct op_call *c, const double *const in[], double *out)
{
    int ci = c->in[0].d[1], co = c->out.d[1], g = c->i[W_GROUPS], ig = ci / g, og = co / g;
    struct conv_walk w;
    int nx, ny, nw;

    walk_open(c, &w);
    nx = w.n_in[0] * w.n_in[1] * w.n_in[2], ny = w.n_out[0] * w.n_out[1] * w.n_out[2], nw = w.k[0] * w.k[1] * w.k[2];
    for (int n = 0; n < c->in[0].d[0]; n++)
        for (int o = 0; o < co; o++) {
            double *y = out + ((int64_t)n * co + o) * ny;
            for (int i = 0; i < ny; i++)
                y[i] = c->i[W_BIAS] ? in[2][o] : 0;
            for (int i = 0; i < ig; i++) {
                int q = o / og * ig + i, weight = transposed(c) ? q * og + o % og : o * ig + i;
                struct planes p = {in[0] + ((int64_t)n * ci + q) * nx, in[1] + (int64_t)weight * nw, y};
                add_plane(&w, &p, transposed(c));
            }
        }
}

/* ---- the loop nest ---- */

/* Appends the guard and the index of spatial dimension i. */
static void input_index(const struct op_call *c, int i, char guard[1600], char index[512])
{
    int f = window_first(c->i[W_ND]) + i, s = c->i[W_S + i], p = c->i[W_P + i], d = c->i[W_D + i], n = c->in[0].d[2 +
        i];
    const char *o = window_out[f], *t = window_tap[f];
    char at[96], g[400];

    if (transposed(c)) {
        snprintf(at, sizeof at, "(%s + %d - %s * %d)", o, p, t, d);
        snprintf(g, sizeof g, "%s >= 0 && %s %% %d == 0 && %s / %d < %d", at, at, s, at, s, n);
        sprintf(index + strlen(index), ", %s / %d", at, s);
    } else {
        snprintf(at, sizeof at, "%s * %d + %s * %d - %d", o, s, t, d, p);
        snprintf(g, sizeof g, "%s >= 0 && %s < %d", at, at, n);
        sprintf(index + strlen(index), ", %s", at);
    }
    if (strlen(guard) + strlen(g) < 1590)
        sprintf(guard + strlen(guard), "%s%s", *guard ? " && " : "", g);
}

/* Adds the dimensions of groups, images, output pixels and channels to the nest. */
static void conv_dims(const struct op_call *c, struct nest *k)
{
    int nd = c->i[W_ND], g = c->i[W_GROUPS];

    if (g > 1)
        nest_dim(k, 0, g, "g");
    nest_dim(k, 1, c->in[0].d[0], "im");
    for (int i = 0; i < nd; i++)
        nest_dim(k, 1, c->out.d[2 + i], "%s", window_out[window_first(nd) + i]);
    nest_dim(k, 2, c->out.d[1] / g, "oc");
    nest_dim(k, 3, c->in[0].d[1] / g, "ic");
    for (int i = 0; i < nd; i++)
        nest_dim(k, 3, c->i[W_K + i], "%s", window_tap[window_first(nd) + i]);
}

/* The call as a loop nest. */
static void lower_conv(const struct op_call *c, struct nest *k)
{
    int nd = c->i[W_ND], g = c->i[W_GROUPS], ig = c->in[0].d[1] / g, og = c->out.d[1] / g;
    char guard[1600] = "", index[512] = "", tap[64] = "", place[64] = "", ci[48], co[48];

    conv_dims(c, k);
    for (int i = 0; i < nd; i++) {
        input_index(c, i, guard, index);
        sprintf(tap + strlen(tap), ", %s", window_tap[window_first(nd) + i]);
        sprintf(place + strlen(place), ", %s", window_out[window_first(nd) + i]);
    }
    snprintf(ci, sizeof ci, g > 1 ? "g * %d + ic" : "ic", ig);
    snprintf(co, sizeof co, g > 1 ? "g * %d + oc" : "oc", og);
    k->a = nest_expr(k, "%s ? L0(im, %s%s) : 0.0f", guard, ci, index);
    k->b = nest_expr(k, "L1(%s, %s%s)", transposed(c) ? ci : co, transposed(c) ? "oc" : "ic", tap);
    nest_stat(k, C_SUM, ax_bin(k->arena, "*", k->a, k->b), NULL);
    if (c->i[W_BIAS])
        k->out = nest_expr(k, "s0 + L2(%s)", co);
    snprintf(guard, sizeof guard, "im, %s%s", co, place);
    nest_store(k, guard);
}

/* Appends what a $key of the spelling stands for. False: it is another's key. */
static bool key_conv(const struct op_call *c, const char *key, struct buf *out)
{
    if (!strcmp(key, "cin"))
        buf_addf(out, "%d", c->in[0].d[1]);
    else if (!strcmp(key, "cout"))
        buf_addf(out, "%d", c->out.d[1]);
    else if (!strcmp(key, "op"))
        text_tuple(c->i + W_OPAD, c->i[W_ND], out);
    else if (!strcmp(key, "nd"))
        buf_addf(out, "%d", c->i[W_ND]);
    else if (!strcmp(key, "bias"))
        buf_adds(out, c->i[W_BIAS] ? "True" : "False");
    else
        return window_key(c, key, out);
    return true;
}

#define CONV(NAME, RANK, MODULE) \
    {.name = NAME, .family = "convolution", .class = NEST_CONTRACT, .ranks = 1u << RANK, .n_params = 2, \
     .param = {"weight", "bias"}, .draw = draw_conv, .shape = shape_conv, .ref = ref_conv, .lower = lower_conv, \
         .key = key_conv, \
     .about = "the convolution", .spell = {{MODULE, "$m($0)"}}}
#define FORWARD(ND) "nn.Conv" ND "d($cin, $cout, $k, stride=$s, padding=$p, dilation=$d, groups=$i13, bias=$bias)"
#define BACKWARD(ND) \
    "nn.ConvTranspose" ND "d($cin, $cout, $k, stride=$s, padding=$p, output_padding=$op, groups=$i13, bias=$bias, " \
        "dilation=$d)"

const struct opdef conv_ops[] = {
    CONV("conv1d", 3, FORWARD("1")), CONV("conv2d", 4, FORWARD("2")), CONV("conv3d", 5, FORWARD("3")),
    CONV("conv_transpose1d", 3, BACKWARD("1")), CONV("conv_transpose2d", 4, BACKWARD("2")),
    CONV("conv_transpose3d", 5, BACKWARD("3")), {0}};
