/* cmd_translate.c - 'musacoder translate': sources from CUDA to MUSA and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "device/data_sheet.h"
#include "translate/musa.h"

static const struct opt rows[] = {
    {"translate", "to", OPT_CHOICE, "musa", "musa|cuda: the dialect to translate into"},
    {"translate", "profile", OPT_STR, "s5000",
     "the device that the MUSA side is for (musacoder profile lists them); 'any': check no limits"},
    {"translate", "out", OPT_OUT_FOLDER, NULL,
     "a folder for the results, which get the dialect's endings; without it one file goes to stdout"},
    {"translate", "report", OPT_CHOICE, NULL, "json: print one report per file as JSON Lines instead of the text"},
    {"translate", "aliases", OPT_BOOL, "false",
     "print a header that gives the names of CUDA in FILES their MUSA spelling"},
    {"translate", "devices", OPT_BOOL, "false",
     "Python: device names and modules alone, as the judge does where another device plays MUSA's part"},
    {"translate", "partial", OPT_BOOL, "false",
     "write refused files too, translated as far as that goes, to be finished by hand"},
    {0},
};

/* What is to be translated: files as they are named, and all sources of folders. */
struct translate_sources {
    size_t n;
    char **path;   /* owned */
    char **result; /* owned: its name below --out */
};

struct translate_job {
    struct musa_options o;
    struct musa_target target;
    const char *out;
    bool beside; /* 'out' is a folder of somebody's */
    bool json;
    struct musa_names own;
    struct translate_sources from;
    struct listing *listing; /* of --out, where that is ours */
};

/* "mtt-s4000, mtt-s5000, ": the profiles that are MUSA devices. */
static char *translate_musa_names(void)
{
    const struct data_sheet *p;
    struct buf b;

    buf_init(&b, 4096);
    for (size_t i = 0; (p = data_sheet_at(i)); i++)
        if (p->musa)
            buf_addf(&b, "%s, ", p->name);
    return buf_detach(&b);
}

/* Fills the target from --profile. ERR_INPUT names the devices. */
static int translate_target_of(const struct opts *o, struct translate_job *j, struct err *e)
{
    const char *name = opts_str(o, "profile");
    const struct data_sheet *p = data_sheet_find(name);
    char *names;

    if (!strcmp(name, "any"))
        return 0;
    if (!p || !p->musa) {
        names = translate_musa_names();
        err_set(e, ERR_INPUT, "'%s' is no MUSA device; there are %sany", name, names);
        free(names);
        return -1;
    }
    j->target = (struct musa_target){.name = p->card, .arch = (int)data_sheet_get(p, FACT_ARCH, 0),
                                     .shared_bytes = data_sheet_get(p, FACT_SHARED_BLOCK, 0),
                                     .const_bytes = data_sheet_get(p, FACT_CONSTANT, 0),
                                     .cooperative = data_sheet_get(p, FACT_COOPERATIVE, 0) == 1};
    j->o.target = &j->target;
    return 0;
}

/* "sub/x.cu" -> "sub/x.mu" */
static char *translate_result_name(const struct translate_job *j, const char *name)
{
    static const char *const endings[][2] = {{".cuh", ".muh"}, {".cu", ".mu"}};

    for (size_t i = 0; i < 2; i++) {
        const char *from = endings[i][j->o.to == TO_CUDA], *to = endings[i][j->o.to != TO_CUDA];
        if (path_ends(name, from))
            return xasprintf("%.*s%s", (int)(strlen(name) - strlen(from)), name, to);
    }
    return xstrdup(name);
}

/* ---- which files ---- */

