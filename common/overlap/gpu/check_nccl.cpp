#include "overlap/gpu/check_nccl.hpp"

namespace overlap {

NcclError::NcclError(ncclResult_t code, const char* call, const char* file, int line, int device)
    : FailedCall(ncclGetErrorString(code), nullptr, call, file, line, device), code_(code) {
  // The code alone says little ("unhandled cuda error"); NCCL keeps a sentence on its last error.
  const std::string sentence = ncclGetLastError(nullptr);
  if (!sentence.empty() && detail().find(sentence) == std::string::npos) add_detail(sentence);
}

void throw_nccl_error(ncclResult_t code, const char* call, const char* file, int line) {
  throw NcclError(code, call, file, line, device_of_failure());
}

}  // namespace overlap
