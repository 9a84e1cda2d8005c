/* repair_text.c - see repair_text.h. */
#include "task/repair_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "task/extract.h"

/* A line without its end. */
struct repair_text_line {
    const char *s;
    size_t n;
};

struct repair_text_lines {
    struct repair_text_line *v;
    size_t n;
};

/* The text's lines, borrowed; the caller frees v. */
static struct repair_text_lines repair_text_split(const char *text)
{
    struct repair_text_lines l = {0};
    size_t most = 1;

    for (const char *p = text; *p; p++)
        most += *p == '\n';
    l.v = xcalloc(most + 1, sizeof *l.v);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");

        l.v[l.n++] = (struct repair_text_line){p, n};
        p += n + (p[n] == '\n');
    }
    return l;
}

/* The line without its indentation. */
static struct repair_text_line repair_text_bare(struct repair_text_line l)
{
    while (l.n && l.s[0] == ' ')
        l.s++, l.n--;
    return l;
}

static bool repair_text_same(struct repair_text_line a, struct repair_text_line b)
{
    return a.n == b.n && !memcmp(a.s, b.s, a.n);
}

/* Appends the line in backticks. */
static void repair_text_quote(struct buf *out, struct repair_text_line l)
{
    l = repair_text_bare(l);
    buf_addf(out, "`%.*s`", (int)l.n, l.s);
}

/* Lines [from, to) of a became [b_from, b_to) of b; one side may be empty. */
struct hunk {
    size_t from, to, b_from, b_to;
};

struct hunks {
    struct hunk *v;
    size_t n;
};

static bool repair_text_equal(struct repair_text_line a, struct repair_text_line b, bool indented)
{
    return indented ? repair_text_same(a, b) : repair_text_same(repair_text_bare(a), repair_text_bare(b));
}

/* Length of the longest common subsequence of a's lines from p and b's from q on, for every p and q. */
static unsigned *repair_text_common(const struct repair_text_lines *a, const struct repair_text_lines *b, bool indented)
{
    size_t w = b->n + 1;
    unsigned *n = xcalloc((a->n + 1) * w, sizeof *n);

    for (size_t p = a->n; p-- > 0;)
        for (size_t q = b->n; q-- > 0;) {
            unsigned down = n[(p + 1) * w + q], right = n[p * w + q + 1];
            n[p * w + q] = repair_text_equal(a->v[p], b->v[q], indented) ? n[(p + 1) * w + q + 1] + 1 : down > right
                ? down : right;
        }
    return n;
}

/* What lies between the lines that they share. Equal beginnings and ends are left out first: they cost nothing then. */
static struct hunks repair_text_compare(const struct repair_text_lines *whole_a,
                                        const struct repair_text_lines *whole_b, bool indented)
{
    struct repair_text_lines a = *whole_a, b = *whole_b;
    struct hunks h = {xcalloc(a.n + b.n + 1, sizeof *h.v), 0};
    unsigned *n;
    size_t skipped;

    while (a.n && b.n && repair_text_equal(a.v[0], b.v[0], indented))
        a.v++, b.v++, a.n--, b.n--;
    while (a.n && b.n && repair_text_equal(a.v[a.n - 1], b.v[b.n - 1], indented))
        a.n--, b.n--;
    skipped = (size_t)(a.v - whole_a->v);
    n = repair_text_common(&a, &b, indented);
    for (size_t i = 0, j = 0; i < a.n || j < b.n; i++, j++) {
        struct hunk k = {i + skipped, 0, j + skipped, 0};

        while ((i < a.n || j < b.n) && !(i < a.n && j < b.n && repair_text_equal(a.v[i], b.v[j], indented))) {
            if (j == b.n || (i < a.n && n[(i + 1) * (b.n + 1) + j] >= n[i * (b.n + 1) + j + 1]))
                i++;
            else
                j++;
        }
        k.to = i + skipped, k.b_to = j + skipped;
        if (k.to > k.from || k.b_to > k.b_from)
            h.v[h.n++] = k;
    }
    free(n);
    return h;
}

