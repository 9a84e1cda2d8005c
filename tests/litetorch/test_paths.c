/* test_paths.c - the compile stage where every folder's name has spaces, quotes and umlauts, on a full disk, and
 * on a damaged cache. The compilers are scripts: they refuse an input, folder or library that is not there, which
 * is what a path torn by a shell looks like, and make something that links. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/build/build.h"

#define ODD "it's a \"b$x\" \xC3\xA4;c"

static const char compiler[] =
    "#!/bin/sh\n"
    "case \" $* \" in *' -E '*|*' -dump'*) exec g++ \"$@\";; esac\n"
    "case \" $* \" in *' --version '*) echo 'release 13.0, V13.0.88'; exit;; esac\n"
    "object=; skip=; out=; link=; n=0\n"
    "need() { [ -e \"$1\" ] || { echo \"not there: $1\" >>\"$(dirname \"$0\")/complaints\"; exit 1; }; }\n"
    "for a; do\n"
    "  if [ \"$skip\" = out ]; then out=$a; skip=; continue; fi\n"
    "  if [ \"$skip\" = file ]; then need \"$a\"; skip=; continue; fi\n"
    "  if [ \"$skip\" ]; then skip=; continue; fi\n"
    "  case $a in -o) skip=out;; -include) case $# in 0) ;; *) skip=any;; esac;; -ccbin) skip=file;;\n"
    "    -ftemplate-*=*) ;;\n"
    "    -x|-cudart|-keep-dir|-Xcompiler|-Xcudafe|-ftemplate-*|--param|-MF) skip=any;;\n"
    "    -Xlinker) ;; --version-script=*) need \"${a#*=}\";;\n"
    "    -isystem*) need \"${a#-isystem}\";; -I*) need \"${a#-I}\";; -L*) need \"${a#-L}\";;\n"
    "    -shared) link=1;; -*) ;; *) need \"$a\";; esac\n"
    "done\n"
    "[ \"$link\" ] && exec g++ \"$@\"\n"
    "case $out in *.cubin|*.mubin|*.fatbin|prefix.tmp|'') : >\"${out:-x}\"; exit;; esac\n"
    "exec g++ -x c -c /dev/null -o \"$out\"\n";

static char *dir, *odd, *cxx;

static void put(const char *path, const char *text)
{
    struct err e = ERR_INIT;

    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

/* bin/g++, bin/nvcc, bin/mcc; 'share', which is this tree; 'cache' and 'prefix': all below a folder of an odd
 * name. */
static int setup(void **state)
{
    static const char *const names[] = {"g++", "nvcc", "mcc"};
    struct err e = ERR_INIT;
    char *bin, *share, *root = path_share(""), *prefix;

    (void)state;
    dir = dir_temp("paths", &e);
    odd = path_join(dir, ODD);
    bin = path_join(odd, "bin"), share = path_join(odd, "share"), prefix = path_join(odd, "prefix");
    assert_int_equal(dir_make(bin, &e), 0);
    for (size_t i = 0; i < 3; i++) {
        char *path = path_join(bin, names[i]);
        put(path, compiler);
        free(path);
    }
    free(bin);
    bin = path_join(odd, "include");
    assert_int_equal(dir_make(bin, &e), 0);
    assert_int_equal(symlink(root, share), 0);
    setenv("MUSACODER_SHARE", share, 1);
    setenv("MUSACODER_PREFIX_DIR", prefix, 1);
    cxx = path_join(odd, "bin/g++");
    free(bin), free(share), free(root), free(prefix);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dir_remove(dir, NULL);
    free(dir), free(odd), free(cxx);
    return 0;
}

static int build(const char *target, const char *arch, const char *cache, const char *mark, struct build_result *r,
                 struct err *e)
{
    struct build_opts o = {.target = target, .arch = arch, .compiler = cxx, .no_jail = true, .cache_dir = cache};
    char *text = xasprintf("__global__ void k(float *x) {}\nvoid f(float *x) { k<<<1, 1>>>(x); }\n// %s\n", mark);
    json_t *req = json_pack("{s:s,s:s,s:[s],s:[s],s:[s]}", "kind", "load_inline", "name", "ext", "cpp_sources",
                            "void f(float *x);", "cuda_sources", text, "functions", "f");
    int rc = build_run(req, &o, r, e);

