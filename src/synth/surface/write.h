/* write.h - a task in the making as two files: the reference, and the program. */
#ifndef MC_SYNTH_SURFACE_WRITE_H
#define MC_SYNTH_SURFACE_WRITE_H

#include "synth/surface/making.h"

/* Caller frees. The program keeps the constructor's and forward's very arguments. */
char *write_task(struct making *m);
char *write_program(struct making *m);

#endif
