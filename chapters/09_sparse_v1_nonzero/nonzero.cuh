// Chapter 09, version 1: for each local row, find where its number stands, as torch.nonzero does.
#pragma once

#include <cub/device/device_select.cuh>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"

namespace overlap {

/// flags[i] = 1 where global[i] is *wanted, else 0.
template <SparseIndex Index>
__global__ void mark_equal(const Index* global, std::int64_t count, const Index* wanted, char* flags) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) flags[i] = global[i] == *wanted;
}

/// places[i] = i.
inline __global__ void write_places(std::int32_t* places, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) places[i] = static_cast<std::int32_t>(i);
}

/// Version 1.
template <SparseIndex Index, Floating T>
class NonzeroAllReduce : public SparseAllReduce<Index, T> {
 public:
  using SparseAllReduce<Index, T>::SparseAllReduce;

 protected:
  void find_positions(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global,
                      std::int32_t* positions, cudaStream_t stream) override {
    const auto blocks = static_cast<unsigned>((global.count + kCoalesceThreads - 1) / kCoalesceThreads);
    const std::int32_t* numbers = number_places(global.count, stream);
    char* flags = flags_.at_least(static_cast<std::size_t>(global.count), stream);
    for (std::int64_t row = 0; row < local.count; ++row) {
      mark_equal<<<blocks, kCoalesceThreads, 0, stream>>>(global.indices, global.count, local.indices + row,
                                                          flags);
      CUDA_CHECK(cudaGetLastError());
      std::size_t bytes = 0;
      CUDA_CHECK(cub::DeviceSelect::Flagged(nullptr, bytes, numbers, flags, positions + row, found_.data(),
                                            static_cast<int>(global.count), stream));
      CUDA_CHECK(cub::DeviceSelect::Flagged(temporary_.at_least(bytes, stream), bytes, numbers, flags,
                                            positions + row, found_.data(), static_cast<int>(global.count),
                                            stream));
      CUDA_CHECK(cudaMemcpyAsync(found_on_host_.data(), found_.data(), found_.bytes(), cudaMemcpyDeviceToHost,
                                 stream));
      this->wait(stream);
    }
  }

 private:
  /// 0, 1, 2, ...: what the selection picks from.
  const std::int32_t* number_places(std::int64_t count, cudaStream_t stream) {
    std::int32_t* numbers = numbers_.at_least(static_cast<std::size_t>(count), stream);
    const auto blocks = static_cast<unsigned>((count + kCoalesceThreads - 1) / kCoalesceThreads);
    write_places<<<blocks, kCoalesceThreads, 0, stream>>>(numbers, count);
    CUDA_CHECK(cudaGetLastError());
    return numbers;
  }

  GrowingBuffer<std::int32_t> numbers_{this->rank()};
  GrowingBuffer<char> flags_{this->rank()};
  GrowingBuffer<std::byte> temporary_{this->rank()};
  DeviceBuffer<std::int32_t> found_{this->rank().device(), 1};
  PinnedBuffer<std::int32_t> found_on_host_{1};
};

}  // namespace overlap
