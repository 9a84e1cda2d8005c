/* tmpl.h - kernel templates: one row per strategy, grouped by what the graph's anchor asks for. A strategy is a really
 * different way to divide the work; a schedule is its numbers (block size, grid).
 *
 * Keys that a template may use (text.h says how they expand):
 *   $ptrs       "const float* x, const float* y, float* o"     $args   the same as launch arguments
 *   $prefn      the prologue as "__device__ float pre(float x0)", empty if there is none; $P(e) applies it
 *   $pre $post  prologue and epilogue as statements       $B $B1 $H  block size, minus one, half; $G grid
 *   $v $out $last   names of the anchor's input, its result, the graph's result (x0 is the loaded element, x1 the
 *                   first node's value and so on, as in the task: translation is line by line)
 *   $init $acc $fin $apply, $M(a, b), $n      the anchor's columns of the registry
 *   $Np $Na     ", int N" and ", x.size(1)" where operands broadcast, else empty
 *   $R $C       rows and columns of a copy's output; $A $Y: element of the left and right matrix at (r, q), (q, j)
 *   $up $uload $ux..$uw $ui     second operand of the vectorised template
 * Names in CUDA text: x y z w b c inputs, o output, k kernels, x0 x1.. values, i flat index, r row, j column,
 * t thread; the style pass renames them afterwards. */
#ifndef MC_SYNTH_TMPL_H
#define MC_SYNTH_TMPL_H

#include "synth/graph.h"

enum tmpl_need {
    NEED_PLAIN_OPERANDS = 1, /* at most one extra input, no broadcasting */
    NEED_SUM = 2,            /* the merge is addition (atomicAdd) and there is no epilogue */
    NEED_TRANSPOSE = 4
};

struct tmpl {
    const char *strategy;
    unsigned needs;
    int blocks[3]; /* choices for $B, the first is the plain style's; 0 ends */
    const char *index[3]; /* how a full, row and column operand is indexed */
    const char *kernel, *host;
};

/* The templates that fit the graph, in table order. Returns how many were written to ret (at most max). */
int tmpl_for(const struct graph *g, const struct tmpl **ret, int max);
/* All templates of an anchor group; the list ends with a NULL strategy. */
const struct tmpl *tmpl_group(enum anchor a);

#endif
