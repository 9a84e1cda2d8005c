/* ncu.c - see ncu.h. Reading order: ncu_records at the end; fields, lines, kernels, what follows from figures. */
#include "synth/ncu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "task/prompt.h"

#define MAX_COLUMNS 64
#define MAX_CSV ((size_t)64 << 20)

enum ncu_column { C_ID, C_KERNEL, C_BLOCK, C_GRID, C_METRIC, C_UNIT, C_VALUE, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {"ID",          "Kernel Name", "Block Size",  "Grid Size",
                                                    "Metric Name", "Metric Unit", "Metric Value"};

/* ---- CSV ---- */

/* Splits a line in place; "" inside quotes is a quote. Returns the number of fields, -1: a quote is left open. */
static int ncu_split(char *p, char *field[MAX_COLUMNS])
{
    int n = 0;

    while (n < MAX_COLUMNS) {
        char *to = p;
        bool quoted = *p == '"';
        field[n++] = to;
        for (p += quoted; *p && (quoted || *p != ','); p++) {
            if (quoted && *p == '"' && p[1] != '"')
                break;
            p += quoted && *p == '"';
            *to++ = *p;
        }
        if (quoted && *p++ != '"')
            return -1;
        if (*p && *p != ',')
            return -1;
        quoted = !*p;
        *to = 0;
        if (quoted)
            return n;
        p++;
    }
    return n;
}

struct ncu_reader {
    const char *what;
    int line, at[N_COLUMNS], columns; /* columns 0: the header has not come yet */
    char *last;                       /* ID of the last kernel */
    json_t *kernels;
};

/* Finds the needed columns in the CSV's header. ERR_INPUT names a missing one. */
static int ncu_take_header(struct ncu_reader *r, char *const field[], int n, struct err *e)
{
    for (int c = 0; c < N_COLUMNS; c++) {
        r->at[c] = -1;
        for (int i = 0; i < n; i++)
            if (!strcmp(field[i], column_names[c]))
                r->at[c] = i;
        if (r->at[c] < 0)
            return err_set(e, ERR_INPUT, "'%s' line %d has no column '%s'; write it with "
                           "'musacoder replay --profile' or 'ncu --csv --page details'", r->what, r->line,
                           column_names[c]);
    }
    r->columns = n;
    return 0;
}

/* Adds one figure to its kernel; a new id begins a new kernel. */
static void ncu_take_row(struct ncu_reader *r, char *const field[])
{
    const char *id = field[r->at[C_ID]], *metric = field[r->at[C_METRIC]];
    json_t *k = json_array_get(r->kernels, json_array_size(r->kernels) - 1);

    if (!r->last || strcmp(r->last, id)) {
        free(r->last);
        r->last = xstrdup(id);
        k = json_pack("{s:o, s:o, s:o, s:[]}", "kernel",
                      json_utf8(field[r->at[C_KERNEL]], strlen(field[r->at[C_KERNEL]])), "block",
                      json_utf8(field[r->at[C_BLOCK]], strlen(field[r->at[C_BLOCK]])), "grid",
                      json_utf8(field[r->at[C_GRID]], strlen(field[r->at[C_GRID]])), "metrics");
        json_array_append_new(r->kernels, k);
    }
    if (*metric) /* rows of rules have none */
        json_array_append_new(json_object_get(k, "metrics"),
                              json_pack("{s:s, s:s, s:s}", "name", metric, "unit", field[r->at[C_UNIT]], "value",
                                        field[r->at[C_VALUE]]));
}

/* Takes one line of the CSV: header, figure, or what the program printed. */
static int ncu_take_line(struct ncu_reader *r, char *line, struct err *e)
{
    char *field[MAX_COLUMNS];
    int n;

    if (!*line || !strncmp(line, "==", 2))
        return 0;
    if (!r->columns && *line != '"')
        return 0; /* what the program itself printed */
    n = ncu_split(line, field);
    if (n < 0 || (r->columns && n != r->columns))
        return err_set(e, ERR_INPUT, "'%s' line %d has %d fields where the header has %d; was it cut?", r->what,
                       r->line, n < 0 ? 0 : n, r->columns);
    if (!r->columns)
        return ncu_take_header(r, field, n, e);
    return ncu_take_row(r, field), 0;
}

json_t *ncu_parse(const char *text, size_t n, const char *what, struct err *e)
{
    struct ncu_reader r = {.what = what, .kernels = json_array()};
    char *copy = xstrndup(text, n), *save = NULL;
    int rc = 0;

    for (char *line = copy; line && !rc; line = save) {
        save = strchr(line, '\n');
        if (save)
            *save++ = 0;
        line[strcspn(line, "\r")] = 0;
        r.line++;
        rc = ncu_take_line(&r, line, e);
    }
    if (!rc && !json_array_size(r.kernels))
        rc = err_set(e, ERR_INPUT, "'%s' has no kernel; write it with 'musacoder replay --profile'", what);
    free(copy), free(r.last);
    if (!rc)
        return r.kernels;
    json_decref(r.kernels);
    return NULL;
}

/* ---- figures ---- */

/* The kernel's metric of that name (and unit, unless NULL); NULL: none. */
static const json_t *ncu_find(const json_t *kernel, const char *name, const char *unit)
{
    const json_t *m;
    size_t i;

    json_array_foreach(json_object_get(kernel, "metrics"), i, m)
        if (!strcmp(json_str(m, "name", ""), name) && (!unit || !strcmp(json_str(m, "unit", ""), unit)))
            return m;
    return NULL;
}

double ncu_metric(const json_t *kernel, const char *name, const char *unit)
{
    const char *text = json_str(ncu_find(kernel, name, unit), "value", "");
    char plain[64], *end;
    size_t n = 0;
    double v;

    for (; *text && n < sizeof plain - 1; text++)
        if (*text != ',')
            plain[n++] = *text;
    plain[n] = 0;
    v = strtod(plain, &end);
    return end == plain || *end ? NAN : v;
}

const char *ncu_bound(const json_t *kernel)
{
    double memory = ncu_metric(kernel, "Memory Throughput", "%");
    double compute = ncu_metric(kernel, "Compute (SM) Throughput", "%");

    if (isnan(memory) || isnan(compute))
        return "unknown";
    if (memory < NCU_BUSY && compute < NCU_BUSY)
        return "latency";
    return memory >= compute ? "memory" : "compute";
}

/* Appends fmt with its '@' replaced by the metric's value; nothing without that metric. */
static void ncu_say(struct buf *b, const json_t *kernel, const char *name, const char *unit, const char *fmt)
{
    const char *value = json_str(ncu_find(kernel, name, unit), "value", NULL);

    for (; value && *fmt; fmt++)
        if (*fmt == '@')
            buf_adds(b, value);
        else
            buf_addc(b, *fmt);
}

/* Appends why the device waits: a small grid, or too few warps. */
static void ncu_say_waiting(struct buf *b, const json_t *k)
{
    double waves = ncu_metric(k, "Waves Per SM", NULL), most = ncu_metric(k, "Theoretical Occupancy", "%");
    double held = ncu_metric(k, "Achieved Occupancy", "%");

    if (waves < 1) {
        ncu_say(b, k, "Waves Per SM", NULL, "The grid is small: @ waves of blocks for each multiprocessor. ");
        buf_adds(b, "More blocks are needed: split the work finer, or let several threads share one output.\n");
    } else if (most < 50) {
        ncu_say(b, k, "Theoretical Occupancy", "%", "Only @ % of the warps fit. ");
        ncu_say(b, k, "Registers Per Thread", NULL, "A thread holds @ registers. ");
        buf_adds(b, "Fewer registers or less shared memory for each block let more warps hide the waiting.\n");
    } else if (held < 0.7 * most) {
        ncu_say(b, k, "Achieved Occupancy", "%", "@ % of the warps are there on average, ");
        ncu_say(b, k, "Theoretical Occupancy", "%", "of @ % that fit. ");
        buf_adds(b, "Blocks end at different times or are too short: give each block as much work as the others.\n");
    } else {
        buf_adds(b, "Enough warps are there, and each waits: load earlier, load wider, and have several independent "
                    "loads on the way.\n");
    }
}

/* What limits the kernel, by which figures, and what helps. Says no number that the CSV lacks. Caller frees. */
static char *ncu_answer(const json_t *k)
{
    const char *bound = ncu_bound(k);
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (!strcmp(bound, "unknown")) {
        buf_adds(&b, "The figures do not tell: throughputs of memory and multiprocessors are missing.\n");
        return buf_detach(&b);
    }
    buf_addf(&b, "It is bound by %s. ", !strcmp(bound, "latency") ? "waiting" : bound);
    ncu_say(&b, k, "Memory Throughput", "%", "Memory reaches @ % of its peak, ");
    ncu_say(&b, k, "Compute (SM) Throughput", "%", "the multiprocessors @ %. ");
    if (!strcmp(bound, "latency")) {
        ncu_say_waiting(&b, k);
    } else if (!strcmp(bound, "memory")) {
        ncu_say(&b, k, "L2 Hit Rate", "%", "@ % of what reaches L2 is found there. ");
        buf_adds(&b, "Only fewer bytes make it faster: fuse neighbouring kernels, keep what is read twice in shared "
                     "memory or registers, use a narrower type.\n");
    } else {
        buf_adds(&b, "Only less arithmetic for each result, or units that do more of it at once, make it faster.\n");
    }
    return buf_detach(&b);
}

/* The figures as a table in Markdown; caller frees. */
static char *ncu_table(const json_t *kernel)
{
    const json_t *m;
    struct buf b;
    size_t i;

    buf_init(&b, BUF_MAX_TEXT);
    buf_addf(&b, "Kernel %s, grid %s, block %s\n\n| metric | value | unit |\n|---|---|---|\n",
             json_str(kernel, "kernel", ""), json_str(kernel, "grid", ""), json_str(kernel, "block", ""));
    json_array_foreach(json_object_get(kernel, "metrics"), i, m)
        buf_addf(&b, "| %s | %s | %s |\n", json_str(m, "name", ""), json_str(m, "value", ""), json_str(m, "unit", ""));
    return buf_detach(&b);
}

/* ---- records ---- */

/* task: its text, or NULL where only the program is known. */
static json_t *ncu_record(const char *name, size_t no, const char *task, const char *program, const json_t *kernel)
{
    char *table = ncu_table(kernel), *answer = ncu_answer(kernel), *id = xasprintf("profile-%s-%zu", name, no);
    char *question = xasprintf("What limits this kernel, and what would make it faster?\n\n```python\n%s```\n\n%s",
                               program, table);
    json_t *m = prompt_start(question), *v;

    prompt_say(m, "assistant", answer);
    v = json_pack("{s:s, s:s, s:o, s:o, s:{s:s, s:s}, s:n, s:{s:s, s:s, s:s}, s:n, s:s}", "id", id, "kind", "profile",
                  "messages", m, "task", task ? json_pack("{s:s, s:s}", "name", name, "code", task) : json_null(),
                  "kernel", "lang", "cuda", "code", program, "verdict", "provenance",
                  "generator", "ncu", "bound", ncu_bound(kernel), "kernel", json_str(kernel, "kernel", ""),
                  "difficulty", "split", "train");
    free(table), free(answer), free(id), free(question);
    return v;
}

static void ncu_count_bound(struct ncu_stats *n, const char *bound)
{
    n->kernels++;
    n->memory += !strcmp(bound, "memory");
    n->compute += !strcmp(bound, "compute");
    n->latency += !strcmp(bound, "latency");
    n->unknown += !strcmp(bound, "unknown");
}

/* Reads folder/name+end, which must be UTF-8. */
static int ncu_read_text(const char *folder, const char *name, const char *end, struct buf *b, struct err *e)
{
    char *path = xasprintf("%s/%s%s", folder, name, end);
    int rc = file_read(path, b, e);

    if (!rc && utf8_bad_at(b->p, b->n) != b->n)
        rc = err_set(e, ERR_INPUT, "'%s' is not UTF-8 text", path);
    free(path);
    return rc;
}

/* Appends the records of NAME.csv and its program. */
static int ncu_add_file(const char *folder, const char *name, struct buf *out, struct ncu_stats *n, struct err *e)
{
    struct buf csv, program, task;
    char *beside = xasprintf("%s/%s.task", folder, name);
    json_t *kernels = NULL, *k;
    size_t i;
    int rc;

    buf_init(&csv, MAX_CSV), buf_init(&program, BUF_MAX_TEXT), buf_init(&task, BUF_MAX_TEXT);
    rc = ncu_read_text(folder, name, ".csv", &csv, e) < 0 || ncu_read_text(folder, name, ".py", &program, e) < 0
        ? -1 : 0;
    if (!rc && file_exists(beside))
        rc = ncu_read_text(folder, name, ".task", &task, e);
    if (!rc && !(kernels = ncu_parse(csv.p, csv.n, name, e)))
        rc = -1;
    json_array_foreach(kernels, i, k) {
        json_t *v = ncu_record(name, i, task.n ? task.p : NULL, program.p, k);
        json_line(out, v);
        ncu_count_bound(n, ncu_bound(k));
        json_decref(v);
    }
    n->files++;
    buf_free(&csv), buf_free(&program), buf_free(&task);
    free(beside);
    json_decref(kernels);
    return rc;
}

/* Writes records and report into the folder, under its lock. */
static int ncu_write_all(const char *out, const struct buf *lines, const struct ncu_stats *n, struct err *e)
{
    char *data = path_join(out, "data");
    struct listing *l = NULL;
    int lock = -1, rc = folder_take(out, "these profiles", "musacoder synth profile", &lock, e);
    json_t *v = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "files", n->files, "kernels", n->kernels, "memory",
                          n->memory, "compute", n->compute, "latency", n->latency, "unknown", n->unknown);

