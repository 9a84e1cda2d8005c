/* symbols.c - what the loaded candidate tells about itself: its image and thread-local segment from the dynamic
 * loader, symbols and lines from its ELF file. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dwarf_line.h"
#include "runtime.h"

struct module {
    struct module *next;
    uintptr_t lo, hi, bias;
    size_t tls_module, tls_bytes;
    bool system;                /* of the distribution or of PyTorch: not worth reading */
    unsigned long long unloads; /* dlpi_subs when it was found: older entries may be of a library that is gone */
    const uint8_t *file;        /* mapped; NULL if it could not be read */
    size_t n_file;
    const ElfW(Sym) *syms;
    size_t n_syms;
    const char *names;
    size_t n_names;
    struct sections lines;
};

static struct module *modules; /* threads and handlers add to it, nobody takes away */

/* Memory for the life of the process, for several threads and for handlers: zeroed, NULL if there is none. */
static void *take(size_t n)
{
    enum { CHUNK = 64 << 10 };
    static struct chunk { size_t used; char bytes[]; } *chunk;

    n = (n + 15) & ~(size_t)15;
    for (;;) {
        struct chunk *c = __atomic_load_n(&chunk, __ATOMIC_ACQUIRE), *more;
        size_t at = c ? __atomic_fetch_add(&c->used, n, __ATOMIC_RELAXED) : CHUNK;

        if (at + n <= CHUNK - sizeof *c)
            return c->bytes + at;
        if (n > CHUNK - sizeof *c)
            return NULL;
        more = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED)
            return NULL;
        if (!__atomic_compare_exchange_n(&chunk, &c, more, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            munmap(more, CHUNK);
    }
}

/* ---- ELF ---- */

static bool in_file(const struct module *m, uint64_t at, uint64_t n)
{
    return at <= m->n_file && n <= m->n_file - at;
}

static void take_section(struct module *m, const ElfW(Shdr) *all, int n, const ElfW(Shdr) *s, const char *name)
{
    const uint8_t *data = m->file + s->sh_offset;

    if (s->sh_type == SHT_NOBITS || !in_file(m, s->sh_offset, s->sh_size))
        return;
    if (s->sh_type == SHT_SYMTAB && (int)s->sh_link < n &&
        in_file(m, all[s->sh_link].sh_offset, all[s->sh_link].sh_size)) {
        m->syms = (const ElfW(Sym) *)(const void *)data;
        m->n_syms = s->sh_size / sizeof *m->syms;
        m->names = (const char *)m->file + all[s->sh_link].sh_offset;
        m->n_names = all[s->sh_link].sh_size;
    } else if (s->sh_flags & SHF_COMPRESSED) {
        return;
    } else if (!strcmp(name, ".debug_line")) {
        m->lines.line = data, m->lines.n_line = s->sh_size;
    } else if (!strcmp(name, ".debug_line_str")) {
        m->lines.line_str = data, m->lines.n_line_str = s->sh_size;
    } else if (!strcmp(name, ".debug_str")) {
        m->lines.str = data, m->lines.n_str = s->sh_size;
    }
}

static void read_elf(struct module *m)
{
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)(const void *)m->file;
    const ElfW(Shdr) *s;
    const char *names;
    size_t n_names;

    if (!in_file(m, 0, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_shentsize != sizeof *s ||
        !in_file(m, h->e_shoff, (uint64_t)h->e_shnum * sizeof *s) || h->e_shstrndx >= h->e_shnum)
        return;
    s = (const ElfW(Shdr) *)(const void *)(m->file + h->e_shoff);
    names = (const char *)m->file + s[h->e_shstrndx].sh_offset;
    n_names = s[h->e_shstrndx].sh_size;
    if (!in_file(m, s[h->e_shstrndx].sh_offset, n_names) || n_names == 0 || names[n_names - 1])
        return;
    for (int i = 0; i < h->e_shnum; i++)
        if (s[i].sh_name < n_names)
            take_section(m, s, h->e_shnum, &s[i], names + s[i].sh_name);
}

static void map_file(struct module *m, const char *path)
{
    int fd = open(path && *path ? path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (p != MAP_FAILED) {
            m->file = p;
            m->n_file = (size_t)st.st_size;
            read_elf(m);
        }
    }
    close(fd);
}

/* ---- modules ---- */

struct request {
    uintptr_t addr;
    struct module *found;
    unsigned long long unloads;
};

static void fill_module(struct module *m, const struct dl_phdr_info *info)
{
    m->bias = info->dlpi_addr;
    m->lo = UINTPTR_MAX;
    m->unloads = info->dlpi_subs;
    m->tls_module = info->dlpi_tls_modid;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + p->p_vaddr, hi = lo + p->p_memsz;

        if (p->p_type == PT_TLS)
            m->tls_bytes = p->p_memsz;
        if (p->p_type != PT_LOAD)
            continue;
        m->lo = lo < m->lo ? lo : m->lo;
        m->hi = hi > m->hi ? hi : m->hi;
    }
}

