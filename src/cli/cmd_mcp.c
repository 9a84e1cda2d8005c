/* cmd_mcp.c - 'musacoder mcp': the judge for coding agents, by the Model Context Protocol over standard input and
 * output, or over HTTP: there each request is a conversation of one message. A tool is one row of mcp_tools.c and one
 * child: this very binary with another command. So a judge that dies is an answer, and several calls, pings and
 * cancellations go on beside each other. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/mcp_tools.h"
#include "eval/verdict/feedback.h"
#include "proc/proc.h"
#include "serve/http.h"
#include "serve/tokens.h"

#define MESSAGE_MAX ((size_t)16 << 20) /* bytes of a line, as of a request to 'serve' */
#define COMPLAINT_MAX ((size_t)4000)   /* bytes of what a tool says when it fails */
#define CALLS_MAX 8                    /* that run beside each other */
#define READS_MAX 256 /* of standard input, between two looks at the calls */

enum mcp_code { MCP_PARSE = -32700, MCP_REQUEST = -32600, MCP_METHOD = -32601, MCP_PARAMS = -32602 };

struct mcp_call {
    json_t *id; /* NULL: free */
    const struct mcp_tool *tool;
    char *dir; /* private, removed with the call */
    struct proc *p;
};

struct mcp {
    char *root; /* as in struct mcp_plan */
    double wait_s;
    bool structured, ended, broken; /* ended: no more input; broken: nobody reads our output */
    struct mcp_call calls[CALLS_MAX];
    struct proc *ps[CALLS_MAX]; /* those of the calls, for proc_poll */
    struct buf line;
    struct buf *reply;    /* NULL: standard output */
    atomic_int *running;  /* calls of all conversations together; NULL: there is this one alone */
};

struct mcp_fault {
    int code; /* 0: none */
    struct err e;
};

/* ---- messages ---- */

/* Sends a message; takes v. */
static void mcp_send(struct mcp *m, json_t *v)
{
    char *text = json_text(v);

    if (m->reply)
        buf_adds(m->reply, text);
    else if (fputs(text, stdout) == EOF || putchar('\n') == EOF || fflush(stdout) == EOF)
        m->broken = true;
    free(text);
    json_decref(v);
}

