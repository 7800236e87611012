// Programs that end on virtual GPUs, but may hang or compute another result on real ones; a warning names
// both lines. Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>
#include <nccl.h>

#include <cuda/atomic>
#include <vector>

#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;

// ---- branches: half of a block arrives at one barrier, the other half at another one --------------------
__global__ void meet_in_branches(bool fixed) {
  if (threadIdx.x < 32) {
    if (!fixed) __syncthreads();  // @branches
  } else {
    if (!fixed) __syncthreads();  // @branches
  }
  if (fixed) __syncthreads();
}
void branches(bool fixed) {
  meet_in_branches<<<2, 64>>>(fixed);
  cudaDeviceSynchronize();
}

// ---- returned_lane: a lane reads the value of a lane that has returned -----------------------------------
__global__ void read_lanes(int* sums, bool fixed) {
  const int lane = static_cast<int>(threadIdx.x);
  if (!fixed && lane >= 20) return;
  sums[lane] = lane + __shfl_down_sync(~0u, lane, 16);  // @returned_lane @returned_lane
}
void returned_lane(bool fixed) {
  DeviceBuffer<int> sums(0, 32);
  read_lanes<<<1, 32>>>(sums.data(), fixed);
  cudaDeviceSynchronize();
}

// ---- lazy_loading: a kernel waits for a kernel that has never been launched before -----------------------
__global__ void await(int* flag) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> word(*flag);
  while (word.load(cuda::memory_order_acquire) == 0) {
  }
}
__global__ void raise(int* flag, int value) {
  cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(value, cuda::memory_order_release);
}
void lazy_loading(bool fixed) {
  DeviceBuffer<int> flag(0, 1);
  const Stream first(0), second(0);
  cudaMemset(flag.data(), 0, sizeof(int));
  if (fixed) raise<<<1, 1>>>(flag.data(), 0);
  cudaDeviceSynchronize();
  await<<<1, 1, 0, first>>>(flag.data());      // @lazy_loading
  raise<<<1, 1, 0, second>>>(flag.data(), 1);  // @lazy_loading
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
}

// ---- NCCL: two GPUs; each set of streams has a communicator ----------------------------------------------
constexpr int kRanks = 2, kSets = 2;
struct Ranks {
  Ranks() {
    for (auto& set : communicators) NCCL_CHECK(ncclCommInitAll(set, kRanks, nullptr));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int set = 0; set < kSets; ++set) {
        streams[rank].emplace_back(rank);
        data[rank].emplace_back(rank, planted::kCount);
      }
    }
  }
  ~Ranks() {
    for (auto& set : communicators) {
      for (ncclComm_t communicator : set) ncclCommDestroy(communicator);
    }
  }
  void synchronize() {
    for (const auto& of_rank : streams) {
      for (const Stream& stream : of_rank) CUDA_CHECK(cudaStreamSynchronize(stream));
    }
  }
  ncclComm_t communicators[kSets][kRanks];
  std::vector<Stream> streams[kRanks];
  std::vector<DeviceBuffer<int>> data[kRanks];
};

// ---- without_a_group: one thread calls an all-reduce for two ranks, one after the other
void without_a_group(bool fixed) {
  Ranks all;
  const auto& c = all.communicators[0];
  int *a = all.data[0][0].data(), *b = all.data[1][0].data();
  if (fixed) NCCL_CHECK(ncclGroupStart());
  NCCL_CHECK(ncclAllReduce(a, a, 1, ncclInt, ncclSum, c[0], all.streams[0][0]));  // @without_a_group
  NCCL_CHECK(ncclAllReduce(b, b, 1, ncclInt, ncclSum, c[1], all.streams[1][0]));  // @without_a_group
  if (fixed) NCCL_CHECK(ncclGroupEnd());
  all.synchronize();
}

// ---- opposite_order: the two ranks call collectives of two communicators in opposite order
void opposite_order(bool fixed) {
  Ranks all;
  const auto broadcast = [&](int rank, int set) {
    int* a = all.data[rank][set].data();
    const ncclComm_t c = all.communicators[set][rank];
    return ncclBroadcast(a, a, 1, ncclInt, 0, c, all.streams[rank][set]);  // @opposite_order @opposite_order
  };
  for (int turn = 0; turn < kSets; ++turn) {
    NCCL_CHECK(ncclGroupStart());
    for (int rank = 0; rank < kRanks; ++rank) {
      const int other = kSets - 1 - turn, set = rank == 0 ? turn : other;
      NCCL_CHECK(broadcast(rank, fixed ? turn : set));
    }
    NCCL_CHECK(ncclGroupEnd());
  }
  all.synchronize();
}

const planted::Cases kCases = {
    {"branches", branches},
    {"returned_lane", returned_lane},
    {"lazy_loading", lazy_loading},
    {"without_a_group", without_a_group},
    {"opposite_order", opposite_order},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
