// Work of a library that occupies multiprocessors: cuBLAS's and CUB's tiles.
#pragma once

#include "engine/runtime.hpp"

namespace vgpu {

/// `blocks` equal blocks, each alone on a multiprocessor for `block_ns`; they wait for free multiprocessors
/// and so run in waves. Memory is accessed when the first block begins and when the last one ends. The launch
/// time of the library's `kernels` kernels is added.
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

  /// True if the GPU can access all of that memory; else a fault, whose sentence begins with `what`.
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
