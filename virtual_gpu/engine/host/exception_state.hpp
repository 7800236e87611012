// What the C++ runtime keeps of exceptions for each thread of the operating system. Code that runs on fibers
// has a state of its own.
#pragma once

#include <cxxabi.h>

namespace vgpu {

/// The exceptions that are being handled, and how many are on their way to a handler.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};
static_assert(sizeof(ExceptionState) == 2 * sizeof(void*));

/// The running one. libstdc++ and libc++abi begin their state of a thread with these two members (Itanium C++
/// ABI, 2.2.2).
inline ExceptionState& exception_state() {
  return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

}  // namespace vgpu
