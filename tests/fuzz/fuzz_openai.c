/* fuzz_openai.c - any bytes as the answer of a model's server: refused with one line, or an answer of UTF-8 text
 * that does not depend on the pieces in which it came. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "remote/openai.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int answer(const uint8_t *data, size_t n, size_t piece, struct openai_reply *r)
{
    struct err e = ERR_INIT;
    int rc = openai_read((const char *)data, n, piece, r, &e);

    if (rc < 0 && (!*e.msg || strchr(e.msg, '\n')))
        abort();
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct openai_reply whole = {0}, pieces = {0};
    int a = answer(data, n, n ? n : 1, &whole), b = answer(data, n, 7, &pieces);

    if (a == 0 && b == 0 && strcmp(whole.text, pieces.text))
        abort();
    if (a == 0 && utf8_bad_at(whole.text, strlen(whole.text)) != strlen(whole.text))
        abort();
    openai_reply_free(&whole);
    openai_reply_free(&pieces);
    return 0;
}
