/* musa.h - translates sources between CUDA and MUSA: C++ sources, and Python programs with C++ sources in their
 * strings.
 *
 * Works on tokens: comments, messages and a program's own names (int cu, CHECK_CUDA, relu_cuda) stay as they
 * are. What has no counterpart on the target is refused by line and reason, and then there is no output: nothing
 * is half translated. Names come from one table (musa_table.h); each row says how well it is known:
 *   V  code that the vendor or an upstream project compiles against the real SDK
 *   D  the vendor's documentation
 *   T  the vendor's translation tables; nothing proves that the name exists in the SDK
 *   I  inferred from rows of the same family
 * Translating back gives the same bytes unless the result says 'lossy'. Depends on base only; pure: text in,
 * text out. */
#ifndef MC_TRANSLATE_MUSA_H
#define MC_TRANSLATE_MUSA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum musa_to { TO_MUSA, TO_CUDA };
enum musa_lang { MUSA_CXX, MUSA_PYTHON };

/* What of the target decides whether a program fits. A zero size or arch is not checked. */
struct musa_target {
    const char *name;      /* for messages */
    int arch;              /* __MUSA_ARCH__: 210, 220, 310 */
    int64_t shared_bytes;  /* a block's shared memory, opted in */
    int64_t const_bytes;   /* constant memory of a program */
    bool cooperative;      /* grid-wide synchronisation is known to work */
};

enum musa_note_kind {
    MUSA_REFUSED, /* no counterpart: there is no output */
    MUSA_LOSSY,   /* translated, but translating back gives other bytes */
    MUSA_ADVICE   /* translated; a reader should look at it */
};

struct musa_note {
    enum musa_note_kind kind;
    uint32_t line;     /* 1-based, of the source */
    const char *rule;  /* static: "ptx", "cluster", ... */
    char evidence;     /* V D T I, or '-' where nothing was looked up */
    char *text;        /* one line, lower case, no full stop */
};

struct musa_use { /* how often a row or prefix was used */
    const char *from, *to; /* static */
    char evidence;
    size_t n;
    uint32_t line; /* of the first */
};

struct musa_result {
    struct buf out; /* empty if refused, unless partial */
    bool refused, lossy;
    size_t edits;
    struct musa_note *notes;
    size_t n_notes;
    struct musa_use *uses;
    size_t n_uses;
};

/* Names that files of one program declare: they stay in all of them. Zeroed before the first musa_names_add. */
struct musa_names {
    char **v; /* owned */
    size_t n, cap;
};

struct musa_options {
    enum musa_to to;
    enum musa_lang lang;
    const struct musa_target *target; /* NULL: sizes and generations are not checked */
    const struct musa_names *own;     /* names that other files of the program declare; NULL: none */
    bool device_only;                 /* Python: devices, modules and attributes; extensions and C++ stay as they are */
    bool partial;                     /* write what can be translated of a refused source too */
};

/* .py is Python, everything else C++. */
enum musa_lang musa_lang_of(const char *filename);

void musa_names_add(struct musa_names *names, const char *src, size_t n, enum musa_lang lang);
void musa_names_free(struct musa_names *names);

/* Appends '#define MUSA_NAME CUDA_NAME' for each name of CUDA's in a C++ text, in alphabetical order. A function-like
 * macro with '(...)' is a vendor's function that litetorch refuses by name; its alias names MUSA's. */
void musa_aliases(const char *text, size_t n, struct buf *out);

/* Fails (ERR_INPUT) only for a NUL byte or more than 64 MiB; a refusal is a result. ret is freed by musa_result_free,
 * after a failure too. */
int musa_translate(const char *src, size_t n, const struct musa_options *o, struct musa_result *ret, struct err *e);
void musa_result_free(struct musa_result *r);

#endif
