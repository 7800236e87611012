// Programs that each leave one algorithm of CUB unordered, and the same programs without the bug.
// Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>

#include <cub/cub.cuh>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Event;
using overlap::Stream;
using planted::add;
using planted::fill;
using planted::kCount;

/// Two streams, and buffers of kCount items; the constructor fills them and waits for the GPU.
struct Setting {
  Setting() {
    for (auto* buffer : {&in, &out, &other}) fill<<<1, kCount>>>(buffer->data(), 1);
    cudaMemset(flags.data(), 1, flags.bytes());
    cudaDeviceSynchronize();
  }
  void order() {
    cudaEventRecord(ready, first);
    cudaStreamWaitEvent(second, ready);
  }
  struct Pointers {
    int *in, *out, *other, *count;
    char *flags, *storage;
  };
  Pointers pointers() {
    return {in.data(), out.data(), other.data(), count.data(), flags.data(), storage.data()};
  }

  static constexpr std::size_t kBytes = 8192;
  std::size_t bytes = kBytes;
  DeviceBuffer<int> in{0, kCount}, out{0, kCount}, other{0, kCount}, count{0, 1};
  DeviceBuffer<char> flags{0, kCount}, storage{0, 2 * kBytes};
  Stream first{0}, second{0};
  Event ready{0};
};

struct IsMarked {
  const char* marks;
  __host__ __device__ bool operator()(int position) const {
    return marks[position] != 0;  // @marks_overwritten
  }
};

using Numbers = thrust::counting_iterator<int>;

// ---- selection_used_early: a kernel on another stream reads the selection's output -----------------------
void selection_used_early(bool fixed) {
  Setting s;
  const auto& [in, found, other, count, flags, storage] = s.pointers();
  const Numbers all(0);
  cub::DeviceSelect::Flagged(storage, s.bytes, all, flags, found, count, kCount,  // @selection_used_early
                             s.first);
  if (fixed) s.order();
  add<<<1, kCount, 0, s.second>>>(found, other);  // @selection_used_early
  cudaDeviceSynchronize();
}

// ---- keys_not_there: a sort reads its keys before another stream has written them ------------------------
void keys_not_there(bool fixed) {
  Setting s;
  const auto& [keys, sorted, other, count, flags, storage] = s.pointers();
  fill<<<1, kCount, 0, s.first>>>(keys, 3);  // @keys_not_there
  if (fixed) s.order();
  cub::DeviceRadixSort::SortKeys(storage, s.bytes, keys, sorted, kCount, 0, 32, s.second);  // @keys_not_there
  cudaDeviceSynchronize();
}

// ---- sum_read_early: the host reads the sum before the reduction has completed ---------------------------
void sum_read_early(bool fixed) {
  Setting s;
  const auto& [in, out, other, count, flags, storage] = s.pointers();
  overlap::PinnedBuffer<int> total(1);
  cub::DeviceReduce::Sum(storage, s.bytes, in, total.data(), kCount, s.first);  // @sum_read_early
  if (fixed) cudaStreamSynchronize(s.first);
  volatile int seen = total[0];  // @sum_read_early
  (void)seen;
  cudaDeviceSynchronize();
}

// ---- shared_storage: two concurrent algorithms share one temporary storage -------------------------------
void shared_storage(bool fixed) {
  Setting s;
  const auto& [in, out, other, count, flags, storage] = s.pointers();
  char* second_storage = fixed ? storage + s.bytes : storage;
  cub::DeviceScan::InclusiveSum(storage, s.bytes, in, out, kCount, s.first);            // @shared_storage
  cub::DeviceScan::InclusiveSum(second_storage, s.bytes, in, other, kCount, s.second);  // @shared_storage
  cudaDeviceSynchronize();
}

// ---- marks_overwritten: another stream overwrites the marks that the selection's predicate reads ---------
void marks_overwritten(bool fixed) {
  Setting s;
  const auto& [in, found, other, count, flags, storage] = s.pointers();
  const Numbers all(0);
  cub::DeviceSelect::If(storage, s.bytes, all, found, count, kCount, IsMarked{flags}, s.first);
  if (fixed) s.order();
  cudaMemsetAsync(flags, 0, kCount, s.second);  // @marks_overwritten
  cudaDeviceSynchronize();
}

const planted::Cases kCases = {
    {"selection_used_early", selection_used_early},
    {"keys_not_there", keys_not_there},
    {"sum_read_early", sum_read_early},
    {"shared_storage", shared_storage},
    {"marks_overwritten", marks_overwritten},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
