/* cmd_doctor.c - 'musacoder doctor': what this machine has and lacks, each lack with its remedy. doctor_check_NAME
 * adds the lines about NAME to the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "device/device.h"
#include "device/musa_cards.h"
#include "eval/build/build.h"
#include "eval/eval.h"
#include "daemon/daemon.h"
#include "proc/jail.h"
#include "proc/proc.h"

static const struct opt rows[] = {
    {"doctor", "json", OPT_BOOL, "false", "print one JSON object instead of a table"},
    {0},
};

enum doctor_level { GOOD, NOTE, BAD };

struct doctor_report {
    json_t *checks;
    bool unfit;
};

/* Adds a check with its state, text and remedy. */
static void doctor_add(struct doctor_report *r, const char *name, enum doctor_level level, const char *text,
                       const char *remedy)
{
    static const char *const words[] = {"ok", "note", "missing"};
    json_t *v = json_pack("{s:s,s:s,s:o}", "check", name, "state", words[level], "text", json_utf8(text, strlen(text)));

    if (level != GOOD && remedy)
        json_object_set_new(v, "remedy", json_utf8(remedy, strlen(remedy)));
    json_array_append_new(r->checks, v);
    r->unfit |= level == BAD;
}

/* What a program prints; NULL if it cannot be run or fails. Owned. */
static char *doctor_output_of(const char *program, const char *arg, const char *arg2)
{
    char *argv[] = {(char *)program, (char *)arg, (char *)arg2, NULL}, *text = NULL;
    struct proc_spec s = {.argv = argv, .timeout_s = 60};
    struct proc_result r;

    if (proc_run(&s, &r, NULL) < 0)
        return NULL;
    if (r.why == PROC_EXITED && r.code == 0)
        text = xstrdup(r.out.p);
    proc_result_free(&r);
    return text;
}

/* What the program prints with these arguments, up to its first line break. Owned; NULL if it does not run. */
static char *doctor_first_line(const char *program, const char *arg, const char *arg2)
{
    char *text = doctor_output_of(program, arg, arg2);

    if (text)
        text[strcspn(text, "\n")] = 0;
    return text;
}

/* The first line with this word, else the first; as doctor_output_of. */
static char *doctor_matching_line(const char *program, const char *arg, const char *word)
{
    char *text = doctor_output_of(program, arg, NULL), *at = text ? strstr(text, word) : NULL, *line;

    if (!text)
        return NULL;
    while (at && at > text && at[-1] != '\n')
        at--;
    at = at ? at : text;
    line = xasprintf("%.*s", (int)strcspn(at, "\n"), at);
    free(text);
    return line;
}

/* Adds the line about the C++ compiler: MUSACODER_CXX, else g++. */
static void doctor_check_compiler(struct doctor_report *r)
{
    const char *cxx = getenv("MUSACODER_CXX");
    char *line = doctor_first_line(cxx && *cxx ? cxx : "g++", "--version", NULL);

    doctor_add(r, "compiler", line ? GOOD : BAD, line ? line : "no C++ compiler",
               "run 'musacoder setup', or set MUSACODER_CXX");
    free(line);
}

/* Adds a check: Python with PyTorch. */
static void doctor_check_python(struct doctor_report *r)
{
    static const char code[] = "import sys, torch, numpy; print('python', sys.version.split()[0] + ', torch', "
                               "torch.__version__ + ', numpy', numpy.__version__)";
    struct err e = ERR_INIT;
    char *python = path_python(&e), *line = python ? doctor_first_line(python, "-c", code) : NULL, *text;

    text = line ? xasprintf("%s (%s)", line, python) : python ? xasprintf("'%s' has no PyTorch with numpy", python)
        : xstrdup(e.msg);
    doctor_add(r, "python", line ? GOOD : BAD, text, "run 'musacoder setup', or set MUSACODER_PYTHON to a Python with "
                                                     "PyTorch >= "
                                                     "2.6");
    free(text);
    free(line);
    free(python);
}

/* The closest folder that exists: what is not made yet will be made there. */
static char *doctor_existing_above(const char *path)
{
    char *p = xstrdup(path), *slash;

    while (!file_exists(p) && (slash = strrchr(p, '/')))
        *(slash == p ? slash + 1 : slash) = 0;
    return p;
}

/* Adds a check: the folder can be written and has that many GB free. Takes path. */
static void doctor_check_folder(struct doctor_report *r, const char *name, char *path, double need_gb)
{
    char *at = doctor_existing_above(path), *text;
    struct statvfs v;
    double gb = statvfs(at, &v) == 0 ? (double)v.f_bavail * (double)v.f_frsize / 1e9 : 0;
    bool writable = access(at, W_OK) == 0;

    text = xasprintf("%s, %.1f GB free%s", path, gb, writable ? "" : ", not writable");
    if (!writable)
        doctor_add(r, name, BAD, text, "change its permissions, or set MUSACODER_DATA_DIR and MUSACODER_CACHE_DIR");
    else
        doctor_add(r, name, gb >= need_gb ? GOOD : NOTE, text, "free some disk space");
    free(text);
    free(at);
    free(path);
}

