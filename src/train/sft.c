/* sft.c - see sft.h. The trainer's state is one struct; a step is: zero, accumulate micro-batches, clip, update. */
#include "train/sft.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/model.h"
#include "nn/optim.h"
#include "train/checkpoint.h"
#include "train/train_metrics.h"
#include "train/mixture.h"
#include "train/pack.h"
#include "train/ranks.h"
#include "train/shards.h"

/* metrics.jsonl's "plateau" is 1 where three validations together gained less than 1 % of the way; see
 * lr_schedule.h. */
#define PLATEAU_PATIENCE 3
#define PLATEAU_TOL 0.01

struct sft {
    const struct sft_options *o;
    struct run_folder folder; /* claimed where the options are (o->claim) */
    struct ranks ranks;    /* rank 0 writes the run folder and speaks */
    struct tokenizer *tok;
    struct dataset data;
    struct mixture mix;
    uint32_t *train, *val; /* indices into data.ex */
    size_t n_train, n_val;
    struct model *m;
    struct optim *opt;
    struct pack pack;
    struct train_metrics metrics;
    json_t *val_curve;     /* validation losses so far */
    int64_t step, saved;   /* made; of the last checkpoint, -1: none */
    double spent;
    uint64_t tokens_seen, loss_tokens; /* so far; of the last step */
};

/* ---- data ---- */

#define READERS 8                       /* threads that read records, at most */
#define WORTH_THREADS ((uint64_t)4 << 20) /* bytes: below, starting them takes longer than reading */

/* Reads all files into the data set, with n_tok tokenizers at a time. */
static int sft_read_files(struct sft *s, char **files, size_t n, struct tokenizer *const *tok, int n_tok, struct err *e)
{
    struct progress bar;
    int rc = 0;

    progress_start(&bar, "reading records", 0, n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = stop_requested() ? err_set(e, ERR_STOP, "stopped while reading '%s'", files[i])
                              : dataset_add(&s->data, files[i], tok, n_tok, s->o->max_length, e);
        if (n_tok > 1) {
            progress_note(&bar, "%zu records", s->data.n);
            progress_at(&bar, i + 1);
        }
    }
    if (n_tok > 1)
        progress_end(&bar);
    return rc;
}

