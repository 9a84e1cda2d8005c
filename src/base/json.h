/* json.h - JSON (jansson), JSON Lines and YAML (libyaml) with our rules: duplicate keys are refused, foreign bytes
 * pass one UTF-8 sanitiser, non-finite numbers are the strings "nan" "inf" "-inf".
 * json_t values follow jansson's reference counting: 'new' is said where the caller owns the result. */
#ifndef MC_JSON_H
#define MC_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Refused with one line: duplicate keys, invalid UTF-8, numbers too large for 64 bits or a double, and in YAML also
 * anchors, aliases, tags and further documents. */
json_t *json_parse(const char *text, size_t n, const char *what, struct err *e); /* new; NULL on error */
json_t *json_read(const char *path, struct err *e);                              /* new; NULL on error */
/* The same for a file that others wrote: an integer beyond 64 bits (10^30 says "no limit" in many) is a double. */
json_t *json_read_foreign(const char *path, struct err *e);                      /* new; NULL on error */
json_t *yaml_read(const char *path, struct err *e);                              /* new; one document, NULL on error */
json_t *yaml_parse(const char *text, size_t n, const char *what, struct err *e);
char *json_text(const json_t *v);                            /* compact, key order kept; caller frees */
void json_line(struct buf *out, const json_t *v);            /* appends it compact, with a line end; NULL: nothing */
void json_print(const json_t *v);                            /* the same, to standard output */
int json_write(const char *path, const json_t *v, struct err *e); /* pretty, atomic */
/* What json_write writes; owned. NULL, ERR_BUG: v is no JSON. path is for the message. */
char *json_file_text(const char *path, const json_t *v, struct err *e);
int jsonl_append(const char *path, const json_t *v, struct err *e); /* one line, one write */

json_t *json_num(double x);                              /* new; finite number, else "nan" "inf" "-inf" */
double json_num_value(const json_t *v);                  /* inverse of json_num; NaN if v is neither */
json_t *json_utf8(const char *s, size_t n);              /* new string; invalid bytes become U+FFFD, NUL too */

const char *json_str(const json_t *obj, const char *key, const char *fallback); /* borrowed */
int64_t json_i64(const json_t *obj, const char *key, int64_t fallback);
double json_f64(const json_t *obj, const char *key, double fallback);
bool json_flag(const json_t *obj, const char *key, bool fallback);
double json_num_at(const json_t *obj, const char *key); /* json_num_value of a member; NaN where it lacks */
void json_count(json_t *obj, const char *key, int64_t n); /* adds n to a counter that begins with 0 */
json_t *json_ints(const int32_t *v, size_t n);          /* new array */
json_t *json_interval(double lo, double hi);            /* new: [lo, hi], or null where one is not finite */

/* Reads a JSON Lines file line by line: for each non-empty line, f is called; it returns -1 to stop with an error.
 * A broken last line (a writer died) is skipped with a warning; a broken line elsewhere is an error. */
int jsonl_each(const char *path, int (*f)(json_t *v, size_t line, void *ctx, struct err *e), void *ctx, struct err *e);

/* The offset of the first byte that is not UTF-8; n if there is none. */
size_t utf8_bad_at(const char *s, size_t n);
/* Appends s with invalid UTF-8 sequences replaced by U+FFFD, per the WHATWG "maximal subpart" practice. */
void utf8_sanitize(struct buf *out, const char *s, size_t n);
/* The same, and control characters but for tabs and line ends become U+FFFD too: for what is foreign and reaches a
 * terminal, a dialogue or a page. */
void utf8_show(struct buf *out, const char *s, size_t n);

#endif
