// Properties of a process that runs scenarios.
#pragma once

namespace semantics {

/// True if objects that are slow to make are kept for later tests; false where the virtual GPUs are reset
/// between tests.
inline bool keeps_handles = false;

}  // namespace semantics
