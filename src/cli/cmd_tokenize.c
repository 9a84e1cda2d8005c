/* cmd_tokenize.c - 'musacoder tokenize': a file's token ids as a JSON list, for comparison with other
 * implementations. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "nn/tokenizer.h"

static const struct opt rows[] = {
    {"tokenize", "model", OPT_STR, NULL, "model folder, or a tokenizer.json"},
    {"tokenize", "plain", OPT_BOOL, "false", "treat '<|im_end|>' and the like as ordinary text"},
    {"tokenize", "decode", OPT_BOOL, "false", "FILE is a JSON list of ids; print their text"},
    {0},
};

/* Prints the ids of a text as an array; 'plain' reads special tokens as ordinary text. */
static int tokenize_print_ids(struct tokenizer *t, const struct buf *in, bool plain, struct err *e)
{
    struct ivec ids = {0};
    int rc = tokenizer_encode(t, in->p, in->n, plain ? TOK_PLAIN : TOK_SPECIAL, &ids, e);

    if (rc == 0) {
        putchar('[');
        for (size_t i = 0; i < ids.n; i++)
            printf(i ? ", %d" : "%d", (int)ids.v[i]);
        puts("]");
    }
    ivec_free(&ids);
    return rc;
}

/* Prints the text of a JSON list of ids. */
static int tokenize_print_text(struct tokenizer *t, const struct buf *in, const char *file, struct err *e)
{
    json_t *list = json_parse(in->p, in->n, file, e), *v;
    struct buf out;
    size_t i;
    int rc = list ? 0 : -1;

    buf_init(&out, SIZE_MAX / 2);
    if (list && !json_is_array(list))
        rc = err_set(e, ERR_INPUT, "'%s' is not a JSON list of ids", file);
    json_array_foreach(list, i, v) {
        int32_t id = (int32_t)json_integer_value(v);
        if (!json_is_integer(v) || json_integer_value(v) != id || !tokenizer_token(t, id)) {
            rc = err_set(e, ERR_INPUT, "'%s': entry %zu is not the id of a token", file, i);
            break;
        }
        tokenizer_decode(t, &id, 1, false, &out);
    }
    if (rc == 0)
        fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
    json_decref(list);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int tokenize_run(const struct opts *o, struct err *e)
{
    struct tokenizer *t;
    struct buf in;
    int rc;

    if (!opts_has(o, "model"))
        return err_set(e, ERR_INPUT, "no tokenizer; say --model DIR");
    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "expected one file, got %d; '-' reads stdin", o->n_args);
    if (!(t = tokenizer_load(opts_str(o, "model"), e)))
        return -1;
    buf_init(&in, (size_t)1 << 30);
    rc = file_read(strcmp(o->args[0], "-") ? o->args[0] : "/dev/stdin", &in, e);
    if (rc == 0)
        rc = opts_bool(o, "decode") ? tokenize_print_text(t, &in, o->args[0], e)
            : tokenize_print_ids(t, &in, opts_bool(o, "plain"), e);
    buf_free(&in);
    tokenizer_free(t);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_tokenize = {
    "tokenize", "print the token ids of a text", "--model DIR FILE",
    "Prints a JSON list: the ids of FILE's text under the model's tokenizer.json ('-' reads stdin). Invalid UTF-8 is\n"
    "read as U+FFFD. The ids equal those of Hugging Face's 'tokenizers'.\n\n",
    rows, tokenize_run, 1};