/* Characters of the longest run that the line shares with what was said. */
static size_t repair_text_shared(struct repair_text_line l, const char *said)
{
    size_t best = 0;

    l = repair_text_bare(l);
    for (size_t i = 0; i + best < l.n; i++)
        for (const char *p = said; *p; p++) {
            size_t n = 0;
            while (i + n < l.n && p[n] == l.s[i + n])
                n++;
            best = n > best ? n : best;
        }
    return best;
}

/* The line of [from, to) that shares most, the first of equals. */
static size_t repair_text_likeliest(const struct repair_text_lines *l, size_t from, size_t to, const char *said,
                                    size_t *most)
{
    size_t at = from;

    *most = 0;
    for (size_t i = from; i < to; i++) {
        size_t n = repair_text_shared(l->v[i], said);
        if (n > *most)
            *most = n, at = i;
    }
    return at;
}

/* The difference that the judge's words 'said' speak of most likely; NULL: there is none. */
static const struct hunk *repair_text_pick(const struct hunks *h, const struct repair_text_lines *a,
                                           const struct repair_text_lines *b, const char *said)
{
    const struct hunk *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < h->n; i++) {
        size_t broken, fixed;

        repair_text_likeliest(a, h->v[i].from, h->v[i].to, said, &broken);
        repair_text_likeliest(b, h->v[i].b_from, h->v[i].b_to, said, &fixed);
        fixed = fixed > broken ? fixed : broken;
        if (!best || fixed > most)
            best = &h->v[i], most = fixed;
    }
    return best;
}

/* Appends where the two programs differ, in words. */
static void repair_text_name_place(struct buf *out, const struct repair_text_lines *a,
                                   const struct repair_text_lines *b, const char *said)
{
    struct hunks h = repair_text_compare(a, b, false);
    const struct hunk *k;
    size_t n, at;

    if (!h.n)
        free(h.v), h = repair_text_compare(a, b, true);
    k = repair_text_pick(&h, a, b, said);
    if (!k) {
        buf_adds(out, "No line differs");
    } else if (k->from == k->to) {
        buf_adds(out, "A line is missing");
        if (k->from < a->n)
            buf_adds(out, " in front of "), repair_text_quote(out, a->v[k->from]);
        buf_adds(out, ": "), repair_text_quote(out, b->v[repair_text_likeliest(b, k->b_from, k->b_to, said, &n)]);
    } else {
        at = repair_text_likeliest(a, k->from, k->to, said, &n);
        buf_adds(out, "The faulty line is "), repair_text_quote(out, a->v[at]);
        buf_adds(out, k->b_from == k->b_to ? ". It does not belong there" : ". It should be ");
        at += k->b_from - k->from;
        if (k->b_from < k->b_to)
            repair_text_quote(out, b->v[at < k->b_to ? at : k->b_to - 1]);
    }
    free(h.v);
}

/* What was said, without the lines around a marked one ("> 9 | code" stands between "  8 | code" and "  10 | code"). */
static char *repair_text_heard(const char *said)
{
    bool marked = !strncmp(said, "> ", 2) || strstr(said, "\n> ");
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (const char *p = said; *p;) {
        size_t n = strcspn(p, "\n"), digits = p[0] == ' ' && p[1] == ' ' ? strspn(p + 2, "0123456789") : 0;

        if (!marked || !digits || strncmp(p + 2 + digits, " | ", 3))
            buf_add(&b, p, n), buf_addc(&b, '\n');
        p += n + (p[n] == '\n');
    }
    return buf_detach(&b);
}

char *repair_text_answer(const char *broken, const char *fixed, const char *why, const char *said)
{
    struct repair_text_lines a = repair_text_split(broken), b = repair_text_split(fixed);
    char *words = repair_text_heard(said ? said : "");
    struct buf out;

    buf_init(&out, BUF_MAX_TEXT);
    repair_text_name_place(&out, &a, &b, words);
    free(words);
    buf_addf(&out, "%s%s.\n\n```python\n%s```", why ? ": " : "", why ? why : "", fixed);
    free(a.v), free(b.v);
    return buf_detach(&out);
}

