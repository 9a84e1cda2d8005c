/* kernelbook.c - KernelBook's modules: NUMBER_NAME.py with a module class of any name, get_inputs and get_init_inputs
 * that gives [[..], {..}]. The class that the file is named after, else the last module class, becomes Model. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "task/formats/format.h"

static bool kernelbook_is(const char *path)
{
    size_t n = strlen(path);
    struct buf text;
    bool is = n > 3 && !strcmp(path + n - 3, ".py") && format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "\ndef get_inputs(") && strstr(text.p, "\ndef get_init_inputs(") &&
             !strstr(text.p, "\nclass Model(") && strstr(text.p, "\nclass ");
        buf_free(&text);
    }
    return is;
}

static bool kernelbook_defines(const char *text, const char *name)
{
    char *head = xasprintf("\nclass %s(", name);
    bool does = *name && strstr(text, head);

    free(head);
    return does;
}

/* The last class whose bases speak of a Module; owned, "" if there is none. */
static char *kernelbook_last_module(const char *text)
{
    char *found = xstrdup(""), name[100], bases[200];

    for (const char *p = strstr(text, "\nclass "); p; p = strstr(p + 1, "\nclass "))
        if (sscanf(p, "\nclass %99[A-Za-z0-9_](%199[^)]", name, bases) == 2 && strstr(bases, "Module")) {
            free(found);
            found = xstrdup(name);
        }
    return found;
}

static int kernelbook_read(const char *path, int most, struct format_task *t, struct err *e)
{
    char *stem = path_stem(path), *name = stem, *last = NULL;
    struct buf text = {0};
    int rc = format_text(path, &text, e);

    (void)most;
    snprintf(t->name, sizeof t->name, "%.100s", stem);
    name += strspn(name, "0123456789");
    name += *name == '_';
    if (rc == 0 && !kernelbook_defines(text.p, name))
        name = last = kernelbook_last_module(text.p);
    if (rc == 0 && !*name)
        rc = err_set(e, ERR_INPUT, "no class of it is a Module");
    if (rc == 0)
        buf_addf(&t->code, "%s\n\n\nclass Model(%s):\n    pass\n", text.p, name);
    if (text.p)
        buf_free(&text);
    free(last);
    free(stem);
    return rc;
}

const struct format format_kernelbook = {"kernelbook", "KernelBook's modules: NUMBER_NAME.py, the class of that name",
                                         kernelbook_is, kernelbook_read};
