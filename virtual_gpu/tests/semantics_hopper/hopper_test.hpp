// Shared by the scenarios of asynchronous work. They need compute capability 9.0 or later, and rely on
// promises of the PTX ISA ("mbarrier", "cp.async.bulk", "Proxies") and the Driver API ("Tensor Map Object
// Management").
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cuda/ptx>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "gpu_test.hpp"
#include "phases.cuh"

namespace semantics {

namespace ptx = cuda::ptx;
using phases::await_phase, phases::expect_bytes;

/// 0, 1, 2, ... from `first` on.
template <class T>
std::vector<T> counted(std::size_t count, T first = T{}) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Thread 0 initialises the barrier; all threads may use it afterwards.
__device__ inline void start_barrier(std::uint64_t* barrier, std::uint32_t count) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(barrier, count);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
}

/// A tensor of T, innermost dimension first, and the box of a copy. Strides in elements, of all dimensions
/// but the first.
template <class T>
struct Tensor {
  T* data;
  std::vector<cuuint64_t> sizes, strides;
  std::vector<cuuint32_t> box;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

template <class T>
constexpr CUtensorMapDataType kMapType = sizeof(T) == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                         : sizeof(T) == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                         : sizeof(T) == 4 ? CU_TENSOR_MAP_DATA_TYPE_INT32
                                                          : CU_TENSOR_MAP_DATA_TYPE_INT64;

template <class T>
CUtensorMap map_of(const Tensor<T>& tensor, CUtensorMapDataType type = kMapType<T>) {
  CUtensorMap map{};
  std::vector<cuuint64_t> bytes = tensor.strides;
  for (cuuint64_t& stride : bytes) stride *= sizeof(T);
  if (bytes.empty()) bytes.push_back(0);  // the driver rejects a null array even for one dimension
  const std::vector<cuuint32_t> ones(tensor.sizes.size(), 1);
  const CUresult result = cuTensorMapEncodeTiled(
      &map, type, static_cast<cuuint32_t>(tensor.sizes.size()), tensor.data, tensor.sizes.data(),
      bytes.data(), tensor.box.data(), ones.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

}  // namespace semantics
