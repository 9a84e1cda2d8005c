/* musa_cards.h - Moore Threads cards of this machine: what the driver says of them, and the compiler's command line.
 * Found with dlopen("libmusa.so"), so that nothing is needed to build or start. Nobody of the project had a
 * card: tests drive this with a recorded driver and a recorded compiler. */
#ifndef MC_DEVICE_MUSA_CARDS_H
#define MC_DEVICE_MUSA_CARDS_H

#include "base/buf.h"
#include "base/err.h"
#include "device/data_sheet.h"

struct musa_card {
    char name[128];
    int major, minor;               /* mp_22 is 2, 2 */
    int64_t figures[N_DATA_SHEET_FACTS]; /* what the driver answers; DATA_SHEET_UNKNOWN where it does not */
};

/* The cards, *ret_n of them; caller frees *ret. ERR_ENV with the remedy: no driver, no card. $MUSACODER_LIBMUSA names
 * another library. */
int musa_cards(struct musa_card **ret, int *ret_n, struct err *e);

/* The profile of that generation and name; NULL if none is known. */
const struct data_sheet *musa_card_profile(const struct musa_card *c);
/* Where card and profile disagree: "l2_bytes: 25165824 here, 62914560 in the profile", a line each; nothing if
 * they agree. */
void musa_card_differences(const struct musa_card *c, const struct data_sheet *p, struct buf *out);

/* mcc: $MUSACODER_MCC, $MUSA_HOME/bin/mcc, /usr/local/musa/bin/mcc, PATH. Caller frees; NULL with the remedy. */
char *musa_compiler(struct err *e);

#endif
