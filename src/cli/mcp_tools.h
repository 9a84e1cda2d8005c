/* mcp_tools.h - the tools of 'musacoder mcp', one row each: name, words for the model, schema, and two functions. */
#ifndef MC_MCP_TOOLS_H
#define MC_MCP_TOOLS_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define MCP_WORDS_MAX 32
#define MCP_PROFILE_MAX ((size_t)1 << 20) /* bytes of a profiler's table */
#define MCP_RECORD_MAX ((size_t)64 << 20) /* bytes that a tool may print */

/* What a call becomes: the words of a child of this binary, and its standard input. */
struct mcp_plan {
    const char *root;   /* files of arguments lie below it; NULL: none may be named */
    const json_t *args; /* as mcp_check_args let them pass */
    const char *dir;    /* private to the call */
    struct arena mem;   /* of all words */
    char *argv[MCP_WORDS_MAX + 1];
    int n;
    const char *in; /* NULL: none */
};

struct mcp_tool {
    const char *name, *about, *schema; /* schema: JSON text, an object of flat properties */
    /* Adds the child's words, writes its files into p->dir. ERR_INPUT: the arguments are wrong. */
    int (*plan)(struct mcp_plan *p, struct err *e);
    /* Says what the child printed, an object; may add to it. dir as in the plan. */
    void (*words)(const char *dir, json_t *record, struct buf *to);
};

extern const struct mcp_tool mcp_tools[]; /* ends with a NULL name */

const struct mcp_tool *mcp_find_tool(const char *name); /* NULL: none */
/* ERR_INPUT unless args is an object that has what the schema requires, nothing else, in its types and words. */
int mcp_check_args(const struct mcp_tool *t, const json_t *args, struct err *e);
void mcp_add_word(struct mcp_plan *p, const char *word); /* copies it */

#endif
