/* bundle.c - see bundle.h. Files are gathered, the main one is found or written, the others follow it as comments. */
#include "task/bundle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/archive.h"
#include "task/extract.h"

#define BUNDLE_MAX_DEPTH 8
#define BUNDLE_TASK_FILE "judged_task.py"

/* ---- gathering ---- */

/* True for a part of a path of letters, digits and ._+- that does not begin with a dot. */
static bool bundle_part_is_plain(const char *s, size_t n)
{
    bool plain = n > 0 && s[0] != '.';

    for (size_t i = 0; i < n; i++)
        plain = plain && (isalnum((unsigned char)s[i]) || strchr("._+-", s[i]));
    return plain;
}

/* Is the path relative, short and without "..", hidden or odd names? Then it cannot leave the folder. */
static bool bundle_path_is_plain(const char *path)
{
    const char *p = path, *slash;
    int depth = 0;

    do {
        size_t n;
        slash = strchr(p, '/');
        n = slash ? (size_t)(slash - p) : strlen(p);
        if (!bundle_part_is_plain(p, n) || ++depth > BUNDLE_MAX_DEPTH)
            return false;
        p = slash ? slash + 1 : p + n;
    } while (slash);
    return strlen(path) < 200;
}

static bool bundle_has(const struct bundle *b, const char *path)
{
    for (int i = 0; i < b->n; i++)
        if (!strcmp(b->file[i].path, path))
            return true;
    return false;
}

int bundle_add(struct bundle *b, const char *path, const char *text, size_t n, struct err *e)
{
    size_t bad = utf8_bad_at(text, n);

    if (!bundle_path_is_plain(path))
        return err_set(e, ERR_INPUT, "'%.200s' is no path for a file of an answer; use plain relative ones such as "
                                     "'src/kernel.cu'", path);
    if (bundle_has(b, path))
        return err_set(e, ERR_INPUT, "the answer has two files '%s'", path);
    if (bad < n || memchr(text, 0, n))
        return err_set(e, ERR_INPUT, "'%s' is not UTF-8 text; an answer is sources alone", path);
    if (b->n == BUNDLE_MAX_FILES || n > BUNDLE_MAX_BYTES - b->bytes)
        return err_set(e, ERR_INPUT, "the answer has more than %d files or %zu bytes", BUNDLE_MAX_FILES,
                       BUNDLE_MAX_BYTES);
    b->file[b->n++] = (struct bundle_file){xstrdup(path), xstrndup(text, n), n};
    b->bytes += n;
    return 0;
}

/* no error if it is not there */
static void bundle_drop(struct bundle *b, const char *path)
{
    for (int i = 0; i < b->n; i++) {
        if (strcmp(b->file[i].path, path))
            continue;
        free(b->file[i].path);
        free(b->file[i].text);
        b->bytes -= b->file[i].n;
        b->file[i] = b->file[--b->n];
        return;
    }
}

void bundle_free(struct bundle *b)
{
    for (int i = 0; i < b->n; i++) {
        free(b->file[i].path);
        free(b->file[i].text);
    }
    *b = (struct bundle){0};
}

/* ---- kinds of files ---- */

static bool bundle_has_suffix(const char *path, const char *const *suffixes)
{
    const char *dot = strrchr(path, '.');

    for (; dot && *suffixes; suffixes++)
        if (!strcmp(dot, *suffixes))
            return true;
    return false;
}

static bool bundle_is_python(const char *path)
{
    return bundle_has_suffix(path, (const char *const[]){".py", NULL});
}

static bool bundle_is_source(const char *path)
{
    return bundle_has_suffix(path, (const char *const[]){".cu", ".mu", ".cpp", ".cc", ".cxx", NULL});
}

/* What an answer may bring; the rest of a folder (results, caches, pictures) is left where it is. */
static bool bundle_is_wanted(const char *path)
{
    return bundle_is_python(path) || bundle_is_source(path) ||
           bundle_has_suffix(path, (const char *const[]){".cuh", ".muh", ".h", ".hpp", ".hh", ".inl", ".inc", ".json",
                                                         ".txt", NULL});
}

/* ---- the main file ---- */

/* 0 for no name of a main file; else the larger the better. */
static int bundle_rank(const char *path)
{
    static const char *const names[] = {"kernel", "submission", "solution", "main", "candidate"};
    char *stem = path_stem(path);
    int rank = 0;

    for (int i = 0; i < 5 && !strchr(path, '/'); i++)
        if (!strcmp(stem, names[i]))
            rank = i + 1;
    free(stem);
    return rank;
}

