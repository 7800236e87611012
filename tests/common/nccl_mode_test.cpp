#include "overlap/gpu/nccl_mode.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

TEST(NcclModeTest, NamesAreDifferent) {
  std::set<std::string> names, variants;
  for (const NcclMode mode : all_nccl_modes()) {
    names.insert(name_of(mode));
    variants.insert(variant_of(mode));
  }
  EXPECT_EQ(names, (std::set<std::string>{"plain", "registered", "copy-engine"}));
  EXPECT_EQ(variants, (std::set<std::string>{"nccl", "nccl_registered", "nccl_copy_engine"}));
}

TEST(NcclModeTest, ThePlainModeIsAlwaysThere) {
  EXPECT_EQ(why_not(NcclMode::kPlain), "");
  EXPECT_EQ(nccl_modes().front(), NcclMode::kPlain);
}

TEST(NcclModeTest, VirtualNcclRefusesTheOthersByName) {
  if (!backend::modelled_time()) GTEST_SKIP() << "real NCCL may have them";
  EXPECT_EQ(nccl_modes().size(), 1U);
  EXPECT_EQ(why_not(NcclMode::kRegistered),
            "'registered' needs real GPUs: virtual NCCL has neither windows nor copy-engine collectives");
  EXPECT_EQ(why_not(NcclMode::kCopyEngine).substr(0, 13), "'copy-engine'");
}

// With a window, NCCL would use NVLink multicast unless that is disabled.
TEST(NcclModeTest, NoWindowWithMulticast) {
  if (nccl_modes().size() == 1) GTEST_SKIP() << why_not(NcclMode::kRegistered);
  const char* setting = std::getenv("NCCL_NVLS_ENABLE");
  const std::string before = setting == nullptr ? "" : setting;
  setenv("NCCL_NVLS_ENABLE", "2", 1);
  EXPECT_NE(why_not(NcclMode::kRegistered), "");
  EXPECT_NE(why_not(NcclMode::kCopyEngine), "");
  setting == nullptr ? unsetenv("NCCL_NVLS_ENABLE") : setenv("NCCL_NVLS_ENABLE", before.c_str(), 1);
}

}  // namespace
}  // namespace overlap
