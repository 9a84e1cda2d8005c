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

/* True where section i exists; *ret is its header. */
static bool image_section(const struct image *im, const Elf64_Ehdr *h, uint64_t i, Elf64_Shdr *ret)
{
    if (i >= h->e_shnum)
        return false;
    memcpy(ret, (const char *)im->p + h->e_shoff + i * sizeof *ret, sizeof *ret);
    return ret->sh_type == SHT_NOBITS || image_within(im, ret->sh_offset, ret->sh_size);
}

/* ---- what a check is written down with ---- */

enum { NOTE_BYTES = 32, NOTE_TYPE_AT = 16, NOTE_LINES = 1 << 20, NOTE_COLUMNS = 1 << 12, NOTE_MOST = 12 };

/* -fsanitize=alignment notes 32 bytes for each access: file, line, column, type, alignment, kind of access. */
static bool image_is_note(const unsigned char *p)
{
    static const unsigned char pad[6];
    uint32_t line, column;

    memcpy(&line, p + 8, sizeof line);
    memcpy(&column, p + 12, sizeof column);
    return line < NOTE_LINES && column < NOTE_COLUMNS && p[24] <= NOTE_MOST && p[25] <= NOTE_MOST &&
           !memcmp(p + 26, pad, sizeof pad);
}

/* The bytes of a note at address at in memory, in a section of variables; NULL where there is none. */
static const unsigned char *image_note_at(const struct image *im, const Elf64_Ehdr *h, uint64_t at)
{
    Elf64_Shdr s;

    for (uint64_t i = 0; i < h->e_shnum; i++)
        if (image_section(im, h, i, &s) && s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_WRITE) &&
            at >= s.sh_addr && s.sh_size >= NOTE_BYTES && at - s.sh_addr <= s.sh_size - NOTE_BYTES)
            return (const unsigned char *)im->p + s.sh_offset + (at - s.sh_addr);
    return NULL;
}

/* Bytes of the compiler's notes: both of a note's addresses are relocated, one behind the other. A program's own
 * variables that look like it hold five free bytes of 32: less than its code can. */
static uint64_t image_notes(const struct image *im, const Elf64_Ehdr *h)
{
    uint64_t sum = 0;
    Elf64_Rela now, next;
    Elf64_Shdr s;

    for (uint64_t i = 0; i < h->e_shnum; i++) {
        if (!image_section(im, h, i, &s) || s.sh_type != SHT_RELA)
            continue;
        for (uint64_t k = 0; k + 1 < s.sh_size / sizeof now; k++) {
            const char *at = (const char *)im->p + s.sh_offset + k * sizeof now;
            const unsigned char *note;

            memcpy(&now, at, sizeof now);
            memcpy(&next, at + sizeof now, sizeof next);
            if (ELF64_R_TYPE(now.r_info) != R_X86_64_RELATIVE || next.r_info != now.r_info ||
                next.r_offset != now.r_offset + NOTE_TYPE_AT || now.r_offset % NOTE_BYTES)
                continue;
            note = image_note_at(im, h, now.r_offset);
            sum += note && image_is_note(note) ? NOTE_BYTES : 0;
        }
    }
    return sum;
}

uint64_t image_constants(const struct image *im)
{
    uint64_t sum = 0, notes;
    Elf64_Ehdr h;
    Elf64_Shdr names;

    if (!image_open_elf(im, &h, &names))
        return 0;
    for (int i = 0; i < h.e_shnum; i++)
        sum += image_section_data(im, &h, &names, i);
    notes = image_notes(im, &h);
    return sum > notes ? sum - notes : 0;
}

/* ---- variables ---- */

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
