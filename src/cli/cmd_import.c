/* cmd_import.c - 'musacoder import': a GGUF file as a model folder. The work is Python's (setup/import_gguf.py). */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "cli/cli.h"

static const struct opt rows[] = {
    {"import", "out", OPT_OUT_FOLDER, NULL, "folder to write; it must not be there yet"},
    {0},
};

/* Runs the script that converts a GGUF file. */
static int import_import(const struct opts *o, struct err *e)
{
    const char *out = opts_str(o, "out");
    char *script;

    if (o->n_args != 1 || !out)
        return err_set(e, ERR_INPUT, "one GGUF file and --out FOLDER are needed");
    if (folder_check_above(out, "an import", e) < 0)
        return -1;
    script = path_share("setup/import.sh");
    execl("/bin/sh", "sh", script, o->args[0], out, (char *)NULL);
    err_sys(e, "cannot start '%s'", script);
    free(script);
    return -1;
}

const struct command cmd_import = {
    "import", "a GGUF file of llama, qwen2 or qwen3 as a model folder", "FILE.gguf --out FOLDER",
    "Writes a Hugging Face folder: weights in bf16 (quantised ones as the numbers that they stand for),\n"
    "configuration, tokenizer, and a model card that says where they come from. The first call makes a small Python\n"
    "environment in the data folder (network). 'make base' fetches and imports a small model,\n"
    "SmolLM2-135M-Instruct. Other families, SentencePiece tokenizers and scaled rotations other than Llama 3's are\n"
    "refused by name.\n\n",
    rows, import_import, 1};
