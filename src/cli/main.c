/* main.c - the command table. Reading order: this file, one cmd_*.c, then the module that it calls. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/trace.h"
#include "cli/cli.h"
#include "cli/pages.h"
#include "eval/verdict/codes.h"

static const struct command *const commands[] = {
    &cmd_agent,
    &cmd_bench,
    &cmd_card,
    &cmd_completion,
    &cmd_doctor,
    &cmd_eval,
    &cmd_explain,
    &cmd_export,
    &cmd_generate,
    &cmd_help,
    &cmd_import,
    &cmd_init,
    &cmd_launch,
    &cmd_lint,
    &cmd_logits,
    &cmd_man,
    &cmd_mcp,
    &cmd_owner,
    &cmd_profile,
    &cmd_replay,
    &cmd_rft,
    &cmd_rl,
    &cmd_run,
    &cmd_schema,
    &cmd_serve,
    &cmd_setup,
    &cmd_sft,
    &cmd_shrink,
    &cmd_synth,
    &cmd_synth_diagnose,
    &cmd_synth_mine,
    &cmd_synth_profile,
    &cmd_synth_teach,
    &cmd_tasks,
    &cmd_tokenize,
    &cmd_translate,
    &cmd_version,
    &cmd_warm,
    &cmd_watch,
    &cmd_worker,
    NULL,
};

#define N_COMMANDS (sizeof commands / sizeof commands[0] - 1)

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* "synth mine" before "synth". *ret: how many words the name has. */
static const struct command *main_find_words(int n, char **words, int *ret)
{
    char name[64];
    const struct command *c = NULL;

    snprintf(name, sizeof name, "%s %s", words[0], n > 1 ? words[1] : "");
    *ret = 2;
    if (n > 1 && (c = command_find(name)))
        return c;
    *ret = 1;
    return command_find(words[0]);
}

/* The exit code of the program for an error of this kind. */
static int exit_code_of(const struct err *e)
{
    switch (e->kind) {
    case ERR_NONE: return EXIT_OK;
    case ERR_INPUT: return EXIT_USAGE;
    case ERR_STOP: return EXIT_STOPPED;
    case ERR_ENV:
    case ERR_BUG: break;
    }
    return EXIT_UNFIT;
}

static const char *main_command_name(const void *ctx, int i)
{
    (void)ctx;
    return (size_t)i < N_COMMANDS ? commands[i]->name : NULL;
}

/* The groups of 'musacoder help', a command in one of them (tests/cli/test_help.sh). */
static const struct {
    const char *title, *names; /* each name between commas */
} main_groups[] = {
    {"judge a kernel", ",eval,explain,replay,lint,shrink,translate,agent,mcp,"},
    {"serve the judge", ",serve,worker,owner,warm,"},
    {"make tasks and data", ",tasks,synth,synth mine,synth teach,synth diagnose,synth profile,"},
    {"train and compare", ",run,watch,bench,card,init,sft,rft,rl,launch,"},
    {"use a model", ",import,export,generate,logits,tokenize,"},
    {"this program", ",setup,doctor,profile,schema,man,completion,version,help,"},
};

/* Prints a line for each command of the group. */
static void main_print_group(FILE *out, const char *names)
{
    for (const char *p = names + 1; *p; p += strcspn(p, ",") + 1) {
        char name[64];
        const struct command *c;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
        c = command_find(name);
        fprintf(out, "  %-15s %s\n", name, c ? c->summary : "");
    }
}

/* A command that no group names is shown all the same. */
static void main_print_rest(FILE *out)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char name[66];
        bool there = false;

        snprintf(name, sizeof name, ",%s,", commands[i]->name);
        for (size_t g = 0; g < sizeof main_groups / sizeof *main_groups; g++)
            there |= strstr(main_groups[g].names, name) != NULL;
        if (!there)
            fprintf(out, "  %-15s %s\n", commands[i]->name, commands[i]->summary);
    }
}

