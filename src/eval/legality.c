/* legality.c - see legality.h. The lists are data; changing one means a new version in the header. */
#include "eval/legality.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* appendix-j/1, in the paper's order, then the newer spellings that SPEC names. */
static const char *const published[] = {
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_cast_Byte", "_cast_Char", "_cast_Double",
    "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long", "_cast_Short", "_local_scalar_dense", "alias", "allclose",
    "arange", "as_strided", "broadcast_to", "clone", "contiguous", "copy_", "empty", "empty_like", "equal", "expand",
    "flatten", "full", "item", "ones", "permute", "rand", "randint", "randn", "reshape", "select", "slice", "squeeze",
    "stride", "transpose", "unsqueeze", "view", "zeros",
    "_to_copy", "detach", "empty_strided", "fill_", "new_empty", "to", "zero_", NULL};

/* plumbing/2: allocation, views, copies and queries that newer PyTorch dispatches, and what rand, randn and randint
 * dispatch below themselves. No arithmetic, no indexing by data. */
static const char *const plumbing[] = {
    "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_empty_strided", "empty_permuted",
    "t", "t_", "T", "mT", "numpy_T", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "chunk",
    "unsafe_chunk", "tensor_split", "unbind", "narrow", "movedim", "moveaxis", "swapaxes", "swapdims", "unflatten",
    "unfold", "diagonal", "ravel", "view_as", "reshape_as", "expand_as", "squeeze_", "unsqueeze_", "transpose_",
    "as_strided_", "detach_", "_unsafe_view", "_reshape_alias", "_reshape_copy", "view_copy", "lift", "lift_fresh",
    "lift_fresh_copy", "scalar_tensor", "set_", "resize_", "resize_as_", "_resize_output_", "_pin_memory", "pin_memory",
    "is_pinned", "record_stream", "size", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "numel", "dim",
    "storage_offset", "is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_same_size", "is_set_to",
    "is_nonzero", "is_inference", "is_conj", "is_neg", "resolve_conj", "resolve_neg", "view_as_real", "view_as_complex",
    "real", "result_type", "can_cast", "requires_grad_", "retain_grad", "_version", "output_nr", "is_leaf", "data",
    "set_data", "type_as", "cpu", "cuda", "_has_compatible_shallow_copy_type", "_to_cpu", "copy", "clone_",
    "uniform_", "normal_", "random_", NULL};

/* init/2. A name matches whole, or as a prefix where it ends in '*'; a leading '_' of the operator is ignored. */
static const char *const init_forbidden[] = {
    "mm", "bmm", "matmul", "addmm*", "addmv*", "addbmm*", "baddbmm*", "addr*", "mv", "dot", "vdot", "inner", "outer",
    "ger", "einsum", "tensordot", "linear*", "bilinear", "trilinear", "kron", "chain_matmul", "cdist*",
    "matrix_power", "linalg_matmul", "linalg_multi_dot", "linalg_vecdot", "linalg_inv*", "linalg_solve*",
    "linalg_norm", "linalg_vector_norm", "linalg_matrix_norm", "linalg_matrix_exp", "matrix_exp", "inverse",
    "scaled_*", "int_mm", "conv1d", "conv2d", "conv3d", "conv_*", "convolution*", "thnn_conv*", "slow_conv*",
    "mkldnn_*", "cudnn_*", "miopen_*", "nnpack_*", "im2col", "col2im", "sum*", "nansum", "mean", "nanmean", "prod*",
    "max", "min", "amax", "amin", "aminmax", "norm", "norm_except_dim", "var*", "std*", "logsumexp*", "all", "any",
    "argmax", "argmin", "median", "nanmedian", "mode", "quantile", "count_nonzero", "trace", "softmax*",
    "log_softmax*", "softmin", "safe_softmax", "cumsum*", "cumprod*", "cummax*", "cummin*", "logcumsumexp*", "fft_*",
    "stft", "istft", "layer_norm", "native_layer_norm", "batch_norm*", "native_batch_norm*", "group_norm",
    "native_group_norm", "instance_norm", "rms_norm", "fused_rms_norm", "cosine_similarity", "pairwise_distance",
    "avg_pool*", "max_pool*", "adaptive_*", "lstm*", "gru*", "rnn_*", "fused_*", "embedding_bag*",
    "multi_head_attention*", "native_multi_head_attention", "transformer_encoder_layer_fwd", "flash_attention*",
    "efficient_attention*", NULL};