/* Adds the line about the files that the program needs beside itself. */
static void doctor_check_share(struct doctor_report *r)
{
    char *share = path_share("runner/main.py"), *lib = jail_tool_folder(), *root = path_share("");

    doctor_add(r, "share", file_exists(share) && lib ? GOOD : BAD,
        file_exists(share) ? lib ? root : "the build folder has no lib/mcjail" : "'runner/main.py' is not found",
        "run 'make', or set MUSACODER_SHARE to the checkout");
    free(root);
    free(share);
    free(lib);
}

/* Adds a check: which layers of the jail hold. */
static void doctor_check_jail(struct doctor_report *r)
{
    const struct jail_layers *l = jail_probe();
    struct buf text;

    buf_init(&text, 4096);
    for (unsigned bit = 1; jail_layer_name(bit); bit <<= 1)
        if (l->held & bit)
            buf_addf(&text, "%s%s", text.n ? ", " : "", jail_layer_name(bit));
    if (l->held & JAIL_LANDLOCK)
        buf_addf(&text, "; Landlock ABI %d", l->landlock_abi);
    if (l->cgroup)
        buf_addf(&text, "; cgroup v%d", l->cgroup);
    doctor_add(r, "jail", l->enough ? l->missing[0] ? NOTE : GOOD : BAD, text.n ? text.p : "none", l->missing);
    buf_free(&text);
}

static void doctor_check_machine(struct doctor_report *r)
{
    double gb = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9;
    char *text = xasprintf("%d CPUs, %.1f GB memory", machine_processors(), gb);

    doctor_add(r, "machine", gb >= 3.5 ? GOOD : NOTE, text, "the demo wants 4 GB of memory");
    free(text);
}

/* Hands a buffer to itself through a descriptor, as the judge and a candidate's process do. */
static int doctor_try_shared(struct device *d, struct err *e)
{
    struct device_buf a, b;
    int fd, rc;

    if (device_alloc(d, 1 << 20, DEVICE_SHARED, &a, e) < 0)
        return -1;
    rc = device_export(&a, &fd, e);
    if (rc == 0) {
        rc = device_import(d, fd, DEVICE_SHARED, a.size, a.capacity, &b, e);
        close(fd);
        if (rc == 0)
            device_free(&b);
    }
    device_free(&a);
    return rc;
}

/* Adds a check: whether the judge's kernels load on the device. */
static void doctor_check_kernels(struct doctor_report *r, const struct device_info *i, struct device *d)
{
    char *text = device_has_kernels(d) ? xasprintf("judge.fatbin loads on device %d", i->index)
                                       : xasprintf("no judge.fatbin in the build folder");

    doctor_add(r, "kernels", device_has_kernels(d) ? GOOD : NOTE, text, "'cuda' needs them: install the CUDA toolkit "
                                                                        "(nvcc), "
                                                                        "then run 'make'");
    free(text);
}

/* What 'cuda' stands on, tried on one device: context, the judge's kernels, memory as file descriptors. */
static void doctor_check_device(struct doctor_report *r, const struct device_info *i)
{
    struct err e = ERR_INIT;
    struct device *d;
    char *text;

    text = xasprintf("%d: %s, cc %d.%d, %.1f GB, %d multiprocessors, %.0f GB/s; driver %s (CUDA %d.%d)", i->index,
                     i->name, i->cc / 10, i->cc % 10, (double)i->memory / 1e9, i->sm_count, i->memory_gbs,
                     i->driver_version[0] ? i->driver_version : "of unknown version", i->driver / 1000,
                     i->driver % 1000 / 10);
    doctor_add(r, "gpu", GOOD, text, NULL);
    free(text);
    if (device_open("cuda", i->index, &d, &e) < 0) {
        doctor_add(r, "context", NOTE, e.msg, "'cuda' cannot use this device; 'sim' needs none");
        return;
    }
    doctor_check_kernels(r, i, d);
    if (doctor_try_shared(d, &e) == 0)
        doctor_add(r, "shared", GOOD, "device memory travels between processes as file descriptors", NULL);
    else
        doctor_add(r, "shared", NOTE, e.msg, "buffers of candidates go through pinned host memory instead: slower, no "
                                             "less "
                                             "safe");
    device_close(d);
}

/* The compiler that builds find, which need not be in PATH. */
static void doctor_check_nvcc(struct doctor_report *r)
{
    struct err e = ERR_INIT;
    char *nvcc = build_nvcc(&e), *line = nvcc ? doctor_matching_line(nvcc, "--version", "release") : NULL, *text;

    text = line ? xasprintf("%s (%s)", line, nvcc) : nvcc ? xasprintf("'%s' does not run", nvcc) : xstrdup(e.msg);
    doctor_add(r, "nvcc", line ? GOOD : NOTE, text, "none is needed for 'sim'");
    free(text);
    free(line);
    free(nvcc);
}

