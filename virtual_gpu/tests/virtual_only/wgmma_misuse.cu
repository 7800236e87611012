// Errors with wgmma, named barriers and setmaxnreg: faults and deadlock reports.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cuda/ptx>

#include "overlap/gpu/wgmma.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

namespace ptx = cuda::ptx;
namespace wgmma = overlap::wgmma;
using wgmma::Swizzle;
constexpr auto kK = wgmma::Major::kK;
constexpr int kOperand = 64 * wgmma::kDepth;

class WgmmaMisuseTest : public VirtualTest {
 protected:
  /// Expects that the kernel ends with that code and message, in time order and in a random order.
  template <class Kernel>
  void expect_stopped(Kernel kernel, int threads, std::initializer_list<const char*> parts,
                      cudaError_t code = cudaErrorLaunchFailure) {
    in_two_orders([&] {
      kernel<<<1, threads>>>(device_words(1, 0));
      expect_failure(cudaDeviceSynchronize(), code, parts);
    });
  }
  template <class Kernel>
  void expect_deadlock(Kernel kernel, int threads, std::initializer_list<const char*> parts) {
    in_two_orders([&] {
      kernel<<<1, threads>>>(device_words(1, 0));
      expect_parts(deadlock_of(cudaDeviceSynchronize), parts);
    });
  }
};

__device__ inline wgmma::Descriptor plain(const __half* operand) {
  return wgmma::describe<kK, Swizzle::kNone>(operand, kOperand, 128);
}
#define OPERANDS                                      \
  alignas(128) __shared__ __half tiles[2 * kOperand]; \
  [[maybe_unused]] const auto a = plain(tiles), b = plain(tiles + kOperand)

__global__ void without_fence(int* /*sink*/) {
  OPERANDS;
  wgmma::Fragment<64> d;
  wgmma::mma<__half, kK, kK>(d, a, b, false);
}

__global__ void touched(int* /*sink*/) {
  OPERANDS;
  wgmma::Fragment<64> d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);
  wgmma::commit();
  wgmma::wait<0>(d);
  d.value[7] = 1;
  wgmma::mma<__half, kK, kK>(d, a, b, true);
}

TEST_F(WgmmaMisuseTest, AFenceComesFirst) {
  expect_stopped(without_fence, 128, {"without_fence", "issues a wgmma before its first fence()"});
  expect_stopped(touched, 128,
                 {"touched", "has changed its Fragment since the wait()", "call fence() between them"});
}

__global__ void ends_early(int* /*sink*/) {
  OPERANDS;
  wgmma::fence();
  {
    wgmma::Fragment<64> d;
    wgmma::mma<__half, kK, kK>(d, a, b, false);
    wgmma::commit();
  }
  __syncthreads();
}

__global__ void other_fragment_ends(int* /*sink*/) {
  OPERANDS;
  wgmma::Fragment<64> d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, b, false);
  wgmma::commit();
  { wgmma::Fragment<64> other; }
  wgmma::wait<0>(d);
}

__global__ void left_behind(int* /*sink*/) {
  OPERANDS;
  auto* d = new wgmma::Fragment<64>;  // lives on
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(*d, a, b, false);
  wgmma::commit();
}

TEST_F(WgmmaMisuseTest, AProductIsWaitedFor) {
  expect_stopped(ends_early, 128, {"ends_early", "destroys a Fragment", "may still write"});
  expect_stopped(left_behind, 128,
                 {"block (0,0,0) ends although not all threads of warpgroup 0 have waited", "m64n64k16"});
  vgpu::reset();
  other_fragment_ends<<<1, 128>>>(nullptr);
  CUDA_OK(cudaDeviceSynchronize());
}

enum Difference { kDescriptors, kFlag, kGroup, kType };
/// One thread of the warpgroup says something else than the others.
template <Difference kDifference>
__global__ void one_differs(int* /*sink*/) {
  OPERANDS;
  const bool other = threadIdx.x == 77;
  wgmma::Fragment<64> d;
  wgmma::fence();
  if (kDifference == kGroup && other) wgmma::commit();
  if (kDifference == kType && other)
    wgmma::mma<__nv_bfloat16, kK, kK>(d, a, b, false);
  else
    wgmma::mma<__half, kK, kK>(d, kDifference == kDescriptors && other ? b : a, b,
                               kDifference == kFlag && other);
  wgmma::commit();
  wgmma::wait<0>(d);
}

TEST_F(WgmmaMisuseTest, AllThreadsOfAWarpgroupSayTheSame) {
  expect_stopped(one_differs<kDescriptors>, 128, {"other descriptors than other threads of its warpgroup"});
  expect_stopped(one_differs<kFlag>, 128, {"with another accumulate flag than other threads"});
  expect_stopped(one_differs<kGroup>, 128, {"in another group than other threads"});
  expect_stopped(one_differs<kType>, 128, {"of another shape or type than other threads"});
}

__global__ void in_last_warps(int* /*sink*/) {
  OPERANDS;
  if (threadIdx.x < 128) return;
  wgmma::Fragment<64> d;
  wgmma::fence();
}
__global__ void up_in_last_warps(int* /*sink*/) {
  if (threadIdx.x >= 128) wgmma::registers_up<240>();
}

TEST_F(WgmmaMisuseTest, AWarpgroupBeginsAtAMultipleOf128AndIsWhole) {
  expect_stopped(in_last_warps, 192, {"in warpgroup 1, which lacks some of its 128 threads"});
  expect_stopped(up_in_last_warps, 160, {"registers_up<240> in warpgroup 1", "the block has 160"});
}

