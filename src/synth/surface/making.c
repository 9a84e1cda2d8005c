/* making.c - see making.h. */
#include "synth/surface/making.h"

#include <ctype.h>
#include <string.h>

/* A formatted text in the making's arena. */
const char *making_format(struct making *m, const char *fmt, ...)
{
    struct buf b;
    char *s;
    va_list ap;

    buf_init(&b, BUF_MAX_TEXT);
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    s = arena_strdup(&m->a, b.p);
    buf_free(&b);
    return s;
}

int making_draw(struct making *m, int lo, int hi)
{
    return lo + (int)rng_below(m->r, (uint64_t)(hi - lo + 1));
}

bool making_chance(struct making *m, double p)
{
    return rng_f64(m->r) < p;
}

const char *making_pick(struct making *m, const char *choices, char between)
{
    const char *p = choices, *end;
    int n = 1, at;

    for (const char *q = choices; *q; q++)
        n += *q == between;
    for (at = making_draw(m, 0, n - 1); at; at--)
        p = strchr(p, between) + 1;
    end = strchr(p, between);
    return end ? arena_strndup(&m->a, p, (size_t)(end - p)) : p;
}

void making_set(struct making *m, const char *key, const char *value)
{
    for (int i = 0; i < m->n_env; i++)
        if (!strcmp(m->env[i].key, key)) {
            m->env[i].value = value;
            return;
        }
    if (m->n_env < MAKING_ENV) {
        m->env[m->n_env].key = key;
        m->env[m->n_env++].value = value;
    }
}

/* The longest prefix of n characters that is a key: all of them, or up to an underscore. *ret: its length. */
static const char *making_lookup(const struct making *m, const char *p, size_t n, size_t *ret)
{
    for (size_t len = n; len; len--)
        for (int i = 0; i < m->n_env && (len == n || p[len] == '_'); i++)
            if (strlen(m->env[i].key) == len && !strncmp(m->env[i].key, p, len)) {
                *ret = len;
                return m->env[i].value;
            }
    *ret = n;
    return NULL;
}

const char *making_expand(struct making *m, const char *text)
{
    struct buf b;
    char *s;

    buf_init(&b, BUF_MAX_TEXT);
    for (const char *p = text; *p;) {
        bool braces = p[0] == '$' && p[1] == '{';
        const char *q = p + 1 + braces, *value;
        size_t n = 0, used;
        while (*p == '$' && (isalnum((unsigned char)q[n]) || q[n] == '_'))
            n++;
        value = n ? making_lookup(m, q, n, &used) : NULL;
        if (value) {
            buf_adds(&b, value);
            p = q + used + braces;
        } else {
            buf_addc(&b, *p++);
        }
    }
    s = arena_strdup(&m->a, b.p);
    buf_free(&b);
    return s;
}

static int making_find_constant(const struct making *m, const char *name)
{
    for (int i = 0; i < m->n_constants; i++)
        if (!strcmp(m->constant[i].name, name))
            return i;
    return -1;
}

const char *making_constant(struct making *m, const char *name, const char *value)
{
    const char *s = name;
    int at;

    if (!m->style.constants || m->n_constants == MAKING_CONSTANTS)
        return value;
    for (int i = 2; (at = making_find_constant(m, s)) >= 0 && strcmp(m->constant[at].value, value); i++)
        s = making_format(m, "%s%d", name, i);
    if (at < 0) {
        m->constant[m->n_constants].name = s;
        m->constant[m->n_constants++].value = value;
    }
    return s;
}

/* Has the constructor an argument of this name, or the module an attribute? */
static bool making_has_arg(struct making *m, const char *name)
{
    if (strstr(m->init.p, making_format(m, "self.%s ", name)))
        return true;
    for (int i = 0; i < m->n_args; i++)
        if (!strcmp(m->arg[i].name, name))
            return true;
    return false;
}

const char *making_arg(struct making *m, const char *name, const char *type, const char *value, const char *def,
                       const char *doc)
{
    const char *s = name;
    int at = making_find_constant(m, name);

    if (m->n_args == MAKING_ARGS)
        return value;
    if (making_chance(m, 0.7) && (at < 0 || !strcmp(m->constant[at].value, value)) &&
        making_find_constant(m, value) < 0 && strcmp(name, "bias"))
        value = making_constant(m, name, value);
    for (int i = 2; making_has_arg(m, s); i++)
        s = making_format(m, "%s%d", name, i);
    m->arg[m->n_args++] = (struct making_arg){s, type, value, def, doc};
    return s;
}

static const char *making_function_text(struct making *m, const char *name, const char *text)
{
    making_set(m, "k", name);
    making_set(m, "f", making_format(m, "%s_forward", name));
    return making_expand(m, text);
}

const char *making_function(struct making *m, const char *name, const char *text)
{
    const char *s = name, *whole = making_function_text(m, s, text);

    for (int i = 0, number = 2; i < m->n_functions; i++) {
        if (strcmp(m->function[i].name, s))
            continue;
        if (!strcmp(m->function[i].text, whole))
            return s;
        s = making_format(m, "%s%d", name, number++);
        whole = making_function_text(m, s, text);
        i = -1;
    }
    if (m->n_functions < MAKING_FUNCTIONS) {
        m->function[m->n_functions].name = s;
        m->function[m->n_functions++].text = whole;
    }
    return s;
}
