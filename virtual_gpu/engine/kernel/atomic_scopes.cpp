#include "engine/kernel/atomic_scopes.hpp"

#include <algorithm>

#include "vgpu/atomics.h"

namespace vgpu {

bool AtomicScopes::include_each_other(const Party& a, const Party& b) {
  const bool one_gpu = a.device == b.device;
  if (one_gpu && a.stream == b.stream && a.block == b.block) return true;
  return std::max(a.scope, b.scope) <= (one_gpu ? kDeviceScope : kSystemScope);
}

AtomicScopes::Cells& AtomicScopes::cells_of(std::vector<Known>& parties, const Party& party) {
  const auto found = std::find_if(parties.begin(), parties.end(),
                                  [&party](const Known& known) { return known.party == party; });
  if (found != parties.end()) return *found->cells;
  const hb::RuntimeScope runtime;
  return *parties.emplace_back(Known{party, std::make_unique<Cells>()}).cells;
}

std::vector<AtomicScopes::Known>& AtomicScopes::parties_of(const void* word) {
  const auto found = words_.find(word);
  if (found != words_.end()) return found->second;
  const hb::RuntimeScope runtime;
  return words_[word];
}

void AtomicScopes::access(const void* word, const Party& by, bool writes, hb::Context context,
                          const hb::CallSite& site, const void* caller) {
  if constexpr (!hb::kEnabled) return;
  // Waits read often: a read leaves nothing behind unless it could go with no write of another block.
  const bool remembered = writes || by.scope >= kBlockScope;
  if (!remembered && !words_.contains(word)) return;
  std::vector<Known>& parties = parties_of(word);
  if (remembered) {
    const Cells& own = cells_of(parties, by);
    hb::write_atomically(context, site, &own.accessed, sizeof own.accessed, caller);
    if (writes) hb::write_atomically(context, site, &own.written, sizeof own.written, caller);
  }
  const hb::ReadsForAWrite named(writes);
  for (const Known& other : parties) {
    if (include_each_other(by, other.party)) continue;
    const std::uint64_t& cell = writes ? other.cells->accessed : other.cells->written;
    hb::read(context, site, &cell, sizeof cell, caller);
  }
}

void AtomicScopes::forget(const void* begin, std::size_t bytes) {
  words_.erase(words_.lower_bound(begin), words_.lower_bound(static_cast<const std::byte*>(begin) + bytes));
}

const void* AtomicScopes::word_of(const void* address) const {
  const auto* cell = static_cast<const std::byte*>(address);
  for (const auto& [word, parties] : words_) {
    for (const Known& known : parties) {
      const auto* cells = reinterpret_cast<const std::byte*>(known.cells.get());
      if (cell >= cells && cell < cells + sizeof(Cells)) return word;
    }
  }
  return nullptr;
}

}  // namespace vgpu
