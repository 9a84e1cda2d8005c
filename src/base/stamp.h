/* stamp.h - which folders are ours: those that carry the stamp, a plain file. */
#ifndef MC_STAMP_H
#define MC_STAMP_H

#include <stdbool.h>

#include "base/err.h"

#define STAMP_NAME ".musacoder"

bool stamp_is_in(const char *folder);
/* Of a part of a folder of ours: ERR_INPUT where it is a link. */
int stamp_check_plain(const char *path, struct err *e);
/* Of what is written: ERR_INPUT where a part of the path, as it is spelt, is a link in a folder of ours or below one:
 * what it names may be somebody's. Links outside of ours are followed. */
int stamp_check_links(const char *path, struct err *e);

#endif
