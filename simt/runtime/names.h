/* names.h - the symbol table of a library's file, local symbols included: names to offsets, and back. */
#ifndef SIMT_NAMES_H
#define SIMT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names {
    const uint8_t *file; /* mapped */
    size_t n_file;
    const void *syms;    /* Elf64_Sym[n_syms] */
    size_t n_syms;
    const char *text;
    size_t n_text;
};

/* Maps the file. False if it is no ELF library with a symbol table. */
bool names_open(const char *path, struct names *ret);
void names_close(struct names *n);
/* Offset from the library's base, and bytes. function: of code, else of data. False if there is no such symbol. */
bool names_find(const struct names *n, const char *name, bool function, uint64_t *ret_at, uint64_t *ret_bytes);
/* Is there a symbol that begins so and is defined elsewhere? */
bool names_refers(const struct names *n, const char *prefix);
/* The symbol that holds offset 'at', or NULL; *ret_start is its own offset. */
const char *names_at(const struct names *n, uint64_t at, bool function, uint64_t *ret_start, uint64_t *ret_bytes);

#endif
