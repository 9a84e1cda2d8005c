/* model.h - a dense causal language model (Llama, Qwen2, Qwen3, Qwen3.5/3.6) on the CPU, fp32: load, save, initialise,
 * forward, backward.
 *
 * One slab per role: weights, gradients, activations. Everything is planned by model_train_begin before the first
 * step; no step allocates. A model is owned and used by one thread; the operators inside run on all OpenMP threads.
 * Every reduction has a fixed order that does not depend on the number of threads or on what else is in a batch:
 * the same sequence gives the same bits alone, packed with others, and on 1 or 64 threads.
 *
 * Formulas: Qwen3 technical report (arXiv 2505.09388) and the Hugging Face implementation 'qwen3': pre-norm RMSNorm,
 * grouped-query attention with RMSNorm on each q and k head before RoPE (half-split), SwiGLU, no biases. 'llama' (arXiv
 * 2307.09288; SmolLM2 too) has no norms of heads; 'qwen2' (arXiv 2407.10671) neither, and a bias on q, k and v. Qwen3.5
 * and 3.6 ('qwen3_5', 'qwen3_5_text'): norms of 1 + w, three layers of four are Gated DeltaNet (arXiv 2412.06464,
 * ops/cpu/delta.c),
 * the others attention with a sigmoid gate on its output and a quarter of each head rotated. Vision and multi-token
 * prediction are not run: their tensors are carried from the folder that was loaded to the one that is saved. */
#ifndef MC_MODEL_H
#define MC_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tokenizer;

#define MODEL_MAX_LAYERS 1024

struct model_config {
    int vocab_size, hidden_size, intermediate_size;
    int num_layers, num_heads, num_kv_heads, head_dim;
    int max_positions;
    double rms_norm_eps, rope_theta, initializer_range;
    double rope_factor, rope_low, rope_high; /* 'llama3' scaling of rotations; factor 0: none */
    int rope_positions; /* its original_max_position_embeddings */
    bool tied;          /* the classifier is the embedding matrix */
    int rotary_dim;     /* leading elements of a head that are rotated */
    bool output_gate;   /* every query head has a gate of its size */
    bool centred_norms; /* a norm's weight is 1 + w */
    bool head_norms;    /* q and k heads are normed */
    bool qkv_bias;      /* q, k and v have a bias */
    uint8_t linear[MODEL_MAX_LAYERS]; /* 1: a Gated DeltaNet layer */
    int n_linear;       /* such layers; with none, the five below are 0 */
    int linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim, conv_taps;
    char prefix[24];    /* of tensor names: "model." or, in a checkpoint with vision, "model.language_model." */
    int32_t eos[8];     /* eos_token_id of generation_config.json if there, else of config.json */
    int n_eos;
    int max_new;        /* max_new_tokens of generation_config.json; SFT sets the longest answer it has seen. 0: none */
    json_t *source;     /* config.json as read; model_save writes it back with unknown keys kept */
};

/* Keys of Transformers 4 or 5 (rope_theta, or rope_parameters.rope_theta), flat or below text_config. Refused by name
 * with
 * ERR_INPUT: another model_type, attention_bias, mlp_bias, sliding windows, RoPE scaled otherwise than 'llama3',
 * quantised weights, other layer types,
 * activations or gates, sizes that do not fit together. */
int model_config_parse(const json_t *json, struct model_config *ret, struct err *e);
/* Ids that end a turn, from "eos_token_id": an id or a list (8 at most are kept); NULL and null leave what is there. */
int model_eos_parse(const json_t *v, struct model_config *c, struct err *e);
int model_config_read(const char *path, struct model_config *ret, struct err *e);
void model_config_free(struct model_config *c);
/* *ret = asked; 0 asks the folder: max_new_tokens of its generation_config.json, ERR_INPUT where it has none. */
int model_folder_max_new(const char *dir, int64_t asked, int *ret, struct err *e);
const char *model_architecture(const json_t *config); /* Transformers' class; NULL where it is not ours */
size_t model_config_params(const struct model_config *c); /* weights, tied ones counted once */

struct model_tensor {
    char *name;         /* Hugging Face name, e.g. "model.layers.0.self_attn.q_proj.weight" */
    int rows, cols;     /* row-major (out, in); a vector has rows 1 and is_vector set */
    bool is_vector;
    bool is_conv;       /* (rows, 1, cols) in files */
    bool continues;     /* one matrix with the tensor before it */
    size_t offset;      /* into weights and grads, in floats */
    char dtype[8];      /* of the file it came from ("F32" for new models) */
};

