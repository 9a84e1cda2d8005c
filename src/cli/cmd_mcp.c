/* cmd_mcp.c - 'musacoder mcp': the judge for coding agents, by the Model Context Protocol over standard input and
 * output. A tool is one row of a table and one child: this very binary with another command. So a judge that dies is
 * an answer, and several calls, pings and cancellations go on beside each other. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "eval/verdict/feedback.h"
#include "proc/proc.h"

#define MESSAGE_MAX ((size_t)16 << 20) /* bytes of a line, as of a request to 'serve' */
#define RECORD_MAX ((size_t)64 << 20)  /* bytes that a tool may print */
#define COMPLAINT_MAX ((size_t)4000)   /* bytes of what a tool says when it fails */
#define CALLS_MAX 8                    /* that run beside each other */
#define WORDS_MAX 32
#define READS_MAX 256 /* of standard input, between two looks at the calls */

enum mcp_code { MCP_PARSE = -32700, MCP_REQUEST = -32600, MCP_METHOD = -32601, MCP_PARAMS = -32602 };

struct mcp_plan;

struct mcp_tool {
    const char *name, *about, *schema;
    int (*plan)(struct mcp_plan *p, struct err *e);                 /* the child's words, its files, its input */
    void (*words)(const char *dir, json_t *record, struct buf *to); /* of what the child printed; it may add to it */
};

struct mcp_plan {
    const struct mcp *m;
    const json_t *args;
    const char *dir;
    struct arena mem; /* of all words */
    char *argv[WORDS_MAX + 1];
    int n;
    const char *in;
};

struct mcp_call {
    json_t *id; /* NULL: free */
    const struct mcp_tool *tool;
    char *dir; /* private, removed with the call */
    struct proc *p;
};

struct mcp {
    char *root; /* files of arguments lie below it; NULL: none may be named */
    double wait_s;
    bool structured, ended, broken; /* ended: no more input; broken: nobody reads our output */
    struct mcp_call calls[CALLS_MAX];
    struct proc *ps[CALLS_MAX]; /* those of the calls, for proc_poll */
    struct buf line;
};

struct mcp_fault {
    int code; /* 0: none */
    struct err e;
};

/* ---- what a call's arguments become ---- */

static void mcp_add_word(struct mcp_plan *p, const char *word)
{
    if (p->n < WORDS_MAX)
        p->argv[p->n++] = arena_strdup(&p->mem, word);
}