__global__ void outside(int* /*sink*/) {
  OPERANDS;
  wgmma::Fragment<64> d;
  wgmma::fence();
  wgmma::mma<__half, kK, kK>(d, a, wgmma::advance(b, 200 * 1024), false);
  wgmma::commit();
  wgmma::wait<0>(d);
}

TEST_F(WgmmaMisuseTest, OperandsAreInTheSharedMemoryOfTheBlock) {
  expect_stopped(outside, 128, {"outside", "operand B at shared address 0x", "not in the shared memory"},
                 cudaErrorIllegalAddress);
}

__global__ void id_16(int* /*sink*/) { wgmma::named_barrier(16, 32); }
__global__ void odd_barrier(int* /*sink*/) { wgmma::named_barrier(1, 40); }
__global__ void large_barrier(int* /*sink*/) { wgmma::named_barrier(1, 96); }
__global__ void two_counts(int* /*sink*/) { wgmma::named_barrier(1, threadIdx.x < 32 ? 64 : 96); }

TEST_F(WgmmaMisuseTest, NamedBarriersHaveNumbersAndWholeWarps) {
  expect_stopped(id_16, 32, {"arrives at named barrier 16: 1 to 15 are possible"});
  expect_stopped(odd_barrier, 64, {"named barrier 1 of 40 threads: it must be a multiple of 32"});
  expect_stopped(large_barrier, 64, {"of 96 threads", "at most the 64 of the block"});
  expect_stopped(two_counts, 96, {"arrives at named barrier 1 of", "others at one of"});
}

__global__ void store_outside(int* sink) {
  const std::uint32_t pairs[4] = {};
  wgmma::store_matrix(sink, pairs);
}
__global__ void store_oddly(int* /*sink*/) {
  alignas(16) __shared__ int words[64];
  const std::uint32_t pairs[4] = {};
  wgmma::store_matrix(words + 1, pairs);
}
__global__ void store_by_half(int* /*sink*/) {
  alignas(16) __shared__ int words[64];
  const std::uint32_t pairs[4] = {};
  if (threadIdx.x < 16) return;
  wgmma::store_matrix(words, pairs);
}
__global__ void prefetch_nothing(int* sink) { wgmma::prefetch_map(sink); }

TEST_F(WgmmaMisuseTest, MatricesGoToRowsOfSharedMemoryAndMapsAreMaps) {
  expect_stopped(store_outside, 32, {"store_matrix()", "not in the shared memory of its block"});
  expect_stopped(store_oddly, 32, {"store_matrix()", "no multiple of 16"}, cudaErrorMisalignedAddress);
  expect_stopped(store_by_half, 32, {"lacks some of its 32 lanes"});
  expect_stopped(prefetch_nothing, 32, {"calls prefetch_map() with an invalid tensor map"});
}

__global__ void three_warps_give(int* /*sink*/) {
  if (threadIdx.x < 96) wgmma::registers_down<40>();
}
__global__ void two_numbers(int* /*sink*/) {
  if (threadIdx.x < 64)
    wgmma::registers_down<40>();
  else
    wgmma::registers_down<48>();
}

TEST_F(WgmmaMisuseTest, AllFourWarpsSetTheirRegisters) {
  expect_stopped(three_warps_give, 128,
                 {"ends although only 96 of 128 threads of warpgroup 0 have called registers_down<40>"});
  expect_stopped(two_numbers, 128, {"calls registers_down<", "where other threads of its warpgroup call"});
}

// ---- deadlocks -------------------------------------------------------------------------------------------
__global__ void three_warps_issue(int* /*sink*/) {
  OPERANDS;
  wgmma::Fragment<64> d;
  wgmma::fence();
  if (threadIdx.x < 96) {
    wgmma::mma<__half, kK, kK>(d, a, b, false);
    wgmma::commit();
    wgmma::wait<0>(d);
  }
}

TEST_F(WgmmaMisuseTest, DeadlockReportsSayWhoHasIssued) {
  expect_deadlock(three_warps_issue, 128,
                  {"96 waiting for wgmma of warpgroup 0 (96 of 128 threads have issued wgmma)", "32 ended"});
}

__global__ void one_warp_is_missing(int* /*sink*/) {
  if (threadIdx.x < 32) wgmma::named_barrier(3, 64);
}

TEST_F(WgmmaMisuseTest, DeadlockReportsSayWhoIsAtANamedBarrier) {
  expect_deadlock(one_warp_is_missing, 64, {"32 of 64 at named barrier 3", "32 ended"});
}

__global__ void too_many_registers(int* /*sink*/) { wgmma::registers_up<240>(); }
__global__ void others_give_first(int* /*sink*/) {
  if (threadIdx.x < 128) {
    wgmma::registers_up<240>();
    wgmma::registers_down<24>();
  } else {
    wgmma::registers_up<240>();
  }
}

TEST_F(WgmmaMisuseTest, DeadlockReportsSayWhoHasTheRegisters) {
  expect_deadlock(too_many_registers, 384,
                  {"128 waiting for registers (warpgroup ", " in registers_up<240>, warpgroup ",
                   " has 240 for each of 128 threads; a multiprocessor has 65536)", "256 ended"});
  vgpu::reset();
  others_give_first<<<1, 384>>>(nullptr);
  CUDA_OK(cudaDeviceSynchronize());
}

}  // namespace
}  // namespace virtual_only
