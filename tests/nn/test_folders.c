/* test_folders.c - model folders as others write them: huge integers, a template with a default system message, no
 * generation_config.json; what a save of a trained model says of prompts and stops; what is refused before training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "nn/model.h"

#define DATA "tests/nn/data/"
static const char default_system[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n"
    "You help<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static void put(const char *dir, const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);

    if (file_write(path, text, strlen(text), &e) < 0)
        fail_msg("%s", e.msg);
    free(path);
}

static void drop(const char *dir, const char *name)
{
    char *path = path_join(dir, name);

    remove(path);
    free(path);
}

/* Weights of bf16 in several files, with the tokenizer of SmolLM2's layout. */
static char *make_folder(int rows)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("folder", &e), *tok = path_join(dir, "tokenizer.json");
    json_t *o = json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:i}", "model_type", "llama", "vocab_size", rows,
                          "hidden_size", 32, "intermediate_size", 40, "num_hidden_layers", 2, "num_attention_heads", 4,
                          "num_key_value_heads", 2, "tie_word_embeddings", 1, "eos_token_id", 0);
    struct model_save_options half = {.dtype = "bf16", .shard_bytes = 20000};
    struct model_config c;
    struct model *m = NULL;

    if (model_config_parse(o, &c, &e) < 0 || !(m = model_init(&c, 5, &e)) || model_save_as(m, dir, &half, &e) < 0 ||
        file_copy(DATA "tok_smollm.json", tok, &e) < 0)
        fail_msg("%s", e.msg);
    json_decref(o);
    model_config_free(&c);
    model_free(m);
    drop(dir, "generation_config.json");
    json_t *config = json_pack("{s:s}", "chat_template", default_system);
    char *text = json_text(config), *all;
    all = xasprintf("{\"model_max_length\": 1000000000000000019884624838656, %s", text + 1);
    put(dir, "tokenizer_config.json", all);
    json_decref(config);
    free(text), free(all), free(tok);
    return dir;
}

static void remove_folder(char *dir)
{
    struct err e = ERR_INIT;

    dir_remove(dir, &e);
    free(dir);
}

/* The second file of weights goes; there must be several. */
static void drop_shard(const char *dir)
{
    struct err e = ERR_INIT;
    char **names;
    size_t n, dropped = 0;

    assert_int_equal(dir_list(dir, &names, &n, &e), 0);
    for (size_t i = 0; i < n; i++)
        if (!strncmp(names[i], "model-00002-of-", 15)) {
            drop(dir, names[i]);
            dropped++;
        }
    assert_int_equal(dropped, 1);
    names_free(names, n);
}

/* What training does: load both, tell the model of its tokenizer, save elsewhere. */
static void train_and_save(const char *from, const char *to)
{
    struct err e = ERR_INIT;
    struct tokenizer *tok = tokenizer_load(from, &e);
    struct model *m = tok ? model_load(from, &e) : NULL;

    if (!m || model_use_tokenizer(m, tok, &e) < 0 || model_save(m, to, &e) < 0)
        fail_msg("%s", e.msg);
    model_free(m);
    tokenizer_free(tok);
}

static json_t *read_in(const char *dir, const char *name)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);
    json_t *o = json_read(path, &e);

    if (!o)
        fail_msg("%s", e.msg);
    free(path);
    return o;
}

static void expect_asks_plainly(const char *dir)
{
    struct err e = ERR_INIT;
    struct tokenizer *tok = tokenizer_load(dir, &e);
    json_t *config = read_in(dir, "tokenizer_config.json"), *generation = read_in(dir, "generation_config.json");
    json_t *eos = json_object_get(generation, "eos_token_id");
    bool ends = false;

    if (!tok)
        fail_msg("%s", e.msg);
    assert_string_equal(tokenizer_chat_template(tok), chat_template_plain); // chat_template.jinja
    assert_string_equal(json_str(config, "chat_template", ""), chat_template_plain);
    assert_true(json_f64(config, "model_max_length", 0) > 9.9e29);
    for (size_t i = 0; i < json_array_size(eos); i++)
        ends |= json_integer_value(json_array_get(eos, i)) == tokenizer_id(tok, "<|im_end|>");
    assert_true(ends);
    json_decref(config), json_decref(generation);
    tokenizer_free(tok);
}

