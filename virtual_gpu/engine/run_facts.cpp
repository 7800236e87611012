#include "race/run_facts.hpp"

#include <algorithm>

#include "engine/hopper/async_unit.hpp"
#include "engine/kernel/block.hpp"
#include "engine/runtime.hpp"

namespace vgpu {
namespace {

/// Those of a thread of the running block; nullptr if there are none.
const ThreadNotes* notes_of(std::uint64_t thread) {
  Block* block = current_block();
  const Thread* found = block == nullptr ? nullptr : block->thread_of(thread);
  return found == nullptr ? nullptr : found->notes;
}

}  // namespace

std::string describe_memory(const void* address) {
  Runtime* runtime = runtime_if_started();
  if (runtime == nullptr) return {};
  if (const void* word = runtime->atomic_scopes().word_of(address)) address = word;
  if (const Block* block = current_block(); block != nullptr && runtime->memory().find(address) == nullptr) {
    if (std::string shared = block->describe_shared(address); !shared.empty()) return shared;
  }
  return runtime->memory().describe(address);
}

KernelThread kernel_thread(std::uint64_t number) {
  const auto [shape, block, thread] = runtime().kernels().numbered(number);
  const auto position = [](std::uint64_t index, const dim3& size) {
    return "(" + std::to_string(index % size.x) + "," + std::to_string(index / size.x % size.y) + "," +
           std::to_string(index / size.x / size.y) + ")";
  };
  return {"block " + position(block, shape.grid) + ", thread " + position(thread, shape.block),
          block / shape.cluster, block, thread / 32};
}

std::string describe_passed_wait(std::uint64_t thread) {
  const ThreadNotes* notes = notes_of(thread);
  if (notes == nullptr || notes->passed.word == nullptr) return {};
  return AsyncUnit::of(*current_block()).barriers.describe(notes->passed);
}

std::string describe_handover(std::uint64_t writer, std::uint64_t reader) {
  const ThreadNotes* notes = notes_of(reader);
  if (notes == nullptr || notes->handover == nullptr) return {};
  const auto among = [word = notes->handover->word](const auto& words) {
    return std::ranges::count(words, word) != 0;
  };
  const bool of_gpu = !among(notes->seen), of_system = of_gpu && !among(notes->seen_before_gpu_fence);
  const Fences passed = {of_system, of_gpu, notes->fenced[kFenceOfBlock]};
  return notes->handover->describe_missing(writer, KernelRecords::same_block(writer, reader), passed);
}

bool was_volatile(const void* word) {
  Runtime* runtime = runtime_if_started();
  return runtime != nullptr && runtime->word_writers().was_volatile(word);
}

bool are_scopes(const void* address) {
  Runtime* runtime = runtime_if_started();
  return runtime != nullptr && runtime->atomic_scopes().word_of(address) != nullptr;
}

std::string describe_schedule() {
  Runtime* runtime = runtime_if_started();
  return runtime == nullptr ? "" : runtime->schedule().describe();
}

}  // namespace vgpu
