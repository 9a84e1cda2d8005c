#!/bin/sh
# slow_model_dev.sh - test_model_dev with all that the emulator allows of two more fixtures: samples, layers run again
exec "${B:-build}/tests/nn/test_model_dev" tests/nn/fixtures/model/tied tests/nn/fixtures/model/qwen2
