/* locate.h - the line of the candidate's own file that a verdict is about.
 *
 * A compiler and the emulator count lines of the CUDA source, which a program holds as a string; editors count lines of
 * the file. Pure functions of the record and of the text that was judged. */
#ifndef MC_EVAL_LOCATE_H
#define MC_EVAL_LOCATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text: the candidate as it was given (a file, or a response with a fence). joined: the program with the files behind
 * it (task/bundle.h), or NULL. New object
 *     {"line", "text", "source", "source_line", "kernel", "file"}
 * line, from 1: of the whole text, or of 'file', one of the answer's files, where that is not null. source,
 * source_line: what the compiler calls it ("cuda_source"), null for Python. A source's other lines are
 * line - source_line behind. kernel: null where none is named. New null: no line is known. */
json_t *locate_verdict(const json_t *verdict, const char *text, size_t n, const char *joined);

/* The line of a Python program at which line 'line' of one of its string literals stands, whose words (without
 * indentation, perhaps cut) are 'words'; 0: none, or it cannot be told which. */
int64_t locate_source(const char *program, int64_t line, const char *words);

/* The answer's file that the compiler calls 'file', whose line'th line reads 'words'; false: there is none. */
bool locate_file(const char *program, const char *file, int64_t line, const char *words, char *ret, size_t n_ret);

#endif