/* Prints what a user sees who gives no command. */
static void main_print_usage(FILE *out)
{
    fprintf(out, "musacoder - language models that write native GPU kernels, and the judge that verifies them\n\n"
                 "usage: musacoder COMMAND [options]\n\n"
                 "start here:\n"
                 "  $ musacoder eval --task TASK.py KERNEL.py   is this kernel right and honest, and why not?\n"
                 "  $ musacoder serve                           the same over HTTP: a reward for a trainer\n"
                 "  $ musacoder run recipes/quickstart.yaml     train a small model, from nothing to a report\n"
                 "  $ musacoder doctor                          what this machine has, and what it lacks\n");
    for (size_t g = 0; g < sizeof main_groups / sizeof *main_groups; g++) {
        fprintf(out, "\n%s:\n", main_groups[g].title);
        main_print_group(out, main_groups[g].names);
    }
    main_print_rest(out);
    fprintf(out, "\n'musacoder COMMAND -h' explains a command, 'musacoder explain MC301' the code of a verdict.\n");
}

static void main_print_command_help(FILE *out, const struct command *c)
{
    fprintf(out, "usage: musacoder %s %s\n\n%s", c->name, c->usage, c->about);
    if (c->rows[0].name)
        opts_help(out, c->rows);
}

/* ERR_INPUT with the nearest command's name. Always -1. */
static int main_unknown_command(const char *name, struct err *e)
{
    const char *near = nearest_word(name, main_command_name, NULL);

    return err_set(e, ERR_INPUT, "no command '%s'; %s%s%s", name, near ? "did you mean '" : "", near ? near : "",
                   near ? "'?" : "'musacoder help' lists them");
}

static const struct opt no_rows[] = {{0}};

/* 'help': the list of commands, or one command's help; an exit code, or -1 with e. */
static int main_help_run(const struct opts *o, struct err *e)
{
    const struct command *c;

    if (o->n_args == 0) {
        main_print_usage(stdout);
        return EXIT_OK;
    }
    if (!(c = main_find_words(o->n_args, o->args, &(int){0})))
        return main_unknown_command(o->args[0], e);
    main_print_command_help(stdout, c);
    return EXIT_OK;
}

const struct command cmd_help = {"help", "list the commands, or explain one", "[COMMAND]",
                                 "Lists the commands, or explains one as 'COMMAND -h' does.\n", no_rows, main_help_run,
                                 WORDS_ANY};

/* 'man': the manual page of a command, as roff or Markdown; an exit code, or -1 with e. */
static int main_man_run(const struct opts *o, struct err *e)
{
    const struct command *c;

    if (o->n_args == 0) {
        pages_overview(commands);
        return EXIT_OK;
    }
    if (!(c = main_find_words(o->n_args, o->args, &(int){0})))
        return main_unknown_command(o->args[0], e);
    (opts_bool(o, "markdown") ? pages_markdown : pages_man)(c);
    return EXIT_OK;
}

static const struct opt main_man_rows[] = {
    {"man", "markdown", OPT_BOOL, "false", "a command's page of the documentation site instead"},
    {0},
};

/* A word that no command reads would change nothing, and its author would not know. */
static int main_check_words(const struct command *c, const struct opts *o, struct err *e)
{
    if (o->help || c->words == WORDS_ANY || o->n_args <= c->words)
        return 0;
    return err_set(e, ERR_INPUT, "unexpected '%s'; values belong to options, and '%s' takes %s%s", o->args[c->words],
                   c->name, c->words ? "one other word: " : "no other words", c->words ? c->usage : "");
}

/* With its code, where 'musacoder explain' knows more. */
static void main_say_error(const struct err *e)
{
    const struct code *c = code_of_error(e->msg);

    if (c)
        log_error("%s [%s]", e->msg, c->id);
    else if (e->kind == ERR_STOP) /* as the caller wished: no error */
        log_info("%s", e->msg);
    else
        log_error("%s", e->msg);
}

