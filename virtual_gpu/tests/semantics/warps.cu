// Warps: shuffles, votes, reductions. Guide, "Warp Shuffle Functions", "Warp Vote Functions", "Warp Reduce
// Functions".

#include "gpu_test.hpp"

namespace semantics {
namespace {

using WarpsTest = GpuTest;
constexpr unsigned int kAllLanes = 0xffffffffu;

enum class Shuffle { kIndex, kUp, kDown, kXor };
struct ShuffleCase {
  Shuffle kind;
  int argument, width;
};

template <class T>
__global__ void shuffle(T* out, ShuffleCase which) {
  const T mine = static_cast<T>(threadIdx.x) + 100;
  T value = 0;
  switch (which.kind) {
    case Shuffle::kIndex:
      value = __shfl_sync(kAllLanes, mine, which.argument, which.width);
      break;
    case Shuffle::kUp:
      value = __shfl_up_sync(kAllLanes, mine, static_cast<unsigned int>(which.argument), which.width);
      break;
    case Shuffle::kDown:
      value = __shfl_down_sync(kAllLanes, mine, static_cast<unsigned int>(which.argument), which.width);
      break;
    case Shuffle::kXor:
      value = __shfl_xor_sync(kAllLanes, mine, which.argument, which.width);
      break;
  }
  out[threadIdx.x] = value;
}

/// The lane that `lane` reads, by the Guide.
int source_lane(const ShuffleCase& which, int lane) {
  const int first = lane / which.width * which.width, last = first + which.width - 1;
  switch (which.kind) {
    case Shuffle::kIndex:
      return first + which.argument % which.width;  // outside the width: modulo
    case Shuffle::kUp:
      return lane - which.argument < first ? lane : lane - which.argument;
    case Shuffle::kDown:
      return lane + which.argument > last ? lane : lane + which.argument;
    case Shuffle::kXor:  // reads earlier groups, but not later ones
      return (lane ^ which.argument) > last ? lane : lane ^ which.argument;
  }
  return -1;
}

class ShuffleTest : public GpuTest, public testing::WithParamInterface<ShuffleCase> {
 protected:
  template <class T>
  void run() {
    const DeviceArray<T> out(64, T{});
    shuffle<<<1, 64>>>(out.data(), GetParam());
    const std::vector<T> values = out.values();
    for (int thread = 0; thread < 64; ++thread) {
      const int source = thread / 32 * 32 + source_lane(GetParam(), thread % 32);
      EXPECT_EQ(values[thread], static_cast<T>(source + 100)) << "thread " << thread;
    }
  }
};

TEST_P(ShuffleTest, Int) { run<int>(); }
TEST_P(ShuffleTest, Double) { run<double>(); }
INSTANTIATE_TEST_SUITE_P(
    Kinds, ShuffleTest,
    testing::Values(ShuffleCase{Shuffle::kIndex, 5, 32}, ShuffleCase{Shuffle::kIndex, 3, 8},
                    ShuffleCase{Shuffle::kIndex, 11, 8}, ShuffleCase{Shuffle::kUp, 1, 32},
                    ShuffleCase{Shuffle::kUp, 3, 8}, ShuffleCase{Shuffle::kUp, 16, 16},
                    ShuffleCase{Shuffle::kDown, 1, 32}, ShuffleCase{Shuffle::kDown, 5, 16},
                    ShuffleCase{Shuffle::kDown, 0, 4}, ShuffleCase{Shuffle::kXor, 1, 32},
                    ShuffleCase{Shuffle::kXor, 16, 32}, ShuffleCase{Shuffle::kXor, 3, 8},
                    ShuffleCase{Shuffle::kXor, 16, 16}, ShuffleCase{Shuffle::kXor, 8, 8}));

/// The textbook sum over a warp; types of 4 and 8 bytes, also negative values.
template <class T>
__global__ void warp_sum(T* out) {
  T value = static_cast<T>(threadIdx.x) - 40;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  out[threadIdx.x] = value;
}

template <class T>
class WarpSumTest : public GpuTest {};
using SumTypes = testing::Types<int, long long, float, double>;
TYPED_TEST_SUITE(WarpSumTest, SumTypes);

TYPED_TEST(WarpSumTest, EveryLaneGetsTheSum) {
  const DeviceArray<TypeParam> out(64, TypeParam{});
  warp_sum<<<1, 64>>>(out.data());
  const std::vector<TypeParam> values = out.values();
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(values[i], static_cast<TypeParam>(i < 32 ? 496 - 1280 : 1520 - 1280)) << i;
}

/// Two parts of a warp diverge, each with its own mask and number of steps.
__global__ void parts_of_a_warp(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane < 8) {
    for (int offset = 4; offset > 0; offset /= 2) value += __shfl_down_sync(0x000000ffu, value, offset, 8);
  } else {
    value = __shfl_sync(0xffffff00u, value, 31);
    value += __popc(__ballot_sync(0xffffff00u, lane % 2));
  }
  __syncwarp();
  out[lane] = value;
}

TEST_F(WarpsTest, PartialMasks) {
  const DeviceArray<int> out(32, -1);
  parts_of_a_warp<<<1, 32>>>(out.data());
  const std::vector<int> values = out.values();
  EXPECT_EQ(values[0], 28);
  for (int lane = 8; lane < 32; ++lane) EXPECT_EQ(values[lane], 31 + 12) << lane;
}

__global__ void votes(unsigned int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  unsigned int* mine = out + threadIdx.x * 6;
  mine[0] = __ballot_sync(kAllLanes, lane % 3 == 0 ? 8 : 0);
  mine[1] = __any_sync(kAllLanes, lane == 31) != 0;
  mine[2] = __any_sync(kAllLanes, 0) != 0;
  mine[3] = __all_sync(kAllLanes, lane + 1) != 0;
  mine[4] = __all_sync(kAllLanes, lane) != 0;
  mine[5] = lane < 4 ? __ballot_sync(0xfu, lane > 1) : 0;
}

TEST_F(WarpsTest, Votes) {
  const DeviceArray<unsigned int> out(64 * 6, 7);
  votes<<<1, 64>>>(out.data());
  const std::vector<unsigned int> values = out.values();
  for (int i = 0; i < 64; ++i) {
    const std::vector<unsigned int> mine(values.begin() + i * 6, values.begin() + i * 6 + 6);
    EXPECT_EQ(mine, (std::vector<unsigned int>{0x49249249u, 1, 0, 1, 0, i % 32 < 4 ? 0xcu : 0u}))
        << "thread " << i;
  }
}

/// A partial last warp: missing lanes are in no mask.
__global__ void last_warp(unsigned int* out, unsigned int mask) {
  const unsigned int ballot = __ballot_sync(mask, 1);
  const unsigned int left = __shfl_up_sync(mask, static_cast<unsigned int>(threadIdx.x), 1);
  out[threadIdx.x * 2] = ballot;
  out[threadIdx.x * 2 + 1] = left;
}

TEST_F(WarpsTest, LastWarpThatIsNotFull) {
  const DeviceArray<unsigned int> out(10 * 2, 0);
  last_warp<<<1, 10>>>(out.data(), 0x3ffu);
  const std::vector<unsigned int> values = out.values();
  for (unsigned int i = 0; i < 10; ++i) {
    EXPECT_EQ(values[i * 2], 0x3ffu);
    EXPECT_EQ(values[i * 2 + 1], i == 0 ? 0 : i - 1);
  }
}

/// A warp is 32 consecutive threads, x running fastest, also in blocks of two dimensions.
__global__ void leaders(int* out) {
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y);
  out[thread] = __shfl_sync(kAllLanes, static_cast<int>(thread), 0);
}

