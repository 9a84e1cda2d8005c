/* fuzz_extract.c - extraction must stay inside its text, whatever the text. */
#include <stdint.h>
#include <stdlib.h>

#include "task/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct extraction x;

    for (int kind = EXTRACT_FILE; kind <= EXTRACT_AUTO; kind++) {
        extract_code((const char *)data, n, (enum extract_kind)kind, &x);
        if (x.offset > n || x.n > n - x.offset || (!x.found && x.n))
            abort();
        if (x.n && extract_defines_program((const char *)data + x.offset, x.n) != x.defines_modelnew)
            abort();
    }
    return 0;
}
