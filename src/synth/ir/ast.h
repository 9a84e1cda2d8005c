/* ast.h - a small tree for CUDA C: what schedules write, styles print, mutations edit, and texts are derived from.
 *
 * Schedules are written as text with holes; the expanded text is parsed here, so that one tree is the only source of
 * everything that follows. The same expression nodes are the loop IR's expressions (nest.h): there a call "L2(i, j)" is
 * a load of operand 2. Nodes live in the caller's arena; strings too.
 *
 * The grammar is the part of CUDA C++ that kernels and their host functions use: functions, declarations with one
 * declarator, for, while, if, return, break, continue, blocks, launches "k<<<grid, block>>>(x)", comments, '#' lines.
 * "@word" in front of a statement gives it a role: what the line is for ("guard", "sync"), printed nowhere. */
#ifndef MC_SYNTH_AST_H
#define MC_SYNTH_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

enum ax_kind {
    AX_ID,     /* s */
    AX_INT,    /* i */
    AX_FLOAT,  /* f; printed with 'f' */
    AX_STR,    /* s, quotes included */
    AX_UNARY,  /* s is the operator, "x++" is "p++" */
    AX_BINARY, /* s; assignments too */
    AX_COND,   /* kid[0] ? kid[1] : kid[2] */
    AX_CALL,   /* kid[0](kid[1..]) */
    AX_INDEX,  /* kid[0][kid[1]] */
    AX_MEMBER, /* kid[0] s name, s is ".x" or "->x" */
    AX_CAST,   /* (s)kid[0] */
    AX_LIST,   /* {kid..} */
    AX_LAUNCH, /* kid[0]<<<kid[1..i]>>>(kid[i+1..]) */
    AX_LOAD    /* IR only: operand i at index kid[..]; ext */
};

/* Of a load, per index: the extent of the (collapsed) dimension and the tensor's dimensions that it spans. */
struct ext {
    int n;
    int8_t from, to; /* inclusive */
};

struct ax {
    enum ax_kind kind;
    bool let; /* IR: an operator's result, which deserves a name of its own */
    int n;
    long long i;
    double f;
    const char *s;
    struct ax **kid;
    struct ext *ext;
};

enum as_kind { AS_DECL, AS_EXPR, AS_IF, AS_FOR, AS_WHILE, AS_BLOCK, AS_RETURN, AS_BREAK, AS_CONTINUE, AS_COMMENT,
    AS_HASH };

struct as {
    enum as_kind kind;
    const char *role;       /* NULL, or the word behind '@' */
    const char *type, *s;   /* DECL: type and name; COMMENT, HASH: text */
    struct ax *e, *e2;      /* DECL: init; EXPR, RETURN: value; IF, WHILE, FOR: condition; FOR: e2 is the step */
    struct ax **dim;        /* DECL: array extents; dim[k] NULL: "[]" */
    int n_dim;
    bool parens;            /* DECL: "dim3 grid(a, b)": e is a LIST */
    struct as *init;        /* FOR */
    struct as *body, *other; /* lists */
    struct as *next;
};

struct param {
    const char *type, *name;
};

/* A function, or a line outside of functions (name NULL: 'line' holds it). */
struct afun {
    const char *type, *name; /* "__global__ void", "k" */
    struct param *param;
    int n_param;
    struct as *body;
    struct as *line;
    struct afun *next;
};

/* Both fail with the place in the text: they parse our own templates, so a failure is a bug of ours. */
struct afun *ast_parse(struct arena *a, const char *text, struct err *e);
struct ax *ax_parse(struct arena *a, const char *text); /* aborts with a message on stderr: rows are constants */

/* Removes declarations that nothing reads, and trivial arithmetic; f may be NULL. */
void ast_tidy(struct afun *f);

struct ax *ax_new(struct arena *a, enum ax_kind kind, const char *s, int n);
struct ax *ax_int(struct arena *a, long long i);
struct ax *ax_id(struct arena *a, const char *s);
struct ax *ax_bin(struct arena *a, const char *op, struct ax *x, struct ax *y);
/* Deep copy; nodes that were shared stay shared within one copy. */
struct afun *ast_clone(struct arena *a, const struct afun *f);

bool ax_is_id(const struct ax *x, const char *s);
bool ax_uses(const struct ax *x, const char *id);
bool ax_uses_outside(const struct ax *x, const char *id); /* outside of loads: a value that depends on the place */

/* How a tree is printed; all zero is the plain style. */
struct ast_style {
    int indent;        /* 0: 4 */
    bool own_line;     /* opening braces on a line of their own */
    bool always_brace; /* also around single statements */
    bool star_right;   /* "float *x" */
    bool post_inc;     /* "i++" */
    bool bare;         /* no comments */
};
void ast_style_draw(struct rng *r, struct ast_style *ret);
void ast_print(const struct afun *f, const struct ast_style *s, struct buf *out);
void ax_print(const struct ax *x, const struct ast_style *s, struct buf *out); /* appends; s NULL: the plain style */
void as_print(const struct as *x, int depth, const struct ast_style *s, struct buf *out); /* the statement alone */

#endif
