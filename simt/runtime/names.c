/* names.c - see names.h. A linear search: libraries of candidates have some hundred symbols, and answers are kept. */
#include "names.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool within(const struct names *n, uint64_t at, uint64_t bytes)
{
    return at <= n->n_file && bytes <= n->n_file - at;
}

static bool find_table(struct names *n)
{
    const Elf64_Ehdr *h = (const void *)n->file;
    const Elf64_Shdr *s, *text;

    if (!within(n, 0, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_shentsize != sizeof *s || !within(n, h->e_shoff, (uint64_t)h->e_shnum * sizeof *s))
        return false;
    s = (const void *)(n->file + h->e_shoff);
    for (int i = 0; i < h->e_shnum; i++) {
        if (s[i].sh_type != SHT_SYMTAB || s[i].sh_link >= h->e_shnum)
            continue;
        text = &s[s[i].sh_link];
        if (!within(n, s[i].sh_offset, s[i].sh_size) || !within(n, text->sh_offset, text->sh_size) || !text->sh_size ||
            n->file[text->sh_offset + text->sh_size - 1])
            return false;
        n->syms = n->file + s[i].sh_offset;
        n->n_syms = s[i].sh_size / sizeof(Elf64_Sym);
        n->text = (const char *)n->file + text->sh_offset;
        n->n_text = text->sh_size;
        return true;
    }
    return false;
}

bool names_open(const char *path, struct names *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *p = MAP_FAILED;

    *ret = (struct names){0};
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return false;
    ret->file = p;
    ret->n_file = (size_t)st.st_size;
    if (find_table(ret))
        return true;
    names_close(ret);
    return false;
}

void names_close(struct names *n)
{
    if (n->file)
        munmap((void *)(uintptr_t)n->file, n->n_file);
    *n = (struct names){0};
}

static const Elf64_Sym *symbol(const struct names *n, size_t i, bool function)
{
    const Elf64_Sym *s = (const Elf64_Sym *)n->syms + i;
    int type = ELF64_ST_TYPE(s->st_info);

    return s->st_shndx != SHN_UNDEF && type == (function ? STT_FUNC : STT_OBJECT) && s->st_name < n->n_text ? s : NULL;
}

bool names_find(const struct names *n, const char *name, bool function, uint64_t *ret_at, uint64_t *ret_bytes)
{
    for (size_t i = 0; i < n->n_syms; i++) {
        const Elf64_Sym *s = symbol(n, i, function);

        if (!s || strcmp(n->text + s->st_name, name))
            continue;
        *ret_at = s->st_value;
        if (ret_bytes)
            *ret_bytes = s->st_size;
        return true;
    }
    return false;
}

bool names_refers(const struct names *n, const char *prefix)
{
    for (size_t i = 0; i < n->n_syms; i++) {
        const Elf64_Sym *s = (const Elf64_Sym *)n->syms + i;

        if (s->st_shndx == SHN_UNDEF && s->st_name < n->n_text &&
            !strncmp(n->text + s->st_name, prefix, strlen(prefix)))
            return true;
    }
    return false;
}

const char *names_at(const struct names *n, uint64_t at, bool function, uint64_t *ret_start, uint64_t *ret_bytes)
{
    for (size_t i = 0; i < n->n_syms; i++) {
        const Elf64_Sym *s = symbol(n, i, function);

        if (!s || at < s->st_value || at >= s->st_value + (s->st_size ? s->st_size : 1))
            continue;
        *ret_start = s->st_value;
        if (ret_bytes)
            *ret_bytes = s->st_size;
        return n->text + s->st_name;
    }
    return NULL;
}
