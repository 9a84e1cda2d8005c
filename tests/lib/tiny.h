/* tiny.h - a tiny corpus, tokenizer and model in a temporary folder, for the tests of whole stages. */
#ifndef MC_TEST_TINY_H
#define MC_TEST_TINY_H

#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "nn/model.h"
#include "nn/tokenizer.h"
#include "train/scratch.h"

static char *tiny_dir;

static char *tiny_path(const char *name)
{
    return path_join(tiny_dir, name);
}

static void tiny_must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "tiny: %s\n", e->msg);
        abort();
    }
}

/* data.jsonl: 40 records of two kinds; prompts.jsonl: 6 prompts; init/: vocabulary 300, about 20k weights. */
static void tiny_make(void)
{
    struct err e = ERR_INIT;
    struct buf data, prompts;

    omp_set_num_threads(1); // too small to share, and tests run side by side
    tiny_dir = dir_temp("train", &e);
    buf_init(&data, BUF_MAX_TEXT);
    buf_init(&prompts, BUF_MAX_TEXT);
    for (int i = 0; i < 40; i++)
        buf_addf(&data, "{\"id\":\"r%d\",\"kind\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"make %d\"},"
                        "{\"role\":\"assistant\",\"content\":\"int f(int a) { return a + %d; }\"}]}\n",
                 i, i % 4 ? "generate" : "repair", i % 10, i % 10);
    for (int i = 0; i < 6; i++)
        buf_addf(&prompts, "{\"prompt\":[{\"role\":\"user\",\"content\":\"make %d\"}],\"extra_info\":{\"name\":\"p%d\","
                           "\"task_code\":\"task %d\",\"families\":[\"toy\"],\"graph_hash\":\"%d\"}}\n", i, i, i, i);
    char *d = tiny_path("data.jsonl"), *p = tiny_path("prompts.jsonl"), *init = tiny_path("init");
    tiny_must(file_write(d, data.p, data.n, &e), &e);
    tiny_must(file_write(p, prompts.p, prompts.n, &e), &e);
    struct scratch_options so = {.data = d, .out = init, .range = 0.02, .vocab = 300, .hidden = 32, .intermediate = 64,
                                 .layers = 2, .heads = 2, .kv_heads = 1, .head_dim = 16, .positions = 256, .seed = 1};
    tiny_must(scratch_make(&so, &e), &e);
    free(d);
    free(p);
    free(init);
    buf_free(&data);
    buf_free(&prompts);
}

static void tiny_remove(void)
{
    dir_remove(tiny_dir, NULL);
    free(tiny_dir);
}

/* True when both folders hold the same model.safetensors. */
static inline bool tiny_same_model(const char *a, const char *b)
{
    char *pa = path_join(a, "model.safetensors"), *pb = path_join(b, "model.safetensors");
    struct buf x, y;
    struct err e = ERR_INIT;
    bool same;

    buf_init(&x, BUF_MAX_TEXT);
    buf_init(&y, BUF_MAX_TEXT);
    tiny_must(file_read(pa, &x, &e), &e);
    tiny_must(file_read(pb, &y, &e), &e);
    same = x.n == y.n && !memcmp(x.p, y.p, x.n);
    buf_free(&x);
    buf_free(&y);
    free(pa);
    free(pb);
    return same;
}

/* True when the folder is a whole model folder: weights and tokenizer. */
static inline bool tiny_whole_model(const char *dir)
{
    struct err e = ERR_INIT;
    struct tokenizer *t = tokenizer_load(dir, &e);
    struct model *m = t ? model_load(dir, &e) : NULL;
    bool ok = m != NULL;

    if (m)
        model_free(m);
    tokenizer_free(t);
    return ok;
}

/* Starts work(arg) in a child, waits until it has written another checkpoint into run, lets it go on for a moment and
 * kills it. True when it was killed in its work. The caller must not have used OpenMP threads before. */
static inline bool tiny_killed(int (*work)(const void *arg), const void *arg, const char *run, unsigned extra_us)
{
    char *latest = path_join(run, "checkpoint/latest");
    struct buf before, now;
    int status;
    pid_t pid;

    buf_init(&before, 64);
    buf_init(&now, 64);
    file_read(latest, &before, NULL);
    if ((pid = fork()) == 0)
        _exit(work(arg) < 0);
    do {
        usleep(500);
        buf_clear(&now);
        file_read(latest, &now, NULL);
    } while (waitpid(pid, &status, WNOHANG) == 0 && !strcmp(before.p, now.p));
    usleep(extra_us);
    if (kill(pid, SIGKILL) == 0)
        waitpid(pid, &status, 0);
    buf_free(&before);
    buf_free(&now);
    free(latest);
    return WIFSIGNALED(status);
}

#endif
