// Shared by the tests of virtual NCCL. One host thread drives all GPUs.
#pragma once

#include <nccl.h>

#include <vector>

#include "virtual_test.hpp"

/// Lets GoogleTest print errors by their text.
inline void PrintTo(ncclResult_t result, std::ostream* out) { *out << ncclGetErrorString(result); }

#define NCCL_OK(call) ASSERT_EQ(call, ncclSuccess) << vgpu::last_error_detail()

namespace virtual_only {

inline void require(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(vgpu::last_error_detail());
}
/// Expects that the call failed with `code`, and that its message has all of `parts`.
inline void expect_failure(ncclResult_t got, ncclResult_t code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(got, code);
  expect_parts(vgpu::last_error_detail(), parts);
  expect_parts(ncclGetLastError(nullptr), parts);
}

/// A clique of the first GPUs, with a stream and 64 KiB of numbers on each.
class NcclTest : public VirtualTest {
 protected:
  static constexpr std::size_t kRoom = 16384;

  /// After a reset, in place of the ranks before it.
  void make_ranks(int ranks) {
    communicators.assign(ranks, nullptr);
    streams.clear();
    data.clear();
    require(ncclCommInitAll(communicators.data(), ranks, nullptr));
    for (int rank = 0; rank < ranks; ++rank) {
      require(cudaSetDevice(rank));
      streams.push_back(new_stream());
      data.push_back(device_words(kRoom));
    }
    require(cudaSetDevice(0));
  }
  int size() const { return static_cast<int>(communicators.size()); }
  ncclResult_t all_reduce(int rank, std::size_t count, ncclRedOp_t op = ncclSum) {
    return ncclAllReduce(data[rank], data[rank], count, ncclInt32, op, communicators[rank], streams[rank]);
  }
  ncclResult_t all_gather(int rank, std::size_t count) {
    return ncclAllGather(data[rank] + rank * count, data[rank], count, ncclInt32, communicators[rank],
                         streams[rank]);
  }
  ncclResult_t reduce_scatter(int rank, std::size_t count) {
    return ncclReduceScatter(data[rank], data[rank] + rank * count, count, ncclInt32, ncclSum,
                             communicators[rank], streams[rank]);
  }
  ncclResult_t broadcast(int rank, std::size_t count, int root) {
    return ncclBroadcast(data[rank], data[rank], count, ncclInt32, root, communicators[rank], streams[rank]);
  }
  ncclResult_t reduce(int rank, std::size_t count, int root) {
    return ncclReduce(data[rank], data[rank], count, ncclInt32, ncclSum, root, communicators[rank],
                      streams[rank]);
  }
  ncclResult_t send(int rank, int to, std::size_t count) {
    return ncclSend(data[rank], count, ncclInt32, to, communicators[rank], streams[rank]);
  }
  ncclResult_t receive(int rank, int from, std::size_t count, std::size_t offset = kRoom / 2) {
    return ncclRecv(data[rank] + offset, count, ncclInt32, from, communicators[rank], streams[rank]);
  }
  /// Synchronises all streams.
  void synchronize() {
    for (const cudaStream_t stream : streams) require(cudaStreamSynchronize(stream));
  }
  std::vector<ncclComm_t> communicators;
  std::vector<cudaStream_t> streams;
  std::vector<int*> data;
};

}  // namespace virtual_only
