/* mcp_tools.c - see mcp_tools.h. A tool's words for its child come first, then what it makes of the child's record. */
#include "cli/mcp_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/verdict/feedback.h"

/* ---- what a call's arguments become ---- */

void mcp_add_word(struct mcp_plan *p, const char *word)
{
    if (p->n < MCP_WORDS_MAX)
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

/* True if path lies below root; both are real paths. */
static bool mcp_is_below(const char *root, const char *path)
{
    size_t n = strlen(root);

    return !strcmp(root, "/") || (!strncmp(root, path, n) && path[n] == '/');
}

static int mcp_check_root(const char *root, struct err *e)
{
    return root ? 0 : err_set(e, ERR_INPUT, "no folder of files is open; start 'musacoder mcp --root FOLDER', or "
                                               "pass the text itself");
}

/* Where a file of the arguments really lies, links followed: a plain file below the root. */
static const char *mcp_find_file(struct mcp_plan *p, const char *path, struct err *e)
{
    char *at, *real, *kept = NULL;
    struct stat st;

    if (mcp_check_root(p->root, e) < 0)
        return NULL;
    at = *path == '/' ? xstrdup(path) : path_join(p->root, path);
    real = realpath(at, NULL);
    if (!real || stat(real, &st) < 0)
        err_set(e, ERR_INPUT, "no file '%s'", path);
    else if (!mcp_is_below(p->root, real))
        err_set(e, ERR_INPUT, "'%s' lies outside '%s'; see --root", path, p->root);
    else if (!S_ISREG(st.st_mode))
        err_set(e, ERR_INPUT, "'%s' is no plain file", path);
    else
        kept = arena_strdup(&p->mem, real);
    free(real);
    free(at);
    return kept;
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

    if (mcp_check_root(p->root, e) < 0)
        return NULL;
    if (!path_ends(path, ".capsule"))
        return err_set(e, ERR_INPUT, "'%s' is no name of a capsule; let it end in .capsule", path), NULL;
    at = *path == '/' ? xstrdup(path) : path_join(p->root, path);
    kept = mcp_is_place(p->root, at) ? arena_strdup(&p->mem, at) : NULL;
    free(at);
    if (!kept)
        err_set(e, ERR_INPUT, "'%s' is no plain file in a folder at or below '%s'", path, p->root);
    return kept;
}

/* Writes the text into the call's folder; its path lasts as long as the plan. NULL with e. */
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

/* Plans the process of tool 'eval' from its arguments. */
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

/* Appends a verdict in words. */
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

/* Plans the process of tool 'explain'. */
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

/* Appends a record's words. */
static void mcp_explain_words(const char *dir, json_t *v, struct buf *to)
{
    const char *text = json_str(v, "feedback", "");

    (void)dir;
    buf_adds(to, *text ? text : json_str(v, "line", ""));
}

/* "COMMAND --json [OPTION..] FILE"; file NULL: *e says why. */
static int mcp_plan_of(struct mcp_plan *p, const char *command, const char *const *options, const char *file)
{
    if (!file)
        return -1;
    mcp_add_word(p, command);
    mcp_add_word(p, "--json");
    mcp_add_options(p, options);
    mcp_add_word(p, file);
    return 0;
}

static int mcp_lint_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"trials", "seed", NULL};

    return mcp_plan_of(p, "lint", options, mcp_find_task(p, e));
}

/* Appends a lint report in words. */
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

/* Plans the process of tool 'translate' from its arguments. */
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

/* The translated file of the child's output folder, where a listing lies too, as the record's "source"; none when the
 * source is refused. */
static void mcp_translate_read(const char *dir, json_t *v)
{
    char *out = path_join(dir, "out"), **names, *at;
    struct buf text;
    size_t n;

    buf_init(&text, MCP_RECORD_MAX);
    if (dir_list(out, &names, &n, NULL) == 0) {
        for (size_t i = 0; i < n; i++) {
            at = path_join(out, names[i]);
            if (text_begins(names[i], "source.") && file_read(at, &text, NULL) == 0)
                json_object_set_new(v, "source", json_utf8(text.p, text.n));
            free(at);
        }
        names_free(names, n);
    }
    json_object_del(v, "file");
    buf_free(&text);
    free(out);
}

/* Appends a translation and its notes; reads the translated file of dir. */
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

/* Plans the process of tool 'replay'. */
static int mcp_replay_plan(struct mcp_plan *p, struct err *e)
{
    static const char *const options[] = {"check", "time", NULL};
    const char *capsule = mcp_find_file(p, json_str(p->args, "capsule_path", ""), e);
    char *csv = path_join(p->dir, "ncu.csv");
    int rc = mcp_plan_of(p, "replay", options, capsule);

    if (rc == 0 && json_flag(p->args, "profile", false)) { /* behind the capsule: options may stand anywhere */
        mcp_add_word(p, "--profile");
        mcp_add_word(p, csv);
    }
    free(csv);
    return rc;
}

