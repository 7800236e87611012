// What Hopper's tensor cores need and <cuda/ptx> does not have: words.hpp beside it has the only other inline
// PTX. Virtual GPUs have a header of this name of their own.
//
// A warpgroup is four warps of a block, the first of them a multiple of 4. Its 128 threads multiply together:
// D[64, N] += A[64, 16] B[16, N], A and B in shared memory, D in the threads' registers (place()). The
// product is asynchronous: between mma() and the wait() that covers its group no thread may write A or B or
// access D. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". Compute capability 9.0
// alone.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace overlap::wgmma {

/// Which index of an operand has neighbouring elements in memory: k, or the other one (m of A, n of B).
enum class Major { kK, kMN };
/// How 16-byte chunks change places in rows of so many bytes, as the tensor map that brought them says.
enum class Swizzle { kNone = 0, k128 = 1, k64 = 2, k32 = 3 };

inline constexpr int kThreads = 128;  ///< of a warpgroup
inline constexpr int kRows = 64;      ///< of A and D in one mma()
inline constexpr int kDepth = 16;     ///< columns of A and rows of B in one mma(), of 16-bit elements

/// Where an operand lies in shared memory.
struct Descriptor {
  std::uint64_t bits;  ///< as the instruction takes them
};

/// The operand that begins at `shared`, made of rows of 32, 64 or 128 bytes (none: 16), eight of which are an
/// atom. K-major: a row is an m or n; `stride_bytes` is the distance of atoms along it, `leading_bytes` only
/// counts without a swizzle: the distance of chunks along k. MN-major: a row is a k; `stride_bytes` is the
/// distance of atoms along k and `leading_bytes` along m or n; without a swizzle these two change places.
/// Atoms begin at multiples of their size.
template <Major, Swizzle S>
__device__ __forceinline__ Descriptor describe(const void* shared, int leading_bytes, int stride_bytes) {
  const auto field = [](std::uint64_t bytes) { return (bytes & 0x3ffff) >> 4; };
  return {field(__cvta_generic_to_shared(shared)) | field(static_cast<std::uint64_t>(leading_bytes)) << 16 |
          field(static_cast<std::uint64_t>(stride_bytes)) << 32 |
          std::uint64_t{static_cast<unsigned>(S)} << 62};
}

/// The same operand from `bytes` on: the next 16 k.
__device__ __forceinline__ Descriptor advance(Descriptor operand, int bytes) {
  return {operand.bits + (static_cast<std::uint64_t>(bytes) >> 4)};
}

/// A thread's part of D[64, N], in registers: index it with constants only.
template <int N>
struct Fragment {
  Fragment() = default;
  Fragment(const Fragment&) = delete;
  Fragment& operator=(const Fragment&) = delete;
  float value[N / 2];  ///< where each belongs: place()
};

/// An element of D[64, N].
struct Place {
  int row;     ///< 0 to 63
  int column;  ///< 0 to N - 1
};
/// The element that thread 0 ... 127 of the warpgroup has in value[i].
template <int N>
__host__ __device__ constexpr Place place(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + thread % 4 * 2 + i % 2};
}

/// Call it before the first mma(), and before one whose D has been accessed since.
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// @cond
// Operands 0, 1, 2, ... of the instruction, N / 2 of them.
#define OVERLAP_WGMMA_REGISTERS_32                                       \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OVERLAP_WGMMA_REGISTERS_64                                                   \
  OVERLAP_WGMMA_REGISTERS_32                                                         \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OVERLAP_WGMMA_REGISTERS_128                                                              \
  OVERLAP_WGMMA_REGISTERS_64                                                                     \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define OVERLAP_WGMMA_VALUES_8(v, i)                                                          \
  "+f"(v[i]), "+f"(v[i + 1]), "+f"(v[i + 2]), "+f"(v[i + 3]), "+f"(v[i + 4]), "+f"(v[i + 5]), \
      "+f"(v[i + 6]), "+f"(v[i + 7])
#define OVERLAP_WGMMA_VALUES_32(v, i)                                                                \
  OVERLAP_WGMMA_VALUES_8(v, i), OVERLAP_WGMMA_VALUES_8(v, i + 8), OVERLAP_WGMMA_VALUES_8(v, i + 16), \
      OVERLAP_WGMMA_VALUES_8(v, i + 24)
