/* sql_spell.c - statements are written once; what databases spell otherwise stands in braces. */
#include <string.h>

#include "base/buf.h"
#include "queue/sql_driver.h"

/* What a {word} of a statement is in this dialect; NULL: it is none. */
static const char *sql_spell_word(const struct sql_driver *d, const char *at, size_t n)
{
    const struct {
        const char *name, *text;
    } words[] = {{"now", d->now}, {"id", d->id}, {"skip", d->skip}, {"fill", d->fill}, {"most", d->most}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == n && !strncmp(words[i].name, at, n))
            return words[i].text;
    return NULL;
}

char *sql_spell(const struct sql_driver *d, const char *text)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    while (*text) {
        const char *close = *text == '{' ? strchr(text, '}') : NULL;
        const char *means = close ? sql_spell_word(d, text + 1, (size_t)(close - text - 1)) : NULL;
        if (means)
            buf_adds(&b, means);
        else
            buf_addc(&b, *text);
        text = means ? close + 1 : text + 1;
    }
    return buf_detach(&b);
}
