/* cmd_agent.c - 'musacoder agent': a model writes a kernel for a task, the judge answers, the best kernel is kept. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "answers/answers.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "eval/verdict/feedback.h"

static const struct opt rows[] = {
    {"agent", "task", OPT_STR, NULL, "the task: a KernelBench-format Python file"},
    {"agent", "model", OPT_STR, NULL, "a server, http://HOST:PORT/v1 (key: OPENAI_API_KEY), or a model folder"},
    {"agent", "model-name", OPT_STR, NULL, "which model of the server (default: its first)"},
    {"agent", "turns", OPT_INT, "3", "answers at most", INTO(struct agent_options, turns)},
    {"agent", "faster", OPT_BOOL, "true",
     "after a pass, turns that are left ask for speed; --no-faster ends at the first pass"},
    {"agent", "backend", OPT_STR, "sim", "where candidates run: sim, cuda", INTO(struct agent_options, eval.backend)},
    {"agent", "target", OPT_CHOICE, "cuda", "cuda|musa: what the model is asked to write",
     INTO(struct agent_options, target)},
    {"agent", "protocol", OPT_CHOICE, "strict", "strict|strict-torch|kernelbench: rules of the verdict",
     INTO(struct agent_options, eval.protocol)},
    {"agent", "edits", OPT_BOOL, "false",
     "what failed is shown with numbered lines, and the answer may be the lines that change",
     INTO(struct agent_options, edits)},
    {"agent", "style", OPT_CHOICE, "full", "plain|full: wording of the request"},
    {"agent", "temperature", OPT_REAL, "0.7", "sampling temperature; 0: greedy",
     INTO(struct agent_options, temperature)},
    {"agent", "top-p", OPT_REAL, "0.95", "nucleus of the distribution that is sampled",
     INTO(struct agent_options, top_p)},
    {"agent", "max-new", OPT_INT, "32000", "longest answer (tokens)", INTO(struct agent_options, max_new)},
    {"agent", "seed", OPT_INT, "1", "answer i is drawn from seed + i", INTO(struct agent_options, seed)},
    {"agent", "retry", OPT_REAL, "600", "seconds a server may be away or busy before it is given up"},
    {"agent", "out", OPT_OUT_FILE, NULL, "the best program goes to this file (default: standard output)"},
    {"agent", "log", OPT_OUT_FILE, NULL, "all turns, with answers and verdicts, go to this file as JSON"},
    {"agent", "show", OPT_BOOL, "false", "show the answers as they come, on standard error"},
    {"agent", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail"},
    {0},
};

/* A callback of answers: prints text as it comes, without control characters. */
static void agent_show_text(const char *text, size_t n, void *ctx)
{
    for (size_t i = 0; i < n; i++) { /* a model may write what steers terminals */
        unsigned char c = (unsigned char)text[i];

        fputc((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c, stderr);
    }
}

/* How fast a verdict's program is, in words. */
static void agent_print_speed(const json_t *verdict)
{
    const json_t *p = json_object_get(verdict, "performance");

    if (json_is_object(p) && json_is_number(json_object_get(p, "speedup_eager")))
        fprintf(stderr, ", %.3g ms, %.2f times eager%s", json_f64(p, "candidate_ms", 0),
                json_f64(p, "speedup_eager", 0), json_flag(p, "trusted", false) ? "" : " (not trusted)");
    else if (!strcmp(json_str(verdict, "status", ""), "passed"))
        fprintf(stderr, ", no speed: '%s' measures none", json_str(verdict, "backend", ""));
}

/* A callback of the agent: prints a turn's verdict in one line. */
static void agent_show_verdict(int turn, const struct answer *a, const json_t *verdict, void *ctx)
{
    struct buf line;

    buf_init(&line, 4096);
    feedback_line(verdict, &line);
    fprintf(stderr, "turn %d: %s%s%s - %s", turn, json_str(verdict, "status", ""),
            json_is_string(json_object_get(verdict, "category")) ? ", " : "", json_str(verdict, "category", ""),
            line.p);
    agent_print_speed(verdict);
    if (a->tokens)
        fprintf(stderr, " (%d tokens%s)", a->tokens, a->cut ? ", cut" : "");
    fputc('\n', stderr);
    buf_free(&line);
}

/* Writes the log and the best answer. */
static int agent_keep(const struct opts *o, const struct agent_result *r, struct err *e)
{
    int rc = 0;

    if (r->program && opts_has(o, "out"))
        rc = file_write(opts_str(o, "out"), r->program, strlen(r->program), e);
    if (r->program && (rc < 0 || !opts_has(o, "out"))) /* hours of turns do not go with a full disk */
        printf("%s\n", r->program);
    if (opts_has(o, "log") && json_write(opts_str(o, "log"), r->turns_json, rc == 0 ? e : NULL) < 0)
        rc = -1;
    return fflush(stdout) || rc < 0 ? -1 : 0;
}

/* The option's file, where it may be written after each turn: a pipe gets the last word alone. NULL: it may not. */
static const char *agent_file_of_turns(const struct opts *o, const char *name)
{
    const char *path = opts_str(o, name);

    return path && !file_is_special(path) ? path : NULL;
}

/* A callback of the agent: what was reached so far outlives a process that is killed. The end tells what fails here. */
static void agent_keep_turn(const struct agent_result *r, void *ctx)
{
    const char *out = agent_file_of_turns(ctx, "out"), *log = agent_file_of_turns(ctx, "log");

    if (out && r->program && r->turn == r->turns)
        file_write(out, r->program, strlen(r->program), NULL);
    if (log)
        json_write(log, r->turns_json, NULL);
}

/* Tells the best turn; the exit code says whether it passed. */
static int agent_exit_of(const struct agent_result *r)
{
    const char *status = json_str(r->best, "status", "infra"), *category = json_str(r->best, "category", status);

    fprintf(stderr, "best: turn %d of %d, %s", r->turn, r->turns, category);
    agent_print_speed(r->best);
    fputc('\n', stderr);
    return !strcmp(status, "passed") ? EXIT_OK : !strcmp(status, "infra") ? EXIT_UNFIT : EXIT_FAILED;
}

/* Fills a and c from the options. ERR_INPUT: one is missing or unfit. */
static int agent_options_of(const struct opts *o, struct agent_options *a, struct answers_config *c,
                            struct err *e)
{
    *c = (struct answers_config){.model = opts_str(o, "model"), .model_name = opts_str(o, "model-name"),
                                 .retry_s = opts_real(o, "retry")};
    *a = (struct agent_options){.stop_at_pass = !opts_bool(o, "faster"), .eval = EVAL_OPTIONS_DEFAULT};
    if (opts_store(o, a, e) < 0)
        return -1;
    if (!opts_has(o, "task") || !opts_has(o, "model"))
        return err_set(e, ERR_INPUT, "say --task FILE and --model http://HOST:PORT/v1 or --model FOLDER");
    if (!(c->retry_s > 0))
        return err_set(e, ERR_INPUT, "--retry is a number of seconds above 0");
    if (a->turns < 1 || a->max_new < 1)
        return err_set(e, ERR_INPUT, "--turns and --max-new start at 1");
    return prompt_style_parse(opts_str(o, "style"), &a->style, e);
}

/* Plays all turns with the task. */
static int agent_do_play(const struct opts *o, struct answers *source, struct eval *ev, const struct task *task,
                         const struct agent_options *a, struct err *e)
{
    struct agent_listener l = {.on_text = opts_bool(o, "show") ? agent_show_text : NULL,
                               .on_verdict = agent_show_verdict, .on_turn = agent_keep_turn,
                               .ctx = (void *)(uintptr_t)o};
    struct agent_result r = {0};
    struct err ignored = ERR_INIT;
    int rc = agent_run(source, ev, task, a, &l, &r, e), kept = r.best ? agent_keep(o, &r, rc < 0 ? &ignored : e) : 0;

    if (rc == 0)
        rc = kept < 0 ? -1 : agent_exit_of(&r);
    agent_result_free(&r);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int agent_main(const struct opts *o, struct err *e)
{
    struct eval_config c = {.no_jail = !strcmp(opts_str(o, "jail"), "none"), .jobs = 1, .daemon_client = true};
    struct agent_options a;
    struct answers_config ac;
    struct answers *source = NULL;
    struct eval *ev = NULL;
    struct task task = {0};
    int rc = -1;

    if (agent_options_of(o, &a, &ac, e) < 0)
        return -1;
    c.backend = a.eval.backend;
    if (eval_options_check(&a.eval, e) == 0 && eval_backend_check(a.eval.backend, e) == 0 &&
        task_read(opts_str(o, "task"), &task, e) == 0 && answers_open(&ac, &source, e) == 0 &&
        eval_open(&c, &ev, e) == 0)
        rc = agent_do_play(o, source, ev, &task, &a, e);
    eval_close(ev);
    answers_close(source);
    task_free(&task);
    return rc;
}

static void agent_list_reads(const struct opts *o, struct opt_reads *ret)
{
    if (opts_has(o, "task"))
        opt_reads_add(ret, task_sidecar_path(opts_str(o, "task")));
}

const struct command cmd_agent = {
    "agent",
    "let a model write a kernel, with the judge's feedback",
    "--task TASK.py --model URL|FOLDER [options]",
    "Asks a model for a kernel, judges it, tells the model what is wrong, and asks again. The best kernel goes to "
    "standard\n"
    "output (or --out), each turn's verdict to standard error. Any OpenAI-compatible server will do (vLLM, SGLang, a "
    "hosted\n"
    "one), or a model folder of ours.\n"
    "  musacoder agent --task 19_ReLU.py --model http://localhost:8000/v1 --turns 5 --out relu.py\n"
    "Exit code: 0 the best passes, 1 it does not, 2 usage or an unusable task, 3 the judge or the server is "
    "unfit,\n"
    "or --out or --log cannot be written.\n\n",
    rows,
    agent_main, 0, NULL, agent_list_reads};