/* *ret: its index, -1: no file is Python. */
static int bundle_find_main(const struct bundle *b, int *ret, struct err *e)
{
    int best = -1, n = 0, python = 0;

    for (int i = 0; i < b->n; i++) {
        if (!bundle_is_python(b->file[i].path))
            continue;
        python++;
        if (!extract_defines_program(b->file[i].text, b->file[i].n))
            continue;
        n++;
        if (best < 0 || bundle_rank(b->file[i].path) > bundle_rank(b->file[best].path))
            best = i;
    }
    if (python && best < 0)
        return err_set(e, ERR_INPUT, "none of the answer's Python files defines ModelNew or custom_kernel");
    if (n > 1 && bundle_rank(b->file[best].path) == 0)
        return err_set(e, ERR_INPUT, "%d of the answer's files define ModelNew; name the one that counts candidate.py",
                       n);
    *ret = best;
    return 0;
}

static const char bundle_loader[] =
    "import inspect\n"
    "import os\n"
    "\n"
    "import torch\n"
    "\n"
    "import judged_task\n"
    "\n"
    "here = os.path.dirname(os.path.abspath(__file__))\n"
    "try:\n"
    "    kernels = load(name=\"kernels\", sources=[os.path.join(here, name) for name in SOURCES])\n"
    "except ImportError as e:\n"
    "    if \"PyInit\" not in str(e):\n"
    "        raise\n"
    "    raise ImportError(\"the sources export nothing: define a function 'forward' that takes torch::Tensor, \"\n"
    "                      \"or name yours in a PYBIND11_MODULE\") from None\n"
    "exports = [f for f in dir(kernels) if not f.startswith(\"_\")]\n"
    "named = [f for f in (\"forward\", \"backward\", \"solve\") if f in exports] or exports\n"
    "if len(exports) != 1 and named == exports:\n"
    "    raise AttributeError(f\"the sources export no function 'forward'; they have {exports}\")\n"
    "function = getattr(kernels, named[0])\n"
    "takes_fn = \"fn\" in inspect.signature(judged_task.Model.forward).parameters\n"
    "writes = getattr(judged_task, \"solve_writes\", {})\n"
    "if named[0] == \"solve\" and not writes:\n"
    "    raise AttributeError(\"the sources export 'solve', and the task says nothing of what it writes\")\n"
    "\n"
    "\n"
    "class ModelNew(judged_task.Model):\n"
    "    def forward(self, *args):\n"
    "        if takes_fn:\n"
    "            return super().forward(*args, fn=function)\n"
    "        if not writes:\n"
    "            return function(*args, *self.parameters(), *self.buffers())\n"
    "        args = list(args)\n"
    "        for i, how in writes.items():\n"
    "            args[i] = torch.zeros_like(args[i]) if how == \"out\" else args[i].clone()\n"
    "        function(*args)\n"
    "        return args[next(iter(writes))] if len(writes) == 1 else tuple(args[i] for i in writes)\n";

static const char bundle_loader_mark[] = "# Written by the judge: the answer holds no Python.\n";

bool bundle_is_loaded(const char *program)
{
    return !strncmp(program, bundle_loader_mark, sizeof bundle_loader_mark - 1);
}

/* Appends Python that compiles the bundle's sources, as the answer has none. */
static void bundle_write_loader(const struct bundle *b, struct buf *out)
{
    bool musa = false;

    for (int i = 0; i < b->n; i++)
        musa = musa || bundle_has_suffix(b->file[i].path, (const char *const[]){".mu", NULL});
    buf_addf(out, "%sfrom %s import load\n\nSOURCES = [", bundle_loader_mark,
             musa ? "torch_musa.utils.musa_extension" : "torch.utils.cpp_extension");
    for (int i = 0, n = 0; i < b->n; i++)
        if (bundle_is_source(b->file[i].path))
            buf_addf(out, "%s\"%s\"", n++ ? ", " : "", b->file[i].path);
    buf_adds(out, "]\n");
    buf_adds(out, bundle_loader);
}

/* ---- the text ---- */

/* A carriage return that stands alone would end the comment for Python. */
static bool bundle_breaks_comment(const char *line, size_t n)
{
    const char *at = memchr(line, '\r', n);

    return at && at + 1 < line + n;
}

