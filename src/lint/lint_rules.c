/* lint_rules.c - what lint's numbers mean: one function per group of rules, one row per rule with what to do about
 * it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "lint/lint_state.h"

#define NO_EFFECT_INPUT 1e-6     /* of the largest output: an exchanged input that moves it less has no say */
#define NO_EFFECT_PARAMETER 1e-5 /* the same; a bias before a normalisation leaves rounding behind */
#define NEARLY_CONSTANT 0.99     /* share of the commonest value */
#define TF32_SHARE 0.5           /* of the tolerance, used up by the reference alone */
#define INT32_LIMIT 2147483647LL

const struct lint_rule lint_rules[] = {
    {"broken", "the task does not run", "repair it; 'musacoder eval' refuses it too"},
    {"not_judged", "the task could not be judged within the limits", "raise --max-elements or --timeout"},
    {"zero_output", "the output is 0 on all inputs, by construction",
     "change the task: whoever returns zeros solves it, at any speed"},
    {"constant_output", "the output is one value everywhere", "change the task so that elements differ"},
    {"nearly_constant_output", "almost all elements have the same value",
     "change sizes, inputs or clamps so that the output carries information"},
    {"trivial_output", "an answer that needs no work passes",
     "scale the task so that its outputs are well above the tolerance, give it a tighter one, or leave it out"},
    {"dropped_operator", "the result without one operator still passes",
     "make the operator matter (inputs that reach both branches, larger effect), or take it out of the task"},
    {"input_ignored", "an input does not change the output", "use the input, or take it out of get_inputs"},
    {"parameter_ignored", "a parameter does not change the output",
     "take it out (a bias before a normalisation is one); whoever leaves it out is right"},
    {"not_finite", "NaN or infinity on the task's own inputs", "change inputs or sizes; NaN compares with nothing"},
    {"ill_conditioned", "rounding alone moves the output further than any useful tolerance",
     "smaller values or fewer steps, or a tolerance of its own in the sidecar"},
    {"wrong_reference", "the task's own answer in its precision is not its answer in double",
     "where inputs are large or a variant is of half precision, its squares or sums overflow there: compute in "
     "float32 inside forward, or leave those draws out (sidecar: regimes); else look whether forward() depends on the "
     "dtype, or try torch.backends.mkldnn.enabled = False: the library may be wrong on this machine"},
    {"own_inputs_only", "none of the five input distributions can be used",
     "nothing, if the domain is narrow (log, sqrt): only the task's own distribution is tried then"},
    {"nondeterministic", "the reference or its inputs are random",
     "seed it, or judge in eval mode as protocol strict does"},
    {"tf32_reference", "on a GPU the reference itself uses up the published tolerance",
     "set torch.backends.cudnn.allow_tf32 = False for the reference, or judge with protocol strict"},
    {"integer_inputs_cast", "the published protocol turns integer inputs into floats", "judge with protocol strict"},
    {"index_overflow", "a tensor has more elements than a 32-bit index can count",
     "kernels need 64-bit indices; smaller sizes, unless that is what is tested"},
    {"byte_offset_overflow", "a tensor has more bytes than a 32-bit offset can count",
     "byte offsets need 64 bits; element indices may stay int"},
    {"too_large", "inputs, and parameters and outputs of both sides, do not fit the device",
     "smaller sizes (musacoder shrink), or a larger device (--device-gib)"},
    {NULL, NULL, NULL}};

void lint_add(const struct lint_state *s, json_t *findings, const char *rule, json_t *evidence, const char *fmt, ...)
{
    const struct lint_rule *r = lint_rules;
    char msg[900];
    json_t *f;
    va_list ap;

    while (r->name && strcmp(r->name, rule))
        r++;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    f = json_pack("{s:s}", "rule", rule);
    if (s->variant)
        json_object_set_new(f, "variant", json_string(task_variant_name(s->task, s->variant)));
    json_object_set_new(f, "message", json_utf8(msg, strlen(msg)));
    json_object_set_new(f, "evidence", evidence ? evidence : json_object());
    json_object_set_new(f, "remedy", json_string(r->remedy ? r->remedy : ""));
    json_array_append_new(findings, f);
}

/* ---- what would pass ---- */

/* True if draws of this level were judged, so that a rule can speak. */
static bool lint_rules_decides(const struct lint_state *s, int level)
{
    const struct lint_group *g = &s->group[lint_levels[level].group];

    return g->draws > 0 && (level != LEVEL_STRICT || g->unusable < g->outputs);
}

/* True where the output was constant, or 0, in all draws. */
static bool lint_rules_all_draws(const struct lint_state *s, bool zero)
{
    int draws = 0, n = 0;

    for (int i = 0; i < N_GROUPS; i++) {
        draws += s->group[i].draws;
        n += zero ? s->group[i].zero : s->group[i].constant;
    }
    return draws > 0 && n == draws;
}

