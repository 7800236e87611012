// Profilers see nothing of virtual GPUs: `./lab run` draws timelines.
#pragma once

#include "cuda_runtime_api.h"

inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
