// Work of a library that occupies multiprocessors: cuBLAS's and CUB's tiles.
#pragma once

#include "engine/runtime.hpp"

namespace vgpu {

/// `blocks` equal blocks, each of which has a multiprocessor for itself for `block_ns`. They wait while
/// kernels and other such work occupy the multiprocessors, and so run in waves. What the work does to memory
/// happens when the first block begins and when the last one ends. Real libraries may start `kernels`
/// kernels, one after the other: the time to start them is added.
class LibraryWork : public Operation {
 public:
  LibraryWork(Runtime& runtime, Device& device, std::uint64_t blocks, double block_ns, int kernels = 1);
  void begin(double now) final;
  void offer(std::vector<Step>& steps) final;
  void step(const Step& step) final;
  std::string progress() const final;

 protected:
  /// Both return false if the work cannot go on, after telling the runtime why (Runtime::fault).
  virtual bool first_block_begins() = 0;
  virtual bool last_block_ends() = 0;

  /// True if the GPU can access all of that memory; else that is a fault. `what` begins the sentence on it:
  /// "matrix A".
  bool can_access(const std::string& what, const void* memory, std::size_t bytes);

  Runtime& runtime_;
  Device& device_;

 private:
  Footprint footprint_;
  std::uint64_t blocks_, started_ = 0;
  double block_ns_;
  int kernels_;
  double start_ = 0, end_ = 0;

  Multiprocessors::Place place_{};  // for the next block
  bool has_place_ = false;
  std::uint64_t place_version_ = ~std::uint64_t{0};
};

}  // namespace vgpu
