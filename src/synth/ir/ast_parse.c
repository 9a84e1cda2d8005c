/* ast_parse.c - the parser of ast.h: one function a grammar production, binary operators by a table of precedences. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/ir/ast.h"

enum tok { T_END, T_ID, T_INT, T_FLOAT, T_STR, T_OP, T_COMMENT, T_HASH, T_ROLE };

struct parser {
    struct arena *a;
    const char *text, *p; /* p: behind the current token */
    const char *at;       /* the current token's first byte */
    enum tok tok;
    char s[4096];
    bool failed;
};

static const char *const operators[] = {"<<<", ">>>", "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=",
                                        "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", "++", "--", "->", "::"};

static void fail(struct parser *q, const char *what)
{
    if (!q->failed)
        snprintf(q->s, sizeof q->s, "%s at '%.60s'", what, q->at);
    q->failed = true;
    q->tok = T_END;
}

static void take(struct parser *q, size_t n)
{
    if (n >= sizeof q->s)
        n = sizeof q->s - 1;
    memcpy(q->s, q->at, n);
    q->s[n] = 0;
}

/* "data_ptr<float>(" and "std::vector<int64_t>(": the type argument belongs to the name. */
static const char *template_end(const char *p)
{
    const char *e = p + 1;

    if (*p != '<' || p[1] == '<')
        return NULL;
    while (isalnum((unsigned char)*e) || strchr("_: *", *e ? *e : '#'))
        e++;
    return *e == '>' && (e[1] == '(' || e[1] == ' ') && e[1] != '>' && !isspace((unsigned char)p[1]) ? e + 1 : NULL;
}

static void lex_word(struct parser *q)
{
    const char *e = q->at, *t;

    while (isalnum((unsigned char)*e) || *e == '_' || (e[0] == ':' && e[1] == ':' && ++e))
        e++;
    t = template_end(e);
    q->p = t ? t : e;
    take(q, (size_t)(q->p - q->at));
    q->tok = T_ID;
}

static void lex_number(struct parser *q)
{
    char *e, *g;

    strtod(q->at, &e);
    strtoll(q->at, &g, 0);
    q->tok = g < e || *e == 'f' ? T_FLOAT : T_INT;
    if (g > e)
        e = g;
    take(q, (size_t)(e - q->at));
    while (*e == 'f' || *e == 'u' || *e == 'U' || *e == 'L')
        e++;
    q->p = e;
}

static void lex_operator(struct parser *q)
{
    size_t n = 1;

    for (size_t i = 0; i < sizeof operators / sizeof *operators && n == 1; i++)
        if (!strncmp(q->at, operators[i], strlen(operators[i])))
            n = strlen(operators[i]);
    q->p = q->at + n;
    take(q, n);
    q->tok = T_OP;
}

static void lex_line(struct parser *q, enum tok tok, size_t skip)
{
    const char *e = strchr(q->at, '\n');

    q->p = e ? e : q->at + strlen(q->at);
    q->at += skip;
    take(q, (size_t)(q->p - q->at));
    q->tok = tok;
}

static void next(struct parser *q)
{
    if (q->failed)
        return;
    while (isspace((unsigned char)*q->p))
        q->p++;
    q->at = q->p;
    if (!*q->at)
        q->tok = T_END, q->s[0] = 0;
    else if (*q->at == '#')
        lex_line(q, T_HASH, 0);
    else if (q->at[0] == '/' && q->at[1] == '/')
        lex_line(q, T_COMMENT, 3);
    else if (*q->at == '@') {
        q->at++;
        lex_word(q);
        q->tok = T_ROLE;
    } else if (*q->at == '"') {
        const char *e = strchr(q->at + 1, '"');
        q->p = e ? e + 1 : q->at + 1;
        take(q, (size_t)(q->p - q->at));
        q->tok = T_STR;
    } else if (isalpha((unsigned char)*q->at) || *q->at == '_')
        lex_word(q);
    else if (isdigit((unsigned char)*q->at) || (*q->at == '.' && isdigit((unsigned char)q->at[1])))
        lex_number(q);
    else
        lex_operator(q);
}

static bool is(const struct parser *q, const char *s)
{
    return (q->tok == T_OP || q->tok == T_ID) && !strcmp(q->s, s);
}

static bool accept(struct parser *q, const char *s)
{
    if (!is(q, s))
        return false;
    next(q);
    return true;
}

