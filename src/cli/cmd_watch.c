/* cmd_watch.c - 'musacoder watch': a run's curves while it trains. */
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/cli.h"
#include "report/page.h"
#include "report/watch.h"

static const struct opt rows[] = {
    {"watch", "html", OPT_OUT_FILE, NULL, "write a page there that loads itself again; open it in a browser"},
    {"watch", "every", OPT_INT, "5", "seconds between two looks"},
    {"watch", "once", OPT_BOOL, NULL, "look once and end; so it is where output is no terminal and no page is asked "
                                      "for"},
    {0},
};

static int watch_columns(void)
{
    struct winsize w;

    return ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 100;
}

/* Reads the run's metrics once and shows them. */
static int watch_look(const struct opts *o, bool tty, struct err *e)
{
    const char *html = opts_str(o, "html");
    struct buf text;
    json_t *lines, *page;
    double idle;
    int rc = 0;

    if (watch_read(o->args[0], &lines, &idle, e) < 0)
        return -1;
    buf_init(&text, BUF_MAX_TEXT);
    watch_text(&text, o->args[0], lines, idle, watch_columns());
    if (html) {
        page = watch_data(o->args[0], lines, idle, opts_bool(o, "once") ? 0 : (int)opts_int(o, "every"));
        rc = page_write(page, html, e);
        json_decref(page);
    }
    if (rc == 0 && html && opts_bool(o, "once"))
        log_info("wrote '%s'", html);
    if (rc == 0 && (tty || !html))
        printf("%s%s", tty ? "\033[H\033[J" : "", text.p);
    fflush(stdout);
    buf_free(&text);
    json_decref(lines);
    return rc;
}

/* The command: looks again and again until stopped. */
static int watch_run(const struct opts *o, struct err *e)
{
    bool once = opts_bool(o, "once"), tty = isatty(1) && !once;
    int every = (int)opts_int(o, "every"), rc;

    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "watch wants one run folder, e.g. 'musacoder watch runs/mine'");
    if (every < 1)
        return err_set(e, ERR_INPUT, "--every wants at least 1 second");
    once = once || (!tty && !opts_str(o, "html"));
    rc = watch_look(o, tty, e);
    while (rc == 0 && !once && !stop_requested()) {
        nanosleep(&(struct timespec){.tv_sec = every}, NULL); /* Ctrl-C ends it */
        if (!stop_requested())
            rc = watch_look(o, tty, e);
    }
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_watch = {
    "watch", "show a run's curves while it trains", "RUN [--html FILE] [--every S] [--once]",
    "RUN is the folder of sft, rft, rl or run. In a terminal: a line for each quantity of the newest stage, with its "
    "course.\n"
    "With --html also a page with the curves of all stages, one file that loads itself again. Ctrl-C ends the watching;"
    " the\n"
    "run does not notice.\n",
    rows, watch_run, 1};
