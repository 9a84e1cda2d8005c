/* settings.c - see settings.h. */
#include "eval/server/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* A name, or with '*' the beginning of names; the first row that fits counts. What selects compilers, PyTorch, our
 * own files and devices is known to a verdict's key by what it selects (judge_server.h, toolchain), so it makes another
 * process and no other answer. */
static const struct {
    const char *name;
    enum settings_of what;
} settings[] = {
    {"SIMT_*", SETTINGS_ANSWER}, /* the emulated device */
    {"MUSACODER_VALUES", SETTINGS_ANSWER},
    {"MUSACODER_TEST_*", SETTINGS_ANSWER},
    {"MUSACODER_EXEC_MUBIN", SETTINGS_ANSWER},
    {"MUSACODER_CUDA_*", SETTINGS_ANSWER},
    {"CUDA_HOME", SETTINGS_PROCESS},
    {"CUDA_VISIBLE_DEVICES", SETTINGS_PROCESS},
    {"CUDA_DEVICE_ORDER", SETTINGS_PROCESS},
    {"CUDA_*", SETTINGS_ANSWER}, /* the driver reads these */
    {"NVIDIA_*", SETTINGS_ANSWER},
    {"CUBLAS_*", SETTINGS_ANSWER},
    {"MUSA_HOME", SETTINGS_PROCESS},
    {"MUSA_VISIBLE_DEVICES", SETTINGS_PROCESS},
    {"MUSA_*", SETTINGS_ANSWER},
    {"LD_PRELOAD", SETTINGS_ANSWER},
    {"LD_LIBRARY_PATH", SETTINGS_ANSWER},
    {"PYTHONPATH", SETTINGS_ANSWER},
    {"CPATH", SETTINGS_ANSWER},
    {"CPLUS_INCLUDE_PATH", SETTINGS_ANSWER},
    {"PYTHONHOME", SETTINGS_PROCESS},
    {"PATH", SETTINGS_PROCESS},
    {"HOME", SETTINGS_PROCESS},
    {"MUSACODER_PROFILE", SETTINGS_PROCESS}, /* SIMT_PROFILE is what it says */
    {"MUSACODER_TRACE", SETTINGS_PROCESS},
    {"MUSACODER_OWNER_IDLE", SETTINGS_PROCESS},
    {"MUSACODER_LIB*", SETTINGS_PROCESS},
    {"MUSACODER_CXX", SETTINGS_PROCESS},
    {"MUSACODER_NVCC", SETTINGS_PROCESS},
    {"MUSACODER_MCC", SETTINGS_PROCESS},
    {"MUSACODER_PYTHON", SETTINGS_PROCESS},
    {"MUSACODER_SHARE", SETTINGS_PROCESS},
    {"MUSACODER_DATA_DIR", SETTINGS_PROCESS},
};

static bool settings_fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);

    return pattern[n - 1] == '*' ? !strncmp(pattern, name, n - 1) : !strcmp(pattern, name);
}

/* True where the environment variable decides what 'what' stands for. */
static bool setting_counts(const char *name, enum settings_of what)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings_fits(settings[i].name, name))
            return settings[i].what <= what;
    return false;
}

/* The same for a line NAME=VALUE. */
static bool settings_line_counts(const char *line, enum settings_of what)
{
    char *name = xstrndup(line, strcspn(line, "="));
    bool counts = setting_counts(name, what);

    free(name);
    return counts;
}

static int settings_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void settings_add(struct sha256 *h, enum settings_of what)
{
    const char **lines;
    size_t n = 0, k = 0;

    while (environ[n])
        n++;
    lines = xcalloc(n + 1, sizeof *lines);
    for (size_t i = 0; i < n; i++)
        if (settings_line_counts(environ[i], what))
            lines[k++] = environ[i];
    qsort(lines, k, sizeof *lines, settings_by_text);
    for (size_t i = 0; i < k; i++)
        sha256_adds(h, lines[i]);
    free(lines);
}
