/* fuzz_folder.c - a model folder is a stranger's: the input, cut at its 0 bytes, is config.json, generation_config.json
 * and tokenizer_config.json beside weights of ours. The folder is refused with one line, or it is
 * loaded, and what is saved of it is loaded again with the same weights. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "nn/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#ifndef _OPENMP /* libFuzzer's build has one thread */
int omp_get_max_threads(void);
int omp_get_thread_num(void);

int omp_get_max_threads(void)
{
    return 1;
}

int omp_get_thread_num(void)
{
    return 0;
}
#endif

static char *dir, *saved;

static const char config[] =
    "{\"model_type\":\"llama\",\"vocab_size\":12,\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"tie_word_embeddings\":true}";

static void check_line(const struct err *e)
{
    if (!*e->msg || strchr(e->msg, '\n'))
        abort();
}

static void leave(void)
{
    dir_remove(dir, NULL);
    dir_remove(saved, NULL);
    free(dir), free(saved);
}

/* In memory where there is such a folder: a file is written for every input. */
static void begin(void)
{
    struct err e = ERR_INIT;
    struct model_config c;
    struct model *m;
    char *path;

    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    log_set_level(LOG_ERROR);
    dir = dir_temp("fuzz-folder", &e), saved = dir_temp("fuzz-saved", &e);
    path = path_join(dir, "config.json");
    if (file_write(path, config, sizeof config - 1, &e) < 0 || model_config_read(path, &c, &e) < 0 ||
        !(m = model_init(&c, 1, &e)) || model_save(m, dir, &e) < 0)
        abort();
    free(path);
    model_config_free(&c);
    model_free(m);
    atexit(leave);
}

static void put(const char *name, const char *p, size_t n)
{
    char *path = path_join(dir, name);
    FILE *f = fopen(path, "w");

    if (!f || fwrite(p, 1, n, f) != n || fclose(f))
        abort();
    free(path);
}

static void load_again(const struct model *m)
{
    struct err e = ERR_INIT;
    struct model *same;

    if (model_save(m, saved, &e) < 0) {
        check_line(&e);
        return;
    }
    if (!(same = model_load(saved, &e)))
        abort();
    if (same->n_params != m->n_params || memcmp(same->weights, m->weights, m->n_params * sizeof *m->weights))
        abort();
    model_free(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer_config.json"};
    const char *p = (const char *)data, *end = p + n, *zero;
    struct err e = ERR_INIT;
    struct model *m;
    int max_new;

    if (!dir)
        begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        zero = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
        put(names[i], p < end ? p : "{}", p < end ? (size_t)((zero ? zero : end) - p) : 2);
        p = zero ? zero + 1 : end;
    }
    if (model_folder_max_new(dir, 0, &max_new, &e) < 0)
        check_line(&e);
    e = (struct err)ERR_INIT;
    if ((m = model_load(dir, &e))) {
        load_again(m);
        model_free(m);
    } else {
        check_line(&e);
    }
    return 0;
}
