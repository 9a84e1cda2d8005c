/* image.c - how much initialised data an image brings along: the sections of an ELF file by name. */
#include <elf.h>
#include <string.h>

#include "exec/player.h"

/* Variables of a program and its constant memory; what the compiler makes for itself (arguments, literals) is not. */
static bool holds_data(const char *name)
{
    static const char *const names[] = {".data", ".rodata", ".nv.global.init", ".nv.constant3"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(name, names[i], strlen(names[i])) && !strstr(name, ".rel"))
            return true;
    return false;
}

static bool within(const struct image *im, uint64_t at, uint64_t n)
{
    return at <= im->n && n <= im->n - at;
}

static uint64_t section_data(const struct image *im, const Elf64_Ehdr *h, const Elf64_Shdr *names, int i)
{
    const char *p = im->p;
    Elf64_Shdr s;

    memcpy(&s, p + h->e_shoff + (uint64_t)i * sizeof s, sizeof s);
    if (s.sh_type != SHT_PROGBITS || s.sh_name >= names->sh_size)
        return 0;
    return holds_data(p + names->sh_offset + s.sh_name) ? s.sh_size : 0;
}

uint64_t image_constants(const struct image *im)
{
    Elf64_Ehdr h;
    Elf64_Shdr names;
    uint64_t sum = 0;

    if (im->n < sizeof h)
        return 0;
    memcpy(&h, im->p, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_shentsize != sizeof names || h.e_shstrndx >= h.e_shnum ||
        !within(im, h.e_shoff, (uint64_t)h.e_shnum * sizeof names))
        return 0;
    memcpy(&names, (const char *)im->p + h.e_shoff + (uint64_t)h.e_shstrndx * sizeof names, sizeof names);
    if (!within(im, names.sh_offset, names.sh_size) || !names.sh_size ||
        ((const char *)im->p)[names.sh_offset + names.sh_size - 1])
        return 0;
    for (int i = 0; i < h.e_shnum; i++)
        sum += section_data(im, &h, &names, i);
    return sum;
}
