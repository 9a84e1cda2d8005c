/* err.h - how every function that can fail says why.
 *
 * Convention: int f(..., struct err *e) returns 0, or -1 after filling *e. Outputs named ret_x are untouched
 * on failure. Only cli/ turns an error into an exit code; libraries never exit and never print.
 * Messages: lower case, no full stop, the thing in single quotes, the remedy after a semicolon. One line: control bytes
 * of what is quoted become spaces. */
#ifndef MC_ERR_H
#define MC_ERR_H

#include <stdarg.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_INPUT, /* the user's file, flag or data is wrong: exit 2 */
    ERR_ENV,   /* the machine lacks something (compiler, Python, disk, permission): exit 3 */
    ERR_STOP,  /* Ctrl-C or a deadline: the work can be continued */
    ERR_BUG    /* a broken invariant of ours */
};

/* What there was too little of, at that moment: with nobody else there it may suffice. */
enum err_lack { LACK_NONE = 0, LACK_DEVICE /* memory of a device */, LACK_HOST /* memory of the machine */ };

struct err {
    enum err_kind kind;
    char msg[1024];
    enum err_lack lack; /* said by who sees the shortage (err_lack); nobody reads it out of msg */
};

#define ERR_INIT {ERR_NONE, "", LACK_NONE}

/* All return -1, so that 'return err_set(e, ...)' reads as one thought. e may be NULL. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* ERR_ENV + errno text */
int err_lack(struct err *e, enum err_lack what); /* after err_set; err_sys sees ENOMEM itself; err_prefix keeps it */
/* Puts the words in front of the message, unless it has them: a path is said once. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
