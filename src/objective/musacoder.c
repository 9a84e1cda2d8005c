/* musacoder.c - see musacoder.h: the C ABI over this folder's functions. Mutable: each thread's message. */
#include "objective/musacoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "objective/advantage.h"
#include "objective/bdr.h"
#include "objective/mirrorpop.h"
#include "objective/primeecho.h"
#include "objective/reward.h"

#define API __attribute__((visibility("default")))

struct mc_bdr {
    struct bdr b;
    struct rng rng;
    struct bdr_item drawn;
    char *saved;
};

static _Thread_local struct err last;

static struct err *musacoder_fresh(void)
{
    last = (struct err)ERR_INIT;
    return &last;
}

API int mc_abi(void)
{
    return MUSACODER_ABI;
}

API const char *mc_error(void)
{
    return last.msg;
}

API int mc_reward(const char *verdict_json, double lambda, double nu_max, double *ret)
{
    struct err *e = musacoder_fresh();
    json_t *v = json_parse(verdict_json, strlen(verdict_json), "verdict", e);
    int rc;

    if (!v)
        return -1;
    if (!json_str(v, "status", NULL))
        rc = err_set(e, ERR_INPUT, "no 'status': this is no verdict record");
    else
        rc = reward_of(v, (struct reward_params){lambda, nu_max}, ret);
    json_decref(v);
    return rc;
}

API int mc_advantage(const char *kind, double eps, const double *reward, const uint8_t *valid, size_t n, double *adv)
{
    struct err *e = musacoder_fresh();
    enum advantage_kind k;
    bool *in;
    int rc;

    if (advantage_kind_of(kind, &k, e) < 0)
        return -1;
    in = xcalloc(n + 1, sizeof *in);
    for (size_t i = 0; i < n; i++)
        in[i] = !valid || valid[i];
    rc = advantage_group(k, eps, reward, in, n, adv, e);
    free(in);
    return rc;
}

API int mc_primeecho(double alpha, double bonus_first, double bonus_second, const double *score, int turns,
                     int passed_turn, double *ret)
{
    struct primeecho p = {alpha, bonus_first, bonus_second};

    return primeecho_reward(&p, score, turns, passed_turn, ret, musacoder_fresh());
}

API int mc_mirrorpop(const float *logp, const float *behav, size_t n, double delta, double *ret_signed,
                     double *ret_mirror)
{
    struct offpolicy m;

    if (offpolicy_measure(logp, behav, n, &m, musacoder_fresh()) < 0)
        return -1;
    if (ret_signed)
        *ret_signed = m.signed_mean;
    if (ret_mirror)
        *ret_mirror = m.mirror;
    return mirrorpop_keep(&m, delta);
}

/* ---- the retry buffer ---- */

API struct mc_bdr *mc_bdr_new(size_t cap, uint64_t seed)
{
    struct mc_bdr *b = xcalloc(1, sizeof *b);

    bdr_init(&b->b, cap);
    rng_seed(&b->rng, seed, 0);
    return b;
}

API void mc_bdr_free(struct mc_bdr *b)
{
    if (!b)
        return;
    bdr_item_free(&b->drawn);
    bdr_free(&b->b);
    free(b->saved);
    free(b);
}

API size_t mc_bdr_size(const struct mc_bdr *b)
{
    return b->b.n;
}

API void mc_bdr_push(struct mc_bdr *b, const char *prompt_id, const char *response, const char *feedback)
{
    bdr_push(&b->b, prompt_id, response, feedback);
}

API int mc_bdr_draw(struct mc_bdr *b, double probability, const char **prompt_id, const char **response,
                    const char **feedback)
{
    bdr_item_free(&b->drawn);
    if (!bdr_draw(&b->b, probability, &b->rng, &b->drawn))
        return 0;
    *prompt_id = b->drawn.prompt_id;
    *response = b->drawn.response;
    *feedback = b->drawn.feedback;
    return 1;
}

API const char *mc_bdr_save(struct mc_bdr *b)
{
    json_t *state = bdr_save(&b->b), *words = json_array();
    char hex[17];

    for (int i = 0; i < 4; i++) {
        snprintf(hex, sizeof hex, "%016" PRIx64, b->rng.s[i]);
        json_array_append_new(words, json_string(hex));
    }
    json_object_set_new(state, "rng", words);
    free(b->saved);
    b->saved = json_text(state);
    json_decref(state);
    return b->saved;
}

/* Four words of 16 hexadecimal digits. */
static int musacoder_rng_of(const json_t *state, struct rng *ret, struct err *e)
{
    const json_t *words = json_object_get(state, "rng");

    for (size_t i = 0; i < 4; i++) {
        const char *hex = json_string_value(json_array_get(words, i));

        if (!hex || strlen(hex) != 16 || strspn(hex, "0123456789abcdef") != 16)
            return err_set(e, ERR_INPUT, "retry buffer state has no 'rng' of four words; it is damaged");
        ret->s[i] = strtoull(hex, NULL, 16);
    }
    return 0;
}

API int mc_bdr_load(struct mc_bdr *b, const char *state_json)
{
    struct err *e = musacoder_fresh();
    json_t *state = json_parse(state_json, strlen(state_json), "retry buffer", e);
    struct rng rng = {{0}};
    int rc = state ? musacoder_rng_of(state, &rng, e) : -1;

    if (rc == 0)
        rc = bdr_load(&b->b, state, e);
    if (rc == 0) {
        b->rng = rng;
        bdr_item_free(&b->drawn);
    }
    json_decref(state);
    return rc;
}
