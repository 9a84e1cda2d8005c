/* player.h - carries out entries of a log on a device: the same code live and in a replay. */
#ifndef MC_EXEC_PLAYER_H
#define MC_EXEC_PLAYER_H

#include "exec/exec_backend.h"
#include "exec/context.h"
#include "exec/exec_log.h"

struct image { /* what a compile worker wrote; owned by the executor's program */
    uint8_t sha256[32];
    void *p;
    size_t n;
};
struct images {
    struct image *v;
    size_t n;
};
/* Bytes of initialised data (variables, constant memory) that it holds: a table could be there. What the compiler notes
 * of checked accesses is no data of the program. */
uint64_t image_constants(const struct image *im);
/* f for each variable of the program that kernels can write: by its symbol's name. */
void image_variables(const struct image *im, void (*f)(void *ctx, const char *name), void *ctx);
void images_clear(struct images *all);
const struct image *images_find(const struct images *all, const uint8_t sha256[32]);

struct player {
    const struct backend_ops *ops;
    struct exec_backend *b;
    const struct images *images;
    backend_handle modules[CONTEXT_MODULES], functions[CONTEXT_FUNCTIONS], streams[CONTEXT_STREAMS];
    backend_handle *events; /* CONTEXT_EVENTS */
    uint32_t n_streams;     /* created so far */
    uint64_t high;          /* bytes behind WIRE_BASE that plays of this recording have needed at most */
    uint64_t shared_from;   /* addresses from here on are the judge's: mapped already, never poisoned */
    uint8_t poison;         /* fills memory before it is used */
    bool poisons;           /* false while timing */
    bool drains;            /* synchronisations, allocations and frees wait as they would without an executor */
    bool no_launches;
    bool waited;            /* an entry waited for the device: what is answered next tells when it was done */
    int error;              /* the first code that is not WIRE_OK */
    char why[256];
};

int player_init(struct player *p, const struct backend_ops *ops, struct exec_backend *b, const struct images *images);
/* Forgets all handles and starts the device afresh. */
int player_fresh(struct player *p, struct err *e);
/* From here on memory is filled with this byte before it is used: allocations, and shared memory on sim. */
void player_poison(struct player *p, uint8_t byte);
/* One entry. Marks and bindings do nothing here. A code that is not WIRE_OK stays in p->error; later entries do
 * nothing. */
int player_play(struct player *p, const struct log_entry *en);

/* What live requests ask for and replays repeat; id: the recording's number for it. */
int player_module(struct player *p, uint32_t id, const uint8_t sha256[32]);
int player_function(struct player *p, uint32_t id, uint32_t module, const char *name, size_t n,
                    struct wire_function_info *info);
int player_symbol(struct player *p, uint32_t module, const char *name, size_t n, uint64_t *ret_addr,
                  uint64_t *ret_bytes);
backend_handle player_stream(const struct player *p, uint32_t stream);
int player_sync(struct player *p);

#endif
