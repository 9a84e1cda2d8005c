/* report_compare.c - stub */
#include "base/file.h"
#include "bench/compare.h"
void report_compare_build(const json_t *v, struct buf *out) {}
int report_compare_write(const json_t *v, const char *path, struct err *e) { return 0; }
