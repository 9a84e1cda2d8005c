/* mine.c - see mine.h. Reading order: mine_tree at the end; a file is scanned, each class is tried, compared, linted.
 * The other end of both conversations is runner/mine.py. */
#include "synth/mine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/forkserver.h"
#include "proc/frame.h"

#define MAX_FILE ((size_t)1 << 20)

const struct mine_reason mine_reasons[] = {
    {"symbolic_link", "a link is not followed: it may lead out of the tree, or round in a circle; name its target as "
                      "DIR"},
    {"unreadable", "the file is no Python that this Python reads, or above 1 MiB"},
    {"no_forward", "the class defines no forward"},
    {"foreign_import", "it needs a module besides torch, the standard library's plain ones and the tree itself"},
    {"name_clash", "it uses another thing that is called Model, or two files call different things alike"},
    {"external_state", "it opens files, loads weights, or runs text"},
    {"names_a_device", "it names a device"},
    {"does_not_load", "its text alone raises"},
    {"constructor_unknown", "an argument of __init__ has no value that can be guessed; say it in --hints"},
    {"constructor_fails", "__init__ raises with all guesses; say the arguments in --hints"},
    {"scalar_input", "forward takes a number, not tensors alone"},
    {"no_inputs", "forward takes no tensor"},
    {"many_inputs", "forward takes more than four tensors"},
    {"no_shapes", "no shape was found with which forward runs; say the shapes in --hints"},
    {"does_not_run", "it raises where it is tried"},
    {"no_float_output", "no floating tensor comes out"},
    {"not_finite", "NaN or infinity comes out"},
    {"changes_state", "forward writes a buffer"},
    {"stochastic", "equal inputs give different outputs"},
    {"data_dependent_shape", "shapes of the outputs depend on values"},
    {"timeout", "it does not finish in --timeout seconds, or its process died"},
    {"contaminated", "it is like a task of --against (L0, L2 or L3 of runner/likeness.py)"},
    {"repeated", "it is like a class that was mined before"},
    {"not_compared", "its likeness to known tasks could not be told"},
    {"trivial", "an answer without work would pass ('musacoder lint')"},
    {"unfit", "the judge cannot use it ('musacoder lint': broken, not_judged, nondeterministic, ill_conditioned, "
              "wrong_reference)"},
    {NULL, NULL}};

struct miner {
    const struct mine_options *o;
    struct forkserver *fs;
    struct child *reader; /* parses, and knows all texts; runs nothing */
    json_t *hints, *journal; /* the lines of earlier runs by their keys */
    json_t *told;            /* the lines that count in this run, a list */
    char *journal_path;
    char against[65]; /* a hash of the tasks of --against; "" without */
    struct mine_stats n;
    struct progress progress;
};

/* ---- conversations ---- */

/* Consumes req. A reply is new; NULL with *late where the child was too slow or died, NULL without where we are ill. */
static json_t *mine_ask(struct child *c, json_t *req, double seconds, bool *late, struct err *e)
{
    enum frame_fault fault = FRAME_OK;
    double deadline = now_s() + seconds;
    json_t *reply = NULL;
    struct frame f;

    *late = false;
    if (!req)
        return err_set(e, ERR_INPUT, "a text is not UTF-8"), NULL;
    if (frame_send(c->fd, req, NULL, 0, deadline, &fault, e) == 0 &&
        frame_recv(c->fd, 0, 0, deadline, &f, &fault, e) == 0) {
        reply = json_incref(f.head);
        frame_free(&f);
    }
    *late = !reply && (fault == FRAME_LATE || fault == FRAME_CLOSED || fault == FRAME_BROKEN);
    json_decref(req);
    return reply;
}

static int mine_start_child(struct miner *m, struct child **ret, struct err *e)
{
    struct child_spec spec = {.role = "mine", .jail = {.memory_bytes = (size_t)4 << 30, .no_exec = true}};

    return forkserver_spawn(m->fs, &spec, ret, e);
}

