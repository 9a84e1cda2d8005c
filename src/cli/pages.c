/* pages.c - prints manual pages and shell completion from the option rows; see pages.h. */
#include "cli/pages.h"

#include <stdio.h>
#include <string.h>

/* ---- manual pages (man(7)) ---- */

/* Text of a page: a backslash is escaped, and a line that begins with a dot or a quote is no request. */
static void pages_man_text(const char *text)
{
    bool start = true;

    for (const char *p = text; *p; p++) {
        if (start && (*p == '.' || *p == '\''))
            fputs("\\&", stdout);
        if (*p == '\\')
            fputs("\\e", stdout);
        else if (*p == '-')
            fputs("\\-", stdout);
        else
            putchar(*p);
        start = *p == '\n';
    }
}

/* "synth mine" -> "synth-mine", the page's name behind "musacoder-". */
static void pages_man_page_name(const char *command, char *out, size_t n)
{
    snprintf(out, n, "%s", command);
    for (char *p = out; *p; p++)
        if (*p == ' ')
            *p = '-';
}

/* Prints an option's paragraph for man. */
static void pages_man_option(const struct opt *row)
{
    printf(".TP\n.B \\-\\-");
    pages_man_text(row->name);
    printf("%s\n", opt_meta(row));
    pages_man_text(row->help);
    if (row->def && *row->def && !(row->type == OPT_BOOL && !strcmp(row->def, "false"))) {
        printf(" [");
        pages_man_text(row->def);
        printf("]");
    }
    putchar('\n');
}

static void pages_man_head(const char *page, const char *summary)
{
    printf(".TH \"%s\" 1 \"\" \"musacoder " MC_VERSION "\" \"User Commands\"\n.SH NAME\n%s \\- ", page, page);
    pages_man_text(summary);
    putchar('\n');
}

void pages_man(const struct command *c)
{
    char name[64], page[80];

    pages_man_page_name(c->name, name, sizeof name);
    snprintf(page, sizeof page, "musacoder-%s", name);
    pages_man_head(page, c->summary);
    printf(".SH SYNOPSIS\n.nf\nmusacoder %s ", c->name);
    pages_man_text(c->usage);
    printf("\n.fi\n.SH DESCRIPTION\n.nf\n");
    pages_man_text(c->about);
    printf(".fi\n");
    if (c->rows[0].name)
        printf(".SH OPTIONS\nEach option is also a recipe key of the same name and a variable MUSACODER_NAME.\n");
    for (const struct opt *row = c->rows; row->name; row++)
        pages_man_option(row);
    printf(".SH SEE ALSO\n.BR musacoder (1)\n");
}

void pages_overview(const struct command *const *all)
{
    pages_man_head("musacoder", "language models that write native GPU kernels, and the judge that verifies them");
    printf(".SH SYNOPSIS\nmusacoder COMMAND [options]\n.SH COMMANDS\n");
    for (const struct command *c; (c = *all); all++) {
        char name[64];

        pages_man_page_name(c->name, name, sizeof name);
        printf(".TP\n.BR musacoder\\-%s (1)\n", name);
        pages_man_text(c->summary);
        putchar('\n');
    }
}

/* ---- Markdown ---- */

