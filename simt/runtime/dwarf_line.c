/* dwarf_line.c - runs DWARF line number programs. Input comes from a compiler, but from files that a candidate could
 * have written to: every read is bounds checked, and a malformed table ends the search. */
#include "dwarf_line.h"

#include <stdio.h>
#include <string.h>

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

struct entry_format {
    uint64_t content, form;
};

struct unit {
    const struct sections *s;
    int version;
    bool wide; /* 64-bit DWARF */
    uint8_t min_inst, line_range, opcode_base;
    int8_t line_base;
    uint8_t lengths[256];
    struct reader dirs, files; /* tables, parsed again for each lookup: that is rare */
    struct entry_format dir_format[8], file_format[8];
    int n_dir_format, n_file_format;
    uint64_t n_dirs, n_files;
    struct reader program;
};

static uint64_t fixed(struct reader *r, int bytes)
{
    uint64_t v = 0;

    if (r->end - r->p < bytes) {
        r->bad = true;
        r->p = r->end;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += bytes;
    return v;
}

static uint64_t uleb(struct reader *r)
{
    uint64_t v = 0;

    for (int shift = 0; r->p < r->end; shift += 7) {
        uint8_t b = *r->p++;

        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    r->bad = true;
    return v;
}

static int64_t sleb(struct reader *r)
{
    uint64_t v = 0;
    int shift = 0;

    while (r->p < r->end) {
        uint8_t b = *r->p++;

        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
        if (!(b & 0x80)) {
            if (shift < 64 && (b & 0x40))
                v |= ~(uint64_t)0 << shift;
            return (int64_t)v;
        }
    }
    r->bad = true;
    return 0;
}

static const char *text(struct reader *r)
{
    const uint8_t *zero = memchr(r->p, 0, (size_t)(r->end - r->p));
    const char *s = (const char *)r->p;

    if (!zero) {
        r->bad = true;
        r->p = r->end;
        return "";
    }
    r->p = zero + 1;
    return s;
}

static const char *text_at(const uint8_t *base, size_t n, uint64_t offset)
{
    return base && offset < n && memchr(base + offset, 0, n - offset) ? (const char *)base + offset : "";
}

/* One attribute of a version 5 directory or file entry. Returns its string, NULL for others; *num gets numbers. */
static const char *form_value(const struct unit *u, struct reader *r, uint64_t form, uint64_t *num)
{
    switch (form) {
    case 0x08: return text(r);                                                         /* string */
    case 0x1f: return text_at(u->s->line_str, u->s->n_line_str, fixed(r, u->wide ? 8 : 4)); /* line_strp */
    case 0x0e: return text_at(u->s->str, u->s->n_str, fixed(r, u->wide ? 8 : 4));           /* strp */
    case 0x0b: *num = fixed(r, 1); return NULL;                                        /* data1 */
    case 0x05: *num = fixed(r, 2); return NULL;                                        /* data2 */
    case 0x06: *num = fixed(r, 4); return NULL;                                        /* data4 */
    case 0x07: *num = fixed(r, 8); return NULL;                                        /* data8 */
    case 0x0f: *num = uleb(r); return NULL;                                            /* udata */
    case 0x1e: fixed(r, 8), fixed(r, 8); return NULL;                                  /* data16: MD5 */
    default: r->bad = true; return NULL;
    }
}

static int read_formats(struct reader *r, struct entry_format *f)
{
    int n = (int)fixed(r, 1);

    if (n > 8) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        f[i].content = uleb(r);
        f[i].form = uleb(r);
    }
    return n;
}

/* One entry: name and directory index (content types 1 and 2). */
static const char *read_entry(const struct unit *u, struct reader *r, const struct entry_format *f, int n,
                              uint64_t *dir)
{
    const char *name = "";

    *dir = 0;
    for (int i = 0; i < n; i++) {
        uint64_t num = 0;
        const char *s = form_value(u, r, f[i].form, &num);

        if (f[i].content == 1 && s)
            name = s;
        else if (f[i].content == 2)
            *dir = num;
    }
    return name;
}

static void read_tables_5(struct unit *u, struct reader *r)
{
    uint64_t dir;

    u->n_dir_format = read_formats(r, u->dir_format);
    u->n_dirs = uleb(r);
    u->dirs = *r;
    for (uint64_t i = 0; i < u->n_dirs && !r->bad; i++)
        read_entry(u, r, u->dir_format, u->n_dir_format, &dir);
    u->n_file_format = read_formats(r, u->file_format);
    u->n_files = uleb(r);
    u->files = *r;
}

static void read_tables_4(struct unit *u, struct reader *r)
{
    u->dirs = *r;
    while (!r->bad && *text(r))
        ;
    u->files = *r;
}

/* Reads the header at r and moves r behind the unit. False at the end or if the header is not understood. */
static bool read_unit(const struct sections *s, struct reader *r, struct unit *u)
{
    uint64_t length = fixed(r, 4), header;
    struct reader h;
    const uint8_t *program;

    memset(u, 0, sizeof *u);
    u->s = s;
    if ((u->wide = length == 0xffffffff))
        length = fixed(r, 8);
    if (r->bad || length > (uint64_t)(r->end - r->p))
        return false;
    h = (struct reader){r->p, r->p + length, false};
    r->p += length;
    u->version = (int)fixed(&h, 2);
    if (u->version < 2 || u->version > 5)
        return !h.bad;
    if (u->version == 5)
        fixed(&h, 2); /* address and segment selector sizes */
    header = fixed(&h, u->wide ? 8 : 4);
    if (h.bad || header > (uint64_t)(h.end - h.p))
        return false;
    program = h.p + header;
    u->min_inst = (uint8_t)fixed(&h, 1);
    if (u->version >= 4)
        fixed(&h, 1); /* operations per instruction: VLIW only */
    fixed(&h, 1);     /* default is_stmt */
    u->line_base = (int8_t)fixed(&h, 1);
    u->line_range = (uint8_t)fixed(&h, 1);
    u->opcode_base = (uint8_t)fixed(&h, 1);
    for (int i = 1; i < u->opcode_base; i++)
        u->lengths[i] = (uint8_t)fixed(&h, 1);
    u->program = (struct reader){program, h.end, false};
    if (u->version == 5)
        read_tables_5(u, &h);
    else
        read_tables_4(u, &h);
    return u->line_range != 0;
}

static const char *dir_name(const struct unit *u, uint64_t index)
{
    struct reader r = u->dirs;
    const char *name = "";
    uint64_t dir;

    if (index == 0) /* the compilation directory: leave relative names relative */
        return "";
    if (u->version == 5) {
        for (uint64_t i = 0; i <= index && i < u->n_dirs && !r.bad; i++)
            name = read_entry(u, &r, u->dir_format, u->n_dir_format, &dir);
        return name;
    }
    for (uint64_t i = 1; i <= index && !r.bad; i++)
        if (!*(name = text(&r)))
            break;
    return name;
}

static void file_name(const struct unit *u, uint64_t index, char *out, size_t n)
{
    struct reader r = u->files;
    const char *name = "", *dir_text;
    uint64_t dir = 0;

    if (u->version == 5) {
        for (uint64_t i = 0; i <= index && i < u->n_files && !r.bad; i++)
            name = read_entry(u, &r, u->file_format, u->n_file_format, &dir);
    } else {
        for (uint64_t i = 1; i <= index && !r.bad; i++) {
            if (!*(name = text(&r)))
                break;
            dir = uleb(&r), uleb(&r), uleb(&r);
        }
    }
    dir_text = name[0] == '/' ? "" : dir_name(u, dir);
    snprintf(out, n, "%s%s%s", dir_text, dir_text[0] ? "/" : "", name);
}

struct search {
    uint64_t addr, lo;
    bool (*foreign)(const char *path);
    char *path;
    size_t n;
    /* the row before the current one, and the best one that is the candidate's own */
    bool have_prev;
    uint64_t prev_addr, prev_file, own_file;
    int prev_line, own_line;
    bool exact;
};

static bool is_own(const struct unit *u, struct search *q, uint64_t file)
{
    file_name(u, file, q->path, q->n);
    return !q->foreign(q->path);
}

/* A row [prev, addr) is complete. Returns the line when it covers the address looked for. */
static int row_done(const struct unit *u, struct search *q, uint64_t addr)
{
    if (!q->have_prev || q->prev_addr > q->addr || q->prev_addr < q->lo)
        return 0;
    if (q->prev_line && (q->own_line == 0 || q->own_file != q->prev_file || q->own_line != q->prev_line) &&
        is_own(u, q, q->prev_file)) {
        q->own_file = q->prev_file;
        q->own_line = q->prev_line;
    }
    if (addr <= q->addr)
        return 0;
    q->exact = q->own_line == q->prev_line && q->own_file == q->prev_file;
    if (q->own_line) {
        file_name(u, q->own_file, q->path, q->n);
        return q->own_line;
    }
    file_name(u, q->prev_file, q->path, q->n);
    return q->prev_line;
}

/* A sequence that starts at address 0 is of a function that the linker left out; its rows would cover others' code. */
struct machine {
    uint64_t addr, file;
    int64_t line;
    bool left_out;
};

static int extended(const struct unit *u, struct reader *r, struct machine *m, struct search *q)
{
    uint64_t len = uleb(r);
    const uint8_t *end;
    int found = 0, op;

    if (len == 0 || len > (uint64_t)(r->end - r->p)) {
        r->bad = true;
        return 0;
    }
    end = r->p + len;
    op = (int)fixed(r, 1);
    if (op == 1) { /* end_sequence */
        found = m->left_out ? 0 : row_done(u, q, m->addr);
        q->have_prev = false;
        q->own_line = 0;
        *m = (struct machine){0, 1, 1, false};
    } else if (op == 2) {
        m->addr = fixed(r, (int)(len - 1 < 8 ? len - 1 : 8));
        m->left_out = m->addr == 0;
    }
    r->p = end;
    return found;
}

static int emit(const struct unit *u, struct machine *m, struct search *q)
{
    int found;

    if (m->left_out)
        return 0;
    found = row_done(u, q, m->addr);
    q->have_prev = true;
    q->prev_addr = m->addr;
    q->prev_file = m->file;
    q->prev_line = (int)m->line;
    return found;
}

static int standard(const struct unit *u, struct reader *r, int op, struct machine *m, struct search *q)
{
    switch (op) {
    case 1: return emit(u, m, q);                                                       /* copy */
    case 2: m->addr += uleb(r) * u->min_inst; break;                                    /* advance_pc */
    case 3: m->line += sleb(r); break;                                                  /* advance_line */
    case 4: m->file = uleb(r); break;                                                   /* set_file */
    case 8: m->addr += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->min_inst; break; /* const_add_pc */
    case 9: m->addr += fixed(r, 2); break;                                              /* fixed_advance_pc */
    default:
        for (int i = 0; i < u->lengths[op]; i++)
            uleb(r);
    }
    return 0;
}

static int search_unit(const struct unit *u, struct search *q)
{
    struct reader r = u->program;
    struct machine m = {0, 1, 1, false};
    int found = 0;

    q->have_prev = false;
    q->own_line = 0;
    while (r.p < r.end && !r.bad && !found) {
        int op = (int)fixed(&r, 1);

        if (op == 0) {
            found = extended(u, &r, &m, q);
        } else if (op < u->opcode_base) {
            found = standard(u, &r, op, &m, q);
        } else {
            op -= u->opcode_base;
            m.addr += (uint64_t)(op / u->line_range) * u->min_inst;
            m.line += u->line_base + op % u->line_range;
            found = emit(u, &m, q);
        }
    }
    return found;
}

int dwarf_line_of(const struct sections *s, uint64_t addr, uint64_t lo, bool (*foreign)(const char *path), char *path,
                  size_t n, bool *exact)
{
    struct reader r = {s->line, s->line + s->n_line, false};
    struct search q = {.addr = addr, .lo = lo, .foreign = foreign, .path = path, .n = n};
    struct unit u;
    int line;

    while (s->line && r.p < r.end && read_unit(s, &r, &u))
        if (u.line_range && (line = search_unit(&u, &q)) > 0) {
            *exact = q.exact;
            return line;
        }
    path[0] = 0;
    return 0;
}