static void expect(struct parser *q, const char *s)
{
    char what[64];

    snprintf(what, sizeof what, "'%s' wanted", s);
    if (!accept(q, s))
        fail(q, what);
}

/* ---- nodes ---- */

struct ax *ax_new(struct arena *a, enum ax_kind kind, const char *s, int n)
{
    struct ax *x = arena_alloc(a, sizeof *x);

    x->kind = kind;
    x->s = s;
    x->n = n;
    x->kid = n ? arena_alloc(a, sizeof *x->kid * (size_t)n) : NULL;
    return x;
}

struct ax *ax_int(struct arena *a, long long i)
{
    struct ax *x = ax_new(a, AX_INT, NULL, 0);

    x->i = i;
    return x;
}

struct ax *ax_id(struct arena *a, const char *s)
{
    return ax_new(a, AX_ID, arena_strdup(a, s), 0);
}

struct ax *ax_bin(struct arena *a, const char *op, struct ax *x, struct ax *y)
{
    struct ax *b = ax_new(a, AX_BINARY, op, 2);

    b->kid[0] = x;
    b->kid[1] = y;
    return b;
}

static struct ax *ax_one(struct parser *q, enum ax_kind kind, const char *s, struct ax *x)
{
    struct ax *u = ax_new(q->a, kind, arena_strdup(q->a, s), 1);

    u->kid[0] = x;
    return u;
}

/* ---- expressions ---- */

static struct ax *expression(struct parser *q, int level);
static struct ax *unary(struct parser *q);

#define LIST_MAX 64

/* Values up to the closing token, which is eaten; head is put in front if it is not NULL. */
static struct ax *list(struct parser *q, enum ax_kind kind, struct ax *head, const char *close)
{
    struct ax *v[LIST_MAX], *x;
    int n = 0;

    if (head)
        v[n++] = head;
    while (!is(q, close) && !q->failed && n < LIST_MAX) {
        v[n++] = expression(q, 1);
        if (!is(q, close))
            expect(q, ",");
    }
    expect(q, close);
    x = ax_new(q->a, kind, NULL, n);
    if (n > 0)
        memcpy(x->kid, v, sizeof *v * (size_t)n);
    return x;
}

static struct ax *launch(struct parser *q, struct ax *kernel)
{
    struct ax *conf = list(q, AX_LIST, kernel, ">>>"), *args, *x;

    expect(q, "(");
    args = list(q, AX_LIST, NULL, ")");
    x = ax_new(q->a, AX_LAUNCH, NULL, conf->n + args->n);
    x->i = conf->n - 1;
    memcpy(x->kid, conf->kid, sizeof *x->kid * (size_t)conf->n);
    if (args->n)
        memcpy(x->kid + conf->n, args->kid, sizeof *x->kid * (size_t)args->n);
    return x;
}

/* "L2(i, j)" is a load; its extents are filled in by nest.c. */
static struct ax *call(struct parser *q, struct ax *f)
{
    struct ax *x;

    if (f->kind == AX_ID && f->s[0] == 'L' && isdigit((unsigned char)f->s[1]) && !f->s[2]) {
        x = list(q, AX_LOAD, NULL, ")");
        x->i = f->s[1] - '0';
        return x;
    }
    return list(q, AX_CALL, f, ")");
}

static struct ax *postfix(struct parser *q, struct ax *x)
{
    for (;;) {
        if (accept(q, "(")) {
            x = call(q, x);
        } else if (accept(q, "[")) {
            struct ax *y = ax_new(q->a, AX_INDEX, NULL, 2);
            y->kid[0] = x;
            y->kid[1] = expression(q, 0);
            expect(q, "]");
            x = y;
        } else if (is(q, ".") || is(q, "->")) {
            char s[300];
            int n = snprintf(s, sizeof s, "%.2s", q->s);
            next(q);
            snprintf(s + n, sizeof s - (size_t)n, "%.250s", q->s);
            next(q);
            x = ax_one(q, AX_MEMBER, s, x);
        } else if (is(q, "++") || is(q, "--")) {
            x = ax_one(q, AX_UNARY, is(q, "++") ? "p++" : "p--", x);
            next(q);
        } else if (accept(q, "<<<")) {
            x = launch(q, x);
        } else {
            return x;
        }
    }
}