/* ---- edits ---- */

/* text[from, to) of a Python file; its first line has this number, and its numbers this word in front. */
struct repair_text_part {
    const char *text, *word;
    size_t from, to, first;
};

/* What may change: the kernel's source, and what stands below its last line. */
enum { IN_KERNEL, BELOW, N_PARTS };
struct repair_text_parts {
    struct repair_text_part p[N_PARTS];
};

/* The text in the first string of the program that defines a kernel; false: none. */
static bool repair_text_find_kernel(const char *program, struct repair_text_part *ret)
{
    static const char *const quotes[] = {"\"\"\"", "'''"};
    const char *p = program;

    for (;;) {
        const char *a = strstr(p, quotes[0]), *b = strstr(p, quotes[1]), *end, *at;
        int q = !a || (b && b < a);

        if (!(p = q ? b : a) || !(end = strstr(p + 3, quotes[q])))
            return false;
        at = strstr(p + 3, "__global__");
        if (at && at < end) {
            *ret = (struct repair_text_part){program, "", (size_t)(p + 3 - program), (size_t)(end - program), 1};
            return true;
        }
        p = end + 3;
    }
}

/* The kernel's text and what is below it; false: the program has no kernel in a string. */
static bool repair_text_find_parts(const char *program, struct repair_text_parts *ret)
{
    struct repair_text_part *in = &ret->p[IN_KERNEL], *below = &ret->p[BELOW];

    if (!repair_text_find_kernel(program, in))
        return false;
    *below = (struct repair_text_part){program, "line ", in->to + strcspn(program + in->to, "\n"), strlen(program), 1};
    below->from += program[below->from] == '\n';
    for (size_t i = 0; i < below->from; i++)
        below->first += program[i] == '\n';
    return true;
}

/* A kernel's line 1 is what stands behind the opening quotes. Borrowed from the program. */
static struct repair_text_lines repair_text_part_lines(const struct repair_text_part *s)
{
    struct repair_text_lines l = {0};
    size_t most = 2;

    for (size_t i = s->from; i < s->to; i++)
        most += s->text[i] == '\n';
    l.v = xcalloc(most, sizeof *l.v);
    for (size_t at = s->from; at <= s->to;) {
        const char *nl = memchr(s->text + at, '\n', s->to - at);
        size_t n = (nl ? (size_t)(nl - s->text) : s->to) - at;

        l.v[l.n++] = (struct repair_text_line){s->text + at, n};
        at += n + 1;
    }
    return l;
}

/* The program of a response, as a string of its own; NULL: none. */
static char *repair_text_program_of(const char *response)
{
    struct extraction x;

    extract_code(response, strlen(response), EXTRACT_RESPONSE, &x);
    return x.found ? xstrndup(response + x.offset, x.n) : NULL;
}

static void repair_text_add_numbered(struct buf *out, const struct repair_text_part *s, size_t i,
                                     struct repair_text_line l)
{
    buf_addf(out, "%s%zu | %.*s\n", s->word, s->first + i, (int)l.n, l.s);
}

static bool repair_text_starts(struct repair_text_line l, const char *with)
{
    return l.n >= strlen(with) && !strncmp(l.s, with, strlen(with));
}

/* All but blank lines and #include, from the line on that starts so. */
static void repair_text_list(struct buf *out, const struct repair_text_part *s, const char *from)
{
    struct repair_text_lines l = repair_text_part_lines(s);
    bool on = false;

    for (size_t i = 0; i < l.n; i++) {
        on = on || repair_text_starts(l.v[i], from);
        if (on && repair_text_bare(l.v[i]).n && !repair_text_starts(repair_text_bare(l.v[i]), "#include"))
            repair_text_add_numbered(out, s, i, l.v[i]);
    }
    free(l.v);
}

char *mend_listing(const char *response)
{
    char *program = repair_text_program_of(response);
    struct repair_text_parts s;
    struct buf out;

    if (!program || !repair_text_find_parts(program, &s)) {
        free(program);
        return NULL;
    }
    buf_init(&out, BUF_MAX_TEXT);
    repair_text_list(&out, &s.p[IN_KERNEL], "");
    repair_text_list(&out, &s.p[BELOW], "class ModelNew");
    free(program);
    return buf_detach(&out);
}