/* True for names with the ending of a file that can be translated. */
static bool translate_is_source(const char *name)
{
    static const char *const endings[] = {".cu", ".cuh", ".mu", ".muh", ".h", ".hpp", ".hh", ".cpp", ".cc", ".cxx",
                                          ".inl", ".py"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (path_ends(name, endings[i]))
            return true;
    return false;
}

/* Appends a file and the name that its result will have below the job's folder. */
static void translate_add_source(struct translate_job *j, const char *path, const char *name)
{
    struct translate_sources *f = &j->from;

    f->path = xrealloc(f->path, (f->n + 1) * sizeof *f->path);
    f->result = xrealloc(f->result, (f->n + 1) * sizeof *f->result);
    f->path[f->n] = xstrdup(path);
    f->result[f->n++] = translate_result_name(j, name);
}

/* under: "" or "FOLDER/". Links are not followed. */
static int translate_add_folder(struct translate_job *j, const char *folder, const char *under, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(folder, names[i]), *name = xasprintf("%s%s", under, names[i]), *deeper;
        struct stat st;

        if (lstat(path, &st) < 0) {
            rc = err_sys(e, "cannot read '%s'", path);
        } else if (S_ISDIR(st.st_mode) && strcmp(names[i], "__pycache__")) {
            deeper = xasprintf("%s/", name);
            rc = translate_add_folder(j, path, deeper, e);
            free(deeper);
        } else if (S_ISREG(st.st_mode) && translate_is_source(names[i])) {
            translate_add_source(j, path, name);
        }
        free(path);
        free(name);
    }
    names_free(names, n);
    return rc;
}

/* Collects the files that the arguments name, folders included. ERR_INPUT: a folder holds none. */
static int translate_gather(struct translate_job *j, const struct opts *o, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < o->n_args && rc == 0; i++) {
        const char *path = o->args[i];
        size_t before = j->from.n;

        if ((rc = listing_check(path, e)) < 0)
            break;
        if (!file_is_dir(path))
            translate_add_source(j, path, path_name(path));
        else if ((rc = translate_add_folder(j, path, "", e)) == 0 && j->from.n == before)
            rc = err_set(e, ERR_INPUT, "'%s' holds no sources (.cu .cuh .h .cpp .mu .muh .py)", path);
    }
    return rc;
}

static void translate_free(struct translate_job *j)
{
    names_free(j->from.path, j->from.n);
    names_free(j->from.result, j->from.n);
    musa_names_free(&j->own);
    listing_free(j->listing);
}

/* ---- includes ---- */

/* True if the name exists in the job's folder, or will after this job. */
static bool translate_is_there(const struct translate_job *j, const char *name)
{
    char *path = path_join(j->out, name);
    bool there = file_exists(path);

    for (size_t i = 0; i < j->from.n; i++)
        there = there || !strcmp(j->from.result[i], name);
    free(path);
    return there;
}

/* A header of the target's dialect that the result includes, and that nobody translates or has there. */
static void translate_warn_missing(const struct translate_job *j, size_t at, const char *text)
{
    const char *result = j->from.result[at], *slash = strrchr(result, '/');
    char name[200];

    for (const char *p = text; (p = strstr(p, "#include \"")); p++) {
        char *beside;

        if (sscanf(p, "#include \"%199[^\"\n]", name) != 1 ||
            !path_ends(name, j->o.to == TO_CUDA ? ".cuh" : ".muh"))
            continue;
        beside = xasprintf("%.*s%s", slash ? (int)(slash + 1 - result) : 0, result, name);
        if (!translate_is_there(j, beside))
            log_warn("'%s' includes '%s', which nobody has translated; name its source or the folder", result, name);
        free(beside);
    }
}

static const char *const kinds[] = {[MUSA_REFUSED] = "refused", [MUSA_LOSSY] = "lossy", [MUSA_ADVICE] = "advice"};

