// Settings of a communicator that only newer versions of NCCL have.
#pragma once

#include <nccl.h>

namespace overlap::detail {

/// Lets a communicator's collectives use copy engines and no multiprocessors ("zero CTAs"), where send and
/// receive buffers lie in a window.
void use_copy_engines(ncclConfig_t& config);

}  // namespace overlap::detail