static const char *const type_words[] = {"const", "int", "float", "double", "bool", "unsigned", "long", "char",
    "void", "half",
    "__half", "auto", "float4", "float2", "int4", "int64_t", "size_t", "extern", "static", "constexpr", "dim3",
        "__shared__",
    "torch::Tensor", "at::Half", "at::BFloat16", "__global__", "__device__", "__forceinline__", "inline",
        "__restrict__",
    "int32_t", "uint32_t", "__launch_bounds__", "volatile", "__constant__", "__host__"};

static bool is_type(const struct parser *q)
{
    if (q->tok != T_ID)
        return false;
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++)
        if (!strcmp(q->s, type_words[i]))
            return true;
    return false;
}

/* Type words and stars up to the declared name. */
static const char *type(struct parser *q)
{
    char s[256] = "";

    while (is_type(q) || is(q, "*") || is(q, "&")) {
        if (*s && !is(q, "*") && !is(q, "&"))
            strncat(s, " ", sizeof s - strlen(s) - 1);
        strncat(s, q->s, sizeof s - strlen(s) - 1);
        next(q);
        if (!strcmp(s + (strlen(s) > 17 ? strlen(s) - 17 : 0), "__launch_bounds__")) {
            expect(q, "(");
            strncat(s, "(", sizeof s - strlen(s) - 1);
            strncat(s, q->s, sizeof s - strlen(s) - 1);
            strncat(s, ")", sizeof s - strlen(s) - 1);
            next(q);
            expect(q, ")");
        }
    }
    return arena_strdup(q->a, s);
}

static struct ax *primary(struct parser *q)
{
    struct ax *x;

    if (q->tok == T_INT || q->tok == T_FLOAT) {
        x = ax_new(q->a, q->tok == T_INT ? AX_INT : AX_FLOAT, NULL, 0);
        x->i = strtoll(q->s, NULL, 0);
        x->f = strtod(q->s, NULL);
        next(q);
        return x;
    }
    if (q->tok == T_ID || q->tok == T_STR) {
        x = ax_new(q->a, q->tok == T_ID ? AX_ID : AX_STR, arena_strdup(q->a, q->s), 0);
        next(q);
        return x;
    }
    if (accept(q, "{"))
        return list(q, AX_LIST, NULL, "}");
    expect(q, "(");
    if (is_type(q)) {
        const char *t = type(q);
        if (accept(q, ")"))
            return ax_one(q, AX_CAST, t, unary(q));
        fail(q, "')' behind the type of a cast wanted");
    }
    x = expression(q, 0);
    expect(q, ")");
    return x;
}

static struct ax *unary(struct parser *q)
{
    static const char *const ops[] = {"-", "!", "~", "&", "*", "++", "--"};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (is(q, ops[i])) {
            next(q);
            return ax_one(q, AX_UNARY, ops[i], unary(q));
        }
    if (q->failed)
        return ax_int(q->a, 0);
    return postfix(q, primary(q));
}

/* Levels: 0 comma-free top with assignment, 1 the same, 2 conditional, 3.. binary. */
static const char *const levels[][6] = {
    {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"}, {"+", "-"}, {"*", "/",
        "%"}};
#define N_LEVELS (int)(sizeof levels / sizeof *levels)

static struct ax *binary(struct parser *q, int level)
{
    struct ax *x;

    if (level == N_LEVELS)
        return unary(q);
    x = binary(q, level + 1);
    for (int k = 0; k < 6 && levels[level][k];)
        if (is(q, levels[level][k])) {
            const char *op = levels[level][k];
            next(q);
            x = ax_bin(q->a, op, x, binary(q, level + 1));
            k = 0;
        } else {
            k++;
        }
    return x;
}

static struct ax *expression(struct parser *q, int level)
{
    static const char *const assigns[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
    struct ax *x = binary(q, 0), *y;

    (void)level;
    if (accept(q, "?")) {
        y = ax_new(q->a, AX_COND, NULL, 3);
        y->kid[0] = x;
        y->kid[1] = expression(q, 2);
        expect(q, ":");
        y->kid[2] = expression(q, 2);
        return y;
    }
    for (size_t i = 0; i < sizeof assigns / sizeof *assigns; i++)
        if (is(q, assigns[i])) {
            next(q);
            return ax_bin(q->a, assigns[i], x, expression(q, 1));
        }
    return x;
}

/* ---- statements ---- */

static struct as *statement(struct parser *q);

static struct as *as_new(struct parser *q, enum as_kind kind)
{
    struct as *x = arena_alloc(q->a, sizeof *x);

