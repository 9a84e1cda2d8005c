/* chat.c - see chat.h. */
#include "nn/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define OPEN_THINK "<think>\n"
#define EMPTY_THINK "<think>\n\n</think>\n\n"

const char chat_template_plain[] =
    "{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

static const char *const think_text[] = {[CHAT_THINK_FREE] = "", [CHAT_THINK_OPEN] = OPEN_THINK,
                                         [CHAT_THINK_EMPTY] = EMPTY_THINK};

/* What the template's source holds, not what it means: there are few, and all are Qwen's. Its strings spell a line's
 * end as a backslash and an n. */
static void chat_read_template(struct chat *c, const char *text)
{
    const char *tail = text ? strstr(text, "add_generation_prompt") : NULL;
    bool opens = tail && strstr(tail, "<think>\\n'"), off = tail && strstr(tail, "enable_thinking is true");

    c->known = tail && strstr(text, "</think>");
    c->trims = c->known && strstr(text, ")|trim");
    if (c->think == CHAT_THINK_DEFAULT)
        c->think = !opens ? CHAT_THINK_FREE : off ? CHAT_THINK_EMPTY : CHAT_THINK_OPEN;
    else if (c->think == CHAT_THINK_ON)
        c->think = opens ? CHAT_THINK_OPEN : CHAT_THINK_FREE;
}

struct text {
    const char *p;
    size_t n;
};

