// What streams have written to words of memory (cuStreamWriteValue32).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "engine/streams/operation.hpp"

namespace vgpu {

/// The latest writes of each word: a wait is ordered after the first write that satisfies it, not after later
/// ones.
class Signals {
 public:
  void written(const std::uint32_t* word, std::uint32_t value, const Token& token) {
    std::deque<Write>& writes = words_[word];
    writes.push_back({value, token});
    if (writes.size() > kRemembered) writes.pop_front();
  }
  /// The first remembered write that `satisfies`; nullptr if something else wrote the current value.
  template <class Predicate>
  const Token* first(const std::uint32_t* word, std::uint32_t now, Predicate satisfies) const {
    const auto found = words_.find(word);
    if (found == words_.end() || found->second.back().value != now) return nullptr;
    const Write* first = nullptr;
    for (auto write = found->second.rbegin(); write != found->second.rend() && satisfies(write->value);
         ++write)
      first = &*write;
    return first == nullptr ? nullptr : &first->token;
  }
  /// Memory was freed: forgets its words.
  void forget(const void* begin, std::size_t bytes) {
    const auto* first = static_cast<const std::uint32_t*>(begin);
    const auto* last = reinterpret_cast<const std::uint32_t*>(static_cast<const std::byte*>(begin) + bytes);
    words_.erase(words_.lower_bound(first), words_.lower_bound(last));
  }

 private:
  struct Write {
    std::uint32_t value;
    Token token;
  };
  static constexpr std::size_t kRemembered = 64;
  std::map<const std::uint32_t*, std::deque<Write>> words_;
};

}  // namespace vgpu
