/* rft.c - see rft.h. A chunk is sampled, judged, clustered and written to its own file; the end joins the files. */
#include "train/rft.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/checkpoint.h"
#include "train/cluster.h"
#include "train/data.h"
#include "train/rft_repairs.h"
#include "train/train_metrics.h"
#include "train/rollout.h"

struct rft {
    const struct rft_options *o;
    struct run_folder folder; /* claimed where the options are (o->claim) */
    struct tokenizer *tok;
    struct prompt_set prompts;
    uint32_t *order;
    int64_t n;
    struct model *m;
    struct verdicts *verdicts;
    char *chunks; /* folder */
    struct rollout_times times; /* of this process, as 'tokens' */
    double tokens; /* sampled */
};

static char *rft_chunk_path(const struct rft *s, int64_t c)
{
    char name[32];

    snprintf(name, sizeof name, "%05lld.json", (long long)c);
    return path_join(s->chunks, name);
}

/* The SFT record of a rollout that passed, new. */
static json_t *rft_record_of(const struct rft *s, const struct prompt_item *p, const struct rollout *r, int cluster)
{
    json_t *messages = json_deep_copy(p->messages), *task = json_object(), *rec;
    char id[256];

    prompt_say(messages, "assistant", r->turn[0].text);
    json_object_set_new(task, "name", json_string(p->id));
    json_object_set(task, "graph_hash", json_object_get(p->info, "graph_hash"));
    json_object_set(task, "families", json_object_get(p->info, "families"));
    snprintf(id, sizeof id, "rft-%s-%d", p->id, cluster);
    rec = json_pack("{s:s,s:s,s:o,s:o,s:{s:s,s:I,s:s,s:i},s:s}", "id", id, "kind", "rft", "messages", messages, "task",
                    task, "provenance", "generator", "musacoder-rft/1", "seed", (json_int_t)s->o->seed, "parent", p->id,
                    "cluster", cluster, "split", "train");
    return rec;
}

/* What every sample solves is known, and what one in many solves may have passed by luck. */
static bool rft_teaches(const struct rft_options *o, size_t passed)
{
    return (int)passed >= o->keep_min && (!o->keep_max || (int)passed <= o->keep_max);
}

/* One prompt: its correct programs, one drawn of each cluster. Result: {"name","families","samples","passed",
 * "infra","unsupported","too_long" (samples not drawn: their prompt leaves no room),"effective" (strategies among what
 * passed),"uniform" (among as many as are kept, drawn without clusters),"kept":[record..],"repairs":[record..]}. */
static json_t *rft_select_group(struct rft *s, const struct prompt_item *p, const struct rollout_group *g,
                                struct rng *rng)
{
    struct sketch *sk = xcalloc((size_t)g->n, sizeof *sk);
    int *label = xcalloc((size_t)g->n, sizeof *label), *who = xcalloc((size_t)g->n, sizeof *who);
    int infra = 0, unsupported = 0, too_long = 0;
    size_t n = 0, clusters, *pick;
    json_t *kept = json_array(), *out;
    struct rng apart; /* drawing must not depend on what is counted */
    double uniform;

    for (int k = 0; k < g->n; k++) {
        infra += rollout_has(&g->r[k], OUTCOME_INFRA);
        unsupported += rollout_has(&g->r[k], OUTCOME_UNSUPPORTED);
        too_long += g->r[k].turns == 0;
        if (g->r[k].passed_turn != 1)
            continue;
        sketch_program(g->r[k].turn[0].text, &sk[n]);
        who[n++] = k;
    }
    clusters = cluster_assign(sk, n, s->o->threshold, label);
    pick = xcalloc(clusters + 1, sizeof *pick);
    cluster_draw(label, n, clusters, rng, pick);
    for (size_t c = 0; c < clusters && (int)c < s->o->max_keep && rft_teaches(s->o, n); c++)
        json_array_append_new(kept, rft_record_of(s, p, &g->r[who[pick[c]]], (int)c));
    rng_seed(&apart, g->seed, UNIFORM_ROUNDS);
    uniform = cluster_uniform(label, n, json_array_size(kept), &apart);
    out = json_pack("{s:s,s:O?,s:i,s:I,s:i,s:i,s:i,s:f,s:f,s:o,s:o}", "name", p->id, "families",
                    json_object_get(p->info, "families"), "samples", g->n, "passed", (json_int_t)n, "infra", infra,
                    "unsupported", unsupported, "too_long", too_long, "effective", cluster_effective(label, n),
                    "uniform", uniform, "kept", kept, "repairs", rft_repairs(s->o, p, g));
    for (size_t i = 0; i < n; i++)
        sketch_free(&sk[i]);
    free(sk);
    free(label);
    free(who);
    free(pick);
    return out;
}

