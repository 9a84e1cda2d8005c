/* ast_parse.c - the parser of ast.h: one function a grammar production, binary operators by a table of precedences.
 * Each takes what it parses off q; a node that cannot be parsed sets q->failed. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/ir/ast.h"

enum ast_parse_tok { T_END, T_ID, T_INT, T_FLOAT, T_STR, T_OP, T_COMMENT, T_HASH, T_ROLE };

struct parser {
    struct arena *a;
    const char *text, *p; /* p: behind the current token */
    const char *at;       /* the current token's first byte */
    enum ast_parse_tok tok;
    char s[4096];
    bool failed;
};

static const char *const operators[] = {"<<<", ">>>", "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=",
                                        "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", "++", "--", "->", "::"};

/* Keeps the first mistake; parsing ends. */
static void ast_parse_fail(struct parser *q, const char *what)
{
    if (!q->failed)
        snprintf(q->s, sizeof q->s, "%s at '%.60s'", what, q->at);
    q->failed = true;
    q->tok = T_END;
}

/* Copies n letters of the token to q->s. */
static void ast_parse_take(struct parser *q, size_t n)
{
    if (n >= sizeof q->s)
        n = sizeof q->s - 1;
    memcpy(q->s, q->at, n);
    q->s[n] = 0;
}

/* "data_ptr<float>(" and "std::vector<int64_t>(": the type argument belongs to the name. */
static const char *ast_parse_template_end(const char *p)
{
    const char *e = p + 1;

    if (*p != '<' || p[1] == '<')
        return NULL;
    while (isalnum((unsigned char)*e) || strchr("_: *", *e ? *e : '#'))
        e++;
    return *e == '>' && (e[1] == '(' || e[1] == ' ') && e[1] != '>' && !isspace((unsigned char)p[1]) ? e + 1 : NULL;
}

/* Reads a name, with scopes and template arguments. */
static void ast_parse_lex_word(struct parser *q)
{
    const char *e = q->at, *t;

    while (isalnum((unsigned char)*e) || *e == '_' || (e[0] == ':' && e[1] == ':' && ++e))
        e++;
    t = ast_parse_template_end(e);
    q->p = t ? t : e;
    ast_parse_take(q, (size_t)(q->p - q->at));
    q->tok = T_ID;
}

/* Reads an integer or a float. */
static void ast_parse_lex_number(struct parser *q)
{
    char *e, *g;

    strtod(q->at, &e);
    strtoll(q->at, &g, 0);
    q->tok = g < e || *e == 'f' ? T_FLOAT : T_INT;
    if (g > e)
        e = g;
    ast_parse_take(q, (size_t)(e - q->at));
    while (*e == 'f' || *e == 'u' || *e == 'U' || *e == 'L')
        e++;
    q->p = e;
}

static void ast_parse_lex_operator(struct parser *q)
{
    size_t n = 1;

    for (size_t i = 0; i < sizeof operators / sizeof *operators && n == 1; i++)
        if (!strncmp(q->at, operators[i], strlen(operators[i])))
            n = strlen(operators[i]);
    q->p = q->at + n;
    ast_parse_take(q, n);
    q->tok = T_OP;
}

/* Reads the rest of the line, without its first letters. */
static void ast_parse_lex_line(struct parser *q, enum ast_parse_tok tok, size_t skip)
{
    const char *e = strchr(q->at, '\n');

    q->p = e ? e : q->at + strlen(q->at);
    q->at += skip;
    ast_parse_take(q, (size_t)(q->p - q->at));
    q->tok = tok;
}

/* Reads the next token into q->tok and q->s. */
static void ast_parse_next(struct parser *q)
{
    if (q->failed)
        return;
    while (isspace((unsigned char)*q->p))
        q->p++;
    q->at = q->p;
    if (!*q->at)
        q->tok = T_END, q->s[0] = 0;
    else if (*q->at == '#')
        ast_parse_lex_line(q, T_HASH, 0);
    else if (q->at[0] == '/' && q->at[1] == '/')
        ast_parse_lex_line(q, T_COMMENT, 3);
    else if (*q->at == '@') {
        q->at++;
        ast_parse_lex_word(q);
        q->tok = T_ROLE;
    } else if (*q->at == '"') {
        const char *e = strchr(q->at + 1, '"');
        q->p = e ? e + 1 : q->at + 1;
        ast_parse_take(q, (size_t)(q->p - q->at));
        q->tok = T_STR;
    } else if (isalpha((unsigned char)*q->at) || *q->at == '_')
        ast_parse_lex_word(q);
    else if (isdigit((unsigned char)*q->at) || (*q->at == '.' && isdigit((unsigned char)q->at[1])))
        ast_parse_lex_number(q);
    else
        ast_parse_lex_operator(q);
}