/* Elements of all outputs. */
static int64_t lint_rules_elements(const struct lint_state *s)
{
    int64_t n = 0;
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(s->facts, "outputs"), i, row)
        n += json_i64(row, "elements", 0);
    return n;
}

/* "strict, kernelbench half" into text; returns how many, names also into a new array. */
static int lint_rules_level_names(const bool on[N_LEVELS], char *text, size_t n, json_t **ret)
{
    int count = 0;

    *ret = json_array();
    text[0] = 0;
    for (int k = 0; k < N_LEVELS; k++) {
        if (!on[k])
            continue;
        snprintf(text + strlen(text), n - strlen(text), "%s%s", count++ ? ", " : "", lint_levels[k].name);
        json_array_append_new(*ret, json_string(lint_levels[k].name));
    }
    return count;
}

static bool lint_rules_is_constant_answer(enum trivial k)
{
    return k == TRIVIAL_ZEROS || k == TRIVIAL_ONES || k == TRIVIAL_CONSTANT;
}

/* One finding per answer, with the levels that it passes; the mean and the last answer only where no plain constant
 * does. easy: receives the levels that some constant passes: there, a dropped operator adds nothing either. */
static void lint_rules_trivial_answers(const struct lint_state *s, json_t *findings, bool easy[N_LEVELS])
{
    char where[96];
    json_t *names;

    for (enum trivial k = 0; k < N_TRIVIAL; k++) {
        bool on[N_LEVELS];
        double err = 0, top = 0, allowed = 0;

        for (int i = 0; i < N_LEVELS; i++) {
            on[i] = lint_rules_decides(s, i) && battery_passed(&s->battery[i], k) &&
                    !(easy[i] && (k == TRIVIAL_CONSTANT || k == TRIVIAL_STALE));
            easy[i] = easy[i] || (on[i] && lint_rules_is_constant_answer(k));
            if (!on[i])
                continue;
            err = fmax(err, s->trivial_err[i][k]);
            top = fmax(top, s->group[lint_levels[i].group].max_expected);
            allowed = fmax(allowed, s->allowed[i]);
        }
        if (lint_rules_level_names(on, where, sizeof where, &names) == 0) {
            json_decref(names);
            continue;
        }
        lint_add(s, findings, "trivial_output",
                 json_pack("{s:s,s:o,s:o,s:o,s:o}", "answer", trivial_name(k), "passes", names, "max_expected",
                           json_num(top),
                           "max_error", json_num(err), "tolerance", json_num(allowed)),
                 "%s would pass (%s): largest |expected| %.3g, largest error %.3g, allowed %.3g", trivial_name(k),
                     where, top,
                 err, allowed);
    }
}

/* The same left-out call in another group; NULL: none. */
static const struct lint_drop *lint_rules_same_call(const struct lint_group *g, const struct lint_drop *d)
{
    for (size_t i = 0; i < g->n_drop; i++)
        if (g->drop[i].call == d->call && !strcmp(g->drop[i].name, d->name))
            return &g->drop[i];
    return NULL;
}

/* Adds a finding where leaving out a part of the model changes too little to be noticed. */
static void lint_rules_dropped_one(const struct lint_state *s, json_t *findings, const struct lint_drop *d[N_GROUPS],
                                   const bool easy[N_LEVELS])
{
    const struct lint_drop *any = d[GROUP_STRICT] ? d[GROUP_STRICT] : d[GROUP_KERNELBENCH];
    double err = 0, allowed = 0;
    bool on[N_LEVELS];
    char where[96];
    json_t *names;

    for (int k = 0; k < N_LEVELS; k++) {
        int g = lint_levels[k].group;
        on[k] = d[g] && lint_rules_decides(s, k) && !easy[k] && d[g]->passed[k] == s->group[g].draws;
        if (on[k])
            err = fmax(err, d[g]->max_err), allowed = fmax(allowed, s->allowed[k]);
    }
    if (lint_rules_level_names(on, where, sizeof where, &names) == 0) {
        json_decref(names);
        return;
    }
    lint_add(s, findings, "dropped_operator",
             json_pack("{s:s,s:I,s:I,s:o,s:o,s:o}", "operator", any->name, "line", (json_int_t)any->line, "call",
                       (json_int_t)any->call, "passes", names, "max_error", json_num(err), "tolerance",
                           json_num(allowed)),
             "without %s (line %lld) the result would pass (%s): largest difference %.3g, allowed %.3g", any->name,
             (long long)any->line, where, err, allowed);
}

