// The ways in which NCCL can move the data of a collective between the GPUs of one host.
#pragma once

#include <string>
#include <vector>

namespace overlap {

/// What --nccl chooses. The last two need NCCL 2.28, and their memory in a window: see NcclBuffer.
enum class NcclMode {
  kPlain,       ///< kernels of NCCL move the data; any memory will do
  kRegistered,  ///< kernels that read and write the memory of all ranks directly
  kCopyEngine,  ///< copy engines move the data, no multiprocessor is occupied (all-gather, no sums)
};

/// The name on the command line: "plain", "registered", "copy-engine".
const char* name_of(NcclMode mode);

/// The name of the variant that runs in this mode: "nccl", "nccl_registered", "nccl_copy_engine".
const char* variant_of(NcclMode mode);

/// All modes, for messages.
const std::vector<NcclMode>& all_nccl_modes();

/// The modes that this program was built with: only the plain one for virtual GPUs or with an older NCCL.
std::vector<NcclMode> nccl_modes();

/// One sentence on why this mode is not available here, "" if it is. Asks a newer NCCL for its version; makes
/// no CUDA call.
std::string why_not(NcclMode mode);

}  // namespace overlap