    if (!rc && (dir_make(data, e) < 0 || listing_begin(out, NULL, &l, e) < 0 ||
                listing_write(l, "data/train-00000.jsonl", lines->p, lines->n, e) < 0 ||
                listing_write_json(l, "report.json", v, e) < 0 || listing_end(l, false, NULL, e) < 0))
        rc = -1;
    listing_free(l);
    if (lock >= 0)
        close(lock);
    json_decref(v);
    free(data);
    return rc;
}

int ncu_records(const char *folder, const char *out, struct ncu_stats *ret, struct err *e)
{
    struct ncu_stats n = {0};
    struct buf lines;
    char **names;
    size_t count;
    int rc = 0;

    if (dir_list(folder, &names, &count, e) < 0)
        return -1;
    buf_init(&lines, (size_t)1 << 30);
    for (size_t i = 0; i < count && !rc; i++) {
        size_t k = strlen(names[i]);
        if (k > 4 && !strcmp(names[i] + k - 4, ".csv")) {
            names[i][k - 4] = 0;
            rc = ncu_add_file(folder, names[i], &lines, &n, e);
        }
    }
    if (!rc && !n.files)
        rc = err_set(e, ERR_INPUT, "'%s' holds no NAME.csv; 'musacoder replay CAPSULE --profile NAME.csv' writes them",
                     folder);
    if (!rc)
        rc = ncu_write_all(out, &lines, &n, e);
    names_free(names, count);
    buf_free(&lines);
    *ret = n;
    return rc;
}
