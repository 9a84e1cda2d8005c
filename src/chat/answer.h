/* answer.h - what a job has drawn, as OpenAI's objects. Call with the job's lock held. */
#ifndef MC_CHAT_ANSWER_H
#define MC_CHAT_ANSWER_H

#include "base/buf.h"
#include "chat/batcher.h"

json_t *answer_whole(const struct chat_job *j, const char *model, const struct tokenizer *tok); /* new */
/* Appends the events of what is new since the last call. Returns whether the stream has ended. */
bool answer_stream(struct chat_job *j, const char *model, const struct tokenizer *tok, struct buf *out);
/* {"error": {"message", "type", "param", "code"}}: new. param and code may be NULL. */
json_t *answer_error(const char *type, const char *param, const char *code, const char *message);

#endif
