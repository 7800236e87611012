// Words of memory that streams write and wait for (cuStreamWriteValue32, cuStreamWaitValue32).
#pragma once

#include "engine/runtime.hpp"

namespace vgpu {

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
