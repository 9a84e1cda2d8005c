/* lines.c - see lines.h. */
#include "base/lines.h"

#include <stdlib.h>
#include <string.h>

int64_t lines_directive(const char *s)
{
    s += strspn(s, " \t");
    if (*s++ != '#')
        return 0;
    s += strspn(s, " \t");
    return strncmp(s, "line ", 5) ? 0 : strtoll(s + 5, NULL, 10);
}

const char *lines_find(const char *text, int64_t line)
{
    const char *found = NULL;
    int64_t at = 1;

    for (const char *s = text; s && *s && line > 0; s += *s == '\n') {
        int64_t next = lines_directive(s);

        if (at == line && !next)
            found = s;
        at = next ? next : at + 1;
        s += strcspn(s, "\n");
    }
    return found;
}
