/* op.h - an operator is one row: how to draw it, its shape rule, its fp64 meaning, how people write it in PyTorch, and
 * how it becomes a loop nest. A file of ops/ ends with a table of rows named after the file; the build collects them.
 *
 * What a row may rely on: tensors are dense and row-major, in[0] is the main operand, statically known shapes.
 * docs/internals/synth.md shows how to add one. */
#ifndef MC_SYNTH_OP_H
#define MC_SYNTH_OP_H

#include "base/err.h"
#include "base/rng.h"
#include "synth/ir/nest.h"

#define OP_INPUTS 5
#define OP_INTS 20
#define OP_REALS 4
#define OP_SPELLINGS 5

struct opdef;

/* One use of an operator: tensors and attributes. */
struct op_call {
    const struct opdef *op;
    uint8_t n_in;
    struct tdesc in[OP_INPUTS], out;
    int32_t i[OP_INTS]; /* the row says what they mean */
    int32_t below[OP_INPUTS]; /* int64 operands that are indices: values are 0 to below - 1; 0: any */
    double f[OP_REALS];
};

/* What a draw may use. */
struct op_limits {
    int max_numel;     /* of each tensor */
    int64_t max_work;  /* of multiply-adds, or elements visited */
    unsigned dtypes;   /* mask of enum dtype for floating operands */
    bool nice;         /* constants from a short list */
};

/* What values may be; inputs reach VALUE_RANGE (the judge's regimes: ramps run to 250). */
struct op_interval {
    double lo, hi;
};
#define VALUE_RANGE 260.0

enum range_rule {
    RANGE_FREE,     /* unknown, may be as large as the reduction makes it; 'range' may say more */
    RANGE_SAME,     /* within the hull of the operands and 0 */
    RANGE_MONOTONE, /* elementwise and monotone: the ends' images */
    RANGE_UNIT,     /* -1..1 */
    RANGE_POSITIVE_UNIT, /* 0..1 */
    RANGE_INDEX
};

/* "nn.ReLU()" and "$m($0)"; init NULL: no module. $0.. operands, $i0 $f0 $b0 attributes (int, float, bool), else
 * key(). */
struct spelling {
    const char *init, *call;
};

struct opdef {
    const char *name, *family;
    enum nest_class class;
    unsigned ranks;   /* mask: bit r is set if in[0] may have r dimensions */
    uint8_t n_params; /* the last n inputs are parameters when a module is spelled */
    const char *param[3]; /* their names in the module: "weight", "bias" */
    struct op_interval domain; /* values that operand 0 may have; {0, 0}: any */
    enum range_rule range;
    bool takes_ints;      /* also works on int64 */
    bool no_halves;       /* fp32 only */
    bool commutes;
    /* Draws attributes and further operands for in[0]; false if in[0] does not suit. */
    bool (*draw)(struct rng *r, const struct op_limits *l, struct op_call *c);
    bool (*shape)(struct op_call *c); /* sets out; false where PyTorch would raise */
    /* The operator's meaning in double precision: the operands' values to out, which has room for the output's. */
    void (*ref)(const struct op_call *c, const double *const in[], double *out);
    /* Fills k, whose class and arena are set: dimensions, statistics, the store. */
    void (*lower)(const struct op_call *c, struct nest *k);
    struct spelling spell[OP_SPELLINGS];
    /* further words of spellings; may be NULL */
    bool (*key)(const struct op_call *c, const char *key, struct buf *out);
    /* Elementwise rows: the expression over x, y, z, $f0.., and its meaning; draw, shape, ref, lower may then be
     * shared. */
    const char *expr;
    double (*f)(const double *x, const struct op_call *c);
    const char *about; /* what it does, in the words of a comment */
};

/* All operators, by name. */
extern const struct opdef *const *op_rows(int *n);
const struct opdef *op_find_row(const char *name); /* NULL if there is none */
/* One byte for each of op_rows(): 1 where the comma-separated list names the operator or its family; NULL or "all":
 * all. Caller frees. NULL with ERR_INPUT for a word that is neither; the nearest one is named. */
uint8_t *op_select(const char *list, struct err *e);

/* A whole call from nothing: draws in[0] too. false after 500 tries without one. */
bool op_draw(const struct opdef *op, struct rng *r, const struct op_limits *l, struct op_call *ret);
/* Draws the rest for a given in[0]. */
bool op_draw_on(const struct opdef *op, struct rng *r, const struct op_limits *l, const struct tdesc *x,
                struct op_call *ret);
void op_lower(const struct op_call *c, struct arena *a, struct nest *ret); /* lower(), simplified and labelled */
/* Expands one spelling's text; names[i]: how operand i is written; module: "self.act". */
void op_spell(const struct op_call *c, const char *text, const char *const names[], const char *module,
              struct buf *out);
void op_signature(const struct op_call *c, struct buf *out); /* "conv2d f32(2,3,8,8) f32(4,3,3,3) | i=1,1,.." */

/* ---- what rows share ---- */
/* In [0, n), n below 2^32; off uniform by at most n / 2^32, which draws of graphs can bear for the speed of a
 * multiplication. */
static inline uint64_t draw_below(struct rng *r, uint64_t n)
{
    return (rng_u64(r) >> 32) * n >> 32;
}

int draw_dim(struct rng *r, int max);                 /* sizes as people and adversaries choose them, at least 1 */
void draw_shape(struct rng *r, int rank, int max_numel, struct tdesc *t);
double draw_constant(struct rng *r, const struct op_limits *l, double lo, double hi);
int draw_pick(struct rng *r, const int *v, int n);
bool shape_broadcast(struct op_call *c);              /* out = broadcast of all inputs */
extern const char *const output_names[5][TENSOR_RANK]; /* by rank: names of output dimensions, e.g. n c h w */
/* "(3, 5)" or "3" */
void text_tuple(const int32_t *v, int n, struct buf *out);

#endif