static bool ast_parse_is(const struct parser *q, const char *s)
{
    return (q->tok == T_OP || q->tok == T_ID) && !strcmp(q->s, s);
}

/* True where the token is s, which is then passed. */
static bool ast_parse_accept(struct parser *q, const char *s)
{
    if (!ast_parse_is(q, s))
        return false;
    ast_parse_next(q);
    return true;
}

/* Passes the token s; anything else is a mistake. */
static void ast_parse_expect(struct parser *q, const char *s)
{
    char what[64];

    snprintf(what, sizeof what, "'%s' wanted", s);
    if (!ast_parse_accept(q, s))
        ast_parse_fail(q, what);
}

/* ---- nodes ---- */

/* A node with n empty children in the arena. */
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

static struct ax *ast_parse_ax_one(struct parser *q, enum ax_kind kind, const char *s, struct ax *x)
{
    struct ax *u = ax_new(q->a, kind, arena_strdup(q->a, s), 1);

    u->kid[0] = x;
    return u;
}

/* ---- expressions ---- */

static struct ax *ast_parse_expression(struct parser *q, int level);
static struct ax *ast_parse_unary(struct parser *q);

#define LIST_MAX 64

/* Values up to the closing token, which is eaten; head is put in front if it is not NULL. */
static struct ax *ast_parse_list(struct parser *q, enum ax_kind kind, struct ax *head, const char *close)
{
    struct ax *v[LIST_MAX], *x;
    int n = 0;

    if (head)
        v[n++] = head;
    while (!ast_parse_is(q, close) && !q->failed && n < LIST_MAX) {
        v[n++] = ast_parse_expression(q, 1);
        if (!ast_parse_is(q, close))
            ast_parse_expect(q, ",");
    }
    ast_parse_expect(q, close);
    x = ax_new(q->a, kind, NULL, n);
    if (n > 0)
        memcpy(x->kid, v, sizeof *v * (size_t)n);
    return x;
}

/* Parses <<<..>>>(..) behind the kernel's name. */
static struct ax *ast_parse_launch(struct parser *q, struct ax *kernel)
{
    struct ax *conf = ast_parse_list(q, AX_LIST, kernel, ">>>"), *args, *x;

    ast_parse_expect(q, "(");
    args = ast_parse_list(q, AX_LIST, NULL, ")");
    x = ax_new(q->a, AX_LAUNCH, NULL, conf->n + args->n);
    x->i = conf->n - 1;
    memcpy(x->kid, conf->kid, sizeof *x->kid * (size_t)conf->n);
    if (args->n)
        memcpy(x->kid + conf->n, args->kid, sizeof *x->kid * (size_t)args->n);
    return x;
}

/* "L2(i, j)" is a load; its extents are filled in by nest.c. */
static struct ax *ast_parse_call(struct parser *q, struct ax *f)
{
    struct ax *x;

    if (f->kind == AX_ID && f->s[0] == 'L' && isdigit((unsigned char)f->s[1]) && !f->s[2]) {
        x = ast_parse_list(q, AX_LOAD, NULL, ")");
        x->i = f->s[1] - '0';
        return x;
    }
    return ast_parse_list(q, AX_CALL, f, ")");
}

