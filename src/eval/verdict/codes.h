/* codes.h - a stable code for each kind of verdict and of error that people meet, with what it means and what helps.
 *
 * One table: 'musacoder explain', the record's key "code", the words below a verdict, SARIF rules and the page of
 * codes are made from it. A code is never given to another meaning; a row that is not needed any more stays. Pure. */
#ifndef MC_EVAL_CODES_H
#define MC_EVAL_CODES_H

#include <jansson.h>
#include <stddef.h>

struct code {
    const char *id;       /* "MC301" */
    const char *category; /* of the record; "passed"; "error": a message of the program */
    const char *key;      /* what of the deciding reason tells: codes.c, code_says; "": every one of the category */
    const char *is;       /* its value */
    const char *title;    /* "data race": what stands behind FAIL */
    const char *why;      /* sentences */
    const char *fix;      /* sentences; "" */
};

extern const struct code code_table[]; /* ends with a row whose id is NULL; in order of id */

/* Never NULL for a settled record: each category has a row that takes all that is left. */
const struct code *code_of(const json_t *verdict);
/* "MC301", "mc301", "301"; NULL: there is none. */
const struct code *code_find(const char *id);
/* The row whose words are part of an error's message; NULL: it has no code. */
const struct code *code_of_error(const char *message);

#endif
