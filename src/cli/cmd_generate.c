/* cmd_generate.c - what a model says to a prompt, printed as it is drawn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "nn/chat.h"
#include "nn/sampler.h"
#include "nn/tokenizer.h"

static const struct opt rows[] = {
    {"generate", "model", OPT_STR, NULL, "model folder with tokenizer.json"},
    {"generate", "prompt", OPT_STR, NULL, "the prompt"},
    {"generate", "file", OPT_STR, NULL, "read the prompt from this file; '-' is stdin"},
    {"generate", "raw", OPT_BOOL, "false", "continue the text itself instead of answering it as a chat message"},
    {"generate", "n", OPT_INT, "1", "samples to draw"},
    {"generate", "temperature", OPT_REAL, "0.7", "0 is greedy"},
    {"generate", "top-p", OPT_REAL, "0.95", "keep the smallest set of tokens with this probability"},
    {"generate", "top-k", OPT_INT, "0", "keep this many tokens; 0 is all"},
    {"generate", "max-tokens", OPT_INT, "1024", "tokens per sample at most"},
    {"generate", "seed", OPT_INT, "1", "same seed, same samples"},
    {"generate", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs"},
    {"generate", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device"},
    {0},
};

/* Bytes go out as soon as they are whole characters: a token may end inside one. */
struct generate_stream {
    const struct tokenizer *tok;
    struct buf held;
};

/* Length of the longest prefix that does not end inside a UTF-8 character. */
static size_t generate_whole_characters(const struct buf *b)
{
    size_t back = 1;

    for (; back <= 3 && back <= b->n; back++) {
        unsigned char c = (unsigned char)b->p[b->n - back];
        if ((c & 0xC0) == 0x80)
            continue;
        size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        return need > back ? b->n - back : b->n;
    }
    return b->n;
}

/* A callback of the sampler: prints whole characters; false where stdout is gone. */
static bool generate_on_token(void *ctx, const struct sample *o)
{
    struct generate_stream *s = ctx;
    size_t n;

    tokenizer_decode(s->tok, &o->tokens[o->n - 1], 1, true, &s->held);
    n = generate_whole_characters(&s->held);
    fwrite(s->held.p, 1, n, stdout);
    fflush(stdout);
    memmove(s->held.p, s->held.p + n, s->held.n - n);
    s->held.n -= n;
    s->held.p[s->held.n] = 0;
    return true;
}

/* Appends the prompt of --prompt or --file; '-' is stdin. */
static int generate_read_prompt(const struct opts *o, struct buf *out, struct err *e)
{
    const char *text = opts_str(o, "prompt"), *file = opts_str(o, "file");
    char block[4096];
    size_t n;

    if (!text == !file)
        return err_set(e, ERR_INPUT, "give either --prompt TEXT or --file FILE");
    if (text)
        buf_adds(out, text);
    else if (!strcmp(file, "-"))
        while ((n = fread(block, 1, sizeof block, stdin)) > 0)
            buf_add(out, block, n);
    else
        return file_read(file, out, e);
    return 0;
}

/* Appends the prompt's tokens: raw, or as a user's message. */
static int generate_encode_prompt(const struct opts *o, struct tokenizer *tok, struct ivec *ids, struct err *e)
{
    struct buf text;
    struct chat c;
    int rc;

    buf_init(&text, BUF_MAX_TEXT);
    rc = generate_read_prompt(o, &text, e);
    if (rc == 0 && opts_bool(o, "raw"))
        rc = tokenizer_encode(tok, text.p, text.n, TOK_SPECIAL, ids, e);
    else if (rc == 0 && (rc = chat_begin(&c, tok, CHAT_THINK_DEFAULT, e)) == 0) {
        rc = chat_message(&c, "user", text.p, text.n, e);
        rc = rc < 0 ? rc : chat_prompt(&c, e);
        ivec_append(ids, c.ids.v, c.ids.n);
        chat_free(&c);
    }
    buf_free(&text);
    return rc;
}

static void generate_print_samples(const struct tokenizer *tok, const struct sample *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *text = tokenizer_text(tok, s[i].tokens, (size_t)s[i].n, true);
        printf("%s--- sample %zu of %zu, %d tokens%s\n%s\n", i ? "\n" : "", i + 1, n, s[i].n,
               s[i].finish == FINISH_STOP ? "" : ", cut off", text);
        free(text);
    }
}

/* Samples and prints the text as it comes. */
static int generate_generate(const struct opts *o, struct model *m, struct tokenizer *tok, const struct ivec *ids,
                             struct err *e)
{
    struct generate_stream stream = {.tok = tok};
    struct sampler_options so = {.temperature = (float)opts_real(o, "temperature"),
                                 .top_p = (float)opts_real(o, "top-p"),
                                 .top_k = (int)opts_int(o, "top-k"), .max_new = (int)opts_int(o, "max-tokens")};
    struct sample_request q = {.prompt = ids->v, .n_prompt = (int)ids->n, .n_samples = (int)opts_int(o, "n"),
                               .seed = (uint64_t)opts_int(o, "seed")};
    int32_t end = tokenizer_id(tok, "<|im_end|>");
    struct sample *s = NULL;
    size_t n = 0;
    double start = now_s();
    int rc;

    if (!(so.top_p > 0)) /* in the struct it means 1: everything */
        return err_set(e, ERR_INPUT, "top-p wants more than 0 and at most 1; for the likeliest answer say "
                       "--temperature 0");
    if (!m->config.n_eos && end >= 0) {
        so.stop_ids = &end;
        so.n_stop = 1;
    }
    buf_init(&stream.held, 64);
    if (q.n_samples == 1) {
        so.on_token = generate_on_token;
        so.ctx = &stream;
    }
    rc = sampler_run(m, &so, &q, 1, &s, &n, e);
    if (s && q.n_samples > 1)
        generate_print_samples(tok, s, n);
    else if (s && n)
        printf("%s\n", stream.held.p);
    if (rc == 0) {
        uint64_t drawn = 0;
        for (size_t i = 0; i < n; i++)
            drawn += (uint64_t)s[i].n;
        log_info("%llu tokens, %.0f a second", (unsigned long long)drawn, (double)drawn / (now_s() - start));
    }
    samples_free(s, n);
    buf_free(&stream.held);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int generate_run(const struct opts *o, struct err *e)
{
    const char *dir = opts_str(o, "model");
    struct tokenizer *tok;
    struct model *m;
    struct ivec ids = {0};
    int rc = -1;

    if (!dir)
        return err_set(e, ERR_INPUT, "--model is needed");
    if (!(tok = tokenizer_load(dir, e)))
        return -1;
    if (generate_encode_prompt(o, tok, &ids, e) == 0 && (m = model_load(dir, e))) {
        if (model_use_tokenizer(m, tok, e) == 0 &&
            model_to_device(m, opts_str(o, "device"), opts_str(o, "dtype"), e) == 0)
            rc = generate_generate(o, m, tok, &ids, e);
        model_free(m);
    }
    ivec_free(&ids);
    tokenizer_free(tok);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_generate = {
    "generate", "let a model answer a prompt", "--model DIR (--prompt TEXT | --file FILE)",
    "Answers a prompt, written as one user message, and prints the answer while it is drawn. With --n above 1 the\n"
    "samples are drawn together and printed at the end.\n",
    rows, generate_run, 0};
