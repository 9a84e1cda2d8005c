/* chat.c - see chat.h. */
#include "nn/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const think_text[] = {"", "<think>\n", "<think>\n\n</think>\n\n"};

int chat_begin(struct chat *c, struct tokenizer *tok, enum chat_think think, struct err *e)
{
    memset(c, 0, sizeof *c);
    c->tok = tok;
    c->think = think;
    c->im_start = tokenizer_id(tok, "<|im_start|>");
    c->im_end = tokenizer_id(tok, "<|im_end|>");
    if (c->im_start < 0 || c->im_end < 0)
        return err_set(e, ERR_INPUT, "the tokenizer lacks '<|im_start|>' or '<|im_end|>'; it is not made for ChatML");
    return 0;
}

void chat_free(struct chat *c)
{
    ivec_free(&c->ids);
    free(c->responses);
    memset(c, 0, sizeof *c);
}

int chat_copy(struct chat *to, const struct chat *from)
{
    *to = *from;
    memset(&to->ids, 0, sizeof to->ids);
    ivec_append(&to->ids, from->ids.v, from->ids.n);
    to->responses = xmalloc((from->n_responses + 1) * sizeof *to->responses);
    if (from->n_responses)
        memcpy(to->responses, from->responses, from->n_responses * sizeof *to->responses);
    return 0;
}

static int add_text(struct chat *c, const char *text, size_t n, enum tokenizer_mode mode, struct err *e)
{
    return tokenizer_encode(c->tok, text, n, mode, &c->ids, e);
}

/* Header and content are one text: "user\n" + "\n..." has a piece that crosses the border. */
static int add_message(struct chat *c, const char *role, const char *content, size_t n, struct err *e)
{
    size_t k = strlen(role);
    char *text = xmalloc(k + 1 + n);
    int rc;

    memcpy(text, role, k);
    text[k] = '\n';
    if (n)
        memcpy(text + k + 1, content, n);
    ivec_push(&c->ids, c->im_start);
    rc = add_text(c, text, k + 1 + n, TOK_PLAIN, e);
    ivec_push(&c->ids, c->im_end);
    free(text);
    return rc < 0 ? -1 : add_text(c, "\n", 1, TOK_PLAIN, e);
}

static void add_span(struct chat *c, size_t from, size_t to)
{
    c->responses = xrealloc(c->responses, (c->n_responses + 1) * sizeof *c->responses);
    c->responses[c->n_responses++] = (struct chat_span){from, to};
}

int chat_prompt(struct chat *c, struct err *e)
{
    char text[64];

    if (c->open)
        return err_set(e, ERR_BUG, "a generation prompt is already open");
    ivec_push(&c->ids, c->im_start);
    strcpy(text, "assistant\n");
    strcat(text, think_text[c->think]);
    if (add_text(c, text, strlen(text), TOK_MARKUP, e) < 0)
        return -1;
    c->open = true;
    return 0;
}

int chat_response(struct chat *c, const int32_t *ids, size_t n, struct err *e)
{
    size_t from = c->ids.n;

    if (!c->open)
        return err_set(e, ERR_BUG, "a response needs a generation prompt before it");
    ivec_append(&c->ids, ids, n);
    add_span(c, from, c->ids.n);
    if (n == 0 || ids[n - 1] != c->im_end)
        ivec_push(&c->ids, c->im_end);
    c->open = false;
    return add_text(c, "\n", 1, TOK_PLAIN, e);
}

static int add_assistant(struct chat *c, const char *content, size_t n, struct err *e)
{
    struct ivec ids = {0};
    int rc = chat_prompt(c, e);

    if (rc == 0)
        rc = tokenizer_encode(c->tok, content, n, TOK_MARKUP, &ids, e);
    if (rc == 0) {
        ivec_push(&ids, c->im_end);
        rc = chat_response(c, ids.v, ids.n, e);
    }
    ivec_free(&ids);
    return rc;
}

int chat_message(struct chat *c, const char *role, const char *content, size_t n, struct err *e)
{
    if (!strcmp(role, "assistant"))
        return add_assistant(c, content, n, e);
    if (strcmp(role, "system") && strcmp(role, "user"))
        return err_set(e, ERR_INPUT, "no role '%.60s'; a message is by 'system', 'user' or 'assistant'", role);
    if (c->open)
        return err_set(e, ERR_BUG, "a generation prompt is open; the response comes first");
    return add_message(c, role, content, n, e);
}
