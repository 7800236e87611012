#include "engine/streams/signal.hpp"

#include <algorithm>

#include "cuda.h"
#include "vgpu/atomics.h"

namespace vgpu {
namespace {

bool overlaps(const std::uint32_t* word, const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(word);
  const auto other = reinterpret_cast<std::uintptr_t>(memory);
  return begin < other + bytes && other < begin + sizeof *word;
}

/// A stream accesses words at system scope.
void note_scope(Runtime& runtime, const Operation& by, const std::uint32_t* word, bool writes) {
  runtime.atomic_scopes().access(word, {by.stream->device(), by.stream, AtomicScopes::kStream, kSystemScope},
                                 writes, by.stream->contexts().own(), by.site);
}

bool still_there(Runtime& runtime, const Operation& operation, const std::uint32_t* word) {
  if (runtime.memory().find(word) != nullptr) return true;
  runtime.errors().fault(cudaErrorIllegalAddress, operation.describe() + " in " + operation.origin() +
                                                      ", ran after its memory had been freed");
  return false;
}

}  // namespace

void WriteValue::begin(double now) {
  if (!still_there(runtime_, *this, word_)) return;
  note_scope(runtime_, *this, word_, true);
  hb::store_atomic(stream->contexts().own(), site, word_, value_);
  runtime_.signals().written(word_, value_, done);
  runtime_.foreign_words().wrote(runtime_.memory(), word_, stream->device());
  finish(now);
}

std::string WriteValue::describe() const {
  return "write of " + std::to_string(value_) + " to a word " + runtime_.memory().locate(word_);
}

bool WriteValue::touches(const void* memory, std::size_t bytes) const {
  return overlaps(word_, memory, bytes);
}

bool WaitValue::satisfied_by(std::uint32_t seen) const {
  switch (comparison_) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int32_t>(seen - value_) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == value_;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & value_) != 0;
    default:
      return ~(seen | value_) != 0;
  }
}

const Token* WaitValue::source() const {
  return runtime_.signals().first(word_, __atomic_load_n(word_, __ATOMIC_RELAXED),
                                  [this](std::uint32_t value) { return satisfied_by(value); });
}

void WaitValue::offer(std::vector<Step>& steps) {
  if (!still_there(runtime_, *this, word_) || !satisfied_by(__atomic_load_n(word_, __ATOMIC_RELAXED))) return;
  if (satisfied_ < 0) {
    const Token* write = source();
    satisfied_ = write != nullptr ? (*write)->time : runtime_.schedule().now();
    // The write of a kernel has no time of its own: it is seen after the kernel's step. A word in pinned
    // memory may be the host's, which has just blocked.
    if (write == nullptr && runtime_.memory().find(word_)->kind != MemoryKind::kDevice)
      satisfied_ = std::max(satisfied_, runtime_.host().now());
  }
  steps.push_back({std::max(begun_, satisfied_ + runtime_.machine().signal_ns), this, 0});
}

void WaitValue::step(const Step& step) {
  note_scope(runtime_, *this, word_, false);
  hb::load_atomic(stream->contexts().own(), site, word_);
  const Token* write = source();
  hb::acquire(stream->contexts().own(), write != nullptr ? static_cast<const void*>(write->get()) : word_);
  finish(step.time);
}

std::string WaitValue::describe() const {
  static constexpr const char* kComparisons[] = {"is at least", "is", "has a bit of",
                                                 "lacks a bit of the complement of"};
  return std::string("wait until a word ") + kComparisons[comparison_] + " " + std::to_string(value_);
}

std::string WaitValue::progress() const {
  if (!begun) return Operation::progress();
  return "it is " + std::to_string(__atomic_load_n(word_, __ATOMIC_RELAXED)) + ", " +
         runtime_.memory().locate(word_);
}

bool WaitValue::touches(const void* memory, std::size_t bytes) const {
  return overlaps(word_, memory, bytes);
}

}  // namespace vgpu
