// What instrumented code calls at each basic block (-fsanitize-coverage=trace-pc).
#include "engine/host/host_code.hpp"
#include "engine/kernel/block.hpp"
#include "engine/kernel/coverage.hpp"

namespace vgpu {
namespace {

[[gnu::noinline]] void end_slice() {
  left_in_slice = kSlice;
  ++slices;
  Block* block = current_block();
  if (block == nullptr) return note_host_code();
  // Interrupt only a thread that has used up a whole slice alone: it may be waiting for somebody else.
  // Others must never be interrupted: where their slices end depends on the compiler, and so would the
  // schedule.
  static thread_local std::uint64_t last_turn = 0;
  if (last_turn == turns) block->poll(block->grid().poll_ns);
  last_turn = turns;
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  if (--left_in_slice == 0) end_slice();
}

}  // namespace vgpu