/* Prints one file's notes as a line of JSON. */
static void translate_print_report(const char *path, const struct translate_job *j, const struct musa_result *r)
{
    json_t *notes = json_array(), *uses = json_array(), *all;

    for (size_t i = 0; i < r->n_notes; i++) {
        const struct musa_note *n = &r->notes[i];
        json_array_append_new(notes, json_pack("{s:s,s:i,s:s,s:s%,s:o}", "kind", kinds[n->kind], "line",
                                               (int)n->line, "rule",
                                               n->rule, "evidence", &n->evidence, (size_t)1, "text",
                                               json_utf8(n->text, strlen(n->text))));
    }
    for (size_t i = 0; i < r->n_uses; i++) {
        const struct musa_use *u = &r->uses[i];
        json_array_append_new(uses, json_pack("{s:s,s:s,s:s%,s:I}", "from", u->from, "to", u->to, "evidence",
                                              &u->evidence,
                                              (size_t)1, "n", (json_int_t)u->n));
    }
    all = json_pack("{s:o,s:s,s:s,s:b,s:b,s:I,s:o,s:o}", "file", json_utf8(path, strlen(path)), "to",
                    j->o.to == TO_CUDA ? "cuda" : "musa", "profile", j->o.target ? j->target.name : "any",
                        "refused", r->refused,
                    "lossy", r->lossy, "edits", (json_int_t)r->edits, "notes", notes, "rules", uses);
    json_print(all);
    json_decref(all);
}

/* Prints to stderr what a person should look at, one line a note; lossy steps are printed elsewhere. */
static void translate_print_notes(const char *path, const struct musa_result *r)
{
    for (size_t i = 0; i < r->n_notes; i++)
        if (r->notes[i].kind != MUSA_LOSSY)
            fprintf(stderr, "%s:%u: %s: %s [%s]\n", path, r->notes[i].line, kinds[r->notes[i].kind], r->notes[i].text,
                    r->notes[i].rule);
}

/* Writes the translated file to --out, else to stdout; nothing where it was refused. */
static int translate_write_result(const struct translate_job *j, size_t at, const struct musa_result *r,
                                  struct err *e)
{
    char *to, *folder;
    int rc;

    if (!j->out) {
        if (!j->json && (!r->refused || j->o.partial))
            fwrite(r->out.p, 1, r->out.n, stdout);
        return fflush(stdout) || ferror(stdout) ? err_sys(e, "cannot write to standard output") : 0;
    }
    to = path_join(j->out, j->from.result[at]);
    folder = path_folder(to);
    rc = dir_make(folder, e);
    free(folder);
    if (rc == 0 && r->refused && !j->o.partial) /* what was there is a former translation's */
        rc = j->listing ? listing_drop(j->listing, j->from.result[at], e) : 0;
    else if (rc == 0 && j->listing)
        rc = listing_write(j->listing, j->from.result[at], r->out.p, r->out.n, e);
    else if (rc == 0)
        rc = file_write(to, r->out.p, r->out.n, e);
    free(to);
    if (rc == 0 && (!r->refused || j->o.partial))
        translate_warn_missing(j, at, r->out.p);
    return rc;
}

/* Translates one file; *ret_refused becomes true where that was refused. */
static int translate_file(struct translate_job *j, size_t at, bool *ret_refused, struct err *e)
{
    const char *path = j->from.path[at];
    struct musa_result r = {0};
    struct buf src;
    int rc;

    buf_init(&src, BUF_MAX_TEXT);
    j->o.lang = musa_lang_of(path);
    rc = file_read(path, &src, e);
    if (rc == 0 && (rc = musa_translate(src.p, src.n, &j->o, &r, e)) < 0)
        err_prefix(e, "'%s'", path);
    if (rc == 0) {
        *ret_refused |= r.refused;
        if (j->json)
            translate_print_report(path, j, &r);
        else
            translate_print_notes(path, &r);
        rc = translate_write_result(j, at, &r, e);
    }
    musa_result_free(&r);
    buf_free(&src);
    return rc;
}

/* A name that one file declares stays in all of them. Files that cannot be read are reported when their turn comes. */
static void translate_read_names(struct translate_job *j)
{
    struct buf src;

    for (size_t i = 0; i < j->from.n && j->from.n > 1; i++) {
        buf_init(&src, BUF_MAX_TEXT);
        if (musa_lang_of(j->from.path[i]) == MUSA_CXX && file_read(j->from.path[i], &src, NULL) == 0)
            musa_names_add(&j->own, src.p, src.n, MUSA_CXX);
        buf_free(&src);
    }
    j->o.own = &j->own;
}

