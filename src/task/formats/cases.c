/* cases.c - MultiKernelBench's NAME.py with NAME.json: a KernelBench-format Model whose inputs come from the lines of a
 * JSON file, through get_input_groups. Each line is a row. The file is opened nowhere: the task holds its lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/formats/format.h"

/* The NAME.json beside NAME.py. Owned; NULL: another ending. */
static char *cases_path(const char *path)
{
    return path_ends(path, ".py") ? xasprintf("%.*sjson", (int)strlen(path) - 2, path) : NULL;
}

/* format's 'is': has a list of cases beside it. */
static bool cases_is(const char *path)
{
    char *json = cases_path(path);
    struct buf text;
    bool is = json && file_exists(json) && format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "\ndef get_input_groups(") && strstr(text.p, "class Model");
        buf_free(&text);
    }
    free(json);
    return is;
}

/* A callback of jsonl_each: keeps the line as a workload's row. */
static int cases_take_line(json_t *v, size_t line, void *rows, struct err *e)
{
    char *text = json_text(v);

    (void)line, (void)e;
    json_array_append_new(rows, json_pack("{s:s}", "case_line", text));
    free(text);
    return 0;
}

/* Makes the task's code and workloads. */
static int cases_build(const char *text, const json_t *rows, int most, struct format_task *t, struct err *e)
{
    if (json_array_size(rows) == 0)
        return err_set(e, ERR_INPUT, "its list of cases is empty");
    buf_addf(&t->code, "import io\n%s\n\n", text);
    if (format_rows(t, rows, most, e) < 0)
        return -1;
    buf_adds(&t->code, "__file__ = \"task.py\"\n\n\ndef open(*args, **kwargs):\n    return io.StringIO(case_line + "
                       "\"\\n\")\n\n\ndef get_inputs():\n    return get_input_groups()[0]\n");
    return 0;
}

/* format's 'read': a reference in Python with its cases in a JSON file beside it. */
static int cases_read(const char *path, int most, struct format_task *t, struct err *e)
{
    char *json = cases_path(path), *stem = path_stem(path);
    json_t *rows = json_array();
    struct buf text;
    int rc = jsonl_each(json, cases_take_line, rows, e);

    snprintf(t->name, sizeof t->name, "%.100s", stem);
    if (rc == 0)
        rc = format_text(path, &text, e);
    if (rc == 0) {
        rc = strstr(text.p, "torch_npu") ? err_set(e, ERR_INPUT, "its reference needs torch_npu")
           : cases_build(text.p, rows, most, t, e);
        buf_free(&text);
    }
    json_decref(rows);
    free(json);
    free(stem);
    return rc;
}

const struct format format_cases = {"multikernel", "MultiKernelBench's NAME.py with its cases NAME.json", cases_is,
                                    cases_read};
