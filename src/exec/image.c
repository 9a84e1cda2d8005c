/* image.c - what data an image brings along, and its variables: sections and symbols of an ELF file. */
#include <elf.h>
#include <string.h>

#include "exec/player.h"

/* Variables of a program and its constant memory; what the compiler makes for itself (arguments, literals) is not. */
static bool image_holds_data(const char *name)
{
    static const char *const names[] = {".data", ".rodata", ".nv.global.init", ".nv.constant3"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(name, names[i], strlen(names[i])) && !strstr(name, ".rel"))
            return true;
    return false;
}

static bool image_within(const struct image *im, uint64_t at, uint64_t n)
{
    return at <= im->n && n <= im->n - at;
}

/* Address in the image of section i's bytes; 0: it has none. */
static uint64_t image_section_data(const struct image *im, const Elf64_Ehdr *h, const Elf64_Shdr *names, int i)
{
    const char *p = im->p;
    Elf64_Shdr s;

    memcpy(&s, p + h->e_shoff + (uint64_t)i * sizeof s, sizeof s);
    if (s.sh_type != SHT_PROGBITS || s.sh_name >= names->sh_size)
        return 0;
    return image_holds_data(p + names->sh_offset + s.sh_name) ? s.sh_size : 0;
}

/* The file's head and the section of its sections' names; false where it is no ELF file that holds together. */
static bool image_open_elf(const struct image *im, Elf64_Ehdr *h, Elf64_Shdr *names)
{
    if (im->n < sizeof *h)
        return false;
    memcpy(h, im->p, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_shentsize != sizeof *names || h->e_shstrndx >= h->e_shnum ||
        !image_within(im, h->e_shoff, (uint64_t)h->e_shnum * sizeof *names))
        return false;
    memcpy(names, (const char *)im->p + h->e_shoff + (uint64_t)h->e_shstrndx * sizeof *names, sizeof *names);
    return image_within(im, names->sh_offset, names->sh_size) && names->sh_size &&
           !((const char *)im->p)[names->sh_offset + names->sh_size - 1];
}

uint64_t image_constants(const struct image *im)
{
    Elf64_Ehdr h;
    Elf64_Shdr names;
    uint64_t sum = 0;

    if (!image_open_elf(im, &h, &names))
        return 0;
    for (int i = 0; i < h.e_shnum; i++)
        sum += image_section_data(im, &h, &names, i);
    return sum;
}

/* ---- variables ---- */

/* True where section i exists and is a table of symbols; *ret is its header. */
static bool image_section(const struct image *im, const Elf64_Ehdr *h, uint64_t i, Elf64_Shdr *ret)
{
    if (i >= h->e_shnum)
        return false;
    memcpy(ret, (const char *)im->p + h->e_shoff + i * sizeof *ret, sizeof *ret);
    return ret->sh_type == SHT_NOBITS || image_within(im, ret->sh_offset, ret->sh_size);
}

/* Sections of variables: the toolkit's, and on 'sim' those of a shared object. */
static bool image_is_writable(const struct image *im, const Elf64_Ehdr *h, const Elf64_Shdr *names, uint64_t i)
{
    static const char *const known[] = {".nv.global", ".data", ".bss"};
    const char *p = im->p;
    Elf64_Shdr s;

    if (!image_section(im, h, i, &s) || s.sh_name >= names->sh_size)
        return false;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (!strncmp(p + names->sh_offset + s.sh_name, known[k], strlen(known[k])))
            return true;
    return false;
}

void image_variables(const struct image *im, void (*f)(void *ctx, const char *name), void *ctx)
{
    Elf64_Shdr names, table, text;
    Elf64_Ehdr h;
    Elf64_Sym sym;

    if (!image_open_elf(im, &h, &names))
        return;
    for (uint64_t i = 0; i < h.e_shnum; i++) {
        if (!image_section(im, &h, i, &table) || table.sh_type != SHT_SYMTAB ||
            !image_section(im, &h, table.sh_link, &text) ||
            text.sh_type != SHT_STRTAB || !text.sh_size || ((const char *)im->p)[text.sh_offset + text.sh_size - 1])
            continue;
        for (uint64_t k = 0; k < table.sh_size / sizeof sym; k++) {
            memcpy(&sym, (const char *)im->p + table.sh_offset + k * sizeof sym, sizeof sym);
            if (ELF64_ST_TYPE(sym.st_info) == STT_OBJECT && sym.st_size && sym.st_name < text.sh_size &&
                image_is_writable(im, &h, &names, sym.st_shndx))
                f(ctx, (const char *)im->p + text.sh_offset + sym.st_name);
        }
    }
}
