/* file.h - files, folders, and where the project's own things are. Paths are NUL-terminated UTF-8.
 * Functions that return char * give an owned string: the caller frees it. */
#ifndef MC_FILE_H
#define MC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the whole file to out (initialised by the caller). Larger than out->max is an error, not a cut. */
int file_read(const char *path, struct buf *out, struct err *e);
/* Writes beside the target, fsyncs, renames: readers see the old or the new file, never a part. A link stays a
 * link, what is replaced passes its mode on. A pipe, a character device and our own standard output are written into;
 * disks and sockets are refused. ERR_INPUT where the path leads through a link that lies in a folder of ours
 * (stamp_check_links). file_append is refused likewise. */
int file_write(const char *path, const void *data, size_t n, struct err *e);
int file_write_try(const char *path, struct err *e); /* would file_write find its folder? Leaves no file */
/* A free name beside path for a file that will be renamed to it; owned. A killed writer leaves such a file behind. */
char *file_temporary(const char *path);
bool file_is_temporary(const char *name); /* made by file_temporary: nobody else has such names */
int file_append(const char *path, const void *data, size_t n, struct err *e); /* one write(2), O_APPEND */
int file_copy(const char *from, const char *to, struct err *e);
/* Before somebody's file is written over or removed: what is at path stays as PATH.edited as well, or as the first of
 * PATH.edited.2, .. that is free. *ret is that name, owned. */
int file_keep_aside(const char *path, char **ret, struct err *e);
bool file_is_same(const char *a, const char *b); /* one file or folder, however the two are spelt */
/* Is anything called so? A link to nothing is, and what may not be looked at: to read it fails, and is no lack. */
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* A pipe, a device, our own standard output: it is written into, and no file takes its place. */
bool file_is_special(const char *path);
int dir_make(const char *path, struct err *e);                      /* with parents; existing is fine */
int dir_remove(const char *path, struct err *e);                    /* recursive, never follows links */
int dir_list(const char *path, char ***ret_names, size_t *ret_n, struct err *e); /* sorted, no dot files */
/* Calls take with each name that dir_list lists, until it returns another value than 0, which is returned then. */
int dir_each(const char *dir, int (*take)(void *ctx, const char *path, const char *name, struct err *e), void *ctx,
             struct err *e);
void names_free(char **names, size_t n);
char *dir_temp(const char *prefix, struct err *e); /* a new private folder under $TMPDIR or /tmp; NULL on error */

char *path_join(const char *a, const char *b);
char *path_stem(const char *path); /* "a/b/19_ReLU.py" -> "19_ReLU" */
char *path_folder(const char *path); /* that the path lies in: "a/b/c" -> "a/b", "c" -> ".", "/c" -> "/" */
/* The full path without links, of what need not be there: realpath of the nearest folder above that is, and the rest.
 * Owned. */
char *path_real(const char *path);
/* Of two full paths (realpath): is the second below the first, and not the folder itself? */
bool path_is_below(const char *folder, const char *path);
bool path_ends(const char *path, const char *ending); /* with a name before the ending: "x.py", not ".py" */
const char *path_name(const char *path); /* its last part, borrowed: "a/b/19_ReLU.py" -> "19_ReLU.py" */

/* Where simt/, litetorch/, runner/, recipes/ are: $MUSACODER_SHARE, else the nearest folder above the running binary
 * that holds runner/ (a checkout) or share/musacoder/runner/ (an installation). */
char *path_share(const char *name);
/* A library or helper program of ours: $MUSACODER_LIB_DIR/NAME, else the nearest lib/NAME (a build folder) or
 * lib/musacoder/NAME (an installation) above the running binary. NULL if there is none. */
char *path_lib(const char *name);
char *path_lib_folder(void); /* the folder of libsimt.so, by the same rule; NULL if there is none */
/* $MUSACODER_DATA_DIR, else $XDG_DATA_HOME/musacoder, else ~/.local/share/musacoder: the virtual environment. */
char *path_data(const char *name);
/* $MUSACODER_CACHE_DIR, else $XDG_CACHE_HOME/musacoder, else ~/.cache/musacoder: builds and verdicts. */
char *path_cache(const char *name);
/* The local cache of Hugging Face models, where there is one: $HF_HUB_CACHE, else $HF_HOME/hub, else
 * ~/.cache/huggingface/hub. NULL when that is no folder. It holds models only, no token. */
char *path_models(void);
/* The Python to run runner/ with: $MUSACODER_PYTHON, else the virtual environment's, else NULL with a remedy. */
char *path_python(struct err *e);

#endif