/* The reply of the process that reads the tree. NULL with ERR_ENV if that process ended. */
static json_t *mine_ask_reader(struct miner *m, json_t *req, struct err *e)
{
    bool late;
    json_t *reply = mine_ask(m->reader, req, 120, &late, e);

    if (late)
        err_set(e, ERR_ENV, "the process that reads the tree has ended; free memory and run this command again");
    return reply;
}

static json_t *mine_refusal(const char *reason, const char *detail)
{
    return json_pack("{s:s, s:s, s:s}", "op", "refused", "reason", reason, "detail", detail);
}

/* A class is run in a child of its own. */
static json_t *mine_try_class(struct miner *m, const json_t *class, struct err *e)
{
    const json_t *hints = json_object_get(m->hints, json_str(class, "class", ""));
    json_t *reply, *req = json_pack("{s:s, s:s, s:O*}", "op", "try", "code", json_str(class, "code", ""), "hints",
                                    hints);
    struct child *c;
    bool late;

    if (mine_start_child(m, &c, e) < 0) {
        json_decref(req);
        return NULL;
    }
    reply = mine_ask(c, req, m->o->timeout_s, &late, e);
    child_free(c);
    if (late)
        return mine_refusal("timeout", "it does not finish, or its process died");
    return reply;
}

/* ---- what is refused after it ran ---- */

/* Why a lint report makes a task unfit, as a word; NULL: it is fit. */
static const char *mine_fault_of(const json_t *report)
{
    static const char *const unfit[] = {"broken", "not_judged", "nondeterministic", "ill_conditioned",
                                        "wrong_reference", "not_finite"};
    const json_t *f, *p;
    size_t i, k;

    json_array_foreach(json_object_get(report, "findings"), i, f) {
        const char *rule = json_str(f, "rule", "");
        for (k = 0; k < sizeof unfit / sizeof *unfit; k++)
            if (!strcmp(rule, unfit[k]))
                return "unfit";
        if (!strcmp(rule, "zero_output") || !strcmp(rule, "constant_output"))
            return "trivial";
        if (!strcmp(rule, "trivial_output"))
            json_array_foreach(json_object_get(json_object_get(f, "evidence"), "passes"), k, p)
                if (!strcmp(json_string_value(p), "strict"))
                    return "trivial";
    }
    return NULL;
}

/* Replaces *reply by a refusal where the judge has a finding. */
static int mine_lint_reply(struct miner *m, const char *name, json_t **reply, struct err *e)
{
    const char *code = json_str(*reply, "code", ""), *why;
    json_t *report = NULL;
    struct task t;
    int rc;

    if (!m->o->lint)
        return 0;
    if (task_make(name, code, strlen(code), &t, e) < 0)
        return -1;
    rc = m->o->lint(&t, &report, m->o->ctx, e);
    why = rc ? NULL : mine_fault_of(report);
    if (why) {
        const json_t *first = json_array_get(json_object_get(report, "findings"), 0);
        json_decref(*reply);
        *reply = mine_refusal(why, json_str(first, "message", ""));
    }
    json_decref(report);
    task_free(&t);
    return rc;
}

/* Compares a found class with known tasks and replaces *reply where it is like one of them. */
static int mine_compare_reply(struct miner *m, const char *name, json_t **reply, struct err *e)
{
    static const char *const layers[] = {"L0", "L2", "L3"};
    char *mined = xasprintf("mined/%s", name);
    json_t *r = mine_ask_reader(m, json_pack("{s:s, s:s, s:s}", "op", "compare", "name", mined, "code",
                                             json_str(*reply, "code", "")), e);

    free(mined);
    if (!r)
        return -1;
    if (!json_object_get(r, "found")) { /* nobody knows what it is like */
        json_decref(*reply);
        *reply = mine_refusal("not_compared", json_str(r, "detail", ""));
    }
    for (size_t i = 0; i < 3; i++) {
        const char *like = json_str(json_object_get(r, "found"), layers[i], NULL);
        char *detail;
        if (!like)
            continue;
        detail = xasprintf("%s: like %s", layers[i], like);
        json_decref(*reply);
        *reply = mine_refusal(!strncmp(like, "mined/", 6) ? "repeated" : "contaminated", detail);
        free(detail);
        break;
    }
    json_decref(r);
    return 0;
}

