// The CUDA runtime API of the virtual GPUs. Programs include it by CUDA's own name; only the virtual build
// searches this folder. What is not declared here is not supported: using it is a compile error.
#pragma once

#include "cuda_runtime_api.h"
#include "vgpu/atomics.h"
#include "vgpu/kernel.h"
#include "vgpu/launch.h"
#include "vgpu/math.h"
#include "vgpu/unsupported.h"
#include "vgpu/warp.h"
