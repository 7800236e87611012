// How an API call fails.
#pragma once

#include <stdexcept>
#include <string>

#include "vgpu/types.h"

namespace vgpu {

/// An API call's failure: CUDA's code, and one sentence that says what the code does not.
class ApiError : public std::runtime_error {
 public:
  ApiError(cudaError_t code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

}  // namespace vgpu
