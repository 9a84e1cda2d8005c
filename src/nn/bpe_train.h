/* bpe_train.h - trains a byte-level BPE in the Qwen3 layout and writes the tokenizer files of a model folder.
 *
 * Texts are split by a regex (Qwen3's unless told) after NFC and merges never cross the pieces. Each step merges the
 * most frequent pair; ties go to the smaller pair of ids, so the same texts give the same bytes, and the merges are
 * those of 'tokenizers'. Method: Sennrich et al. 2016, with pair counts kept up to date in a heap instead of
 * recounted. */
#ifndef MC_NN_BPE_TRAIN_H
#define MC_NN_BPE_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bpe_options {
    int vocab_size; /* in all: 256 bytes + merges + special tokens; at least 256 + the special tokens */
    int min_count;  /* a pair seen less often is not merged; 0 means 2. Too few pairs give a smaller vocabulary. */
    const char *split; /* regex of the pieces; NULL: Qwen3's */
};

struct bpe_result {
    int vocab_size, n_merges;
    size_t n_bytes, n_words, n_distinct_words;
};

/* Bytes come first (ids 0..255 in the order of GPT-2's alphabet, as in Qwen), then merges, then <|endoftext|>
 * <|im_start|> <|im_end|>. Writes dir/tokenizer.json and dir/tokenizer_config.json (Transformers loads both; eos is
 * <|im_end|>, pad is <|endoftext|>), each atomically. lens may be NULL when the texts are NUL-terminated. ret may be
 * NULL. */
int bpe_train(const char *const *texts, const size_t *lens, size_t n_texts, const struct bpe_options *o,
              const char *dir, struct bpe_result *ret, struct err *e);

#endif
