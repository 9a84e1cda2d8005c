/* model_card.c - a README for a trained model, from its run's files. */
#include "report/model_card.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"

struct card {
    const char *run;
    json_t *recipe, *summary, *corpus; /* corpus: NULL where the run made none */
    struct buf *out;
};

/* The file's JSON, new; NULL with e, also where it is absent. */
static json_t *model_card_read_file(const char *run, const char *name, struct err *e)
{
    char *path = path_join(run, name);
    json_t *v = NULL;

    if (file_exists(path))
        v = json_read(path, e);
    else
        err_set(e, ERR_INPUT, "'%s' is not there; a card is of a folder that 'musacoder run' has finished", path);
    free(path);
    return v;
}

/* The run's resolved recipe, new; NULL with e. */
static json_t *model_card_read_recipe(const char *run, struct err *e)
{
    char *path = path_join(run, "recipe.yaml");
    struct buf b;
    json_t *v = NULL;

    buf_init(&b, 1 << 20);
    if (!file_exists(path))
        err_set(e, ERR_INPUT, "'%s' is not there; a card is of a folder that 'musacoder run' has finished", path);
    else if (file_read(path, &b, e) == 0)
        v = yaml_parse(b.p, b.n, path, e);
    buf_free(&b);
    free(path);
    return v;
}

/* Appends the YAML head and the title. */
static void model_card_add_head(struct card *c)
{
    const char *base = json_str(c->recipe, "model", NULL);

    buf_adds(c->out, "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [cuda, gpu-kernels, "
                     "code, musacoder]\n");
    if (base)
        buf_addf(c->out, "base_model: %s\n", base);
    buf_addf(c->out, "---\n# %s\n\nA language model that writes native GPU kernels for PyTorch tasks, trained with "
                     "musacoder, an open implementation of MusaCoder (arXiv:2606.04847). ",
             json_str(c->recipe, "name", "model"));
    if (base)
        buf_addf(c->out, "Its weights come from `%s`: that model's licence and terms hold for this one too.\n", base);
    else
        buf_adds(c->out, "Its weights began as random numbers; all that it knows is from the corpus below.\n");
}

/* "14 million": three digits at most, for people. */
static void model_card_add_count(struct buf *out, double n)
{
    if (n >= 1e9)
        buf_addf(out, "%.3g billion", n / 1e9);
    else if (n >= 1e6)
        buf_addf(out, "%.3g million", n / 1e6);
    else
        buf_addf(out, "%.0f", n);
}

/* Appends what the model was trained on. */
static void model_card_add_corpus(struct card *c)
{
    const json_t *n = json_object_get(c->corpus, "records"), *v;
    const char *key, *sep = "";

    if (!n)
        return;
    buf_adds(c->out, "\n## Data\nSynthesised tasks and programs (`musacoder synth`), judged by MooreEval. Records: ");
    json_object_foreach((json_t *)n, key, v) {
        if (!json_number_value(v))
            continue;
        buf_addf(c->out, "%s%s ", sep, key);
        model_card_add_count(c->out, json_number_value(v));
        sep = ", ";
    }
    buf_adds(c->out, ".\n");
}

/* Appends "key value", where the section has the key. */
static void model_card_add_option(struct buf *out, const json_t *section, const char *key, const char **sep)
{
    const json_t *v = json_object_get(section, key);
    char *text;

    if (!v || json_is_null(v))
        return;
    text = json_is_string(v) ? xstrdup(json_string_value(v)) : json_is_real(v) ? xasprintf("%g", json_real_value(v))
                                                                              : json_text(v);
    buf_addf(out, "%s`%s: %s`", *sep, key, text);
    *sep = ", ";
    free(text);
}

/* Appends what the stage was run with. */
static void model_card_add_stage(struct card *c, const char *stage)
{
    static const char *const told[] = {"steps", "lr", "batch-tokens", "mix", "max-prompts", "batch-prompts", "group",
                                       "samples", "turns", "temperature", "top-p", "average", "tasks"};
    const json_t *section = json_object_get(c->recipe, stage);
    const char *sep = " - ";

    buf_addf(c->out, "- **%s**", stage);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        model_card_add_option(c->out, section, told[i], &sep);
    buf_addc(c->out, '\n');
}