/* foreign/1: who else brings operators that compute: parts of torch, and packages. Other names are the program's own
 * (torch.library); what those call is recorded by itself. */
static const char *const foreign[] = {
    "prims", "rngprims", "debugprims", "quantized", "_quantized", "quantization", "quantized_decomposed", "mkl",
    "mkldnn", "mkldnn_prepacked", "onednn", "prepacked", "sparse", "static_runtime", "inductor", "export", "c10d",
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "symm_mem", "_test", "debug_mode_ops", "fbgemm",
    "xnnpack", "higher_order", "torchvision", "torchaudio", "torchao", "xformers", "flash_attn", "flash_attn_2_cuda",
    "vllm", "triton", "bitsandbytes", "deepspeed", "apex", "flashinfer", "tensorrt", "executorch", NULL};

/* How the trace counts apart (litetorch/runtime/trace.cc): what a stream recorded into a graph runs whenever the graph
 * does, and in the harness's pauses only its copies run. So neither has the freedom of __init__. */
static const char *const prefixes[] = {"captured::", "paused::"};

static const char *behind_prefix(const char *key)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);

        if (!strncmp(key, prefixes[i], n) && strstr(key + n, "::"))
            return key + n;
    }
    return NULL;
}

static bool own_namespace(const char *op)
{
    const char *colon = strstr(op, "::");
    char name[64];

    if (!colon || colon == op || (size_t)(colon - op) >= sizeof name || !strncmp(op, "aten::", 6))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(colon - op), op);
    for (const char *const *f = foreign; *f; f++)
        if (!strcmp(*f, name))
            return false;
    return true;
}

/* "aten::add_.Tensor" -> "add_"; false if the operator is neither ATen's nor of the other namespace given. */
static bool base_name(const char *op, const char *other, char *out, size_t n)
{
    const char *colon = strstr(op, "::");
    const char *name = colon ? colon + 2 : op;
    size_t len = strcspn(name, ".");

    if (colon && strncmp(op, "aten::", 6) && (!other || strncmp(op, other, strlen(other))))
        return false;
    snprintf(out, n, "%.*s", (int)(len < n ? len : n - 1), name);
    return true;
}

