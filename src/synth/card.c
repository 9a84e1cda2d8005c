/* card.c - see card.h. */
#include "synth/card.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "synth/entropy.h"

/* What of a shard's statistics is summed: counters by name, and plain numbers. */
static const char *const tables[] = {"kinds", "difficulty", "operators", "schedules", "refused"};
static const char *const numbers[] = {"records", "verified", "failed", "mutants", "undetected", "ir_mutants",
                                      "ir_killed", "rewrites_refuted"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Adds a shard's statistics to the sum. */
static void card_add_shard(json_t *sum, const json_t *shard)
{
    const char *key;
    json_t *v;

    for (size_t i = 0; i < COUNT(numbers); i++)
        json_count(sum, numbers[i], json_i64(shard, numbers[i], 0));
    for (size_t i = 0; i < COUNT(tables); i++)
        json_object_foreach(json_object_get(shard, tables[i]), key, v)
            json_count(json_object_get(sum, tables[i]), key, json_integer_value(v));
}

/* The sums of all shards' statistics, new; NULL with e for a shard that cannot be read. */
static json_t *card_sum_of(const char *out, long shards, struct err *e)
{
    json_t *sum = json_object();

    for (size_t i = 0; i < COUNT(tables); i++)
        json_object_set_new(sum, tables[i], json_object());
    for (long i = 0; i < shards; i++) {
        char *path = xasprintf("%s/stats/%05ld.json", out, i);
        json_t *shard = json_read(path, e);
        free(path);
        if (!shard) {
            json_decref(sum);
            return NULL;
        }
        card_add_shard(sum, shard);
        json_decref(shard);
    }
    return sum;
}

/* ---- counters in order ---- */

struct bar {
    const char *name;
    json_int_t n;
};

static int card_most_first(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;

    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

static int card_by_number(const void *a, const void *b)
{
    return atoi(((const struct bar *)a)->name) - atoi(((const struct bar *)b)->name);
}

/* Caller frees. */
static struct bar *card_sorted(json_t *table, int (*order)(const void *, const void *), size_t *ret)
{
    struct bar *v = xcalloc(json_object_size(table) + 1, sizeof *v);
    const char *key;
    json_t *n;

    *ret = 0;
    json_object_foreach(table, key, n)
        v[(*ret)++] = (struct bar){key, json_integer_value(n)};
    qsort(v, *ret, sizeof *v, order);
    return v;
}

/* ---- plots ---- */

/* Writes a file of the card and notes its hash. */
static int card_write_file(const char *out, const char *name, const struct buf *b, json_t *hashes, struct err *e)
{
    char hash[65];

    sha256_hex(b->p, b->n, hash);
    json_object_set_new(hashes, name, json_string(hash));
    return listing_replace(out, name, b->p, b->n, e);
}

/* Writes a plot with a bar for each row. */
static int card_write_bars(const char *out, const char *name, const char *title, const struct bar *v, size_t n,
                           json_t *hashes, struct err *e)
{
    json_int_t most = 1;
    struct buf b;
    int rc;

    for (size_t i = 0; i < n; i++)
        most = v[i].n > most ? v[i].n : most;
    buf_init(&b, BUF_MAX_TEXT);
    buf_addf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"%zu\" font-family=\"sans-serif\" "
             "font-size=\"12\">\n<text x=\"8\" y=\"18\" font-size=\"14\">%s</text>\n", 34 + 18 * n, title);
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "<text x=\"150\" y=\"%zu\" text-anchor=\"end\">%s</text><rect x=\"156\" y=\"%zu\" width=\"%.1f\" "
                 "height=\"13\" fill=\"#3b6ea5\"/><text x=\"%.1f\" y=\"%zu\">%lld</text>\n", 44 + 18 * i, v[i].name,
                 33 + 18 * i, 400.0 * (double)v[i].n / (double)most, 162 + 400.0 * (double)v[i].n / (double)most,
                 44 + 18 * i, (long long)v[i].n);
    buf_adds(&b, "</svg>\n");
    rc = card_write_file(out, name, &b, hashes, e);
    buf_free(&b);
    return rc;
}

