/* opt.h - one row per option: {section, name, type, default, help} is the flag --name, the recipe key 'name' (under
 * its section), the variable MUSACODER_NAME (dashes become underscores), the -h text and the documentation.
 * Precedence: flag, recipe, environment, default. Unknown names are refused with the nearest known one.
 *
 * Short flags stand for rows of fixed names, where a command has such a row: -o out, -q quiet, -v verbose, -j jobs.
 *
 * Rows end with a row whose name is NULL. Defaults are text, exactly as a user would type them; NULL means unset. */
#ifndef MC_OPT_H
#define MC_OPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Help begins: OPT_CHOICE "a|b|c: "; a number's may with "0 to 1: " or "from 1: ": what lies outside is refused.
 * OPT_PATHS: files or folders that are read, with commas between: what they hold is part of what was asked for.
 * OPT_LIST: may be given several times; the value is the texts joined by '\n'.
 * OPT_OUT_FOLDER, OPT_OUT_FILE: where results go; opts_check_results refuses those that are read, too. */
enum opt_type {
    OPT_BOOL, OPT_INT, OPT_REAL, OPT_STR, OPT_PATHS, OPT_CHOICE, OPT_LIST, OPT_OUT_FOLDER, OPT_OUT_FILE
};

/* The C type of the field that a row's value goes to. */
enum opt_field { OPT_UNBOUND, OPT_TO_BOOL, OPT_TO_INT, OPT_TO_INT64, OPT_TO_UINT64, OPT_TO_DOUBLE, OPT_TO_TEXT };

struct opt {
    const char *section;
    const char *name;
    enum opt_type type;
    const char *def;
    const char *help;
    enum opt_field to; /* INTO(struct, field); else the command reads the value itself */
    size_t at;
};

/* The end of a row whose value is a field of the command's options: {.., "help", INTO(struct rl_options, steps)}. The
 * field says its type; a row of another one does not compile, or is refused by opts_store. */
#define INTO(type, field)                                                                                             \
    _Generic(((type *)0)->field, bool: OPT_TO_BOOL, int: OPT_TO_INT, int64_t: OPT_TO_INT64, uint64_t: OPT_TO_UINT64,  \
             double: OPT_TO_DOUBLE, const char *: OPT_TO_TEXT),                                                       \
        offsetof(type, field)

struct opts {
    const struct opt *rows;
    json_t *values; /* name -> bool, integer, real, string; a missing key means unset */
    char **args;    /* positional arguments, borrowed from argv */
    int n_args;
    bool help; /* -h or --help was given */
};

/* argv without the command's own name. config may be NULL: the recipe's section for this command, an object.
 * Flags are --name value, --name=value, --flag, --no-flag; '--' ends them; '-' alone is positional. */
int opts_parse(const struct opt *rows, int argc, char **argv, const json_t *config, struct opts *ret, struct err *e);
void opts_free(struct opts *o);

const char *opts_str(const struct opts *o, const char *name); /* NULL when unset */
/* the row must have a default or be checked with opts_has */
int64_t opts_int(const struct opts *o, const char *name);
double opts_real(const struct opts *o, const char *name);
bool opts_bool(const struct opts *o, const char *name);
bool opts_has(const struct opts *o, const char *name);

/* Stores the values of all rows with a field into *into, the struct that they name. Unset ones leave the field as it
 * is; texts stay borrowed from o. ERR_INPUT: a number that the field cannot hold. ERR_BUG: a row and its field
 * differ. */
int opts_store(const struct opts *o, void *into, struct err *e);

/* Files that a command reads and no option names: a task's sidecar, the headers beside a source. */
struct opt_reads { /* zeroed: none */
    char **path;
    size_t n;
};
void opt_reads_add(struct opt_reads *r, char *path); /* takes path */
void opt_reads_free(struct opt_reads *r);

/* No result takes the place of what the command reads: ERR_INPUT where the file of a row OPT_OUT_FILE is a folder,
 * one that a word or another row names, a file in a folder of theirs, one of reads, a data file of a folder of ours, or
 * cannot be written. */
int opts_check_results(const struct opts *o, const struct opt_reads *reads, struct err *e);
/* For commands that read all below a folder which a word names: ERR_INPUT where the folder of the row is that or lies
 * in it, as the next call would read its results. */
int opts_check_outside(const struct opts *o, const char *name, struct err *e);
/* What rows of OPT_PATHS name is as its command left it, where a listing says so (base/listing.h); else ERR_INPUT. */
int opts_check_inputs(const struct opts *o, struct err *e);

/* "10GiB" "500 MB" "1.5G" "4096": a number and a unit of bytes; K M G T alone are powers of 1024 as KiB is, KB of 1000.
 * name is for the message. */
int size_parse(const char *name, const char *text, uint64_t *ret, struct err *e);

/* "-o" of a row named "out"; NULL: the name has no short flag. */
const char *opt_short_flag(const char *name);

const char *opt_meta(const struct opt *row); /* " N", " TEXT": what stands behind the flag in help and pages */
void opts_help(FILE *out, const struct opt *rows);

/* The known word closest to 'word' (edit distance at most 1/3 of its length, or a shared prefix), else NULL. */
const char *nearest_word(const char *word, const char *(*get)(const void *ctx, int i), const void *ctx);

#endif