/* Adds a finding for each operator that can be left out unnoticed. easy: levels at which anything passes. */
static void lint_rules_dropped_operators(const struct lint_state *s, json_t *findings, const bool easy[N_LEVELS])
{
    for (int g = 0; g < N_GROUPS; g++)
        for (size_t i = 0; i < s->group[g].n_drop; i++) {
            const struct lint_drop *d[N_GROUPS] = {0}, *mine = &s->group[g].drop[i];

            d[g] = mine;
            d[!g] = lint_rules_same_call(&s->group[!g], mine);
            if (g == GROUP_STRICT || !d[GROUP_STRICT]) /* each pair once */
                lint_rules_dropped_one(s, findings, d, easy);
        }
}

/* ---- what the output is like ---- */

/* Adds findings about outputs that hold NaN or infinities. */
static void lint_rules_values(const struct lint_state *s, json_t *findings)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(s->facts, "outputs"), i, row) {
        int64_t nan = json_i64(row, "nan", 0), inf = json_i64(row, "inf", 0), n = json_i64(row, "elements", 0);
        double share = json_num_at(row, "share");

        if (nan || inf)
            lint_add(s, findings, "not_finite", json_pack("{s:I,s:I,s:I}", "nan", (json_int_t)nan, "inf",
                                                          (json_int_t)inf,
                                                          "elements", (json_int_t)n),
                     "output %zu holds %lld NaN and %lld infinities among %lld elements", i, (long long)nan,
                         (long long)inf,
                     (long long)n);
        if (n > 1 && share >= NEARLY_CONSTANT && !lint_rules_all_draws(s, false))
            lint_add(s, findings, "nearly_constant_output",
                     json_pack("{s:o,s:o,s:I}", "value", json_num(json_num_at(row, "commonest")), "share",
                               json_num(share), "elements",
                               (json_int_t)n),
                     "%.2f %% of the elements of output %zu are %.3g", share * 100, i,
                     json_num_at(row, "commonest"));
    }
}

/* Adds findings about inputs that hardly move the output. */
static void lint_rules_effects(const struct lint_state *s, json_t *findings)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(s->facts, "inputs"), i, row) {
        double x = json_num_at(row, "effect");

        if (x < NO_EFFECT_INPUT) /* NaN: it is always the same, nothing can be said */
            lint_add(s, findings, "input_ignored", json_pack("{s:o,s:o}", "input", json_num((double)i), "effect",
                                                             json_num(x)),
                     "other values of input %zu move the output by %.3g of its largest value", i, x);
    }
    json_array_foreach(json_object_get(s->facts, "parameters"), i, row) {
        double x = json_num_at(row, "effect");

        if (x < NO_EFFECT_PARAMETER)
            lint_add(s, findings, "parameter_ignored",
                     json_pack("{s:s,s:o}", "parameter", json_str(row, "name", "?"), "effect", json_num(x)),
                     "other values of '%s' move the output by %.3g of its largest value", json_str(row, "name", "?"),
                         x);
    }
}

/* Rounding cannot explain an error this many times as large as what rounding the inputs does. */
#define NO_ROUNDING 1000

/* Adds a finding where rounding decides outputs, or the reference is wrong itself. */
static void lint_rules_conditioning(const struct lint_state *s, json_t *findings)
{
    const struct lint_group *g = &s->group[GROUP_STRICT];
    bool wrong = g->worst_own > NO_ROUNDING * g->worst_moved;
    json_t *evidence;

    if (g->unusable > 0) {
        evidence = json_pack("{s:i,s:i,s:o,s:o}", "undecided", g->unusable, "outputs", g->outputs, "own_error",
                             json_num(g->worst_own), "noise", json_num(g->worst_moved));
        if (wrong)
            lint_add(s, findings, "wrong_reference", evidence,
                     "%d of %d outputs decide nothing: PyTorch's answer in the task's precision is off by up to "
                     "%.3g of the largest value, though rounding the inputs moves it by %.3g", g->unusable,
                     g->outputs, g->worst_own, g->worst_moved);
        else
            lint_add(s, findings, "ill_conditioned", evidence,
                     "%d of %d outputs decide nothing: rounding moves them by up to %.3g of their largest value",
                     g->unusable, g->outputs, fmax(g->worst_own, g->worst_moved));
    }
    if (json_flag(s->facts, "own_inputs_only", false))
        lint_add(s, findings, "own_inputs_only",
                 json_pack("{s:O?}", "skipped", json_object_get(s->facts, "skipped")),
                 "all five input distributions are skipped; only inputs from get_inputs are tried");
}

/* Adds findings where inputs or outputs change with equal seeds. */
static void lint_rules_randomness(const struct lint_state *s, json_t *findings)
{
    if (json_flag(s->facts, "unseeded", false))
        lint_add(s, findings, "nondeterministic", NULL, "get_inputs gives other values for the same seed");
    if (!strcmp(json_str(s->facts, "mode", ""), "eval"))
        lint_add(s, findings, "nondeterministic", NULL,
                 "in train mode forward is random (dropout?); the published protocol "
                                                        "judges in train mode");
}