static bool listed(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

bool legality_forward_ok(const char *op)
{
    char name[96];

    if (own_namespace(op))
        return true;
    return base_name(op, NULL, name, sizeof name) && (listed(published, name) || listed(plumbing, name));
}

bool legality_init_ok(const char *op)
{
    char name[96];
    const char *bare = name;
    size_t n;

    if (!base_name(op, "prims::", name, sizeof name)) // the same operators, as torch's decompositions spell them
        return own_namespace(op);
    while (*bare == '_')
        bare++;
    for (const char *const *p = init_forbidden; *p; p++) {
        n = strlen(*p);
        if ((*p)[n - 1] == '*' ? !strncmp(bare, *p, n - 1) : !strcmp(bare, *p))
            return false;
    }
    return true;
}

static bool word_char(int c)
{
    return isalnum(c) || c == '_';
}

/* Names that a Python programmer writes for an operator that dispatches under another name. */
static const char *const spelled[][2] = {
    {"addmm", "Linear"}, {"addmm", "linear"}, {"linear", "Linear"}, {"mm", "@"}, {"mm", "matmul"}, {"bmm", "matmul"},
    {"matmul", "@"}, {"convolution", "conv"}, {"mul", "*"}, {"add", "+"}, {"sub", "-"}, {"div", "/"},
    {"clamp_min", "relu"}, {"native_layer_norm", "layer_norm"}, {"native_batch_norm", "batch_norm"}, {NULL, NULL}};

static int find_word(const char *source, const char *word, char *ret_text, size_t n_text)
{
    size_t n = strlen(word);
    int line = 1;

    for (const char *p = source, *end; *p; p = *end ? end + 1 : end, line++) {
        end = p + strcspn(p, "\n");
        for (const char *q = p; q + n <= end; q++) {
            bool edges = !word_char((unsigned char)word[0]) ||
                         ((q == p || !word_char((unsigned char)q[-1])) && !word_char((unsigned char)q[n]));

            if (*q == '#')
                break;
            if (memcmp(q, word, n) || !edges)
                continue;
            while (p < end && isspace((unsigned char)*p))
                p++;
            snprintf(ret_text, n_text, "%.*s", (int)(end - p < (long)n_text - 1 ? end - p : (long)n_text - 1), p);
            return line;
        }
    }
    return -1;
}

/* Tries the spellings of one operator over a text, the telling ones (torch.relu, F.relu, .relu) before the bare word,
 * which may be the candidate's own function. */
static int find_spelling(const char *text, const char *name, char *ret_text, size_t n_text)
{
    static const char *const prefixes[] = {"torch.", "F.", "functional.", "nn.", ""};
    char word[128];
    int line = -1;

    for (size_t i = 0; line < 0 && i < sizeof prefixes / sizeof *prefixes; i++) {
        snprintf(word, sizeof word, "%s%s", prefixes[i], name);
        line = find_word(text, word, ret_text, n_text);
    }
    for (size_t i = 0; line < 0 && spelled[i][0]; i++)
        if (!strcmp(spelled[i][0], name) && word_char((unsigned char)spelled[i][1][0]))
            line = find_word(text, spelled[i][1], ret_text, n_text);
    return line;
}

int legality_find_line(const char *source, const char *op, char *ret_text, size_t n_text)
{
    char name[96];
    const char *forward = strstr(source, "def forward"), *bare = name;
    int line = -1, skip = 0;
    size_t n;

    if (!base_name(op, NULL, name, sizeof name))
        return -1;
    while (*bare == '_')
        bare++;
    n = strlen(name);
    if (forward) {
        for (const char *p = source; p < forward; p++)
            skip += *p == '\n';
        line = find_spelling(forward, bare, ret_text, n_text);
        if (line > 0)
            return line + skip;
    }
    line = find_spelling(source, bare, ret_text, n_text);
    if (line < 0 && n > 1 && name[n - 1] == '_') {
        name[n - 1] = 0;
        line = find_spelling(source, bare, ret_text, n_text);
    }
    return line;
}

void legality_judge(const json_t *trace, const char *phase, const char *source, json_t *violations)
{
    bool init = !strcmp(phase, "init"), found;
    const char *key;
    json_t *count, *v;
    char text[160];
    int line;

    json_object_foreach((json_t *)trace, key, count) {
        const char *behind = behind_prefix(key), *op = behind ? behind : key;
        bool at_init = init && !behind;

        if (!init && behind && *key == 'c') // captured, and counted under its own name too
            continue;
        if (at_init ? legality_init_ok(op) : legality_forward_ok(op))
            continue;
        line = legality_find_line(source, op, text, sizeof text);
        found = line > 0;
        v = json_pack("{s:s,s:s,s:o,s:O}", "rule", at_init ? "forbidden_init_op" : "forbidden_op",
                      "phase", phase, "op", json_utf8(op, strlen(op)), "count", count);
        json_object_set_new(v, "line", found ? json_integer(line) : json_null());
        json_object_set_new(v, "text", found ? json_utf8(text, strlen(text)) : json_null());
        json_array_append_new(violations, v);
    }
}