/* ---- one class ---- */

/* Where hints or text change, it is another key. */
static void mine_key_of(const struct miner *m, const char *path, const json_t *class, char ret[65])
{
    char *hints = json_text(json_object_get(m->hints, json_str(class, "class", "")));
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, path), sha256_adds(&h, json_str(class, "class", ""));
    sha256_adds(&h, json_str(class, "code", json_str(class, "reason", "")));
    sha256_adds(&h, hints ? hints : "");
    sha256_adds(&h, m->against);
    sha256_end(&h, ret);
    free(hints);
}

/* Counts a line of the journal: a class, and its task or why it is none. */
static void mine_note_line(struct miner *m, json_t *line)
{
    json_array_append(m->told, line);
    m->n.classes++;
    m->n.tasks += json_is_string(json_object_get(line, "task"));
    if (!json_is_string(json_object_get(line, "task")))
        json_count(m->n.reasons, json_str(line, "reason", "?"), 1);
}

/* What is there under the task's name, and is something else, stays as NAME.edited. */
static int mine_keep_edited(const char *file, const char *code, struct err *e)
{
    char now[65], want[65], *kept;

    sha256_hex(code, strlen(code), want);
    if (stamp_check_links(file, e) < 0)
        return -1;
    if (!file_exists(file) || (sha256_file(file, now) == 0 && !strcmp(now, want)))
        return 0;
    if (file_keep_aside(file, &kept, e) < 0)
        return -1;
    log_warn("'%s' is not what was mined; it is kept as '%s'", file, kept);
    free(kept);
    return 0;
}

/* From now on another class like it is a repetition. */
static int mine_accept(struct miner *m, const char *name, const char *code, struct err *e)
{
    char *file = xasprintf("%s/tasks/%s.py", m->o->out, name), *known = xasprintf("mined/%s", name);
    json_t *r = mine_ask_reader(m, json_pack("{s:s, s:s, s:s}", "op", "known", "name", known, "code", code), e);
    int rc = r ? mine_keep_edited(file, code, e) : -1;

    if (rc == 0)
        rc = file_write(file, code, strlen(code), e);
    json_decref(r);
    free(file), free(known);
    return rc;
}

/* Appends the journal's line of a class, whether it became a task or why not. */
static int mine_write_line(struct miner *m, const char *path, const char *key, const char *name, const json_t *class,
                           const json_t *reply, struct err *e)
{
    bool good = !strcmp(json_str(reply, "op", ""), "task");
    const char *code = json_str(reply, "code", "");
    char hash[65];
    json_t *line = json_pack("{s:s, s:s, s:s, s:O, s:s?, s:s?, s:s?, s:O*}", "key", key, "path", path, "class",
                             json_str(class, "class", ""), "line", json_object_get(class, "line"), "task",
                             good ? name : NULL, "reason", good ? NULL : json_str(reply, "reason", "?"), "detail",
                             good ? NULL : json_str(reply, "detail", ""), "inputs", json_object_get(reply, "inputs"));
    int rc = good ? mine_accept(m, name, code, e) : 0;

    sha256_hex(code, strlen(code), hash);
    json_object_set_new(line, "sha256", good ? json_string(hash) : json_null());
    if (!rc)
        rc = jsonl_append_sealed(m->journal_path, line, e);
    if (!rc)
        mine_note_line(m, line);
    json_decref(line);
    return rc;
}