static void mcp_send_result(struct mcp *m, const json_t *id, json_t *result)
{
    mcp_send(m, json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

static void mcp_send_error(struct mcp *m, const json_t *id, int code, const char *text)
{
    mcp_send(m, json_pack("{s:s,s:o,s:{s:i,s:o}}", "jsonrpc", "2.0", "id", id ? json_deep_copy(id) : json_null(),
                          "error", "code", code, "message", json_utf8(text, strlen(text))));
}

static json_t *mcp_text_block(const char *text, size_t n)
{
    return json_pack("{s:s,s:o}", "type", "text", "text", json_utf8(text, n));
}

/* A client of a protocol without structured content gets the record as a text of its own. Takes the record. */
static json_t *mcp_make_result(const struct mcp *m, const struct buf *words, json_t *record, bool failed)
{
    json_t *content = json_array(), *v = json_object();
    char *text;

    json_array_append_new(content, mcp_text_block(words->p, words->n));
    if (record && !m->structured) {
        text = json_text(record);
        json_array_append_new(content, mcp_text_block(text, strlen(text)));
        free(text);
    }
    json_object_set_new(v, "content", content);
    if (record && m->structured)
        json_object_set(v, "structuredContent", record);
    json_object_set_new(v, "isError", json_boolean(failed));
    json_decref(record);
    return v;
}

/* A tool's result that says what is wrong. New. */
static json_t *mcp_make_complaint(const struct mcp *m, const char *text)
{
    struct buf b;
    json_t *v;

    buf_init(&b, COMPLAINT_MAX);
    buf_adds(&b, text);
    v = mcp_make_result(m, &b, NULL, true);
    buf_free(&b);
    return v;
}

/* ---- calls ---- */

/* Frees a call's place and its folder. */
static void mcp_free_call(struct mcp *m, struct mcp_call *c)
{
    if (c->dir)
        dir_remove(c->dir, NULL);
    free(c->dir);
    json_decref(c->id);
    if (c->id && m->running)
        atomic_fetch_sub(m->running, 1);
    *c = (struct mcp_call){0};
    m->ps[c - m->calls] = NULL;
}

/* The end of what a child said, and how it ended. */
static json_t *mcp_explain_failure(const struct mcp *m, const struct mcp_call *c, const struct proc_result *r)
{
    size_t n = r->err.n, k = n < COMPLAINT_MAX / 2 ? n : COMPLAINT_MAX / 2;
    char *text = xasprintf("'%s' gave no answer: %s\n%.*s", c->tool->name, proc_result_text(r), (int)k,
                           r->err.p + n - k);
    json_t *v = mcp_make_complaint(m, text);

    free(text);
    return v;
}

/* The result of a tool's call whose process has ended. New. */
static json_t *mcp_judge_end(const struct mcp *m, const struct mcp_call *c, const struct proc_result *r)
{
    json_t *record = r->why == PROC_EXITED && !r->out.cut ? json_parse(r->out.p, r->out.n, c->tool->name, NULL) : NULL;
    struct buf words;
    json_t *v;

    if (!json_is_object(record)) {
        json_decref(record);
        return mcp_explain_failure(m, c, r);
    }
    buf_init(&words, MCP_RECORD_MAX);
    c->tool->words(c->dir, record, &words);
    v = mcp_make_result(m, &words, record, r->code != EXIT_OK && r->code != EXIT_FAILED);
    buf_free(&words);
    return v;
}

/* The folder is gone before the client hears of the end. */
static void mcp_end_call(struct mcp *m, struct mcp_call *c, bool answer)
{
    struct proc_result r;
    struct err e = ERR_INIT;
    json_t *id = json_incref(c->id), *result;

    if (proc_end(c->p, &r, &e) < 0) {
        result = mcp_make_complaint(m, e.msg);
    } else {
        result = mcp_judge_end(m, c, &r);
        proc_result_free(&r);
    }
    mcp_free_call(m, c);
    if (answer)
        mcp_send_result(m, id, result);
    else
        json_decref(result);
    json_decref(id);
}

/* Starts the tool's process. */
static int mcp_start_child(struct mcp *m, struct mcp_call *c, const struct mcp_plan *p, struct err *e)
{
    extern char **environ;
    struct proc_spec s = {.argv = p->argv, .env = (const char *const *)environ, .in = p->in,
                          .n_in = p->in ? strlen(p->in) : 0, .max_out = MCP_RECORD_MAX, .output_kills = true,
                          .timeout_s = m->wait_s};

    if (proc_start(&s, &c->p, e) < 0)
        return -1;
    m->ps[c - m->calls] = c->p;
    return 0;
}

/* Plans a call in a folder of its own and starts it. */
static int mcp_start_call(struct mcp *m, struct mcp_call *c, const json_t *args, struct err *e)
{
    struct mcp_plan p = {.root = m->root, .args = args};
    int rc = -1;

    if ((c->dir = dir_temp("musacoder-mcp", e))) {
        p.dir = c->dir;
        mcp_add_word(&p, "/proc/self/exe");
        rc = c->tool->plan(&p, e) < 0 ? -1 : mcp_start_child(m, c, &p, e);
    }
    arena_free(&p.mem);
    return rc;
}

/* It is given back by mcp_free_call. */
static bool mcp_take_turn(struct mcp *m)
{
    if (!m->running || atomic_fetch_add(m->running, 1) < CALLS_MAX)
        return true;
    atomic_fetch_sub(m->running, 1);
    return false;
}

/* A free place for a call; NULL: too many run. */
static struct mcp_call *mcp_free_place(struct mcp *m)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (!m->calls[i].id)
            return &m->calls[i];
    return NULL;
}

/* ---- methods: each gives a new result, or fills the fault, or neither when the answer comes later ---- */

/* Sets the JSON-RPC error. Always -1. */
static int mcp_fail(struct mcp_fault *f, int code, const char *text, const char *name)
{
    f->code = code;
    return err_set(&f->e, ERR_INPUT, "%s%s%s%s", text, name ? " '" : "", name ? name : "", name ? "'" : "");
}

/* Method 'initialize': settles the protocol's version. */
static json_t *mcp_initialize(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f)
{
    const char *version = json_str(params, "protocolVersion", NULL);
    bool old = version && !strcmp(version, "2024-11-05");

    (void)id;
    if (!version)
        return mcp_fail(f, MCP_PARAMS, "initialize wants a protocolVersion", NULL), NULL;
    m->structured = !old;
    return json_pack("{s:s,s:{s:{s:b}},s:{s:s,s:s},s:s}", "protocolVersion", old ? version : "2025-06-18",
                     "capabilities", "tools", "listChanged", 0, "serverInfo", "name", "musacoder", "version",
                     MC_VERSION, "instructions",
                     "A judge of GPU kernels. Call eval with a task and a candidate, read what it says, mend, call it "
                     "again. lint looks at a task, translate goes between CUDA and MUSA.");
}

static json_t *mcp_ping(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f)
{
    (void)m, (void)id, (void)params, (void)f;
    return json_object();
}

/* Method 'tools/list'. */
static json_t *mcp_list_tools(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f)
{
    json_t *list = json_array();

    (void)m, (void)id, (void)params, (void)f;
    for (const struct mcp_tool *t = mcp_tools; t->name; t++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "name", t->name, "description", t->about, "inputSchema",
                                              json_loads(t->schema, 0, NULL)));
    return json_pack("{s:o}", "tools", list);
}

