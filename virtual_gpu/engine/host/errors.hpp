// What went wrong: the fault after which every call fails, and the sentence behind the last error code.
#pragma once

#include <optional>
#include <string>

#include "engine/host/api_error.hpp"

namespace vgpu {

inline constexpr int kExitReported = 3;  // exit status after a reported fault, as after a data race

class Errors {
 public:
  /// A sticky error: every later call fails with `code`. Only the first one counts.
  void fault(cudaError_t code, const std::string& sentence);
  bool faulted() const { return fault_.has_value(); }
  void throw_if_faulted() const;
  /// The fault's code, cudaSuccess if there is none.
  cudaError_t sticky_error() const { return fault_ ? fault_->code() : cudaSuccess; }

  /// `call` fails: keeps the sentence and, if print_errors() was asked for, prints it; only an `error`.
  void note(const char* call, const std::string& sentence, bool error = true);
  /// The fault that no call has met.
  void print_if_untold() const;
  bool told() const { return fault_told_; }
  /// See vgpu::last_error_detail().
  const std::string& last_detail() const { return last_detail_; }

 private:
  std::optional<ApiError> fault_;
  bool fault_told_ = false;
  std::string last_detail_;
};

}  // namespace vgpu