/* An argument 'max_new' is the option --max-new; its value cannot become an option of its own. */
static void mcp_add_option(struct mcp_plan *p, const char *name)
{
    const json_t *v = json_object_get(p->args, name);
    const char *no = json_is_false(v) ? "no-" : "";
    char *word = NULL;

    if (json_is_string(v))
        word = xasprintf("--%s=%s", name, json_string_value(v));
    else if (json_is_integer(v))
        word = xasprintf("--%s=%lld", name, (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        word = xasprintf("--%s%s", no, name);
    for (char *c = word; c && *c && *c != '='; c++)
        *c = (char)(*c == '_' ? '-' : *c);
    if (word)
        mcp_add_word(p, word);
    free(word);
}

static void mcp_add_options(struct mcp_plan *p, const char *const *names)
{
    for (; *names; names++)
        mcp_add_option(p, *names);
}

static bool mcp_is_below(const char *root, const char *path)
{
    size_t n = strlen(root);

    return !strcmp(root, "/") || (!strncmp(root, path, n) && path[n] == '/');
}

static int mcp_check_root(const struct mcp *m, struct err *e)
{
    return m->root ? 0 : err_set(e, ERR_INPUT, "no folder of files is open; start 'musacoder mcp --root FOLDER', or "
                                               "pass the text itself");
}

/* Where a file of the arguments really lies, links followed: a plain file below the root. */
static const char *mcp_find_file(struct mcp_plan *p, const char *path, struct err *e)
{
    char *at, *real, *kept = NULL;
    struct stat st;

    if (mcp_check_root(p->m, e) < 0)
        return NULL;
    at = *path == '/' ? xstrdup(path) : path_join(p->m->root, path);
    real = realpath(at, NULL);
    if (!real || stat(real, &st) < 0)
        err_set(e, ERR_INPUT, "no file '%s'", path);
    else if (!mcp_is_below(p->m->root, real))
        err_set(e, ERR_INPUT, "'%s' lies outside '%s'; see --root", path, p->m->root);
    else if (!S_ISREG(st.st_mode))
        err_set(e, ERR_INPUT, "'%s' is no plain file", path);
    else
        kept = arena_strdup(&p->mem, real);
    free(real);
    free(at);
    return kept;
}

static bool mcp_is_capsule_name(const char *path)
{
    static const char ending[] = ".capsule";
    size_t n = strlen(path), k = sizeof ending - 1;

    return n > k && !strcmp(path + n - k, ending) && path[n - k - 1] != '/';
}

/* May a file be written at this full path? Its folder is there, at or below the root, and no link stands there. */
static bool mcp_is_place(const char *root, const char *at)
{
    char *folder = xstrdup(at), *real;
    struct stat st;
    bool good;

    strrchr(folder, '/')[1] = 0;
    real = realpath(folder, NULL);
    good = real && (!strcmp(root, real) || mcp_is_below(root, real)) && (lstat(at, &st) < 0 || S_ISREG(st.st_mode));
    free(real);
    free(folder);
    return good;
}

/* Where a capsule of the arguments is to be written. */
static const char *mcp_find_place(struct mcp_plan *p, const char *path, struct err *e)
{
    const char *kept;
    char *at;

    if (mcp_check_root(p->m, e) < 0)
        return NULL;
    if (!mcp_is_capsule_name(path))
        return err_set(e, ERR_INPUT, "'%s' is no name of a capsule; let it end in .capsule", path), NULL;
    at = *path == '/' ? xstrdup(path) : path_join(p->m->root, path);
    kept = mcp_is_place(p->m->root, at) ? arena_strdup(&p->mem, at) : NULL;
    free(at);
    if (!kept)
        err_set(e, ERR_INPUT, "'%s' is no plain file in a folder at or below '%s'", path, p->m->root);
    return kept;
}

static const char *mcp_write_text(struct mcp_plan *p, const char *name, const char *text, struct err *e)
{
    char *at = path_join(p->dir, name), *kept = arena_strdup(&p->mem, at);
    int rc = file_write(at, text, strlen(text), e);

    free(at);
    return rc < 0 ? NULL : kept;
}

/* Argument 'what' is a text, 'what_path' says where one lies: exactly one of them is given. */
static int mcp_check_either(const struct mcp_plan *p, const char *what, const char **ret_text, const char **ret_path,
                            struct err *e)
{
    char key[32];

    snprintf(key, sizeof key, "%s_path", what);
    *ret_text = json_str(p->args, what, NULL);
    *ret_path = json_str(p->args, key, NULL);
    return !*ret_text == !*ret_path ? err_set(e, ERR_INPUT, "give '%s' or '%s', one of them", what, key) : 0;
}

/* The task's file. A sidecar that is given lies beside it. */
static const char *mcp_find_task(struct mcp_plan *p, struct err *e)
{
    const char *text, *path, *sidecar = json_str(p->args, "sidecar", NULL);

    if (mcp_check_either(p, "task", &text, &path, e) < 0)
        return NULL;
    if (path && sidecar)
        return err_set(e, ERR_INPUT, "'sidecar' belongs to 'task'; that of a file lies beside it"), NULL;
    if (sidecar && !mcp_write_text(p, "task.yaml", sidecar, e))
        return NULL;
    return path ? mcp_find_file(p, path, e) : mcp_write_text(p, "task.py", text, e);
}

/* ---- the tools ---- */

static int mcp_eval_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"backend", "protocol", "dialect", "trials", "seed", "perf", "cache", NULL};
    const char *task, *path, *capsule = json_str(p->args, "capsule_path", NULL);

    if (mcp_check_either(p, "candidate", &p->in, &path, e) < 0 || !(task = mcp_find_task(p, e)) ||
        (path && !(path = mcp_find_file(p, path, e))) || (capsule && !(capsule = mcp_find_place(p, capsule, e))))
        return -1;
    mcp_add_word(p, "eval");
    mcp_add_word(p, "--json");
    mcp_add_options(p, options);
    if (capsule)
        mcp_add_word(p, "--capsule"), mcp_add_word(p, capsule);
    mcp_add_word(p, "--task");
    mcp_add_word(p, task);
    mcp_add_word(p, path ? path : "-");
    return 0;
}

