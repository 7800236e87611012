#include "overlap/check_nccl.hpp"

namespace overlap {

NcclError::NcclError(ncclResult_t code, const char* call, const char* file, int line, int device)
    : FailedCall(ncclGetErrorString(code), nullptr, call, file, line, device), code_(code) {}

void throw_nccl_error(ncclResult_t code, const char* call, const char* file, int line) {
  throw NcclError(code, call, file, line, device_of_failure());
}

}  // namespace overlap