/* Appends a line as a Python comment that bundle_comment's reader turns back into it. */
static void bundle_comment_line(struct buf *out, const char *line, size_t n)
{
    if (!bundle_breaks_comment(line, n)) {
        buf_adds(out, "#|");
        buf_add(out, line, n);
    } else {
        buf_adds(out, "#%");
        for (size_t i = 0; i < n; i++)
            if (line[i] == '\r' || line[i] == '%')
                buf_addf(out, "%%%02X", (unsigned)line[i]);
            else
                buf_addc(out, line[i]);
    }
    buf_addc(out, '\n');
}

/* Appends a file as comments below its "#@file:" line. */
static void bundle_comment_file(struct buf *out, const char *path, const char *text, size_t n)
{
    const char *end = text + n, *nl;

    buf_addf(out, "#@file: %s\n", path);
    for (; text < end; text = nl + 1) {
        nl = memchr(text, '\n', (size_t)(end - text));
        if (!nl)
            nl = end;
        bundle_comment_line(out, text, (size_t)(nl - text));
    }
}

/* True where a source exports functions by itself. */
static bool bundle_names_exports(const struct bundle *b)
{
    for (int i = 0; i < b->n; i++)
        if (strstr(b->file[i].text, "PYBIND11_MODULE") || strstr(b->file[i].text, "TORCH_LIBRARY"))
            return true;
    return false;
}

/* Sources that export nothing: the first one that defines a function 'forward', or 'solve', exports it. */
static const char bundle_export[] = "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &forward); }\n";

/* The parameters of a function, from behind its bracket on, one after the other. */
static char *bundle_next_parameter(const char **at)
{
    size_t n = strcspn(*at, ",)");
    char *one = xstrndup(*at, n);

    *at += n + ((*at)[n] == ',');
    return one;
}

/* LeetGPU's 'void solve(const float *a, .., int n)': a function of tensors and numbers that calls it, exported.
 * Pointers are cast to the type that solve has. */
static void bundle_put_solve(const char *text, struct buf *out)
{
    const char *at = strchr(strstr(text, "void solve("), '(') + 1;
    struct buf takes, gives;

    buf_init(&takes, BUNDLE_MAX_BYTES);
    buf_init(&gives, BUNDLE_MAX_BYTES);
    for (int i = 0; *at && *at != ')'; i++) {
        char *one = bundle_next_parameter(&at), *star = strrchr(one, '*');
        bool real = strstr(one, "float") || strstr(one, "double");

        buf_addf(&takes, "%s%s a%d", i ? ", " : "", star ? "torch::Tensor" : real ? "double" : "int64_t", i);
        if (star)
            buf_addf(&gives, "%s(%.*s)a%d.data_ptr()", i ? ", " : "", (int)(star + 1 - one), one, i);
        else
            buf_addf(&gives, "%sa%d", i ? ", " : "", i);
        free(one);
    }
    buf_addf(out, "#include <torch/extension.h>\n#line 1\n%s\nstatic void solve_of_tensors(%s) { solve(%s); }\n"
             "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"solve\", &solve_of_tensors); }\n", text,
             takes.p ? takes.p : "", gives.p ? gives.p : "");
    buf_free(&takes);
    buf_free(&gives);
}

/* LeetGPU's platform has a header beside the answer, which declares solve. The definition says the same. */
static void bundle_comment_solve_h(const struct bundle *b, const struct bundle_file *f, struct buf *out)
{
    static const char text[] = "#pragma once\n";
    const char *slash = strrchr(f->path, '/');
    char *path = xasprintf("%.*ssolve.h", slash ? (int)(slash + 1 - f->path) : 0, f->path);

    if (strstr(f->text, "\"solve.h\"") && strstr(f->text, "void solve(") && !bundle_has(b, path))
        bundle_comment_file(out, path, text, sizeof text - 1);
    free(path);
}

/* Appends a source as comments, with an export of its function added. */
static void bundle_comment_exported(const struct bundle_file *f, struct buf *out)
{
    struct buf text;

    buf_init(&text, BUNDLE_MAX_BYTES);
    if (strstr(f->text, " forward("))
        buf_addf(&text, "%s%s", f->text, bundle_export);
    else
        bundle_put_solve(f->text, &text);
    bundle_comment_file(out, f->path, text.p, text.n);
    buf_free(&text);
}

