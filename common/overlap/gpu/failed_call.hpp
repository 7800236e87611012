// What the exceptions of failed calls of CUDA, cuBLAS and NCCL have in common.
#pragma once

#include <stdexcept>
#include <string>

namespace overlap {

/// A call that failed. what() reads "column_split.cuh:41: cudaMalloc(&p, bytes): cudaErrorMemoryAllocation
/// (out of memory), device 0".
class FailedCall : public std::runtime_error {
 public:
  /// `name` is the error's name, `text` the library's words for it (or null). Asks the backend what else is
  /// known. `device` is the calling thread's current device, or -1 if it could not be read.
  FailedCall(const char* name, const char* text, const char* call, const char* file, int line, int device);
  /// The same error, its text preceded by `where`, such as "rank 3: ".
  FailedCall(const FailedCall& error, const std::string& where);

  int device() const { return device_; }  ///< the current device, or -1
  /// The source text of the call.
  const std::string& call() const { return call_; }
  /// What was known beyond the error's code when it was thrown (backend::error_detail()); "" if nothing was.
  const std::string& detail() const { return detail_; }
  /// Adds what the caller knows.
  void add_detail(const std::string& text) { detail_ += (detail_.empty() ? "" : ", ") + text; }

 private:
  int device_;
  std::string call_, detail_;
};

/// The calling thread's current device, or -1 if it could not be read. Changes no CUDA state.
int device_of_failure();

}  // namespace overlap
