// The arithmetic of NCCL's reductions.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl.h"

namespace vgpu::nccl {

/// Bytes of one element; 0 for a value that is no data type.
std::size_t size_of(ncclDataType_t type);

/// Element by element inputs[0] op inputs[1] op ..., from the first to the last; `count` elements of each, in
/// bytes. f16 and bf16 are accumulated in f32 and rounded once. (NCCL rounds after each step of its ring and
/// begins at another rank for each part; where every partial result is exact, both give the same.) Integers
/// wrap around. ncclAvg multiplies each floating point input by 1/n first, and divides an integer sum at the
/// end, towards 0, as NCCL does.
std::vector<std::byte> reduce(const std::vector<const std::byte*>& inputs, std::size_t count,
                              ncclDataType_t type, ncclRedOp_t op);

}  // namespace vgpu::nccl
