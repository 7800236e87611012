// Shared by the scenarios of wgmma: operands loaded by tensor maps, and a reference GEMM. They rely on
// promises of the PTX ISA ("Asynchronous Warpgroup Level Matrix Instructions") and need exactly compute
// capability 9.0.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hopper_test.hpp"
#include "overlap/gpu/wgmma.hpp"

namespace semantics {

namespace wgmma = overlap::wgmma;
using wgmma::Major, wgmma::Swizzle;

/// Skips on other GPUs, with a reason.
class WgmmaTest : public HopperTest {
 protected:
  void SetUp() override {
    HopperTest::SetUp();
    if (IsSkipped()) return;
    if (major_ != 9 || minor_ != 0) GTEST_SKIP() << "needs compute capability 9.0 exactly: wgmma is its own";
  }
};

/// Integers from -3 to 3, so that all sums are exact, in an order that a wrong layout would change.
inline float small_number(int row, int column, int salt) {
  const unsigned int mixed =
      static_cast<unsigned int>(row * 7919 + column * 104729 + salt * 1299721) * 2654435761u;
  return static_cast<float>(static_cast<int>((mixed >> 16) % 7u) - 3);
}

/// An operand: `rows` indices of m or n, each with `depth` elements along k; its layout in global memory, and
/// in shared memory: boxes side by side, as wide as the swizzle, each with all outer indices.
struct Layout {
  Major major;
  Swizzle swizzle;
  int rows, depth;

  __host__ __device__ constexpr int width() const {  // bytes of a box's rows
    return swizzle == Swizzle::k128 ? 128 : swizzle == Swizzle::k64 ? 64 : swizzle == Swizzle::k32 ? 32 : 16;
  }
  __host__ __device__ constexpr int inner() const { return major == Major::kK ? depth : rows; }
  __host__ __device__ constexpr int outer() const { return major == Major::kK ? rows : depth; }
  __host__ __device__ constexpr int boxes() const { return 2 * inner() / width(); }
  __host__ __device__ constexpr int box_bytes() const { return width() * outer(); }
  __host__ __device__ constexpr int bytes() const { return 2 * rows * depth; }
};

template <class T>
CUtensorMap map_of(const Layout& layout, T* data) {
  const auto inner = static_cast<cuuint64_t>(layout.inner()), outer = static_cast<cuuint64_t>(layout.outer());
  const CUtensorMapSwizzle swizzle = layout.swizzle == Swizzle::k128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : layout.swizzle == Swizzle::k64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : layout.swizzle == Swizzle::k32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                                      : CU_TENSOR_MAP_SWIZZLE_NONE;
  return map_of(Tensor<T>{data,
                          {inner, outer},
                          {inner},
                          {static_cast<cuuint32_t>(layout.width() / 2), static_cast<cuuint32_t>(outer)},
                          swizzle});
}

/// element(row, k) of an operand, in the layout of global memory.
template <class T, class Element>
std::vector<T> operand(const Layout& layout, Element element) {
  std::vector<T> values;
  for (int outer = 0; outer < layout.outer(); ++outer) {
    for (int inner = 0; inner < layout.inner(); ++inner) {
      values.push_back(T(layout.major == Major::kK ? element(outer, inner) : element(inner, outer)));
    }
  }
  return values;
}

/// One thread loads the whole operand; the caller expects the bytes.
__device__ inline void load(const Layout& layout, std::byte* shared, const CUtensorMap* map,
                            std::uint64_t* barrier) {
  for (int box = 0; box < layout.boxes(); ++box) {
    const std::int32_t at[2] = {box * layout.width() / 2, 0};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared + box * layout.box_bytes(), map,
                              at, barrier);
  }
}

__device__ inline wgmma::Descriptor describe(const Layout& layout, const std::byte* shared, int leading,
                                             int stride) {
  if (layout.swizzle == Swizzle::k128)
    return wgmma::describe<Major::kK, Swizzle::k128>(shared, leading, stride);
  if (layout.swizzle == Swizzle::k64)
    return wgmma::describe<Major::kK, Swizzle::k64>(shared, leading, stride);
  if (layout.swizzle == Swizzle::k32)
    return wgmma::describe<Major::kK, Swizzle::k32>(shared, leading, stride);
  return wgmma::describe<Major::kK, Swizzle::kNone>(shared, leading, stride);
}

/// Slice `slice`: 16 indices of k, from 16 `slice` on.
__device__ inline wgmma::Descriptor slice_of(const Layout& layout, const std::byte* shared, int slice) {
  const int atom = 8 * layout.width(), box = layout.box_bytes();
  const bool plain = layout.swizzle == Swizzle::kNone;
  if (layout.major == Major::kMN) {  // 16 rows further down
    const auto first = plain ? describe(layout, shared, atom, box) : describe(layout, shared, box, atom);
    return wgmma::advance(first, slice * 2 * atom);
  }
  if (plain) return wgmma::advance(describe(layout, shared, box, atom), slice * 2 * box);
  const int in_box = layout.width() / 32;
  return wgmma::advance(describe(layout, shared, 0, atom), slice / in_box * box + slice % in_box * 32);
}

/// Writes a fragment of D[64, N] to the elements' positions.
template <int N, class T>
__device__ void write(const wgmma::Fragment<N>& d, T* to) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const auto [row, column] = wgmma::place<N>(static_cast<int>(threadIdx.x) % wgmma::kThreads, i);
    to[row * N + column] = d.value[i];
  }
}

/// A [64, K] B [K, n] over `first` <= k < `behind`, plus the old value.
template <class A, class B>
std::vector<float> product(int columns, int first, int behind, A a, B b, std::vector<float> sums = {}) {
  sums.resize(static_cast<std::size_t>(wgmma::kRows * columns));
  for (int row = 0; row < wgmma::kRows; ++row) {
    for (int column = 0; column < columns; ++column) {
      for (int k = first; k < behind; ++k)
        sums[static_cast<std::size_t>(row * columns + column)] += a(row, k) * b(column, k);
    }
  }
  return sums;
}

inline float a_element(int row, int k) { return small_number(row, k, 1); }
inline float b_element(int column, int k) { return small_number(column, k, 2); }

}  // namespace semantics
