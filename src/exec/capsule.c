/* capsule.c - see capsule.h: the file. */
#include "exec/capsule.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "exec/exec_element.h"

#define MAGIC "MCCAPS2\n"
#define MAGIC_1 "MCCAPS1\n" /* without a checksum */
#define N_MAGIC 8
#define N_SUM 64
#define MOST ((size_t)8 << 30)

/* ---- writing ---- */

void capsule_init(struct capsule *c, const char *backend, const char *task, const char *device, uint64_t memory)
{
    c->head = json_pack("{s:s,s:s,s:s,s:s,s:I,s:[],s:[],s:[]}", "schema", "musacoder.capsule/1", "task", task,
                        "backend", backend, "device", device, "memory", (json_int_t)memory, "images", "values",
                        "outputs");
    buf_init(&c->data, MOST);
}

void capsule_free(struct capsule *c)
{
    json_decref(c->head);
    buf_free(&c->data);
}

/* Appends bytes to the capsule; their place and hash as JSON. New. */
static json_t *capsule_part(struct capsule *c, const void *p, size_t n)
{
    size_t at = c->data.n;
    char hash[65];

    sha256_hex(p, n, hash);
    buf_add(&c->data, p, n);
    return json_pack("{s:I,s:I,s:s}", "offset", (json_int_t)at, "bytes", (json_int_t)n, "sha256", hash);
}

void capsule_add_log(struct capsule *c, const struct exec_log *log)
{
    json_t *p = capsule_part(c, log->p, log->n);

    json_object_set_new(p, "launches", json_integer((json_int_t)log->counts.launches));
    json_object_set_new(p, "kernels", json_integer((json_int_t)log->counts.kernels));
    json_object_set_new(c->head, "log", p);
}

void capsule_add_image(struct capsule *c, const void *image, size_t n)
{
    json_array_append_new(json_object_get(c->head, "images"), capsule_part(c, image, n));
}

void capsule_add_value(struct capsule *c, const void *data, uint64_t n)
{
    json_t *values = json_object_get(c->head, "values"), *v;
    char hash[65];
    size_t i;

    sha256_hex(data, n, hash);
    json_array_foreach(values, i, v)
        if (!strcmp(json_str(v, "sha256", ""), hash)) {
            json_array_append(values, v);
            return;
        }
    json_array_append_new(values, capsule_part(c, data, n));
}

/* New array of n integers. */
static json_t *capsule_list(const int64_t *v, uint32_t n)
{
    json_t *a = json_array();

    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i]));
    return a;
}

void capsule_add_output(struct capsule *c, const struct capsule_output *o, const void *want)
{
    uint64_t n = px_count(o->dims, o->size) * (uint64_t)px_bytes(o->dtype);
    json_t *p = capsule_part(c, want, n);

    json_object_set_new(p, "name", json_string(o->name));
    json_object_set_new(p, "addr", json_integer((json_int_t)o->addr));
    json_object_set_new(p, "dtype", json_integer(o->dtype));
    json_object_set_new(p, "size", capsule_list(o->size, o->dims));
    json_object_set_new(p, "stride", capsule_list(o->stride, o->dims));
    json_object_set_new(p, "atol", json_real(o->atol));
    json_object_set_new(p, "rtol", json_real(o->rtol));
    json_array_append_new(json_object_get(c->head, "outputs"), p);
}

int capsule_write(const struct capsule *c, const char *path, struct err *e)
{
    char *head = json_dumps(c->head, JSON_COMPACT | JSON_REAL_PRECISION(17));
    uint64_t n = strlen(head);
    char sum[N_SUM + 1] = {0};
    struct buf b;
    int rc;

    buf_init(&b, MOST);
    buf_add(&b, MAGIC, N_MAGIC);
    buf_add(&b, sum, N_SUM);
    buf_add(&b, &n, sizeof n);
    buf_adds(&b, head);
    buf_add(&b, c->data.p, c->data.n);
    if (!b.cut) {
        sha256_hex(b.p + N_MAGIC + N_SUM, b.n - N_MAGIC - N_SUM, sum);
        memcpy(b.p + N_MAGIC, sum, N_SUM);
    }
    rc = b.cut || c->data.cut ? err_set(e, ERR_ENV, "a capsule of more than %zu GiB is not written", MOST >> 30)
                              : file_write(path, b.p, b.n, e);
    buf_free(&b);
    free(head);
    return rc;
}