static void mcp_eval_words(const char *dir, json_t *v, struct buf *to)
{
    const char *category = json_str(v, "category", NULL);
    const json_t *reward = json_object_get(v, "reward");

    (void)dir;
    buf_adds(to, json_str(v, "status", "?"));
    if (category)
        buf_addf(to, ", %s in %s", category, json_str(v, "stage", "?"));
    if (json_is_number(reward))
        buf_addf(to, ", reward %g", json_number_value(reward));
    buf_adds(to, "\n");
    feedback_line(v, to);
    if (category)
        buf_addf(to, "\n%s", json_str(v, "feedback", ""));
}

static int mcp_explain_plan(struct mcp_plan *p, struct err *e)
{
    char *text = json_text(json_object_get(p->args, "record"));

    (void)e;
    p->in = arena_strdup(&p->mem, text);
    free(text);
    mcp_add_word(p, "mcp");
    mcp_add_word(p, "--explain");
    return 0;
}

static void mcp_explain_words(const char *dir, json_t *v, struct buf *to)
{
    const char *text = json_str(v, "feedback", "");

    (void)dir;
    buf_adds(to, *text ? text : json_str(v, "line", ""));
}

static int mcp_lint_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"trials", "seed", NULL};
    const char *task = mcp_find_task(p, e);

    if (!task)
        return -1;
    mcp_add_word(p, "lint");
    mcp_add_word(p, "--json");
    mcp_add_options(p, options);
    mcp_add_word(p, task);
    return 0;
}

static void mcp_lint_words(const char *dir, json_t *v, struct buf *to)
{
    const json_t *findings = json_object_get(v, "findings"), *f;
    size_t i;

    (void)dir;
    if (json_array_size(findings) == 0)
        buf_adds(to, "clean");
    json_array_foreach(findings, i, f)
        buf_addf(to, "%s%s: %s\n  %s", i ? "\n" : "", json_str(f, "rule", "?"), json_str(f, "message", ""),
                 json_str(f, "remedy", ""));
}

static int mcp_translate_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"to", "profile", "partial", NULL};
    bool python = !strcmp(json_str(p->args, "language", "c++"), "python");
    bool back = !strcmp(json_str(p->args, "to", ""), "cuda");
    const char *source = mcp_write_text(p, python ? "source.py" : back ? "source.mu" : "source.cu",
                                        json_str(p->args, "source", ""), e);
    char *out = path_join(p->dir, "out");

    mcp_add_word(p, "translate");
    mcp_add_word(p, "--report=json");
    mcp_add_options(p, options);
    mcp_add_word(p, "--out");
    mcp_add_word(p, out);
    free(out);
    if (source)
        mcp_add_word(p, source);
    return source ? 0 : -1;
}

/* The one file of the child's output folder, as the record's "source"; none when the source is refused. */
static void mcp_translate_read(const char *dir, json_t *v)
{
    char *out = path_join(dir, "out"), **names, *at;
    struct buf text;
    size_t n;

    buf_init(&text, RECORD_MAX);
    if (dir_list(out, &names, &n, NULL) == 0) {
        at = n == 1 ? path_join(out, names[0]) : NULL;
        if (at && file_read(at, &text, NULL) == 0)
            json_object_set_new(v, "source", json_utf8(text.p, text.n));
        free(at);
        names_free(names, n);
    }
    json_object_del(v, "file");
    buf_free(&text);
    free(out);
}

static void mcp_translate_words(const char *dir, json_t *v, struct buf *to)
{
    const char *source;
    const json_t *note;
    size_t i;

    mcp_translate_read(dir, v);
    source = json_str(v, "source", NULL);
    buf_adds(to, source ? source : "refused:");
    json_array_foreach(json_object_get(v, "notes"), i, note)
        if (!source)
            buf_addf(to, "\nline %lld: %s: %s", (long long)json_i64(note, "line", 0), json_str(note, "kind", "?"),
                     json_str(note, "text", ""));
}

static int mcp_replay_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"check", "time", NULL};
    const char *capsule = mcp_find_file(p, json_str(p->args, "capsule_path", ""), e);

    if (!capsule)
        return -1;
    mcp_add_word(p, "replay");
    mcp_add_word(p, "--json");
    mcp_add_options(p, options);
    mcp_add_word(p, capsule);
    return 0;
}

