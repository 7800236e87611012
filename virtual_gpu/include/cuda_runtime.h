// The CUDA runtime API of the virtual GPUs. Programs include it by CUDA's own name; only the virtual build
// searches this folder. What is not declared here is not supported: using it is a compile error.
#pragma once

#include "cuda_runtime_api.h"
#include "vgpu/atomics.h"
#include "vgpu/kernel.h"
#include "vgpu/launch.h"
#include "vgpu/math.h"
#include "vgpu/symbols.h"
#include "vgpu/unsupported.h"
#include "vgpu/warp.h"

/// @cond
// Macros with which programs detect nvcc, and headers of CUDA's samples detect this header.
#define __CUDACC__
#define __NVCC__
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__
/// @endcond