/* Nsight Compute's table, as the record's "profile". */
static void mcp_replay_read_profile(const char *dir, json_t *v, struct buf *to)
{
    char *csv = path_join(dir, "ncu.csv");
    struct buf text;

    buf_init(&text, MCP_PROFILE_MAX);
    if (file_exists(csv) && file_read(csv, &text, NULL) == 0) {
        json_object_set_new(v, "profile", json_utf8(text.p, text.n));
        buf_addf(to, "\n%s", text.p);
    }
    buf_free(&text);
    free(csv);
}

/* Appends a replay's result in words. */
static void mcp_replay_words(const char *dir, json_t *v, struct buf *to)
{
    const json_t *t = json_object_get(v, "time"), *f;
    size_t i;

    buf_addf(to, "%s: %lld of %lld elements wrong", json_flag(v, "right", false) ? "right" : "wrong",
             (long long)json_i64(v, "wrong", 0), (long long)json_i64(v, "elements", 0));
    if (json_str(v, "why", NULL))
        buf_addf(to, "\n%s", json_str(v, "why", ""));
    if (t)
        buf_addf(to, "\n%.4f ms (median of %lld calls)", json_f64(t, "median_ms", 0),
                 (long long)json_i64(t, "calls", 0));
    json_array_foreach(json_object_get(v, "findings"), i, f)
        buf_addf(to, "\n%s: %s", json_str(f, "kind", "?"), json_str(f, "message", ""));
    mcp_replay_read_profile(dir, v, to);
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

const struct mcp_tool mcp_tools[] = {
    {"eval",
     "Judge one GPU kernel against a PyTorch task: compilation, correctness on fresh data, legality, speed. Answers "
     "with the verdict in words and the whole record. 'sim' needs no GPU.",
     SCHEMA(TASK "," STRING("candidate", "a Python file that defines ModelNew, or a response with one in a code "
                                         "fence; or give candidate_path") ","
            STRING("candidate_path", "where the candidate lies") ","
            CHOICE("backend", "\"sim\",\"cuda\",\"musa\"", "the CPU emulator (default), an NVIDIA GPU, a Moore Threads "
                                                            "card") ","
            CHOICE("protocol", "\"strict\",\"strict-torch\",\"kernelbench\"",
                   "how correctness is decided (default: strict)") ","
            CHOICE("dialect", "\"any\",\"cuda\",\"musa\"", "what the candidate must be written in") ","
            INTEGER("trials", "trials per input distribution") "," INTEGER("seed", "seed of inputs and parameters") ","
            FLAG("perf", "time what passed, where the backend has a clock (default: true)") ","
            FLAG("cache", "answer from the verdict cache where it has an answer (default: true)") ","
            STRING("capsule_path", "write what a passing candidate was judged by to this file NAME.capsule, for "
                                   "'replay'"), ""),
     mcp_eval_plan, mcp_eval_words},
    {"explain", "Say in words what a verdict's record means: what is wrong, where, and what usually causes it.",
     SCHEMA("\"record\":{\"type\":\"object\",\"description\":\"a record of eval\"}", "\"record\""), mcp_explain_plan,
     mcp_explain_words},
    {"lint", "Find what would let an answer without work pass a task, and other traps. Runs the task's reference.",
     SCHEMA(TASK "," INTEGER("trials", "trials per input distribution") ","
            INTEGER("seed", "seed of inputs and parameters"),
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
            "," INTEGER("time", "time the last call this many times (cuda)") ","
            FLAG("profile", "Nsight Compute's figures of the last call as a CSV table (cuda)"), "\"capsule_path\""),
     mcp_replay_plan, mcp_replay_words},
    {0},
};

const struct mcp_tool *mcp_find_tool(const char *name)
{
    for (const struct mcp_tool *t = mcp_tools; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

/* ---- arguments against the schema ---- */

/* True if v is of a JSON Schema's type. */
static bool mcp_has_type(const json_t *v, const char *type)
{
    return !strcmp(type, "string") ? json_is_string(v)
        : !strcmp(type, "integer") ? json_is_integer(v)
        : !strcmp(type, "boolean") ? json_is_boolean(v) : json_is_object(v);
}

/* ERR_INPUT where the argument is not of the type or among the words that 'want' allows. */
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

int mcp_check_args(const struct mcp_tool *t, const json_t *args, struct err *e)
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
