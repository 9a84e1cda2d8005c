/* place.c - see place.h. */
#include "eval/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last place in text where word begins, or NULL. */
static const char *last_of(const char *text, const char *word)
{
    const char *found = NULL;

    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        found = p;
    return found;
}

int64_t place_python(const char *output, bool *ret_waiting)
{
    static const char frame[] = "File \"candidate.py\", line ", thread[] = "(most recent call first):";
    const char *crash = last_of(output, "Fatal Python error: "), *late = last_of(output, "Timeout (");
    const char *from = crash > late ? crash : late, *main_thread, *at;

    if (ret_waiting)
        *ret_waiting = false;
    if (!from)
        return 0;
    main_thread = from == crash ? strstr(from, thread) : last_of(from, thread); /* a crash tells of its own thread first */
    at = main_thread ? strstr(main_thread, frame) : NULL;
    if (ret_waiting && main_thread && !at)
        *ret_waiting = strstr(main_thread, " in finish") != NULL;
    if (!at && from == late)
        at = strstr(from, frame);
    return at ? strtoll(at + sizeof frame - 1, NULL, 10) : 0;
}

void place_kernels(const char *output, char *ret, size_t n)
{
    static const char mark[] = "launched in this call: ";
    const char *at = last_of(output, mark);

    ret[0] = 0;
    if (at)
        snprintf(ret, n, " (%.*s)", (int)strcspn(at + sizeof mark - 1, "\r\n"), at + sizeof mark - 1);
}

const char *place_findings(const char *output, size_t *ret_n)
{
    static const char mark[] = "musacoder-findings: ";
    const char *at = last_of(output, mark);

    if (!at)
        return NULL;
    at += sizeof mark - 1;
    *ret_n = strcspn(at, "\r\n");
    return at;
}

/* "FILE:LINE: KERNEL: block: [0,0,0], thread: [0,0,0] Assertion `WHAT` failed." */
bool place_assert(const char *output, struct place_assert *ret)
{
    const char *end = strstr(output, "Assertion `"), *start = end, *p;
    struct place_assert a = {.line = 0};

    if (!end)
        return false;
    while (start > output && start[-1] != '\n')
        start--;
    for (p = start; p < end && !(*p == ':' && (a.line = strtoll(p + 1, NULL, 10)) > 0); p++)
        ;
    if (p >= end)
        return false;
    snprintf(a.file, sizeof a.file, "%.*s", (int)(p - start), start);
    sscanf(p, ":%*d: %199[^\n]", a.kernel);
    if (!strncmp(a.kernel, "void ", 5))
        memmove(a.kernel, a.kernel + 5, strlen(a.kernel + 5) + 1);
    if ((p = strstr(a.kernel, ": block: [")))
        a.kernel[p - a.kernel] = 0;
    snprintf(a.what, sizeof a.what, "%.*s", (int)strcspn(end + 11, "`'\n"), end + 11);
    *ret = a;
    return true;
}

bool place_line(const char *text, int64_t line, char *ret, size_t n)
{
    for (int64_t i = 1; text && *text && i < line; i++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (!text || line < 1)
        return false;
    text += strspn(text, " \t");
    snprintf(ret, n, "%.*s", (int)strcspn(text, "\r\n"), text);
    return *ret != 0;
}
