/* ptx.h - inline PTX as C++: what the emulator runs in place of an asm statement.
 *
 * An instruction becomes a call into simt/include/simt/ptx.h, by a table of instructions; local registers become
 * variables, predicates conditions, labels labels. A statement that holds an instruction outside of the table becomes
 * a call that names it: the program builds, and is told 'unsupported' if it gets there.
 * Source of meanings: NVIDIA, "Parallel Thread Execution ISA", chapters on the instruction set. */
#ifndef MC_TRANSLATE_PTX_H
#define MC_TRANSLATE_PTX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ptx_operand {
    const char *name; /* of "[name]", not terminated; NULL without */
    size_t n_name;
    const char *text; /* the C++ expression, borrowed, not terminated */
    size_t n_text;
    bool out;
    int tied;         /* index of the output that it starts as, or -1 */
};

/* Appends a C++ statement without its semicolon. text: the template, unescaped; extended: '%' starts an operand, '%%'
 * is a '%'. The statement holds no line break unless an operand's text does. */
void ptx_translate(const char *text, bool extended, const struct ptx_operand *operands, size_t n, struct buf *out);

/* The same into calls of litetorch/ptx_plain.h, code that every device runs. The caller binds the operands' values
 * between head and tail: for each, in order, what ptx_bind says goes around its expression. False, and nothing in
 * head and tail, where the statement holds what that header has not: failed names the first such instruction. */
bool ptx_plain(const char *text, bool extended, const struct ptx_operand *operands, size_t n, struct buf *head,
               struct buf *tail, char *failed, size_t n_failed);
void ptx_bind(const struct ptx_operand *operands, size_t i, bool plain, struct buf *before, struct buf *behind);

#endif
