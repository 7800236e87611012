// Peer access is enabled and proved once in a process, whatever the number of runs and ranks. A program of
// its own, which counts the calls.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "counted_peer_calls.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

/// Calls counted since construction.
struct Counts {
  int enabled = counted_peer_calls.enabled;
  int already_enabled = counted_peer_calls.already_enabled;
  int copies = counted_peer_calls.copies;

  Counts since() const {
    const Counts now;
    return {now.enabled - enabled, now.already_enabled - already_enabled, now.copies - copies};
  }
};

class PeerAccessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend::unavailable().empty()) GTEST_SKIP() << backend::unavailable();
    CUDA_CHECK(cudaGetDeviceCount(&gpus_));
    int can = 0;
    if (gpus_ > 1) CUDA_CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0) GTEST_SKIP() << "needs two GPUs with peer access";
  }
  static void use_peer_memory(int ranks) {
    run_ranks(ranks, [](Rank& rank) {
      const PeerBuffer<int> first(rank, 1);
      const PeerBuffer<int> second(rank, 1);
    });
  }

  int gpus_ = 0;
};

// This test and the next run before the library has enabled anything.
TEST_F(PeerAccessTest, RanksThatShareAGpuAskForNone) {
  if (gpus_ >= 16) GTEST_SKIP() << "16 ranks have a GPU each";
  const Counts counts;
  use_peer_memory(gpus_ + 1);
  EXPECT_EQ(counts.since().enabled, 0);
  EXPECT_EQ(counts.since().copies, 0);
}

TEST_F(PeerAccessTest, TheProgramMayHaveEnabledItItself) {
  const int one = gpus_ - 1, other = gpus_ - 2;
  {
    const DeviceGuard guard(one);
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) CUDA_CHECK(error);
    cudaGetLastError();
  }
  const PeerCopy copy = prove_copy(one, other);
  EXPECT_TRUE(copy.direct);
  EXPECT_EQ(copy.wrong, 0u);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "nothing is left for the next check of a launch to find";
}

TEST_F(PeerAccessTest, IsProvedOnceForEachPair) {
  use_peer_memory(2);
  const Counts counts;
  use_peer_memory(2);
  use_peer_memory(2);
  require_peer_access(2);
  EXPECT_EQ(counts.since().enabled, 0);
  EXPECT_EQ(counts.since().already_enabled, 0);
  EXPECT_EQ(counts.since().copies, 0);
}

TEST_F(PeerAccessTest, NoPairIsAskedForTwice) {
  use_peer_memory(2);
  const Counts counts;
  for (int round = 0; round < 2; ++round) {
    for (int ranks = 1; ranks <= gpus_; ++ranks) use_peer_memory(ranks);
  }
  // The pair of GPUs 0 and 1 is known; other pairs are new, unless an earlier test of this process used them.
  const int pairs = gpus_ * (gpus_ - 1);
  EXPECT_LE(counts.since().enabled, pairs - 2);
  EXPECT_LE(counts.since().copies, pairs - 2);
  EXPECT_EQ(counts.since().already_enabled, 0);
  EXPECT_GE(counted_peer_calls.copies, pairs) << "in this process, each pair was proved at least once";
}

TEST_F(PeerAccessTest, ProofByHandCopiesEachTime) {
  require_peer_access(2);
  const Counts counts;
  for (int i = 0; i < 2; ++i) {
    const PeerCopy copy = prove_copy(1, 0);
    EXPECT_TRUE(copy.direct);
    EXPECT_EQ(copy.wrong, 0u);
  }
  EXPECT_EQ(counts.since().copies, 2);
  EXPECT_EQ(counts.since().already_enabled, 0);
}

}  // namespace
}  // namespace overlap