/* ---- what misleads a judge on a GPU ---- */

/* Adds a finding where TF32 alone would exceed the tolerance. */
static void lint_rules_tf32(const struct lint_state *s, json_t *findings)
{
    const json_t *all = json_object_get(s->facts, "tf32"), *c;
    bool products = json_flag(all, "matmul_asked", false);
    double ratio;

    c = json_object_get(all, products ? "all" : "convolution");
    if (!json_is_object(c) || (ratio = json_num_at(c, "ratio")) < TF32_SHARE)
        return;
    lint_add(s, findings, "tf32_reference",
             json_pack("{s:O,s:O,s:O,s:o,s:b}", "ops", json_object_get(c, "ops"), "error", json_object_get(c, "error"),
                       "tolerance",
                       json_object_get(all, "tolerance"), "ratio", json_num(ratio), "exact_fails", ratio > 1),
             "TF32 in the reference's %s moves the output by up to %.3g, %.3g times the published tolerance: %s",
             products ? "products and convolutions" : "convolutions", json_num_at(c, "error"), ratio,
             ratio > 1 ? "an exact fp32 program fails" : "little is left for a program");
}

/* Adds a finding where integer inputs would be cast. */
static void lint_rules_casts(const struct lint_state *s, json_t *findings)
{
    const json_t *d;
    size_t i;

    json_array_foreach(json_object_get(s->facts, "defects"), i, d)
        if (!strcmp(json_str(d, "name", ""), "integer_inputs_cast"))
            lint_add(s, findings, "integer_inputs_cast", json_pack("{s:O?}", "inputs",
                                                                   json_object_get(s->facts, "integer_inputs")),
                     "%s", json_str(d, "detail", ""));
}

/* Adds findings about tensors that overflow 32-bit indices or the device's memory. */
static void lint_rules_sizes(const struct lint_state *s, json_t *findings)
{
    const json_t *full = json_object_get(s->facts, "full");
    long long n = json_i64(full, "elements", 0), bytes = json_i64(full, "bytes", 0),
              need = json_i64(full, "needed_bytes", 0);
    double gib = (double)need / 0x1p30;

    if (n > INT32_LIMIT)
        lint_add(s, findings, "index_overflow", json_pack("{s:I,s:s}", "elements", (json_int_t)n, "of",
                                                          json_str(full, "elements_of", "?")),
                 "%s has %lld elements, %.3g times 2^31", json_str(full, "elements_of", "?"), n, (double)n / 0x1p31);
    else if (bytes > INT32_LIMIT)
        lint_add(s, findings, "byte_offset_overflow", json_pack("{s:I,s:s}", "bytes", (json_int_t)bytes, "of",
                                                                json_str(full, "bytes_of", "?")),
                 "%s has %lld bytes, %.3g times 2^31", json_str(full, "bytes_of", "?"), bytes, (double)bytes / 0x1p31);
    if (gib > s->o->device_gib)
        lint_add(s, findings, "too_large", json_pack("{s:I,s:f}", "needed_bytes", (json_int_t)need, "device_gib",
                                                     s->o->device_gib),
                 "inputs, parameters and outputs of reference and candidate, and a comparison of them, take %.3g GiB; "
                 "the device has %.3g", gib, s->o->device_gib);
}

void lint_judge(const struct lint_state *s, json_t *findings)
{
    bool easy[N_LEVELS] = {false};

    if (lint_rules_all_draws(s, true)) { /* all else would follow from it */
        lint_add(s, findings, "zero_output", json_pack("{s:i,s:I}", "draws", s->group[0].draws + s->group[1].draws,
                                                       "elements",
                                                       (json_int_t)lint_rules_elements(s)),
                 "all outputs are 0 in all %d draws", s->group[0].draws + s->group[1].draws);
    } else {
        if (lint_rules_all_draws(s, false) && lint_rules_elements(s) > 1)
            lint_add(s, findings, "constant_output",
                     json_pack("{s:I,s:o}", "elements", (json_int_t)lint_rules_elements(s),
                                                               "max_expected",
                                                               json_num(s->group[GROUP_STRICT].max_expected)),
                     "all elements of an output are the same in every draw");
        lint_rules_trivial_answers(s, findings, easy);
        lint_rules_dropped_operators(s, findings, easy);
        lint_rules_effects(s, findings);
    }
    lint_rules_values(s, findings);
    lint_rules_conditioning(s, findings);
    lint_rules_randomness(s, findings);
    lint_rules_tf32(s, findings);
    lint_rules_casts(s, findings);
    lint_rules_sizes(s, findings);
}

const struct level lint_levels[N_LEVELS] = {{"strict", GROUP_STRICT}, {"kernelbench fp32", GROUP_KERNELBENCH},
                                            {"kernelbench half", GROUP_KERNELBENCH}};