/* {"groups": [...], "seal"}; of older versions the list alone. */
static int rft_write_chunk(const char *path, json_t *groups, struct err *e)
{
    json_t *v = json_pack("{s:O}", "groups", groups), *sealed = jsonl_sealed(v);
    int rc = json_write(path, sealed, e);

    json_decref(v);
    json_decref(sealed);
    return rc;
}

/* The groups, new; NULL where there is no chunk, or another one than was written: it is sampled again. */
static json_t *rft_read_chunk(const char *path)
{
    json_t *v = file_exists(path) ? json_read(path, NULL) : NULL, *groups = NULL;

    if (json_is_array(v))
        groups = json_incref(v);
    else if (jsonl_seal_fits(v))
        groups = json_incref(json_object_get(v, "groups"));
    if (!groups && file_exists(path))
        log_warn("'%s' is not what was written; it is sampled again", path);
    json_decref(v);
    return groups;
}

static double rft_tokens_of(const struct rollout_group *g, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < g[i].n; k++)
            for (int t = 0; t < g[i].r[k].turns; t++)
                sum += g[i].r[k].turn[t].n;
    return sum;
}

/* Samples and judges a chunk of prompts; *ret is its new record. */
static int rft_sample_chunk(struct rft *s, int64_t c, json_t **ret, struct err *e)
{
    struct rollout_options ro = {.turns = 1, .max_new = s->o->max_new, .temperature = s->o->temperature,
                                 .positions = s->m->config.max_positions, .times = &s->times};
    struct rollout_engine *d = rollout_engine_own(s->m);
    int64_t from = c * s->o->chunk, to = from + s->o->chunk < s->n ? from + s->o->chunk : s->n;
    struct rollout_group *g = xcalloc((size_t)s->o->chunk, sizeof *g);
    json_t *out = json_array();
    struct rng rng;
    int rc = 0, n = 0;

    rng_seed(&rng, s->o->seed, 0x200000000u + (uint64_t)c);
    for (int64_t i = from; i < to && rc == 0; i++, n++) {
        const struct prompt_item *p = &s->prompts.items[s->order[i]];

        rc = rollout_group_init(&g[n], s->tok, p->messages, s->o->samples, e);
        g[n].task_code = p->task_code;
        g[n].task_name = p->id;
        g[n].seed = rng_u64(&rng);
    }
    verdicts_step(s->verdicts, c);
    if (rc == 0)
        rc = rollout_run(d, s->tok, s->verdicts, &ro, g, n, e);
    s->tokens += rft_tokens_of(g, n);
    for (int k = 0; k < n && rc == 0; k++)
        json_array_append_new(out, rft_select_group(s, &s->prompts.items[s->order[from + k]], &g[k], &rng));
    for (int k = 0; k < n; k++)
        rollout_group_free(&g[k]);
    free(g);
    rollout_engine_close(d);
    if (rc == 0)
        *ret = out;
    else
        json_decref(out);
    return rc;
}

/* Makes all chunks that are not there yet. */
static int rft_collect_here(struct rft *s, struct err *e)
{
    int64_t n_chunks = (s->n + s->o->chunk - 1) / s->o->chunk;
    struct progress bar;
    int rc = 0;

    progress_start(&bar, "rft samples", 0, (uint64_t)s->n);
    for (int64_t c = 0; c < n_chunks && rc == 0; c++) {
        char *path = rft_chunk_path(s, c);
        json_t *v = rft_read_chunk(path);

        if (!v && (rc = rft_sample_chunk(s, c, &v, e)) == 0)
            rc = rft_write_chunk(path, v, e);
        json_decref(v);
        free(path);
        progress_at(&bar, (uint64_t)((c + 1) * s->o->chunk < s->n ? (c + 1) * s->o->chunk : s->n));
    }
    progress_end(&bar);
    if (rc == 0 && s->tokens > 0)
        log_info("rft: %.0f tokens in %.1f s, verdicts beside it; then %.1f s until the last verdict", s->tokens,
                 s->times.sampling, s->times.judging);
    return rc;
}

/* ---- joining ---- */

struct rft_sums {
    double samples, passed, prompts, solved, taught, effective, uniform, kept, repairs, infra, unsupported, too_long;
    json_t *families; /* name -> {"samples","passed"} */
};

/* Adds to a family's counts. */
static void rft_add_family(json_t *families, const char *name, double samples, double passed)
{
    json_t *f = json_object_get(families, name);

    if (!f) {
        f = json_pack("{s:f,s:f}", "samples", 0.0, "passed", 0.0);
        json_object_set_new(families, name, f);
    }
    json_object_set_new(f, "samples", json_real(json_f64(f, "samples", 0) + samples));
    json_object_set_new(f, "passed", json_real(json_f64(f, "passed", 0) + passed));
}

