// Rings of slots on GPU 1, filled by GPU 0: the consumer waits until a flag has at least the number of its
// step; with the bug the producer does not wait for the credit of a slot. Command line: planted.hpp. Marks as
// in planted_bugs.cu. A schedule in which the producer always runs ahead shows a wrong result alone, so each
// bug is reported in some of the runs of ./lab race.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;
using Slot = long long;
constexpr int kSteps = 12;

/// Flags as programs write them and wait for them.
struct Release {
  using Word = cuda::atomic_ref<int, cuda::thread_scope_system>;
  static __device__ void raise(int* flag, int value) { Word(*flag).store(value, cuda::memory_order_release); }
  static __device__ void await(int* flag, int value) {
    while (Word(*flag).load(cuda::memory_order_acquire) < value) {
    }
  }
};
struct Add {
  static __device__ void raise(int* flag, int /*value*/) {
    __threadfence_system();
    atomicAdd_system(flag, 1);
  }
  static __device__ void await(int* flag, int value) {
    while (atomicAdd_system(flag, 0) < value) {
    }
    __threadfence_system();
  }
};
struct Volatile {
  static __device__ void raise(int* flag, int value) {
    __threadfence_system();
    *const_cast<volatile int*>(flag) = value;
  }
  static __device__ void await(int* flag, int value) {
    while (*const_cast<volatile int*>(flag) < value) {
    }
    __threadfence_system();
  }
};

template <class Flag>
__global__ void produce(Slot* slots, int* flag, int* credit, int count, bool fixed) {
  for (int step = 0; step < kSteps; ++step) {
    if (fixed && step >= count) Flag::await(credit, step + 1 - count);
    slots[step % count] = step;  // @credit @credit_add @credit_volatile @credit_stream
    Flag::raise(flag, step + 1);
  }
}
template <class Flag>
__global__ void consume(const Slot* slots, int* flag, int* credit, int count, Slot* sum) {
  for (int step = 0; step < kSteps; ++step) {
    Flag::await(flag, step + 1);
    *sum += slots[step % count];  // @credit @credit_add @credit_volatile
    Flag::raise(credit, step + 1);
  }
}
__global__ void take(const Slot* slot, Slot* sum) {
  *sum += *slot;  // @credit_stream
}

/// Memory of GPU 1, zeros, to which GPU 0 has access.
struct Ring {
  explicit Ring(std::size_t count) : slots(1, count), words(1, 2) {
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CUDA_CHECK(cudaSetDevice(1));
    CUDA_CHECK(cudaMemset(slots.data(), 0, slots.bytes()));
    CUDA_CHECK(cudaMemset(words.data(), 0, words.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  DeviceBuffer<Slot> slots;
  DeviceBuffer<int> words;
};

/// GPU 1 consumes in a kernel, or in its stream.
template <class Flag>
planted::Case with_slots(int count, bool by_stream = false) {
  return [count, by_stream](bool fixed) {
    const Ring ring(static_cast<std::size_t>(count) + 1);
    const Stream producing(0), consuming(1);
    Slot* const slots = ring.slots.data();
    int* const flag = &ring.words.data()[0];
    int* const credit = &ring.words.data()[1];
    CUDA_CHECK(cudaSetDevice(0));
    produce<Flag><<<1, 1, 0, producing>>>(slots, flag, credit, count, fixed);
    CUDA_CHECK(cudaSetDevice(1));
    if (!by_stream) consume<Flag><<<1, 1, 0, consuming>>>(slots, flag, credit, count, &slots[count]);
    for (unsigned step = 0; by_stream && step < kSteps; ++step) {
      CU_CHECK(cuStreamWaitValue32(consuming, reinterpret_cast<CUdeviceptr>(flag), step + 1,
                                   CU_STREAM_WAIT_VALUE_GEQ));
      take<<<1, 1, 0, consuming>>>(&slots[step % count], &slots[count]);
      CU_CHECK(cuStreamWriteValue32(consuming, reinterpret_cast<CUdeviceptr>(credit), step + 1, 0));
    }
    CUDA_CHECK(cudaStreamSynchronize(consuming));
    CUDA_CHECK(cudaStreamSynchronize(producing));
  };
}

const planted::Cases kCases = {
    {"credit_1", with_slots<Release>(1)},         {"credit_2", with_slots<Release>(2)},
    {"credit_4", with_slots<Release>(4)},         {"credit_add", with_slots<Add>(2)},
    {"credit_volatile", with_slots<Volatile>(2)}, {"credit_stream", with_slots<Release>(2, true)},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
