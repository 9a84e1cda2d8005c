/* chat.h - ChatML dialogues as token ids, append only: what was sampled or rendered once is never rendered again, so a
 * later turn always extends the ids that the model saw (and the KV cache built from them).
 *
 * A message is "<|im_start|>role\ncontent<|im_end|>\n". Control tokens enter by id only: content is encoded as text,
 * so a "<|im_end|>" inside a kernel or a compiler message cannot end a turn. (<think> markup is recognised in
 * assistant content only.) Prompts, and the last message of a dialogue, have the ids that Hugging Face gets from the
 * Jinja template's text, as long as that text holds no control tokens of its own. One case differs: where the
 * generation prompt opens the block and the thinking is empty, the "\n" that the model has seen and the one it must
 * produce are two ids, as in sampling.
 *
 * Which of Qwen's templates a folder has is read off its text: whether content is trimmed (3.5, 3.6), and what the
 * generation prompt says of thinking. A folder without a template (our small models) has none of their rules. */
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
    CHAT_THINK_EMPTY, /* ... + "<think>\n\n</think>\n\n": thinking switched off */
    CHAT_THINK_DEFAULT, /* as the folder's template has it when nobody asks: one of the three */
    CHAT_THINK_ON     /* the template's with enable_thinking: FREE or OPEN */
};

struct chat_span {
    size_t from, to; /* ids [from, to) */
};

struct chat {
    struct tokenizer *tok; /* borrowed */
    enum chat_think think; /* FREE, OPEN or EMPTY */
    bool known, trims;     /* there is a template of Qwen's; it trims content */
    int32_t im_start, im_end;
    struct ivec ids;
    struct chat_span *responses; /* what the model must produce, one span per assistant message: from the first token
                                    after the generation prompt through <|im_end|>; the "\n" behind it is outside */
    size_t n_responses;
    bool open; /* a generation prompt waits for chat_response */
};

/* The template of folders that are trained here: a message as above, and no system message that nobody wrote. */
extern const char chat_template_plain[];
/* That, where the tokenizer's own template renders other prompts than this file does (a default system message), or
 * where there is none; NULL where its own is right, or it has no ChatML. */
const char *chat_template_trained(const struct tokenizer *tok);

/* Fails when the tokenizer lacks <|im_start|> or <|im_end|>. */
int chat_begin(struct chat *c, struct tokenizer *tok, enum chat_think think, struct err *e);
void chat_free(struct chat *c);
int chat_copy(struct chat *to, const struct chat *from); /* an independent copy: one prompt, a group of rollouts; 0 */

/* role: "system", "user" or "assistant". An assistant message is generation prompt + content + <|im_end|>; with a
 * template its thinking stands in a <think> block, an empty one where it has none. */
int chat_message(struct chat *c, const char *role, const char *content, size_t n, struct err *e);

/* An assistant message of an earlier turn as the templates render it again: without its thinking, and with no span. For
 * dialogues that come as text from elsewhere. */
int chat_past(struct chat *c, const char *content, size_t n, struct err *e);

int chat_prompt(struct chat *c, struct err *e); /* appends the generation prompt: c->ids is now the model's input */
/* Appends sampled ids as they are. A response cut off before <|im_end|> gets one, outside its span: the model did not
 * produce it, so it takes no loss. Then "\n". */
int chat_response(struct chat *c, const int32_t *ids, size_t n, struct err *e);

#endif