/* Runs a command with its options; the process's exit code. */
static int main_call(const struct command *c, const struct opts *o)
{
    struct err e = ERR_INIT;
    int rc;

    if (o->help) {
        main_print_command_help(stdout, c);
        return EXIT_OK;
    }
    stop_install();
    rc = c->run(o, &e);
    if (rc >= 0)
        return rc;
    main_say_error(&e);
    return exit_code_of(&e);
}

const struct command cmd_man = {
    "man", "print a manual page", "[COMMAND]",
    "Prints the manual page of a command, or the overview, in man(7) format: 'musacoder man eval | man -l -'.\n"
    "'make install' puts all pages where man(1) finds them.\n",
    main_man_rows, main_man_run, WORDS_ANY};

static int main_completion_run(const struct opts *o, struct err *e)
{
    return pages_completion(commands, o->n_args == 1 ? o->args[0] : "", e) < 0 ? -1 : EXIT_OK;
}

const struct command cmd_completion = {
    "completion", "print shell completion", "bash|zsh|fish",
    "Prints completion of commands, options and their words for a shell. For this session only:\n"
    "  bash:  eval \"$(musacoder completion bash)\"\n"
    "  zsh:   eval \"$(musacoder completion zsh)\"\n"
    "  fish:  musacoder completion fish | source\n"
    "'make install' puts them where the shells look.\n",
    no_rows, main_completion_run, 1};

/* What is written takes nobody's place, and what is read is what was made. */
static int main_check_files(const struct command *c, const struct opts *o, struct err *e)
{
    struct opt_reads reads = {0};
    int rc;

    if (trace_check(e) < 0)
        return -1;
    if (c->reads)
        c->reads(o, &reads);
    rc = opts_check_results(o, &reads, e);
    opt_reads_free(&reads);
    return rc < 0 ? -1 : opts_check_inputs(o, e);
}

/* Parses a command's options and runs it; the process's exit code. */
static int main_run_command(const struct command *c, int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct opts o = {0};
    int rc;

    if (opts_parse(c->rows, argc, argv, NULL, &o, &e) < 0 || main_check_words(c, &o, &e) < 0 ||
        (!o.help && main_check_files(c, &o, &e) < 0)) {
        fprintf(stderr, "musacoder %s: %s\n", c->name, e.msg);
        rc = exit_code_of(&e);
    } else {
        rc = main_call(c, &o);
    }
    opts_free(&o);
    return rc;
}

/* The OpenMP runtime reads its environment before main. Its default, spinning at barriers, costs a factor of ten as
 * soon as compilers and candidates share the cores with us: so we start once more, with threads that sleep instead. */
static void main_use_sleeping_threads(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("OMP_WAIT_POLICY", "passive", 1) != 0)
        return;
    execv("/proc/self/exe", argv);
}

/* A signal's handler that does nothing: a write above the limit of file sizes (ulimit -f) fails, and its file is named.
 * Programs that are started have the default again. */
static void main_pass_over(int signal)
{
    (void)signal;
}

static int main_of(int argc, char **argv)
{
    struct err e = ERR_INIT;
    const struct command *c;
    int words;

    if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
        main_print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_OK;
    }
    if (!strcmp(argv[1], "--version"))
        argv[1] = "version";
    if (!(c = main_find_words(argc - 1, argv + 1, &words))) {
        main_unknown_command(argv[1], &e);
        fprintf(stderr, "musacoder: %s\n", e.msg);
        return EXIT_USAGE;
    }
    return main_run_command(c, argc - 1 - words, argv + 1 + words);
}

/* musacoder COMMAND [options]; exit codes are in cli.h. What was printed is there, or it was no success. */
int main(int argc, char **argv)
{
    int rc;

    main_use_sleeping_threads(argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGXFSZ, main_pass_over);
    rc = main_of(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && rc <= EXIT_FAILED) {
        log_error("cannot write to standard output; is its disk full?");
        rc = EXIT_UNFIT;
    }
    return rc;
}
