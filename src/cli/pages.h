/* pages.h - manual pages and shell completion, made from the option rows that -h prints, so that none of the three can
 * say something else. All of it goes to standard output. 'all' is the command table, ending with NULL. */
#ifndef MC_CLI_PAGES_H
#define MC_CLI_PAGES_H

#include "cli/cli.h"

void pages_man(const struct command *c);                    /* one command, in man(7) format */
void pages_overview(const struct command *const *all);      /* musacoder(1) */
void pages_markdown(const struct command *c);               /* the page of one command on the site */
/* shell: "bash", "zsh" or "fish"; another one is ERR_INPUT. */
int pages_completion(const struct command *const *all, const char *shell, struct err *e);

#endif