/* ---- reading ---- */

/* ERR_INPUT where the file is no capsule, of an older version, or damaged. */
static int capsule_check_sum(const struct buf *b, const char *path, struct err *e)
{
    char sum[N_SUM + 1];

    if (b->n >= N_MAGIC && !memcmp(b->p, MAGIC_1, N_MAGIC))
        return err_set(e, ERR_INPUT, "'%s' is of version 1, without a checksum; write it anew: eval --capsule", path);
    if (b->n < N_MAGIC + N_SUM || memcmp(b->p, MAGIC, N_MAGIC))
        return err_set(e, ERR_INPUT, "'%s' is no capsule; 'eval --capsule FILE' writes one", path);
    sha256_hex(b->p + N_MAGIC + N_SUM, b->n - N_MAGIC - N_SUM, sum);
    if (memcmp(sum, b->p + N_MAGIC, N_SUM))
        return err_set(e, ERR_INPUT, "'%s' is damaged or cut off: its bytes have another checksum", path);
    return 0;
}

/* Checks a capsule's magic, hash and lengths and fills *ret; ERR_INPUT otherwise. */
static int capsule_take_apart(const struct buf *b, const char *path, struct capsule *ret, struct err *e)
{
    const size_t start = N_MAGIC + N_SUM;
    uint64_t n;
    json_error_t wrong;

    if (capsule_check_sum(b, path, e) < 0)
        return -1;
    if (b->n - start < sizeof n || (memcpy(&n, b->p + start, sizeof n), n > b->n - start - sizeof n))
        return err_set(e, ERR_INPUT, "'%s' is cut off", path);
    if (!(ret->head = json_loadb(b->p + start + sizeof n, n, JSON_REJECT_DUPLICATES, &wrong)))
        return err_set(e, ERR_INPUT, "'%s': its header is no JSON: %s", path, wrong.text);
    if (strcmp(json_str(ret->head, "schema", ""), "musacoder.capsule/1")) {
        json_decref(ret->head);
        return err_set(e, ERR_INPUT, "'%s' is of another version", path);
    }
    buf_init(&ret->data, MOST);
    buf_add(&ret->data, b->p + start + sizeof n + n, b->n - start - sizeof n - n);
    return 0;
}

int capsule_read(const char *path, struct capsule *ret, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, MOST);
    rc = file_read(path, &b, e);
    if (rc == 0)
        rc = capsule_take_apart(&b, path, ret, e);
    buf_free(&b);
    return rc;
}

const void *capsule_bytes(const struct capsule *c, const json_t *p, size_t *ret_n)
{
    int64_t at = json_i64(p, "offset", -1), n = json_i64(p, "bytes", -1);

    if (at < 0 || n < 0 || (uint64_t)at > c->data.n || (uint64_t)n > c->data.n - (uint64_t)at)
        return NULL;
    *ret_n = (size_t)n;
    return c->data.p + at;
}

int capsule_log(const struct capsule *c, struct exec_log *ret, struct err *e)
{
    size_t n = 0;
    const void *p = capsule_bytes(c, json_object_get(c->head, "log"), &n);

    if (!p || n > LOG_MAX || exec_log_init(ret, LOG_MAX) < 0)
        return err_set(e, ERR_INPUT, "the capsule has no log");
    memcpy(ret->p, p, n);
    ret->n = n;
    return 0;
}
