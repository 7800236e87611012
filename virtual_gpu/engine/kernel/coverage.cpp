#include "engine/kernel/coverage.hpp"

#include "engine/host/host_code.hpp"
#include "engine/kernel/block.hpp"

namespace {

// Basic blocks between two looks at the running thread. Long enough to cost nothing, short enough for spin
// loops.
constexpr std::int64_t kSlice = 100000;

// Of each thread of the operating system: a program may have some that do other work than CUDA's.
thread_local std::int64_t left_in_slice = kSlice;
thread_local std::uint64_t slices = 0;
thread_local std::uint64_t last_turn = 0;

[[gnu::noinline]] void end_slice() {
  left_in_slice = kSlice;
  ++slices;
  vgpu::Block* block = vgpu::current_block();
  if (block == nullptr) return vgpu::note_host_code();
  // Interrupt only a thread that has used up a whole slice alone: it may be waiting for somebody else.
  // Others must never be interrupted: where their slices end depends on the compiler, and so would the
  // schedule.
  if (last_turn == vgpu::turns) block->poll(block->grid().poll_ns);
  last_turn = vgpu::turns;
}

}  // namespace

namespace vgpu {

std::uint64_t basic_blocks() { return slices * kSlice + static_cast<std::uint64_t>(kSlice - left_in_slice); }

}  // namespace vgpu

extern "C" void __sanitizer_cov_trace_pc() {
  if (--left_in_slice == 0) end_slice();
}