/* A line of groups.jsonl, which RL reads: {"name","passed","scored"}; what the judge could not score says nothing. */
static void rft_join_asked(const json_t *g, struct buf *asked)
{
    int64_t lost = json_i64(g, "infra", 0) + json_i64(g, "unsupported", 0) + json_i64(g, "too_long", 0);
    json_t *line = json_pack("{s:O,s:I,s:I}", "name", json_object_get(g, "name"), "passed", json_i64(g, "passed", 0),
                             "scored", json_i64(g, "samples", 0) - lost);
    char *text = json_text(line);

    buf_addf(asked, "%s\n", text);
    free(text);
    json_decref(line);
}

/* How many there are. */
static double rft_join_records(const json_t *records, struct buf *lines)
{
    const json_t *v;
    size_t i;

    json_array_foreach(records, i, v)
        json_line(lines, v);
    return (double)json_array_size(records);
}

/* Adds a prompt's group to the sums and its kept answers to lines. */
static int rft_join_group(struct rft_sums *t, const json_t *g, struct buf *lines)
{
    double samples = json_f64(g, "samples", 0), passed = json_f64(g, "passed", 0);
    const json_t *v;
    size_t i;

    t->prompts++;
    t->samples += samples;
    t->passed += passed;
    t->infra += json_f64(g, "infra", 0);
    t->unsupported += json_f64(g, "unsupported", 0);
    t->too_long += json_f64(g, "too_long", 0);
    t->solved += passed > 0;
    t->taught += json_array_size(json_object_get(g, "kept")) > 0;
    t->effective += json_f64(g, "effective", 0);
    t->uniform += json_f64(g, "uniform", 0);
    json_array_foreach(json_object_get(g, "families"), i, v)
        rft_add_family(t->families, json_string_value(v) ? json_string_value(v) : "?", samples, passed);
    t->kept += rft_join_records(json_object_get(g, "kept"), lines);
    t->repairs += rft_join_records(json_object_get(g, "repairs"), lines);
    return 0;
}

/* The statistics, new. */
static json_t *rft_stats_of(const struct rft_sums *t)
{
    double solved = t->solved > 0 ? t->solved : 1, taught = t->taught > 0 ? t->taught : 1;
    double judged = t->samples - t->infra - t->too_long;
    json_t *v = json_object();

    metrics_set(v, "prompts", t->prompts);
    metrics_set(v, "samples", t->samples);
    metrics_set(v, "passed", t->passed);
    metrics_set(v, "infra", t->infra);
    metrics_set(v, "unsupported", t->unsupported);
    metrics_set(v, "too_long", t->too_long);
    metrics_set(v, "acceptance", judged > 0 ? t->passed / judged : 0);
    metrics_set(v, "prompts_solved", t->solved);
    metrics_set(v, "prompts_kept", t->taught);
    metrics_set(v, "kept", t->kept);
    metrics_set(v, "repairs", t->repairs);
    metrics_set(v, "effective_before", t->effective / solved);
    metrics_set(v, "effective_after", t->kept / taught); /* one of each cluster: as many strategies as programs */
    metrics_set(v, "effective_uniform", t->uniform / taught);
    return v;
}

/* The curve's first line. Once learning has a checkpoint the line is there, and lines of its steps follow it. */
static int rft_write_metrics(const struct rft *s, json_t *stats, struct err *e)
{
    const struct rft_options *o = s->o;
    struct train_metrics m = {0};
    char *learning = NULL;
    json_t *line;
    int rc = checkpoint_latest(o->out, &learning, e); /* which a stop may have left without its pointer */

    if (rc == 0 && !learning &&
        (rc = metrics_open(&m, o->out, o->metrics, o->stage ? o->stage : "rft", 0, 0, e)) == 0) {
        line = metrics_line(&m, 0);
        json_object_update(line, stats);
        rc = metrics_write(&m, line, e);
        metrics_close(&m);
    }
    free(learning);
    return rc;
}

