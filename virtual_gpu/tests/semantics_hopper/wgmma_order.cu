// wgmma: groups, waits and fences; which operations may be in flight together.
#include "wgmma_test.hpp"

namespace semantics {
namespace {

using WgmmaOrderTest = WgmmaTest;
constexpr int kDepth = 64, kSlices = kDepth / wgmma::kDepth, kColumns = 64;
// Device code copies these, because nvcc allows no constants of a host class type there.
constexpr Layout kA{Major::kK, Swizzle::k128, 64, kDepth}, kTwiceA{Major::kK, Swizzle::k128, 128, kDepth};
constexpr Layout kB{Major::kMN, Swizzle::k128, kColumns, kDepth};
constexpr int kTileBytes = kA.bytes();
constexpr int kElements = wgmma::kRows * kColumns;

/// Adds A B over the slices from `first` on.
template <class T>
__device__ void add_product(wgmma::Fragment<kColumns>& d, const std::byte* a, const std::byte* b, int first,
                            int behind, bool accumulate) {
  constexpr Layout a_layout = kTwiceA, b_layout = kB;
  for (int slice = first; slice < behind; ++slice) {
    wgmma::mma<T, Major::kK, Major::kMN>(d, slice_of(a_layout, a, slice), slice_of(b_layout, b, slice),
                                         accumulate || slice > first);
  }
}

struct Maps {
  CUtensorMap a, b;
};
/// A with `rows` rows, and B, in shared memory.
template <int kRows>
struct Tiles {
  alignas(1024) std::byte a[kRows / 64 * kTileBytes];
  alignas(1024) std::byte b[kB.bytes()];
  std::uint64_t full;

  /// Phase 0 initialises the mbarrier first.
  __device__ void load(const Maps& maps, int phase) {
    constexpr Layout a_layout{Major::kK, Swizzle::k128, kRows, kDepth}, b_layout = kB;
    if (phase == 0) start_barrier(&full, 1);
    if (threadIdx.x == 0) {
      expect_bytes(&full, static_cast<std::uint32_t>(sizeof a + sizeof b));
      semantics::load(a_layout, a, &maps.a, &full);
      semantics::load(b_layout, b, &maps.b, &full);
    }
    await_phase(&full, phase);
  }
};

template <class T>
class Operands {
 public:
  explicit Operands(const Layout& a) : a_(operand<T>(a, a_element)), b_(operand<T>(kB, b_element)) {
    maps_ = {map_of(a, a_.data()), map_of(kB, b_.data())};
  }
  const Maps& maps() const { return maps_; }

