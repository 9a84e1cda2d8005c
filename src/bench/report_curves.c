/* report_curves.c - training curves: one chart per quantity, the stages side by side on the x axis. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/report_parts.h"
#include "bench/svg.h"

enum which { SUPERVISED, RL };

static const struct chart {
    const char *title, *unit;
    const char *keys[3], *names[3];
    enum which which;
    bool percent, from_zero;
} charts[] = {
    {"Loss", "nats per token, supervised stages", {"loss", "val_loss"}, {"training", "validation"}, SUPERVISED, false,
     false},
    {"Reward", "mean of a step", {"reward"}, {"reward"}, RL, false, false},
    {"Pass rate", "of rollouts", {"pass_rate", "best_pass_rate"}, {"first turn", "any turn"}, RL, true, true},
    {"Entropy", "nats per token", {"entropy"}, {"entropy"}, RL, false, true},
    {"Turns", "per trajectory", {"turns_mean"}, {"turns"}, RL, false, false},
    {"Masked share", "responses left out by MirrorPop", {"masked_share"}, {"masked"}, RL, true, true},
    {"Off-policy measure", "mean over tokens", {"off_policy_mirror", "off_policy_signed"},
     {"mean |log ratio|", "signed mean"}, RL,
     false, false},
    {"Response length", "tokens", {"response_length"}, {"length"}, RL, false, true},
    {"Clipped", "share", {"clip_ratio", "length_clip_ratio"}, {"ratio clipped", "length limit"}, RL, true, true},
    {"Groups", "prompts of a step", {"groups_mixed", "groups_failed"}, {"mixed: give a gradient", "all failed"}, RL,
     false, true},
    {"Gradient norm", "before clipping, supervised", {"grad_norm"}, {"norm"}, SUPERVISED, false, true},
    {"Gradient norm", "before clipping, RL", {"grad_norm"}, {"norm"}, RL, false, true},
    {"Time of a step", "seconds", {"sampling_s", "judging_s", "learning_s"}, {"sampling", "judging alone", "learning"},
     RL, false, true},
    {"KL", "to the starting model", {"kl"}, {"kl"}, RL, false, true},
};

struct points {
    double *x[3], *y[3];
    int n[3];
    struct svg_divider stages[REPORT_MAX_STAGES];
    int n_stages;
};

static bool report_curves_wanted(const json_t *line, enum which which)
{
    bool rl = json_object_get(line, "reward") != NULL;

    return (which == RL) == rl;
}

static bool report_curves_has_key(const struct chart *c, const json_t *line)
{
    for (int k = 0; k < 3 && c->keys[k]; k++)
        if (json_object_get(line, c->keys[k]))
            return true;
    return false;
}

/* x counts on from stage to stage; a stage starts where the one before it ended. */
static void report_curves_collect(const struct chart *c, const json_t *lines, struct points *p)
{
    const char *stage = "";
    double offset = 0, last = 0;
    const json_t *line;
    size_t i;

    json_array_foreach(lines, i, line) {
        const char *name = json_str(line, "stage", "");
        if (!report_curves_wanted(line, c->which) || !report_curves_has_key(c, line))
            continue;
        if (strcmp(name, stage) && p->n_stages < REPORT_MAX_STAGES) {
            stage = name;
            offset = last;
            p->stages[p->n_stages++] = (struct svg_divider){offset, name};
        }
        last = offset + json_f64(line, "step", 0);
        for (int k = 0; k < 3 && c->keys[k]; k++) {
            const json_t *v = json_object_get(line, c->keys[k]);
            if (!v)
                continue;
            p->x[k][p->n[k]] = last;
            p->y[k][p->n[k]++] = json_num_value(v);
        }
    }
}

static bool report_curves_all_zero(const struct points *p)
{
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < p->n[k]; i++)
            if (p->y[k][i] != 0)
                return false;
    return true;
}

static bool report_curves_draw(struct buf *out, const struct chart *c, const struct points *p)
{
    struct svg_lines l = {.title = c->title, .unit = c->unit, .percent = c->percent, .from_zero = c->from_zero,
                          .dividers = p->stages, .n_dividers = p->n_stages};

    for (int k = 0; k < 3 && c->keys[k]; k++)
        if (p->n[k])
            l.series[l.n_series++] = (struct svg_series){c->names[k], p->x[k], p->y[k], p->n[k]};
    if (l.n_series == 0 || (p->n[0] < 2 && p->n[1] < 2) ||
        (report_curves_all_zero(p) && strcmp(c->title, "Masked share")))
        return false;
    svg_lines(out, &l);
    return true;
}

void report_curves(struct buf *out, const struct report *r)
{
    size_t n = json_array_size(r->metrics);
    struct buf body;
    int drawn = 0;

    if (n == 0)
        return;
    buf_init(&body, BUF_MAX_TEXT);
    for (size_t k = 0; k < sizeof charts / sizeof *charts; k++) {
        struct points p = {0};
        for (int j = 0; j < 3; j++) {
            p.x[j] = xmalloc(n * sizeof(double));
            p.y[j] = xmalloc(n * sizeof(double));
        }
        report_curves_collect(&charts[k], r->metrics, &p);
        drawn += report_curves_draw(&body, &charts[k], &p);
        for (int j = 0; j < 3; j++) {
            free(p.x[j]);
            free(p.y[j]);
        }
    }
    if (drawn) {
        buf_adds(out, "<section><h2>Training</h2><p class=note>Steps from left to right; each stage starts at its "
                      "name. Pale: values; "
                      "strong: moving mean.</p><div class=charts>");
        buf_add(out, body.p, body.n);
        buf_adds(out, "</div></section>\n");
    }
    buf_free(&body);
}
