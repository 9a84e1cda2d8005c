#!/bin/sh
# slow_shuffles.sh - attention on the emulator with the portable tensor-core products, as cards without PTX run them
NN_TEST_SHUFFLES=1 exec "${B:-build}/tests/ops/test_dev_ops" 4 4
