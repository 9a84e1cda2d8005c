/* musa_table.h - what CUDA's names are called on MUSA: rows, prefix rules, and names that have no counterpart.
 * Private to src/translate; musa.h explains the evidence letters. */
#ifndef MC_TRANSLATE_MUSA_TABLE_H
#define MC_TRANSLATE_MUSA_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum musa_row_kind {
    ROW_INCLUDE, /* the path of an #include, and file names in strings */
    ROW_NAME,    /* an identifier of C++ */
    ROW_MEMBER,  /* an identifier behind '.' or '->' */
    ROW_PYTHON,  /* an attribute or imported name in Python */
    ROW_KEYWORD, /* a keyword argument of load_inline and its kin, or the same word as a whole string */
    ROW_STRING,  /* a whole string of Python: a library, a tool's variable */
    ROW_FLAG     /* a whole compiler flag */
};

struct musa_row {
    enum musa_row_kind kind;
    const char *cuda, *musa;
    char evidence;
    bool one_way; /* another row owns the way back: lossy */
};

/* Identifiers that begin so, where 'next' says what may follow: 'A' an upper-case letter, 'a' a lower-case letter,
 * '*' anything, 'D' one of the driver API's families. */
struct musa_prefix {
    const char *cuda, *musa;
    char next, evidence;
};

/* A name without a counterpart below a generation. */
struct musa_lack {
    const char *name;  /* ends with '*': a prefix */
    int arch;          /* __MUSA_ARCH__ that has it; 0: none */
    const char *rule;
    const char *why;
};

extern const struct musa_row musa_rows[];     /* ends with cuda == NULL */
extern const struct musa_prefix musa_prefixes[];
extern const struct musa_lack musa_lacks[];   /* C++ identifiers of the CUDA side */
extern const struct musa_lack musa_py_lacks[]; /* modules of Python */
extern const struct musa_lack musa_include_lacks[]; /* headers; names are prefixes of paths */

/* The row of that kind whose source side is the word; NULL if there is none. */
const struct musa_row *musa_row_find(enum musa_row_kind kind, const char *word, size_t n, bool to_cuda);
/* The prefix rule that the identifier falls under, or NULL. *ret_skip: bytes of the prefix. */
const struct musa_prefix *musa_prefix_find(const char *word, size_t n, bool to_cuda, size_t *ret_skip);
const struct musa_lack *musa_lack_find(const struct musa_lack *rows, const char *word, size_t n);
size_t musa_row_count(void);

#endif