/* Appends all files but the top one as comments; one that exports the function is marked. */
static void bundle_comment_others(const struct bundle *b, int top, struct buf *out)
{
    bool exports = top >= 0 || bundle_names_exports(b);

    for (int i = 0; i < b->n; i++) {
        const struct bundle_file *f = &b->file[i];
        if (i == top)
            continue;
        bool named = strstr(f->text, " forward(") || strstr(f->text, "void solve(");
        if (!exports && named && bundle_is_source(f->path)) {
            bundle_comment_exported(f, out);
            bundle_comment_solve_h(b, f, out);
            exports = true;
        } else {
            bundle_comment_file(out, f->path, f->text, f->n);
        }
    }
}

/* Appends the main program; what follows begins on a new line. */
static void bundle_start_main(const char *code, size_t n, bool followed, struct buf *out)
{
    buf_add(out, code, n);
    if (followed && out->n && out->p[out->n - 1] != '\n')
        buf_addc(out, '\n');
}

/* As bundle_text, where the main file is known and is none of them. */
static void bundle_add_main(const struct bundle *b, const char *code, struct buf *out)
{
    bundle_start_main(code, strlen(code), b->n > 0, out);
    for (int i = 0; i < b->n; i++)
        bundle_comment_file(out, b->file[i].path, b->file[i].text, b->file[i].n);
}

int bundle_text(const struct bundle *b, const char *task_code, struct buf *out, struct err *e)
{
    bool sources = false;
    int top = -1;

    for (int i = 0; i < b->n; i++)
        sources = sources || bundle_is_source(b->file[i].path);
    if (bundle_find_main(b, &top, e) < 0)
        return -1;
    if (top < 0 && (!sources || !task_code))
        return err_set(e, ERR_INPUT, "the answer holds neither Python nor CUDA sources");
    if (top >= 0) {
        bundle_start_main(b->file[top].text, b->file[top].n, b->n > 1, out);
    } else {
        bundle_write_loader(b, out);
        bundle_comment_file(out, BUNDLE_TASK_FILE, task_code, strlen(task_code));
    }
    bundle_comment_others(b, top, out);
    return out->cut ? err_set(e, ERR_INPUT, "the answer is larger than %zu bytes", out->max) : 0;
}

/* ---- where they come from ---- */

bool bundle_is_one(const char *path)
{
    return archive_is_one(path) || bundle_is_source(path) || file_is_dir(path);
}

char *bundle_place(const char *candidate, const char *file)
{
    if (bundle_is_source(candidate))
        return xstrdup(candidate);
    return file_is_dir(candidate) ? path_join(candidate, file) : NULL;
}

/* Reads a file and adds it under 'path'. */
static int bundle_add_file(struct bundle *b, const char *from, const char *path, struct err *e)
{
    struct buf text;
    int rc;

    buf_init(&text, BUNDLE_MAX_BYTES);
    rc = file_read(from, &text, e);
    if (rc == 0)
        rc = bundle_add(b, path, text.p, text.n, e);
    buf_free(&text);
    return rc;
}

/* under: "" or "FOLDER/". Links are not followed. */
static int bundle_add_folder(struct bundle *b, const char *folder, const char *under, int depth, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *from = path_join(folder, names[i]), *path = xasprintf("%s%s", under, names[i]);
        struct stat st;
        bool there = lstat(from, &st) == 0;

        if (there && S_ISLNK(st.st_mode) && bundle_is_wanted(names[i])) {
            rc = err_set(e, ERR_INPUT, "'%s' is a link; an answer is plain files", from);
        } else if (there && S_ISREG(st.st_mode) && bundle_is_wanted(names[i])) {
            rc = bundle_add_file(b, from, path, e);
        } else if (there && S_ISDIR(st.st_mode) && depth < BUNDLE_MAX_DEPTH && strcmp(names[i], "__pycache__")) {
            char *deeper = xasprintf("%s/", path);
            rc = bundle_add_folder(b, from, deeper, depth + 1, e);
            free(deeper);
        }
        free(from);
        free(path);
    }
    names_free(names, n);
    return rc;
}

/* A callback of archives: adds a file that an answer may have; others are passed over. */
static int bundle_take_entry(const char *path, const char *data, size_t n, void *bundle, struct err *e)
{
    if (!strncmp(path, "./", 2))
        path += 2;
    if (!bundle_path_is_plain(path) || bundle_is_wanted(path))
        return bundle_add(bundle, path, data, n, e);
    return 0;
}

/* A source that stands alone: its name is its reader's own, so letters that no answer may use become '_'. */
static int bundle_add_alone(struct bundle *b, const char *path, struct err *e)
{
    char *name = xstrdup(path_name(path));
    int rc;

    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._+-", *p))
            *p = '_';
    rc = bundle_add_file(b, path, name, e);
    free(name);
    return rc;
}