/* Method 'tools/call': starts the tool's process. NULL without a fault: the answer comes later. */
static json_t *mcp_call_tool(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f)
{
    const char *name = json_str(params, "name", NULL);
    const struct mcp_tool *t = name ? mcp_find_tool(name) : NULL;
    struct mcp_call *c = mcp_free_place(m);
    json_t *args = json_object_get(params, "arguments"), *ret = NULL;

    args = args ? json_incref(args) : json_object();
    if (!t)
        mcp_fail(f, MCP_PARAMS, name ? "unknown tool" : "tools/call wants a name", name);
    else if (mcp_check_args(t, args, &f->e) < 0)
        f->code = MCP_PARAMS;
    else if (!c || !mcp_take_turn(m))
        ret = mcp_make_complaint(m, "as many calls run as may; wait for one of them");
    else {
        *c = (struct mcp_call){.id = json_deep_copy(id), .tool = t};
        if (mcp_start_call(m, c, args, &f->e) < 0) {
            mcp_free_call(m, c);
            f->code = f->e.kind == ERR_INPUT ? MCP_PARAMS : 0;
            ret = f->code ? NULL : mcp_make_complaint(m, f->e.msg);
        }
    }
    json_decref(args);
    return ret;
}

/* Notice 'cancelled': ends that call. */
static void mcp_cancel(struct mcp *m, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");

    for (int i = 0; i < CALLS_MAX; i++)
        if (m->calls[i].id && json_equal(m->calls[i].id, id)) {
            proc_kill(m->calls[i].p);
            mcp_end_call(m, &m->calls[i], false);
            return;
        }
}

static const struct mcp_method {
    const char *name;
    json_t *(*answer)(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f);
} mcp_methods[] = {
    {"initialize", mcp_initialize},
    {"ping", mcp_ping},
    {"tools/list", mcp_list_tools},
    {"tools/call", mcp_call_tool},
};

static const struct mcp_method *mcp_find_method(const char *name)
{
    for (size_t i = 0; i < sizeof mcp_methods / sizeof mcp_methods[0]; i++)
        if (!strcmp(mcp_methods[i].name, name))
            return &mcp_methods[i];
    return NULL;
}

/* Answers one request, or sends why not. */
static void mcp_answer(struct mcp *m, const char *method, const json_t *id, const json_t *params)
{
    const struct mcp_method *t = mcp_find_method(method);
    struct mcp_fault f = {0, ERR_INIT};
    json_t *result = NULL;

    if (!t)
        mcp_fail(&f, MCP_METHOD, "no method", method);
    else if (params && !json_is_object(params))
        mcp_fail(&f, MCP_PARAMS, "'params' is an object", NULL);
    else
        result = t->answer(m, id, params, &f);
    if (f.code)
        mcp_send_error(m, id, f.code, f.e.msg);
    else if (result)
        mcp_send_result(m, id, result);
}

