/* cmd_synth_teach.c - 'musacoder synth teach': a teacher's answers, judged, as records. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "remote/openai.h"
#include "store/content.h"
#include "synth/teach.h"

static const struct opt rows[] = {
    {"teach", "tasks", OPT_PATHS, NULL, "task file, or folder of them ('synth mine', 'synth --tasks'); needed",
     INTO(struct teach_options, tasks)},
    {"teach", "out", OPT_OUT_FOLDER, NULL, "folder to write; needed. It keeps all answers: a stopped run continues",
     INTO(struct teach_options, out)},
    {"teach", "teacher", OPT_PATHS, NULL,
        "http://HOST:PORT/v1 (key: OPENAI_API_KEY), or a model folder. Without it --out's answers are judged again",
     INTO(struct teach_options, teacher)},
    {"teach", "model-name", OPT_STR, NULL, "which model of the server (default: its first)",
     INTO(struct teach_options, model)},
    {"teach", "samples", OPT_INT, "4", "answers for each task", INTO(struct teach_options, samples)},
    {"teach", "budget", OPT_INT, "0",
        "tokens, asked and answered, of all runs into --out; what might not fit is not asked. 0: no limit",
     INTO(struct teach_options, budget)},
    {"teach", "max-new", OPT_INT, "8192", "longest answer, in tokens", INTO(struct teach_options, max_new)},
    {"teach", "temperature", OPT_REAL, "0.8", "sampling temperature", INTO(struct teach_options, temperature)},
    {"teach", "top-p", OPT_REAL, "0.95", "nucleus of the distribution that is sampled",
     INTO(struct teach_options, top_p)},
    {"teach", "parallel", OPT_INT, "16", "requests at once", INTO(struct teach_options, parallel)},
    {"teach", "retry", OPT_REAL, "600", "seconds that a busy or absent server is asked again",
     INTO(struct teach_options, retry_s)},
    {"teach", "limit", OPT_INT, "0", "first so many tasks only; 0: all", INTO(struct teach_options, limit)},
    {"teach", "style", OPT_CHOICE, "full", "plain|full: wording of the request, and of the records"},
    {"teach", "dialect", OPT_CHOICE, "cuda", "cuda|musa: the language that is asked for"},
    {"teach", "backend", OPT_CHOICE, "sim", BACKEND_WORDS ": where programs are judged",
     INTO(struct teach_options, verify.backend)},
    {"teach", "trials", OPT_INT, "2", "trials per input distribution of a verdict",
     INTO(struct teach_options, verify.trials)},
    {"teach", "jobs", OPT_INT, "0", "programs judged at once; 0: 1.5 for each CPU",
     INTO(struct teach_options, verify.jobs)},
    SECRET_ROW("teach"),
    {0},
};

/* ERR_INPUT for options that cannot be. */
static int synth_teach_check(const struct opts *o, struct err *e)
{
    static const struct {
        const char *name;
        int64_t lo, hi;
    } ranges[] = {{"samples", 1, 1000}, {"budget", 0, INT64_MAX}, {"max-new", 1, 1 << 20}, {"parallel", 1, 1024},
                  {"limit", 0, 1 << 30}, {"trials", 1, 1000}, {"jobs", 0, 1024}};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        int64_t v = opts_int(o, ranges[i].name);
        if (v < ranges[i].lo || v > ranges[i].hi)
            return err_set(e, ERR_INPUT, "--%s is %lld; use %lld to %lld", ranges[i].name, (long long)v,
                           (long long)ranges[i].lo, (long long)ranges[i].hi);
    }
    if (!opts_has(o, "tasks") || !opts_has(o, "out"))
        return err_set(e, ERR_INPUT, "say --tasks FOLDER and --out OUT");
    if (opts_has(o, "teacher") && !openai_is_url(opts_str(o, "teacher")) && !file_is_dir(opts_str(o, "teacher")))
        return err_set(e, ERR_INPUT, "--teacher '%s' is no http:// or https:// address and no model folder",
                       opts_str(o, "teacher"));
    return eval_backend_check(opts_str(o, "backend"), e);
}

/* The command; an exit code, or -1 with e. */
static int synth_teach_run(const struct opts *o, struct err *e)
{
    struct teach_options t = {.prompt_format = {.musa = !strcmp(opts_str(o, "dialect"), "musa")}, .judge = verify_all};
    struct teach_stats s;
    char weights[65] = "";

    t.weights = weights;
    if (synth_teach_check(o, e) < 0 || opts_store(o, &t, e) < 0 ||
        (t.teacher && file_is_dir(t.teacher) && content_digest_model(t.teacher, weights, e) < 0) ||
        prompt_style_parse(opts_str(o, "style"), &t.prompt_format.style, e) < 0 ||
        secret_use(o, e) < 0 ||
        teach(&t, &s, e) < 0)
        return -1;
    printf("%s: %d tasks, %d answers (%d were known), %lld tokens; %d programs pass, %d fail, %d not judged; "
           "%d answers cut, %d without a program, %d repeated\n", t.out, s.tasks, s.asked + s.cached, s.cached,
           (long long)s.tokens, s.passed, s.failed, s.unjudged, s.cut, s.without_program, s.repeated);
    if (s.unasked)
        printf("%d answers were not asked for%s\n", s.unasked,
               t.teacher ? ": the budget is spent; a larger --budget goes on" : ": no --teacher was given");
    if (s.passed + s.failed)
        printf("next: musacoder sft --model DIR --data %s/data --out RUN\n", t.out);
    return EXIT_OK;
}

const struct command cmd_synth_teach = {
    "synth teach", "records from a teacher's answers, judged",
    "--teacher URL|DIR --tasks FOLDER --out OUT [--samples N] [--budget TOKENS]",
    "Asks a model for native programs, of a folder or behind an OpenAI-compatible server (vLLM, SGLang,\n"
    "'musacoder serve --model'), and has MooreEval judge them. A program that passes becomes a 'generate' record; one\n"
    "that fails becomes a 'review' record with the judge's words. Reasoning that stands before an answer is kept in\n"
    "the provenance.\n"
    "A busy or absent server is asked again for --retry seconds. --budget bounds the tokens of all runs into OUT: the\n"
    "first answer of every task is asked before the second of any. OUT/answers.jsonl keeps what was answered; without\n"
    "--teacher the same command judges it again and asks nobody.\n"
    "Exit code: 0 done, 2 usage, 3 the server or the judge cannot be used.\n\n",
    rows, synth_teach_run, 0};
