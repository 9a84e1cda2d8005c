/* page.c - puts data into the page of results: page.html is part of the program, its mark @DATA@ becomes the JSON. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

__asm__(".pushsection .rodata\n"
        ".global report_page\nreport_page: .incbin \"src/report/page.html\"\n"
        "report_page_end: .byte 0\n.popsection");
extern const char report_page[]; /* ends with a zero byte */

#define MARK "@DATA@"

/* In JSON a '<' stands in texts alone, where it may be written as an escape: no text can close the script element. */
static void page_add_json(const json_t *data, struct buf *out)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));

    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "<");
        buf_add(out, s, n);
        if (s[n])
            buf_adds(out, "\\u003c");
        s += n + (s[n] != 0);
    }
    free(text);
}

void page_add(const json_t *data, struct buf *out)
{
    const char *mark = strstr(report_page, MARK);

    buf_add(out, report_page, (size_t)(mark - report_page));
    page_add_json(data, out);
    buf_adds(out, mark + strlen(MARK));
}

int page_write(const json_t *data, const char *path, struct err *e)
{
    struct buf out;
    int rc;

    buf_init(&out, BUF_MAX_TEXT);
    page_add(data, &out);
    rc = out.cut ? err_set(e, ERR_BUG, "the page '%s' is larger than %zu bytes", path, out.max)
                 : file_write(path, out.p, out.n, e);
    buf_free(&out);
    return rc;
}