static void mcp_replay_words(const char *dir, json_t *v, struct buf *to)
{
    const json_t *t = json_object_get(v, "time"), *f;
    size_t i;

    (void)dir;
    buf_addf(to, "%s: %lld of %lld elements wrong", json_flag(v, "right", false) ? "right" : "wrong",
             (long long)json_i64(v, "wrong", 0), (long long)json_i64(v, "elements", 0));
    if (json_str(v, "why", NULL))
        buf_addf(to, "\n%s", json_str(v, "why", ""));
    if (t)
        buf_addf(to, "\n%.4f ms (median of %lld calls)", json_f64(t, "median_ms", 0),
                 (long long)json_i64(t, "calls", 0));
    json_array_foreach(json_object_get(v, "findings"), i, f)
        buf_addf(to, "\n%s: %s", json_str(f, "kind", "?"), json_str(f, "message", ""));
}

#define STRING(name, about) "\"" name "\":{\"type\":\"string\",\"description\":\"" about "\"}"
#define INTEGER(name, about) "\"" name "\":{\"type\":\"integer\",\"description\":\"" about "\"}"
#define FLAG(name, about) "\"" name "\":{\"type\":\"boolean\",\"description\":\"" about "\"}"
#define CHOICE(name, words, about) \
    "\"" name "\":{\"type\":\"string\",\"enum\":[" words "],\"description\":\"" about "\"}"
#define SCHEMA(properties, required) \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],\"additionalProperties\":false}"
#define TASK                                                                                                         \
    STRING("task", "the task's text: a Python file with Model, get_inputs, get_init_inputs; or give task_path") ","  \
    STRING("task_path", "where the task lies") ","                                                                   \
    STRING("sidecar", "YAML of shapes, dtypes, layouts and tolerances that belongs to 'task'")

static const struct mcp_tool mcp_tools[] = {
    {"eval",
     "Judge one GPU kernel against a PyTorch task: compilation, correctness on fresh data, legality, speed. Answers "
     "with the verdict in words and the whole record. 'sim' needs no GPU.",
     SCHEMA(TASK "," STRING("candidate", "a Python file that defines ModelNew, or a response with one in a code "
                                         "fence; or give candidate_path") ","
            STRING("candidate_path", "where the candidate lies") ","
            CHOICE("backend", "\"sim\",\"cuda\",\"musa\"", "the CPU emulator (default), an NVIDIA GPU, a Moore Threads "
                                                            "card") ","
            CHOICE("protocol", "\"strict\",\"kernelbench\"", "how correctness is decided (default: strict)") ","
            CHOICE("dialect", "\"any\",\"cuda\",\"musa\"", "what the candidate must be written in") ","
            INTEGER("trials", "draws per input regime") "," INTEGER("seed", "seed of inputs and parameters") ","
            FLAG("perf", "time what passed, where the backend has a clock (default: true)") ","
            FLAG("cache", "answer from the verdict cache where it has an answer (default: true)") ","
            STRING("capsule_path", "write what a passing candidate was judged by to this file NAME.capsule, for "
                                   "'replay'"), ""),
     mcp_eval_plan, mcp_eval_words},
    {"explain", "Say in words what a verdict's record means: what is wrong, where, and what usually causes it.",
     SCHEMA("\"record\":{\"type\":\"object\",\"description\":\"a record of eval\"}", "\"record\""), mcp_explain_plan,
     mcp_explain_words},
    {"lint", "Find what would let an answer without work pass a task, and other traps. Runs the task's reference.",
     SCHEMA(TASK "," INTEGER("trials", "draws per input regime") "," INTEGER("seed", "seed of inputs and parameters"),
            ""),
     mcp_lint_plan, mcp_lint_words},
    {"translate", "Translate a source from CUDA to MUSA or back. What has no counterpart is refused with its line.",
     SCHEMA(STRING("source", "the source's text") ","
            CHOICE("to", "\"musa\",\"cuda\"", "the dialect to translate into") ","
            CHOICE("language", "\"c++\",\"python\"", "of the source (default: c++); python: with C++ in its strings")
            "," STRING("profile", "the MUSA device it is for (default: s5000); any: check no limits") ","
            FLAG("partial", "translate a refused source too, as far as that goes"), "\"source\",\"to\""),
     mcp_translate_plan, mcp_translate_words},
    {"replay", "Run a judged kernel again from its capsule: is it right, how fast is it, what do checkers find?",
     SCHEMA(STRING("capsule_path", "a file that 'eval' wrote by its capsule_path") ","
            FLAG("check", "look for races and bad accesses: compute-sanitizer on cuda, the emulator's findings on sim")
            "," INTEGER("time", "time the last call this many times (cuda)"), "\"capsule_path\""),
     mcp_replay_plan, mcp_replay_words},
};