static void test_saved_as_trained(void **state)
{
    struct err e = ERR_INIT;
    char *from = make_folder(1000), *to = dir_temp("folder", &e), *next = dir_temp("folder", &e);

    (void)state;
    if (model_check_folder(from, &e) < 0)
        fail_msg("%s", e.msg);
    train_and_save(from, to);
    expect_asks_plainly(to);
    train_and_save(to, next); // the next stage's
    expect_asks_plainly(next);
    remove_folder(from), remove_folder(to), remove_folder(next);
}

/* An export without training carries what is there. */
static void test_export_carries(void **state)
{
    struct err e = ERR_INIT;
    char *from = make_folder(1000), *to = dir_temp("folder", &e);
    struct model *m = model_load(from, &e);
    struct tokenizer *tok;

    (void)state;
    if (!m || model_save(m, to, &e) < 0 || !(tok = tokenizer_load(to, &e)))
        fail_msg("%s", e.msg);
    assert_string_equal(tokenizer_chat_template(tok), default_system);
    tokenizer_free(tok);
    model_free(m);
    remove_folder(from), remove_folder(to);
}

/* A folder that held another model asks with this one's vocabulary afterwards, and with none of the other's files. */
static void test_export_over_another_model(void **state)
{
    struct err e = ERR_INIT;
    char *from = make_folder(1000), *to = dir_temp("folder", &e), *a = path_join(from, "tokenizer.json");
    char *b = path_join(to, "tokenizer.json"), *left = path_join(to, "merges.txt");
    struct model *m = model_load(from, &e);
    struct buf x, y;

    (void)state;
    assert_non_null(m);
    assert_int_equal(file_copy(DATA "tok_gpt2.json", b, &e), 0);
    assert_int_equal(file_write(left, "x", 1, &e), 0);
    assert_int_equal(model_save(m, to, &e), 0);
    buf_init(&x, BUF_MAX_TEXT), buf_init(&y, BUF_MAX_TEXT);
    assert_true(file_read(a, &x, &e) == 0 && file_read(b, &y, &e) == 0);
    assert_true(x.n == y.n && !memcmp(x.p, y.p, x.n));
    assert_false(file_exists(left));
    assert_int_equal(model_save(m, from, &e), 0); /* over itself nothing is lost */
    assert_true(file_exists(a));
    buf_free(&x), buf_free(&y);
    model_free(m);
    remove_folder(from), remove_folder(to);
    free(a), free(b), free(left);
}

static void expect_refusal(const char *dir, const char *word)
{
    struct err e = ERR_INIT;

    assert_int_equal(model_check_folder(dir, &e), -1);
    if (!strstr(e.msg, word) || !strstr(e.msg, dir))
        fail_msg("'%s' does not name '%s'", e.msg, word);
}

static void test_refused_before_training(void **state)
{
    struct err e = ERR_INIT;
    char *dir = make_folder(64), *file;

    (void)state;
    expect_refusal(dir, "embedding rows");
    remove_folder(dir);
    dir = make_folder(1000);
    drop(dir, "tokenizer.json");
    expect_refusal(dir, "tokenizer.json");
    file = path_join(dir, "tokenizer.json");
    assert_int_equal(file_copy(DATA "tok_gpt2.json", file, &e), 0);
    expect_refusal(dir, "<|im_start|>");
    assert_int_equal(file_copy(DATA "tok_smollm.json", file, &e), 0);
    drop_shard(dir);
    expect_refusal(dir, "model-00002");
    free(file);
    remove_folder(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_saved_as_trained), cmocka_unit_test(test_export_carries),
                                       cmocka_unit_test(test_export_over_another_model),
                                       cmocka_unit_test(test_refused_before_training)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