TEST_F(WarpsTest, WarpsOfATwoDimensionalBlock) {
  const DeviceArray<int> out(96, -1);
  leaders<<<1, dim3(24, 4)>>>(out.data());
  const std::vector<int> values = out.values();
  for (int i = 0; i < 96; ++i) EXPECT_EQ(values[i], i / 32 * 32);
}

/// __syncwarp() orders memory among the participating lanes.
__global__ void rotate_in_shared_memory(int* out, int rounds) {
  __shared__ int slots[64];
  const int warp = static_cast<int>(threadIdx.x) / 32 * 32, lane = static_cast<int>(threadIdx.x) % 32;
  int value = lane;
  for (int round = 0; round < rounds; ++round) {
    slots[warp + lane] = value;
    __syncwarp();
    value = slots[warp + (lane + 1) % 32];
    __syncwarp();
  }
  out[threadIdx.x] = value;
}

TEST_F(WarpsTest, SyncwarpOrdersMemory) {
  const DeviceArray<int> out(64, -1);
  rotate_in_shared_memory<<<1, 64>>>(out.data(), 45);
  const std::vector<int> values = out.values();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[i], (i + 45) % 32);
}

__global__ void reductions(unsigned int* out) {
  const unsigned int lane = threadIdx.x;
  out[lane * 3] = __reduce_add_sync(kAllLanes, lane);
  out[lane * 3 + 1] = __reduce_min_sync(kAllLanes, lane + 5);
  out[lane * 3 + 2] = __reduce_max_sync(kAllLanes, lane == 7 ? 0x80000000u : lane);
}

TEST_F(WarpsTest, Reductions) {
  const DeviceArray<unsigned int> out(32 * 3, 0);
  reductions<<<1, 32>>>(out.data());
  const std::vector<unsigned int> values = out.values();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(values[i * 3], 496u);
    EXPECT_EQ(values[i * 3 + 1], 5u);
    EXPECT_EQ(values[i * 3 + 2], 0x80000000u);
  }
}

__global__ void bits(int* out) {
  out[0] = __popc(0xf0f0u), out[1] = __popcll(0x1000000000000001ull);
  out[2] = __clz(1), out[3] = __clz(0), out[4] = __clzll(1);
  out[5] = __ffs(0), out[6] = __ffs(0x80), out[7] = __ffsll(0x100000000ll);
  out[8] = min(3, -4), out[9] = max(2u, 7u) + static_cast<int>(max(1.5f, 0.5f) == 1.5f);
}

TEST_F(WarpsTest, BitFunctions) {
  const DeviceArray<int> out(10, -1);
  bits<<<1, 1>>>(out.data());
  EXPECT_EQ(out.values(), (std::vector<int>{8, 2, 31, 32, 63, 0, 8, 33, -4, 8}));
}

__global__ void match(unsigned int* out, unsigned int mask) {
  const unsigned int lane = threadIdx.x % 32;
  if ((mask >> lane & 1) != 0) out[threadIdx.x] = __match_any_sync(mask, static_cast<int>(lane % 3) - 1);
}

TEST_F(WarpsTest, MatchFindsTheLanesWithTheSameValue) {
  for (const unsigned int mask : {kAllLanes, 0x0ff0u}) {
    const DeviceArray<unsigned int> out(64, 0u);
    match<<<1, 64>>>(out.data(), mask);
    const std::vector<unsigned int> values = out.values();
    for (unsigned int thread = 0; thread < 64; ++thread) {
      unsigned int expected = 0;
      for (unsigned int lane = 0; lane < 32; ++lane)
        if (lane % 3 == thread % 32 % 3) expected |= 1u << lane;
      EXPECT_EQ(values[thread], (mask >> thread % 32 & 1) != 0 ? expected & mask : 0u) << "thread " << thread;
    }
  }
}

}  // namespace
}  // namespace semantics
