/* cmd_explain.c - 'musacoder explain': what a code of a verdict or of an error means, from the table of codes. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "eval/verdict/codes.h"

static const struct opt rows[] = {
    {"explain", "markdown", OPT_BOOL, "false", "print all codes as the page docs/errors.md"},
    {0},
};

/* {category, what it is} in the order of the table. */
static const char *const explain_groups[][2] = {
    {"passed", "Passed"}, {"extraction_error", "No program (`extraction_error`)"},
    {"compile_error", "Does not compile (`compile_error`)"},
    {"runtime_error", "Fails while it runs (`runtime_error`)"},
    {"correctness_error", "Wrong result (`correctness_error`)"},
    {"cheating", "Not the program's own work (`cheating`)"},
    {"timeout", "Takes too long (`timeout`)"}, {"unsupported", "Cannot be judged here (`unsupported`; not scored)"},
    {"infra", "The judge failed (`infra`; not scored)"}, {"error", "Messages of the program"}};

/* Prints all codes as the page docs/codes.md. */
static void explain_markdown(void)
{
    const char *group = "";

    printf("# Codes of verdicts and errors\n\nMade by `musacoder explain --markdown`. A code keeps its meaning for "
           "good; a record has it in `code`.\n");
    for (const struct code *c = code_table; c->id; c++) {
        for (size_t i = 0; i < sizeof explain_groups / sizeof *explain_groups; i++)
            if (strcmp(group, c->category) && !strcmp(explain_groups[i][0], c->category))
                printf("\n## %s\n", explain_groups[i][1]);
        group = c->category;
        printf("\n### %s %s\n%s\n", c->id, c->title, c->why);
        if (*c->fix)
            printf("\n**What helps**: %s\n", c->fix);
    }
}

static void explain_list(void)
{
    for (const struct code *c = code_table; c->id; c++)
        printf("%s  %-18s %s\n", c->id, c->category, c->title);
}

static void explain_one(const struct code *c)
{
    printf("%s: %s (%s)\n\n%s\n", c->id, c->title, c->category, c->why);
    if (*c->fix)
        printf("\nwhat helps: %s\n", c->fix);
}

/* The command; an exit code, or -1 with e. */
static int explain_run(const struct opts *o, struct err *e)
{
    if (opts_bool(o, "markdown"))
        explain_markdown();
    else if (o->n_args == 0)
        explain_list();
    for (int i = 0; i < o->n_args; i++) {
        const struct code *c = code_find(o->args[i]);

        if (!c)
            return err_set(e, ERR_INPUT, "no code '%s'; 'musacoder explain' lists them", o->args[i]);
        explain_one(c);
    }
    return EXIT_OK;
}

const struct command cmd_explain = {
    "explain", "what a code such as MC301 means", "[CODE...]",
    "Says what a code behind a verdict or an error means, and what helps; without a word it lists all codes.\n",
    rows, explain_run, WORDS_ANY};