/* 'translate --aliases': prints the names that the sources use. */
static int translate_print_aliases(const struct translate_job *j, struct err *e)
{
    struct buf src, out;
    int rc = 0;

    buf_init(&src, BUF_MAX_TEXT);
    buf_init(&out, BUF_MAX_TEXT);
    for (size_t i = 0; i < j->from.n && rc == 0; i++) {
        rc = file_read(j->from.path[i], &src, e);
        buf_addc(&src, '\n');
    }
    if (rc == 0)
        musa_aliases(src.p, src.n, &out);
    fwrite(out.p, 1, out.n, stdout);
    buf_free(&src);
    buf_free(&out);
    return rc < 0 ? -1 : EXIT_OK;
}

/* A folder of our own, or one of somebody's, to which files are added: those that are there are not ours. */
static int translate_open_folder(struct translate_job *j, struct err *e)
{
    struct err why = ERR_INIT;

    if (!j->out || folder_claim(j->out, "these translations", &why) == 0)
        return 0;
    j->beside = file_is_dir(j->out) && !stamp_is_in(j->out);
    return j->beside ? 0 : err_set(e, why.kind, "%s", why.msg);
}

/* No result may take the place of a source, of another result, or of somebody's file. */
static int translate_check_targets(const struct translate_job *j, struct err *e)
{
    const struct translate_sources *f = &j->from;
    json_t *taken = json_object();
    int rc = 0;

    for (size_t i = 0; j->out && i < f->n && rc == 0; i++) {
        char *to = path_join(j->out, f->result[i]);

        if (json_object_get(taken, f->result[i]))
            rc = err_set(e, ERR_INPUT, "'%s' and '%s' would both be written as '%s'; give them folders of their own",
                         json_str(taken, f->result[i], ""), f->path[i], to);
        for (size_t k = 0; k < f->n && rc == 0; k++)
            if (file_is_same(f->path[k], to))
                rc = err_set(e, ERR_INPUT, "'%s' would be written over; name another --out", f->path[k]);
        if (rc == 0 && j->beside && file_exists(to))
            rc = err_set(e, ERR_INPUT, "'%s' is there already, in a folder that is not of these translations; move it "
                                       "away, or name a new --out", to);
        json_object_set_new(taken, f->result[i], json_string(f->path[i]));
        free(to);
    }
    json_decref(taken);
    return rc;
}

/* Results of sources that were not given this time stay, as a folder may be filled by several calls. */
static int translate_finish(struct translate_job *j, struct err *e)
{
    size_t former = 0;

    if (listing_end(j->listing, true, &former, e) < 0)
        return -1;
    if (former)
        log_warn("'%s' also holds %zu file%s of other sources, or of sources that went", j->out, former,
                 buf_plural((long long)former));
    return 0;
}

/* Translates each source; an exit code (EXIT_FAIL: one was refused), or -1 with e. */
static int translate_all(const struct opts *o, struct translate_job *j, struct err *e)
{
    bool refused = false;
    int rc = 0;

    if (j->from.n > 1 && !j->out && !j->json)
        return err_set(e, ERR_INPUT, "several files need --out FOLDER (or --report json)");
    if (translate_target_of(o, j, e) < 0 || opts_check_outside(o, "out", e) < 0 ||
        translate_open_folder(j, e) < 0 || translate_check_targets(j, e) < 0)
        return -1;
    j->o.device_only = opts_bool(o, "devices");
    j->o.partial = opts_bool(o, "partial");
    translate_read_names(j);
    if (j->out && !j->beside)
        rc = listing_begin(j->out, NULL, &j->listing, e);
    for (size_t i = 0; i < j->from.n && rc == 0; i++)
        rc = translate_file(j, i, &refused, e);
    if (rc == 0 && j->listing)
        rc = translate_finish(j, e);
    return rc < 0 ? -1 : refused ? EXIT_FAILED : EXIT_OK;
}

