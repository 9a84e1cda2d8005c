/* cuda_pipeline_primitives.h - a part of cuda_pipeline.h that programs include by itself. */
#include "cuda_pipeline.h"