/* Tries one class, unless the journal knows it. */
static int mine_class(struct miner *m, const char *path, const json_t *class, struct err *e)
{
    char key[65], *name;
    json_t *reply;
    int rc = 0;

    mine_key_of(m, path, class, key);
    if (json_object_get(m->journal, key))
        return mine_note_line(m, json_object_get(m->journal, key)), m->n.before++, 0;
    name = xasprintf("%s_%.8s", json_str(class, "class", "x"), key);
    if (json_is_string(json_object_get(class, "code")))
        reply = mine_try_class(m, class, e);
    else
        reply = mine_refusal(json_str(class, "reason", "?"), json_str(class, "detail", ""));
    if (!reply)
        rc = -1;
    if (!rc && !strcmp(json_str(reply, "op", ""), "task"))
        rc = mine_compare_reply(m, name, &reply, e);
    if (!rc && !strcmp(json_str(reply, "op", ""), "task"))
        rc = mine_lint_reply(m, name, &reply, e);
    if (!rc)
        rc = mine_write_line(m, path, key, name, class, reply, e);
    json_decref(reply);
    free(name);
    return rc;
}

static bool mine_enough(const struct miner *m)
{
    return m->o->limit > 0 && m->n.classes >= m->o->limit;
}

/* The reader knows all files before the first is scanned: they import each other. */
static int mine_send_file(struct miner *m, const char *path, bool *readable, struct err *e)
{
    struct buf text;
    struct err why = ERR_INIT;
    json_t *r = NULL;
    int rc = 0;

    buf_init(&text, MAX_FILE);
    *readable = file_read(path, &text, &why) == 0 && utf8_bad_at(text.p, text.n) == text.n;
    if (*readable) {
        r = mine_ask_reader(m, json_pack("{s:s, s:s, s:s}", "op", "file", "path", path, "source", text.p), e);
        rc = r ? 0 : -1;
    }
    json_decref(r);
    buf_free(&text);
    return rc;
}

/* Asks the reader for a file's classes, new. */
static json_t *mine_scan(struct miner *m, const char *path, struct err *e)
{
    return mine_ask_reader(m, json_pack("{s:s, s:s}", "op", "scan", "path", path), e);
}

/* Tries the classes of one file. */
static int mine_file(struct miner *m, const char *path, bool readable, struct err *e)
{
    json_t *r, *class;
    size_t i;
    int rc = 0;

    m->n.files++;
    if (!readable)
        return json_count(m->n.reasons, "unreadable", 1), 0;
    r = mine_scan(m, path, e);
    if (r && !strcmp(json_str(r, "op", ""), "refused"))
        json_count(m->n.reasons, json_str(r, "reason", "unreadable"), 1);
    json_array_foreach(json_object_get(r, "classes"), i, class)
        if (!rc && !mine_enough(m))
            rc = stop_requested() ? err_set(e, ERR_STOP, "stopped; the same command continues") : mine_class(m, path,
                                                                                                        class, e);
    rc = r ? rc : -1;
    json_decref(r);
    return rc;
}

/* ---- folders ---- */

struct mine_files {
    char **v;
    size_t n;
    int links; /* that were left out: they may lead out of the tree, or round in a circle */
};

/* Lists *.py below a folder; links and caches are left out. */
static int mine_list_files(const char *folder, int depth, struct mine_files *f, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && !rc; i++) {
        size_t k = strlen(names[i]);
        char *path = path_join(folder, names[i]), target[1];
        if (readlink(path, target, sizeof target) >= 0) {
            f->links++;
        } else if (file_is_dir(path) && depth < 32 && strcmp(names[i], "__pycache__")) {
            rc = mine_list_files(path, depth + 1, f, e);
        } else if (k > 3 && !strcmp(names[i] + k - 3, ".py")) {
            f->v = xrealloc(f->v, (f->n + 1) * sizeof *f->v);
            f->v[f->n++] = xstrdup(path);
        }
        free(path);
    }
    names_free(names, n);
    return rc;
}