struct model {
    struct model_config config;
    struct model_tensor *tensors;
    int n_tensors;
    float *weights;     /* n_params */
    float *grads;       /* n_params, NULL before model_train_begin; zeroed by model_zero_grads */
    size_t n_params;
    int n_ids;          /* ids that its tokenizer has; the sampler draws no others. The vocabulary's rows until
                         * model_use_tokenizer */
    uint64_t version;   /* grows whenever weights change through our functions; callers who write weights add 1 */
    struct model_layer *layers;
    int n_final_norm;   /* its place among the tensors */
    float *embed, *final_norm, *lm_head; /* (V, d) (d) (V, d); lm_head == embed when tied */
    struct model_train *train;           /* activations; private */
    struct model_packs *packs[2];        /* packed weights; private */
    const struct ops *ops;               /* operators for this machine */
    struct dev_model *dev;               /* where the model lives when it is not the host; NULL: here. Private */
    char *dir;          /* folder it was loaded from, or NULL: tokenizer files and unused tensors come from there */
    const char *chat_template; /* what a saved folder shall ask; NULL: its own. Static; model_use_tokenizer sets it */
};

struct model *model_init(const struct model_config *c, uint64_t seed, struct err *e); /* copies c; NULL on error */
struct model *model_load(const char *dir, struct err *e); /* needs config.json and safetensors only */
/* All that could refuse a folder to train from, without its weights: configuration, names and shapes of tensors,
 * tokenizer, chat. 0 or ERR_INPUT. */
int model_check_folder(const char *dir, struct err *e);
struct model *model_clone(const struct model *m);         /* weights only, e.g. a frozen reference policy */
int model_copy(struct model *to, const struct model *from, struct err *e); /* to: a clone of from, on its device */
void model_free(struct model *m);
/* Writes config.json, generation_config.json, model.safetensors into dir (made if missing), each atomically; tensors
 * of m->dir that we do not use and tokenizer files (tokenizer*.json, vocab.json, merges.txt, chat_template*) are
 * carried over when dir is another folder, the chat template as chat.h renders it. The result loads in Transformers. */
int model_save(const struct model *m, const char *dir, struct err *e);
struct model_save_options {
    const char *dtype;  /* "fp32" (NULL too), "bf16" (A_log and the delta layers' norms in fp32), or "same": each
                         * tensor's as it was loaded; carried ones stay */
    size_t shard_bytes; /* of tensors in a file, more only where one tensor is larger; 0: 50 GB */
};
int model_save_as(const struct model *m, const char *dir, const struct model_save_options *o, struct err *e);
/* The same into a folder of the user's choice, which is claimed. Until all of it is there, model_load refuses it. What
 * somebody has edited there goes on as NAME.edited. */
int model_save_for(const struct model *m, const char *dir, const struct model_save_options *o, struct err *e);
/* Fills a stamped folder with the files of a model that 'fill' writes into a folder beside them, in that way. */
typedef int model_fill(void *ctx, const char *work, struct err *e);
int model_fill_folder(const char *dir, model_fill *fill, void *ctx, struct err *e);
/* They belong together: ERR_INPUT where the tokenizer has more ids than the model has rows. Rows that it has beyond
 * them are padding (Qwen3.5: 248,077 of 248,320): they keep their share of every softmax, and no sample holds one. */
int model_use_tokenizer(struct model *m, const struct tokenizer *t, struct err *e);
struct model_tensor *model_find(const struct model *m, const char *name); /* NULL if there is none */

/* ---- On a device ------------------------------------------------------------------------------------------- */

/* Moves the model to "cuda", "cuda:N" or "sim" (the emulator, for tests); "cpu" leaves it here. dtype: "bf16" (NULL
 * too) or "fp32". Training, optimiser, logits and sampler then run there; weights keep an fp32 master. m->weights is a
 * copy that model_fetch renews; model_save and model_clone do so themselves. ERR_ENV with the remedy where something
 * is missing. */
int model_to_device(struct model *m, const char *spec, const char *dtype, struct err *e);
int model_fetch(const struct model *m, struct err *e);   /* m->weights as the device has them */
int model_fetch_grads(struct model *m, struct err *e);   /* m->grads as the device has them; allocated if NULL */