/* Parses calls, indices and members behind x. */
static struct ax *ast_parse_postfix(struct parser *q, struct ax *x)
{
    for (;;) {
        if (ast_parse_accept(q, "(")) {
            x = ast_parse_call(q, x);
        } else if (ast_parse_accept(q, "[")) {
            struct ax *y = ax_new(q->a, AX_INDEX, NULL, 2);
            y->kid[0] = x;
            y->kid[1] = ast_parse_expression(q, 0);
            ast_parse_expect(q, "]");
            x = y;
        } else if (ast_parse_is(q, ".") || ast_parse_is(q, "->")) {
            char s[300];
            int n = snprintf(s, sizeof s, "%.2s", q->s);
            ast_parse_next(q);
            snprintf(s + n, sizeof s - (size_t)n, "%.250s", q->s);
            ast_parse_next(q);
            x = ast_parse_ax_one(q, AX_MEMBER, s, x);
        } else if (ast_parse_is(q, "++") || ast_parse_is(q, "--")) {
            x = ast_parse_ax_one(q, AX_UNARY, ast_parse_is(q, "++") ? "p++" : "p--", x);
            ast_parse_next(q);
        } else if (ast_parse_accept(q, "<<<")) {
            x = ast_parse_launch(q, x);
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

/* True where the token begins a type. */
static bool ast_parse_is_type(const struct parser *q)
{
    if (q->tok != T_ID)
        return false;
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++)
        if (!strcmp(q->s, type_words[i]))
            return true;
    return false;
}

/* Type words and stars up to the declared name. */
static const char *ast_parse_type(struct parser *q)
{
    char s[256] = "";

    while (ast_parse_is_type(q) || ast_parse_is(q, "*") || ast_parse_is(q, "&")) {
        if (*s && !ast_parse_is(q, "*") && !ast_parse_is(q, "&"))
            strncat(s, " ", sizeof s - strlen(s) - 1);
        strncat(s, q->s, sizeof s - strlen(s) - 1);
        ast_parse_next(q);
        if (!strcmp(s + (strlen(s) > 17 ? strlen(s) - 17 : 0), "__launch_bounds__")) {
            ast_parse_expect(q, "(");
            strncat(s, "(", sizeof s - strlen(s) - 1);
            strncat(s, q->s, sizeof s - strlen(s) - 1);
            strncat(s, ")", sizeof s - strlen(s) - 1);
            ast_parse_next(q);
            ast_parse_expect(q, ")");
        }
    }
    return arena_strdup(q->a, s);
}

/* Parses a number, a name, a text, or what stands in parentheses or braces. */
static struct ax *ast_parse_primary(struct parser *q)
{
    struct ax *x;

    if (q->tok == T_INT || q->tok == T_FLOAT) {
        x = ax_new(q->a, q->tok == T_INT ? AX_INT : AX_FLOAT, NULL, 0);
        x->i = strtoll(q->s, NULL, 0);
        x->f = strtod(q->s, NULL);
        ast_parse_next(q);
        return x;
    }
    if (q->tok == T_ID || q->tok == T_STR) {
        x = ax_new(q->a, q->tok == T_ID ? AX_ID : AX_STR, arena_strdup(q->a, q->s), 0);
        ast_parse_next(q);
        return x;
    }
    if (ast_parse_accept(q, "{"))
        return ast_parse_list(q, AX_LIST, NULL, "}");
    ast_parse_expect(q, "(");
    if (ast_parse_is_type(q)) {
        const char *t = ast_parse_type(q);
        if (ast_parse_accept(q, ")"))
            return ast_parse_ax_one(q, AX_CAST, t, ast_parse_unary(q));
        ast_parse_fail(q, "')' behind the type of a cast wanted");
    }
    x = ast_parse_expression(q, 0);
    ast_parse_expect(q, ")");
    return x;
}

static struct ax *ast_parse_unary(struct parser *q)
{
    static const char *const ops[] = {"-", "!", "~", "&", "*", "++", "--"};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ast_parse_is(q, ops[i])) {
            ast_parse_next(q);
            return ast_parse_ax_one(q, AX_UNARY, ops[i], ast_parse_unary(q));
        }
    if (q->failed)
        return ax_int(q->a, 0);
    return ast_parse_postfix(q, ast_parse_primary(q));
}

/* Levels: 0 comma-free top with assignment, 1 the same, 2 conditional, 3.. binary. */
static const char *const levels[][6] = {
    {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"}, {"+", "-"}, {"*", "/",
        "%"}};
#define N_LEVELS (int)(sizeof levels / sizeof *levels)

/* Parses operators of that level and those that bind more tightly, left to right. */
static struct ax *ast_parse_binary(struct parser *q, int level)
{
    struct ax *x;

    if (level == N_LEVELS)
        return ast_parse_unary(q);
    x = ast_parse_binary(q, level + 1);
    for (int k = 0; k < 6 && levels[level][k];)
        if (ast_parse_is(q, levels[level][k])) {
            const char *op = levels[level][k];
            ast_parse_next(q);
            x = ax_bin(q->a, op, x, ast_parse_binary(q, level + 1));
            k = 0;
        } else {
            k++;
        }
    return x;
}

/* Parses an expression with ?: and assignments. On a mistake q->failed is set. */
static struct ax *ast_parse_expression(struct parser *q, int level)
{
    static const char *const assigns[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
    struct ax *x = ast_parse_binary(q, 0), *y;

    (void)level;
    if (ast_parse_accept(q, "?")) {
        y = ax_new(q->a, AX_COND, NULL, 3);
        y->kid[0] = x;
        y->kid[1] = ast_parse_expression(q, 2);
        ast_parse_expect(q, ":");
        y->kid[2] = ast_parse_expression(q, 2);
        return y;
    }
    for (size_t i = 0; i < sizeof assigns / sizeof *assigns; i++)
        if (ast_parse_is(q, assigns[i])) {
            ast_parse_next(q);
            return ax_bin(q->a, assigns[i], x, ast_parse_expression(q, 1));
        }
    return x;
}

/* ---- statements ---- */

static struct as *ast_parse_statement(struct parser *q);

static struct as *ast_parse_as_new(struct parser *q, enum as_kind kind)
{
    struct as *x = arena_alloc(q->a, sizeof *x);

