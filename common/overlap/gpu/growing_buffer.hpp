// Memory for results whose size depends on the data.
#pragma once

#include <cstddef>

#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Device memory that is reallocated when a larger size than ever before is requested. Other requests cost
/// nothing.
template <typename T>
class GrowingBuffer {
 public:
  explicit GrowingBuffer(Rank& rank) : rank_(rank), buffer_(rank.device(), 0) {}

  /// Room for that many elements. If it has to grow, this waits for `stream`, the only one that may still use
  /// the old memory, whose contents are lost. Throws CudaError if the GPU has no such memory; the old memory
  /// is gone then, too.
  T* at_least(std::size_t elements, cudaStream_t stream) {
    if (elements > buffer_.size()) {
      rank_.synchronize(stream);
      buffer_ = DeviceBuffer<T>(rank_.device(), 0);  // first: old and new memory never coexist
      buffer_ = DeviceBuffer<T>(rank_.device(), elements);
    }
    return buffer_.data();
  }

  T* data() const { return buffer_.data(); }             ///< null before the first at_least()
  std::size_t size() const { return buffer_.size(); }    ///< elements there is room for
  std::size_t bytes() const { return buffer_.bytes(); }  ///< of that room

 private:
  Rank& rank_;
  DeviceBuffer<T> buffer_;
};

/// The same in page-locked host memory.
template <typename T>
class GrowingPinnedBuffer {
 public:
  /// Room for that many elements. Nobody may still use the old memory, whose contents are lost if it has to
  /// grow: neither a stream nor another rank. Throws std::bad_alloc; the old memory is gone then, too.
  T* at_least(std::size_t elements) {
    if (elements > buffer_.size()) {
      buffer_ = PinnedBuffer<T>(0);  // first: old and new memory never coexist
      buffer_ = PinnedBuffer<T>(elements);
    }
    return buffer_.data();
  }

  T* data() { return buffer_.data(); }                 ///< null before the first at_least()
  std::size_t size() const { return buffer_.size(); }  ///< elements there is room for

 private:
  PinnedBuffer<T> buffer_{0};
};

}  // namespace overlap
