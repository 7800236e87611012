// Copies and fills as operations of a stream.
#pragma once

#include <vector>

#include "engine/runtime.hpp"

namespace vgpu {

/// Rows of bytes somewhere.
struct Region {
  std::byte* data;
  std::size_t pitch;  // bytes from one row to the next
  int device;         // kHost: host memory
};

class CopyOperation final : public Operation {
 public:
  /// Copies `height` rows of `width` bytes. With `staged`, those bytes (without pitch) are the source.
  CopyOperation(Runtime& runtime, Region destination, Region source, std::size_t width, std::size_t height,
                std::vector<std::byte> staged);
  void begin(double now) override;
  void offer(std::vector<Step>& steps) override { steps.push_back({end_, this, 0}); }
  void step(const Step& step) override;
  std::string describe() const override;
  std::string progress() const override;
  int pulls_from(int device) const override;
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<CopyOperation>(runtime_, destination_, source_, width_, height_, staged_);
  }
  Work work() const override;
  bool touches(const void* memory, std::size_t bytes) const override;

 private:
  Runtime& runtime_;
  Region destination_, source_;
  std::size_t width_, height_;
  std::vector<std::byte> staged_;
  double end_ = 0;
};

class FillOperation final : public Operation {
 public:
  FillOperation(Runtime& runtime, Region destination, int value, std::size_t bytes)
      : runtime_(runtime), destination_(destination), value_(value), bytes_(bytes) {}
  void begin(double now) override;
  void offer(std::vector<Step>& steps) override { steps.push_back({end_, this, 0}); }
  void step(const Step& step) override;
  std::string describe() const override;
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<FillOperation>(runtime_, destination_, value_, bytes_);
  }
  Work work() const override;
  bool touches(const void* memory, std::size_t bytes) const override;

 private:
  Runtime& runtime_;
  Region destination_;
  int value_;
  std::size_t bytes_;
  double end_ = 0;
};

}  // namespace vgpu