    x->kind = kind;
    return x;
}

/* Parses statements up to a closing brace. */
static struct as *ast_parse_statements(struct parser *q)
{
    struct as *first = NULL, **end = &first;

    while (!ast_parse_is(q, "}") && q->tok != T_END && !q->failed) {
        *end = ast_parse_statement(q);
        while (*end)
            end = &(*end)->next;
    }
    return first;
}

/* A block's statements, or one statement. */
static struct as *ast_parse_body(struct parser *q)
{
    struct as *x;

    if (!ast_parse_accept(q, "{"))
        return ast_parse_statement(q);
    x = ast_parse_statements(q);
    ast_parse_expect(q, "}");
    return x;
}

/* Parses TYPE NAME[DIM].. with an initial value or arguments, without the semicolon. */
static struct as *ast_parse_declaration(struct parser *q)
{
    struct as *x = ast_parse_as_new(q, AS_DECL);
    struct ax *dim[6];

    x->type = ast_parse_type(q);
    x->s = arena_strdup(q->a, q->s);
    ast_parse_next(q);
    while (ast_parse_accept(q, "[")) {
        dim[x->n_dim++ % 6] = ast_parse_is(q, "]") ? NULL : ast_parse_expression(q, 0);
        ast_parse_expect(q, "]");
    }
    x->dim = arena_alloc(q->a, sizeof dim);
    memcpy(x->dim, dim, sizeof *dim * (size_t)x->n_dim);
    if (ast_parse_accept(q, "("))
        x->parens = true, x->e = ast_parse_list(q, AX_LIST, NULL, ")");
    else if (ast_parse_accept(q, "="))
        x->e = ast_parse_expression(q, 0);
    return x;
}

/* Parses a declaration or an expression. */
static struct as *ast_parse_simple(struct parser *q)
{
    struct as *x;

    if (ast_parse_is_type(q))
        return ast_parse_declaration(q);
    x = ast_parse_as_new(q, AS_EXPR);
    x->e = ast_parse_expression(q, 0);
    return x;
}

static struct as *ast_parse_for_loop(struct parser *q)
{
    struct as *x = ast_parse_as_new(q, AS_FOR);

    ast_parse_expect(q, "(");
    x->init = ast_parse_is(q, ";") ? NULL : ast_parse_simple(q);
    ast_parse_expect(q, ";");
    x->e = ast_parse_is(q, ";") ? NULL : ast_parse_expression(q, 0);
    ast_parse_expect(q, ";");
    x->e2 = ast_parse_is(q, ")") ? NULL : ast_parse_expression(q, 0);
    ast_parse_expect(q, ")");
    x->body = ast_parse_body(q);
    return x;
}

static struct as *ast_parse_condition(struct parser *q, enum as_kind kind)
{
    struct as *x = ast_parse_as_new(q, kind);

    ast_parse_expect(q, "(");
    x->e = ast_parse_expression(q, 0);
    ast_parse_expect(q, ")");
    x->body = ast_parse_body(q);
    if (kind == AS_IF && ast_parse_accept(q, "else"))
        x->other = ast_parse_body(q);
    return x;
}

static struct as *ast_parse_line(struct parser *q, enum as_kind kind)
{
    struct as *x = ast_parse_as_new(q, kind);

    x->s = arena_strdup(q->a, q->s);
    ast_parse_next(q);
    return x;
}

/* Parses return, break or continue. */
static struct as *ast_parse_word(struct parser *q, enum as_kind kind)
{
    struct as *x = ast_parse_as_new(q, kind);

    if (kind == AS_RETURN && !ast_parse_is(q, ";"))
        x->e = ast_parse_expression(q, 0);
    ast_parse_expect(q, ";");
    return x;
}

/* Parses a statement that carries no role. */
static struct as *ast_parse_plain_statement(struct parser *q)
{
    struct as *x;