/* Headers that lie beside a source and that it, or one of them, includes by a plain path. Links are not followed. */
static int bundle_add_included(struct bundle *b, const char *path, struct err *e)
{
    char *folder = path_folder(path), name[200];
    int rc = 0;

    for (int i = 0; i < b->n && rc == 0; i++) /* b->n grows */
        for (const char *p = b->file[i].text; rc == 0 && (p = strstr(p, "#include \"")); p++) {
            char *from;
            struct stat st;

            if (sscanf(p, "#include \"%199[^\"\n]", name) != 1 || !bundle_path_is_plain(name) ||
                !bundle_is_wanted(name) || bundle_is_source(name) || bundle_has(b, name))
                continue;
            from = path_join(folder, name);
            if (lstat(from, &st) == 0 && S_ISREG(st.st_mode))
                rc = bundle_add_file(b, from, name, e);
            free(from);
        }
    free(folder);
    return rc;
}

int bundle_read(const char *path, const char *task_code, struct buf *out, struct err *e)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    int rc;

    if (file_is_dir(path))
        rc = bundle_add_folder(b, path, "", 1, e);
    else if (archive_is_one(path))
        rc = archive_each(path, BUNDLE_MAX_BYTES, bundle_take_entry, b, e);
    else
        rc = bundle_add_alone(b, path, e) < 0 ? -1 : bundle_add_included(b, path, e);
    if (rc == 0)
        rc = bundle_text(b, task_code, out, e);
    if (rc < 0 && e && e->kind == ERR_INPUT)
        err_prefix(e, "'%s'", path);
    bundle_free(b);
    free(b);
    return rc;
}

void bundle_headers(const char *path, char ***ret, size_t *ret_n)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    char *folder = path_folder(path), **names;

    if (bundle_is_source(path) && file_exists(path) && bundle_add_alone(b, path, NULL) == 0)
        bundle_add_included(b, path, NULL);
    names = xcalloc((size_t)b->n + 1, sizeof *names);
    *ret_n = 0;
    for (int i = 1; i < b->n; i++) /* the first is the source */
        names[(*ret_n)++] = path_join(folder, b->file[i].path);
    *ret = names;
    bundle_free(b);
    free(b), free(folder);
}

struct bundle_fences {
    struct bundle *b;
    json_t *left_out;
};

/* A file that cannot be taken is left out, and said. A later one of its name replaces it. */
static void bundle_take_fence(const char *path, const char *body, size_t n, void *ctx)
{
    struct bundle_fences *f = ctx;
    struct err e = ERR_INIT;

    if (!bundle_is_wanted(path))
        return;
    bundle_drop(f->b, path);
    if (bundle_add(f->b, path, body, n, &e) < 0 && f->left_out)
        json_array_append_new(f->left_out, json_utf8(e.msg, strlen(e.msg)));
}

bool bundle_of_response(const char *text, size_t n, const struct extraction *x, const char *code, const char *task_code,
                        json_t *left_out, struct buf *out)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    struct bundle_fences f = {b, left_out};
    char *own = code || !x->defines_modelnew ? NULL : xstrndup(text + x->offset, x->n);
    bool found = code || own;
    struct extraction all = *x;
    struct err e = ERR_INIT;

    if (!found)
        all.offset = n; /* the fence that was chosen is a file as the others are */
    if (x->n_fences)
        extract_files(text, n, &all, bundle_take_fence, &f);
    if (found)
        bundle_add_main(b, code ? code : own, out);
    else if (b->n)
        found = bundle_text(b, task_code, out, &e) == 0;
    free(own);
    bundle_free(b);
    free(b);
    return found;
}

int bundle_of_json(const json_t *files, const char *task_code, struct buf *out, struct err *e)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    const char *path;
    json_t *text;
    int rc = json_is_object(files) ? 0 : err_set(e, ERR_INPUT, "'files' is an object of names and texts");

    json_object_foreach((json_t *)files, path, text)
        if (rc == 0)
            rc = json_is_string(text) ? bundle_add(b, path, json_string_value(text), json_string_length(text), e)
               : err_set(e, ERR_INPUT, "file '%.200s' is no text", path);
    if (rc == 0)
        rc = bundle_text(b, task_code, out, e);
    bundle_free(b);
    free(b);
    return rc;
}
