/* fuzz_request.c - bodies of requests are strangers' bytes: each is refused with one line, or read into what keeps its
 * own limits. The input is read as KernelGYM's POST /evaluate, and as both of OpenAI's endpoints. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "chat/chat_ask.h"
#include "serve/compat_kernelgym.h"

#define VOCAB 259
#define MAX_LEN 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Bytes as tokens, and the two that a dialogue needs. */
static struct tokenizer *bytes_and_marks(void)
{
    static const char *const marks[] = {"<|im_start|>", "<|im_end|>", "<|endoftext|>"};
    struct err e = ERR_INIT;
    struct buf b;
    struct tokenizer *t;
    int extra = 256;

    buf_init(&b, 1 << 20);
    buf_adds(&b, "{\"added_tokens\":[");
    for (int i = 0; i < 3; i++)
        buf_addf(&b, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", i ? "," : "", 256 + i, marks[i]);
    buf_adds(&b, "],\"model\":{\"vocab\":{");
    for (int i = 0; i < 256; i++) {
        int plain = (i >= 33 && i < 127) || (i >= 161 && i < 173) || i >= 174;
        buf_addf(&b, "%s\"\\u%04x\":%d", i ? "," : "", plain ? i : extra++, i);
    }
    buf_adds(&b, "},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                 "\"use_regex\":true}}");
    if (!(t = tokenizer_parse(b.p, b.n, "bytes", &e)))
        abort();
    buf_free(&b);
    return t;
}

static void check_line(const struct err *e)
{
    if (!*e->msg || strchr(e->msg, '\n'))
        abort();
}

static void check_ask(const json_t *body, bool chat)
{
    static struct tokenizer *t;
    struct ask_limits l = {.model = "m", .max_len = MAX_LEN, .vocab = VOCAB};
    const char *param = NULL, *code = NULL;
    struct err e = ERR_INIT;
    struct chat_ask a = {0};

    t = t ? t : bytes_and_marks();
    if (ask_read(body, chat, t, &l, &a, &param, &code, &e) < 0) {
        check_line(&e);
        return;
    }
    if (a.n < 1 || a.n_prompts < 1 || a.n * a.n_prompts > ASK_SAMPLES || a.max_new < 1 || a.n_stop > ASK_STOPS ||
        a.n_stop_ids > ASK_STOPS || !(a.choice.temperature >= 0) || !(a.choice.top_p >= 0 && a.choice.top_p <= 1))
        abort();
    for (int i = 0; i < a.n_prompts; i++)
        if (a.prompt[i].n < 1 || a.prompt[i].n + (size_t)a.max_new > MAX_LEN)
            abort();
    ask_free(&a);
}

static void check_kernelgym(const json_t *body)
{
    struct kg_request r = {0};
    struct err e = ERR_INIT;
    char *hosted;

    if (kg_request_read(body, &r, &e) < 0) {
        check_line(&e);
        return;
    }
    if (!r.program || !r.task_id || !(r.timeout_s >= 10 && r.timeout_s <= 3600) || r.priority < -1 || r.priority > 1)
        abort();
    hosted = kg_reference_on_host(r.reference);
    if (strstr(hosted, "device=\"cuda\"") || strstr(hosted, "device='cuda:0'"))
        abort();
    free(hosted);
    kg_request_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = ERR_INIT;
    json_t *body = json_parse((const char *)data, n, "the body", &e);

    if (!body) {
        check_line(&e);
        return 0;
    }
    check_kernelgym(body);
    check_ask(body, true);
    check_ask(body, false);
    json_decref(body);
    return 0;
}