static int find_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct request *q = ctx;

    (void)size;
    q->unloads = info->dlpi_subs;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + p->p_vaddr;

        if (p->p_type != PT_LOAD || q->addr < lo || q->addr >= lo + p->p_memsz)
            continue;
        if (!(q->found = take(sizeof *q->found)))
            return 1;
        fill_module(q->found, info);
        q->found->system = !strncmp(info->dlpi_name, "/usr/", 5) || !strncmp(info->dlpi_name, "/lib", 4) ||
                           strstr(info->dlpi_name, "-packages/");
        if (!q->found->system)
            map_file(q->found, info->dlpi_name);
        return 1;
    }
    return 0;
}

static int count_unloads(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    *(unsigned long long *)ctx = info->dlpi_subs;
    return 1;
}

static struct module *module_of(const void *addr)
{
    struct request q = {(uintptr_t)addr, NULL, 0};
    unsigned long long unloads = 0;

    dl_iterate_phdr(count_unloads, &unloads);
    for (struct module *m = __atomic_load_n(&modules, __ATOMIC_ACQUIRE); m; m = m->next)
        if (m->unloads == unloads && q.addr >= m->lo && q.addr < m->hi)
            return m;
    dl_iterate_phdr(find_module, &q);
    if (q.found) {
        q.found->next = __atomic_load_n(&modules, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&modules, &q.found->next, q.found, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            ;
    }
    return q.found;
}

bool image_of(const void *addr, uintptr_t *lo, uintptr_t *hi)
{
    const struct module *m = module_of(addr);

    if (m)
        *lo = m->lo, *hi = m->hi;
    return m != NULL;
}

struct tls_index {
    unsigned long module, offset;
};
void *__tls_get_addr(struct tls_index *index);

bool tls_of(const void *addr, char **lo, char **hi)
{
    const struct module *m = module_of(addr);
    struct tls_index index;

    if (!m || !m->tls_module || !m->tls_bytes)
        return false;
    index.module = m->tls_module;
    index.offset = 0;
    *lo = __tls_get_addr(&index);
    *hi = *lo + m->tls_bytes;
    return true;
}

/* ---- symbols ---- */

static const char *sym_name(const struct module *m, const ElfW(Sym) *s)
{
    return s->st_name < m->n_names ? m->names + s->st_name : "";
}

static const ElfW(Sym) *function_at(const struct module *m, uintptr_t addr)
{
    uint64_t at = addr - m->bias;

    for (size_t i = 0; i < m->n_syms; i++)
        if (ELF64_ST_TYPE(m->syms[i].st_info) == STT_FUNC && at >= m->syms[i].st_value &&
            at < m->syms[i].st_value + m->syms[i].st_size)
            return &m->syms[i];
    return NULL;
}

const char *symbol_name(const void *fn)
{
    const struct module *m = module_of(fn);
    const ElfW(Sym) *s = m ? function_at(m, (uintptr_t)fn) : NULL;

    return s ? sym_name(m, s) : NULL;
}

/* For "_ZZ3fooIfEvPT_E4tile": the length of "_ZZ3fooIfEvPT_E", the function's part. 0 if it is no local of 'name'. */
static size_t owner_length(const char *symbol, const char *name)
{
    char part[128];
    const char *p = symbol + 3;
    size_t n = 0;

    if (strncmp(symbol, "_ZZ", 3))
        return 0;
    snprintf(part, sizeof part, "%zu%s", strlen(name), name);
    while ((p = strstr(p, part)) && p[-1] >= '0' && p[-1] <= '9')
        p++;
    for (; p && (p = strchr(p + 1, 'E'));)
        if (p[1] >= '0' && p[1] <= '9')
            n = (size_t)(p - symbol) + 1;
    return n;
}

/* Bytes of the variables whose symbols begin with the n characters of 'prefix'. */
static size_t shared_under(const struct module *m, const char *prefix, size_t n)
{
    size_t sum = 0;

    for (size_t k = 0; k < m->n_syms; k++)
        if (ELF64_ST_TYPE(m->syms[k].st_info) == STT_TLS && !strncmp(prefix, sym_name(m, &m->syms[k]), n))
            sum += m->syms[k].st_size;
    return sum;
}

/* The smallest of the instances called 'name': which of them runs is not known, and a refusal must not be wrong. */
static size_t shared_of_some(const struct module *m, const char *name)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < m->n_syms; i++) {
        const char *s = sym_name(m, &m->syms[i]);
        size_t n, sum;

        if (ELF64_ST_TYPE(m->syms[i].st_info) != STT_TLS || (n = owner_length(s, name)) == 0)
            continue;
        sum = shared_under(m, s, n);
        best = sum < best ? sum : best;
    }
    return best == SIZE_MAX ? 0 : best;
}

/* A local of the function "_Z3fooIfEvPT_" is called "_ZZ3fooIfEvPT_E" and its own name. */
static size_t shared_of(const struct module *m, const char *near, const char *name)
{
    const ElfW(Sym) *fn = function_at(m, (uintptr_t)near);
    const char *mangled = fn ? sym_name(m, fn) : "";
    char prefix[4096], part[128];
    int n;

    snprintf(part, sizeof part, "%zu%s", strlen(name), name);
    if (strncmp(mangled, "_Z", 2) || !strstr(mangled, part)) /* a launch through a lambda */
        return shared_of_some(m, name);
    n = snprintf(prefix, sizeof prefix, "_ZZ%sE", mangled + 2);
    return n < (int)sizeof prefix ? shared_under(m, prefix, (size_t)n) : 0;
}

