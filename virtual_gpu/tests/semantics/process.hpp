// What a program of scenarios says of itself.
#pragma once

namespace semantics {

/// What takes long to make is kept for the tests that follow. Not where the virtual GPUs are reset between
/// them.
inline bool keeps_handles = false;

}  // namespace semantics