/* A notification gets no answer, whatever it is; nor does an answer, for we ask nothing. */
static void mcp_take_message(struct mcp *m, const json_t *v)
{
    const json_t *id = json_object_get(v, "id"), *params = json_object_get(v, "params");
    const char *method = json_str(v, "method", NULL);
    bool good_id = json_is_string(id) || json_is_integer(id);

    if (!method && json_is_object(v) && (json_object_get(v, "result") || json_object_get(v, "error")))
        return;
    if (strcmp(json_str(v, "jsonrpc", ""), "2.0") != 0 || !method || (id && !good_id))
        mcp_send_error(m, good_id ? id : NULL, MCP_REQUEST, "no JSON-RPC 2.0 request: an object with jsonrpc, id, "
                                                            "method");
    else if (id)
        mcp_answer(m, method, id, params);
    else if (!strcmp(method, "notifications/cancelled"))
        mcp_cancel(m, params);
}

/* Takes the message of a whole line. */
static void mcp_take_line(struct mcp *m)
{
    struct err e = ERR_INIT;
    json_t *v = NULL;

    if (m->line.cut)
        mcp_send_error(m, NULL, MCP_REQUEST, "the message is larger than 16 MiB");
    else if (m->line.n > strspn(m->line.p, " \t\r")) {
        v = json_parse(m->line.p, m->line.n, "the message", &e);
        if (v)
            mcp_take_message(m, v);
        else
            mcp_send_error(m, NULL, MCP_PARSE, e.msg);
    }
    json_decref(v);
    buf_clear(&m->line);
}

/* Takes bytes and handles each whole line. */
static void mcp_take_bytes(struct mcp *m, const char *p, size_t n)
{
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        size_t k = end ? (size_t)(end - p) : n;

        buf_add(&m->line, p, k);
        if (end)
            mcp_take_line(m);
        k += end != NULL;
        p += k;
        n -= k;
    }
}

/* True once standard input has bytes; waits wait_ms at most. */
static bool mcp_can_read(int wait_ms)
{
    return poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, wait_ms) > 0;
}

/* Reads what stdin has; m->ended at its end. */
static void mcp_read(struct mcp *m, int wait_ms)
{
    char chunk[65536];

    for (int i = 0; i < READS_MAX && !m->ended && mcp_can_read(i ? 0 : wait_ms); i++) {
        ssize_t n = read(0, chunk, sizeof chunk);
        if (n > 0)
            mcp_take_bytes(m, chunk, (size_t)n);
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
            m->ended = true;
    }
    if (m->ended && m->line.n > 0)
        mcp_take_line(m);
}

/* True while a call has not been answered. */
static bool mcp_is_busy(const struct mcp *m)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (m->calls[i].id)
            return true;
    return false;
}

/* Until the client closes our input and its calls are answered, or closes our output, or Ctrl-C. */
static void mcp_serve(struct mcp *m)
{
    while (!stop_requested() && !m->broken && (!m->ended || mcp_is_busy(m))) {
        int done = mcp_is_busy(m) ? proc_poll(m->ps, CALLS_MAX, 0.05) : -1;

        if (done >= 0)
            mcp_end_call(m, &m->calls[done], true);
        mcp_read(m, mcp_is_busy(m) ? 0 : 1000);
    }
    for (int i = 0; i < CALLS_MAX; i++)
        if (m->calls[i].id) {
            proc_kill(m->calls[i].p);
            mcp_end_call(m, &m->calls[i], false);
        }
}

/* ---- over HTTP ---- */

struct mcp_web {
    char *root;
    double wait_s;
    struct tokens *tokens; /* NULL: nobody needs one */
    atomic_int running;
};

/* Waits for the calls of one HTTP request; ends them where its client is gone. */
static void mcp_web_finish(struct mcp *m, const struct http_call *c)
{
    while (mcp_is_busy(m)) {
        int done = proc_poll(m->ps, CALLS_MAX, 0.1);

        if (done >= 0)
            mcp_end_call(m, &m->calls[done], true);
        for (int i = 0; i < CALLS_MAX && done < 0 && http_stopping(c); i++)
            if (m->calls[i].id) {
                proc_kill(m->calls[i].p);
                mcp_end_call(m, &m->calls[i], true);
            }
    }
}

