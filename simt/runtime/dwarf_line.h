/* dwarf_line.h - the line table of an ELF file (DWARF 2 to 5, section 6.2 of the DWARF 5 standard), read directly. */
#ifndef SIMT_DWARF_LINE_H
#define SIMT_DWARF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sections {
    const uint8_t *line, *line_str, *str; /* .debug_line .debug_line_str .debug_str; NULL if absent */
    size_t n_line, n_line_str, n_str;
};

/* The row that covers address addr, looking at rows from address lo on (the start of its function). If that row's file
 * is foreign (a header of ours or the system's: inlined code), the closest row before it that is not foreign is taken.
 * Writes the file's path and whether the row itself was taken, and returns the line, 0 if there is none. */
int dwarf_line_of(const struct sections *s, uint64_t addr, uint64_t lo, bool (*foreign)(const char *path), char *path,
                  size_t n, bool *exact);

#endif
