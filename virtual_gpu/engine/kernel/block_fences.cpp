// What fences, and the scopes of atomic accesses, order (race build only). As C++ has it: what a thread had
// done at its fence comes before what another one does who reads a word that the first one wrote after the
// fence, atomically: after that read if it acquires, else after that one's next fence. Fences of a GPU order
// nothing between two of them.
#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/kernel/block.hpp"
#include "engine/machine_state.hpp"
#include "vgpu/atomics.h"

namespace vgpu {

/// Where threads of this block meet by that word alone: others see no shared memory. For all words of global
/// memory it is one point.
const void* Block::point_in_block(const void* word) const {
  return shared_.offset_of(word, 1) ? word : &fence_point_;
}

/// Where threads of this GPU meet by that word alone: one of 4,096 points, by a multiplicative hash. Two
/// words that share a point would hide a race.
const void* Block::point_in_gpu(const void* word) const {
  static std::array<std::array<char, 4096>, 16> points;
  auto& of_gpu = points[static_cast<std::size_t>(launch_.stream->device()) % points.size()];
  return &of_gpu[reinterpret_cast<std::uintptr_t>(word) * 0x9e3779b97f4a7c15u >> 52];
}

// What threads have done before their fences comes before what one of them writes after a barrier that all of
// them have passed: fences are cumulative.
void Block::give_fences(const OrderPoint& point) {
  const Thread& me = *current_;
  if (me.notes == nullptr) return;
  for (const Fence fence : kFences) {
    if (me.notes->fenced[fence])
      launch_.contexts().give(fence, linear_index_, number_of(me), &point.fences[fence]);
  }
}
void Block::take_fences(const OrderPoint& point) {
  for (const Fence fence : kFences) {
    if (!has_fences_[fence]) continue;
    launch_.contexts().take(fence, linear_index_, number_of(*current_), &point.fences[fence]);
    notes_of(*current_).fenced[fence] = true;
  }
}

void Block::note_atomic(const void* word, int accesses, int order, int scope, const void* caller) {
  Thread& me = *current_;
  me.spins_on = nullptr;
  const hb::Context context = context_of(me);
  const bool writes = (accesses & kWrites) != 0, reads = (accesses & kReads) != 0;
  const void* const in_block = point_in_block(word);
  const bool global = in_block != word;
  if (global) {
    const Stream& stream = *launch_.stream;
    machine_state_.atomic_scopes().access(word, {stream.device(), &stream, linear_index_, scope}, writes,
                                          context, launch_.site, caller);
  }
  if (writes && releases(order)) {
    if (global) {  // ThreadSanitizer does the rest
      hb::release(context, in_block);
      hb::release(context, point_in_gpu(word));
    }
  } else if (writes) {
    StreamContexts& contexts = launch_.contexts();
    const auto give = [&](Fence fence, const void* point) {
      if (me.notes != nullptr && me.notes->fenced[fence])
        contexts.give(fence, linear_index_, number_of(me), point);
    };
    if (global) {
      give(kFenceOfSystem, word);
      for (const Fence fence : {kFenceOfSystem, kFenceOfGpu}) give(fence, point_in_gpu(word));
    }
    for (const Fence fence : kFences) give(fence, in_block);
  }
  if (reads && !acquires(order)) {
    remember(me, word);
    if (writes && global) notes_of(me).ticket = word;
  } else if (reads && global) {
    hb::acquire(context, point_in_gpu(word));
    if (has_fences_[kFenceOfBlock]) hb::acquire(context, in_block);
  }
}

void Block::remember(Thread& me, const void* word) {
  constexpr std::ptrdiff_t kRecent = 4;  // a wait looks at the same ones again and again
  std::vector<const void*>& seen = notes_of(me).seen;
  const auto recent = seen.end() - std::min(std::ssize(seen), kRecent);
  if (std::find(recent, seen.end(), word) != seen.end()) return;
  if (seen.size() == seen.capacity()) {
    const RuntimeTurn turn(*this, me);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    seen.reserve(std::max<std::size_t>(8, 2 * seen.size()));
  }
  seen.push_back(word);
}

void Block::note_fence(int scope) {
  if (scope > kBlockScope) return;
  Thread& me = *current_;
  me.spins_on = nullptr;
  const Fence fence = scope == kSystemScope   ? kFenceOfSystem
                      : scope == kDeviceScope ? kFenceOfGpu
                                              : kFenceOfBlock;
  ThreadNotes& notes = notes_of(me);
  for (const void* word : notes.seen) {
    if (fence != kFenceOfBlock) hb::acquire(context_of(me), point_in_gpu(word));
    hb::acquire(context_of(me), point_in_block(word));
  }
  if (fence == kFenceOfSystem) {
    for (const auto* words : {&notes.seen, &notes.seen_before_gpu_fence})
      for (const void* word : *words) hb::acquire(context_of(me), word);
  }
  if (fence != kFenceOfBlock) {
    constexpr std::ptrdiff_t kKept = 16;
    if (fence == kFenceOfSystem) {
      notes.seen_before_gpu_fence.clear();
    } else if (!notes.seen.empty()) {
      notes.seen_before_gpu_fence.assign(notes.seen.end() - std::min(std::ssize(notes.seen), kKept),
                                         notes.seen.end());
    }
    notes.seen.clear();
    notes.ticket = nullptr;
  }
  has_fences_[fence] = true;
  notes.fenced[fence] = true;
  launch_.contexts().hold(fence, linear_index_, number_of(me));
}

void Block::access_volatile(const void* memory, std::size_t bytes, bool write, const void* caller) {
  Thread& me = *current_;
  // ThreadSanitizer knows of the load already, and would forget where it was after some 100,000 more.
  if (!write && me.spins_on == memory && me.spins_at == caller) return;
  const bool fenced = me.notes != nullptr && std::ranges::count(me.notes->fenced, true) != 0;
  const bool flag = bytes > 1 && bytes <= 8 && (!write || fenced);
  if (const RuntimeTurn turn(*this, me); !shared_.offset_of(memory, 1)) {
    WordWriters& writers = machine_state_.word_writers();
    writers.is_volatile(memory);
    const AtomicCall call{write ? "volatile store" : "volatile load", __ATOMIC_RELAXED, {}, caller};
    if (flag) record_atomic(memory, call, write, writers);
  }
  if (flag) {
    note_atomic(memory, write ? kWrites : kReads, __ATOMIC_RELAXED, kSystemScope, caller);
    const auto access = write ? hb::write_atomically : hb::read_atomically;
    access(context_of(me), launch_.site, memory, bytes, caller);
  } else {
    note_access(memory, bytes, write, caller);
  }
  me.spins_on = write ? nullptr : memory;
  me.spins_at = caller;
}

}  // namespace vgpu
