// For editors only: what clangd reads first (.clangd), so that it understands sources that the rewriter would
// change. clangd parses them as HIP for the host, a dialect that has <<<>>> and __global__ and needs no
// toolkit; here are the words that a toolkit would define, and a kernel may call what this folder declares.
// No build includes this file.
#pragma once

// clang 14 crashes where its CUDA dialects meet the constraints of std::pair, so it gets the pair without
// them.
#if __clang_major__ < 16
#include <compare>
#pragma push_macro("__cpp_lib_concepts")
#undef __cpp_lib_concepts
#include <utility>
#pragma pop_macro("__cpp_lib_concepts")
#endif

// Up to clang 18 a global `new` behind a preamble finds only the operator for GPUs, unless this is one for
// both. clang objects to the second declaration: .clangd leaves that out.
#include <typeinfo>
#pragma clang force_cuda_host_device begin
#include <new>
#pragma clang force_cuda_host_device end

// What kernels may call of the C library; whatever it includes comes before it, for the host.
#include <algorithm>
#include <exception>
#pragma clang force_cuda_host_device begin
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#pragma clang force_cuda_host_device end

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device)) __attribute__((host))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __noinline__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...)

#pragma clang force_cuda_host_device begin
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cuda/atomic>
#include <cuda/pipeline>
#include <cuda/ptx>

// What clang takes a launch for: one name or the other, by its version.
int hipConfigureCall(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr);
int __hipPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr);
#pragma clang force_cuda_host_device end
