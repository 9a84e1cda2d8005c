/* judge_backend_musa.c - the backend 'musa': Moore Threads' cards. The reference runs on the CPU, since the card's own
 * operators are not known to be right; nothing is timed ('musacoder replay' of a capsule times its kernels). Nobody of
 * the project had a card: tests run this row over a recorded driver and compiler (docs/musa.md). */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/cuda_driver.h"
#include "device/musa_cards.h"
#include "eval/build/build.h"
#include "eval/process/judge_backend.h"

/* What the executor loads of ours. */
static int judge_musa_check_movement(struct err *e)
{
    const char *own = getenv("MUSACODER_EXEC_MUBIN");
    char *path = own && *own ? xstrdup(own) : path_lib("exec.mubin");
    int rc = path && file_exists(path) ? 0
             : err_set(e, ERR_ENV, "the executor's own kernels are missing ('exec.mubin'); run 'make' where mcc is, "
                                   "or 'make MCC=PATH'");

    free(path);
    return rc;
}

/* The driver, the card, our kernels, the compiler: what the first of them lacks is the message. */
static int judge_musa_describe(char **ret_device, char **ret_uuid, char **ret_arch, struct err *e)
{
    struct musa_card *cards = NULL;
    struct build_opts o = {.target = "musa"};
    char arch[16], *id;
    int n = 0;

    if (musa_cards(&cards, &n, e) < 0 || !drv_load_musa(e) || judge_musa_check_movement(e) < 0) {
        free(cards);
        return err_prefix(e, "backend 'musa' cannot be used");
    }
    snprintf(arch, sizeof arch, "mp_%d%d", cards[0].major % 10, cards[0].minor % 10);
    o.arch = arch;
    if (!(id = build_toolchain_id(&o, e))) {
        free(cards);
        return err_prefix(e, "backend 'musa' cannot be used");
    }
    free(id);
    *ret_device = xstrdup(cards[0].name);
    *ret_uuid = xasprintf("musa-%s", cards[0].name);
    *ret_arch = xstrdup(arch);
    free(cards);
    return 0;
}

const struct judge_backend backend_musa = {
    .name = "musa", .target = "musa", BACKEND_ON_CPU, .slots = 4, .describe = judge_musa_describe,
};
