// The arithmetic of NCCL's reductions.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl.h"

namespace vgpu::nccl {

/// Bytes of one element; 0 for a value that is no data type.
std::size_t size_of(ncclDataType_t type);

/// Elementwise inputs[0] op inputs[1] op ..., in that order; `count` elements of each, in bytes. f16 and bf16
/// are accumulated in f32 and rounded once. (NCCL rounds in each step and starts each part at another rank;
/// exact partial results give the same.) Integers wrap around. As in NCCL, ncclAvg multiplies floating point
/// inputs by 1/n first and divides an integer sum at the end, towards 0.
std::vector<std::byte> reduce(const std::vector<const std::byte*>& inputs, std::size_t count,
                              ncclDataType_t type, ncclRedOp_t op);

}  // namespace vgpu::nccl
