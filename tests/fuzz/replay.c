/* replay.c - runs a fuzz target over files and folders without libFuzzer: its corpus, and each of its prefixes and
 * single-byte changes up to a budget, so that plain builds and sanitizer builds see broken inputs too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long runs;

/* An exact allocation: reading one byte too far is then visible to the sanitizer. */
static void one(const uint8_t *data, size_t n)
{
    uint8_t *p = calloc(n ? n : 1, 1);

    memcpy(p, data, n);
    LLVMFuzzerTestOneInput(p, n);
    free(p);
    runs++;
}

static void changes(uint8_t *data, size_t n)
{
    size_t step = n / 64 + 1;

    for (size_t i = 0; i < n; i += step) {
        uint8_t old = data[i];
        one(data, i);
        for (int k = 0; k < 3; k++) {
            data[i] = (uint8_t)(k == 0 ? old ^ 0x80 : k == 1 ? '"' : 0xff);
            one(data, n);
        }
        data[i] = old;
    }
}

static void file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data;
    long n;

    if (!f || fseek(f, 0, SEEK_END) < 0 || (n = ftell(f)) < 0) {
        perror(path);
        exit(1);
    }
    rewind(f);
    data = malloc((size_t)n + 1);
    if (fread(data, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    one(data, (size_t)n);
    changes(data, (size_t)n);
    free(data);
}

static void walk(const char *path)
{
    struct stat st;
    struct dirent *de;
    DIR *d;

    if (stat(path, &st) < 0) { /* every target has a corpus */
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        file(path);
        return;
    }
    d = opendir(path);
    while (d && (de = readdir(d))) {
        char sub[4096];
        if (de->d_name[0] == '.')
            continue;
        snprintf(sub, sizeof sub, "%s/%s", path, de->d_name);
        walk(sub);
    }
    if (d)
        closedir(d);
}

int main(int argc, char **argv)
{
    one((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        walk(argv[i]);
    printf("%lu inputs\n", runs);
    return 0;
}