    x->kind = kind;
    return x;
}

static struct as *statements(struct parser *q)
{
    struct as *first = NULL, **end = &first;

    while (!is(q, "}") && q->tok != T_END && !q->failed) {
        *end = statement(q);
        while (*end)
            end = &(*end)->next;
    }
    return first;
}

/* A block's statements, or one statement. */
static struct as *body(struct parser *q)
{
    struct as *x;

    if (!accept(q, "{"))
        return statement(q);
    x = statements(q);
    expect(q, "}");
    return x;
}

static struct as *declaration(struct parser *q)
{
    struct as *x = as_new(q, AS_DECL);
    struct ax *dim[6];

    x->type = type(q);
    x->s = arena_strdup(q->a, q->s);
    next(q);
    while (accept(q, "[")) {
        dim[x->n_dim++ % 6] = is(q, "]") ? NULL : expression(q, 0);
        expect(q, "]");
    }
    x->dim = arena_alloc(q->a, sizeof dim);
    memcpy(x->dim, dim, sizeof *dim * (size_t)x->n_dim);
    if (accept(q, "("))
        x->parens = true, x->e = list(q, AX_LIST, NULL, ")");
    else if (accept(q, "="))
        x->e = expression(q, 0);
    return x;
}

static struct as *simple(struct parser *q)
{
    struct as *x;

    if (is_type(q))
        return declaration(q);
    x = as_new(q, AS_EXPR);
    x->e = expression(q, 0);
    return x;
}

static struct as *for_loop(struct parser *q)
{
    struct as *x = as_new(q, AS_FOR);

    expect(q, "(");
    x->init = is(q, ";") ? NULL : simple(q);
    expect(q, ";");
    x->e = is(q, ";") ? NULL : expression(q, 0);
    expect(q, ";");
    x->e2 = is(q, ")") ? NULL : expression(q, 0);
    expect(q, ")");
    x->body = body(q);
    return x;
}

static struct as *condition(struct parser *q, enum as_kind kind)
{
    struct as *x = as_new(q, kind);

    expect(q, "(");
    x->e = expression(q, 0);
    expect(q, ")");
    x->body = body(q);
    if (kind == AS_IF && accept(q, "else"))
        x->other = body(q);
    return x;
}

static struct as *line(struct parser *q, enum as_kind kind)
{
    struct as *x = as_new(q, kind);

    x->s = arena_strdup(q->a, q->s);
    next(q);
    return x;
}

static struct as *word(struct parser *q, enum as_kind kind)
{
    struct as *x = as_new(q, kind);

    if (kind == AS_RETURN && !is(q, ";"))
        x->e = expression(q, 0);
    expect(q, ";");
    return x;
}

static struct as *plain_statement(struct parser *q)
{
    struct as *x;

    if (q->tok == T_COMMENT || q->tok == T_HASH)
        return line(q, q->tok == T_COMMENT ? AS_COMMENT : AS_HASH);
    if (accept(q, "for"))
        return for_loop(q);
    if (accept(q, "if"))
        return condition(q, AS_IF);
    if (accept(q, "while"))
        return condition(q, AS_WHILE);
    if (accept(q, "return"))
        return word(q, AS_RETURN);
    if (accept(q, "break"))
        return word(q, AS_BREAK);
    if (accept(q, "continue"))
        return word(q, AS_CONTINUE);
    if (accept(q, "{")) {
        x = as_new(q, AS_BLOCK);
        x->body = statements(q);
        expect(q, "}");
        return x;
    }
    if (accept(q, ";"))
        return NULL;
    x = simple(q);
    expect(q, ";");
    return x;
}

static struct as *statement(struct parser *q)
{
    const char *role = NULL;
    struct as *x;

