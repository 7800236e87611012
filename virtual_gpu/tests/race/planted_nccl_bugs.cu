// Programs with NCCL and one missing or misunderstood order each, and the same programs without the bug.
// Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>
#include <nccl.h>

#include <vector>

#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::DeviceGuard;
using overlap::Event;
using overlap::Stream;
using planted::fill;
using planted::kCount;

constexpr int kRanks = 3;

/// Communicators, and for each rank two streams and two buffers.
struct Ranks {
  Ranks() : communicators(kRanks) {
    NCCL_CHECK(ncclCommInitAll(communicators.data(), kRanks, nullptr));
    for (int rank = 0; rank < kRanks; ++rank) {
      compute.emplace_back(rank);
      transfer.emplace_back(rank);
      ready.emplace_back(rank);
      bucket.emplace_back(rank, kCount);
      result.emplace_back(rank, kCount);
      const DeviceGuard guard(rank);
      CUDA_CHECK(cudaMemset(result[rank].data(), 0, result[rank].bytes()));
      fill<<<1, kCount>>>(bucket[rank].data(), rank);
      CUDA_CHECK(cudaDeviceSynchronize());
    }
  }
  ~Ranks() {
    for (ncclComm_t communicator : communicators) ncclCommDestroy(communicator);
  }
  void synchronize() {
    for (int rank = 0; rank < kRanks; ++rank) {
      CUDA_CHECK(cudaStreamSynchronize(compute[rank]));
      CUDA_CHECK(cudaStreamSynchronize(transfer[rank]));
    }
  }
  /// Orders all later work of the rank's compute stream after the present work of its transfer stream.
  void join(int rank) {
    CUDA_CHECK(cudaEventRecord(ready[rank], transfer[rank]));
    CUDA_CHECK(cudaStreamWaitEvent(compute[rank], ready[rank]));
  }
  template <class Call>
  void together(Call call) {
    NCCL_CHECK(ncclGroupStart());
    for (int rank = 0; rank < kRanks; ++rank) NCCL_CHECK(call(rank));
    NCCL_CHECK(ncclGroupEnd());
  }

  std::vector<ncclComm_t> communicators;
  std::vector<Stream> compute, transfer;
  std::vector<Event> ready;
  std::vector<DeviceBuffer<int>> bucket, result;
};

