/* folder.h - folders that the project writes into: whose they are, who works in them, and how a finished one gets
 * its name.
 *
 * A folder of ours carries the stamp file STAMP_NAME. Only a stamped folder is ever emptied; a folder of
 * somebody else that holds anything is refused with the remedy. Neither a name nor the names of files in it make a
 * folder ours: what an older version wrote is refused, too, until its user stamps it. */
#ifndef MC_FOLDER_H
#define MC_FOLDER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/stamp.h"

#define FOLDER_LISTING ".musacoder.sums" /* of results; base/listing.h */
#define FOLDER_STAGE "this stage" /* the 'what' of a recipe's stages, whose folders the run's commands may claim */
#define FOLDER_CURVES "these curves" /* of trainings; a run's own stages put theirs beside them */
#define FOLDER_MODEL "this model" /* that of 'init' and 'export' */

/* Makes the folder with its parents and stamps it, unless it is stamped. A folder that is not empty and has no
 * stamp, the stamp of another 'what', or a new one below a stage's folder, is ERR_INPUT. 'what' names the writer, in
 * messages too: "this run". */
int folder_claim(const char *path, const char *what, struct err *e);
/* ERR_INPUT where the file 'claim' of the folder, which says what it was started with, is gone, and one of the names
 * (up to NULL) is there, which were made then. */
int folder_check_claim(const char *path, const char *claim, const char *const *names, struct err *e);
/* ERR_INPUT where the folder holds both names: they are those of another form of what is made there. */
int folder_check_other(const char *path, const char *one, const char *other, struct err *e);
bool folder_holds_results(const char *path); /* more than stamp, lock, and what a killed writer left */
/* This process, and those that it starts, work on the stage whose folder this is: they alone may claim it. */
void folder_enter_stage(const char *path);
/* Of what is made for 'what': ERR_INPUT where it lies below a stage's folder, which its run empties, but not in the
 * model there, and this process is not of that stage. */
int folder_check_above(const char *path, const char *what, struct err *e);
bool folder_lies_in_ours(const char *path); /* is one of the folders above it, wherever links lead, stamped? */

/* Removes everything in a stamped folder but the stamp, the listing last; an absent folder is fine, one without a stamp
 * or behind a link in a folder of ours is ERR_INPUT. Killed in the middle it leaves a stamped folder. */
int folder_empty(const char *path, struct err *e);

/* Takes path/lock for this process, until the descriptor *ret_fd is closed. ERR_INPUT at once where another
 * process holds it. The holder is alone in the folder: temporary files that killed writers left there (file.h) are
 * removed. */
int folder_lock(const char *path, const char *what, int *ret_fd, struct err *e);

/* Claims the folder and locks it. */
int folder_take(const char *path, const char *what, const char *command, int *ret_lock, struct err *e);

/* For a folder that may hold other people's files too: removes what killed writers (file_temporary) left directly in
 * it. Nobody else may be writing there. */
void folder_sweep(const char *path);

/* Flushes every file below the folder, and the folders, to the disk. */
int folder_flush(const char *path, struct err *e);

/* Puts the finished folder 'work' in the place of 'path': every file in it is flushed to the disk, then the names
 * change at once, then the parent is flushed. What was at 'path' is removed afterwards. Killed at any point,
 * 'path' is the whole old folder or the whole new one. Both lie in one file system. */
int folder_commit(const char *work, const char *path, struct err *e);

/* Before 'work' takes the place of 'path': whatever else lies in 'path', and is not ours by its name, is linked (or
 * copied) into 'work', folders with all below them. What 'work' holds already stays. */
int folder_keep(const char *path, const char *work, bool (*ours)(const char *name), struct err *e);

/* A new private folder under $TMPDIR or /tmp for as long as this process lives: *ret_fd holds its lock. Folders of
 * the same prefix whose makers are dead are removed first. NULL on error. */
char *folder_temp(const char *prefix, int *ret_fd, struct err *e);

/* A single part of a path that stays where it is put: not empty, no '/', not '.' or '..'. */
bool name_is_part(const char *name);

#endif
