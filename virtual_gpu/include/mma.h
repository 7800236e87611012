// Tensor cores by warps: refused where they are used.
#pragma once

#include "vgpu/unsupported_libraries.h"

namespace nvcuda::wmma {

#define VGPU_NO_WMMA "wmma is not supported on virtual GPUs: use cuBLAS, or overlap/gpu/wgmma.hpp"
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static_assert(vgpu::kNever<Use>, VGPU_NO_WMMA);
};
VGPU_NO_FUNCTIONS(void, VGPU_NO_WMMA, fill_fragment, load_matrix_sync, store_matrix_sync, mma_sync)

}  // namespace nvcuda::wmma