static size_t repair_text_hunk_size(const struct hunk *h)
{
    size_t old = h->to - h->from, new = h->b_to - h->b_from;

    return old > new ? old : new;
}

/* Lines of b that are more than those of a stand under a's last number; what is put between lines goes in front of the
 * line behind, which is said again, or behind the last one. */
static void repair_text_add_hunk(struct buf *out, const struct repair_text_part *s, const struct repair_text_lines *a,
                                 const struct repair_text_lines *b, const struct hunk *h)
{
    size_t old = h->to - h->from, new = h->b_to - h->b_from, last = old ? h->to - 1 : h->from;

    if (!old && h->from == a->n)
        repair_text_add_numbered(out, s, last = a->n - 1, a->v[a->n - 1]);
    for (size_t i = 0; i < new; i++)
        repair_text_add_numbered(out, s, h->from + i < last ? h->from + i : last, b->v[h->b_from + i]);
    for (size_t i = new; i < old; i++)
        buf_addf(out, "%s%zu |\n", s->word, s->first + h->from + i);
    if (!old && h->from < a->n)
        repair_text_add_numbered(out, s, last, a->v[h->from]);
}

/* The edits of one part; how many lines they change. */
static size_t repair_text_add_edits(struct buf *out, const struct repair_text_part *broken,
                                    const struct repair_text_part *fixed)
{
    struct repair_text_lines a = repair_text_part_lines(broken), b = repair_text_part_lines(fixed);
    struct hunks h = repair_text_compare(&a, &b, true);
    size_t changed = 0;

    for (size_t i = 0; i < h.n; i++) {
        changed += repair_text_hunk_size(&h.v[i]);
        repair_text_add_hunk(out, broken, &a, &b, &h.v[i]);
    }
    free(a.v), free(b.v), free(h.v);
    return changed;
}

/* Are the texts in front of the kernel, and up to the line below it, equal? */
static bool repair_text_same_outside(const struct repair_text_parts *a, const struct repair_text_parts *b)
{
    const struct repair_text_part *ka = &a->p[IN_KERNEL], *kb = &b->p[IN_KERNEL];
    size_t n = a->p[BELOW].from - ka->to;

    return ka->from == kb->from && !memcmp(ka->text, kb->text, ka->from) && n == b->p[BELOW].from - kb->to &&
        !memcmp(ka->text + ka->to, kb->text + kb->to, n);
}

char *mend_edits(const char *broken, const char *fixed, int most)
{
    struct repair_text_parts a, b;
    struct buf out;
    size_t changed = 0;

    if (!repair_text_find_parts(broken, &a) || !repair_text_find_parts(fixed, &b) || !repair_text_same_outside(&a, &b))
        return NULL;
    buf_init(&out, BUF_MAX_TEXT);
    for (int k = 0; k < N_PARTS; k++)
        changed += repair_text_add_edits(&out, &a.p[k], &b.p[k]);
    if (changed && changed <= (size_t)most)
        return buf_detach(&out);
    buf_free(&out);
    return NULL;
}

static char *repair_text_program_or_all(const char *response)
{
    char *program = repair_text_program_of(response);

    return program ? program : xstrdup(response);
}

char *mend_nearest(const char *response, const char *const *others, size_t n)
{
    char *program = repair_text_program_or_all(response), *best = NULL;
    bool equal = false;

    for (size_t i = 0; i < n && !equal; i++) {
        char *other = repair_text_program_or_all(others[i]), *edits = mend_edits(program, other, MEND_LINES);
        bool shorter = edits && (!best || strlen(edits) < strlen(best));

        equal = !strcmp(program, other);
        free(shorter ? best : edits);
        best = shorter ? edits : best;
        free(other);
    }
    free(program);
    if (!equal)
        return best;
    free(best);
    return NULL;
}

