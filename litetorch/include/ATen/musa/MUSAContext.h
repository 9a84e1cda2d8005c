/* MUSAContext.h under ATen, as some of the vendor's ports include it. */
#pragma once
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
