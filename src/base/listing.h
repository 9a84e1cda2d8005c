/* listing.h - what a command has made in its folder, and whether it still is that.
 *
 * FOLDER/.musacoder.sums lists a command's results in the form of sha256sum(1), below a line of ours. A result is
 * noted before it is written, so a folder whose command was stopped is known as unfinished. Whoever reads a result as
 * input checks it first. A file that the listing does not name, or that is not as it was noted, is a user's: it is
 * never removed, and a result of its name leaves it as NAME.edited. Names with a line break or a backslash are left
 * out, and names that lead out of the folder are not believed. */
#ifndef MC_LISTING_H
#define MC_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/folder.h"

#define LISTING_NAME FOLDER_LISTING

struct listing;

/* Begins a listing in a folder that is there; results of the former one count as unfinished from now on. from (may be
 * NULL): what the results are made of; ERR_INPUT where the former ones were made of something else, and where another
 * command still makes results there after half a minute. Free *ret. */
int listing_begin(const char *dir, const char *from, struct listing **ret, struct err *e);
/* Notes the result and writes dir/name by file_write, unless that is there as it is. The folder it lies in is there. */
int listing_write(struct listing *l, const char *name, const void *data, size_t n, struct err *e);
int listing_write_json(struct listing *l, const char *name, const json_t *v, struct err *e); /* as json_write */
int listing_write_copy(struct listing *l, const char *name, const char *from, struct err *e); /* of another file */
/* Moves each file of the folder 'work', which goes then, to its name in the listing's folder. */
int listing_move(struct listing *l, const char *work, struct err *e);
/* Readers take the files as they are by now, and only a stop is told: of models, whose settings people edit. */
void listing_allow_edits(struct listing *l);
/* A file that would be read beside the results, and is neither one nor a former one as it was, is moved aside. */
int listing_put_aside(struct listing *l, const char *name, struct err *e);
/* Removes a former result of that name, unless somebody has changed it. */
int listing_drop(struct listing *l, const char *name, struct err *e);
/* Notes a file that is there, as it is. */
int listing_add(struct listing *l, const char *name, struct err *e);
/* Ends a listing: the folder is finished. Former results that were not made again are removed, unless somebody has
 * changed them; with keep they stay, listed as before. *ret_former (may be NULL): how many there were. */
int listing_end(struct listing *l, bool keep, size_t *ret_former, struct err *e);
void listing_free(struct listing *l); /* NULL is fine */
/* A finished listing of files that are there, from {"NAME": "SHA-256"}: for folders that several processes fill. NULL,
 * until then: what is there is not all. */
int listing_put(const char *dir, const json_t *hashes, struct err *e);
/* Writes dir/name there, unless that is there as it is. What somebody has changed goes on as NAME.edited. */
int listing_replace(const char *dir, const char *name, const void *data, size_t n, struct err *e);

/* For a file or folder that is read: ERR_INPUT, with the remedy, where a listing of its folder, or of one
 * above, is unfinished or names a file at or below path that is gone or changed. 0 where there is no listing. */
int listing_check(const char *path, struct err *e);
bool listing_is_there(const char *dir);
bool listing_names(const char *path); /* is it a result that a listing above it names? */
int listing_check_own(const char *dir, struct err *e); /* the same of the folder's own listing alone */
/* The first file below the folder, dot files apart, that is neither a result as its listing noted it nor one that the
 * folder's command knows by its name there: a user's. A folder below with a listing of its own goes by that. Owned;
 * NULL: none. */
char *listing_find_foreign(const char *dir, bool (*known)(const char *name));
/* Is everything there that the folder's own listing names, unchanged? True without one; why not is logged. */
bool listing_holds(const char *dir);

#endif