size_t static_shared_of(const void *near, const char *name)
{
    static struct { const void *near; const char *name; size_t bytes; } memo[64];
    size_t slot = ((uintptr_t)near / 16 + (uintptr_t)name / 4) % 64;
    const struct module *m;

    if (memo[slot].near == near && memo[slot].name == name && near)
        return memo[slot].bytes;
    m = module_of(near);
    memo[slot].near = near;
    memo[slot].name = name;
    return memo[slot].bytes = m && m->syms ? shared_of(m, near, name) : 0;
}

bool shared_guard_at(const void *near, size_t offset)
{
    const struct module *m = module_of(near);

    for (size_t i = 0; m && m->syms && i < m->n_syms; i++) {
        const ElfW(Sym) *s = &m->syms[i];

        if (ELF64_ST_TYPE(s->st_info) == STT_TLS && s->st_value <= offset && offset < s->st_value + 8 &&
            s->st_name < m->n_names && !strncmp(m->names + s->st_name, "_ZGV", 4))
            return true;
    }
    return false;
}

/* "_ZZ3fooIfEvPT_E4tile_0" -> "tile": behind the last 'E' and a length that leaves no more than a number. */
static bool local_name(const char *symbol, char *out, size_t n)
{
    const char *found = NULL;
    int length = 0;

    if (strncmp(symbol, "_ZZ", 3))
        return false;
    for (const char *p = symbol + 3; (p = strchr(p, 'E')); p++) {
        char *name;
        long k = strtol(p + 1, &name, 10);

        if (name > p + 1 && k > 0 && (size_t)k <= strlen(name) && (!name[k] || name[k] == '_')) {
            found = name;
            length = (int)k;
        }
    }
    if (found)
        snprintf(out, n, "%.*s", length, found);
    return found != NULL;
}

bool shared_array_at(const void *near, const char *kernel, size_t offset, struct shared_array *ret)
{
    const struct module *m = module_of(near);
    bool found = false;
    char name[sizeof ret->name];

    for (size_t i = 0; m && m->syms && i < m->n_syms; i++) {
        const ElfW(Sym) *s = &m->syms[i];

        if (ELF64_ST_TYPE(s->st_info) != STT_TLS || s->st_value > offset || (found && s->st_value < ret->begin) ||
            !local_name(sym_name(m, s), name, sizeof name) || (kernel && !owner_length(sym_name(m, s), kernel)))
            continue;
        *ret = (struct shared_array){.begin = s->st_value, .bytes = s->st_size};
        memcpy(ret->name, name, sizeof name);
        found = true;
    }
    return found;
}

/* ---- lines ---- */

static bool foreign(const char *path)
{
    return !strncmp(path, "/usr/", 5) || strstr(path, "simt/include/") || strstr(path, "simt/runtime/") ||
           strstr(path, "litetorch/") ||
           strstr(path, "/include/c++/");
}

/* Paths live as long as the process: findings hand them out. */
static const char *keep(const char *path)
{
    static struct name { struct name *next; char text[]; } *names;
    struct name *n;

    for (n = __atomic_load_n(&names, __ATOMIC_ACQUIRE); n; n = n->next)
        if (!strcmp(n->text, path))
            return n->text;
    if (!(n = take(sizeof *n + strlen(path) + 1)))
        return NULL;
    strcpy(n->text, path);
    n->next = __atomic_load_n(&names, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&names, &n->next, n, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return n->text;
}

struct source_line line_of(const void *pc)
{
    const struct source_line unknown = {NULL, 0, false};
    const struct module *m = module_of(pc);
    const ElfW(Sym) *f;
    char path[512];
    bool exact = false;
    const char *kept;
    int line;

    if (!m || !m->lines.line)
        return unknown;
    f = function_at(m, (uintptr_t)pc);
    line = dwarf_line_of(&m->lines, (uintptr_t)pc - m->bias, f ? f->st_value : 0, foreign, path, sizeof path, &exact);
    if (!line || !(kept = keep(path)))
        return unknown;
    return (struct source_line){kept, line, exact};
}

static int has_code(struct dl_phdr_info *info, size_t size, void *ctx)
{
    uintptr_t addr = *(uintptr_t *)ctx;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && addr - info->dlpi_addr - p->p_vaddr < p->p_memsz)
            return 1;
    }
    return 0;
}

bool is_code(uintptr_t addr)
{
    return addr >= 4096 && dl_iterate_phdr(has_code, &addr);
}

const void *own_return_address(const uintptr_t *sp, const uintptr_t *end)
{
    for (; sp < end; sp++) {
        uintptr_t word = *sp;
        struct source_line l;

        if (!is_code(word))
            continue;
        l = line_of((const void *)(word - 1));
        if (l.line && !foreign(l.file))
            return (const void *)word;
    }
    return NULL;
}
