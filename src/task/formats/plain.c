/* plain.c - KernelBench's own form, which is ours: KernelBench, KernelBook's files, most of MultiKernelBench. Taken as
 * it is, with the sidecar that may lie beside it. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "task/formats/format.h"
#include "task/task.h"

/* format's 'is': a Python file with Model and its inputs. */
static bool plain_is(const char *path)
{
    struct buf text;
    bool is = path_ends(path, ".py") && format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "class Model") && strstr(text.p, "def get_inputs") && strstr(text.p, "def get_init_inputs");
        buf_free(&text);
    }
    return is;
}

/* format's 'read': a task as this system writes it. */
static int plain_read(const char *path, int most, struct format_task *t, struct err *e)
{
    struct task own;

    (void)most;
    if (task_read(path, &own, e) < 0)
        return -1;
    snprintf(t->name, sizeof t->name, "%.100s", own.name);
    if (!strcmp(own.name, "reference")) /* KernelBench-Hard: its folder has the name */
        format_folder_name(path, t->name, sizeof t->name);
    buf_add(&t->code, own.code, own.n);
    if (own.sidecar)
        json_object_update_missing(t->sidecar, own.sidecar);
    task_free(&own);
    return 0;
}

const struct format format_plain = {"kernelbench", "KernelBench's own form: NAME.py", plain_is, plain_read};
