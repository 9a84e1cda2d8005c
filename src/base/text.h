/* text.h - questions about texts that end with a zero. */
#ifndef MC_TEXT_H
#define MC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool text_begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static inline bool text_ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);

    return n >= k && !strcmp(s + n - k, with);
}

/* Is s one of the list's n texts? */
static inline bool text_is_among(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(s, list[i]))
            return true;
    return false;
}

#endif
