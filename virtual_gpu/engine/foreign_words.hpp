// Words that one GPU writes into another one's memory. Who reads such a word with a scope below system need
// not see the write; no tool reports that, since with any scope it is an atomic access.
#pragma once

#include <unordered_map>

#include "engine/memory.hpp"
#include "vgpu/control.hpp"

namespace vgpu {

class ForeignWords {
 public:
  /// A kernel or an operation of that GPU has written the word.
  void wrote(Memory& memory, const void* word, int device) {
    const Allocation* allocation = memory.find(word);
    if (allocation == nullptr || allocation->kind != MemoryKind::kDevice) return;
    if (allocation->device != device) {
      writers_[word] = device;
    } else if (!writers_.empty()) {
      writers_.erase(word);
    }
  }
  /// The GPU that wrote the word last, if the word is not in its own memory; kHost: none.
  int writer(const void* word) const {
    if (writers_.empty()) return kHost;
    const auto found = writers_.find(word);
    return found == writers_.end() ? kHost : found->second;
  }

 private:
  std::unordered_map<const void*, int> writers_;  // by word
};

}  // namespace vgpu