 private:
  DeviceArray<T> a_, b_;
  Maps maps_;
};

/// The output: `fragments` fragments.
template <class T, class Kernel, class... Arguments>
std::vector<float> run(Kernel kernel, const Layout& a, int fragments, int threads, Arguments... arguments) {
  const Operands<T> operands(a);
  const DeviceArray<float> to(static_cast<std::size_t>(fragments * kElements), -1);
  kernel<<<1, threads>>>(operands.maps(), to.data(), arguments...);
  return to.values();
}

std::vector<float> slices(int first, int behind, std::vector<float> sums = {}) {
  return product(kColumns, 16 * first, 16 * behind, a_element, b_element, std::move(sums));
}
/// A B with the next 64 rows of A.
std::vector<float> product_below() {
  const auto below = [](int row, int k) { return a_element(row + 64, k); };
  return product(kColumns, 0, kDepth, below, b_element);
}
std::vector<float> part(const std::vector<float>& all, int number) {
  return {all.begin() + number * kElements, all.begin() + (number + 1) * kElements};
}

/// Two groups: the older one is complete after wait<1>.
__global__ void two_groups(const __grid_constant__ Maps maps, float* to) {
  __shared__ Tiles<64> tiles;
  tiles.load(maps, 0);
  wgmma::Fragment<kColumns> older, newer;
  wgmma::fence();
  add_product<__half>(older, tiles.a, tiles.b, 0, 3, false);
  wgmma::commit();
  add_product<__half>(newer, tiles.a, tiles.b, 3, kSlices, false);
  wgmma::commit();
  wgmma::wait<1>(older, newer);
  write(older, to);
  wgmma::wait<0>(newer);
  write(newer, to + kElements);
}

TEST_F(WgmmaOrderTest, TheOlderOfTwoGroupsIsDoneFirst) {
  const std::vector<float> got = run<__half>(two_groups, kA, 2, wgmma::kThreads);
  EXPECT_EQ(part(got, 0), slices(0, 3));
  EXPECT_EQ(part(got, 1), slices(3, kSlices));
}

/// A group for each slice, always one in flight; all of them accumulate in the same D.
__global__ void one_in_flight(const __grid_constant__ Maps maps, float* to) {
  __shared__ Tiles<64> tiles;
  tiles.load(maps, 0);
  wgmma::Fragment<kColumns> d;
  wgmma::fence();
  for (int slice = 0; slice < kSlices; ++slice) {
    add_product<__half>(d, tiles.a, tiles.b, slice, slice + 1, slice > 0);
    wgmma::commit();
    wgmma::wait<1>(d);
  }
  wgmma::wait<0>(d);
  wgmma::wait<0>(d);  // no group is pending: returns at once
  write(d, to);
}

TEST_F(WgmmaOrderTest, GroupsThatAddToOneFragmentNeedNoFenceBetweenThem) {
  const std::vector<float> got = run<__half>(one_in_flight, kA, 1, wgmma::kThreads);
  EXPECT_EQ(got, slices(0, kSlices));
}

/// Each warpgroup has its own 64 rows of A.
__global__ void two_warpgroups(const __grid_constant__ Maps maps, float* to) {
  __shared__ Tiles<128> tiles;
  tiles.load(maps, 0);
  const int warpgroup = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  wgmma::Fragment<kColumns> d;
  wgmma::fence();
  add_product<__half>(d, tiles.a + warpgroup * kTileBytes, tiles.b, 0, kSlices, false);
  wgmma::commit();
  wgmma::wait<0>(d);
  write(d, to + warpgroup * kElements);
}

TEST_F(WgmmaOrderTest, TwoWarpgroupsAtOnce) {
  const std::vector<float> got = run<__half>(two_warpgroups, kTwiceA, 2, 2 * wgmma::kThreads);
  std::vector<float> expected = slices(0, kSlices);
  const std::vector<float> lower = product_below();
  expected.insert(expected.end(), lower.begin(), lower.end());
  EXPECT_EQ(got, expected);
}

/// One warpgroup computes both halves.
__global__ void two_fragments(const __grid_constant__ Maps maps, float* to) {
  __shared__ Tiles<128> tiles;
  tiles.load(maps, 0);
  wgmma::Fragment<kColumns> d[2];
  wgmma::fence();
#pragma unroll
  for (int half = 0; half < 2; ++half)
    add_product<__nv_bfloat16>(d[half], tiles.a + half * kTileBytes, tiles.b, 0, kSlices, false);
  wgmma::commit();
  wgmma::wait<0>(d[0], d[1]);
#pragma unroll
  for (int half = 0; half < 2; ++half) write(d[half], to + half * kElements);
}

TEST_F(WgmmaOrderTest, AWarpgroupMayHaveSeveralFragments) {
  const std::vector<float> got = run<__nv_bfloat16>(two_fragments, kTwiceA, 2, wgmma::kThreads);
  EXPECT_EQ(part(got, 0), slices(0, kSlices));
  EXPECT_EQ(part(got, 1), product_below());
}

/// Threads change D between two GEMMs.
__global__ void touch_between(const __grid_constant__ Maps maps, float* to) {
  __shared__ Tiles<64> tiles;
  tiles.load(maps, 0);
  wgmma::Fragment<kColumns> d;
  wgmma::fence();
  add_product<__half>(d, tiles.a, tiles.b, 0, 2, false);
  wgmma::commit();
  wgmma::wait<0>(d);
#pragma unroll
  for (float& value : d.value) value *= 2;
  wgmma::fence();
  add_product<__half>(d, tiles.a, tiles.b, 2, kSlices, true);
  wgmma::commit();
  wgmma::wait<0>(d);
  write(d, to);
}

TEST_F(WgmmaOrderTest, AFragmentMayBeTouchedBetweenAWaitAndAFence) {
  const std::vector<float> got = run<__half>(touch_between, kA, 1, wgmma::kThreads);
  std::vector<float> twice = slices(0, 2);
  for (float& value : twice) value *= 2;
  EXPECT_EQ(got, slices(2, kSlices, twice));
}

/// Threads write the operands: without a swizzle, chunks of 8 elements along k, 8 rows to an atom.
__global__ void plain_operands(const __half* a, const __half* b, float* to) {
  constexpr Layout kPlain{Major::kK, Swizzle::kNone, 64, kDepth};
  alignas(128) __shared__ __half tiles[2][64 * kDepth];
  for (int i = static_cast<int>(threadIdx.x); i < 64 * kDepth; i += wgmma::kThreads) {
    const int row = i / kDepth, k = i % kDepth, there = k / 8 * 64 * 8 + row * 8 + k % 8;
    tiles[0][there] = a[i];
    tiles[1][there] = b[i];
  }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  const auto* first = reinterpret_cast<const std::byte*>(tiles[0]);
  const auto* second = reinterpret_cast<const std::byte*>(tiles[1]);
  wgmma::Fragment<64> d;
  wgmma::fence();
  for (int slice = 0; slice < kSlices; ++slice) {
    wgmma::mma<__half, Major::kK, Major::kK>(d, slice_of(kPlain, first, slice),
                                             slice_of(kPlain, second, slice), slice > 0);
  }
  wgmma::commit();
  wgmma::wait<0>(d);
  write(d, to);
}

TEST_F(WgmmaOrderTest, AProxyFenceShowsWhatThreadsWrote) {
  const Layout rows{Major::kK, Swizzle::kNone, 64, kDepth};
  const DeviceArray<__half> a(operand<__half>(rows, a_element)), b(operand<__half>(rows, b_element));
  const DeviceArray<float> to(64 * 64, -1);
  plain_operands<<<1, wgmma::kThreads>>>(a.data(), b.data(), to.data());
  EXPECT_EQ(to.values(), product(64, 0, kDepth, a_element, b_element));
}

/// Reuses the same memory, each time after the wait.
__global__ void refill(const __grid_constant__ Maps maps, float* to, int rounds) {
  __shared__ Tiles<64> tiles;
  wgmma::Fragment<kColumns> d;
  for (int round = 0; round < rounds; ++round) {
    tiles.load(maps, round);
    wgmma::fence();
    add_product<__half>(d, tiles.a, tiles.b, 0, kSlices, round > 0);
    wgmma::commit();
    wgmma::wait<0>(d);
    __syncthreads();
  }
  write(d, to);
}

TEST_F(WgmmaOrderTest, OperandsMayBeOverwrittenAfterTheWait) {
  constexpr int kRounds = 3;
  const std::vector<float> got = run<__half>(refill, kA, 1, wgmma::kThreads, kRounds);
  std::vector<float> expected;
  for (int round = 0; round < kRounds; ++round) expected = slices(0, kSlices, expected);
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace semantics