    if (q->tok == T_COMMENT || q->tok == T_HASH)
        return ast_parse_line(q, q->tok == T_COMMENT ? AS_COMMENT : AS_HASH);
    if (ast_parse_accept(q, "for"))
        return ast_parse_for_loop(q);
    if (ast_parse_accept(q, "if"))
        return ast_parse_condition(q, AS_IF);
    if (ast_parse_accept(q, "while"))
        return ast_parse_condition(q, AS_WHILE);
    if (ast_parse_accept(q, "return"))
        return ast_parse_word(q, AS_RETURN);
    if (ast_parse_accept(q, "break"))
        return ast_parse_word(q, AS_BREAK);
    if (ast_parse_accept(q, "continue"))
        return ast_parse_word(q, AS_CONTINUE);
    if (ast_parse_accept(q, "{")) {
        x = ast_parse_as_new(q, AS_BLOCK);
        x->body = ast_parse_statements(q);
        ast_parse_expect(q, "}");
        return x;
    }
    if (ast_parse_accept(q, ";"))
        return NULL;
    x = ast_parse_simple(q);
    ast_parse_expect(q, ";");
    return x;
}

static struct as *ast_parse_statement(struct parser *q)
{
    const char *role = NULL;
    struct as *x;

    if (q->tok == T_ROLE) {
        role = arena_strdup(q->a, q->s);
        ast_parse_next(q);
    }
    x = ast_parse_plain_statement(q);
    if (x)
        x->role = role;
    return x;
}

/* ---- the file ---- */

/* Parses a function's parameters behind the opening parenthesis. */
static void ast_parse_parameters(struct parser *q, struct afun *f)
{
    struct param p[LIST_MAX];

    while (!ast_parse_is(q, ")") && !q->failed && f->n_param < LIST_MAX) {
        p[f->n_param].type = ast_parse_type(q);
        p[f->n_param++].name = arena_strdup(q->a, q->s);
        ast_parse_next(q);
        if (!ast_parse_is(q, ")"))
            ast_parse_expect(q, ",");
    }
    ast_parse_expect(q, ")");
    f->param = arena_alloc(q->a, sizeof *p * (size_t)(f->n_param + 1));
    memcpy(f->param, p, sizeof *p * (size_t)f->n_param);
}

/* Parses a function, or a line that stands outside of functions. */
static struct afun *ast_parse_item(struct parser *q)
{
    struct afun *f = arena_alloc(q->a, sizeof *f);
    const char *start = q->at;

    if (!ast_parse_is_type(q)) {
        f->line = ast_parse_statement(q);
        return f;
    }
    f->type = ast_parse_type(q);
    f->name = arena_strdup(q->a, q->s);
    ast_parse_next(q);
    if (!ast_parse_accept(q, "(")) { /* a declaration: read it once more as a statement */
        q->p = start;
        ast_parse_next(q);
        f->name = NULL;
        f->line = ast_parse_statement(q);
        return f;
    }
    ast_parse_parameters(q, f);
    ast_parse_expect(q, "{");
    f->body = ast_parse_statements(q);
    ast_parse_expect(q, "}");
    return f;
}

struct afun *ast_parse(struct arena *a, const char *text, struct err *e)
{
    struct parser q = {.a = a, .text = text, .p = text};
    struct afun *first = NULL, **end = &first;

    ast_parse_next(&q);
    while (q.tok != T_END) {
        *end = ast_parse_item(&q);
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

    ast_parse_next(&q);
    x = ast_parse_expression(&q, 0);
    if (!q.failed && q.tok != T_END)
        ast_parse_fail(&q, "more than one expression");
    if (q.failed) {
        fprintf(stderr, "musacoder: the expression '%s' does not parse: %s\n", text, q.s);
        abort();
    }
    return x;
}

/* ---- copies and questions ---- */

static struct ax *ax_clone(struct arena *a, const struct ax *x)
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

/* A deep copy of a list of statements in arena a; NULL for NULL. */
static struct as *ast_parse_as_clone(struct arena *a, const struct as *x)
{
    struct as *y;

    if (!x)
        return NULL;
    y = arena_alloc(a, sizeof *y);
    *y = *x;
    y->e = ax_clone(a, x->e), y->e2 = ax_clone(a, x->e2);
    y->init = ast_parse_as_clone(a, x->init), y->body = ast_parse_as_clone(a, x->body),
        y->other = ast_parse_as_clone(a, x->other);
    y->next = ast_parse_as_clone(a, x->next);
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
    g->body = ast_parse_as_clone(a, f->body), g->line = ast_parse_as_clone(a, f->line);
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

/* True where the name stands in x. */
bool ax_uses(const struct ax *x, const char *id)
{
    if (ax_is_id(x, id))
        return true;
    for (int i = 0; i < x->n; i++)
        if (ax_uses(x->kid[i], id))
            return true;
    return false;
}