    json_decref(req);
    free(text);
    return rc;
}

static void no_complaints(void)
{
    char *path = path_join(odd, "bin/complaints");
    struct buf b;

    buf_init(&b, 1 << 16);
    if (file_exists(path) && file_read(path, &b, NULL) == 0)
        fail_msg("%s", b.p);
    buf_free(&b);
    free(path);
}

static void builds_where_names_are_odd(const char *target, const char *arch)
{
    struct build_result r = {0};
    struct err e = ERR_INIT;
    char *cache = path_join(odd, "cache");
    int rc = build(target, arch, cache, "odd", &r, &e);

    no_complaints();
    if (rc < 0)
        fail_msg("%s: %s", target, e.msg);
    if (!r.ok)
        fail_msg("%s: %s", target, r.error);
    assert_true(file_exists(r.so));
    build_result_free(&r);
    free(cache);
}

static void sim_builds_where_names_are_odd(void **state)
{
    (void)state;
    builds_where_names_are_odd("sim", NULL);
}

static void cuda_builds_where_names_are_odd(void **state)
{
    char *nvcc = path_join(odd, "bin/nvcc");

    (void)state;
    setenv("MUSACODER_NVCC", nvcc, 1);
    builds_where_names_are_odd("cuda", "sm_90");
    free(nvcc);
}

static void musa_builds_where_names_are_odd(void **state)
{
    char *mcc = path_join(odd, "bin/mcc");

    (void)state;
    setenv("MUSACODER_MCC", mcc, 1);
    builds_where_names_are_odd("musa", "mp_22");
    free(mcc);
}

/* What was cut, changed or taken away is compiled again, and what is sound is not. */
static void damaged_builds_are_made_again(void **state)
{
    static const char *const names[] = {"module.so", "device.so", "result.json", "SHA256SUMS"};
    struct build_result r = {0};
    struct err e = ERR_INIT;
    char *cache = path_join(dir, "damaged");

    (void)state;
    log_set_level(LOG_ERROR);
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        assert_int_equal(build("sim", NULL, cache, "damaged", &r, &e), 0);
        assert_true(r.ok);
        assert_false(r.cached);
        build_result_free(&r);
        assert_int_equal(build("sim", NULL, cache, "damaged", &r, &e), 0);
        assert_true(r.cached);
        if (i < sizeof names / sizeof *names) {
            char *slash = strrchr(r.so, '/');
            *slash = 0;
            char *path = path_join(r.so, names[i]);
            assert_int_equal(truncate(path, i % 2 ? 0 : 100), 0);
            free(path);
            build_result_free(&r);
            continue;
        }
        build_result_free(&r);
        break;
    }
    free(cache);
}

/* The folder of a build of 'text' in the cache; owned. */
static char *built(const char *cache, const char *text, bool want_cached)
{
    struct build_result r = {0};
    struct err e = ERR_INIT;
    char *folder;

    assert_int_equal(build("sim", NULL, cache, text, &r, &e), 0);
    assert_int_equal(r.cached, want_cached);
    folder = xstrdup(r.so);
    *strrchr(folder, '/') = 0;
    build_result_free(&r);
    return folder;
}

/* Each is whole, and another program's. */
static void swapped_builds_are_made_again(void **state)
{
    char *cache = path_join(dir, "swapped"), *aside = path_join(cache, "aside");
    char *one = built(cache, "one", false), *two = built(cache, "two", false);

    (void)state;
    assert_int_equal(rename(one, aside), 0);
    assert_int_equal(rename(two, one), 0);
    assert_int_equal(rename(aside, two), 0);
    free(one), free(two);
    one = built(cache, "one", false), two = built(cache, "two", false);
    free(one), free(two);
    one = built(cache, "one", true), two = built(cache, "two", true);
    free(one), free(two), free(aside), free(cache);
}