/* Reads the data; large data by several threads. */
static int sft_load_files(struct sft *s, struct err *e)
{
    struct tokenizer *tok[READERS] = {s->tok};
    int n_tok = 1, threads = omp_get_max_threads(), rc;
    uint64_t bytes;
    char **files;
    size_t n;

    if (shards_list(s->o->data, &files, &n, &bytes, e) < 0)
        return -1;
    while (bytes > WORTH_THREADS && n_tok < threads && n_tok < READERS && (tok[n_tok] = tokenizer_load(s->o->model, e)))
        n_tok++;
    rc = sft_read_files(s, files, n, tok, n_tok, e);
    while (n_tok > 1)
        tokenizer_free(tok[--n_tok]);
    names_free(files, n);
    if (rc == 0 && s->data.n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' holds no record of at most %d tokens", s->o->data, s->o->max_length);
    if (rc == 0 && s->data.too_long)
        log_warn("%zu records are longer than %d tokens and left out", s->data.too_long, s->o->max_length);
    return rc;
}

/* Whole graphs go to one side, so that validation asks for graphs that training has not seen. */
static void sft_split(struct sft *s)
{
    s->train = xcalloc(s->data.n, sizeof *s->train);
    s->val = xcalloc(s->data.n, sizeof *s->val);
    for (size_t i = 0; i < s->data.n; i++) {
        double u = (double)(s->data.ex[i].group >> 11) * 0x1p-53;

        if (u < s->o->val_share)
            s->val[s->n_val++] = (uint32_t)i;
        else
            s->train[s->n_train++] = (uint32_t)i;
    }
    if (s->n_train == 0) { /* a corpus of one graph */
        memcpy(s->train, s->val, s->n_val * sizeof *s->val);
        s->n_train = s->n_val;
        s->n_val = 0;
    }
    struct rng r;

    rng_seed(&r, 1, 99); /* the same validation set whatever the run's seed */
    rng_shuffle(&r, s->val, s->n_val, sizeof *s->val);
    if (s->n_val > (size_t)s->o->val_max)
        s->n_val = (size_t)s->o->val_max;
}

/* ---- one pass over a list of examples ---- */

static struct pack_seq sft_seq_of(const struct example *ex)
{
    return (struct pack_seq){.ids = ex->ids, .n = ex->n, .from = ex->from, .to = ex->to};
}

/* Weight of the k-th token of a response. */
static double sft_weight_at(const struct sft *s, const struct example *ex, int k)
{
    return ex->changed && ex->changed[k] && s->o->changed_weight > 0 ? s->o->changed_weight : 1;
}

/* The sum of the weights of an example's tokens. */
static double sft_weight_of(const struct sft *s, const struct example *ex)
{
    double sum = 0;

    for (int k = 0; k < ex->to - ex->from; k++)
        sum += sft_weight_at(s, ex, k);
    return sum;
}

/* Gradients in parts are summed at each micro-batch. *ret_any: some rank has one more, as this one where 'mine'. */
static int sft_ask_for_more(struct sft *s, bool mine, bool *ret_any, struct err *e)
{
    double more = mine;

    *ret_any = false;
    if (!model_sums_by_batch(s->m))
        return 0;
    if (model_sum(s->m, &more, 1, e) < 0)
        return -1;
    *ret_any = more > 0;
    return 0;
}

/* This rank has no more micro-batches; it stays for those of the others. */
static int sft_stay_for_others(struct sft *s, struct err *e)
{
    bool any;

    for (;;) {
        if (sft_ask_for_more(s, false, &any, e) < 0)
            return -1;
        if (!any)
            return 0;
        if (model_backward_nothing(s->m, e) < 0)
            return -1;
    }
}

/* Forward one micro-batch, add its -log p to *nll; with train, also backward with dL/dlogp = -weight / total. */
static int sft_run_pack(struct sft *s, const uint32_t *list, bool train, double total, double *nll, struct err *e)
{
    struct pack *p = &s->pack;
    struct train_batch b = pack_batch(p, 1);
    bool any;

    if (p->n_seqs == 0)
        return 0;
    if (train && sft_ask_for_more(s, true, &any, e) < 0)
        return -1;
    if (model_forward(s->m, &b, p->logp, NULL, e) < 0)
        return -1;
    for (int t = 0; t < p->n_tokens; t++)
        if (p->targets[t] >= 0) {
            s->loss_tokens++;
            *nll -= p->logp[t];
        }
    for (int i = 0; i < p->n_seqs && train; i++) {
        const struct example *ex = &s->data.ex[list[p->seq[i]]];

        for (int k = 0; k < ex->to - ex->from; k++)
            p->dlogp[p->start[i] + k] = (float)(-sft_weight_at(s, ex, k) / total);
    }
    if (train && model_backward(s->m, p->dlogp, NULL, e) < 0)
        return -1;
    pack_clear(p);
    return 0;
}

/* With several ranks each takes every so-manieth example; the weights are those of the whole list. */
static int sft_run_share(struct sft *s, const uint32_t *list, size_t n, bool train, double total, double *nll,
                         struct err *e)
{
    pack_clear(&s->pack);
    for (size_t i = (size_t)s->ranks.rank; i < n; i += (size_t)s->ranks.world) {
        struct pack_seq q = sft_seq_of(&s->data.ex[list[i]]);

        if (!pack_add(&s->pack, &q, (int)i)) {
            if (sft_run_pack(s, list, train, total, nll, e) < 0)
                return -1;
            pack_add(&s->pack, &q, (int)i);
        }
    }
    if (sft_run_pack(s, list, train, total, nll, e) < 0)
        return -1;
    return train ? sft_stay_for_others(s, e) : 0;
}

/* Runs a list of examples forward and, if train, backward; *ret_loss is the mean over tokens. */
static int sft_run_list(struct sft *s, const uint32_t *list, size_t n, bool train, double *ret_loss, struct err *e)
{
    double tokens = 0, total = 0, nll = 0;

    for (size_t i = 0; i < n; i++) {
        tokens += s->data.ex[list[i]].to - s->data.ex[list[i]].from;
        total += sft_weight_of(s, &s->data.ex[list[i]]);
    }
    if (sft_run_share(s, list, n, train, total, &nll, e) < 0 || model_sum(s->m, &nll, 1, e) < 0)
        return -1;
    *ret_loss = tokens > 0 ? nll / tokens : 0;
    return 0;
}

/* ---- the loop ---- */

/* Adds the validation loss to the line, and the curve's course. */
static int sft_validate(struct sft *s, json_t *line, struct err *e)
{
    double loss, *curve;
    size_t n;

    if (s->n_val == 0)
        return 0;
    if (sft_run_list(s, s->val, s->n_val, false, &loss, e) < 0)
        return -1;
    json_array_append_new(s->val_curve, json_num(loss));
    n = json_array_size(s->val_curve);
    curve = xcalloc(n, sizeof *curve);
    for (size_t i = 0; i < n; i++)
        curve[i] = json_num_value(json_array_get(s->val_curve, i));
    metrics_set(line, "val_loss", loss);
    metrics_set(line, "plateau", plateau_reached(curve, n, PLATEAU_PATIENCE, PLATEAU_TOL));
    free(curve);
    return 0;
}

/* Writes a checkpoint; other ranks give their parts of the weights and moments to the first one. */
static int sft_save(struct sft *s, struct err *e)
{
    if (s->step == s->saved) /* and rank 0 would ask for nothing */
        return 0;
    s->saved = s->step;
    if (s->ranks.rank)
        return model_give(s->m, e) < 0 ? -1 : optim_give(s->opt, e);
    json_t *state = json_pack("{s:I,s:f,s:I,s:O}", "step", (json_int_t)s->step, "seconds", metrics_seconds(&s->metrics),
                              "tokens", (json_int_t)s->tokens_seen, "val_curve", s->val_curve);
    int rc = checkpoint_save(s->o->out, s->step, s->m, s->opt, state, e);

    json_decref(state);
    return rc;
}

/* Answer's tokens in a list of examples. */
static uint64_t sft_tokens_of(const struct sft *s, const uint32_t *list, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (uint64_t)(s->data.ex[list[i]].to - s->data.ex[list[i]].from);
    return sum;
}

/* All ranks stop at the same step: a signal reaches them at different ones. */
static int sft_asked_to_stop(struct sft *s, bool *ret, struct err *e)
{
    double asked = stop_requested();

    if (model_sum(s->m, &asked, 1, e) < 0)
        return -1;
    *ret = asked > 0;
    return 0;
}

/* One step: gradients of its sequences, summed over ranks, and an update. */
static int sft_train_step(struct sft *s, double *ret_loss, double *ret_norm, double *ret_lr, struct err *e)
{
    const uint32_t *list = s->mix.order + s->mix.start[s->step];
    size_t n = s->mix.start[s->step + 1] - s->mix.start[s->step];

    model_zero_grads(s->m);
    s->loss_tokens = 0;
    if (sft_run_list(s, list, n, true, ret_loss, e) < 0 || model_sum_grads(s->m, e) < 0)
        return -1;
    if (s->ranks.world > 1)
        s->loss_tokens = sft_tokens_of(s, list, n);
    for (size_t i = 0; i < n; i++)
        s->tokens_seen += (uint64_t)s->data.ex[list[i]].n;
    *ret_norm = grad_clip(s->m, s->o->grad_clip);
    *ret_lr = schedule_lr(&s->o->schedule, s->step);
    return optim_step(s->opt, s->m, *ret_lr, e);
}

/* Steps until the last one or a stop. */
static int sft_loop(struct sft *s, struct err *e)
{
    const struct sft_options *o = s->o;
    struct progress bar;
    double loss = 0, norm = 0, lr = 0;
    bool stop;

    progress_start(&bar, o->stage, (uint64_t)s->step, (uint64_t)o->steps);
    while (s->step < o->steps) {
        if (sft_asked_to_stop(s, &stop, e) < 0)
            return -1;
        if (stop) {
            if (!s->ranks.rank)
                progress_end(&bar);
            return sft_save(s, e) < 0 ? -1 : err_set(e, ERR_STOP, "stopped at step %lld; run again to continue",
                                                     (long long)s->step);
        }
        if (sft_train_step(s, &loss, &norm, &lr, e) < 0)
            return err_prefix(e, "step %lld", (long long)s->step);
        s->step++;
        json_t *line = metrics_line(&s->metrics, s->step);
        metrics_set(line, "loss", loss);
        metrics_set(line, "loss_tokens", (double)s->loss_tokens);
        metrics_set(line, "lr", lr);
        metrics_set(line, "grad_norm", norm);
        metrics_set(line, "tokens", (double)s->tokens_seen);
        if ((s->step % o->val_every == 0 || s->step == o->steps) && sft_validate(s, line, e) < 0) {
            json_decref(line);
            return -1;
        }
        if (json_array_size(s->val_curve))
            progress_note(&bar, "loss %.3f val %.3f", loss,
                          json_num_value(json_array_get(s->val_curve, json_array_size(s->val_curve) - 1)));
        else
            progress_note(&bar, "loss %.3f", loss);
        if (s->ranks.rank)
            json_decref(line);
        else if (metrics_write(&s->metrics, line, e) < 0)
            return -1;
        if (s->step % o->save_every == 0 && s->step < o->steps && sft_save(s, e) < 0)
            return -1;
        if (!s->ranks.rank)
            progress_at(&bar, (uint64_t)s->step);
    }
    if (!s->ranks.rank)
        progress_end(&bar);
    return 0;
}

/* Continues from a checkpoint's folder. */
static int sft_restore(struct sft *s, const char *folder, struct err *e)
{
    json_t *state;

    if (checkpoint_load(folder, s->opt, &state, e) < 0)
        return -1;
    s->step = s->saved = json_i64(state, "step", 0);
    s->spent = json_f64(state, "seconds", 0);
    s->tokens_seen = (uint64_t)json_i64(state, "tokens", 0);
    json_decref(s->val_curve);
    s->val_curve = json_incref(json_object_get(state, "val_curve"));
    if (!s->val_curve)
        s->val_curve = json_array();
    json_decref(state);
    if (!s->ranks.rank)
        log_info("%s: continuing at step %lld of %lld", s->o->stage, (long long)s->step, (long long)s->o->steps);
    return 0;
}

#define ROUND_ANSWER  64   /* tokens */
#define ROOM_ANSWER   1.25 /* a right answer to a new task may be longer than all that was seen */

/* What the saved folder allows an answer: a quarter more than the longest there is in the data, rounded up. */
static int sft_longest_answer(const struct dataset *d)
{
    int most = 0;

    for (size_t i = 0; i < d->n; i++)
        if (d->ex[i].to - d->ex[i].from > most)
            most = d->ex[i].to - d->ex[i].from;
    most = (int)(ROOM_ANSWER * most);
    return (most + ROUND_ANSWER - 1) / ROUND_ANSWER * ROUND_ANSWER;
}

/* Loads the model, the optimiser and this rank's device. */
static int sft_open_model(struct sft *s, const char *folder, struct err *e)
{
    const struct sft_options *o = s->o;
    struct adamw_options ao = {.beta2 = o->beta2 ? o->beta2 : 0.99, .eps = o->eps, .weight_decay = o->weight_decay};
    struct train_limits lim = {.max_tokens = o->micro_tokens};

    if (!(s->m = checkpoint_model(folder, o->model, e)))
        return -1;
    if (model_use_tokenizer(s->m, s->tok, e) < 0 ||
        ranks_place(&s->ranks, s->m, o->device ? o->device : "cpu", o->dtype, e) < 0)
        return -1;
    s->m->config.max_new = sft_longest_answer(&s->data);
    if (model_part_state(s->m, o->zero, e) < 0 || model_train_begin(s->m, &lim, e) < 0)
        return -1;
    s->opt = optim_new(s->m, &ao);
    if (!folder && o->moments)
        return checkpoint_moments(o->model, s->opt, e);
    return folder ? sft_restore(s, folder, e) : 0;
}

static const char *const may_change[] = {"metrics", "stage", "save-every", "workers", "jobs", "out", "device", "dtype",
                                         "gpus", "zero", NULL};

/* Logs what will be trained on what. */
static void sft_tell_start(const struct sft *s)
{
    double tokens[DATA_MAX_KINDS] = {0}, all = 0;
    struct buf kinds;

    for (size_t i = 0; i < s->mix.start[s->mix.steps]; i++)
        tokens[s->data.ex[s->mix.order[i]].kind] += s->data.ex[s->mix.order[i]].n;
    for (int k = 0; k < s->data.n_kinds; k++)
        all += tokens[k];
    buf_init(&kinds, BUF_MAX_TEXT);
    for (int k = 0; k < s->data.n_kinds; k++)
        buf_addf(&kinds, "%s%s %.0f %%", k ? ", " : "", s->data.kinds[k], 100 * tokens[k] / all);
    log_info("%s: %zu examples (%zu for validation), %zu weights of %s, %lld steps; of the tokens: %s", s->o->stage,
             s->n_train, s->n_val, s->m->n_params, s->o->model, (long long)s->o->steps, kinds.p);
    buf_free(&kinds);
}

/* Opens everything, continues where a run was left, and loops. */
static int sft_do_run(struct sft *s, struct err *e)
{
    const struct sft_options *o = s->o;
    double share[DATA_MAX_KINDS];
    char *folder = NULL;
    int rc = -1;

    if (checkpoint_resume(o->out, &folder, e) < 0 || !(s->tok = tokenizer_load(o->model, e)) ||
        sft_load_files(s, e) < 0)
        goto out;
    sft_split(s);
    if (mixture_shares(&s->data, s->train, s->n_train, o->mix, share, e) < 0)
        goto out;
    mixture_limit(&s->data, s->train, s->n_train, share, (double)o->steps * (double)o->batch_tokens);
    mixture_plan(&s->mix, &s->data, s->train, s->n_train, share, o->steps, o->batch_tokens, o->seed, o->easy_first);
    if (sft_open_model(s, folder, e) < 0 || (s->folder.claim && run_claim(&s->folder, e) < 0))
        goto out;
    if (!s->ranks.rank &&
        metrics_open(&s->metrics, o->out, o->metrics, o->stage, s->step + 1, s->spent, e) < 0)
        goto out;
    if (s->step == 0 && !s->ranks.rank)
        sft_tell_start(s);
    rc = sft_loop(s, e);
    if (rc == 0) /* before the model: where that is, its moments are */
        rc = sft_save(s, e);
    if (rc == 0 && !s->ranks.rank)
        rc = run_save_model(o->out, s->m, e);
out:
    free(folder);
    return rc;
}

int sft_check(const struct sft_options *o, struct err *e)
{
    if (o->steps < 1 || o->batch_tokens < 1 || o->val_every < 1 || o->save_every < 1)
        return err_set(e, ERR_INPUT, "steps, batch-tokens, val-every and save-every want at least 1");
    if (o->max_length < 8 || o->micro_tokens < o->max_length)
        return err_set(e, ERR_INPUT, "micro-tokens (%d) must hold a sequence of max-length (%d)", o->micro_tokens,
                       o->max_length);
    return 0;
}

int sft_check_same(const struct sft_options *o, struct err *e)
{
    struct run_folder folder;

    if (run_open(o->out, o->claim, may_change, &folder, e) < 0)
        return -1;
    run_close(&folder);
    return 0;
}

int sft_run(const struct sft_options *o, struct err *e)
{
    struct sft_options own = *o;
    struct sft s = {.o = &own, .val_curve = json_array(), .saved = -1};
    int rc;

    own.schedule.steps = o->steps;
    if (sft_check(o, e) < 0 || ranks_read(&s.ranks, e) < 0 ||
        (o->claim && !s.ranks.rank && run_open(o->out, o->claim, may_change, &s.folder, e) < 0)) {
        json_decref(s.val_curve);
        return -1;
    }
    pack_init(&s.pack, o->micro_tokens);
    rc = sft_do_run(&s, e);
    pack_free(&s.pack);
    if (s.metrics.path)
        metrics_close(&s.metrics);
    if (s.opt)
        optim_free(s.opt);
    if (s.m)
        model_free(s.m);
    tokenizer_free(s.tok);
    dataset_free(&s.data);
    mixture_free(&s.mix);
    free(s.train);
    free(s.val);
    json_decref(s.val_curve);
    run_close(&s.folder);
    return rc;
}