    if (q->tok == T_ROLE) {
        role = arena_strdup(q->a, q->s);
        next(q);
    }
    x = plain_statement(q);
    if (x)
        x->role = role;
    return x;
}

/* ---- the file ---- */

static void parameters(struct parser *q, struct afun *f)
{
    struct param p[LIST_MAX];

    while (!is(q, ")") && !q->failed && f->n_param < LIST_MAX) {
        p[f->n_param].type = type(q);
        p[f->n_param++].name = arena_strdup(q->a, q->s);
        next(q);
        if (!is(q, ")"))
            expect(q, ",");
    }
    expect(q, ")");
    f->param = arena_alloc(q->a, sizeof *p * (size_t)(f->n_param + 1));
    memcpy(f->param, p, sizeof *p * (size_t)f->n_param);
}

static struct afun *item(struct parser *q)
{
    struct afun *f = arena_alloc(q->a, sizeof *f);
    const char *start = q->at;

    if (!is_type(q)) {
        f->line = statement(q);
        return f;
    }
    f->type = type(q);
    f->name = arena_strdup(q->a, q->s);
    next(q);
    if (!accept(q, "(")) { /* a declaration: read it once more as a statement */
        q->p = start;
        next(q);
        f->name = NULL;
        f->line = statement(q);
        return f;
    }
    parameters(q, f);
    expect(q, "{");
    f->body = statements(q);
    expect(q, "}");
    return f;
}

struct afun *ast_parse(struct arena *a, const char *text, struct err *e)
{
    struct parser q = {.a = a, .text = text, .p = text};
    struct afun *first = NULL, **end = &first;

    next(&q);
    while (q.tok != T_END) {
        *end = item(&q);
        end = &(*end)->next;
    }
    if (q.failed) {
        err_set(e, ERR_BUG, "a template does not parse: %s", q.s);
        return NULL;
    }
    return first;
}

struct ax *ax_parse(struct arena *a, const char *text)
{
    struct parser q = {.a = a, .text = text, .p = text};
    struct ax *x;

    next(&q);
    x = expression(&q, 0);
    if (!q.failed && q.tok != T_END)
        fail(&q, "more than one expression");
    if (q.failed) {
        fprintf(stderr, "musacoder: the expression '%s' does not parse: %s\n", text, q.s);
        abort();
    }
    return x;
}

/* ---- copies and questions ---- */

struct ax *ax_clone(struct arena *a, const struct ax *x)
{
    struct ax *y;

    if (!x)
        return NULL;
    y = arena_alloc(a, sizeof *y);
    *y = *x;
    y->kid = x->n ? arena_alloc(a, sizeof *y->kid * (size_t)x->n) : NULL;
    for (int i = 0; i < x->n; i++)
        y->kid[i] = ax_clone(a, x->kid[i]);
    return y;
}

static struct as *as_clone(struct arena *a, const struct as *x)
{
    struct as *y;

    if (!x)
        return NULL;
    y = arena_alloc(a, sizeof *y);
    *y = *x;
    y->e = ax_clone(a, x->e), y->e2 = ax_clone(a, x->e2);
    y->init = as_clone(a, x->init), y->body = as_clone(a, x->body), y->other = as_clone(a, x->other);
    y->next = as_clone(a, x->next);
    y->dim = x->n_dim ? arena_alloc(a, sizeof *y->dim * (size_t)x->n_dim) : NULL;
    for (int i = 0; i < x->n_dim; i++)
        y->dim[i] = ax_clone(a, x->dim[i]);
    return y;
}

struct afun *ast_clone(struct arena *a, const struct afun *f)
{
    struct afun *g;

    if (!f)
        return NULL;
    g = arena_alloc(a, sizeof *g);
    *g = *f;
    g->body = as_clone(a, f->body), g->line = as_clone(a, f->line);
    g->param = arena_alloc(a, sizeof *g->param * (size_t)(f->n_param + 1));
    if (f->n_param)
        memcpy(g->param, f->param, sizeof *g->param * (size_t)f->n_param);
    g->next = ast_clone(a, f->next);
    return g;
}

bool ax_is_id(const struct ax *x, const char *s)
{
    return x->kind == AX_ID && !strcmp(x->s, s);
}

bool ax_uses_outside(const struct ax *x, const char *id)
{
    if (ax_is_id(x, id))
        return true;
    for (int i = 0; x->kind != AX_LOAD && i < x->n; i++)
        if (ax_uses_outside(x->kid[i], id))
            return true;
    return false;
}

bool ax_uses(const struct ax *x, const char *id)
{
    if (ax_is_id(x, id))
        return true;
    for (int i = 0; i < x->n; i++)
        if (ax_uses(x->kid[i], id))
            return true;
    return false;
}
