/* cmd_schema.c - 'musacoder schema': the JSON Schema of a record or file that this program reads or writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"

static const struct opt rows[] = {{0}};

struct schema_names {
    char **v;
    size_t n;
};

static const char *schema_name(const void *ctx, int i)
{
    const struct schema_names *names = ctx;

    return (size_t)i < names->n ? names->v[i] : NULL;
}

/* The schemas that are there, without ".json". */
static int schema_names_read(struct schema_names *ret, struct err *e)
{
    char *folder = path_share("docs/schema");
    int rc = dir_list(folder, &ret->v, &ret->n, e);

    for (size_t i = 0; rc == 0 && i < ret->n; i++)
        ret->v[i][strcspn(ret->v[i], ".")] = 0;
    free(folder);
    return rc;
}

/* Prints the schemas' names and titles. */
static int schema_list(const struct schema_names *names, struct err *e)
{
    for (size_t i = 0; i < names->n; i++) {
        char path[128], *file;
        json_t *v;

        snprintf(path, sizeof path, "docs/schema/%.100s.json", names->v[i]);
        file = path_share(path);
        v = json_read(file, e);
        free(file);
        if (!v)
            return -1;
        printf("%-10s %s\n", names->v[i], json_str(v, "title", ""));
        json_decref(v);
    }
    return EXIT_OK;
}

/* Prints a schema. ERR_INPUT names the nearest one. */
static int schema_print(const struct schema_names *names, const char *name, struct err *e)
{
    const char *near = nearest_word(name, schema_name, names);
    char path[128], *file;
    struct buf text;
    int rc;

    if (!near || strcmp(near, name))
        return err_set(e, ERR_INPUT, "no schema '%.60s'; %s%s%s", name, near ? "did you mean '" : "",
                       near ? near : "'musacoder schema' lists them", near ? "'?" : "");
    snprintf(path, sizeof path, "docs/schema/%.100s.json", name);
    file = path_share(path);
    buf_init(&text, BUF_MAX_TEXT);
    rc = file_read(file, &text, e);
    if (rc == 0)
        fputs(text.p, stdout);
    buf_free(&text);
    free(file);
    return rc;
}

/* The command: prints one schema, or the list of them; an exit code, or -1 with e. */
static int schema_run(const struct opts *o, struct err *e)
{
    struct schema_names names = {0};
    int rc = schema_names_read(&names, e);

    if (rc == 0)
        rc = o->n_args ? schema_print(&names, o->args[0], e) : schema_list(&names, e);
    names_free(names.v, names.n);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_schema = {
    "schema", "print the JSON Schema of a record or file", "[NAME]",
    "Prints the JSON Schema (2020-12) of a record or file that this program reads or writes; without a name it lists "
    "them.\n"
    "For example: musacoder schema verdict >verdict.json\n",
    rows, schema_run, 1};
