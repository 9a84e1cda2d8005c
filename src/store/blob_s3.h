/* blob_s3.h - blob.h's places s3://BUCKET/PREFIX: one signed request each (AWS signature 4), asked again while the
 * server is busy. */
#ifndef MC_STORE_BLOB_S3_H
#define MC_STORE_BLOB_S3_H

#include "base/buf.h"
#include "base/err.h"

int blob_s3_check(const char *place, struct err *e);
int blob_s3_put(const char *place, const void *data, size_t n, const char *sha256, struct err *e);
int blob_s3_get(const char *place, const char *sha256, struct buf *out, struct err *e);

#endif