/* Adds a check: the card, and where it differs from its data sheet. */
static void doctor_check_musa_card(struct doctor_report *r, const struct musa_card *c)
{
    const struct data_sheet *p = musa_card_profile(c);
    struct buf b;

    buf_init(&b, 1 << 16);
    buf_addf(&b, "%s, mp_%d%d; profile %s", c->name, c->major, c->minor, p ? p->name : "none");
    doctor_add(r, "musa card", GOOD, b.p, NULL);
    buf_clear(&b);
    if (p)
        musa_card_differences(c, p, &b);
    for (char *save = NULL, *line = strtok_r(b.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        doctor_add(r, "musa card", NOTE, line, "the card is right: please report it, with what docs/probe/probe.mu "
                                               "prints");
    buf_free(&b);
}

/* Where there is neither card nor compiler nothing is said: nobody else needs them. */
static void doctor_check_musa(struct doctor_report *r)
{
    struct musa_card *cards = NULL;
    struct err e = ERR_INIT;
    int n = 0;
    char *mcc;

    if (musa_cards(&cards, &n, &e) < 0)
        n = 0;
    for (int i = 0; i < n; i++)
        doctor_check_musa_card(r, &cards[i]);
    free(cards);
    if ((mcc = musa_compiler(NULL)) || n > 0)
        doctor_add(r, "mcc", mcc ? GOOD : NOTE, mcc ? mcc : "not found", "install the MUSA SDK, or set MUSACODER_MCC");
    if (mcc || n > 0) {
        int rc = eval_backend_check("musa", &e);
        doctor_add(r, "musa", rc == 0 ? GOOD : NOTE, rc == 0 ? "the backend has all that it looks for" : e.msg,
                   "'sim' and 'cuda' judge MUSA programs without a card");
    }
    free(mcc);
}

/* A lack that is no fault. msg: "what is missing; what to do": the second half is the remedy, else 'fallback'. */
static void doctor_add_lack(struct doctor_report *r, const char *name, const char *msg, const char *fallback)
{
    const char *cut = strstr(msg, "; ");
    char *what = xstrndup(msg, cut ? (size_t)(cut - msg) : strlen(msg));

    doctor_add(r, name, NOTE, what, cut ? cut + 2 : fallback);
    free(what);
}

/* Adds the lines about nvcc and about each GPU, or what is lacking. */
static void doctor_check_gpu(struct doctor_report *r)
{
    struct device_info *all = NULL;
    struct err e = ERR_INIT;
    int n = 0;

    doctor_check_nvcc(r);
    if (device_list("cuda", &all, &n, &e) < 0)
        doctor_add_lack(r, "gpu", e.msg, "none is needed: 'sim' runs candidates on the CPU");
    for (int i = 0; i < n; i++)
        doctor_check_device(r, &all[i]);
    free(all);
}

/* The living owners; none is no lack. */
static void doctor_check_daemons(struct doctor_report *r)
{
    json_t *all = daemon_list(NULL), *one;
    char since[32];
    size_t i;

    json_array_foreach(all, i, one) {
        char *text;
        format_duration(json_f64(one, "since_s", 0), since, sizeof since);
        text = xasprintf("%s: process %d judges, for %s; log %s", json_str(one, "backend", "?"),
                         (int)json_i64(one, "pid", 0), since, json_str(one, "log", "?"));
        doctor_add(r, "owner", GOOD, text, NULL);
        free(text);
    }
    json_decref(all);
}

/* Prints a line a check, and its remedy in a second line. */
static void doctor_print_table(const json_t *checks)
{
    size_t i;
    json_t *v;

    json_array_foreach (checks, i, v) {
        printf("%-8s %-9s %s\n", json_str(v, "state", ""), json_str(v, "check", ""), json_str(v, "text", ""));
        if (json_object_get(v, "remedy"))
            printf("%-8s %-9s -> %s\n", "", "", json_str(v, "remedy", ""));
    }
}

/* The command; an exit code that tells whether anything is bad. */
static int doctor_run(const struct opts *o, struct err *e)
{
    struct doctor_report r = {.checks = json_array()};

    doctor_check_machine(&r);
    doctor_check_compiler(&r);
    doctor_check_python(&r);
    doctor_check_share(&r);
    doctor_check_folder(&r, "data", path_data(""), 1);
    doctor_check_folder(&r, "cache", path_cache(""), 1);
    doctor_check_jail(&r);
    doctor_check_gpu(&r);
    doctor_check_musa(&r);
    doctor_check_daemons(&r);
    if (opts_bool(o, "json")) {
        json_t *v = json_pack("{s:b,s:O}", "fit", !r.unfit, "checks", r.checks);
        json_print(v);
        json_decref(v);
    } else {
        doctor_print_table(r.checks);
        puts(r.unfit ? "this machine is not ready: see 'missing' above" : "this machine is ready");
    }
    json_decref(r.checks);
    return r.unfit ? EXIT_UNFIT : EXIT_OK;
}

const struct command cmd_doctor = {
    "doctor", "what this machine has and lacks, with remedies", "[--json]",
    "Checks the compiler, Python and PyTorch, the folders, and which layers of the jail for foreign code hold here.\n"
    "Exit code 0: ready; 3: something that 'eval' needs is missing.\n\n",
    rows, doctor_run, 0};
