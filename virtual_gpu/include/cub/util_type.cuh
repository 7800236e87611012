// cub::DoubleBuffer: two buffers of which a sort may use both; Current() is the one that counts.
#pragma once

namespace cub {

template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;

  DoubleBuffer() = default;
  DoubleBuffer(T* d_current, T* d_alternate) : d_buffers{d_current, d_alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

}  // namespace cub
