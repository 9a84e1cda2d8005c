/* bundle.h - answers of several files as one program text, which is what the judge's queue, its cache and its records
 * hold.
 *
 * The text is the main Python file, and behind it every other file in comment lines:
 *   #@file: NAME
 *   #|the file's first line
 *   #%a line with a carriage return amid it, which is %0D there, and a percent sign %25
 * so that lines of the main file keep their numbers. The candidate's process puts the files in a folder of its own
 * (runner/bundle.py) and runs the main file from there. The main file is the one that defines ModelNew or
 * custom_kernel; among several the one named candidate, main, solution, submission or kernel. Where no file is Python,
 * the main file is written here: it loads all CUDA (or MUSA: .mu) and C++ sources as one extension and calls its
 * function 'forward' (else 'backward', else the only one) with forward's arguments, then the parameters and buffers of
 * the task's Model in
 * their order; a Model whose forward takes an argument 'fn' gets the function as that instead. 'void solve(..)' of
 * LeetGPU gets tensors for its pointers; the task's solve_writes says which of them it writes. */
#ifndef MC_BUNDLE_H
#define MC_BUNDLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "task/extract.h"

#define BUNDLE_MAX_FILES 64
#define BUNDLE_MAX_BYTES ((size_t)8 << 20)

struct bundle_file {
    char *path, *text; /* owned */
    size_t n;
};

struct bundle { /* zeroed: empty */
    struct bundle_file file[BUNDLE_MAX_FILES];
    int n;
    size_t bytes;
};

/* ERR_INPUT for a path that is not a plain relative one (no '..', no leading '.', letters, digits and ._+-), a second
 * file of one path, text that is not UTF-8 or holds a NUL byte, and what is over the limits. Copies. */
int bundle_add(struct bundle *b, const char *path, const char *text, size_t n, struct err *e);
/* Appends the program; task_code: of the task, needed where no file is Python (may be NULL otherwise). */
int bundle_text(const struct bundle *b, const char *task_code, struct buf *out, struct err *e);
void bundle_free(struct bundle *b);

/* The program of a response as one text: 'code', or what x found where it is NULL, and behind it the files of other
 * fences that name one. Where no fence holds a program, named CUDA sources alone are one, as for bundle_text. left_out
 * (may be NULL) gets a line for each file whose name is refused. False: there is no program, and out is as it was. */
bool bundle_of_response(const char *text, size_t n, const struct extraction *x, const char *code, const char *task_code,
                        json_t *left_out, struct buf *out);

/* True for a folder, an archive (.zip .tar .tar.gz .tgz) and a CUDA or C++ source, which brings the headers beside it
 * that it includes: what bundle_read takes. */
bool bundle_is_one(const char *path);
/* Where an answer's file lies: below the folder, or the source itself; owned. NULL: in an archive or a response. */
char *bundle_place(const char *candidate, const char *file);
/* The headers beside a source that bundle_read takes with it, as paths; owned (names_free). None for anything else. */
void bundle_headers(const char *path, char ***ret, size_t *ret_n);
bool bundle_is_loaded(const char *program); /* its main file was written here */
int bundle_read(const char *path, const char *task_code, struct buf *out, struct err *e);
/* The same of a JSON object {"NAME": "text", ...}. */
int bundle_of_json(const json_t *files, const char *task_code, struct buf *out, struct err *e);

#endif
