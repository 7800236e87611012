#include "overlap/gpu/nccl_mode.hpp"

#include <nccl.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/nccl_config.hpp"

namespace overlap {
namespace {

// The version of NCCL's header decides which of the newer modes can be compiled.
#if defined(NCCL_WIN_COLL_SYMMETRIC) && defined(NCCL_CTA_POLICY_ZERO)
constexpr bool kHasNewerModes = true;
#else
constexpr bool kHasNewerModes = false;
#endif
constexpr int kNeeded = 22800;  // NCCL 2.28, as ncclGetVersion() writes it

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
}

}  // namespace

const char* name_of(NcclMode mode) {
  constexpr std::array kNames = {"plain", "registered", "copy-engine"};
  return kNames.at(static_cast<std::size_t>(mode));
}

const char* variant_of(NcclMode mode) {
  constexpr std::array kNames = {"nccl", "nccl_registered", "nccl_copy_engine"};
  return kNames.at(static_cast<std::size_t>(mode));
}

const std::vector<NcclMode>& all_nccl_modes() {
  static const std::vector<NcclMode> modes = {NcclMode::kPlain, NcclMode::kRegistered, NcclMode::kCopyEngine};
  return modes;
}

std::vector<NcclMode> nccl_modes() {
  if (backend::modelled_time() || !kHasNewerModes) return {NcclMode::kPlain};
  return all_nccl_modes();
}

std::string why_not(NcclMode mode) {
  if (mode == NcclMode::kPlain) return "";
  const std::string wants = std::string("'") + name_of(mode) + "' needs ";
  if (backend::modelled_time())
    return wants + "real GPUs: virtual NCCL has neither windows nor copy-engine collectives";
  if (!kHasNewerModes)
    return wants + "NCCL 2.28, and this program was built with NCCL " + version_text(NCCL_VERSION_CODE);
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess || version < kNeeded)
    return wants + "NCCL 2.28, and here is NCCL " + version_text(version);
  // With a window NCCL would use NVLink multicast where possible, which this project never does.
  const char* multicast = std::getenv("NCCL_NVLS_ENABLE");
  if (multicast == nullptr || std::strcmp(multicast, "0") != 0)
    return wants + "NCCL_NVLS_ENABLE=0 in the environment: it is used here without NVLink multicast only";
  return "";
}

void detail::use_copy_engines(ncclConfig_t& config) {
#ifdef NCCL_CTA_POLICY_ZERO
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#else
  static_cast<void>(config);  // why_not() has refused it
#endif
}

}  // namespace overlap
