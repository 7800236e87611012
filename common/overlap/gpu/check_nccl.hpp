// NCCL_CHECK: an NCCL call that fails becomes an exception that says which call, where, why and on which GPU.
#pragma once

#include <nccl.h>

#include "overlap/gpu/failed_call.hpp"

namespace overlap {

/// An NCCL call that did not return ncclSuccess. what() reads
/// "ring_all_gather.cuh:41: ncclSend(...): invalid argument, device 0". A call that fails between
/// ncclGroupStart() and ncclGroupEnd() leaves the group open: the thread must make no further NCCL call but
/// ncclCommAbort.
class NcclError : public FailedCall {
 public:
  /// `device` is the calling thread's current device, or -1 if it could not be read.
  NcclError(ncclResult_t code, const char* call, const char* file, int line, int device);

  ncclResult_t code() const { return code_; }  ///< what the call returned

 private:
  ncclResult_t code_;
};

/// Throws the NcclError of `code`. Reads the current device, and changes no CUDA state.
[[noreturn]] void throw_nccl_error(ncclResult_t code, const char* call, const char* file, int line);

/// Returns at once on success; throws NcclError otherwise. Use it through NCCL_CHECK.
inline void check_nccl(ncclResult_t code, const char* call, const char* file, int line) {
  if (code != ncclSuccess) throw_nccl_error(code, call, file, line);
}

}  // namespace overlap

/// NCCL_CHECK(ncclGroupEnd()); A macro, because only a macro sees the call's text.
#define NCCL_CHECK(...) ::overlap::check_nccl((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
