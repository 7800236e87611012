// Errors of a real GPU that nothing but the end of the process cures.
#pragma once

#include <cuda_runtime.h>

#include <exception>

#include "overlap/gpu/check.hpp"

namespace overlap {

/// After these a GPU refuses every further call: no rank that uses it joins in good order.
inline bool is_sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

/// The same of an error that a rank has caught.
inline bool is_sticky(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CudaError& failed) {
    return is_sticky(failed.code());
  } catch (...) {
    return false;
  }
}

}  // namespace overlap