/* Damages the objects that every program is linked with, in all prepared folders; how many there were. */
static int damage_prefixes(void)
{
    char *root = path_join(odd, "prefix"), **names;
    struct err e = ERR_INIT;
    int found = 0;
    size_t n;

    assert_int_equal(dir_list(root, &names, &n, &e), 0);
    for (size_t i = 0; i < n; i++) {
        char *object = xasprintf("%s/%s/module.o", root, names[i]);

        if (file_exists(object)) {
            assert_int_equal(truncate(object, 100), 0);
            found++;
        }
        free(object);
    }
    names_free(names, n);
    free(root);
    return found;
}

static off_t size_of(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 ? s.st_size : -1;
}

/* Damage that links, too: no program is built with what was changed since it was made. */
static void changed_objects_are_made_again(void **state)
{
    char *root = path_join(odd, "prefix"), *cache = path_join(dir, "objects"), **names;
    off_t was[16] = {0};
    size_t n, found = 0;
    struct err e = ERR_INIT;

    (void)state;
    free(built(cache, "before a change", false));
    assert_int_equal(dir_list(root, &names, &n, &e), 0);
    for (size_t i = 0; i < n && i < 16; i++) {
        char *object = xasprintf("%s/%s/module.o", root, names[i]);

        if ((was[i] = size_of(object)) > 0)
            assert_int_equal(truncate(object, was[i] + 1), 0);
        free(object);
    }
    free(built(cache, "after a change", false));
    for (size_t i = 0; i < n && i < 16; i++) {
        char *object = xasprintf("%s/%s/module.o", root, names[i]);

        found += was[i] > 0 && size_of(object) == was[i];
        free(object);
    }
    assert_true(found > 0);
    names_free(names, n);
    free(root), free(cache);
}

/* Nobody's program is to blame for what became of our own headers and objects. */
static void damaged_headers_are_made_again(void **state)
{
    struct build_result r = {0};
    struct err e = ERR_INIT;
    char *cache = path_join(dir, "headers");

    (void)state;
    log_set_level(LOG_ERROR);
    assert_int_equal(build("sim", NULL, cache, "before", &r, &e), 0);
    build_result_free(&r);
    assert_true(damage_prefixes() > 0);
    assert_int_equal(build("sim", NULL, cache, "after", &r, &e), 0);
    if (!r.ok)
        fail_msg("%s", r.error);
    build_result_free(&r);
    free(cache);
}

/* How often a source is compiled that cannot be. */
static long tries_of(const char *cache, const char *mark)
{
    char *bad = path_join(odd, "bin/g++"), *tries = path_join(odd, "bin/g++.tries");
    struct build_result r = {0};
    struct err e = ERR_INIT;
    struct stat st = {0};

    put(bad, "#!/bin/sh\ncase \" $* \" in *' -c cuda.cu '*|*' -c joined.cu '*|*' -c main.cpp '*)\n"
             "printf x >>\"$0.tries\"; exit 1;; esac\nexec g++ \"$@\"\n");
    assert_int_equal(build("sim", NULL, cache, mark, &r, &e), 0);
    assert_false(r.ok);
    build_result_free(&r);
    put(bad, compiler);
    assert_int_equal(stat(tries, &st), 0);
    unlink(tries);
    free(bad), free(tries);
    return (long)st.st_size;
}

/* A folder of headers that another process was killed at is not one that this process compiled with. */
static void half_made_headers_are_nobodys(void **state)
{
    char *cache = path_join(dir, "half"), *root = path_join(odd, "prefix"), **names, *half = NULL;
    struct err e = ERR_INIT;
    long beside;
    size_t n;

    (void)state;
    assert_int_equal(dir_list(root, &names, &n, &e), 0);
    for (size_t i = 0; i < n && !half; i++)
        if (strstr(names[i], "-host"))
            half = xasprintf("%s/%.*s-half", root, (int)(strrchr(names[i], '-') - names[i]), names[i]);
    assert_non_null(half);
    assert_int_equal(dir_make(half, &e), 0);
    beside = tries_of(cache, "beside");
    dir_remove(half, NULL);
    assert_int_equal(beside, tries_of(cache, "alone"));
    names_free(names, n);
    free(cache), free(root), free(half);
}

