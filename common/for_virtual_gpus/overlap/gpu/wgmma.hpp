// The stand-in of the header of this name: the same names and signatures, on virtual GPUs (a test compares
// them; the rewriter does not see this one, so they have no markup). What they mean stands there, in
// common/overlap/gpu/wgmma.hpp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "vgpu/cluster.h"
#include "vgpu/wgmma.h"

namespace overlap::wgmma {

enum class Major { kK, kMN };
enum class Swizzle { kNone = 0, k128 = 1, k64 = 2, k32 = 3 };

inline constexpr int kThreads = 128;
inline constexpr int kRows = 64;
inline constexpr int kDepth = 16;

struct Descriptor {
  std::uint64_t bits;
};

template <Major, Swizzle S>
__forceinline__ Descriptor describe(const void* shared, int leading_bytes, int stride_bytes) {
  const auto field = [](std::uint64_t bytes) { return (bytes & 0x3ffff) >> 4; };
  return {field(__cvta_generic_to_shared(shared)) | field(static_cast<std::uint64_t>(leading_bytes)) << 16 |
          field(static_cast<std::uint64_t>(stride_bytes)) << 32 |
          std::uint64_t{static_cast<unsigned>(S)} << 62};
}

__forceinline__ Descriptor advance(Descriptor operand, int bytes) {
  return {operand.bits + (static_cast<std::uint64_t>(bytes) >> 4)};
}

// Begins as all ones, and may not cease to be while a wgmma still writes it.
template <int N>
struct Fragment {
  __forceinline__ Fragment() { ::vgpu::begin_fragment(value, N / 2); }
  Fragment(const Fragment&) = delete;
  Fragment& operator=(const Fragment&) = delete;
  __forceinline__ ~Fragment() { ::vgpu::end_fragment(value); }
  float value[N / 2];
};

struct Place {
  int row;
  int column;
};
template <int N>
constexpr Place place(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + thread % 4 * 2 + i % 2};
}

// All are inlined: reports name the line of the kernel that calls them.

__forceinline__ void fence() { ::vgpu::wgmma_fence(); }

template <typename T, Major A, Major B, int N>
__forceinline__ void mma(Fragment<N>& d, Descriptor a, Descriptor b, bool accumulate) {
  static_assert(N == 64 || N == 128 || N == 256);
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  ::vgpu::wgmma(d.value, {a.bits, b.bits, N, std::is_same_v<T, __nv_bfloat16>, A == Major::kMN,
                          B == Major::kMN, accumulate});
}

__forceinline__ void commit() { ::vgpu::wgmma_commit(); }

template <int Pending, int... N>
__forceinline__ void wait(Fragment<N>&... fragments) {
  static_assert(Pending >= 0 && Pending <= 7);
  (static_cast<void>(fragments), ...);  // the compiler moves nothing across a call
  ::vgpu::wgmma_wait(Pending);
}

template <int R>
__forceinline__ void registers_up() {
  static_assert(R % 8 == 0 && R >= 24 && R <= 256);
  ::vgpu::set_registers(R, true);
}
template <int R>
__forceinline__ void registers_down() {
  static_assert(R % 8 == 0 && R >= 24 && R <= 256);
  ::vgpu::set_registers(R, false);
}

__forceinline__ bool elect_one() { return ::vgpu::elect_one(); }

__forceinline__ void named_barrier(int id, int threads) { ::vgpu::named_barrier(id, threads); }

__forceinline__ void arrive_in_block(std::uint64_t* barrier, std::uint32_t rank) {
  ::vgpu::cluster_mbarrier_arrive(static_cast<std::uint64_t*>(::vgpu::cluster_map(barrier, rank)), 1);
}

__forceinline__ void store_matrix(void* shared, const std::uint32_t (&pairs)[4]) {
  ::vgpu::store_matrix(shared, pairs);
}

__forceinline__ void prefetch_map(const void* tensor_map) { ::vgpu::prefetch_tensor_map(tensor_map); }

}  // namespace overlap::wgmma
