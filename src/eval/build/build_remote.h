/* build_remote.h - builds on another machine. A worker that only runs puts a build request into the queue as a job of
 * lane "build:TARGET"; a worker that builds answers it. What was built travels by content: files below 1 MiB inside the
 * answer, larger ones through a place that both reach (store/blob.h). Every file is hashed before it is used.
 *
 * A job is {"target","arch","no_check","whole","timeout"[,"request"]}; without a request it asks for the
 * toolchain's name alone. The answer is {"toolchain",["refused"],["build": what the cache keeps of a build],["files":
 * {NAME: {"sha256","size"[,"base64"]}}]}. Answers are forgotten once they are read: the builder's cache still has
 * them. One that nobody read, and that is of no use now (its files were tidied away), is asked for once more. */
#ifndef MC_EVAL_BUILD_REMOTE_H
#define MC_EVAL_BUILD_REMOTE_H

#include "base/err.h"
#include "eval/build/build.h"

#define BUILD_INLINE_MAX ((size_t)1 << 20)

struct build_remote;

/* From now on this process has its builds made by the workers of a queue. artefacts: a place of store/blob.h, or NULL:
 * what is larger than 1 MiB cannot come then. Asks nobody yet. Thread-safe; *ret is freed by build_remote_close, after
 * the last build. */
int build_remote_open(const char *queue, const char *artefacts, struct build_remote **ret, struct err *e);
void build_remote_close(struct build_remote *b); /* NULL is fine */

/* The builder's side: the answer to a job's payload as JSON text, owned. NULL: it could not be built here, and *e says
 * why; another builder may try. */
char *build_remote_answer(const char *payload, const char *artefacts, bool no_jail, struct err *e);

#endif