/* Tells the reader a text that mined tasks must not be like. */
static int mine_make_known(struct miner *m, const char *kind, const char *path, struct err *e)
{
    struct buf text;
    char *stem = path_stem(path), *name = xasprintf("%s/%s", kind, stem);
    int rc;

    buf_init(&text, MAX_FILE);
    rc = file_read(path, &text, e);
    if (!rc && utf8_bad_at(text.p, text.n) == text.n) {
        json_t *r = mine_ask_reader(m, json_pack("{s:s, s:s, s:s}", "op", "known", "name", name, "code", text.p), e);
        rc = r ? 0 : -1;
        json_decref(r);
    }
    buf_free(&text);
    free(stem), free(name);
    return rc;
}

/* What a class was found to be holds for these tasks to differ from alone. */
static int mine_hash_against(struct miner *m, const struct mine_files *f, struct err *e)
{
    struct sha256 h;
    struct buf text;
    int rc = 0;

    sha256_start(&h);
    buf_init(&text, BUF_MAX_TEXT);
    for (size_t i = 0; i < f->n && rc == 0; i++) {
        buf_clear(&text);
        if ((rc = file_read(f->v[i], &text, e)) == 0)
            sha256_adds(&h, text.p);
    }
    sha256_end(&h, m->against);
    buf_free(&text);
    return rc;
}

/* Reads the tasks that mined ones must differ from. */
static int mine_read_against(struct miner *m, struct err *e)
{
    struct mine_files f = {0};
    int rc = 0;

    if (!m->o->against)
        return 0;
    rc = mine_list_files(m->o->against, 0, &f, e);
    if (!rc && !f.n)
        rc = err_set(e, ERR_INPUT, "'%s' has no task files; give a checkout of KernelBench", m->o->against);
    for (size_t i = 0; i < f.n && !rc; i++)
        rc = mine_make_known(m, "against", f.v[i], e);
    if (!rc)
        rc = mine_hash_against(m, &f, e);
    names_free(f.v, f.n);
    return rc;
}

/* ---- what earlier runs found ---- */

static char *mine_task_path(const struct miner *m, const char *task)
{
    return xasprintf("%s/tasks/%s.py", m->o->out, task);
}

/* Is the task's file what the line says? One that was deleted is mined again in silence, a changed one is said. */
static bool mine_task_holds(const struct miner *m, const json_t *line)
{
    char *path = mine_task_path(m, json_str(line, "task", "")), hash[65];
    bool there = file_exists(path), holds;
    struct buf text;

    buf_init(&text, MAX_FILE);
    if (there)
        file_read(path, &text, NULL);
    sha256_hex(text.p, text.n, hash);
    holds = there && !strcmp(hash, json_str(line, "sha256", hash)); /* lines of older versions hold none */
    if (there && !holds)
        log_warn("'%s' is not what was mined, and is mined again", path);
    buf_free(&text);
    free(path);
    return holds;
}

/* A callback of jsonl_continue: takes a line of an earlier run. A task that is not what was written is mined again. */
static int mine_journal_line(json_t *line, size_t no, void *ctx, struct err *e)
{
    struct miner *m = ctx;
    const char *key = json_str(line, "key", "");

    (void)no, (void)e;
    if (!json_str(line, "task", NULL) || mine_task_holds(m, line))
        json_object_set(m->journal, key, line);
    return 0;
}

/* Keys of all classes that the tree holds now, new. */
static json_t *mine_keys_now(struct miner *m, const char *const *paths, size_t n, const bool *readable, struct err *e)
{
    json_t *keys = json_object(), *r, *class;
    char key[65];
    size_t k;

    for (size_t i = 0; i < n; i++) {
        if (!readable[i])
            continue;
        if (!(r = mine_scan(m, paths[i], e))) {
            json_decref(keys);
            return NULL;
        }
        json_array_foreach(json_object_get(r, "classes"), k, class) {
            mine_key_of(m, paths[i], class, key);
            json_object_set_new(keys, key, json_true());
        }
        json_decref(r);
    }
    return keys;
}

