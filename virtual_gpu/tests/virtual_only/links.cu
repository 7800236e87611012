// Links between GPUs: each GPU has one link out and one in, which its copies share.
#include <algorithm>
#include <cuda/ptx>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

constexpr std::size_t kBytes = 1 << 20;

/// A copy from one GPU to another, with its own stream on the source.
struct PeerCopy {
  int from, to;
};

class LinksTest : public VirtualTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    open_links();
  }
  void open_links() {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      require(cudaSetDevice(gpu));
      for (int peer = 0; peer < kGpus; ++peer) {
        if (peer != gpu) require(cudaDeviceEnablePeerAccess(peer, 0));
      }
      require(cudaMalloc(&memory_[gpu], kCopies * kBytes));
    }
  }
  /// Modelled milliseconds until all copies are done; they begin at the same time.
  float time_of(const std::vector<PeerCopy>& copies) {
    float latest = 0;
    std::vector<cudaEvent_t> starts, stops;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const auto [from, to] = copies[i];
      require(cudaSetDevice(from));
      const cudaStream_t stream = new_stream();
      starts.push_back(new_event());
      stops.push_back(new_event());
      require(cudaEventRecord(starts.back(), stream));
      require(cudaMemcpyPeerAsync(memory_[to] + i * kBytes, to, memory_[from], from, kBytes, stream));
      require(cudaEventRecord(stops.back(), stream));
    }
    for (std::size_t i = 0; i < copies.size(); ++i)
      latest = std::max(latest, milliseconds(starts[i], stops[i]));
    return latest;
  }
  static constexpr int kGpus = 4, kCopies = kGpus * (kGpus - 1);
  char* memory_[kGpus] = {};
};

TEST_F(LinksTest, ARingRunsAtFullRateOnAllGpus) {
  const float one = time_of({{0, 1}});
  EXPECT_NEAR(time_of({{0, 1}, {1, 2}, {2, 3}, {3, 0}}), one, 0.05 * one);
  EXPECT_NEAR(time_of({{0, 1}, {1, 0}}), one, 0.05 * one) << "out and in at the same time";
}

TEST_F(LinksTest, CopiesIntoOneGpuTakeTurns) {
  const float one = time_of({{0, 3}});
  EXPECT_GT(time_of({{0, 3}, {1, 3}}), 1.8 * one);
  EXPECT_GT(time_of({{0, 3}, {1, 3}, {2, 3}}), 2.7 * one);
}

// Each GPU has 3 copy engines, but one link out.
TEST_F(LinksTest, CopiesOutOfOneGpuTakeTurns) {
  const float one = time_of({{0, 1}});
  EXPECT_GT(time_of({{0, 1}, {0, 2}}), 1.8 * one);
  EXPECT_LT(time_of({{0, 1}, {0, 2}}), 2.2 * one);
}

// All GPUs write to GPU 0 first, then to GPU 1 and so on; in rotated order, no two write to the same one.
TEST_F(LinksTest, AllToAllWithoutTurnsCollides) {
  std::vector<PeerCopy> collide, in_turn;
  for (int step = 0; step < kGpus; ++step) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      if (step != gpu) collide.push_back({gpu, step});
      if (step != 0) in_turn.push_back({gpu, (gpu + step) % kGpus});
    }
  }
  EXPECT_GT(time_of(collide), 1.2 * time_of(in_turn));
}

/// Each block stores its shared memory `rounds` times, as a kernel writes to a peer by TMA.
__global__ void store_in_bulk(int* to, int rounds) {
  namespace ptx = cuda::ptx;
  constexpr int kElements = 4096;
  alignas(128) __shared__ int row[kElements];
  for (int i = 0; i < kElements; ++i) row[i] = 1;
  ptx::fence_proxy_async(ptx::space_shared);
  for (int round = 0; round < rounds; ++round) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared,
                       to + (static_cast<int>(blockIdx.x) * rounds + round) * kElements, row, sizeof row);
  }
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}

TEST_F(LinksTest, BulkCopiesOfKernelsTakeTheLinkAndAreCounted) {
  constexpr int kBlocks = 4, kRounds = 16;  // of 16 KiB: kBytes
  const auto ms_of_store_to = [&](int gpu) {
    require(cudaSetDevice(0));
    const cudaStream_t stream = new_stream();
    int* memory = reinterpret_cast<int*>(memory_[gpu]);
    return elapsed(stream, [&] { store_in_bulk<<<kBlocks, 1, 0, stream>>>(memory, kRounds); });
  };
  const float here = ms_of_store_to(0);
  EXPECT_EQ(vgpu::traffic(0, 0).bytes, 0u) << "not over a link";
  const float there = ms_of_store_to(1);
  EXPECT_EQ(vgpu::traffic(0, 1).bytes, kBytes);
  EXPECT_EQ(vgpu::traffic(0, 1).copies, std::uint64_t{kBlocks} * kRounds);
  EXPECT_EQ(vgpu::traffic(1, 0).bytes, 0u);
  const float by_copy_engine = time_of({{0, 1}});
  EXPECT_GT(there, 0.9f * by_copy_engine) << "no faster than the link";
  EXPECT_LT(here, 0.5f * there);
}

// ---- Nodes -----------------------------------------------------------------------------------------------
class NodesTest : public LinksTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    vgpu::use_nodes(2, 2);
    open_links();
  }
};

TEST_F(NodesTest, LinksBetweenNodesAreSlower) {
  const float inside = time_of({{0, 1}}), between = time_of({{0, 2}});
  EXPECT_GT(between, 3 * inside);
  EXPECT_NEAR(time_of({{1, 2}}), between, 0.05 * between) << "whichever GPUs";
  EXPECT_NEAR(time_of({{2, 3}}), inside, 0.05 * inside) << "the second node, too";
}

TEST_F(NodesTest, EachGpuHasARailOfItsOwn) {
  const float one = time_of({{0, 2}});
  EXPECT_NEAR(time_of({{0, 2}, {1, 3}, {2, 0}, {3, 1}}), one, 0.05 * one);
  EXPECT_GT(time_of({{0, 2}, {0, 3}}), 1.8 * one) << "two copies out of one GPU";
  EXPECT_GT(time_of({{0, 2}, {1, 2}}), 1.8 * one) << "two copies into one GPU";
  EXPECT_NEAR(time_of({{0, 2}, {0, 1}, {1, 0}}), one, 0.05 * one) << "links inside a node are others";
}

TEST_F(NodesTest, OneNodeHasFastLinksOnly) {
  const float between = time_of({{0, 2}});
  TearDown();
  vgpu::use_nodes(1, 4);
  open_links();
  EXPECT_LT(time_of({{0, 2}}), between / 3);
}

}  // namespace
}  // namespace virtual_only