/* POST /mcp: one message, answered when it is done. */
static void mcp_web_post(struct http_call *c, void *ctx)
{
    struct mcp_web *w = ctx;
    const char *version = http_header(c, "MCP-Protocol-Version"), *body;
    struct mcp m = {.root = w->root, .wait_s = w->wait_s, .structured = !version || strcmp(version, "2024-11-05"),
                    .running = &w->running};
    struct buf reply;
    size_t n;

    body = http_body(c, &n);
    buf_init(&reply, MCP_RECORD_MAX * 2);
    buf_init(&m.line, MESSAGE_MAX);
    m.reply = &reply;
    buf_add(&m.line, body ? body : "", body ? n : 0);
    mcp_take_line(&m);
    mcp_web_finish(&m, c);
    buf_free(&m.line);
    if (reply.n == 0) {
        buf_free(&reply);
        http_reply(c, 202, "application/json", xstrdup(""), 0);
        return;
    }
    n = reply.n;
    http_reply(c, 200, "application/json", buf_detach(&reply), n);
}

/* No stream of the server's own, and no session that could be ended: 405, as the protocol says. */
static void mcp_web_no_stream(struct http_call *c, void *ctx)
{
    (void)ctx;
    http_header_add(c, "Allow", "POST");
    http_refuse(c, 405, "method", "this server speaks when it is asked: POST a message");
}

static const struct http_route mcp_web_routes[] = {{"POST", "/mcp", mcp_web_post, false},
                                                   {"GET", "/mcp", mcp_web_no_stream, false},
                                                   {"DELETE", "/mcp", mcp_web_no_stream, false},
                                                   {NULL, NULL, NULL, false}};

/* The owner of a token; NULL: unknown. */
static const char *mcp_web_who(const char *token, void *ctx)
{
    const struct mcp_web *w = ctx;

    return w->tokens ? tokens_owner(w->tokens, token) : "local";
}

/* Starts the server of --port; *ret is stopped by http_stop. */
static int mcp_web_start(const struct opts *o, struct mcp_web *w, struct http **ret, struct err *e)
{
    const char *address = opts_str(o, "address");
    struct http_config h = {.address = address, .port = (int)opts_int(o, "port"), .threads = CALLS_MAX + 4,
                            .body_max = MESSAGE_MAX, .bodies_max = 4 * MESSAGE_MAX, .owner_bodies = 2 * MESSAGE_MAX,
                            .idle_s = 30, .head_s = 45, .owner_calls = CALLS_MAX + 4, .connections = 256,
                            .routes = mcp_web_routes, .who = mcp_web_who, .ctx = w,
                            .hosts = opts_has(o, "tokens") ? NULL : opts_has(o, "host") ? opts_str(o, "host") : ""};

    if (!opts_has(o, "tokens") && strncmp(address, "127.", 4) != 0 && strcmp(address, "::1") != 0)
        return err_set(e, ERR_INPUT, "'%s' is reached from other machines, so callers need tokens; give --tokens FILE, "
                                     "or listen on 127.0.0.1", address);
    if (opts_has(o, "tokens") && tokens_read(opts_str(o, "tokens"), &w->tokens, e) < 0)
        return -1;
    return http_start(&h, ret, e);
}

/* Serves MCP over HTTP until stopped. */
static int mcp_web_serve(const struct opts *o, char *root, struct err *e)
{
    struct mcp_web w = {.root = root, .wait_s = opts_real(o, "wait-max")};
    struct http *http = NULL;
    int rc = mcp_web_start(o, &w, &http, e);

    if (rc == 0) {
        fprintf(stderr, "mcp: http://%s:%d/mcp\n", opts_str(o, "address"), http_port(http));
        while (!stop_requested())
            poll(NULL, 0, 200);
        http_stop(http);
    }
    tokens_free(w.tokens);
    return rc;
}

/* ---- the command ---- */

