/* tokens.c - see tokens.h. What is kept and compared is each token's SHA-256. */
#include "serve/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

struct api_token {
    char sha[65], *owner;
    bool operates;
};

struct tokens {
    struct api_token *v;
    int n;
};

#define TOKEN_MIN 16 /* characters: shorter ones can be guessed */

/* Adds a token of the file's line. ERR_INPUT names the line. */
static int tokens_add(struct tokens *t, const char *path, int line, const char *token, const char *owner,
                      const char *role, struct err *e)
{
    if (!owner || !*owner)
        return err_set(e, ERR_INPUT, "'%s' line %d: a token and its owner's name are needed", path, line);
    if (strchr(owner, ':') || !strcmp(owner, "build"))
        return err_set(e, ERR_INPUT, "'%s' line %d: '%s' cannot be an owner's name: no ':', and 'build' is the "
                                     "workers'",
                       path, line, owner);
    if (strlen(token) < TOKEN_MIN)
        return err_set(e, ERR_INPUT,
                       "'%s' line %d: the token is shorter than %d characters; try 'openssl rand -hex 16'", path,
                       line, TOKEN_MIN);
    if (role && strcmp(role, "operator"))
        return err_set(e, ERR_INPUT, "'%s' line %d: '%s' is no role; 'operator' is the only one", path, line, role);
    t->v = xrealloc(t->v, (size_t)(t->n + 1) * sizeof *t->v);
    sha256_hex(token, strlen(token), t->v[t->n].sha);
    t->v[t->n].operates = role;
    t->v[t->n++].owner = xstrdup(owner);
    return 0;
}

/* *ret are the tokens of a file of lines "TOKEN OWNER [ROLE]"; '#' begins a comment. */
int tokens_read(const char *path, struct tokens **ret, struct err *e)
{
    struct tokens *t;
    struct buf b;
    char *line, *save, *word, *owner;
    int n = 0, rc;

    buf_init(&b, 1 << 20);
    if ((rc = file_read(path, &b, e)) < 0) {
        buf_free(&b);
        return -1;
    }
    t = xcalloc(1, sizeof *t);
    for (char *at = b.p; rc == 0 && (line = strsep(&at, "\n"));) {
        n++;
        line[strcspn(line, "#\r")] = 0;
        if (!(word = strtok_r(line, " \t", &save)))
            continue;
        owner = strtok_r(NULL, " \t", &save);
        rc = tokens_add(t, path, n, word, owner, owner ? strtok_r(NULL, " \t", &save) : NULL, e);
    }
    buf_free(&b);
    if (rc == 0 && t->n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' has no tokens: lines of 'TOKEN OWNER'", path);
    if (rc < 0)
        tokens_free(t);
    else
        *ret = t;
    return rc;
}

void tokens_free(struct tokens *t)
{
    for (int i = 0; t && i < t->n; i++)
        free(t->v[i].owner);
    if (t)
        free(t->v);
    free(t);
}

const char *tokens_owner(const struct tokens *t, const char *token)
{
    const char *owner = NULL;
    char sha[65];

    if (!token)
        return NULL;
    sha256_hex(token, strlen(token), sha);
    for (int i = 0; i < t->n; i++) {
        unsigned differ = 0;
        for (int k = 0; k < 64; k++)
            differ |= (unsigned)(sha[k] ^ t->v[i].sha[k]);
        if (!differ)
            owner = t->v[i].owner;
    }
    return owner;
}

bool tokens_operates(const struct tokens *t, const char *owner)
{
    for (int i = 0; i < t->n; i++)
        if (t->v[i].operates && !strcmp(t->v[i].owner, owner))
            return true;
    return false;
}