/* True where a line's class was in this tree and is no longer. */
static bool mine_is_stale(const struct miner *m, const json_t *line, const json_t *keys)
{
    const char *path = json_str(line, "path", "");
    size_t n = strlen(m->o->tree);

    return !json_object_get(keys, json_str(line, "key", "")) && !strncmp(path, m->o->tree, n) &&
           (path[n] == '/' || (n && m->o->tree[n - 1] == '/'));
}

/* Takes the task of a class that is gone out of the folder. */
static void mine_drop_task(const struct miner *m, const char *task)
{
    char *path = mine_task_path(m, task);

    log_info("'%s': its class is no longer in '%s'; removed", path, m->o->tree);
    unlink(path);
    free(path);
}

/* A refusal as a repetition holds as long as the task is there that it is like. */
static bool mine_is_still_repeated(const struct miner *m, const json_t *line)
{
    const char *like = strstr(json_str(line, "detail", ""), "mined/");
    char *path;
    bool there;

    if (strcmp(json_str(line, "reason", ""), "repeated") || !like)
        return true;
    path = mine_task_path(m, like + strlen("mined/"));
    there = file_exists(path);
    free(path);
    return there;
}

/* The reader learns the tasks that hold; lines about what is gone leave the journal. */
static int mine_settle_journal(struct miner *m, const json_t *keys, struct err *e)
{
    const char *key;
    json_t *line;
    void *next;
    int rc = 0;

    json_object_foreach_safe(m->journal, next, key, line) {
        const char *task = json_str(line, "task", NULL);
        char *path = task ? mine_task_path(m, task) : NULL;

        if (task && mine_is_stale(m, line, keys)) {
            mine_drop_task(m, task);
            json_object_del(m->journal, key);
        } else if (task && !rc) {
            rc = mine_make_known(m, "mined", path, e);
        }
        free(path);
    }
    json_object_foreach_safe(m->journal, next, key, line)
        if (!mine_is_still_repeated(m, line))
            json_object_del(m->journal, key);
    return rc;
}

/* Makes the folder of tasks and reads what an earlier call did. */
static int mine_read_journal(struct miner *m, struct err *e)
{
    char *tasks = path_join(m->o->out, "tasks");
    int rc = dir_make(tasks, e);

    free(tasks);
    return rc ? rc : jsonl_continue(m->journal_path, mine_journal_line, m, e);
}

/* Reads the file of hints, a mapping of classes, if one is named. */
static int mine_read_hints(struct miner *m, struct err *e)
{
    if (!m->o->hints)
        return 0;
    m->hints = yaml_read(m->o->hints, e);
    return !m->hints                  ? -1
           : json_is_object(m->hints) ? 0
                                      : err_set(e, ERR_INPUT, "'%s' is no mapping of class names; write MyBlock: "
                                                "{init: [32], inputs: [[4, 32]]}", m->o->hints);
}

/* Lists the task that a line of the journal tells of. */
static int mine_list_task(const struct miner *m, const json_t *line, struct listing *l, struct err *e)
{
    char *path = mine_task_path(m, json_str(line, "task", "")), *name;
    int rc = 0;

    if (json_is_string(json_object_get(line, "task")) && file_exists(path)) {
        name = xasprintf("tasks/%s.py", json_str(line, "task", ""));
        rc = listing_add(l, name, e);
        free(name);
    }
    free(path);
    return rc;
}