/* Appends a paragraph for each stage of the recipe. */
static void model_card_add_stages(struct card *c)
{
    char *list = xstrdup(json_str(c->recipe, "stages", "")), *save = NULL;

    buf_adds(c->out, "\n## Training\n");
    for (char *w = strtok_r(list, " ,\t\n", &save); w; w = strtok_r(NULL, " ,\t\n", &save))
        model_card_add_stage(c, w);
    free(list);
}

/* Appends a cell in percent. */
static void model_card_add_share(struct buf *out, const json_t *row, const char *key)
{
    double p = json_f64(row, key, NAN);

    if (isfinite(p))
        buf_addf(out, " %.1f |", 100 * p);
    else
        buf_adds(out, " |");
}

/* Each stage's shares, and its average on each split where it has few. */
static void model_card_add_row(struct card *c, const json_t *row, const json_t *splits)
{
    const char *name;
    json_t *v;

    buf_addf(c->out, "| %s |", json_str(row, "name", ""));
    model_card_add_share(c->out, row, "pass_at_8");
    model_card_add_share(c->out, row, "avg_at_8");
    model_card_add_share(c->out, row, "whole_pass_rate");
    json_object_foreach((json_t *)splits, name, v)
        model_card_add_share(c->out, json_object_get(json_object_get(row, "families"), name), "avg_at_8");
    buf_addc(c->out, '\n');
}

#define MOST_SPLITS 8

/* Appends the benchmark's table, a row for each stage. */
static void model_card_add_results(struct card *c)
{
    const json_t *stages = json_object_get(c->summary, "stages"), *first = json_array_get(stages, 0), *row;
    json_t *splits = json_object_get(first, "families"), *v;
    int k = (int)json_i64(first, "k", 8), n = (int)json_i64(first, "samples", k), columns = 4;
    const char *name;
    size_t i;

    if (!first)
        return;
    if (json_object_size(splits) > MOST_SPLITS)
        splits = NULL;
    buf_addf(c->out, "\n## Results\n%lld held-out tasks, %d answer%s each, judged by MooreEval (%s); per cent.\n\n"
                     "| stage | Pass@%d | Avg@%d | Avg of whole answers |",
             (long long)json_i64(c->summary, "held_out_tasks", 0), n, n == 1 ? "" : "s",
             json_str(json_object_get(c->recipe, "bench"), "backend", "sim"), k, n);
    json_object_foreach(splits, name, v) {
        buf_addf(c->out, " %s |", name);
        columns++;
    }
    buf_adds(c->out, "\n|");
    for (int col = 0; col < columns; col++)
        buf_adds(c->out, "---|");
    buf_addc(c->out, '\n');
    json_array_foreach(stages, i, row)
        model_card_add_row(c, row, splits);
}

/* Appends how the model is used and what its limits are. */
static void model_card_add_end(struct card *c, const char *version)
{
    buf_addf(c->out, "\n## Use\n```\nmusacoder generate --model . --file task.py\n```\n"
                     "The folder has Hugging Face's layout. "
                     "The model was asked in the words of `style: %s`, and knows no others.\n\n"
                     "## Limits\nA program that it writes is right only when a judge says so: run it through "
                     "`musacoder "
                     "eval`. One run of one seed; see the recipe in `recipe.yaml` beside the run for all options.\n\n"
                     "Written by musacoder %s, seed %lld.\n",
             json_str(json_object_get(c->recipe, "synth"), "style", "plain"), version,
             (long long)json_i64(c->recipe, "seed", 1));
}

int model_card_build(const char *run, const char *version, struct buf *out, struct err *e)
{
    struct card c = {.run = run, .out = out};
    char *stats = path_join(run, "data/stats.json");
    struct err ignored = ERR_INIT;
    bool whole = listing_check_own(run, e) == 0 && listing_check(stats, e) == 0;

    free(stats);
    if (!whole)
        return -1;
    if ((c.recipe = model_card_read_recipe(run, e)) && (c.summary = model_card_read_file(run, "summary.json", e))) {
        c.corpus = model_card_read_file(run, "data/stats.json", &ignored);
        model_card_add_head(&c);
        model_card_add_corpus(&c);
        model_card_add_stages(&c);
        model_card_add_results(&c);
        model_card_add_end(&c, version);
    }
    json_decref(c.corpus);
    int rc = c.recipe && c.summary ? 0 : -1;
    json_decref(c.recipe);
    json_decref(c.summary);
    return rc;
}
