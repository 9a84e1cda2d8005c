/* blob.h - bytes under their SHA-256, in a place that several machines reach: a folder that all of them mount, or a
 * bucket of S3 or of what speaks its protocol.
 *
 *   FOLDER             files FOLDER/ab/cdef...
 *   s3://BUCKET[/P]    keys P/abcdef...; $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_SESSION_TOKEN, $AWS_REGION
 *                      (us-east-1), $AWS_ENDPOINT_URL (of the region). libcurl, loaded when it is needed
 *
 * Whoever gets bytes gets those of the name, or an error: they are hashed on arrival. Thread-safe; keeps no state. */
#ifndef MC_STORE_BLOB_H
#define MC_STORE_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Can this place be used? ERR_INPUT: it is none; ERR_ENV: what it needs is missing here. */
int blob_check(const char *place, struct err *e);
/* Removes from a folder what was put more than keep_s ago, and the oldest beyond so many bytes; 0: no such limit. What
 * is younger than an hour stays, and so does what is no artefact. Does nothing within every_s of the last time, by
 * whatever process, and to a bucket: its rules do that. */
int blob_tidy(const char *place, uint64_t bytes, double keep_s, double every_s, struct err *e);
int blob_put(const char *place, const void *data, size_t n, const char sha256[65], struct err *e);
/* Appends them to out; more than out->max is an error. */
int blob_get(const char *place, const char sha256[65], struct buf *out, struct err *e);

#endif
