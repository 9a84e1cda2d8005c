/* options.c - a judgement's options: their checks, and their reading from a record. */
#include "eval/server/options.h"

#include <string.h>

#include "base/json.h"
#include "base/opt.h"
#include "eval/check/protocol.h"
#include "eval/build/judge_backend.h"

int options_no_backend(const char *name, struct err *e)
{
    return err_set(e, ERR_INPUT, "no backend '%s'; there is " BACKEND_WORDS, name);
}

int eval_options_check(const struct eval_options *o, struct err *e)
{
    if (!backend_find(o->backend))
        return options_no_backend(o->backend, e);
    if (!protocol_find(o->protocol))
        return err_set(e, ERR_INPUT, "no protocol '%s'; use strict, strict-torch or kernelbench", o->protocol);
    if (o->trials < 1 || o->trials > 1000)
        return err_set(e, ERR_INPUT, "trials must be 1 to 1000");
    if (!(o->timeout_s > 0) || !(o->build_timeout_s > 0) || o->timeout_s > 86400 || o->build_timeout_s > 86400)
        return err_set(e, ERR_INPUT, "a timeout must be more than 0 seconds and at most a day");
    if (o->max_elements < 0)
        return err_set(e, ERR_INPUT, "max-elements must be at least 1, or 0 for the backend's own limit");
    if (o->calls < 0 || o->calls > 10000)
        return err_set(e, ERR_INPUT, "calls must be 0 (automatic) to 10000");
    if (strcmp(o->compile_mode, "default") && strcmp(o->compile_mode, "max-autotune"))
        return err_set(e, ERR_INPUT, "no compile-mode '%s'; use default or max-autotune", o->compile_mode);
    if (o->dialect && strcmp(o->dialect, "any") && strcmp(o->dialect, "cuda") && strcmp(o->dialect, "musa"))
        return err_set(e, ERR_INPUT, "no dialect '%s'; use any, cuda or musa", o->dialect);
    if (!(o->reward.lambda >= 0) || !(o->reward.nu_max >= 0))
        return err_set(e, ERR_INPUT, "speed-weight and speed-cap start at 0");
    return 0;
}

/* Name i of the options that a request may have; NULL behind the last. */
static const char *options_option_name(const void *ctx, int i)
{
    static const char *const names[] = {"backend", "protocol", "trials", "timeout", "build-timeout", "seed",
                                        "max-elements", "perf", "calls", "compile-baseline", "compile-mode", "dialect",
                                        "speed-weight", "speed-cap"};

    (void)ctx;
    return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

static bool options_known_option(const char *key)
{
    const char *name;

    for (int i = 0; (name = options_option_name(NULL, i)); i++)
        if (!strcmp(name, key))
            return true;
    return false;
}

int eval_options_parse(const json_t *o, struct eval_options *ret, struct err *e)
{
    struct eval_options x = EVAL_OPTIONS_DEFAULT;
    const char *key, *near;
    json_t *v;

    json_object_foreach((json_t *)o, key, v) {
        if (options_known_option(key))
            continue;
        near = nearest_word(key, options_option_name, NULL);
        return err_set(e, ERR_INPUT, "no eval option '%s'%s%s%s", key, near ? "; did you mean '" : "", near ? near : "",
                       near ? "'?" : "");
    }
    x.backend = json_str(o, "backend", x.backend);
    x.protocol = json_str(o, "protocol", x.protocol);
    x.trials = (int)json_i64(o, "trials", x.trials);
    x.timeout_s = json_f64(o, "timeout", x.timeout_s);
    x.build_timeout_s = json_f64(o, "build-timeout", x.build_timeout_s);
    x.seed = json_i64(o, "seed", x.seed);
    x.max_elements = json_i64(o, "max-elements", x.max_elements);
    x.perf = json_flag(o, "perf", x.perf);
    x.calls = (int)json_i64(o, "calls", x.calls);
    x.compile_baseline = json_flag(o, "compile-baseline", x.compile_baseline);
    x.compile_mode = json_str(o, "compile-mode", x.compile_mode);
    x.dialect = json_str(o, "dialect", x.dialect);
    x.reward.lambda = json_f64(o, "speed-weight", x.reward.lambda);
    if (x.reward.lambda != 0)
        x.reward.nu_max = json_f64(o, "speed-cap", x.reward.nu_max);
    if (eval_options_check(&x, e) < 0)
        return -1;
    *ret = x;
    return 0;
}

int64_t eval_max_elements(const struct eval_options *o)
{
    const struct judge_backend *b = backend_find(o->backend);

    if (o->max_elements > 0)
        return o->max_elements;
    return b && b->max_elements ? b->max_elements : INT64_MAX;
}

json_t *eval_options_json(const struct eval_options *o)
{
    json_t *v = json_pack("{s:s,s:s,s:i,s:f,s:f,s:I,s:I,s:b,s:i,s:b,s:s,s:s}", "backend", o->backend, "protocol",
                     o->protocol, "trials", o->trials, "timeout", o->timeout_s, "build-timeout", o->build_timeout_s,
                     "seed", (json_int_t)o->seed, "max-elements", (json_int_t)o->max_elements, "perf", o->perf, "calls",
                     o->calls, "compile-baseline", o->compile_baseline, "compile-mode", o->compile_mode, "dialect",
                     o->dialect ? o->dialect : "any");

    if (!reward_is_default(o->reward)) {
        json_object_set_new(v, "speed-weight", json_real(o->reward.lambda));
        json_object_set_new(v, "speed-cap", json_real(o->reward.nu_max));
    }
    return v;
}