/* Joins the chunks into rft.jsonl, groups.jsonl and the statistics. */
static int rft_join(struct rft *s, struct err *e)
{
    struct rft_sums t = {.families = json_object()};
    int64_t n_chunks = (s->n + s->o->chunk - 1) / s->o->chunk;
    struct listing *l = NULL;
    struct buf lines, asked;
    int rc = 0;

    buf_init(&lines, (size_t)1 << 40);
    buf_init(&asked, (size_t)1 << 40);
    for (int64_t c = 0; c < n_chunks && rc == 0; c++) {
        char *path = rft_chunk_path(s, c);
        json_t *v = rft_read_chunk(path);
        size_t i;
        const json_t *g;

        rc = v ? 0 : err_set(e, ERR_ENV, "'%s' is gone or damaged; run again", path);
        json_array_foreach(v, i, g) {
            rft_join_group(&t, g, &lines);
            rft_join_asked(g, &asked);
        }
        json_decref(v);
        free(path);
    }
    json_t *st = rft_stats_of(&t);
    if (rc == 0)
        rc = listing_begin(s->o->out, NULL, &l, e);
    if (rc == 0)
        rc = listing_write(l, "groups.jsonl", asked.p, asked.n, e);
    if (rc == 0)
        rc = listing_write(l, "rft.jsonl", lines.p, lines.n, e);
    if (rc == 0)
        rc = rft_write_metrics(s, st, e);
    json_object_set(st, "families", t.families);
    if (rc == 0)
        rc = listing_write_json(l, "rft_stats.json", st, e) < 0 ? -1 : listing_end(l, false, NULL, e);
    if (rc == 0)
        log_info("rft: %.0f of %.0f samples passed (%.0f%%), %.0f programs kept of %.0f prompts; %.2f strategies a "
                 "prompt "
                 "before drawing, %.2f after (%.2f if drawn without clusters)", t.passed, t.samples,
                 100 * t.passed / (t.samples > 0 ? t.samples : 1), t.kept,
                 t.solved, json_f64(st, "effective_before", 0), json_f64(st, "effective_after", 0),
                 json_f64(st, "effective_uniform", 0));
    json_decref(st);
    json_decref(t.families);
    buf_free(&lines);
    buf_free(&asked);
    listing_free(l);
    return rc;
}

static const char *const may_change[] = {"metrics", "save-every", "workers", "jobs", "out", "device", "dtype", NULL};

/* Opens model and judge, then collects and joins. */
static int rft_run(struct rft *s, struct err *e)
{
    const struct rft_options *o = s->o;
    char *log = path_join(o->out, "verdicts.jsonl");
    struct verdicts_config vc = {.service = {.workers = o->workers, .jobs = o->jobs}, .log = log,
                                 .options = o->verdict};
    struct rng r;
    int rc = -1;

    if (!(s->tok = tokenizer_load(o->model, e)) ||
        prompt_set_load(&s->prompts, o->data, e) < 0 || !(s->m = model_load(o->model, e)) ||
        model_use_tokenizer(s->m, s->tok, e) < 0 ||
        model_to_device(s->m, o->device ? o->device : "cpu", o->dtype, e) < 0 ||
        (s->folder.claim && run_claim(&s->folder, e) < 0) || dir_make(s->chunks, e) < 0 ||
        verdicts_open(&vc, &s->verdicts, e) < 0)
        goto out;
    s->n = o->prompts > 0 && o->prompts < (int64_t)s->prompts.n ? o->prompts : (int64_t)s->prompts.n;
    s->order = xcalloc(s->prompts.n, sizeof *s->order);
    for (size_t i = 0; i < s->prompts.n; i++)
        s->order[i] = (uint32_t)i;
    rng_seed(&r, o->seed, 31);
    rng_shuffle(&r, s->order, s->prompts.n, sizeof *s->order);
    rc = rft_collect_here(s, e);
    if (rc == 0)
        rc = rft_join(s, e);
out:
    free(log);
    return rc;
}

int rft_check(const struct rft_options *o, struct err *e)
{
    if (o->keep_max && o->keep_max < o->keep_min)
        return err_set(e, ERR_INPUT, "keep-max (%d) is below keep-min (%d): no prompt would be kept", o->keep_max,
                       o->keep_min);
    if (o->samples < 1 || o->chunk < 1 || o->max_keep < 1 || o->max_new < 1)
        return err_set(e, ERR_INPUT, "samples, chunk, max-keep and max-new want at least 1");
    return 0;
}

int rft_collect(const struct rft_options *o, struct err *e)
{
    struct rft s = {.o = o};
    int rc;

    if (rft_check(o, e) < 0)
        return -1;
    if (o->claim && run_open(o->out, o->claim, may_change, &s.folder, e) < 0)
        return -1;
    s.chunks = path_join(o->out, "chunks");
    rc = rft_run(&s, e);
    verdicts_close(s.verdicts);
    if (s.m)
        model_free(s.m);
    tokenizer_free(s.tok);
    prompt_set_free(&s.prompts);
    free(s.order);
    free(s.chunks);
    run_close(&s.folder);
    return rc;
}
