/* asm.h - an asm statement of GNU's form in a token list: where it ends, its template, its operands. */
#ifndef MC_TRANSLATE_ASM_H
#define MC_TRANSLATE_ASM_H

#include "translate/lexer.h"
#include "translate/ptx.h"

enum { ASM_OPERANDS = 64 };

struct asm_statement {
    size_t open, close;
    size_t section[4]; /* tokens where outputs, inputs and clobbers start, and the end */
    int n_sections;
};

/* How the caller finds the bracket that closes the one at token 'open'; the list's length if there is none. */
struct asm_mates {
    size_t (*close_of)(const void *ctx, size_t open);
    const void *ctx;
};

bool asm_find(const struct toks *t, const struct asm_mates *m, size_t i, struct asm_statement *a);
/* The template's text; false where it is not made of string literals alone. */
bool asm_text(const struct toks *t, const struct asm_statement *a, struct buf *out);
/* The operands of outputs and inputs, in v[ASM_OPERANDS]; -1 where they are not understood. */
int asm_operands(const struct toks *t, const struct asm_mates *m, const struct asm_statement *a, struct ptx_operand *v);
/* False for an empty template, which tells the compiler something, and for 'int f() asm("name")'. */
bool asm_is_code(const struct asm_statement *a, const char *text);

#endif