/* One white-space character at the beginning or end of t: its bytes, 0: none. As Python's str.strip sees it. */
static size_t chat_space_at(struct text t, bool end)
{
    static const char *const wide[] = {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
                                       "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85",
                                       "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89",
                                       "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                       "\xe2\x81\x9f", "\xe3\x80\x80"};
    unsigned char c = t.n ? (unsigned char)t.p[end ? t.n - 1 : 0] : 'x';

    if (c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t k = strlen(wide[i]);
        if (t.n >= k && !memcmp(end ? t.p + t.n - k : t.p, wide[i], k))
            return k;
    }
    return 0;
}

/* The text without white space at both ends. */
static struct text chat_trimmed(struct text t)
{
    size_t k;

    while ((k = chat_space_at(t, false)))
        t.p += k, t.n -= k;
    while ((k = chat_space_at(t, true)))
        t.n -= k;
    return t;
}

/* The text without line breaks at its begin, at its end, or both. */
static struct text chat_without_newlines(struct text t, bool begin, bool end)
{
    while (begin && t.n && *t.p == '\n')
        t.p++, t.n--;
    while (end && t.n && t.p[t.n - 1] == '\n')
        t.n--;
    return t;
}

/* The first or last place of the word in t; NULL: none. */
static const char *chat_find(struct text t, const char *word, bool last)
{
    const char *found = NULL;
    size_t k = strlen(word);

    for (size_t i = 0; i + k <= t.n && (last || !found); i++)
        if (!memcmp(t.p + i, word, k))
            found = t.p + i;
    return found;
}

/* As the templates part an assistant's content: what stands before the first </think>, behind its last <think>; and
 * what stands behind the last </think>. */
static void chat_part_thinking(const struct chat *c, struct text content, struct text *thinking, struct text *answer)
{
    const char *close = chat_find(content, "</think>", false), *last = chat_find(content, "</think>", true), *open;

    *thinking = (struct text){content.p, 0};
    *answer = content;
    if (!close)
        return;
    *thinking = chat_without_newlines((struct text){content.p, (size_t)(close - content.p)}, false, true);
    if ((open = chat_find(*thinking, "<think>", true))) {
        size_t skip = (size_t)(open - thinking->p) + strlen("<think>");
        *thinking = (struct text){thinking->p + skip, thinking->n - skip};
    }
    *thinking = chat_without_newlines(*thinking, true, false);
    if (c->trims)
        *thinking = chat_trimmed(*thinking);
    last += strlen("</think>");
    *answer = chat_without_newlines((struct text){last, (size_t)(content.p + content.n - last)}, true, false);
}

const char *chat_template_trained(const struct tokenizer *tok)
{
    const char *own = tokenizer_chat_template(tok);
    struct chat c = {.think = CHAT_THINK_DEFAULT};

    chat_read_template(&c, own);
    if (c.known || (own && !strcmp(own, chat_template_plain)) || tokenizer_id(tok, "<|im_start|>") < 0 ||
        tokenizer_id(tok, "<|im_end|>") < 0)
        return NULL;
    return chat_template_plain;
}

int chat_begin(struct chat *c, struct tokenizer *tok, enum chat_think think, struct err *e)
{
    memset(c, 0, sizeof *c);
    c->tok = tok;
    c->think = think;
    chat_read_template(c, tokenizer_chat_template(tok));
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

/* Appends the ids of a text. */
static int chat_add_text(struct chat *c, const char *text, size_t n, enum tokenizer_mode mode, struct err *e)
{
    return tokenizer_encode(c->tok, text, n, mode, &c->ids, e);
}

/* Header and content are one text: "user\n" + "\n..." has a piece that crosses the border. */
static int chat_add_message(struct chat *c, const char *role, const char *content, size_t n, enum tokenizer_mode mode,
                            struct err *e)
{
    size_t k = strlen(role);
    char *text = xmalloc(k + 1 + n);
    int rc;

    memcpy(text, role, k);
    text[k] = '\n';
    if (n)
        memcpy(text + k + 1, content, n);
    ivec_push(&c->ids, c->im_start);
    rc = chat_add_text(c, text, k + 1 + n, mode, e);
    ivec_push(&c->ids, c->im_end);
    free(text);
    return rc < 0 ? -1 : chat_add_text(c, "\n", 1, TOK_PLAIN, e);
}

/* Notes a response: tokens [from, to). */
static void chat_add_span(struct chat *c, size_t from, size_t to)
{
    c->responses = xrealloc(c->responses, (c->n_responses + 1) * sizeof *c->responses);
    c->responses[c->n_responses++] = (struct chat_span){from, to};
}

/* Appends what comes before an assistant's answer. ERR_BUG: that is there already. */
static int chat_open_prompt(struct chat *c, enum chat_think think, struct err *e)
{
    char text[64];

    if (c->open)
        return err_set(e, ERR_BUG, "a generation prompt is already open");
    ivec_push(&c->ids, c->im_start);
    strcpy(text, "assistant\n");
    strcat(text, think_text[think]);
    if (chat_add_text(c, text, strlen(text), TOK_MARKUP, e) < 0)
        return -1;
    c->open = true;
    return 0;
}

int chat_prompt(struct chat *c, struct err *e)
{
    return chat_open_prompt(c, c->think, e);
}

int chat_response(struct chat *c, const int32_t *ids, size_t n, struct err *e)
{
    size_t from = c->ids.n;

    if (!c->open)
        return err_set(e, ERR_BUG, "a response needs a generation prompt before it");
    ivec_append(&c->ids, ids, n);
    chat_add_span(c, from, c->ids.n);
    if (n == 0 || ids[n - 1] != c->im_end)
        ivec_push(&c->ids, c->im_end);
    c->open = false;
    return chat_add_text(c, "\n", 1, TOK_PLAIN, e);
}

/* The generation prompt, then text as what the model says: markup in it counts. */
static int chat_add_response(struct chat *c, enum chat_think think, struct text say, struct err *e)
{
    struct ivec ids = {0};
    int rc = chat_open_prompt(c, think, e);

    if (rc == 0)
        rc = tokenizer_encode(c->tok, say.p, say.n, TOK_MARKUP, &ids, e);
    if (rc == 0) {
        ivec_push(&ids, c->im_end);
        rc = chat_response(c, ids.v, ids.n, e);
    }
    ivec_free(&ids);
    return rc;
}

/* Adds an assistant's message: its thinking goes into the template's block, less what the generation prompt holds of
 * that block already. */
static int chat_add_assistant(struct chat *c, struct text content, struct err *e)
{
    struct text thinking, answer;
    enum chat_think think = c->think;
    struct buf text;
    int rc;

    if (!c->known)
        return chat_add_response(c, think, content, e);
    chat_part_thinking(c, content, &thinking, &answer);
    answer = chat_without_newlines(answer, true, false);
    if (think == CHAT_THINK_EMPTY && thinking.n)
        think = CHAT_THINK_OPEN;
    buf_init(&text, BUF_MAX_TEXT);
    if (think == CHAT_THINK_FREE)
        buf_adds(&text, OPEN_THINK);
    if (think != CHAT_THINK_EMPTY) {
        buf_add(&text, thinking.p, thinking.n);
        buf_adds(&text, "\n</think>\n\n");
    }
    buf_add(&text, answer.p, answer.n);
    rc = chat_add_response(c, think, (struct text){text.p, text.n}, e);
    buf_free(&text);
    return rc;
}

int chat_past(struct chat *c, const char *content, size_t n, struct err *e)
{
    struct text t = {content, n}, thinking, answer = t;

    if (c->known)
        chat_part_thinking(c, c->trims ? chat_trimmed(t) : t, &thinking, &answer);
    return chat_add_message(c, "assistant", answer.p, answer.n, TOK_MARKUP, e);
}

int chat_message(struct chat *c, const char *role, const char *content, size_t n, struct err *e)
{
    struct text t = {content, n};

    if (c->trims)
        t = chat_trimmed(t);
    if (!strcmp(role, "assistant"))
        return chat_add_assistant(c, t, e);
    if (strcmp(role, "system") && strcmp(role, "user"))
        return err_set(e, ERR_INPUT, "no role '%.60s'; a message is by 'system', 'user' or 'assistant'", role);
    if (c->open)
        return err_set(e, ERR_BUG, "a generation prompt is open; the response comes first");
    if (c->trims && c->ids.n && !strcmp(role, "system"))
        return err_set(e, ERR_INPUT, "this model's chat template takes a system message at the beginning only");
    return chat_add_message(c, role, t.p, t.n, TOK_PLAIN, e);
}
