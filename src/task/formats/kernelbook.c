/* kernelbook.c - KernelBook's modules: NUMBER_NAME.py with a module class of any name, get_inputs and get_init_inputs
 * that gives [[..], {..}]. The class that the file is named after, else the last module class, becomes Model; another
 * class of that name gets a longer one. Imports whose names nothing uses are left out; other modules than Python's own,
 * torch and numpy may be missing, as often another class uses them. _mock_config, of a module that KernelBook does not
 * come with, is written here. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "task/formats/format.h"

#define KERNELBOOK_HELPERS "_paritybench_helpers"

static const char kernelbook_mock[] = "import types\n\n\nclass _mock_config(types.SimpleNamespace):\n"
                                      "    def __contains__(self, name):\n        return hasattr(self, name)\n\n"
                                      "    def __getitem__(self, name):\n        return getattr(self, name)\n";

/* The name that the file has behind its number. */
static const char *kernelbook_name(const char *stem)
{
    const char *name = stem + strspn(stem, "0123456789");

    return name + (*name == '_');
}

/* True where the text defines that class. */
static bool kernelbook_defines(const char *text, const char *name)
{
    char *head = xasprintf("\nclass %s(", name);
    bool does = *name && strstr(text, head);

    free(head);
    return does;
}

/* A class Model may be the base of the one that the file is named after. */
static bool kernelbook_has_its_own(const char *path, const char *text)
{
    char *stem = path_stem(path);
    const char *name = kernelbook_name(stem);
    bool has = name > stem && strcmp(name, "Model") && kernelbook_defines(text, name) && strstr(text, "return [[");

    free(stem);
    return has;
}

/* format's 'is': a Python file with its own inputs. */
static bool kernelbook_is(const char *path)
{
    struct buf text;
    bool is = path_ends(path, ".py") && format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "\ndef get_inputs(") && strstr(text.p, "\ndef get_init_inputs(") &&
             (strstr(text.p, "\nclass Model(") ? kernelbook_has_its_own(path, text.p)
                                               : strstr(text.p, "\nclass ") != NULL);
        buf_free(&text);
    }
    return is;
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

/* ---- words ---- */

static bool kernelbook_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next place of the whole word; NULL: none. */
static const char *kernelbook_word(const char *text, const char *from, const char *word)
{
    size_t n = strlen(word);

    while ((from = strstr(from, word))) {
        if (!(from > text && kernelbook_in_word(from[-1])) && !kernelbook_in_word(from[n]))
            return from;
        from += n;
    }
    return NULL;
}

/* The text with every whole word of one kind replaced. */
static void kernelbook_rename(struct buf *out, const char *text, const char *word, const char *by)
{
    const char *from = text, *at;

    while ((at = kernelbook_word(text, from, word))) {
        buf_add(out, from, (size_t)(at - from));
        buf_adds(out, by);
        from = at + strlen(word);
    }
    buf_adds(out, from);
}

/* ---- imports ---- */

static bool kernelbook_is_import(const char *line, size_t n)
{
    return ((n > 7 && !strncmp(line, "import ", 7)) || (n > 5 && !strncmp(line, "from ", 5))) && line[n - 1] != '\\' &&
           !memchr(line, '(', n);
}

/* The names that the line binds, each with a comma behind it. */
static void kernelbook_put_names(struct buf *out, const char *line, size_t n)
{
    char *text = xstrndup(line, n), *rest = NULL, *item, *as;
    bool from = !strncmp(line, "from ", 5);
    char *names = from ? strstr(text, " import ") : text;

    for (item = names ? strtok_r(names + (from ? 8 : 7), ",", &rest) : NULL; item; item = strtok_r(NULL, ",", &rest)) {
        as = strstr(item, " as ");
        item = as ? as + 4 : item;
        item += strspn(item, " ");
        buf_addf(out, "%.*s,", (int)strcspn(item, from || as ? " \r" : ". \r"), item);
    }
    free(text);
}

/* True where one of the names, joined by commas, is used. */
static bool kernelbook_uses(const char *used, const char *names)
{
    bool uses = false;

    for (const char *p = names; *p && !uses; p += strcspn(p, ",") + 1) {
        char *name = xstrndup(p, strcspn(p, ","));
        uses = kernelbook_word(used, used, name) != NULL;
        free(name);
    }
    return uses;
}