/* "9 | text": its number and text, which is empty where the line goes. */
static bool repair_text_read_edit(struct repair_text_line l, const struct repair_text_part *s, size_t *number,
                                  struct repair_text_line *text)
{
    size_t n = strlen(s->word);

    l = repair_text_bare(l);
    if (!repair_text_starts(l, s->word))
        return false;
    for (*number = 0; n < l.n && n < 12 && isdigit((unsigned char)l.s[n]); n++)
        *number = *number * 10 + (size_t)(l.s[n] - '0');
    if (!n || !isdigit((unsigned char)l.s[n - 1]))
        return false;
    while (n < l.n && l.s[n] == ' ')
        n++;
    if (n == l.n || l.s[n++] != '|')
        return false;
    n += n < l.n && l.s[n] == ' ';
    *text = (struct repair_text_line){l.s + n, l.n - n};
    return true;
}

/* A line may not end the string that it stands in. */
static bool repair_text_fits(struct repair_text_line text)
{
    for (size_t i = 0; i + 2 < text.n; i++)
        if (!strncmp(text.s + i, "\"\"\"", 3) || !strncmp(text.s + i, "'''", 3))
            return false;
    return true;
}

/* new: (n lines) NULL: as it was; else what takes its place. False where an edit is impossible. */
static bool repair_text_read_edits(const char *answer, const struct repair_text_part *s, char **new, size_t n,
                                   int *found)
{
    struct repair_text_lines l = repair_text_split(answer);
    bool ok = true;

    for (size_t i = 0; i < l.n && ok; i++) {
        struct repair_text_line text;
        size_t number;

        if (!repair_text_read_edit(l.v[i], s, &number, &text))
            continue;
        ++*found;
        number -= s->first;
        if (!(ok = number < n && repair_text_fits(text)))
            break;
        char *old = new[number];
        new[number] = xasprintf("%s%.*s%s", old ? old : "", (int)text.n, text.s, text.n ? "\n" : "");
        free(old);
    }
    free(l.v);
    return ok;
}

/* The part as the answer has it. */
static bool repair_text_add_part(struct buf *out, const struct repair_text_part *s, const char *answer, int *found)
{
    struct repair_text_lines l = repair_text_part_lines(s);
    char **new = xcalloc(l.n + 1, sizeof *new);
    bool ok = repair_text_read_edits(answer, s, new, l.n, found);

    for (size_t i = 0; i < l.n; i++) {
        if (new[i])
            buf_adds(out, new[i]);
        else
            buf_addf(out, "%.*s%s", (int)l.v[i].n, l.v[i].s, i + 1 < l.n ? "\n" : "");
        free(new[i]);
    }
    free(new), free(l.v);
    return ok;
}

/* The program with the answer's edits applied, as a fence; the caller frees. NULL: it has no source, or there are no
 * edits. */
static char *repair_text_apply_to(const char *program, const char *answer)
{
    struct repair_text_parts s;
    struct buf out;
    int found = 0;
    bool ok = repair_text_find_parts(program, &s);

    if (!ok)
        return NULL;
    buf_init(&out, BUF_MAX_TEXT);
    buf_adds(&out, "```python\n");
    buf_add(&out, program, s.p[IN_KERNEL].from);
    ok = repair_text_add_part(&out, &s.p[IN_KERNEL], answer, &found);
    buf_add(&out, program + s.p[IN_KERNEL].to, s.p[BELOW].from - s.p[IN_KERNEL].to);
    ok = ok && repair_text_add_part(&out, &s.p[BELOW], answer, &found);
    buf_adds(&out, "```");
    if (ok && found)
        return buf_detach(&out);
    buf_free(&out);
    return NULL;
}

char *mend_apply(const char *before, const char *answer)
{
    struct extraction x;
    char *program, *out;

    extract_code(answer, strlen(answer), EXTRACT_RESPONSE, &x);
    if (x.found && x.defines_modelnew)
        return NULL;
    if (!(program = repair_text_program_of(before)))
        return NULL;
    out = repair_text_apply_to(program, answer);
    free(program);
    return out;
}
