/* base64.h - bytes as text (RFC 4648, with padding), for what travels inside JSON. */
#ifndef MC_BASE64_H
#define MC_BASE64_H

#include "base/buf.h"
#include "base/err.h"

char *base64_text(const void *data, size_t n); /* caller frees */
/* Appends the bytes that the text stands for. ERR_INPUT: it is no base64, or longer than out->max allows. */
int base64_read(const char *text, struct buf *out, struct err *e);

#endif
