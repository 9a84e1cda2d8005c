/* fuzz_build_log.c - compilers print what sources tell them to (#error, #line, names): any text as a log of g++ and ld
 * gives at most eight diagnostics with valid text, and a trimmed log no longer than asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "eval/build/build_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static json_t *request;
    struct buf log;
    json_t *d;
    char *trimmed;

    if (!request)
        request = json_pack("{s:s,s:[s],s:[s,s]}", "name", "m", "cpp_sources", "void f();\n", "cuda_sources",
                            "__global__ void k(int *p) {\n    p[0] = x;\n}\n", "int y;\n");
    buf_init(&log, 1 << 20);
    for (size_t i = 0, run; i < n; i += run + 1) { /* as build.c reads logs: valid UTF-8, and C text */
        run = strnlen((const char *)data + i, n - i);
        utf8_sanitize(&log, (const char *)data + i, run);
    }
    d = build_log_parse(log.p, request);
    if (!json_is_array(d) || json_array_size(d) > 8)
        abort();
    free(json_text(d));
    json_decref(d);
    for (size_t max = 0; max <= 6000; max += 1500) {
        trimmed = build_log_trim(log.p, max);
        if (strlen(trimmed) > max + 64)
            abort();
        free(trimmed);
    }
    buf_free(&log);
    return 0;
}
