// Telling an observer of calls.
#pragma once

#include <initializer_list>

#include "engine/runtime.hpp"
#include "engine/settings.hpp"
#include "vgpu/calls.hpp"

namespace vgpu {

/// The arguments of a call as an API function passes them on.
using CallArguments = std::initializer_list<CallArgument>;

/// The host thread that runs has ended this call.
inline void tell_observer(Runtime& runtime, const char* name, CallArguments arguments, bool failed) {
  CallObserver* observer = settings().observer();
  if (observer == nullptr) return;
  observer->called({name, {arguments.begin(), arguments.size()}, failed, runtime.host().number()});
}

}  // namespace vgpu
