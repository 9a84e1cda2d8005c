/* identity.c - see identity.h. */
#include "eval/server/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build.h"
#include "eval/server/settings.h"

/* ---- states ---- */

/* One line that changes whenever the file does: contents cannot be replaced without a new change time. */
static void identity_state_of(const char *path, char *ret, size_t n)
{
    struct stat s;

    if (stat(path, &s) < 0) {
        snprintf(ret, n, "absent");
        return;
    }
    snprintf(ret, n, "%llu %llu %llu %llu %lld.%09ld %lld.%09ld", (unsigned long long)s.st_dev,
             (unsigned long long)s.st_ino, (unsigned long long)s.st_rdev, (unsigned long long)s.st_size,
             (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec, (long long)s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

/* Adds the file's path and state, not its content. */
static void identity_add_state(struct sha256 *h, const char *path)
{
    char state[200];

    identity_state_of(path, state, sizeof state);
    sha256_adds(h, path);
    sha256_adds(h, state);
}

/* Device nodes are touched by everybody who opens them: which one it is, and nothing else. */
static void identity_add_node(struct sha256 *h, const char *path)
{
    struct stat s;

    sha256_adds(h, path);
    if (stat(path, &s) == 0)
        sha256_add(h, &s.st_rdev, sizeof s.st_rdev);
}

/* Adds each file's state below dir; Python's caches are left out. */
static void identity_add_tree(struct sha256 *h, const char *dir)
{
    char **names, *path;
    size_t n;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        path = path_join(dir, names[i]);
        if (file_is_dir(path) && strcmp(names[i], "__pycache__"))
            identity_add_tree(h, path);
        else if (!file_is_dir(path))
            identity_add_state(h, path);
        free(path);
    }
    names_free(names, n);
}

/* Adds the state of one of our own libraries, if it is there. */
static void identity_add_lib(struct sha256 *h, const char *name)
{
    char *path = path_lib(name);

    if (path)
        identity_add_state(h, path);
    free(path);
}

/* Adds the state of a file or a whole folder of the program's files. */
static void identity_add_share(struct sha256 *h, const char *name)
{
    char *path = path_share(name);

    file_is_dir(path) ? identity_add_tree(h, path) : identity_add_state(h, path);
    free(path);
}

/* A program as the shell would find it. */
static void identity_add_program(struct sha256 *h, const char *name)
{
    char *list = xstrdup(getenv("PATH") ? getenv("PATH") : ""), *save = NULL, *path;
    bool found = strchr(name, '/') != NULL;

    if (found)
        identity_add_state(h, name);
    for (char *d = strtok_r(list, ":", &save); d && !found; d = strtok_r(NULL, ":", &save)) {
        path = path_join(d, name);
        if ((found = file_exists(path)))
            identity_add_state(h, path);
        free(path);
    }
    free(list);
}

/* Adds a file's bytes, the first 64 KiB; a file that cannot be read adds nothing. */
static void identity_add_text(struct sha256 *h, const char *path)
{
    struct buf b;

    buf_init(&b, 1 << 16);
    if (file_read(path, &b, NULL) == 0)
        sha256_adds(h, b.p);
    buf_free(&b);
}

/* ---- facts ---- */

/* Adds the compilers that builds for b use. */
static void identity_add_compilers(struct sha256 *h, const struct judge_backend *b)
{
    const char *cxx = getenv("MUSACODER_CXX"), *nvcc = getenv("MUSACODER_NVCC"), *home = getenv("CUDA_HOME");
    char *path;

    identity_add_program(h, cxx && *cxx ? cxx : "g++");
    identity_add_program(h, "ld.gold");
    if (!b->on_device)
        return;
    identity_add_program(h, nvcc && *nvcc ? nvcc : "nvcc");
    path = path_join(home && *home ? home : "/usr/local/cuda", "bin/nvcc");
    identity_add_state(h, path);
    free(path);
}

/* The driver's version as the kernel says it, which devices there are, and when the machine was started. */
static void identity_add_device(struct sha256 *h, const struct judge_backend *b)
{
    size_t n = 0;
    char **nodes = b->devices ? b->devices(&n) : NULL, *said = NULL;
    struct device_facts f = {0};

    if (b->look && !b->devices && b->look(&f, NULL) == 0)
        sha256_adds(h, said = xasprintf("%s %s %s", f.name, f.uuid, f.arch));
    free(said);
    device_facts_free(&f);
    if (!nodes)
        return;
    for (size_t i = 0; i < n; i++)
        identity_add_node(h, nodes[i]);
    names_free(nodes, n);
    identity_add_text(h, "/proc/driver/nvidia/version");
    identity_add_text(h, "/sys/module/nvidia/version");
    identity_add_text(h, "/proc/sys/kernel/random/boot_id");
}

/* Adds the interpreter and its environment. */
static void identity_add_python(struct sha256 *h)
{
    char *python = path_python(NULL), *slash, *settings;

    if (!python)
        return;
    identity_add_state(h, python);
    for (int i = 0; i < 2 && (slash = strrchr(python, '/')); i++)
        *slash = 0;
    settings = path_join(python, "pyvenv.cfg");
    identity_add_state(h, settings);
    free(settings);
    free(python);
}

/* Hex SHA-256 of what of this machine decides verdicts: programs, libraries, settings, Python, device. */
static void identity_facts_of(const struct judge_backend *b, char ret[65])
{
    static const char *const ours[] = {"runner", "litetorch", "simt/include"};
    static const char *const libs[] = {"libsimt.so", "timing.fatbin", "libfront.so", "libfronttorch.so", "mcexec"};
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, b->name);
    identity_add_state(&h, "/proc/self/exe");
    settings_add(&h, SETTINGS_PROCESS);
    identity_add_python(&h);
    identity_add_compilers(&h, b);
    identity_add_device(&h, b);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        identity_add_share(&h, ours[i]);
    for (size_t i = 0; i < sizeof libs / sizeof *libs; i++)
        identity_add_lib(&h, libs[i]);
    sha256_end(&h, ret);
}

/* ---- the file ---- */

/* One of 256 per backend: several checkouts may share a cache, and old ones do not pile up. */
static char *identity_file_of(const struct judge_backend *b, const char *facts)
{
    char name[64];

    snprintf(name, sizeof name, "server/%.20s-%.2s.json", b->name, facts);
    return path_cache(name);
}

bool identity_unchanged(const json_t *watched)
{
    const char *path;
    char state[200];
    json_t *was;

    json_object_foreach((json_t *)watched, path, was) {
        identity_state_of(path, state, sizeof state);
        if (!json_is_string(was) || strcmp(json_string_value(was), state))
            return false;
    }
    return json_object_size(watched) > 0;
}

void identity_look(const struct judge_backend *b, struct identity *id)
{
    char *path;
    json_t *v;

    if (id->looked)
        return;
    id->looked = true;
    identity_facts_of(b, id->facts);
    if (build_is_elsewhere()) /* its compiler is another machine's */
        return;
    path = identity_file_of(b, id->facts);
    v = file_exists(path) ? json_read(path, NULL) : NULL;
    if (v && !strcmp(json_str(v, "facts", ""), id->facts) && identity_unchanged(json_object_get(v, "watch")) &&
        *json_str(v, "toolchain", ""))
        id->toolchain = xstrdup(json_str(v, "toolchain", ""));
    json_decref(v);
    free(path);
}

/* Where PyTorch lies, and the folder of packages it lies in, whose time changes when one is installed. */
json_t *identity_watch(const json_t *paths)
{
    json_t *o = json_object(), *folder;
    char state[200], *torch;
    size_t i;

    json_array_foreach((json_t *)paths, i, folder) {
        torch = path_join(json_string_value(folder), "torch/version.py");
        if (file_exists(torch)) {
            identity_state_of(torch, state, sizeof state);
            json_object_set_new(o, torch, json_string(state));
            identity_state_of(json_string_value(folder), state, sizeof state);
            json_object_set_new(o, json_string_value(folder), json_string(state));
        }
        free(torch);
    }
    return o;
}

void identity_learn(const struct judge_backend *b, struct identity *id, const char *toolchain, const json_t *paths)
{
    char *folder = path_cache("server"), *path = identity_file_of(b, id->facts);
    bool news = !id->toolchain || strcmp(id->toolchain, toolchain);
    struct err e = ERR_INIT;
    json_t *v;

    if (news) {
        free(id->toolchain);
        id->toolchain = xstrdup(toolchain);
    }
    if (news && !build_is_elsewhere()) {
        v = json_pack("{s:s,s:s,s:o}", "facts", id->facts, "toolchain", toolchain, "watch", identity_watch(paths));
        if (dir_make(folder, &e) < 0 || json_write(path, v, &e) < 0)
            log_debug("%s", e.msg);
        json_decref(v);
    }
    free(folder);
    free(path);
}

void identity_free(struct identity *id)
{
    free(id->toolchain);
    *id = (struct identity){0};
}
