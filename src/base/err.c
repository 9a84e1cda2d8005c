/* err.c - formatting of errors. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Messages quote foreign bytes (paths, keys, a parser's context): line breaks and terminal controls become spaces, so
 * that an error stays one line whatever it quotes. */
static int err_one_line(struct err *e)
{
    for (char *p = e->msg; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    return -1;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    e->kind = kind;
    e->lack = LACK_NONE;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return err_one_line(e);
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    size_t n;

    if (!e)
        return -1;
    e->kind = ERR_ENV;
    e->lack = saved == ENOMEM ? LACK_HOST : LACK_NONE;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    n = strlen(e->msg);
    snprintf(e->msg + n, sizeof e->msg - n, ": %s%s", strerror(saved),
             saved == ENOSPC ? "; free some disk space and run again" : "");
    return err_one_line(e);
}

int err_lack(struct err *e, enum err_lack what)
{
    if (e)
        e->lack = what;
    return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    char old[sizeof e->msg];
    va_list ap;
    size_t n;

    if (!e)
        return -1;
    memcpy(old, e->msg, sizeof old);
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    n = strlen(e->msg);
    if (strstr(old, e->msg))
        memcpy(e->msg, old, sizeof old);
    else
        snprintf(e->msg + n, sizeof e->msg - n, ": %s", old);
    return err_one_line(e);
}
