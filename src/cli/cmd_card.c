/* cmd_card.c - 'musacoder card': options to report/model_card.h. */
#include <stdio.h>

#include "base/file.h"
#include "cli/cli.h"
#include "report/model_card.h"

static const struct opt rows[] = {
    {"card", "out", OPT_OUT_FILE, NULL,
     "write to this file, e.g. the model folder's README.md (default: standard output)"},
    {0},
};

/* The command; an exit code, or -1 with e. */
static int card_run(const struct opts *o, struct err *e)
{
    struct buf b;
    int rc = 0;

    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "card wants one run folder, e.g. 'musacoder card runs/quickstart'");
    buf_init(&b, BUF_MAX_TEXT);
    rc = model_card_build(o->args[0], MC_VERSION, &b, e);
    if (rc == 0 && opts_has(o, "out"))
        rc = file_write(opts_str(o, "out"), b.p, b.n, e);
    else if (rc == 0)
        fputs(b.p, stdout);
    buf_free(&b);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_card = {
    "card", "the model card of a finished run", "RUN [--out FILE]",
    "RUN is a folder of 'musacoder run'. Writes what the model came from, how it was trained and what it reached, as\n"
    "Markdown with Hugging Face's metadata in front. Every figure is the run folder's own.\n",
    rows, card_run, 1};
