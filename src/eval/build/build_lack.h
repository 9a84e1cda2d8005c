/* build_lack.h - whose fault is it that a build failed? A name or a header that PyTorch or the CUDA toolkit has, and
 * that our headers do not have, is nobody's: the build "lacks" it. The lists are in litetorch/names. */
#ifndef MC_EVAL_BUILD_LACK_H
#define MC_EVAL_BUILD_LACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls f once for each name that a compiler's log (g++'s or nvcc's words) misses and that is on a list. */
void build_lack_names(const char *log, void (*f)(const char *name, void *ctx), void *ctx);
/* Is the header 'name', as an #include spells it, one of the toolkit's or PyTorch's? */
bool build_lack_header(const char *name);

#endif
