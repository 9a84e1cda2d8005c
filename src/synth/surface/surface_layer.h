/* surface_layer.h - layers drawn onto a task in the making: attributes, shapes, the line of the reference, the
 * program's. / */
#ifndef MC_SYNTH_SURFACE_LAYER_H
#define MC_SYNTH_SURFACE_LAYER_H

#include "synth/surface/making.h"

/* Adds a layer to the current value, or makes the inputs that it wants where there is none. false if the current
 * shape does not suit; the task is then unchanged. */
bool layer_add(struct making *m, const struct kind *k);
/* Puts the current value of a chain aside: a residual may add it later. */
void layer_save(struct making *m);
/* Puts a second input of the current value's shape aside; false: there is no room for one. */
bool layer_save_input(struct making *m);
/* Ends the run of maps that is being fused. */
void layer_flush(struct making *m);

#endif
