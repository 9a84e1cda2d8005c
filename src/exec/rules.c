/* rules.c - see rules.h: a table of rules, the first one that holds decides. rules_NAME is true where the rule holds
 * of the facts, and says why in r. */
#include "exec/rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

typedef const struct rules_facts facts;
typedef struct rules_finding finding;

static bool rules_say(finding *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes the finding's text. Always true. */
static bool rules_say(finding *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    return true;
}

static uint64_t rules_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes that the host may read in a call without losing "live". */
static uint64_t rules_allowance(uint64_t input_bytes, uint64_t output_bytes)
{
    return rules_least(RULES_LIVE_BYTES, rules_least(input_bytes, output_bytes) / RULES_LIVE_SHARE);
}

/* A reply tells something by when it comes, too: where the output is small none is free. */
static bool rules_within_allowance(facts *f)
{
    uint64_t most = rules_allowance(f->input_bytes, f->output_bytes);

    return most > 0 && f->most.bytes <= most && f->most.compared <= most && f->most.replies <= RULES_LIVE_READS;
}

bool rules_live(facts *f)
{
    return f->live_right && !f->replay_right && f->most.bytes > 0 && rules_within_allowance(f);
}

/* True if the program was right, by replay or in a direct run. */
static bool rules_right(facts *f)
{
    return f->replay_right || rules_live(f);
}

/* ---- cheating ---- */

static bool rules_torch_computes(facts *f, finding *r)
{
    return f->torch_op && rules_say(r, "forward asks PyTorch for %s; the arithmetic must be done by the program's own "
                                       "kernels", f->torch_op);
}

/* Rule: a library computes what kernels should. Each rule returns true where it holds and fills r. */
static bool rules_library_computes(facts *f, finding *r)
{
    const char *l = f->library;

    if (!l)
        return false;
    if (text_begins(l, "at::") || text_begins(l, "torch::"))
        return rules_say(r, "the extension calls torch's own function: %s", l);
    if (text_begins(l, "cub") || text_begins(l, "thrust"))
        return rules_say(r, "the extension calls an algorithm of CUDA's libraries that works on a whole array: %s; "
                         "collectives of a block or a warp (cub::BlockReduce) may stay", l);
    return rules_say(r, "the extension calls a vendor's library: %s", l);
}

static bool rules_judge_called(facts *f, finding *r)
{
    return f->judge && rules_say(r, "a kernel calls a function that is the judge's: %s", f->judge);
}

/* Work that the client refused, whether or not the program looks at the error: without it nothing can be right. */
static uint32_t rules_refused_work(facts *f)
{
    return f->lacks & (1u << WIRE_LACK_CAPTURES | 1u << WIRE_LACK_LAUNCH | 1u << WIRE_LACK_GRAPHS |
                       1u << WIRE_LACK_CLUSTERS | 1u << WIRE_LACK_DRIVER | 1u << WIRE_LACK_IMAGES |
                       1u << WIRE_LACK_TEXTURES);
}

static bool rules_no_kernel(facts *f, finding *r)
{
    return f->ran && !f->failed && !f->launches && !rules_refused_work(f) &&
           rules_say(r, "forward launches no kernel of its own");
}

/* Rule: the answer stays right without any launch. */
static bool rules_kernels_decide_nothing(facts *f, finding *r)
{
    return rules_right(f) && f->movement_right &&
           rules_say(r, "the answer stays right when all %" PRIu64 " launches of the program are removed: its kernels "
                                                                   "decide "
                     "nothing", f->counts.launches);
}

/* Rule: casts by PyTorch change values. */
static bool rules_casts_compute(facts *f, finding *r)
{
    if (!f->ran || f->failed)
        return false;
    if (f->last.reinterpreted)
        return rules_say(r, "a cast by PyTorch reads values as another type than theirs (view(dtype)): that is "
                            "arithmetic");
    return f->last.casts_changed && rules_say(r, "a cast by PyTorch changes the value of %" PRIu64 " elements: that is "
                                                 "arithmetic", f->last.casts_changed);
}

/* The bytes that a program may read back and still count as independent of values. */
static uint64_t rules_free_reads(facts *f)
{
    return rules_least(RULES_LIVE_BYTES, f->input_bytes / RULES_LIVE_SHARE);
}

/* What the host says to the device after it has looked: could that be an answer? A loop that asks whether it is done,
 * or launches with sizes that were read, steers. */
static bool rules_host_tells(facts *f)
{
    return f->most.up > rules_free_reads(f) || f->most.up + f->most.given >= f->output_bytes;
}

/* Rule: the host computes from what it reads. */
static bool rules_host_computes(facts *f, finding *r)
{
    return f->live_right && !f->replay_right && !f->sizes_vary &&
           f->most.bytes > rules_free_reads(f) && rules_host_tells(f) &&
           rules_say(r, "the host reads %" PRIu64 " bytes from the device in one call, and the same launches on other "
                                                  "values "
                     "give a wrong answer: the host does the arithmetic", f->most.bytes);
}

/* ---- what is missing here. A program that asks for it on purpose gains nothing, and loses what it could gain ---- */

/* Names in r what the program uses and this judge lacks. False: it lacks nothing that matters. */
static bool rules_lacks(facts *f, finding *r)
{
    static const struct {
        const char *code, *text;
    } rows[] = {
#define ROW(name, code, text) {code, text},
        WIRE_LACKS(ROW)
#undef ROW
    };

    uint32_t lacks = f->failed ? f->lacks : rules_right(f) || f->some_right ? 0 : rules_refused_work(f);

    if ((!f->failed || !f->lack) && !lacks)
        return false;
    if (!f->failed || !f->lack) {
        r->code = rows[__builtin_ctz(lacks)].code;
        return rules_say(r, "%s: %s%s%s", r->code, f->lacks_name ? f->lacks_name : "", f->lacks_name ? ": " : "",
                         rows[__builtin_ctz(lacks)].text);
    }
    r->code = f->lack;
    return f->lack_why ? rules_say(r, "%s: %s", f->lack, f->lack_why) : rules_say(r, "%s", f->lack);
}

static bool rules_refused(facts *f, finding *r)
{
    return f->refused && rules_say(r, "the log cannot be replayed: %s", f->replay_why ? f->replay_why : "");
}

/* Rule: the host decides what to launch by what it reads. */
static bool rules_host_control_flow(facts *f, finding *r)
{
    return f->live_right && !f->replay_right && !rules_within_allowance(f) &&
           rules_say(r, "the host steers by what it reads: %" PRIu64 " bytes came down in a call, %" PRIu64
                     " were compared, "
                     "in %u replies; with outputs of %" PRIu64 " bytes at most %" PRIu64 " bytes are possible",
                     f->most.bytes,
                     f->most.compared, f->most.replies, f->output_bytes,
                     rules_allowance(f->input_bytes, f->output_bytes));
}

/* What a host made of inputs that never change is right in every replay. */
static bool rules_host_knows(facts *f, finding *r)
{
    uint64_t most = rules_free_reads(f);

    return f->replay_right && f->fixed_bytes > most && (f->most.bytes > most || f->most.compared > most) &&
           rules_say(r, "the host reads %" PRIu64 " bytes and compares %" PRIu64 " in a call, and %" PRIu64
                     " bytes of the "
                     "inputs are the same in all draws: what the host makes of those cannot be told from a constant; "
                     "at most "
                     "%" PRIu64 " bytes are possible", f->most.bytes, f->most.compared, f->fixed_bytes, most);
}

static bool rules_log_full(facts *f, finding *r)
{
    return f->log_full && rules_say(r, "the program asks for more than a log can hold");
}

/* ---- the rest ---- */

static bool rules_wrong(facts *f, finding *r)
{
    (void)r;
    return f->failed || !rules_right(f);
}

static bool rules_unordered(facts *f, finding *r)
{
    return !f->ordered && rules_say(r, "%s", f->order_why ? f->order_why : "work is left on a stream that nobody waits "
                                                                           "for");
}

static bool rules_altered(facts *f, finding *r)
{
    return f->altered && rules_say(r, "forward leaves other values in the parameter %s than it found; the task does "
                                      "not: "
                                      "pack a copy of it", f->altered);
}

/* It may be a patch of a few rows beside a copy that the task asks for, or a decoy: nobody can tell. */
static bool rules_movement_moves(facts *f, finding *r)
{
    return f->movement_most && rules_say(r, "the task only moves values, and torch's copies move most of them: without "
                                            "the "
                                            "program's launches more than half of the answer is right");
}

/* Rule: the host brings more bytes than constants and weights need. */
static bool rules_host_table(facts *f, finding *r)
{
    uint64_t own = f->own_bytes > f->table_bytes ? f->own_bytes : f->table_bytes;
    uint64_t most = RULES_CONSTANTS + (f->fixed_bytes ? 0 : own);

    return f->counts.bytes_up > most &&
           rules_say(r, "the program brings %" PRIu64 " bytes of tables along; at most %" PRIu64
                                                     " are possible", f->counts.bytes_up, most);
}

static bool rules_live_only(facts *f, finding *r)
{
    return r->live = rules_live(f);
}

/* In the order of the record: cheating, what cannot be judged here, what is wrong; then what a right answer still
 * needs. */
static const struct {
    bool (*holds)(facts *f, finding *r);
    enum rules_category category;
    const char *code;
} rules[] = {
    {rules_torch_computes, RULES_CHEATING, "operator"},
    {rules_library_computes, RULES_CHEATING, "library_call"},
    {rules_judge_called, RULES_CHEATING, "judge_call"},
    {rules_no_kernel, RULES_CHEATING, "no_kernel"},
    {rules_kernels_decide_nothing, RULES_CHEATING, "decoy_kernels"},
    {rules_casts_compute, RULES_CHEATING, "casts_compute"},
    {rules_host_computes, RULES_CHEATING, "host_computes"},
    {rules_lacks, RULES_UNSUPPORTED, NULL},
    {rules_refused, RULES_UNSUPPORTED, "not_replayable"},
    {rules_log_full, RULES_UNSUPPORTED, "log_full"},
    {rules_host_control_flow, RULES_UNSUPPORTED, "host_control_flow"},
    {rules_wrong, RULES_BLAMED, NULL},
    {rules_unordered, RULES_CORRECTNESS, "unjoined_stream"},
    {rules_altered, RULES_CORRECTNESS, "parameter_changed"},
    {rules_host_knows, RULES_UNSUPPORTED, "host_control_flow"},
    {rules_movement_moves, RULES_UNSUPPORTED, "plumbing_moves"},
    {rules_host_table, RULES_UNSUPPORTED, "host_table"},
    {rules_live_only, RULES_PASSED, NULL},
};

/* *ret is the first rule that holds; RULES_PASSED: none. */
void rules_decide(const struct rules_facts *f, struct rules_finding *ret)
{
    *ret = (struct rules_finding){.category = RULES_PASSED};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].holds(f, ret)) {
            ret->category = rules[i].category;
            ret->code = rules[i].code ? rules[i].code : ret->code;
            return;
        }
}

const char *rules_category_name(enum rules_category c)
{
    static const char *const names[] = {"", "cheating", "correctness_error", "unsupported", ""};

    return names[c];
}
