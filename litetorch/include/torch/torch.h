/* torch/torch.h as candidates include it. */
#pragma once
#include <torch/extension.h>