static const struct opt rows[] = {
    {"mcp", "root", OPT_STR, NULL,
     "the folder whose files calls may name; default: the working folder, unless it is /; over HTTP: none"},
    {"mcp", "port", OPT_INT, NULL, "speak HTTP at this port (0 = any free one), path /mcp, instead of standard input"},
    {"mcp", "address", OPT_STR, "127.0.0.1", "where --port listens; other machines need --tokens"},
    {"mcp", "tokens", OPT_STR, NULL, "of --port: a file of lines 'TOKEN OWNER', as 'serve' has it"},
    {"mcp", "host", OPT_STR, NULL, "of --port without tokens: names it may be called by, as 'serve' has them"},
    {"mcp", "wait-max", OPT_REAL, "600", "seconds a call may take"},
    {"mcp", "explain", OPT_BOOL, "false", "print the words of the verdict record on standard input as JSON, and end"},
    {0},
};

/* A record from stdin, new; NULL with e. */
static json_t *mcp_read_record(struct err *e)
{
    struct buf b;
    json_t *v;
    char chunk[65536];
    ssize_t n;

    buf_init(&b, MESSAGE_MAX);
    while ((n = read(0, chunk, sizeof chunk)) > 0)
        buf_add(&b, chunk, (size_t)n);
    v = b.cut ? (err_set(e, ERR_INPUT, "the record is larger than 16 MiB"), NULL)
        : json_parse(b.p, b.n, "the record", e);
    buf_free(&b);
    return v;
}

/* 'mcp --explain': prints a record's words as JSON. */
static int mcp_explain(struct err *e)
{
    json_t *record = mcp_read_record(e), *v;
    struct buf text, line;

    if (!record)
        return -1;
    if (!json_str(record, "status", NULL)) {
        json_decref(record);
        return err_set(e, ERR_INPUT, "that is no verdict's record: it has no status");
    }
    buf_init(&text, FEEDBACK_MAX);
    buf_init(&line, FEEDBACK_MAX);
    feedback_text(record, &text);
    feedback_line(record, &line);
    v = json_pack("{s:o,s:o}", "line", json_utf8(line.p, line.n), "feedback", json_utf8(text.p, text.n));
    json_print(v);
    buf_free(&line);
    buf_free(&text);
    json_decref(v);
    json_decref(record);
    return EXIT_OK;
}

/* The command; an exit code, or -1 with e. */
static int mcp_run(const struct opts *o, struct err *e)
{
    struct mcp m = {.wait_s = opts_real(o, "wait-max"), .structured = true};
    const char *root = opts_has(o, "root") ? opts_str(o, "root") : ".";
    int rc = 0;

    if (opts_bool(o, "explain"))
        return mcp_explain(e);
    if (m.wait_s <= 0)
        return err_set(e, ERR_INPUT, "--wait-max is a number of seconds above 0");
    if (!(m.root = realpath(root, NULL)) || !file_is_dir(m.root)) {
        free(m.root);
        return err_set(e, ERR_INPUT, "no folder '%s'; --root names one", root);
    }
    if (!opts_has(o, "root") && (!strcmp(m.root, "/") || opts_has(o, "port"))) {
        free(m.root);
        m.root = NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    if (opts_has(o, "port")) {
        rc = mcp_web_serve(o, m.root, e);
    } else {
        buf_init(&m.line, MESSAGE_MAX);
        mcp_serve(&m);
        buf_free(&m.line);
    }
    free(m.root);
    if (rc < 0)
        return -1;
    return stop_requested() ? EXIT_STOPPED : EXIT_OK;
}

const struct command cmd_mcp = {
    "mcp", "the judge for coding agents: a Model Context Protocol server on standard input and output, or HTTP",
    "[--root FOLDER] [--port N [--address A] [--tokens FILE]]",
    "Speaks the Model Context Protocol (2025-06-18, 2024-11-05; a JSON-RPC message a line) with the tools eval,\n"
    "explain, lint, translate and replay. An agent's client starts it:\n"
    "  claude mcp add musacoder -- musacoder mcp --root /path/to/kernels\n"
    "Each call is a child of its own: what ends it is an answer with isError, never the end of the server. Files are\n"
    "read, and capsules written, below --root alone. Eight calls run at once. docs/mcp.md shows clients' files.\n"
    "With --port the same tools answer over HTTP (Streamable HTTP, a JSON answer a request) at /mcp.\n"
    "Exit code: 0 the client closed its end, 2 usage, 130 Ctrl-C.\n\n",
    rows, mcp_run, 0};
