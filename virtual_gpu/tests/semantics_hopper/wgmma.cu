// wgmma: operand layouts, shapes, types, accumulation.
#include "wgmma_test.hpp"

namespace semantics {
namespace {

constexpr int kDepth = 64, kSlices = kDepth / wgmma::kDepth;

/// D = A B over the slices from `first` to `behind`. If `old`, D is initialised with it; the GEMM adds to D
/// if `accumulate`.
template <class T, Major A, Major B, int N>
__global__ void multiply(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                         Layout a_layout, Layout b_layout, int2 slices, float old, bool accumulate,
                         float* to) {
  __shared__ std::uint64_t full;
  alignas(1024) __shared__ std::byte a[2 * wgmma::kRows * kDepth];
  alignas(1024) __shared__ std::byte b[2 * N * kDepth];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    expect_bytes(&full, static_cast<std::uint32_t>(a_layout.bytes() + b_layout.bytes()));
    load(a_layout, a, &a_map, &full);
    load(b_layout, b, &b_map, &full);
  }
  await_phase(&full, 0);
  wgmma::Fragment<N> d;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) d.value[i] = old;
  wgmma::fence();
  for (int slice = slices.x; slice < slices.y; ++slice) {
    wgmma::mma<T, A, B>(d, slice_of(a_layout, a, slice), slice_of(b_layout, b, slice),
                        accumulate || slice > slices.x);
  }
  wgmma::commit();
  wgmma::wait<0>(d);
  write(d, to);
}

template <class T, Major A, Major B, int N>
std::vector<float> product_of(const Layout& a_layout, const Layout& b_layout, int2 slices = {0, kSlices},
                              float old = 0, bool accumulate = false) {
  const DeviceArray<T> a(operand<T>(a_layout, a_element)), b(operand<T>(b_layout, b_element));
  const DeviceArray<float> to(wgmma::kRows * N, -1);
  multiply<T, A, B, N><<<1, wgmma::kThreads>>>(map_of(a_layout, a.data()), map_of(b_layout, b.data()),
                                               a_layout, b_layout, slices, old, accumulate, to.data());
  require(cudaGetLastError());
  return to.values();
}

template <class T, int N>
std::vector<float> product_of(const Layout& a, const Layout& b, int2 slices = {0, kSlices}) {
  if (a.major == Major::kK && b.major == Major::kK)
    return product_of<T, Major::kK, Major::kK, N>(a, b, slices);
  if (a.major == Major::kK) return product_of<T, Major::kK, Major::kMN, N>(a, b, slices);
  if (b.major == Major::kK) return product_of<T, Major::kMN, Major::kK, N>(a, b, slices);
  return product_of<T, Major::kMN, Major::kMN, N>(a, b, slices);
}

constexpr Swizzle kSwizzles[] = {Swizzle::kNone, Swizzle::k32, Swizzle::k64, Swizzle::k128};
constexpr Major kMajors[] = {Major::kK, Major::kMN};

std::string name_of(const Layout& layout) {
  return std::string(layout.major == Major::kK ? "K" : "MN") + "Major" + std::to_string(layout.width());
}

class LayoutTest : public WgmmaTest, public testing::WithParamInterface<std::tuple<Major, Swizzle>> {
 protected:
  Layout layout(int rows) const { return {std::get<0>(GetParam()), std::get<1>(GetParam()), rows, kDepth}; }
};
INSTANTIATE_TEST_SUITE_P(All, LayoutTest,
                         testing::Combine(testing::ValuesIn(kMajors), testing::ValuesIn(kSwizzles)),
                         [](const auto& test) {
                           return name_of({std::get<0>(test.param), std::get<1>(test.param), 64, kDepth});
                         });

/// The layouts of the other operand.
template <class Check>
void with_all(int rows, Check check) {
  for (const Major major : kMajors) {
    for (const Swizzle swizzle : kSwizzles) {
      const Layout layout{major, swizzle, rows, kDepth};
      SCOPED_TRACE(name_of(layout));
      check(layout);
    }
  }
}

TEST_P(LayoutTest, OfAWithAnyOfB) {
  const std::vector<float> expected = product(64, 0, kDepth, a_element, b_element);
  with_all(64, [&](const Layout& b) { EXPECT_EQ((product_of<__half, 64>(layout(64), b)), expected); });
}

TEST_P(LayoutTest, OfBOf128And256Columns) {
  const Layout a{Major::kK, Swizzle::k128, 64, kDepth};
  EXPECT_EQ((product_of<__half, 128>(a, layout(128))), product(128, 0, kDepth, a_element, b_element));
  EXPECT_EQ((product_of<__half, 256>(a, layout(256))), product(256, 0, kDepth, a_element, b_element));
}

TEST_P(LayoutTest, EachSliceOfKOnItsOwn) {
  for (int slice = 0; slice < kSlices; ++slice) {
    const std::vector<float> expected = product(64, 16 * slice, 16 * (slice + 1), a_element, b_element);
    EXPECT_EQ((product_of<__half, 64>(layout(64), layout(64), {slice, slice + 1})), expected) << slice;
  }
}

TEST_P(LayoutTest, OfBfloat16) {
  const Layout other{Major::kMN, Swizzle::k64, 64, kDepth};
  const std::vector<float> expected = product(64, 0, kDepth, a_element, b_element);
  EXPECT_EQ((product_of<__nv_bfloat16, 64>(layout(64), other)), expected);
  EXPECT_EQ((product_of<__nv_bfloat16, 64>(other, layout(64))), expected);
}

TEST_F(WgmmaTest, AccumulatingAddsToWhatIsThere) {
  const Layout a{Major::kK, Swizzle::k128, 64, kDepth}, b{Major::kMN, Swizzle::k128, 128, kDepth};
  const std::vector<float> before(64 * 128, 1000);
  EXPECT_EQ((product_of<__half, Major::kK, Major::kMN, 128>(a, b, {0, kSlices}, 1000, true)),
            product(128, 0, kDepth, a_element, b_element, before));
  EXPECT_EQ((product_of<__half, Major::kK, Major::kMN, 128>(a, b, {0, kSlices}, 1000, false)),
            product(128, 0, kDepth, a_element, b_element))
      << "without, the old value does not count";
}

template <int N>
void expect_places() {
  std::vector<int> found(64 * N);
  for (int thread = 0; thread < wgmma::kThreads; ++thread) {
    for (int i = 0; i < N / 2; ++i) {
      const auto [row, column] = wgmma::place<N>(thread, i);
      ASSERT_TRUE(row >= 0 && row < 64 && column >= 0 && column < N);
      ++found[static_cast<std::size_t>(row * N + column)];
    }
  }
  EXPECT_EQ(found, std::vector<int>(64 * N, 1));
}

TEST(WgmmaPlaceTest, EachElementHasOnePlace) {
  expect_places<64>();
  expect_places<128>();
  expect_places<256>();
}

}  // namespace
}  // namespace semantics