#define N_TOOLS (sizeof mcp_tools / sizeof mcp_tools[0])

static const struct mcp_tool *mcp_find_tool(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (!strcmp(mcp_tools[i].name, name))
            return &mcp_tools[i];
    return NULL;
}

/* ---- arguments against the schema ---- */

static bool mcp_has_type(const json_t *v, const char *type)
{
    return !strcmp(type, "string") ? json_is_string(v)
        : !strcmp(type, "integer") ? json_is_integer(v)
        : !strcmp(type, "boolean") ? json_is_boolean(v) : json_is_object(v);
}

static int mcp_check_value(const char *name, const json_t *want, const json_t *v, struct err *e)
{
    const json_t *words = json_object_get(want, "enum"), *word;
    const char *type = json_str(want, "type", "object");
    size_t i;

    if (!mcp_has_type(v, type))
        return err_set(e, ERR_INPUT, "argument '%s' is of type %s", name, type);
    json_array_foreach(words, i, word)
        if (json_equal(word, v))
            return 0;
    return words ? err_set(e, ERR_INPUT, "argument '%s' has no value '%s'; tools/list names them", name,
                           json_string_value(v)) : 0;
}

static int mcp_check_args(const struct mcp_tool *t, const json_t *args, struct err *e)
{
    json_t *schema = json_loads(t->schema, 0, NULL), *known = json_object_get(schema, "properties"), *v;
    const json_t *name;
    const char *key;
    size_t i;
    int rc = json_is_object(args) ? 0 : err_set(e, ERR_INPUT, "'arguments' is an object");

    json_object_foreach((json_t *)args, key, v)
        if (rc == 0 && !json_object_get(known, key))
            rc = err_set(e, ERR_INPUT, "tool '%s' has no argument '%s'", t->name, key);
        else if (rc == 0)
            rc = mcp_check_value(key, json_object_get(known, key), v, e);
    json_array_foreach(json_object_get(schema, "required"), i, name)
        if (rc == 0 && !json_object_get(args, json_string_value(name)))
            rc = err_set(e, ERR_INPUT, "tool '%s' wants the argument '%s'", t->name, json_string_value(name));
    json_decref(schema);
    return rc;
}

/* ---- messages ---- */

