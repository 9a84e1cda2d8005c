/* exec_ask.h - within the judge's side: one question to the executor. */
#ifndef MC_EXEC_EXEC_ASK_H
#define MC_EXEC_EXEC_ASK_H

#include "exec/ctl.h"
#include "exec/exec.h"

int exec_ask(struct executor *x, const struct ctl_request *q, int fd, struct ctl_reply *r, struct err *e);
uint8_t *exec_bulk(struct executor *x);

#endif