/* Writes the card's plots: records by difficulty and by schedule. */
static int card_write_plots(const char *out, json_t *sum, json_t *hashes, struct err *e)
{
    char *dir = path_join(out, "plots");
    size_t n, m;
    struct bar *d = card_sorted(json_object_get(sum, "difficulty"), card_by_number, &n);
    struct bar *s = card_sorted(json_object_get(sum, "schedules"), card_most_first, &m);
    int rc = dir_make(dir, e);

    if (!rc)
        rc = card_write_bars(out, "plots/difficulty.svg", "Records by difficulty (operators + 2 x kernels)", d, n,
                             hashes, e);
    if (!rc)
        rc = card_write_bars(out, "plots/schedules.svg", "Kernels by schedule", s, m, hashes, e);
    free(dir), free(d), free(s);
    return rc;
}

/* ---- the card ---- */

/* Appends a table of at most 'most' rows, largest first. */
static void card_add_table(struct buf *b, const char *title, const char *head, json_t *table, size_t most)
{
    size_t n;
    struct bar *v = card_sorted(table, card_most_first, &n);

    buf_addf(b, "\n## %s\n| %s | number |\n|---|---|\n", title, head);
    for (size_t i = 0; i < n && i < most; i++)
        buf_addf(b, "| %s | %lld |\n", v[i].name, (long long)v[i].n);
    if (n > most)
        buf_addf(b, "\nand %zu more.\n", n - most);
    free(v);
}

/* The columns, said outright: a file whose records were never verified has nothing but nulls to guess a type from. */
static const char features[] =
    "dataset_info:\n  features:\n"
    "  - name: id\n    dtype: string\n  - name: kind\n    dtype: string\n"
    "  - name: messages\n    list:\n    - name: role\n      dtype: string\n    - name: content\n      dtype: string\n"
    "  - name: task\n    struct:\n    - name: code\n      dtype: string\n    - name: ops\n      sequence: string\n"
    "    - name: families\n      sequence: string\n    - name: graph_hash\n      dtype: string\n"
    "    - name: inputs\n      list:\n      - name: shape\n        sequence: int64\n      - name: dtype\n"
    "        dtype: string\n      - name: stride\n        sequence: int64\n"
    "  - name: kernel\n    struct:\n    - name: lang\n      dtype: string\n    - name: code\n      dtype: string\n"
    "    - name: strategy\n      dtype: string\n    - name: fusion\n      dtype: string\n    - name: kernels\n"
    "      dtype: int64\n"
    "  - name: verdict\n    struct:\n    - name: status\n      dtype: string\n"
    "    - name: category\n      dtype: string\n    - name: backend\n      dtype: string\n"
    "  - name: provenance\n    struct:\n    - name: generator\n      dtype: string\n    - name: seed\n"
    "      dtype: int64\n    - name: index\n      dtype: int64\n    - name: parent\n      dtype: string\n"
    "    - name: mutation\n      dtype: string\n"
    "  - name: difficulty\n    dtype: int64\n  - name: speed\n    struct:\n    - name: source\n      dtype: string\n"
    "    - name: slow_us\n      dtype: float64\n    - name: fast_us\n      dtype: float64\n"
    "  - name: kill\n    struct:\n    - name: mutants\n      dtype: int64\n    - name: killed\n      dtype: int64\n"
    "  - name: split\n    dtype: string\n";

/* Appends the card's YAML head, as dataset hubs read it. */
static void card_add_head(struct buf *b, const json_t *options, json_int_t records)
{
    const char *size = records < 1000 ? "n<1K" : records < 10000 ? "1K<n<10K" : records < 100000 ? "10K<n<100K"
                       : records < 1000000 ? "100K<n<1M" : "1M<n<10M";

    buf_addf(b, "---\npretty_name: PyTorch tasks with CUDA kernels, synthesised\ntask_categories:\n- text-generation\n"
             "tags:\n- code\n- cuda\nsize_categories:\n- %s\nconfigs:\n- config_name: default\n  data_files:\n"
             "  - split: train\n    path: data/train-*.jsonl\n  - split: heldout\n    path: data/heldout-*.jsonl\n"
             "%s---\n", size, features);
    buf_addf(b, "# PyTorch tasks with CUDA kernels\nMade by `musacoder synth --records %lld --seed %lld`; "
             "options.json has all options. The same options give the same bytes.\n\n"
             "```python\nfrom datasets import load_dataset\nrows = load_dataset(\"FOLDER\")[\"train\"]\n```\n"
             "`messages` is a dialogue that ends with the answer. `split` follows from the operator graph: no graph of "
             "`heldout` is in `train`.\n", (long long)json_i64(options, "records", 0),
             (long long)json_i64(options, "seed", 0));
}

