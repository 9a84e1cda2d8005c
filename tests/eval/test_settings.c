/* test_settings.c - every variable that a verdict depends on changes what its keys are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/server/settings.h"

static void digest(enum settings_of what, char ret[65])
{
    struct sha256 h;

    sha256_start(&h);
    settings_add(&h, what);
    sha256_end(&h, ret);
}

/* Sets the variable to two values; does the digest tell them, and the absent one, apart? */
static bool tells(const char *name, enum settings_of what)
{
    char none[65], one[65], two[65];
    bool told;

    unsetenv(name);
    digest(what, none);
    setenv(name, "1", 1);
    digest(what, one);
    setenv(name, "2", 1);
    digest(what, two);
    unsetenv(name);
    told = strcmp(none, one) && strcmp(one, two) && strcmp(none, two);
    if (!told)
        assert_true(!strcmp(none, one) && !strcmp(one, two));
    return told;
}

static const char *const answers[] = {"SIMT_PROFILE", "SIMT_THREADS", "MUSACODER_VALUES", "MUSACODER_TEST_REFERENCE",
                                      "MUSACODER_CUDA_ARCH", "MUSACODER_CUDA_WHOLE", "CUDA_LAUNCH_BLOCKING", "MUSA_X",
                                      "NVIDIA_TF32_OVERRIDE", "LD_PRELOAD", "PYTHONPATH", "CPATH"};
static const char *const processes[] = {"MUSACODER_LIB_DIR", "MUSACODER_LIBMUSA", "MUSACODER_TRACE", "MUSACODER_CXX",
                                        "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "MUSACODER_DATA_DIR", "MUSACODER_SHARE"};
static const char *const others[] = {"TERM", "MUSACODER_CACHE_DIR", "MUSACODER_SECRET", "SIMTX", "OLDPWD"};

static void each_setting_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (!tells(answers[i], SETTINGS_ANSWER) || !tells(answers[i], SETTINGS_PROCESS))
            fail_msg("%s does not count", answers[i]);
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        if (tells(processes[i], SETTINGS_ANSWER) || !tells(processes[i], SETTINGS_PROCESS))
            fail_msg("%s is not one of the process alone", processes[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tells(others[i], SETTINGS_PROCESS))
            fail_msg("%s counts", others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_setting_counts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
