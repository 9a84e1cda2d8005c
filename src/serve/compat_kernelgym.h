/* compat_kernelgym.h - requests and results as KernelGYM's clients know them. Pure functions: JSON in, JSON out. */
#ifndef MC_SERVE_COMPAT_KERNELGYM_H
#define MC_SERVE_COMPAT_KERNELGYM_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct kg_request {
    const char *task_id, *reference; /* borrowed from the body */
    char *program;                   /* owned: a Python file */
    double timeout_s;
    int priority; /* -1, 0, 1 */
    bool force_refresh;
};

/* Checks a request and makes the program: text of the sections '### CUDA_KERNELS', '### APPLY_BINDINGS',
 * '### MODEL_NEW' becomes a Python file with load_inline. ERR_INPUT: what is wrong. */
int kg_request_read(const json_t *body, struct kg_request *ret, struct err *e);
void kg_request_free(struct kg_request *r);

/* A reference for a judge without a GPU, owned: KernelGYM's make their inputs with device="cuda", and our judge binds
 * them on the device itself. Such arguments become device="cpu"; everything else stays as it is. */
char *kg_reference_on_host(const char *code);

/* New: every field that their clients read, none of them null but error_message and error_code. state: of enum
 * queue_state; v: the verdict, or NULL. */
json_t *kg_result(const char *task_id, int state, const json_t *v, const char *failure);
/* New: {"task_id","status","progress",...,"error_message"}. */
json_t *kg_status(const char *task_id, int state, const json_t *v, const char *failure);
/* Could the judge say nothing of the program? Then their clients are told to come again. */
bool kg_unscored(int state, const json_t *v);

#endif
