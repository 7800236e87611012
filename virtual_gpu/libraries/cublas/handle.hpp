// What a cuBLAS handle stands for.
#pragma once

#include "cublas_v2.h"

namespace vgpu {

struct CublasHandle {
  int device;
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};

}  // namespace vgpu