/* Is the module one that is always there? */
static bool kernelbook_is_there(const char *line)
{
    static const char *const known[] = {
        "torch", "numpy", "__future__", "abc", "argparse", "collections", "contextlib", "copy", "dataclasses", "enum",
        "functools", "hashlib", "inspect", "io", "itertools", "json", "logging", "math", "numbers", "operator", "os",
        "pickle", "random", "re", "string", "sys", "time", "types", "typing", "uuid", "warnings", NULL};
    const char *module = line + (strncmp(line, "from ", 5) ? 7 : 5);
    bool there = false;

    for (const char *const *k = known; *k && !there; k++)
        there = !strncmp(module, *k, strlen(*k)) && !kernelbook_in_word(module[strlen(*k)]);
    return there;
}

/* Appends an import, guarded where its module may be missing; an unused one is left out. */
static void kernelbook_put_import(struct buf *out, const char *line, size_t n, const char *used)
{
    struct buf names;

    buf_init(&names, BUF_MAX_TEXT);
    kernelbook_put_names(&names, line, n);
    if (kernelbook_is_there(line)) {
        buf_addf(out, "%.*s\n", (int)n, line);
    } else if (memchr(line, '*', n)) {
        buf_addf(out, "try:\n    %.*s\nexcept ImportError:\n    pass\n", (int)n, line);
    } else if (names.n && kernelbook_uses(used, names.p)) {
        buf_addf(out, "try:\n    %.*s\nexcept ImportError:\n    ", (int)n, line);
        for (const char *p = names.p; *p; p += strcspn(p, ",") + 1)
            buf_addf(out, "%.*s = ", (int)strcspn(p, ","), p);
        buf_adds(out, "None\n");
    }
    buf_free(&names);
}

/* What is left of the text without its top-level imports: where names are used. */
static void kernelbook_put_body(struct buf *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        if (!kernelbook_is_import(line, n))
            buf_add(out, line, n + (line[n] == '\n'));
        line += n + (line[n] == '\n');
    }
}

/* Appends a program with its imports guarded. */
static void kernelbook_put_text(struct buf *out, const char *text)
{
    struct buf body;

    buf_init(&body, BUF_MAX_TEXT);
    kernelbook_put_body(&body, text);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        bool import = kernelbook_is_import(line, n);
        if (import && !strncmp(line, "from " KERNELBOOK_HELPERS " ", sizeof "from " KERNELBOOK_HELPERS))
            buf_adds(out, kernelbook_mock);
        else if (import)
            kernelbook_put_import(out, line, n, body.p ? body.p : "");
        else
            buf_add(out, line, n + (line[n] == '\n'));
        line += n + (line[n] == '\n');
    }
    buf_free(&body);
}

/* Appends the program with its class renamed to Model. */
static void kernelbook_put(struct buf *out, const char *text, const char *name)
{
    struct buf renamed;

    buf_init(&renamed, BUF_MAX_TEXT);
    kernelbook_rename(&renamed, text, "Model", "ModelOfKernelBook");
    kernelbook_put_text(out, kernelbook_defines(text, "Model") && strcmp(name, "Model") ? renamed.p : text);
    buf_free(&renamed);
    buf_addf(out, "\n\n\nclass Model(%s):\n    pass\n", name);
}

/* format's 'read': a module of PyTorch with its own inputs. */
static int kernelbook_read(const char *path, int most, struct format_task *t, struct err *e)
{
    char *stem = path_stem(path), *last = NULL;
    const char *name = kernelbook_name(stem);
    struct buf text = {0};
    int rc = format_text(path, &text, e);

    (void)most;
    snprintf(t->name, sizeof t->name, "%.100s", stem);
    if (rc == 0 && !kernelbook_defines(text.p, name))
        name = last = kernelbook_last_module(text.p);
    if (rc == 0 && !*name)
        rc = err_set(e, ERR_INPUT, "no class of it is a Module");
    if (rc == 0)
        kernelbook_put(&t->code, text.p, name);
    if (text.p)
        buf_free(&text);
    free(last);
    free(stem);
    return rc;
}

const struct format format_kernelbook = {"kernelbook", "KernelBook's modules: NUMBER_NAME.py, the class of that name",
                                         kernelbook_is, kernelbook_read};
