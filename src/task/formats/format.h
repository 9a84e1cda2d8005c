/* format.h - tasks that others wrote in forms of their own, as our files: NAME.py and, where there is more than one
 * shape, NAME.yaml with workloads. Text alone; nothing is run.
 *
 * A reader knows its files by name and content, and gives one task or refuses with the reason. What changes from row to
 * row becomes module-level names of the task: integers as sizes, which 'shrink' can make small; everything else by the
 * number of the row, 'case'. */
#ifndef MC_TASK_FORMAT_H
#define MC_TASK_FORMAT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct format_task {
    char name[120];  /* a plain file name without ending */
    struct buf code; /* owned */
    json_t *sidecar; /* owned; always has "format", maybe "workloads" */
    bool published;  /* the benchmark's own tolerance goes into the sidecar, where it has one */
};

struct format {
    const char *name, *about;
    bool (*is)(const char *path);
    /* most: rows that are kept, at least 1. ret is ready for writing: empty code, a sidecar object. */
    int (*read)(const char *path, int most, struct format_task *ret, struct err *e);};

extern const struct format format_gpumode, format_definition, format_robust, format_cases, format_plain,
    format_kernelbook, format_leetgpu, format_computeeval;

/* Called for each task in order of paths; task NULL: it was refused, why says it. -1 ends the walk. */
typedef int format_take(const char *path, const struct format *f, const struct format_task *task, const char *why,
                        void *ctx, struct err *e);
/* All tasks of a file or a folder and what is below it; hidden folders are left out. */
int format_each(const char *path, const char *only, int most, bool published, format_take *take, void *ctx,
                struct err *e);

/* ---- for readers ---- */

bool format_named(const char *path, const char *base);    /* the last part of the path is base */
int format_text(const char *path, struct buf *out, struct err *e); /* a text file; out is made */
char *format_beside(const char *path, const char *name);  /* owned: name in the folder of path; may begin with ../ */
void format_folder_name(const char *path, char *out, size_t n); /* of the folder that it is in; no folder: as it was */
bool format_has_beside(const char *path, const char *name);
void format_python(struct buf *out, const json_t *v);     /* a JSON value as a Python literal */
bool format_is_identifier(const char *s);
/* Writes the module-level names of rows (objects of the same keys, at least one) and the sidecar's workloads; names[i]
 * may be NULL. ERR_INPUT for a key that is no identifier. */
int format_rows(struct format_task *t, const json_t *rows, int most, struct err *e);
/* A tensor of a safetensors file that a definition names: {"data": base64, "dtype", "shape"}; new. file is relative, in
 * the definition's folder or one above. ERR_INPUT: another place, no such tensor, or more than a task can hold. */
int format_tensor(const char *definition, const char *file, const char *key, json_t **ret, struct err *e);
/* The text without the lines that import from these modules (NULL ends them): they are inlined. */
void format_inline(struct buf *out, const char *text, const char *const *modules);

#endif
