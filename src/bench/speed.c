/* speed.c - see speed.h. */
#include "bench/speed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static const struct {
    const char *key, *name;
} baselines[N_BASELINES] = {{"eager", "eager"}, {"compile", "torch.compile"}};

const char *baseline_key(enum speed_baseline b)
{
    return baselines[b].key;
}

const char *baseline_name(enum speed_baseline b)
{
    return baselines[b].name;
}

struct speed verdict_speed(const json_t *verdict, enum speed_baseline b)
{
    const json_t *perf = json_object_get(verdict, "performance"), *ci;
    struct speed s = {.point = NAN, .lo = NAN, .hi = NAN};
    char key[40];

    snprintf(key, sizeof key, "speedup_%s", baselines[b].key);
    s.point = json_num_at(perf, key);
    if (!isfinite(s.point) || s.point <= 0)
        return (struct speed){.point = NAN, .lo = NAN, .hi = NAN};
    s.untrusted = !json_flag(perf, "trusted", true);
    s.timed = !s.untrusted;
    snprintf(key, sizeof key, "speedup_%s_ci", baselines[b].key);
    ci = json_object_get(perf, key);
    if (json_array_size(ci) == 2) {
        s.lo = json_num_value(json_array_get(ci, 0));
        s.hi = json_num_value(json_array_get(ci, 1));
    }
    return s;
}

double speed_claim(const struct speed *s)
{
    return !s->timed ? NAN : isfinite(s->lo) ? s->lo : s->point;
}

bool verdict_is_skip(const json_t *verdict)
{
    return !strcmp(json_str(verdict, "status", ""), "infra") && !strcmp(json_str(verdict, "stage", ""), "task");
}
