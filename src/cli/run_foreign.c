/* run_foreign.c - what lies in a stage's folder and is none of its files; see run.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/listing.h"
#include "base/mem.h"
#include "cli/run.h"

/* What stages write and no listing need name: work that goes on, and what a stop leaves of it. */
static const char *const run_stage_names[] = {
    "lock", "options.json", "settings.json", "report.html", "*.log", "metrics.jsonl", "samples.jsonl",
    "verdicts.jsonl", "verdicts.log.jsonl", "groups.jsonl", "shrunk.jsonl", "traced.jsonl", "weights",
    "checkpoint/latest", "checkpoint/unfinished*", "checkpoint/[0-9]*", "average/[0-9]*.safetensors",
    "chunks/[0-9]*.json", "rollouts/[0-9]*.jsonl", "model", "model.unfinished", "model.old.*", "data/*.jsonl",
    "stats/*.json", "plots/*.svg",
};

/* Does the name, or a folder above it, fit the pattern? */
static bool run_name_fits(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
}

/* 'first' holds the training before a harvest, 'harvest' what that collects, 'bench' what a diagnosis asks: each is as
 * a stage's folder. */
static bool run_stage_writes(const char *name)
{
    static const char *const inner[] = {"first/", "harvest/", "bench/"};

    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (!strncmp(name, inner[i], strlen(inner[i])))
            return run_stage_writes(name + strlen(inner[i]));
    for (size_t i = 0; i < sizeof run_stage_names / sizeof *run_stage_names; i++)
        if (run_name_fits(run_stage_names[i], name))
            return true;
    return false;
}

char *run_stage_foreign(const char *dir)
{
    static const char *const claims[] = {LISTING_NAME, "options.json", "settings.json"};
    bool told = false;

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        char *claim = path_join(dir, claims[i]);

        told |= file_exists(claim);
        free(claim);
    }
    return told ? listing_find_foreign(dir, run_stage_writes) : NULL;
}
