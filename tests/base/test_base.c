/* test_base.c - the foundations: buffers, JSON rules, UTF-8, YAML, options, RNG, files. */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <pwd.h>
#include <unistd.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/rng.h"

static void buf_keeps_its_maximum(void **state)
{
    struct buf b;

    buf_init(&b, 10);
    buf_addf(&b, "%s-%d", "abcdef", 12345);
    assert_string_equal(b.p, "abcdef-123");
    assert_true(b.cut);
    buf_clear(&b);
    buf_add(&b, "x\0y", 3);
    assert_int_equal(b.n, 3);
    assert_false(b.cut);
    buf_free(&b);
}

static void sanitised(const char *in, size_t n, const char *want)
{
    struct buf b;

    buf_init(&b, 1000);
    utf8_sanitize(&b, in, n);
    assert_string_equal(b.p, want);
    buf_free(&b);
}

static void utf8_replaces_maximal_subparts(void **state)
{
    sanitised("a\xC3\xA9z", 4, "a\xC3\xA9z");
    sanitised("\xFF", 1, "\xEF\xBF\xBD");
    sanitised("\xE2\x82", 2, "\xEF\xBF\xBD");             /* truncated: one replacement */
    sanitised("\xE2\x82" "A", 3, "\xEF\xBF\xBD" "A");
    sanitised("\xC0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"); /* overlong */
    sanitised("\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* a surrogate */
    sanitised("\xF0\x9F\x98\x80", 4, "\xF0\x9F\x98\x80");
    sanitised("\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

/* A file of others: an integer that 64 bits do not hold is a double, all else is as ever, strings above all. */
static void json_of_others_may_have_huge_integers(void **state)
{
    static const char text[] = "{\"n\": 1000000000000000019884624838656, \"m\": -100000000000000000000, \"i\": 42, "
                               "\"s\": \"\\\"1000000000000000019884624838656\", \"x\": 1.00000000000000000000000001}";
    struct err e = ERR_INIT;
    char *dir = dir_temp("json", &e), *path = path_join(dir, "a.json");
    json_t *o;

    (void)state;
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    assert_null(json_read(path, &e));
    o = json_read_foreign(path, &e);
    assert_non_null(o);
    assert_true(json_f64(o, "n", 0) == 1e30 && json_f64(o, "m", 0) == -1e20 && json_f64(o, "x", 0) == 1);
    assert_true(json_is_integer(json_object_get(o, "i")));
    assert_string_equal(json_str(o, "s", ""), "\"1000000000000000019884624838656");
    json_decref(o);
    assert_int_equal(file_write(path, "", 0, &e), 0);
    assert_null(json_read_foreign(path, &e));
    dir_remove(dir, &e);
    free(dir), free(path);
}

static void shown(const char *in, const char *want)
{
    struct buf b;

    buf_init(&b, 1000);
    utf8_show(&b, in, strlen(in));
    assert_string_equal(b.p, want);
    buf_free(&b);
}

static void no_escape_sequence_is_shown(void **state)
{
    shown("a\tb\nc \xC3\xA4", "a\tb\nc \xC3\xA4");
    shown("\x1b]0;x\x07", "\xEF\xBF\xBD]0;x\xEF\xBF\xBD");
    shown("\xC2\x9B" "2J\x7f\r", "\xEF\xBF\xBD" "2J\xEF\xBF\xBD\xEF\xBF\xBD");
    shown("\xFF\x08", "\xEF\xBF\xBD\xEF\xBF\xBD");
}

static void json_refuses_duplicates_and_keeps_non_finite(void **state)
{
    struct err e = ERR_INIT;
    json_t *v;
    char *s;

    assert_null(json_parse("{\"a\":1,\"a\":2}", 13, "x.json", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "x.json"));
    v = json_pack("[o,o,o,o]", json_num(NAN), json_num(INFINITY), json_num(-INFINITY), json_num(0.1));
    s = json_text(v);
    assert_string_equal(s, "[\"nan\",\"inf\",\"-inf\",0.10000000000000001]");
    assert_true(isnan(json_num_value(json_array_get(v, 0))));
    assert_true(json_num_value(json_array_get(v, 2)) == -INFINITY);
    free(s);
    json_decref(v);
    v = json_utf8("a\0\xFF", 3);
    assert_string_equal(json_string_value(v), "a\xEF\xBF\xBD\xEF\xBF\xBD");
    json_decref(v);
}

static json_t *yaml(const char *text, struct err *e)
{
    return yaml_parse(text, strlen(text), "r.yaml", e);
}

static int join_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    buf_addf(ctx, "%lld ", (long long)json_i64(v, "a", -1));
    return 0;
}

/* The file after a process died inside a line: what continues it reads 'first', appends a line, reads it again. */
static void continues(const char *text, const char *first, const char *again)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("torn", &e), *path = path_join(dir, "x.jsonl");
    json_t *v = json_pack("{s:i}", "a", 9);
    struct buf b;

    buf_init(&b, 1000);
    if (text)
        assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    assert_int_equal(jsonl_continue(path, join_line, &b, &e), 0);
    assert_string_equal(b.n ? b.p : "", first);
    buf_clear(&b);
    assert_int_equal(jsonl_append(path, v, &e), 0);
    assert_int_equal(jsonl_each(path, join_line, &b, &e), 0);
    assert_string_equal(b.p, again);
    json_decref(v);
    buf_free(&b);
    dir_remove(dir, NULL);
    free(dir), free(path);
}

static void a_torn_last_line_is_mended(void **state)
{
    (void)state;
    continues(NULL, "", "9 ");
    continues("", "", "9 ");
    continues("{\"a\":1}\n{\"a\":2}\n", "1 2 ", "1 2 9 ");
    continues("{\"a\":1}\n{\"a\":2", "1 ", "1 9 ");
    continues("{\"a\":1}\n{\"a\":2}", "1 2 ", "1 2 9 "); // all there but its end
    continues("{\"a", "", "9 ");
}

static void yaml_maps_onto_json(void **state)
{
    struct err e = ERR_INIT;
    json_t *v = yaml("a: 1\nb: [x, 2.5, true, null, \"7\", 1e-3]\nc:\n  d: -3\n", &e);
    char *s = json_text(v);

    assert_string_equal(s, "{\"a\":1,\"b\":[\"x\",2.5,true,null,\"7\",0.001],\"c\":{\"d\":-3}}");
    free(s);
    json_decref(v);
    assert_null(yaml("a: 1\na: 2\n", &e));
    assert_non_null(strstr(e.msg, "line 2"));
    assert_null(yaml("a: [1\n", &e));
    assert_null(yaml("", &e));
    assert_null(yaml("a: &x [*x]\n", &e)); /* a cycle ends in an error, not in a hang */
}

/* What a foreign file must not get away with: one line that names the file and says what is wrong. */
static void refused(json_t *v, struct err *e, const char *want)
{
    assert_null(v);
    assert_int_equal(e->kind, ERR_INPUT);
    if (!strstr(e->msg, want))
        fail_msg("'%s' does not say '%s'", e->msg, want);
    assert_null(strpbrk(e->msg, "\n\r\t\x1b"));
    *e = (struct err)ERR_INIT;
}

static void foreign_text_is_refused_in_one_line(void **state)
{
    static const struct {
        const char *text, *want;
    } json[] = {{"{\"a\":{\"k\":1,\"k\":2}}", "duplicate"}, {"[\"\xff\"]", "0xff"},   {"[\"\xed\xa0\x80\"]", "0xed"},
                {"[99999999999999999999]", "too big"},           {"[1e999]", "overflow"},  {"[\"a\nb\"]", "newline"},
                {"[NaN]", "f.json"},                             {"[1]\n\x1b[2J", "f.json"}, {"", "f.json"}},
      yaml_[] = {{"a: 99999999999999999999\n", "line 1: the number '99999999999999999999' is too large"},
                 {"b: 1\na: -9e999\n", "line 2: the number"},
                 {"a: &x 1\n", "anchor"},
                 {"a: !!str 1\n", "tag"},
                 {"a: 1\n---\nb: 1\n", "second document"},
                 {"a: \"\xff\"\n", "YAML"},
                 {"a: {k: 1, k: 2}\n", "given twice"}};
    struct err e = ERR_INIT;

    for (size_t i = 0; i < sizeof json / sizeof *json; i++)
        refused(json_parse(json[i].text, strlen(json[i].text), "f.json", &e), &e, json[i].want);
    for (size_t i = 0; i < sizeof yaml_ / sizeof *yaml_; i++)
        refused(yaml(yaml_[i].text, &e), &e, yaml_[i].want);
}

/* Ten lines that stand for 9^10 values: refused at once, not expanded. */
static void yaml_aliases_do_not_multiply(void **state)
{
    struct err e = ERR_INIT;
    struct buf b;

    buf_init(&b, 1 << 16);
    buf_adds(&b, "a0: &a0 [x]\n");
    for (int i = 1; i <= 10; i++) {
        buf_addf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            buf_addf(&b, "%s*a%d", k ? ", " : "", i - 1);
        buf_adds(&b, "]\n");
    }
    refused(yaml_parse(b.p, b.n, "r.yaml", &e), &e, "not supported");
    buf_free(&b);
}

static void errors_are_one_line(void **state)
{
    struct err e = ERR_INIT;

    err_set(&e, ERR_INPUT, "'%s' is odd", "a\nb\x1b[31m");
    assert_string_equal(e.msg, "'a b [31m' is odd");
    err_prefix(&e, "in '%s'", "x\ty");
    assert_string_equal(e.msg, "in 'x y': 'a b [31m' is odd");
    err_prefix(&e, "'x y'"); /* is there */
    assert_string_equal(e.msg, "in 'x y': 'a b [31m' is odd");
}

/* What was short is said with the error, kept by who adds words to it, and forgotten with the next one. */
static void errors_know_what_was_short(void **state)
{
    struct err e = ERR_INIT;

    assert_int_equal(e.lack, LACK_NONE);
    err_set(&e, ERR_ENV, "no room");
    assert_int_equal(err_lack(&e, LACK_DEVICE), -1);
    err_prefix(&e, "for 'x'");
    assert_int_equal(e.lack, LACK_DEVICE);
    err_set(&e, ERR_ENV, "out of memory"); /* words are for people */
    assert_int_equal(e.lack, LACK_NONE);
    errno = ENOMEM;
    err_sys(&e, "cannot fork");
    assert_int_equal(e.lack, LACK_HOST);
    errno = EACCES;
    err_sys(&e, "cannot fork");
    assert_int_equal(e.lack, LACK_NONE);
    assert_int_equal(err_lack(NULL, LACK_HOST), -1);
}

static const struct opt rows[] = {
    {"main", "steps", OPT_INT, "10", "number of steps"},
    {"main", "rate", OPT_REAL, NULL, "learning rate"},
    {"main", "share", OPT_REAL, "0.5", "0 to 1: of the whole"},
    {"main", "turns", OPT_INT, "1", "from 1: of a dialogue"},
    {"main", "mode", OPT_CHOICE, "fast", "fast|slow: how"},
    {"main", "quiet", OPT_BOOL, "false", "say less"},
    {"main", "cache-dir", OPT_STR, NULL, "a folder"},
    {0},
};

static void options_take_flag_over_recipe_over_environment(void **state)
{
    char *argv[] = {"--steps=7", "file", "--quiet", "--", "--rate"};
    json_t *config = json_pack("{s:i,s:f}", "steps", 5, "rate", 0.5);
    struct err e = ERR_INIT;
    struct opts o;

    setenv("MUSACODER_RATE", "0.25", 1);
    setenv("MUSACODER_CACHE_DIR", "/x", 1);
    assert_int_equal(opts_parse(rows, 5, argv, config, &o, &e), 0);
    assert_int_equal(opts_int(&o, "steps"), 7);
    assert_true(opts_real(&o, "rate") == 0.5);
    assert_true(opts_bool(&o, "quiet"));
    assert_string_equal(opts_str(&o, "cache-dir"), "/x");
    assert_int_equal(o.n_args, 2);
    assert_string_equal(o.args[1], "--rate");
    opts_free(&o);
    unsetenv("MUSACODER_RATE");
    unsetenv("MUSACODER_CACHE_DIR");
    json_decref(config);
}

static void refuses(char *flag, char *value, const char *want)
{
    char *argv[] = {flag, value};
    struct err e = ERR_INIT;
    struct opts o;

    assert_int_equal(opts_parse(rows, value ? 2 : 1, argv, NULL, &o, &e), -1);
    if (!strstr(e.msg, want))
        fail_msg("'%s' does not say '%s'", e.msg, want);
}

static void paths_are_text_or_refused(void **state)
{
    static const struct opt rows[] = {{"x", "task", OPT_STR, NULL, "a file"}, {0}};
    char *bad[] = {"--task", "t\xFF.py"}, *good[] = {"--task", "t\xC3\xA4.py"};
    struct err e = ERR_INIT;
    struct opts o;

    assert_int_equal(opts_parse(rows, 2, bad, NULL, &o, &e), -1);
    assert_non_null(strstr(e.msg, "rename"));
    assert_int_equal(opts_parse(rows, 2, good, NULL, &o, &e), 0);
    assert_string_equal(opts_str(&o, "task"), good[1]);
    opts_free(&o);
}

/* json_pack of bytes that are no text is NULL: a line "null" would be read back as about nothing. */
static void nothing_is_not_written_as_null(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("null", &e), *file = path_join(dir, "x");

    assert_int_equal(jsonl_append(file, NULL, &e), -1);
    assert_int_equal(json_write(file, NULL, &e), -1);
    assert_false(file_exists(file));
    dir_remove(dir, NULL);
    free(dir), free(file);
}

static void options_refuse_with_a_remedy(void **state)
{
    refuses("--step", "3", "did you mean 'steps'");
    refuses("--steps", NULL, "wants a value");
    refuses("--steps", "3x", "whole number");
    refuses("--rate", "nan", "wants a number");
    refuses("--share", "1.5", "wants a number 0 to 1, not 1.5");
    refuses("--share", "-0.1", "0 to 1");
    refuses("--turns", "0", "wants a number from 1, not 0");
    refuses("--mode", "fas", "fast|slow");
    refuses("-x", NULL, "unknown option");
    refuses("--quiet", "false", "say --no-quiet or --quiet=false");
    refuses("--quiet", "0", "say --no-quiet or --quiet=false");
    refuses("--quiet", "true", "say --quiet or --quiet=true");
}

static void sizes_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {{"0", 0}, {"4096", 4096}, {"10GiB", 10ull << 30}, {"1.5G", 3ull << 29}, {"500 MB", 500000000},
                {"2k", 2048},
                {"7B", 7}, {"1TiB", 1ull << 40}};
    static const char *const bad[] = {"", "x", "-1", "1e9", "nan", "inf", "0x10", "5 Gib", "5GiBs", "5 5",
                                      "99999999T", "G"};
    struct err e = ERR_INIT;
    uint64_t v;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(size_parse("cache-limit", good[i].text, &v, &e), 0);
        assert_int_equal(v, good[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (size_parse("cache-limit", bad[i], &v, &e) == 0)
            fail_msg("'%s' is taken for a size", bad[i]);
    assert_non_null(strstr(e.msg, "cache-limit"));
}

static void rng_is_uniform_and_reproducible(void **state)
{
    struct rng a, b;
    double sum = 0, sq = 0;
    int seen[7] = {0};

    rng_seed(&a, 1, 2);
    rng_seed(&b, 1, 2);
    for (int i = 0; i < 70000; i++) {
        double x = rng_normal(&a);
        sum += x;
        sq += x * x;
        assert_true(x == rng_normal(&b));
        seen[rng_below(&a, 7)]++;
        rng_below(&b, 7);
    }
    assert_true(fabs(sum / 70000) < 0.02 && fabs(sq / 70000 - 1) < 0.03);
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9500, 10500);
    rng_seed(&b, 1, 3);
    assert_true(rng_u64(&a) != rng_u64(&b));
}

static void sha256_matches_the_standard(void **state)
{
    char hex[65];

    sha256_hex("abc", 3, hex); /* FIPS 180-4, example 1 */
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* A file longer than a piece has the hash of its bytes; of one that is not there nothing is said. */
static void sha256_of_a_file(void **state)
{
    char path[] = "/tmp/sha256_XXXXXX", hex[65] = "as it was", want[65];
    size_t n = 200001;
    char *bytes = xmalloc(n);
    int fd = mkstemp(path);
    (void)state;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 + i / 255);
    assert_int_equal(write(fd, bytes, n), n);
    sha256_hex(bytes, n, want);
    assert_int_equal(sha256_file(path, hex), 0);
    assert_string_equal(hex, want);
    close(fd);
    unlink(path);
    assert_int_equal(sha256_file(path, hex), -1);
    assert_string_equal(hex, want);
    free(bytes);
}

/* What is written to path comes out of the pipe's end. */
static void comes_out(const char *path, int end)
{
    struct err e = ERR_INIT;
    char got[8] = "";

    assert_int_equal(file_write_try(path, &e), 0);
    assert_int_equal(file_write(path, "four", 4, &e), 0);
    assert_int_equal(read(end, got, sizeof got - 1), 4);
    assert_string_equal(got, "four");
}

static void pipes_and_devices_are_written_and_never_replaced(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("test-base", &e), *pipe = path_join(dir, "pipe"), *link = path_join(dir, "link"),
         *sock = path_join(dir, "sock");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int end, s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct stat st;

    (void)state;
    assert_int_equal(mkfifo(pipe, 0600) < 0 || symlink("pipe", link) < 0, 0);
    end = open(pipe, O_RDONLY | O_NONBLOCK);
    comes_out(pipe, end);
    comes_out(link, end);
    assert_true(lstat(pipe, &st) == 0 && S_ISFIFO(st.st_mode));
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    snprintf(at.sun_path, sizeof at.sun_path, "%s", sock);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(file_write(sock, "x", 1, &e), -1);
    assert_non_null(strstr(e.msg, "is a disk or a socket"));
    assert_true(lstat(sock, &st) == 0 && S_ISSOCK(st.st_mode));
    close(s), close(end);
    assert_int_equal(dir_remove(dir, &e), 0);
    free(dir), free(pipe), free(link), free(sock);
}

/* /dev/stdout of a program whose output goes to a file: what it prints itself stays, too. */
static void standard_output_is_not_replaced(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("test-base", &e), *log = path_join(dir, "log");
    struct buf b;
    int status = 1;
    pid_t pid = fork();

    (void)state;
    if (!pid) {
        if (!freopen(log, "w", stdout))
            _exit(1);
        printf("before ");
        status = file_write(log, "result ", 7, &e);
        printf("after");
        _exit(fflush(stdout) || status ? 1 : 0);
    }
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    buf_init(&b, 100);
    assert_int_equal(file_read(log, &b, &e), 0);
    assert_string_equal(b.p, "before result after");
    buf_free(&b);
    assert_int_equal(dir_remove(dir, &e), 0);
    free(dir), free(log);
}

static void files_are_replaced_whole(void **state)
{
    struct err e = ERR_INIT;
    char *dir = dir_temp("test-base", &e), *deep = path_join(dir, "a/b/c"), *file = path_join(deep, "x.txt");
    struct buf b;
    char **names;
    size_t n;

    assert_int_equal(dir_make(deep, &e), 0);
    assert_int_equal(file_write(file, "one", 3, &e), 0);
    assert_int_equal(file_write(file, "two!", 4, &e), 0);
    assert_int_equal(file_append(file, "+", 1, &e), 0);
    buf_init(&b, 100);
    assert_int_equal(file_read(file, &b, &e), 0);
    assert_string_equal(b.p, "two!+");
    assert_int_equal(dir_list(deep, &names, &n, &e), 0);
    assert_int_equal(n, 1);
    names_free(names, n);
    buf_free(&b);
    buf_init(&b, 2);
    assert_int_equal(file_read(file, &b, &e), -1); /* larger than the cap */
    assert_int_equal(file_read(deep, &b, &e), -1); /* a folder */
    assert_int_equal(file_read("/nonexistent/x", &b, &e), -1);
    buf_free(&b);
    assert_int_equal(dir_remove(dir, &e), 0);
    assert_false(file_exists(dir));
    free(dir), free(deep), free(file);
}

/* Without HOME the user's own folder counts, and not root's. */
static void test_home(void **state)
{
    static const char *const names[] = {"HOME", "MUSACODER_DATA_DIR", "XDG_DATA_HOME"};
    const struct passwd *user = getpwuid(geteuid());
    char *kept[3], *path, *want;

    (void)state;
    for (int i = 0; i < 3; i++) {
        kept[i] = getenv(names[i]) ? xstrdup(getenv(names[i])) : NULL;
        unsetenv(names[i]);
    }
    path = path_data("x");
    want = xasprintf("%s/.local/share/musacoder/x", user ? user->pw_dir : "/");
    assert_string_equal(path, want);
    for (int i = 0; i < 3; i++) {
        if (kept[i])
            setenv(names[i], kept[i], 1);
        free(kept[i]);
    }
    free(path), free(want);
}

static void processors_are_shared_by_the_load(void **state)
{
    (void)state;
    assert_true(machine_sharers(0.5, 2) == 1 && machine_sharers(2, 2) == 1 && machine_sharers(9, 0) == 1);
    assert_true(machine_sharers(6, 2) == 3);
    assert_true(machine_busy() >= 1);
}

/* As after 'taskset -c 0': what the machine has beyond it is not ours to use. */
static void processors_are_those_that_may_be_used(void **state)
{
    (void)state;
    cpu_set_t before, one;
    int first = 0;

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(machine_processors(), CPU_COUNT(&before));
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(machine_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* A terminal and timeout(1) both send the one Ctrl-C on. */
static void signals_that_come_at_once_are_one_wish(void **state)
{
    sigset_t both;
    pid_t child;
    int status;

    (void)state;
    if ((child = fork()) == 0) {
        stop_install();
        sigemptyset(&both), sigaddset(&both, SIGINT), sigaddset(&both, SIGTERM);
        sigprocmask(SIG_BLOCK, &both, NULL);
        raise(SIGINT), raise(SIGTERM);
        sigprocmask(SIG_UNBLOCK, &both, NULL);
        _exit(stop_requested() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    if ((child = fork()) == 0) {
        stop_install();
        raise(SIGINT);
        usleep(700000);
        raise(SIGINT);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_keeps_its_maximum),
        cmocka_unit_test(utf8_replaces_maximal_subparts),
        cmocka_unit_test(json_of_others_may_have_huge_integers),
        cmocka_unit_test(no_escape_sequence_is_shown),
        cmocka_unit_test(json_refuses_duplicates_and_keeps_non_finite),
        cmocka_unit_test(a_torn_last_line_is_mended),
        cmocka_unit_test(yaml_maps_onto_json),
        cmocka_unit_test(foreign_text_is_refused_in_one_line),
        cmocka_unit_test(yaml_aliases_do_not_multiply),
        cmocka_unit_test(errors_are_one_line),
        cmocka_unit_test(errors_know_what_was_short),
        cmocka_unit_test(options_take_flag_over_recipe_over_environment),
        cmocka_unit_test(options_refuse_with_a_remedy),
        cmocka_unit_test(paths_are_text_or_refused),
        cmocka_unit_test(nothing_is_not_written_as_null),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(rng_is_uniform_and_reproducible),
        cmocka_unit_test(signals_that_come_at_once_are_one_wish),
        cmocka_unit_test(sha256_matches_the_standard),
        cmocka_unit_test(sha256_of_a_file),
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(pipes_and_devices_are_written_and_never_replaced),
        cmocka_unit_test(standard_output_is_not_replaced),
        cmocka_unit_test(test_home),
        cmocka_unit_test(processors_are_shared_by_the_load), cmocka_unit_test(processors_are_those_that_may_be_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
