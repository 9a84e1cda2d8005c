/* slow.h - leaves out a test that takes long and says little more than those beside it: 'make test ARGS=--slow',
 * .ci/run and 'make test-all' run it. Behind cmocka.h. */
#ifndef TESTS_SLOW_H
#define TESTS_SLOW_H

#include <stdlib.h>

static inline void slow(void)
{
    if (!getenv("TEST_SLOW") || !*getenv("TEST_SLOW"))
        skip();
}

#endif
