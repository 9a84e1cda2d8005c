/* musacoder.h - the objective functions as a C ABI (libmusacoder.so), for trainers in other languages (ctypes, cffi).
 *
 * The header needs nothing but the C library. Arrays belong to the caller and are not kept. Functions are thread-safe;
 * one buffer (struct mc_bdr) belongs to one thread at a time. A function that returns -1 leaves its outputs untouched,
 * and mc_error() then says why. Formulas and their sources: reward.h, advantage.h, primeecho.h, mirrorpop.h, bdr.h. */
#ifndef MUSACODER_H
#define MUSACODER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSACODER_ABI 1

int mc_abi(void);            /* MUSACODER_ABI of the library; it rises when a signature changes */
const char *mc_error(void);  /* what the last failing call of this thread complained about; "" before the first */

/* Reward of one verdict record (JSON text). lambda: weight of the speed term, nu_max: its largest speedup over eager.
 * Returns 1 with *ret; 0 for records that are never scored ('infra', 'unsupported'); -1 when it is no record. */
int mc_reward(const char *verdict_json, double lambda, double nu_max, double *ret);

/* Advantages of one group of n samples. kind: "grpo", "rloo" or "dr_grpo". valid: n bytes, 0 = the sample leaves the
 * group; NULL: all valid. adv: n entries, 0 for samples outside. Returns how many samples were used (0: the group has
 * fewer than two and is skipped), or -1. */
int mc_advantage(const char *kind, double eps, const double *reward, const uint8_t *valid, size_t n, double *adv);

/* PrimeEcho's reward of a trajectory. score: one entry a turn played; passed_turn: 1-based, 0 = never. 0 or -1. */
int mc_primeecho(double alpha, double bonus_first, double bonus_second, const double *score, int turns,
                 int passed_turn, double *ret);

/* MirrorPop: logp (policy) and behav (rollout) are natural log-probs of the n tokens of a response. Returns 1 to keep
 * the sequence, 0 to leave it out, -1. ret_signed and ret_mirror (mean log-ratio, mean |log-ratio|) may be NULL. */
int mc_mirrorpop(const float *logp, const float *behav, size_t n, double delta, double *ret_signed, double *ret_mirror);

/* The retry buffer with its own random stream. cap: entries at most; the oldest falls out. */
struct mc_bdr;
struct mc_bdr *mc_bdr_new(size_t cap, uint64_t seed);
void mc_bdr_free(struct mc_bdr *b); /* NULL is fine */
size_t mc_bdr_size(const struct mc_bdr *b);
void mc_bdr_push(struct mc_bdr *b, const char *prompt_id, const char *response, const char *feedback); /* copies */
/* With the given probability takes the oldest entry: 1, and the three texts, owned by the buffer until the next call of
 * mc_bdr_draw, mc_bdr_load or mc_bdr_free. Else 0. Each call uses up one random number, whatever the content. */
int mc_bdr_draw(struct mc_bdr *b, double probability, const char **prompt_id, const char **response,
                const char **feedback);
/* Entries and random stream as JSON text, owned by the buffer until the next save or free; and back: 0 or -1. */
const char *mc_bdr_save(struct mc_bdr *b);
int mc_bdr_load(struct mc_bdr *b, const char *state_json);

#ifdef __cplusplus
}
#endif

#endif
