/* chat.h - ChatML dialogues as token ids, append only: what was sampled or rendered once is never rendered again, so a
 * later turn always extends the ids that the model saw (and the KV cache built from them).
 *
 * A message is "<|im_start|>role\ncontent<|im_end|>\n". Control tokens enter by id only: content is encoded as text, so a
 * "<|im_end|>" inside a kernel or a compiler message cannot end a turn. (<think> markup is recognised in assistant
 * content only.) Every prompt has the ids that Hugging Face gets from the Jinja template's text, as long as that text holds
 * no control tokens of its own. */
#ifndef MC_NN_CHAT_H
#define MC_NN_CHAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "nn/tokenizer.h"

enum chat_think {
    CHAT_THINK_FREE,  /* generation prompt "<|im_start|>assistant\n": Qwen3 with thinking, and our small models */
    CHAT_THINK_OPEN,  /* ... + "<think>\n": Qwen3.5 from 4B on, Qwen3.6 */
    CHAT_THINK_EMPTY  /* ... + "<think>\n\n</think>\n\n": thinking switched off */
};

struct chat_span {
    size_t from, to; /* ids [from, to) */
};

struct chat {
    struct tokenizer *tok; /* borrowed */
    enum chat_think think;
    int32_t im_start, im_end;
    struct ivec ids;
    struct chat_span *responses; /* what the model must produce, one span per assistant message: from the first token
                                    after the generation prompt through <|im_end|>; the "\n" behind it is outside */
    size_t n_responses;
    bool open; /* a generation prompt waits for chat_response */
};

/* Fails when the tokenizer lacks <|im_start|> or <|im_end|>. */
int chat_begin(struct chat *c, struct tokenizer *tok, enum chat_think think, struct err *e);
void chat_free(struct chat *c);
int chat_copy(struct chat *to, const struct chat *from); /* an independent copy: one prompt, a group of rollouts; 0 */

/* role: "system", "user" or "assistant". An assistant message is generation prompt + content + <|im_end|>. */
int chat_message(struct chat *c, const char *role, const char *content, size_t n, struct err *e);

int chat_prompt(struct chat *c, struct err *e); /* appends the generation prompt: c->ids is now the model's input */
/* Appends sampled ids as they are. A response cut off before <|im_end|> gets one, outside its span: the model did not
 * produce it, so it takes no loss. Then "\n". */
int chat_response(struct chat *c, const int32_t *ids, size_t n, struct err *e);

#endif