// ---- bucket: the next gradients are written while the all-reduce may still read the last ones -------------
__global__ void next_gradients(int* bucket) {
  bucket[threadIdx.x] = static_cast<int>(threadIdx.x);  // @bucket
}
void bucket(bool fixed) {
  Ranks all;
  all.together([&](int rank) {
    int* to = all.result[rank].data();
    const int* from = all.bucket[rank].data();
    const ncclComm_t communicator = all.communicators[rank];
    return ncclAllReduce(from, to, kCount, ncclInt, ncclSum, communicator, all.transfer[rank]);  // @bucket
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    if (fixed) all.join(rank);
    const DeviceGuard guard(rank);
    next_gradients<<<1, kCount, 0, all.compute[rank]>>>(all.bucket[rank].data());
  }
  all.synchronize();
}

// ---- early_use: another stream reads gathered data too early; only the rank's own part is already in place
__global__ void use(const int* sum, int* out) {
  out[threadIdx.x] = sum[threadIdx.x];  // @early_use
}
void early_use(bool fixed) {
  Ranks all;
  all.together([&](int rank) {
    int* data = all.bucket[rank].data();
    const ncclComm_t communicator = all.communicators[rank];
    return ncclAllGather(data + rank, data, 1, ncclInt, communicator, all.transfer[rank]);  // @early_use
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const DeviceGuard guard(rank);
    use<<<1, 1, 0, all.compute[rank]>>>(all.bucket[rank].data() + rank, all.result[rank].data());
    if (fixed) all.join(rank);
    use<<<1, kRanks, 0, all.compute[rank]>>>(all.bucket[rank].data(), all.result[rank].data());
  }
  all.synchronize();
}

// ---- broadcast_as_barrier: the root takes a broadcast for a barrier of all ranks -------------------------
__global__ void put(int* remote) { remote[threadIdx.x] = 7; }  // @broadcast_as_barrier
__global__ void take(int* mine, int* out) {
  out[threadIdx.x] = mine[threadIdx.x];  // @broadcast_as_barrier
}
void broadcast_as_barrier(bool fixed) {
  Ranks all;
  DeviceBuffer<int> mailbox(0, kCount);
  {
    const DeviceGuard guard(1);
    CUDA_CHECK(cudaDeviceEnablePeerAccess(0, 0));
    put<<<1, kCount, 0, all.compute[1]>>>(mailbox.data());
  }
  all.together([&](int rank) {
    int* data = all.bucket[rank].data();
    const ncclComm_t communicator = all.communicators[rank];
    if (fixed) return ncclAllReduce(data, data, 1, ncclInt, ncclSum, communicator, all.compute[rank]);
    return ncclBroadcast(data, data, 1, ncclInt, 0, communicator, all.compute[rank]);
  });
  const DeviceGuard guard(0);
  take<<<1, kCount, 0, all.compute[0]>>>(mailbox.data(), all.result[0].data());
  all.synchronize();
}

// ---- wrong_way: a message from the writer to the reader does not order the write after the read ----------
__global__ void read_remote(const int* remote, int* out) {
  out[threadIdx.x] = remote[threadIdx.x];  // @wrong_way
}
__global__ void overwrite(int* mine) { mine[threadIdx.x] = 0; }  // @wrong_way
void wrong_way(bool fixed) {
  Ranks all;
  {
    const DeviceGuard guard(1);
    CUDA_CHECK(cudaDeviceEnablePeerAccess(0, 0));
    read_remote<<<1, kCount, 0, all.compute[1]>>>(all.bucket[0].data(), all.result[1].data());
  }
  const int from = fixed ? 1 : 0, to = 1 - from;
  NCCL_CHECK(ncclGroupStart());
  NCCL_CHECK(ncclSend(all.result[from].data(), 1, ncclInt, to, all.communicators[from], all.compute[from]));
  NCCL_CHECK(ncclRecv(all.result[to].data(), 1, ncclInt, from, all.communicators[to], all.compute[to]));
  NCCL_CHECK(ncclGroupEnd());
  const DeviceGuard guard(0);
  overwrite<<<1, kCount, 0, all.compute[0]>>>(all.bucket[0].data());
  all.synchronize();
}

// ---- slot: a ring step receives into the slot that a kernel still reads -----------------------------------
__global__ void multiply(const int* slot, int* sum) {
  sum[threadIdx.x] += slot[threadIdx.x];  // @slot
}
void slot(bool fixed) {
  Ranks all;
  for (int rank = 0; rank < kRanks; ++rank) {
    const DeviceGuard guard(rank);
    multiply<<<1, kCount, 0, all.compute[rank]>>>(all.bucket[rank].data(), all.result[rank].data());
    CUDA_CHECK(cudaEventRecord(all.ready[rank], all.compute[rank]));
    if (fixed) CUDA_CHECK(cudaStreamWaitEvent(all.transfer[rank], all.ready[rank]));
  }
  std::vector<DeviceBuffer<int>> next;
  for (int rank = 0; rank < kRanks; ++rank) {
    next.emplace_back(rank, kCount);
    const DeviceGuard guard(rank);
    CUDA_CHECK(cudaMemsetAsync(next[rank].data(), 0, next[rank].bytes(), all.transfer[rank]));
  }
  all.together([&](int rank) {
    const int to = (rank + 1) % kRanks, from = (rank + kRanks - 1) % kRanks;
    const ncclComm_t communicator = all.communicators[rank];
    const cudaStream_t stream = all.transfer[rank];
    NCCL_CHECK(ncclSend(next[rank].data(), kCount, ncclInt, to, communicator, stream));
    return ncclRecv(all.bucket[rank].data(), kCount, ncclInt, from, communicator, stream);  // @slot
  });
  all.synchronize();
}

const planted::Cases kCases = {
    {"bucket", bucket},       {"early_use", early_use}, {"broadcast_as_barrier", broadcast_as_barrier},
    {"wrong_way", wrong_way}, {"slot", slot},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