/* Of a table's cell: what would end it or begin a tag is escaped. */
static void pages_cell(const char *text)
{
    for (; *text; text++)
        if (strchr("|<>*_", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
}

/* Prints an option's row in Markdown. */
static void pages_markdown_option(const struct opt *row)
{
    bool off = row->type == OPT_BOOL && row->def && !strcmp(row->def, "false");

    printf("| `");
    if (opt_short_flag(row->name))
        printf("%s`, `", opt_short_flag(row->name));
    printf("--%s%s` | ", row->name, opt_meta(row));
    pages_cell(row->help);
    printf(row->def && *row->def && !off ? " | `%s` |\n" : " | |\n", row->def);
}

void pages_markdown(const struct command *c)
{
    printf("# musacoder %s\n\n%s\n\n```\nmusacoder %s %s\n```\n\n```text\n%s```\n", c->name, c->summary, c->name,
           c->usage, c->about);
    if (c->rows[0].name)
        printf("\n| option | what it does | default |\n|---|---|---|\n");
    for (const struct opt *row = c->rows; row->name; row++)
        pages_markdown_option(row);
}

/* ---- completion ---- */

/* The words of a choice: "a|b|c: help" up to the colon, with spaces between them. */
static void pages_complete_choices(const struct opt *row)
{
    if (row->type == OPT_CHOICE)
        for (const char *p = row->help; *p && *p != ':'; p++)
            putchar(*p == '|' ? ' ' : *p);
}

static void pages_complete_flags(const struct command *c)
{
    for (const struct opt *row = c->rows; row->name; row++)
        printf("%s--%s", row == c->rows ? "" : " ", row->name);
}

/* Prints bash's completions of each command's options. */
static void pages_complete_cases(const struct command *const *all)
{
    for (const struct command *c; (c = *all); all++) {
        printf("    '%s') flags='", c->name);
        pages_complete_flags(c);
        printf("'\n");
        for (const struct opt *row = c->rows; row->name; row++)
            if (row->type == OPT_CHOICE) {
                printf("        [ \"$prev\" = --%s ] && words='", row->name);
                pages_complete_choices(row);
                printf("'\n");
            }
        printf("        ;;\n");
    }
}

/* Prints the commands' names. second: second words of commands of two. */
static void pages_complete_names(const struct command *const *all, bool second)
{
    for (const struct command *c; (c = *all); all++) {
        const char *space = strchr(c->name, ' ');

        if (!second && !space)
            printf("%s ", c->name);
        else if (second && space)
            printf("%s ", space + 1);
    }
}

/* bash: options of the command, words of a choice, else files. zsh reads the same through bashcompinit. */
static void pages_complete_bash(const struct command *const *all)
{
    printf("# musacoder completion; made by 'musacoder completion bash'\n"
           "_musacoder() {\n"
           "    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" flags= words=\n"
           "    local command=\"${COMP_WORDS[1]}\"\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    pages_complete_names(all, false);
    printf("' -- \"$cur\")); return\n    fi\n    case \"$command ${COMP_WORDS[2]}\" in\n");
    for (const struct command *const *p = all; *p; p++)
        if (strchr((*p)->name, ' '))
            printf("    '%s') command='%s' ;;\n", (*p)->name, (*p)->name);
    printf("    esac\n    case \"$command\" in\n");
    pages_complete_cases(all);
    printf("    esac\n"
           "    if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    elif [[ \"$cur\" == -* ]]; then COMPREPLY=($(compgen -W \"$flags --help\" -- \"$cur\"))\n"
           "    elif [ \"$COMP_CWORD\" -eq 2 ] && [ \"$command\" = synth ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    pages_complete_names(all, true);
    printf("' -- \"$cur\"))\n"
           "    elif [ \"$COMP_CWORD\" -eq 2 ] && [ \"$command\" = help ]; then COMPREPLY=($(compgen -W '");
    pages_complete_names(all, false);
    printf("' -- \"$cur\"))\n"
           "    else compopt -o default 2>/dev/null; fi\n"
           "}\n"
           "complete -o bashdefault -o default -F _musacoder musacoder\n");
}

/* Prints text as a word in single quotes for the shell fish. */
static void pages_fish_quote(const char *text)
{
    putchar('\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'' || *p == '\\')
            putchar('\\');
        putchar(*p);
    }
    putchar('\'');
}

/* Prints fish's completions. */
static void pages_complete_fish(const struct command *const *all)
{
    printf("# musacoder completion; made by 'musacoder completion fish'\n");
    for (const struct command *c; (c = *all); all++) {
        char first[64];
        const char *space = strchr(c->name, ' ');

        snprintf(first, sizeof first, "%.*s", (int)(space ? space - c->name : (long)strlen(c->name)), c->name);
        if (space)
            printf("complete -c musacoder -f -n '__fish_seen_subcommand_from %s' -a %s -d ", first, space + 1);
        else
            printf("complete -c musacoder -n __fish_use_subcommand -f -a %s -d ", first);
        pages_fish_quote(c->summary);
        putchar('\n');
        for (const struct opt *row = c->rows; row->name; row++) {
            printf("complete -c musacoder -n '__fish_seen_subcommand_from %s' -l %s%s -d ", space ? space + 1 : first,
                   row->name, row->type == OPT_BOOL ? "" : row->type == OPT_CHOICE ? " -x" : " -r");
            pages_fish_quote(row->help);
            if (row->type == OPT_CHOICE)
                printf(" -a '"), pages_complete_choices(row), printf("'");
            putchar('\n');
        }
    }
}

int pages_completion(const struct command *const *all, const char *shell, struct err *e)
{
    if (!strcmp(shell, "zsh"))
        printf("#compdef musacoder\nautoload -U +X bashcompinit && bashcompinit\n");
    if (!strcmp(shell, "bash") || !strcmp(shell, "zsh"))
        pages_complete_bash(all);
    else if (!strcmp(shell, "fish"))
        pages_complete_fish(all);
    else
        return err_set(e, ERR_INPUT, "which shell? 'musacoder completion bash', 'zsh' or 'fish'");
    if (!strcmp(shell, "zsh")) /* The first call loads this file, and completes as well. */
        printf("[ \"${funcstack[1]}\" != _musacoder ] || _bash_complete -o bashdefault -o default -F _musacoder\n");
    return 0;
}
