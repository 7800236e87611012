// cudaLaunchHostFunc: a function of the host as an operation of a stream.
#pragma once

#include "engine/runtime.hpp"

namespace vgpu {

/// Calls `function(data)`, which may make no CUDA calls, on a stack of the stream's.
class HostFunction final : public Operation {
 public:
  HostFunction(Runtime& runtime, void (*function)(void*), void* data)
      : runtime_(runtime), function_(function), data_(data) {}
  void begin(double now) override;
  std::string describe() const override { return "host function"; }
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<HostFunction>(runtime_, function_, data_);
  }
  Work work() const override { return {"host function", "host function"}; }

 private:
  Runtime& runtime_;
  void (*function_)(void*);
  void* data_;
};

}  // namespace vgpu
