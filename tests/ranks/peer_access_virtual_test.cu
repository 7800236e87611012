// Virtual GPUs can be reset within a process: then peer access is enabled and proved again.
#include <gtest/gtest.h>

#include "counted_peer_calls.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "vgpu/control.hpp"

namespace overlap {
namespace {

TEST(PeerAccessAfterAReset, IsAskedForAndProvedAgain) {
  vgpu::reset();
  const int refused = counted_peer_calls.already_enabled;
  for (int start = 0; start < 3; ++start) {
    const int enabled = counted_peer_calls.enabled, copies = counted_peer_calls.copies;
    for (int i = 0; i < 2; ++i) require_peer_access(3);
    EXPECT_EQ(counted_peer_calls.enabled - enabled, 6);
    EXPECT_EQ(counted_peer_calls.copies - copies, 6);
    EXPECT_EQ(vgpu::traffic(2, 1).copies, 1u) << "by the runtime's own count";
    vgpu::reset();
  }
  EXPECT_EQ(counted_peer_calls.already_enabled, refused);
}

}  // namespace
}  // namespace overlap
