// Whether the scopes of atomic accesses include each other (race build only).
//
// ThreadSanitizer sees no race between atomic accesses. CUDA does, unless each one's scope includes the
// thread of the other. So each party to a word, which is a block with one scope, has two cells of its own: it
// writes one of them atomically in each access, the other one only if it writes the word. Who has a scope
// that does not go with that party's reads the cell, as plainly as a race between the two demands:
// ThreadSanitizer reports that, if nothing orders the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "race/happens_before.hpp"

namespace vgpu {

class AtomicScopes {
 public:
  static constexpr std::uint64_t kStream = ~std::uint64_t{0};
  /// A block of a kernel that runs in that stream, or (kStream) the stream itself.
  struct Party {
    int device;
    const void* stream;
    std::uint64_t block;
    int scope;
    bool operator==(const Party&) const = default;
  };

  /// The party, in that context, is about to access the word. Shared memory is not asked for.
  void access(const void* word, const Party& by, bool writes, hb::Context context, const hb::CallSite& site,
              const void* caller = nullptr);
  /// Memory was freed: forgets its words.
  void forget(const void* begin, std::size_t bytes);
  /// The word that a cell belongs to; nullptr if there is no cell at that address.
  const void* word_of(const void* address) const;

 private:
  struct Cells {
    alignas(8) std::uint64_t accessed = 0;
    alignas(8) std::uint64_t written = 0;
  };
  struct Known {
    Party party;
    std::unique_ptr<Cells> cells;
  };
  static bool include_each_other(const Party& a, const Party& b);
  std::vector<Known>& parties_of(const void* word);
  static Cells& cells_of(std::vector<Known>& parties, const Party& party);

  std::map<const void*, std::vector<Known>> words_;
};

}  // namespace vgpu