#define OVERLAP_WGMMA_VALUES_64(v, i) OVERLAP_WGMMA_VALUES_32(v, i), OVERLAP_WGMMA_VALUES_32(v, i + 32)
#define OVERLAP_WGMMA_VALUES_128(v, i) OVERLAP_WGMMA_VALUES_64(v, i), OVERLAP_WGMMA_VALUES_64(v, i + 64)
// a, b, accumulate, majors: the numbers of the operands behind D's.
#define OVERLAP_WGMMA(n, type, count, a_number, b_number, accumulate_number, a_major_number, b_major_number) \
  asm volatile(                                                                                              \
      "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" accumulate_number                               \
      ", 0;\n"                                                                                               \
      "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" OVERLAP_WGMMA_REGISTERS_##count    \
      "}, %" a_number ", %" b_number ", accumulate, 1, 1, %" a_major_number ", %" b_major_number ";\n}"      \
      : OVERLAP_WGMMA_VALUES_##count(d.value, 0)                                                             \
      : "l"(a.bits), "l"(b.bits), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(A)),               \
        "n"(static_cast<int>(B)))
/// @endcond

/// D = A B, plus D if `accumulate`. All threads of the warpgroup give the same descriptors. T: __half or
/// __nv_bfloat16; N: 64, 128 or 256.
template <typename T, Major A, Major B, int N>
__device__ __forceinline__ void mma(Fragment<N>& d, Descriptor a, Descriptor b, bool accumulate) {
  static_assert(N == 64 || N == 128 || N == 256);
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  if constexpr (std::is_same_v<T, __half>) {
    if constexpr (N == 64) OVERLAP_WGMMA("64", "f16", 32, "32", "33", "34", "35", "36");
    if constexpr (N == 128) OVERLAP_WGMMA("128", "f16", 64, "64", "65", "66", "67", "68");
    if constexpr (N == 256) OVERLAP_WGMMA("256", "f16", 128, "128", "129", "130", "131", "132");
  } else {
    if constexpr (N == 64) OVERLAP_WGMMA("64", "bf16", 32, "32", "33", "34", "35", "36");
    if constexpr (N == 128) OVERLAP_WGMMA("128", "bf16", 64, "64", "65", "66", "67", "68");
    if constexpr (N == 256) OVERLAP_WGMMA("256", "bf16", 128, "128", "129", "130", "131", "132");
  }
}

#undef OVERLAP_WGMMA
#undef OVERLAP_WGMMA_VALUES_128
#undef OVERLAP_WGMMA_VALUES_64
#undef OVERLAP_WGMMA_VALUES_32
#undef OVERLAP_WGMMA_VALUES_8
#undef OVERLAP_WGMMA_REGISTERS_128
#undef OVERLAP_WGMMA_REGISTERS_64
#undef OVERLAP_WGMMA_REGISTERS_32

/// All mma() since the last commit() are a group.
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most the last `Pending` groups of the warpgroup are pending. Name the fragments that are
/// read or written next, or that stay in flight: the compiler keeps what is done with them behind the wait.
template <int Pending, int... N>
__device__ __forceinline__ void wait(Fragment<N>&... fragments) {
  static_assert(Pending >= 0 && Pending <= 7);
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  const auto pin = [](auto& values) {
#pragma unroll
    for (float& value : values) asm volatile("" : "+f"(value)::"memory");
  };
  (pin(fragments.value), ...);
}

/// The warpgroup takes registers from the block's pool until each thread has R, or gives back those above R.
/// R: a multiple of 8 from 24 to 256. All four warps call it.
///@{
template <int R>
__device__ __forceinline__ void registers_up() {
  static_assert(R % 8 == 0 && R >= 24 && R <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R));
}
template <int R>
__device__ __forceinline__ void registers_down() {
  static_assert(R % 8 == 0 && R >= 24 && R <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R));
}
///@}

/// True in one lane of the warp, each time in the same one. All lanes call it.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile("{\n.reg .pred elected;\nelect.sync _|elected, 0xffffffff;\nselp.b32 %0, 1, 0, elected;\n}"
               : "=r"(elected));
  return elected != 0;
}

/// Waits until `threads` threads, a multiple of 32, have arrived at barrier `id`, 1 to 15 (0 is
/// __syncthreads).
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Arrives at the mbarrier that block `rank` of the cluster has at the same place of its shared memory. It
/// orders this thread's accesses for its own block alone, which is enough for what it has only read. (The
/// arrival in <cuda/ptx> releases at the scope of the cluster: it waits until what the thread wrote is
/// visible to the whole GPU, MEMBAR.ALL.GPU in machine code.) Source: CUTLASS, ClusterBarrier::arrive().
__device__ __forceinline__ void arrive_in_block(std::uint64_t* barrier, std::uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(rank)
      : "memory");
}

/// The warp stores four 8 x 8 matrices of 16-bit elements (stmatrix.x4). Lane 8 j + i gives the 16-byte row i
/// of matrix j as `shared`; of matrix j, `pairs[j]` has the elements 2 (lane % 4) and + 1 of row lane / 4.
__device__ __forceinline__ void store_matrix(void* shared, const std::uint32_t (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

/// Fetches a tensor map, a __grid_constant__ parameter of the kernel, before the first copy needs it.
__device__ __forceinline__ void prefetch_map(const void* tensor_map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(tensor_map) : "memory");
}

}  // namespace overlap::wgmma
