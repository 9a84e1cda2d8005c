/* graph.h - graphs of the runtime, for proxies and for torch.cuda.CUDAGraph: see graph.c. Codes are CUDA's. */
#ifndef LITETORCH_GRAPH_H
#define LITETORCH_GRAPH_H

#include "front.h"

#ifdef __cplusplus
extern "C" {
#endif

struct front_graph;

/* From here on what this stream, and streams that wait for its events, are asked for goes into a graph. 900: another
 * stream captures already. */
int front_capture_begin(void *stream);
int front_capture_end(struct front_graph **ret); /* the caller's, front_graph_free */
bool front_captures(const void *stream);
bool front_capturing(void); /* any stream; torch's arithmetic is then refused as in a forward */

struct front_graph *front_graph_new(void);
struct front_graph *front_graph_copy(const struct front_graph *g);
void front_graph_free(struct front_graph *g); /* NULL is fine */
int front_graph_add(struct front_graph *g, const struct front_launch *l, size_t *ret_node);
int front_graph_set(struct front_graph *g, size_t node, const struct front_launch *l);
int front_graph_launch(const struct front_graph *g, void *stream);

#ifdef __cplusplus
}
#endif
#endif
