/* dialogue.c - conversations as ids or as messages. */
#include "answers/dialogue.h"

#include <string.h>

#include "base/json.h"

int dialogue_chat_begin(struct chat *c, struct tokenizer *tok, const json_t *messages, struct err *e)
{
    int rc = chat_begin(c, tok, CHAT_THINK_DEFAULT, e);
    const json_t *m;
    size_t i;

    json_array_foreach(messages, i, m) {
        const char *content = json_str(m, "content", "");

        if (rc == 0)
            rc = chat_message(c, json_str(m, "role", "user"), content, strlen(content), e);
    }
    if (rc == 0)
        rc = chat_prompt(c, e);
    if (rc < 0 && c->tok)
        chat_free(c);
    return rc;
}

int dialogue_chat_go_on(struct chat *c, const int32_t *ids, size_t n, const char *say, struct err *e)
{
    if (chat_response(c, ids, n, e) < 0 || chat_message(c, "user", say, strlen(say), e) < 0)
        return -1;
    return chat_prompt(c, e);
}

int dialogue_begin(struct dialogue *d, struct tokenizer *tok, const json_t *messages, struct err *e)
{
    *d = (struct dialogue){.messages = tok ? NULL : json_deep_copy(messages)};
    return tok ? dialogue_chat_begin(&d->chat, tok, messages, e) : 0;
}

void dialogue_free(struct dialogue *d)
{
    if (d->chat.tok)
        chat_free(&d->chat);
    json_decref(d->messages);
    *d = (struct dialogue){0};
}

static void dialogue_add_message(struct dialogue *d, const char *role, const char *text)
{
    json_array_append_new(d->messages, json_pack("{s:s,s:o}", "role", role, "content", json_utf8(text, strlen(text))));
}

int dialogue_go_on(struct dialogue *d, const int32_t *ids, size_t n, const char *text, const char *say, struct err *e)
{
    if (!d->messages)
        return dialogue_chat_go_on(&d->chat, ids, n, say, e);
    dialogue_add_message(d, "assistant", text);
    dialogue_add_message(d, "user", say);
    return 0;
}
