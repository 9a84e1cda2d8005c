/* test_answers.c - a source of answers over a model folder: what the sampler draws, dialogues that only grow, prompts
 * without room; and a dialogue as a server gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../lib/tiny.h"
#include "answers/answers.h"
#include "base/json.h"
#include "nn/sampler.h"

static struct answers *source;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    tiny_make();
    char *init = tiny_path("init");
    tiny_must(answers_open(&(struct answers_config){.model = init}, &source, &e), &e);
    free(init);
    return 0;
}

static int teardown(void **state)
{
    answers_close(source);
    tiny_remove();
    return 0;
}

struct heard {
    int n, empty, fail_at;
    char *text[8];
    int32_t *ids[8];
    int n_ids[8], request[8], index[8];
};

static int hear(void *ctx, int request, int index, const struct answer *a, struct err *e)
{
    struct heard *h = ctx;

    if (h->fail_at && h->n == h->fail_at)
        return err_set(e, ERR_INPUT, "enough");
    h->empty += !a;
    h->request[h->n] = request;
    h->index[h->n] = index;
    h->text[h->n] = a ? xstrdup(a->text) : NULL;
    h->n_ids[h->n] = a ? a->n : 0;
    h->ids[h->n] = a ? xmalloc((size_t)a->n * sizeof(int32_t)) : NULL;
    if (a)
        memcpy(h->ids[h->n], a->ids, (size_t)a->n * sizeof(int32_t));
    h->n++;
    return 0;
}

static void heard_free(struct heard *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->text[i]), free(h->ids[i]);
    *h = (struct heard){0};
}

static struct dialogue begin(struct tokenizer *tok, const char *say)
{
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", say);
    struct err e = ERR_INIT;
    struct dialogue d;

    tiny_must(dialogue_begin(&d, tok, messages, &e), &e);
    json_decref(messages);
    return d;
}

/* Two answers to one dialogue are the sampler's two samples of its ids. */
static void draws_what_the_sampler_draws(void **state)
{
    struct dialogue d = begin(answers_tokenizer(source), "make 3");
    struct heard h = {0};
    struct answers_options o = {.temperature = 1, .top_p = 1, .max_new = 12, .on_answer = hear, .ctx = &h};
    struct answers_request r = {.dialogue = &d, .n = 2, .seed = 77};
    struct sampler_options so = {.temperature = 1, .top_p = 1, .max_new = 12};
    struct sample_request q = {.prompt = d.chat.ids.v, .n_prompt = (int)d.chat.ids.n, .n_samples = 2, .seed = 77};
    struct err e = ERR_INIT;
    char *init = tiny_path("init");
    struct model *m = model_load(init, &e);
    struct sample *s;
    size_t n;

    tiny_must(model_use_tokenizer(m, answers_tokenizer(source), &e), &e);
    tiny_must(sampler_run(m, &so, &q, 1, &s, &n, &e), &e);
    tiny_must(answers_draw(source, &o, &r, 1, &e), &e);
    assert_int_equal(h.n, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(h.n_ids[i], s[h.index[i]].n);
        assert_memory_equal(h.ids[i], s[h.index[i]].tokens, (size_t)h.n_ids[i] * sizeof(int32_t));
    }
    samples_free(s, n);
    model_free(m);
    free(init);
    heard_free(&h);
    dialogue_free(&d);
}

/* What was sampled is never tokenised again: the next request begins with the ids of this one and of the answer. */
static void dialogues_only_grow(void **state)
{
    struct tokenizer *tok = answers_tokenizer(source);
    struct dialogue d = begin(tok, "make 3");
    int32_t odd[] = {5, 6, 7, 300 - 1};
    size_t before = d.chat.ids.n;
    int32_t *old = xmalloc(before * sizeof *old);
    struct err e = ERR_INIT;

    memcpy(old, d.chat.ids.v, before * sizeof *old);
    tiny_must(dialogue_go_on(&d, odd, 4, "not read", "wrong", &e), &e);
    assert_memory_equal(d.chat.ids.v, old, before * sizeof *old);
    assert_memory_equal(d.chat.ids.v + before, odd, sizeof odd);
    assert_true(d.chat.open && d.chat.ids.n > before + 4);
    free(old);
    dialogue_free(&d);
}

static void a_server_gets_messages(void **state)
{
    struct dialogue d = begin(NULL, "make 3");
    struct err e = ERR_INIT;
    char *text;

    tiny_must(dialogue_go_on(&d, NULL, 0, "int x;", "wrong", &e), &e);
    text = json_text(d.messages);
    assert_string_equal(text, "[{\"role\":\"user\",\"content\":\"make 3\"},"
                              "{\"role\":\"assistant\",\"content\":\"int x;\"},"
                              "{\"role\":\"user\",\"content\":\"wrong\"}]");
    free(text);
    dialogue_free(&d);
}

/* A dialogue without room is answered by nothing, once for each answer; others are drawn, under their own number. */
static void no_room(void **state)
{
    struct tokenizer *tok = answers_tokenizer(source);
    char *words = xmalloc(2001);
    struct dialogue d[2];
    struct heard h = {0};
    struct answers_options o = {.temperature = 1, .max_new = 4, .on_answer = hear, .ctx = &h};
    struct answers_request r[2] = {{.dialogue = &d[0], .n = 2, .seed = 1}, {.dialogue = &d[1], .n = 1, .seed = 2}};
    struct err e = ERR_INIT;

    memset(words, 'x', 2000);
    words[2000] = 0;
    d[0] = begin(tok, words), d[1] = begin(tok, "make 3");
    tiny_must(answers_draw(source, &o, r, 2, &e), &e);
    assert_int_equal(h.n, 3);
    assert_int_equal(h.empty, 2);
    assert_int_equal(h.request[2], 1);
    heard_free(&h);
    h.fail_at = 1;
    assert_int_equal(answers_draw(source, &o, r, 2, &e), -1);
    assert_string_equal(e.msg, "enough");
    heard_free(&h);
    dialogue_free(&d[0]), dialogue_free(&d[1]);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws_what_the_sampler_draws),
                                       cmocka_unit_test(dialogues_only_grow), cmocka_unit_test(a_server_gets_messages),
                                       cmocka_unit_test(no_room)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