/* Fills the disk of a folder but for so many bytes. */
static void fill(const char *folder, size_t but)
{
    char *path = path_join(folder, "fill"), block[4096] = {0};
    FILE *f = fopen(path, "w");
    off_t n = 0;

    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    while (fwrite(block, 1, sizeof block, f) == sizeof block)
        n += (off_t)sizeof block;
    fclose(f);
    assert_int_equal(truncate(path, n - (off_t)but), 0);
    free(path);
}

/* A disk that fills up while a compiler runs is no fault of the program, and nothing of it is kept. */
static void a_full_disk_is_the_machines(void **state)
{
    char *disk = path_join(dir, "disk"), *cache = path_join(disk, "cache"), *full = path_join(disk, "fill"), *bad;
    struct build_result r = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(dir_make(disk, &e), 0);
    if (mount("none", disk, "tmpfs", 0, "size=32m") < 0) {
        print_message("no tmpfs can be mounted here: %s\n", strerror(errno));
        free(disk), free(cache), free(full);
        skip();
    }
    assert_int_equal(dir_make(cache, &e), 0);
    bad = path_join(odd, "bin/g++");
    put(bad, "#!/bin/sh\ncase \" $* \" in *' -c cuda.cu '*|*' -c joined.cu '*|*' -c main.cpp '*)\n"
             "head -c 30m /dev/zero >part1.o || { rm -f part1.o; exit 1; };; esac\nexec g++ \"$@\"\n");
    fill(disk, 100 << 10);
    int rc = build("sim", NULL, cache, "full", &r, &e);
    unlink(full);
    put(bad, compiler);
    int again = rc < 0 ? build("sim", NULL, cache, "full", &r, &(struct err)ERR_INIT) : -1;
    bool good = again == 0 && r.ok && !r.cached;
    umount2(disk, MNT_DETACH);
    assert_int_equal(rc, -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "disk"));
    assert_true(good);
    build_result_free(&r);
    free(disk), free(cache), free(full), free(bad);
}

/* A verdict that is known costs little more than these processes: the compiler's version and its folders. */
static void a_toolchain_is_told_by_two_answers(void **state)
{
    static const char asked[] = "#!/bin/sh\necho \"$*\" >>\"$0.asked\"\nexec g++ \"$@\"\n";
    char *path = path_join(dir, "asked"), *log = path_join(dir, "asked.asked"), *id;
    struct build_opts o = {.target = "sim", .compiler = path};
    struct err e = ERR_INIT;
    struct buf b;
    int lines = 0;

    (void)state;
    put(path, asked);
    if (!(id = build_toolchain_id(&o, &e)))
        fail_msg("%s", e.msg);
    buf_init(&b, 1 << 16);
    assert_int_equal(file_read(log, &b, &e), 0);
    for (const char *c = b.p; *c; c++)
        lines += *c == '\n';
    if (lines != 2)
        fail_msg("%s", b.p);
    buf_free(&b);
    free(path), free(log), free(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_builds_where_names_are_odd),
        cmocka_unit_test(cuda_builds_where_names_are_odd),
        cmocka_unit_test(musa_builds_where_names_are_odd),
        cmocka_unit_test(damaged_builds_are_made_again),
        cmocka_unit_test(swapped_builds_are_made_again),
        cmocka_unit_test(changed_objects_are_made_again),
        cmocka_unit_test(damaged_headers_are_made_again),
        cmocka_unit_test(half_made_headers_are_nobodys),
        cmocka_unit_test(a_full_disk_is_the_machines),
        cmocka_unit_test(a_toolchain_is_told_by_two_answers),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
