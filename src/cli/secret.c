/* secret.c - see secret.h. */
#include "cli/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#define SECRET_MAX 64
#define FINGERPRINT "sha256:"

/* The variable may hold any word, for the test runner's fixed draws; an option or a file that is mistyped must not. */
static int secret_check(const char *s, size_t n, const char *what, struct err *e)
{
    static const char word[] = "0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-_";
    const char *env = getenv("MUSACODER_SECRET");
    int letters = env && !strcmp(env, what) ? (int)strlen(word) : 22;
    char allowed[sizeof word];

    snprintf(allowed, sizeof allowed, "%.*s", letters, word);
    if (n == 0 || n > SECRET_MAX || strspn(s, allowed) < n)
        return err_set(e, ERR_INPUT, "'secret': '%.80s' is no file and no text of 1 to %d hexadecimal digits; "
                                     "'openssl rand -hex 32 > FILE' makes one", what, SECRET_MAX);
    return 0;
}

/* 1 to 64 letters, digits, '-' or '_' from the text itself or from the file that it names. ret: 65 bytes. ERR_INPUT
 * otherwise. */
static int secret_read(const char *text, char *ret, struct err *e)
{
    struct buf b;
    size_t n;
    int rc = 0;

    buf_init(&b, 4096);
    if (file_exists(text) && !file_is_dir(text))
        rc = file_read(text, &b, e);
    else
        buf_adds(&b, text);
    n = strcspn(b.p, " \t\r\n");
    if (rc == 0)
        rc = secret_check(b.p, n, text, e);
    if (rc == 0)
        snprintf(ret, SECRET_MAX + 1, "%.*s", (int)n, b.p);
    buf_free(&b);
    return rc;
}

static bool secret_hidden(const char *text)
{
    return !text || !strncmp(text, FINGERPRINT, strlen(FINGERPRINT));
}

/* Replaces the secret among values by its fingerprint. */
static void secret_do_hide(json_t *values, const char *secret)
{
    char hex[65], shown[32];

    sha256_hex(secret, strlen(secret), hex);
    snprintf(shown, sizeof shown, FINGERPRINT "%.16s", hex);
    json_object_set_new(values, "secret", json_string(shown));
}

int secret_hide(json_t *values, struct err *e)
{
    char secret[SECRET_MAX + 1];
    const char *text = json_str(values, "secret", NULL);

    if (secret_hidden(text))
        return 0;
    if (secret_read(text, secret, e) < 0)
        return -1;
    secret_do_hide(values, secret);
    return 0;
}

int secret_use(const struct opts *o, struct err *e)
{
    char secret[SECRET_MAX + 1];
    const char *text = opts_str(o, "secret"), *env = getenv("MUSACODER_SECRET");

    if (secret_hidden(text))
        return 0;
    if (secret_read(text, secret, e) < 0)
        return -1;
    /* The judge wipes the environment's own copy; a second one would stay behind in the first one's place. */
    if (!env || strcmp(env, secret))
        setenv("MUSACODER_SECRET", secret, 1);
    secret_do_hide(o->values, secret);
    return 0;
}