/* Writes report.json. */
static int mine_write_report(const struct miner *m, struct err *e)
{
    json_t *line, *v = json_pack("{s:s, s:i, s:i, s:i, s:O}", "tree", m->o->tree, "files", m->n.files, "classes",
                                 m->n.classes, "tasks", m->n.tasks, "refused", m->n.reasons);
    struct listing *l;
    int rc = listing_begin(m->o->out, NULL, &l, e);
    size_t i;

    json_array_foreach(m->told, i, line)
        if (rc == 0)
            rc = mine_list_task(m, line, l, e);
    if (rc == 0)
        rc = listing_write_json(l, "report.json", v, e) < 0 ? -1 : listing_end(l, true, NULL, e);
    json_decref(v);
    listing_free(l);
    return rc;
}

/* Tries all files until there are enough tasks. */
static int mine_all(struct miner *m, const struct mine_files *f, struct err *e)
{
    bool *readable = xcalloc(f->n + 1, sizeof *readable);
    json_t *keys = NULL;
    int rc = 0;

    for (size_t i = 0; i < f->n && !rc; i++)
        rc = mine_send_file(m, f->v[i], &readable[i], e);
    if (!rc && json_object_size(m->journal)) {
        keys = mine_keys_now(m, (const char *const *)f->v, f->n, readable, e);
        rc = keys ? mine_settle_journal(m, keys, e) : -1;
    }
    progress_start(&m->progress, "files", 0, f->n);
    for (size_t i = 0; i < f->n && !rc && !mine_enough(m); i++) {
        rc = mine_file(m, f->v[i], readable[i], e);
        progress_note(&m->progress, "%d tasks of %d classes", m->n.tasks, m->n.classes);
        progress_at(&m->progress, i + 1);
    }
    progress_end(&m->progress);
    json_decref(keys);
    free(readable);
    return rc;
}

/* A link in its place would be written through. */
static int mine_check_tasks_folder(const char *out, struct err *e)
{
    char *tasks = path_join(out, "tasks");
    int rc = stamp_check_plain(tasks, e);

    free(tasks);
    return rc;
}

int mine_tree(const struct mine_options *o, struct mine_stats *ret, struct err *e)
{
    struct miner m = {.o = o, .journal = json_object(), .told = json_array(),
                      .journal_path = path_join(o->out, "mined.jsonl"), .n = {.reasons = json_object()}};
    struct forkserver_spec server = {.no_jail = o->no_jail};
    struct mine_files f = {0};
    int rc = mine_read_hints(&m, e), lock = -1;

    if (!rc && !file_is_dir(o->tree))
        rc = err_set(e, ERR_INPUT, "'%s' is no folder; give the source tree to mine", o->tree);
    if (!rc)
        rc = mine_list_files(o->tree, 0, &f, e);
    if (!rc && !f.n)
        rc = err_set(e, ERR_INPUT, "'%s' has no .py file%s", o->tree,
                     f.links ? "; symbolic links are not followed" : "");
    if (!rc && f.links)
        json_object_set_new(m.n.reasons, "symbolic_link", json_integer(f.links));
    if (!rc)
        rc = folder_take(o->out, "what is mined", "musacoder synth mine", &lock, e);
    if (!rc) /* until the end its tasks are not all */
        rc = mine_check_tasks_folder(o->out, e) < 0 ? -1 : listing_put(o->out, NULL, e);
    if (!rc && (forkserver_start(&server, &m.fs, e) < 0 || mine_start_child(&m, &m.reader, e) < 0))
        rc = -1;
    if (!rc && (mine_read_against(&m, e) < 0 || mine_read_journal(&m, e) < 0 || mine_all(&m, &f, e) < 0 ||
                mine_write_report(&m, e) < 0))
        rc = -1;
    child_free(m.reader);
    forkserver_stop(m.fs);
    names_free(f.v, f.n);
    json_decref(m.hints), json_decref(m.journal), json_decref(m.told);
    free(m.journal_path);
    if (lock >= 0)
        close(lock);
    *ret = m.n;
    return rc;
}