/* ---- Several GPUs: every rank holds the whole model and takes its part of a batch ---- */

#define MODEL_COMM_ID 128 /* bytes that name a group of ranks */
#define MODEL_SUM_MAX 16
int model_comm_id(const char *spec, unsigned char *ret_id, struct err *e); /* made once, given to all ranks */
int model_join(struct model *m, const unsigned char *id, int rank, int world, struct err *e); /* waits for all ranks */
/* Before model_train_begin: what training keeps lies in parts, one on each rank (ZeRO, arXiv 1910.02054). zero 1:
 * AdamW's moments; a rank moves its part of the weights and sends it to the others: the same bits as with whole
 * moments. zero 2: fp32 weights and gradients too; every backward pass sums over ranks, so that ranks run equally many
 * (model_sums_by_batch), the last ones with model_backward_nothing. Nothing where there is one rank. */
int model_part_state(struct model *m, int zero, struct err *e);
bool model_sums_by_batch(const struct model *m);
int model_backward_nothing(struct model *m, struct err *e);
/* Weights in parts: while one rank saves the model, every other gives its part. Nothing otherwise. */
int model_give(const struct model *m, struct err *e);
/* Sums over ranks, the same bits on each; nothing where there is one. Every rank must call, in the same order. A
 * model's gradients; or n <= MODEL_SUM_MAX numbers, which travel as fp32. */
int model_sum_grads(struct model *m, struct err *e);
int model_sum(struct model *m, double *x, int n, struct err *e);

/* ---- Training: packed sequences ---------------------------------------------------------------------------- */

struct train_limits {
    int max_tokens;     /* sum of lengths in one micro-batch */
    int max_targets;    /* positions with a target in one micro-batch; 0 means max_tokens */
    size_t max_bytes;   /* refuse a plan above this; 0 means 80 % of the free memory */
};
/* Plans and allocates gradients and activations. ERR_ENV with the byte budget line by line if it does not fit.
 * May be called again with other limits; gradients are kept. */
int model_train_begin(struct model *m, const struct train_limits *l, struct err *e);
size_t model_train_bytes(const struct model *m, const struct train_limits *l);

struct train_batch {
    const int32_t *tokens;     /* (cu_seqlens[n_seq]) all sequences, one after another, no padding */
    const int32_t *cu_seqlens; /* (n_seq + 1) first token of each sequence; [0] is 0. Positions restart, attention
                                * is causal within a sequence and never crosses */
    int n_seq;
    const int32_t *targets;    /* (tokens) the id to be predicted *at* this position, usually tokens[t + 1]; -1 means
                                * no prediction here, and the classifier is not computed */
    float temperature;         /* logits are divided by it; 0 means 1 */
    /* NULL, or of each position the ids that its softmax runs over, n_kept[t] of them, the target among them; 0: all.
     * Log-prob, entropy and gradients are then that softmax's. They stay as they are until model_backward. */
    const int32_t *const *kept;
    const int *n_kept;
};

/* Sequences that begin like an earlier neighbour (samples of one prompt) and have no targets there compute that
 * beginning once, forward and backward; results are the same bits forward. Keep samples of a prompt next to each
 * other.
 *
 * Where a target is set: logp[t] = log_softmax(z_t / T)[target], entropy[t] = -sum p log p in nats; elsewhere 0.
 * entropy may be NULL. Activations stay for one model_backward. ERR_INPUT: ids outside the vocabulary, batch beyond
 * the plan, broken cu_seqlens. */
int model_forward(struct model *m, const struct train_batch *b, float *logp, float *entropy, struct err *e);

/* Adds dL/dweights to m->grads given dL/dlogp and dL/dentropy per position (dentropy may be NULL; values at positions
 * without a target are ignored). SFT with token mean: dlogp[t] = -w_t / sum w. Any policy-gradient loss fits as well.
 * Uses up the activations of the last model_forward; calling it twice is ERR_BUG. */
int model_backward(struct model *m, const float *dlogp, const float *dentropy, struct err *e);
void model_zero_grads(struct model *m);

/* Plain scoring without a plan: logits (n, vocab) of one sequence. Slow path for tools and tests. */
int model_logits(struct model *m, const int32_t *tokens, int n, float *ret_logits, struct err *e);

#endif
