/* computeeval.c - compute-eval's problems, problem-spec.yaml or problems.jsonl: known and refused with the reason.
 * A problem is a C++ interface with a hidden test program; it has no reference that could be run beside an answer. */
#include <string.h>

#include "task/formats/format.h"

/* format's 'is'; its tasks are refused with the reason. */
static bool computeeval_is(const char *path)
{
    struct buf text;
    bool is = (format_named(path, "problem-spec.yaml") || format_named(path, "problems.jsonl")) &&
              format_text(path, &text, NULL) == 0;

    if (is) {
        is = strstr(text.p, "build_command") && strstr(text.p, "test_command");
        buf_free(&text);
    }
    return is;
}

/* ERR_INPUT: these problems are known, and have no task for this judge. Always -1. */
static int computeeval_read(const char *path, int most, struct format_task *t, struct err *e)
{
    (void)path, (void)most, (void)t;
    return err_set(e, ERR_INPUT, "compute-eval's problems are whole programs with a hidden test program; none has a "
                                 "reference that an answer can be compared with");
}

const struct format format_computeeval = {"compute-eval", "compute-eval's problems; refused, as they have no reference",
                                          computeeval_is, computeeval_read};
