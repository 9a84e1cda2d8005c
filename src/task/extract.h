/* extract.h - finding the program in a model's response.
 *
 * Rule: drop <think>...</think>, then take the last Python fence that defines class ModelNew, else
 * the first fence. An unclosed <think> hides the rest of the text; a lone </think> (the opening tag was part of the
 * prompt) hides what stands before it. Fences follow CommonMark: up to three spaces, at least three ` or ~, closed by a
 * line of at least as many of the same character; an unclosed last fence runs to the end. A fence is Python if its info
 * word is python, python3, py, or absent. */
#ifndef MC_EXTRACT_H
#define MC_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum extract_kind {
    EXTRACT_FILE,     /* a Python file: taken whole */
    EXTRACT_RESPONSE, /* a response: only fences count */
    EXTRACT_AUTO      /* standard input: a response if it has a fence, else a file */
};

struct extraction {
    bool found;
    const char *how;       /* "file", "last fence with ModelNew", "first fence", "none"; static */
    int fence, n_fences;   /* which fence (from 0; -1 if none) of how many */
    bool closed;           /* the chosen fence has a closing line (true for files) */
    bool think_dropped;
    bool has_class;        /* a fence before this one has class ModelNew: no custom_kernel takes its place */
    bool defines_modelnew; /* some line of the code begins 'class ModelNew', or 'def custom_kernel' */
    size_t offset, n;      /* the code is text[offset .. offset+n) */
};

/* Pure: looks at text only, allocates nothing that outlives the call. */
void extract_code(const char *text, size_t n, enum extract_kind kind, struct extraction *ret);

/* The other files of an answer: closed fences whose info names one behind its first word ("cuda kernel.cu",
 * "cpp title=src/a.cpp"), but the fence of x. In their order; path and body are borrowed for the call. */
typedef void extract_take_file(const char *path, const char *body, size_t n, void *ctx);
void extract_files(const char *text, size_t n, const struct extraction *x, extract_take_file *take, void *ctx);

/* True where a line begins 'class ModelNew' or, GPU MODE's form, 'def custom_kernel('. */
bool extract_defines_program(const char *code, size_t n);

/* True for a response that is whole: the model ended it itself, or it holds a closed program all the same. */
bool extract_is_whole(const char *text, bool ended);

json_t *extract_json(const struct extraction *x); /* new; the record's "extraction" section */

#endif