/* Appends what was judged, what was left out and how many bugs went undetected. */
static void card_add_verification(struct buf *b, const json_t *sum)
{
    json_int_t mutants = json_i64(sum, "mutants", 0), alive = json_i64(sum, "undetected", 0);

    buf_addf(b, "\n## Verification\n%lld programs were compiled and run by the judge; %lld did not pass and are left "
             "out. ", (long long)json_i64(sum, "verified", 0), (long long)json_i64(sum, "failed", 0));
    if (json_i64(sum, "ir_mutants", 0))
        buf_addf(b, "At the loop IR %lld bugs were put into the tasks' operators; their inputs tell %.1f %% of them "
                 "(mutation-kill score, column kill). ", (long long)json_i64(sum, "ir_mutants", 0),
                 100.0 * (double)json_i64(sum, "ir_killed", 0) / (double)json_i64(sum, "ir_mutants", 1));
    if (mutants)
        buf_addf(b, "%lld of them got a bug; the judge convicted %.1f %%.\n", (long long)mutants,
                 100.0 * (double)(mutants - alive) / (double)mutants);
    else
        buf_adds(b, "No bug was put in.\n");
}

static int card_read_record(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    entropy_add_messages(ctx, json_object_get(v, "messages"));
    return 0;
}

/* Of as many shards as the estimate reads. */
static void card_add_entropy(struct buf *b, const char *out, long shards)
{
    struct entropy *x = entropy_new();
    struct err ignored = ERR_INIT;
    json_t *v;

    for (long i = 0; i < shards && !entropy_is_full(x); i++) {
        char *path = xasprintf("%s/data/train-%05ld.jsonl", out, i);
        if (file_exists(path))
            jsonl_each(path, card_read_record, x, &ignored);
        free(path);
    }
    v = entropy_json(x);
    buf_addf(b, "\n## Entropy\nOf the first %lld records %lld requests and %lld answers are texts of their own. An "
             "answer costs %.0f nats, %.3f a byte, estimated from the 12 bytes in front of each.\n",
             (long long)json_i64(v, "records", 0), (long long)json_i64(v, "distinct_requests", 0),
             (long long)json_i64(v, "distinct_answers", 0), json_f64(v, "nats_per_answer", 0),
             json_f64(v, "nats_per_byte", 0));
    json_decref(v);
    entropy_free(x);
}

int card_write(const char *out, long shards, json_t *hashes, struct err *e)
{
    char *options_path = path_join(out, "options.json");
    json_t *options = json_read(options_path, e), *sum = options ? card_sum_of(out, shards, e) : NULL;
    int rc = sum ? card_write_plots(out, sum, hashes, e) : -1;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (!rc) {
        card_add_head(&b, options, json_i64(sum, "records", 0));
        card_add_verification(&b, sum);
        card_add_entropy(&b, out, shards);
        card_add_table(&b, "Records", "split and kind", json_object_get(sum, "kinds"), 40);
        buf_adds(&b, "\n![difficulty](plots/difficulty.svg)\n\n![schedules](plots/schedules.svg)\n");
        card_add_table(&b, "Operators", "operator", json_object_get(sum, "operators"), 30);
        card_add_table(&b, "Draws refused", "why", json_object_get(sum, "refused"), 20);
        rc = card_write_file(out, "README.md", &b, hashes, e);
    }
    buf_free(&b);
    json_decref(options), json_decref(sum);
    free(options_path);
    return rc;
}