static void mcp_send(struct mcp *m, json_t *v)
{
    char *text = json_text(v);

    if (fputs(text, stdout) == EOF || putchar('\n') == EOF || fflush(stdout) == EOF)
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

static void mcp_free_call(struct mcp *m, struct mcp_call *c)
{
    if (c->dir)
        dir_remove(c->dir, NULL);
    free(c->dir);
    json_decref(c->id);
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

static json_t *mcp_judge_end(const struct mcp *m, const struct mcp_call *c, const struct proc_result *r)
{
    json_t *record = r->why == PROC_EXITED && !r->out.cut ? json_parse(r->out.p, r->out.n, c->tool->name, NULL) : NULL;
    struct buf words;
    json_t *v;

    if (!json_is_object(record)) {
        json_decref(record);
        return mcp_explain_failure(m, c, r);
    }
    buf_init(&words, RECORD_MAX);
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

static int mcp_start_child(struct mcp *m, struct mcp_call *c, const struct mcp_plan *p, struct err *e)
{
    extern char **environ;
    struct proc_spec s = {.argv = p->argv, .env = (const char *const *)environ, .in = p->in,
                          .n_in = p->in ? strlen(p->in) : 0, .max_out = RECORD_MAX, .output_kills = true,
                          .timeout_s = m->wait_s};

    if (proc_start(&s, &c->p, e) < 0)
        return -1;
    m->ps[c - m->calls] = c->p;
    return 0;
}

static int mcp_start_call(struct mcp *m, struct mcp_call *c, const json_t *args, struct err *e)
{
    struct mcp_plan p = {.m = m, .args = args};
    int rc = -1;

    if ((c->dir = dir_temp("musacoder-mcp", e))) {
        p.dir = c->dir;
        mcp_add_word(&p, "/proc/self/exe");
        rc = c->tool->plan(&p, e) < 0 ? -1 : mcp_start_child(m, c, &p, e);
    }
    arena_free(&p.mem);
    return rc;
}

static struct mcp_call *mcp_free_place(struct mcp *m)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (!m->calls[i].id)
            return &m->calls[i];
    return NULL;
}

/* ---- methods: each gives a new result, or fills the fault, or neither when the answer comes later ---- */

static int mcp_fail(struct mcp_fault *f, int code, const char *text, const char *name)
{
    f->code = code;
    return err_set(&f->e, ERR_INPUT, "%s%s%s%s", text, name ? " '" : "", name ? name : "", name ? "'" : "");
}

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

static json_t *mcp_list_tools(struct mcp *m, const json_t *id, const json_t *params, struct mcp_fault *f)
{
    json_t *list = json_array();

    (void)m, (void)id, (void)params, (void)f;
    for (size_t i = 0; i < N_TOOLS; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "name", mcp_tools[i].name, "description",
                                              mcp_tools[i].about, "inputSchema",
                                              json_loads(mcp_tools[i].schema, 0, NULL)));
    return json_pack("{s:o}", "tools", list);
}

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
    else if (!c)
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

static bool mcp_can_read(int wait_ms)
{
    return poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, wait_ms) > 0;
}

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

/* ---- the command ---- */

static const struct opt rows[] = {
    {"mcp", "root", OPT_STR, NULL,
     "the folder whose files calls may name; default: the working folder, unless it is /"},
    {"mcp", "wait-max", OPT_REAL, "600", "seconds a call may take"},
    {"mcp", "explain", OPT_BOOL, "false", "print the words of the verdict record on standard input as JSON, and end"},
    {0},
};

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

static int mcp_explain(struct err *e)
{
    json_t *record = mcp_read_record(e), *v;
    struct buf text, line;
    char *shown;

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
    shown = json_text(v);
    puts(shown);
    free(shown);
    buf_free(&line);
    buf_free(&text);
    json_decref(v);
    json_decref(record);
    return EXIT_OK;
}

static int mcp_run(const struct opts *o, struct err *e)
{
    struct mcp m = {.wait_s = opts_real(o, "wait-max"), .structured = true};
    const char *root = opts_has(o, "root") ? opts_str(o, "root") : ".";

    if (opts_bool(o, "explain"))
        return mcp_explain(e);
    if (m.wait_s <= 0)
        return err_set(e, ERR_INPUT, "--wait-max is a number of seconds above 0");
    if (!(m.root = realpath(root, NULL)) || !file_is_dir(m.root)) {
        free(m.root);
        return err_set(e, ERR_INPUT, "no folder '%s'; --root names one", root);
    }
    if (!opts_has(o, "root") && !strcmp(m.root, "/")) {
        free(m.root);
        m.root = NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    buf_init(&m.line, MESSAGE_MAX);
    mcp_serve(&m);
    buf_free(&m.line);
    free(m.root);
    return stop_requested() ? EXIT_STOPPED : EXIT_OK;
}

const struct command cmd_mcp = {
    "mcp", "the judge for coding agents: a Model Context Protocol server on standard input and output",
    "[--root FOLDER]",
    "Speaks the Model Context Protocol (2025-06-18, 2024-11-05; a JSON-RPC message a line) with the tools eval,\n"
    "explain, lint, translate and replay. An agent's client starts it:\n"
    "  claude mcp add musacoder -- musacoder mcp --root /path/to/kernels\n"
    "Each call is a child of its own: what ends it is an answer with isError, never the end of the server. Files are\n"
    "read, and capsules written, below --root alone. Eight calls run at once. docs/mcp.md shows clients' files.\n"
    "Exit code: 0 the client closed its end, 2 usage, 130 Ctrl-C.\n\n",
    rows, mcp_run, 0};
