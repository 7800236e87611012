// Words of memory that streams write and wait for (cuStreamWriteValue32, cuStreamWaitValue32).
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "engine/streams/operation.hpp"

namespace vgpu {

class Runtime;

/// The latest writes of each word: a wait is ordered after the first write that satisfies it, not after later
/// ones.
class Signals {
 public:
  void written(const std::uint32_t* word, std::uint32_t value, const Token& token);
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
  void forget(const void* begin, std::size_t bytes);

 private:
  struct Write {
    std::uint32_t value;
    Token token;
  };
  static constexpr std::size_t kRemembered = 64;
  std::map<const std::uint32_t*, std::deque<Write>> words_;
};

/// cuStreamWriteValue32.
class WriteValue final : public Operation {
 public:
  WriteValue(Runtime& runtime, std::uint32_t* word, std::uint32_t value)
      : runtime_(runtime), word_(word), value_(value) {}
  void begin(double now) override;
  std::string describe() const override;
  bool touches(const void* memory, std::size_t bytes) const override;

 private:
  Runtime& runtime_;
  std::uint32_t* word_;
  std::uint32_t value_;
};

/// cuStreamWaitValue32.
class WaitValue final : public Operation {
 public:
  WaitValue(Runtime& runtime, const std::uint32_t* word, std::uint32_t value, unsigned int comparison)
      : runtime_(runtime), word_(word), value_(value), comparison_(comparison) {}
  void begin(double now) override { begun_ = now; }
  void offer(std::vector<Step>& steps) override;
  void step(const Step& step) override;
  std::string describe() const override;
  std::string progress() const override;
  bool only_waits() const override { return true; }
  bool touches(const void* memory, std::size_t bytes) const override;

 private:
  bool satisfied_by(std::uint32_t seen) const;
  /// What the wait is ordered after; nullptr: a kernel or the host wrote the word.
  const Token* source() const;

  Runtime& runtime_;
  const std::uint32_t* word_;
  std::uint32_t value_;
  unsigned int comparison_;
  double begun_ = 0;
  double satisfied_ = -1;  // when the word became right, ns; -1: not yet
};

}  // namespace vgpu