/* The command; an exit code, or -1 with e. */
static int translate_run(const struct opts *o, struct err *e)
{
    struct translate_job j = {.out = opts_str(o, "out"), .json = opts_has(o, "report")};
    int rc;

    j.o.to = !strcmp(opts_str(o, "to"), "cuda") ? TO_CUDA : TO_MUSA;
    if (o->n_args == 0)
        return err_set(e, ERR_INPUT, "no file; name sources (.cu .cuh .h .cpp .mu .muh), Python programs (.py) or a "
                                     "folder of them");
    rc = translate_gather(&j, o, e);
    if (rc == 0)
        rc = opts_bool(o, "aliases") ? translate_print_aliases(&j, e) : translate_all(o, &j, e);
    translate_free(&j);
    return rc;
}

const struct command cmd_translate = {
    "translate", "sources from CUDA to MUSA and back", "[--to musa|cuda] [--profile NAME] [--out FOLDER] FILE...",
    "Translates C++ sources, and Python programs with the C++ in their strings: names, headers, device names,\n"
    "flags and guards. A folder in the place of a FILE means all sources below it, which keep their places.\n"
    "Architecture guards keep their meaning (__CUDA_ARCH__ >= 800 becomes __MUSA_ARCH__ >= 220).\n"
    "Comments, messages and the program's own names stay. What the device has no counterpart of is refused with its\n"
    "line: inline PTX, clusters, tensor maps, 64-bit atomics, more shared memory than it has; then there is no output\n"
    "for that file. A report says what each name's translation rests on: V compiled by the vendor, D documented, T in\n"
    "the vendor's tables only, I inferred; and 'lossy' where translating back would give another text.\n"
    "  musacoder translate kernel.cu >kernel.mu\n"
    "  musacoder translate --profile s4000 --out musa/ candidates/*.py\n"
    "Exit code: 0 all translated, 1 some refused, 2 usage, 3 --out cannot be written.\n\n",
    rows, translate_run, WORDS_ANY};

/* ---- the devices ---- */

static const struct opt profile_rows[] = {
    {"profile", "json", OPT_BOOL, "false", "print one device per line as JSON Lines"},
    {0},
};

/* Prints a card's data sheet, one figure a line with its evidence and its source. */
static void translate_print_profile(const struct data_sheet *p)
{
    printf("%-7s %s, %s\n", p->name, p->card, p->arch);
    for (int f = 0; f < N_DATA_SHEET_FACTS; f++)
        if (p->figures[f].value == DATA_SHEET_UNKNOWN)
            printf("  %-26s %14s\n", data_sheet_fact_names[f], "not published");
        else
            printf("  %-26s %14" PRId64 "  %c  %s\n", data_sheet_fact_names[f], p->figures[f].value,
                   p->figures[f].evidence,
                   p->figures[f].source);
}

/* 'translate profile': prints data sheets. */
static int translate_profile_run(const struct opts *o, struct err *e)
{
    const struct data_sheet *p = NULL;
    char *text;

    if (o->n_args > 0 && !data_sheet_find(o->args[0])) {
        text = data_sheet_names();
        err_set(e, ERR_INPUT, "no profile '%s'; there are %s", o->args[0], text);
        free(text);
        return -1;
    }
    for (size_t i = 0; (p = data_sheet_at(i)); i++) {
        if (o->n_args > 0 && p != data_sheet_find(o->args[0]))
            continue;
        if (opts_bool(o, "json")) {
            json_t *v = data_sheet_json(p);
            json_print(v);
            json_decref(v);
        } else {
            translate_print_profile(p);
        }
    }
    return EXIT_OK;
}

const struct command cmd_profile = {
    "profile", "what is known of each device, and how", "[NAME] [--json]",
    "Prints the figures that the emulator and the translator take for a device, each with its evidence: V measured\n"
    "or compiled by somebody with the card, D the vendor's documents, C the press or a third party, I inferred from\n"
    "a relative.\n\n",
    profile_rows, translate_profile_run, 1};
